"""Layers that learn the size of their input from the first one they see."""

import inspect
from typing import Any

from lantern.core.value import base
from lantern.errors import EagerError, MissingRuleError
from lantern.torch.nn import convolution, normalisation
from lantern.torch.nn.linear import Linear
from lantern.torch.nn.parameter import (
    UninitializedBuffer,
    UninitializedParameter,
    is_lazy,
)
from lantern.torch.tables import documented

__all__ = ["LAYERS", "LazyModuleMixin"]


class LazyModuleMixin:
    """What a module is whose parameters get their shapes from its first input.

    A subclass, of this class and then of a module's, has parameters without a shape,
    and ``initialize_parameters`` of the same arguments as ``forward``.

    Attributes:
        cls_to_become: the module's class afterwards; None for the same.

    Example:
        >>> import lantern.torch as torch
        >>> class Scale(torch.nn.modules.lazy.LazyModuleMixin, torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.weight = torch.nn.UninitializedParameter()
        ...
        ...     def initialize_parameters(self, x):
        ...         self.weight.materialize(x.shape[-1:])
        ...         torch.nn.init.ones_(self.weight)
        ...
        ...     def forward(self, x):
        ...         return x * self.weight
        >>> Scale()(torch.tensor([1.0, 2.0]))
        tensor([1., 2.], grad_fn=<MulBackward0>)
    """

    cls_to_become: Any = None

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def initialize_parameters(self, *args: Any, **options: Any) -> None:
        """Give the parameters their shapes, from an input. To be overridden."""
        raise MissingRuleError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self: Any) -> bool:
        """Whether a parameter or buffer has no shape yet."""
        own = (*self._parameters.values(), *self._buffers.values())
        return any(map(is_lazy, own))

    def _lazy_load_hook(self: Any, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Let parameters have the shapes that a state has."""
        for name, x in (*self._parameters.items(), *self._buffers.items()):
            found = state_dict.get(prefix + name)
            if is_lazy(x) and found is not None and not is_lazy(found):
                x.materialize(found.shape)

    def _infer_parameters(
        self: Any, module: Any, args: Any, kwargs: Any = None
    ) -> None:
        """Let the parameters have the shapes that an input asks for."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise EagerError(
                f"module {self._get_name()} has not been fully initialized"
            )
        for name in ("_initialize_hook", "_load_hook"):
            getattr(module, name).remove()
            delattr(module, name)
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


class _Lazy(LazyModuleMixin):
    """What one of our layers is before its first input."""

    size: str  # the attribute that is learned
    axis: int  # of the input
    shaped: dict[str, int]  # of each parameter, which axis has the size
    # Options that are on unless said otherwise, after two others.
    usual: tuple[str, ...] = ()

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        for name in self.usual[max(0, len(args) - 2) :]:
            options.setdefault(name, True)
        super().__init__(0, *args, **options)
        self.learned = {}
        for table, kind in (
            (self._parameters, UninitializedParameter),
            (self._buffers, UninitializedBuffer),
        ):
            for name, x in table.items():
                if x is not None and x.ndim:
                    self.learned[name] = tuple(x.shape)
                    table[name] = kind(x.requires_grad, x.device, x.dtype)

    def reset_parameters(self: Any) -> None:
        """Draw initial values, as soon as the sizes are known."""
        if not self.has_uninitialized_params() and getattr(self, self.size):
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(
        self: Any, input: Any, *args: Any, **options: Any
    ) -> None:
        """Take the size from an input."""
        n = base(input).shape[self.axis]
        setattr(self, self.size, n)
        learned = self.__dict__.pop("learned")
        if not self.has_uninitialized_params():
            return
        part = n if getattr(self, "transposed", True) else n // self.groups
        for name, shape in learned.items():
            at = self.shaped.get(name)
            shape = [part if i == at else k for i, k in enumerate(shape)]
            (self._parameters.get(name, self._buffers.get(name))).materialize(shape)
        self.reset_parameters()


def _lazy(layer: Any, size: str, axis: int, shaped: Any, **more: Any) -> Any:
    name = f"Lazy{layer.__name__}"
    rest = {
        "__doc__": f"As ``{layer.__name__}``, without its first argument.",
        "__module__": "lantern.torch.nn",
        "cls_to_become": layer,
        "size": size,
        "axis": axis,
        "shaped": shaped,
    }
    made: Any = type(name, (_Lazy, layer), rest | more)

    def init(self: Any, *args: Any, **options: Any) -> None:
        super(made, self).__init__(*args, **options)

    given = inspect.signature(layer.__init__)
    own, _, *others = given.parameters.values()
    on = more.get("usual", ())
    others = [p.replace(default=True) if p.name in on else p for p in others]
    init.__name__, shown = "__init__", given.replace(parameters=[own, *others])
    init.__signature__ = shown  # type: ignore[attr-defined]  # for help()
    made.__init__ = init
    return made


