"""Elements of parameters that are held at 0, by a mask."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from lantern.core.residuals import copied
from lantern.errors import ArgumentError, OptionError
from lantern.torch.functions.creation import ones_like
from lantern.torch.methods.sampling import randperm
from lantern.torch.tensor.detaching import array_of_tensor as base
from lantern.torch.tensor.devices import beside, on_host
from lantern.torch.tensor.tensor import fresh

__all__ = [
    "BasePruningMethod", "PruningContainer", "custom_from_mask", "global_unstructured",
    "identity", "is_pruned", "l1_unstructured", "ln_structured", "random_structured",
    "random_unstructured", "remove",
]  # fmt: skip


class BasePruningMethod:
    """A way of choosing a mask; a subclass defines ``compute_mask``.

    Attributes:
        PRUNING_TYPE: "unstructured", "structured" or "global".

    Example:
        >>> import lantern.torch as torch
        >>> class First(torch.nn.utils.prune.BasePruningMethod):
        ...     PRUNING_TYPE = "unstructured"
        ...
        ...     def compute_mask(self, t, default_mask):
        ...         mask = default_mask.clone()
        ...         mask[0] = 0
        ...         return mask
        >>> layer = torch.nn.Linear(3, 2)
        >>> _ = First.apply(layer, "bias")
        >>> bool(layer.bias[0] == 0)
        True
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Where a tensor is kept, given where it was kept so far."""
        raise OptionError(f"{type(self).__name__} does not define compute_mask.")

    def __call__(self, module: Any, inputs: Any) -> None:
        """Compute the parameter, as a hook before each call does."""
        setattr(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module: Any) -> Any:
        """The tensor, held at 0 where the mask says so."""
        name = self._tensor_name
        original = getattr(module, f"{name}_orig")
        return original * getattr(module, f"{name}_mask").to(original.dtype)

    @classmethod
    def apply(
        cls,
        module: Any,
        name: str,
        *args: Any,
        importance_scores: Any = None,
        **options: Any,
    ) -> Any:
        """Prune a parameter; once more, if it is pruned already."""
        method = cls(*args, **options)
        method._tensor_name = name
        key = _method(module, name)
        if key is None:
            original = getattr(module, name)
            mask = ones_like(original)
        else:
            before = module._forward_pre_hooks[key]
            rows = before if isinstance(before, PruningContainer) else (before,)
            method = PruningContainer(*rows, method)
            original = getattr(module, f"{name}_orig")
            mask = getattr(module, f"{name}_mask")
        scores = original if importance_scores is None else importance_scores
        # Before anything is changed: it may be refused.
        found = method.compute_mask(scores.detach(), mask).to(original.dtype)
        if key is None:
            del module._parameters[name]
            module.register_parameter(f"{name}_orig", original)
            module.register_buffer(f"{name}_mask", found)
        else:
            del module._forward_pre_hooks[key]
            setattr(module, f"{name}_mask", found)
        method(module, ())
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: Any, default_mask: Any = None, importance_scores: Any = None
    ) -> Any:
        """A tensor, held at 0 where the method chooses."""
        mask = ones_like(t) if default_mask is None else default_mask
        scores = t if importance_scores is None else importance_scores
        return t * self.compute_mask(scores, mask)

    def remove(self, module: Any) -> None:
        """Let the parameter be one again, with what is pruned at 0."""
        name = self._tensor_name
        value = self.apply_mask(module)
        original = module._parameters.pop(f"{name}_orig")
        original.data = value.detach()
        del module._buffers[f"{name}_mask"]
        module.__dict__.pop(name, None)
        module.register_parameter(name, original)


class PruningContainer(BasePruningMethod):
    """Several ways, one after another: each chooses among what is still kept.

    Args:
        args: what prunes the same parameter.

    Example:
        >>> import lantern.torch as torch
        >>> prune = torch.nn.utils.prune
        >>> layer = prune.l1_unstructured(torch.nn.Linear(2, 2), "weight", 1)
        >>> layer = prune.l1_unstructured(layer, "weight", 1)
        >>> (hook,) = layer._forward_pre_hooks.values()
        >>> isinstance(hook, prune.PruningContainer), len(hook)
        (True, 2)
    """

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Append one for the same parameter."""
        if not isinstance(method, BasePruningMethod):
            raise ArgumentError(f"{type(method)} is not a BasePruningMethod subclass")
        if method._tensor_name != self._tensor_name:
            raise OptionError(
                f"Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to this PruningContainer. Found "
                f"'{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, index: Any) -> Any:
        return self._pruning_methods[index]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask that the last one chooses among what is kept."""
        mask = base(default_mask)
        kept, new = _kept(self[-1], mask), copied(mask).astype(base(t).dtype)
        part = self[-1].compute_mask(fresh(base(t)[kept]), fresh(mask[kept]))
        new[kept] = base(part)
        return fresh(new)


def _kept(method: Any, mask: Any) -> Any:
    """The places that a method chooses among."""
    if method.PRUNING_TYPE == "unstructured":
        return mask != 0
    if method.PRUNING_TYPE == "global":
        return ...
    if method.PRUNING_TYPE != "structured":
        raise OptionError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    dim = method.dim % mask.ndim
    others = tuple(axis for axis in range(mask.ndim) if axis != dim)
    return (slice(None),) * dim + (mask.any(axis=others),)


def _method(module: Any, name: str) -> Any:
    """The number of the hook that prunes a parameter; None for none."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key
    return None


def _validate_pruning_amount_init(amount: Any) -> None:
    """Raise unless it is a share or a number."""
    if not isinstance(amount, int | float):
        raise ArgumentError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or (isinstance(amount, float) and amount > 1):
        raise OptionError(
            f"amount={amount} should either be a float in the range [0, 1] or a "
            f"non-negative integer"
        )


def _validate_pruning_amount(amount: Any, tensor_size: int) -> None:
    """Raise if it is a number of more than there are."""
    if isinstance(amount, int) and amount > tensor_size:
        raise OptionError(
            f"amount={amount} should be smaller than the number of parameters to "
            f"prune={tensor_size}"
        )


def _compute_nparams_toprune(amount: Any, tensor_size: int) -> int:
    """How many of several, by a number or a share."""
    return amount if isinstance(amount, int) else round(amount * tensor_size)


def _dropped(order: Any, amount: Any, mask: Any) -> Any:
    """Ones, but 0 at the first places of an order; of a mask's type, where it lies."""
    _validate_pruning_amount(amount, len(order))
    kept = np.ones(len(order), base(mask).dtype)
    kept[on_host(order[: _compute_nparams_toprune(amount, len(order))])] = 0
    return beside(kept, base(mask))


class Identity(BasePruningMethod):
    """Nothing is pruned."""

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask as it is."""
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Elements that are drawn."""

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _order(self, t: Any) -> Any:
        return base(randperm(base(t).size))

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask, and 0 for the first of an order."""
        kept = _dropped(self._order(t), self.amount, default_mask)
        return fresh(base(default_mask) * kept.reshape(base(t).shape))


class L1Unstructured(RandomUnstructured):
    """Elements of the smallest size."""

    def _order(self, t: Any) -> Any:
        return np.argsort(np.abs(base(t)).reshape(-1), kind="stable")


class RandomStructured(BasePruningMethod):
    """Slices that are drawn."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: Any, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount, self.dim = amount, dim

    def _order(self, t: Any) -> Any:
        return base(randperm(base(t).shape[self.dim]))

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """The mask, and 0 for the first slices of an order."""
        kept = _dropped(self._order(t), self.amount, default_mask)
        shape = [1] * base(t).ndim
        shape[self.dim] = len(kept)
        return fresh(base(default_mask) * kept.reshape(shape))


class LnStructured(RandomStructured):
    """Slices of the smallest norm."""

    def __init__(self, amount: Any, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _order(self, t: Any) -> Any:
        rows = np.moveaxis(base(t), self.dim, 0).reshape(base(t).shape[self.dim], -1)
        return np.argsort(np.linalg.norm(rows, self.n, axis=1), kind="stable")


class CustomFromMask(BasePruningMethod):
    """A mask that is given."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Both masks."""
        return default_mask * self.mask.to(default_mask.dtype)


def identity(module: Any, name: str) -> Any:
    """Give a parameter a mask of ones.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.utils.prune.identity(torch.nn.Linear(1, 2), "bias")
        >>> layer.bias_mask
        tensor([1., 1.])
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Hold elements that are drawn at 0.

    Args:
        module: which has the parameter.
        name: the parameter's.
        amount: how many, or which share.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.Linear(4, 2)
        >>> _ = torch.nn.utils.prune.random_unstructured(layer, "weight", 0.25)
        >>> (layer.weight == 0).sum()
        tensor(2)
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Any, name: str, amount: Any, importance_scores: Any = None
) -> Any:
    """Hold the smallest elements at 0.

    Example:
        >>> import lantern.torch as torch
        >>> from lantern.torch.nn.utils.prune import l1_unstructured
        >>> layer = l1_unstructured(torch.nn.Linear(4, 2), "weight", 0.5)
        >>> int((layer.weight == 0).sum())
        4
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Hold slices that are drawn at 0.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.Linear(4, 2)
        >>> _ = torch.nn.utils.prune.random_structured(layer, "weight", 1, dim=0)
        >>> (layer.weight == 0).sum(dim=1).sort().values
        tensor([0, 4])
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Hold the slices of the smallest norm of order n at 0.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.Linear(4, 2)
        >>> _ = torch.nn.utils.prune.ln_structured(layer, "weight", 1, n=2, dim=0)
        >>> (layer.weight == 0).sum(dim=1).sort().values
        tensor([0, 4])
    """
    scores = importance_scores
    LnStructured.apply(module, name, amount, n, dim, importance_scores=scores)
    return module


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Hold elements at 0 where a mask is.

    Example:
        >>> import lantern.torch as torch
        >>> layer, mask = torch.nn.Linear(1, 2), torch.tensor([1.0, 0.0])
        >>> layer = torch.nn.utils.prune.custom_from_mask(layer, "bias", mask)
        >>> bool(layer.bias[1] == 0)
        True
    """
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **options: Any
) -> None:
    """Hold elements of several parameters at 0, compared with one another.

    Example:
        >>> import lantern.torch as torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
        >>> weights = [(layer, "weight") for layer in model]
        >>> prune = torch.nn.utils.prune
        >>> prune.global_unstructured(weights, prune.L1Unstructured, amount=3)
        >>> sum(int((layer.weight == 0).sum()) for layer in model)
        3
    """
    parameters, scores = list(parameters), importance_scores or {}
    values = [
        base(scores.get((m, n), getattr(m, n))).reshape(-1) for m, n in parameters
    ]
    masks = [
        base(getattr(m, f"{n}_mask", ones_like(getattr(m, n)))).reshape(-1)
        for m, n in parameters
    ]
    method = pruning_method(**options)
    if method.PRUNING_TYPE != "unstructured":
        raise ArgumentError(
            f'Only "unstructured" PRUNING_TYPE is supported for global pruning, but '
            f"{method.PRUNING_TYPE} was found"
        )
    method._tensor_name = "all of them"
    joined = fresh(np.concatenate(values)), fresh(np.concatenate(masks))
    found = base(PruningContainer(method).compute_mask(*joined))
    start = 0
    for m, n in parameters:
        shape = base(getattr(m, n)).shape
        size = int(np.prod(shape))
        custom_from_mask(m, n, fresh(found[start : start + size].reshape(shape)))
        start += size


def is_pruned(module: Any) -> bool:
    """Whether a module, or one in it, has a parameter that is pruned.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.Linear(1, 2)
        >>> torch.nn.utils.prune.is_pruned(layer)
        False
        >>> layer = torch.nn.utils.prune.identity(layer, "bias")
        >>> torch.nn.utils.prune.is_pruned(layer)
        True
    """
    return any(
        isinstance(hook, BasePruningMethod)
        for part in module.modules()
        for hook in part._forward_pre_hooks.values()
    )


def remove(module: Any, name: str) -> Any:
    """Let a parameter be one again, with what is pruned at 0.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.utils.prune.identity(torch.nn.Linear(1, 2), "bias")
        >>> layer = torch.nn.utils.prune.remove(layer, "bias")
        >>> sorted(name for name, _ in layer.named_parameters())
        ['bias', 'weight']
    """
    key = _method(module, name)
    if key is None:
        raise OptionError(
            f"Parameter '{name}' of module {module} has to be pruned before pruning "
            "can be removed"
        )
    module._forward_pre_hooks.pop(key).remove(module)
    return module