_MOMENTS = dict.fromkeys(("weight", "bias", "running_mean", "running_var"), 0)


def _convolution(layer: Any, axes: int, at: int) -> Any:
    return _lazy(layer, "in_channels", -axes - 1, {"weight": at})


def _normalisation(layer: Any) -> Any:
    usual = ("affine", "track_running_stats")
    return _lazy(layer, "num_features", 1, _MOMENTS, usual=usual)


LAYERS: dict[str, Any] = {
    "LazyLinear": documented(
        _lazy(Linear, "in_features", -1, {"weight": 1}),
        """
        >>> layer = torch.nn.LazyLinear(2)
        >>> _ = layer(torch.ones(4, 3))
        >>> layer
        Linear(in_features=3, out_features=2, bias=True)
        """,
    ),
    "LazyConv1d": documented(
        _convolution(convolution.Conv1d, 1, 1),
        """
        >>> torch.nn.LazyConv1d(4, 3)(torch.ones(1, 2, 9)).shape
        torch.Size([1, 4, 7])
        """,
    ),
    "LazyConv2d": documented(
        _convolution(convolution.Conv2d, 2, 1),
        """
        >>> torch.nn.LazyConv2d(4, 3)(torch.ones(1, 2, 9, 9)).shape
        torch.Size([1, 4, 7, 7])
        """,
    ),
    "LazyConv3d": documented(
        _convolution(convolution.Conv3d, 3, 1),
        """
        >>> torch.nn.LazyConv3d(4, 3)(torch.ones(1, 2, 5, 5, 5)).shape
        torch.Size([1, 4, 3, 3, 3])
        """,
    ),
    "LazyConvTranspose1d": documented(
        _convolution(convolution.ConvTranspose1d, 1, 0),
        """
        >>> torch.nn.LazyConvTranspose1d(4, 3)(torch.ones(1, 2, 9)).shape
        torch.Size([1, 4, 11])
        """,
    ),
    "LazyConvTranspose2d": documented(
        _convolution(convolution.ConvTranspose2d, 2, 0),
        """
        >>> torch.nn.LazyConvTranspose2d(4, 3)(torch.ones(1, 2, 9, 9)).shape
        torch.Size([1, 4, 11, 11])
        """,
    ),
    "LazyConvTranspose3d": documented(
        _convolution(convolution.ConvTranspose3d, 3, 0),
        """
        >>> torch.nn.LazyConvTranspose3d(4, 3)(torch.ones(1, 2, 5, 5, 5)).shape
        torch.Size([1, 4, 7, 7, 7])
        """,
    ),
    "LazyBatchNorm1d": documented(
        _normalisation(normalisation.BatchNorm1d),
        """
        >>> torch.nn.LazyBatchNorm1d()(torch.ones(4, 3)).shape
        torch.Size([4, 3])
        """,
    ),
    "LazyBatchNorm2d": documented(
        _normalisation(normalisation.BatchNorm2d),
        """
        >>> torch.nn.LazyBatchNorm2d()(torch.ones(4, 3, 2, 2)).shape
        torch.Size([4, 3, 2, 2])
        """,
    ),
    "LazyBatchNorm3d": documented(
        _normalisation(normalisation.BatchNorm3d),
        """
        >>> torch.nn.LazyBatchNorm3d()(torch.ones(4, 3, 2, 2, 2)).shape
        torch.Size([4, 3, 2, 2, 2])
        """,
    ),
    "LazyInstanceNorm1d": documented(
        _normalisation(normalisation.InstanceNorm1d),
        """
        >>> torch.nn.LazyInstanceNorm1d()(torch.ones(4, 3, 2)).shape
        torch.Size([4, 3, 2])
        """,
    ),
    "LazyInstanceNorm2d": documented(
        _normalisation(normalisation.InstanceNorm2d),
        """
        >>> torch.nn.LazyInstanceNorm2d()(torch.ones(4, 3, 2, 2)).shape
        torch.Size([4, 3, 2, 2])
        """,
    ),
    "LazyInstanceNorm3d": documented(
        _normalisation(normalisation.InstanceNorm3d),
        """
        >>> torch.nn.LazyInstanceNorm3d()(torch.ones(4, 3, 2, 2, 2)).shape
        torch.Size([4, 3, 2, 2, 2])
        """,
    ),
}
