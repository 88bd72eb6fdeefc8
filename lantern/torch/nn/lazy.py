"""Layers that learn the size of their input from the first one they see."""

import re
from typing import Any

from lantern.errors import EagerError
from lantern.torch.eager import AMBIENT
from lantern.torch.nn import convolution, normalisation
from lantern.torch.nn.linear import Linear
from lantern.torch.nn.module import HOOKS, TABLES, Module
from lantern.torch.nn.parameter import Parameter
from lantern.torch.tensor import NOBODY
from lantern.value import base

__all__ = ["LAYERS", "UninitializedParameter"]


class UninitializedParameter(Parameter):
    """A parameter whose shape is not known yet.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.LazyLinear(2)
        >>> isinstance(layer.weight, torch.nn.UninitializedParameter)
        True
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """A parameter that holds nothing."""
        x = object.__new__(cls)
        x.prompt, x.receiver, x.viewed = AMBIENT, NOBODY, None
        return x

    @property
    def primal(self) -> Any:
        """Raises: there is no array yet."""
        raise EagerError(
            "a parameter of a lazy layer has no value before the layer has seen an "
            "input. Call the model once first."
        )

    @property
    def is_leaf(self) -> bool:
        """Whether no rule made it: so it is."""
        return True

    def __repr__(self) -> str:
        return "<UninitializedParameter>"

    def become(self, made: Parameter) -> None:
        """Be the parameter that was made, for all who hold this one."""
        self.__class__ = Parameter  # type: ignore[assignment]
        self.primal, self.prompt = made.primal, made.prompt  # type: ignore[misc]
        self.receiver = made.receiver


class _Lazy(Module):
    """What a layer is before its first input."""

    becomes: Any
    axis: int
    # Options that are on unless said otherwise, after two others.
    usual: tuple[str, ...] = ()

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__()
        own = self.__dict__
        for name in self.usual[max(0, len(args) - 2) :]:
            options.setdefault(name, True)
        own["arguments"], own["moves"] = (args, options), []
        # What parameters there will be, a layer for inputs of one feature shows.
        probe = self.becomes(max(options.get("groups", 1), 1), *args, **options)
        for name, x in probe._parameters.items():
            new = None if x is None else UninitializedParameter()
            self.register_parameter(name, new)
        own["text"] = re.sub(r"\d+", "0", probe.extra_repr(), count=1)

    def __call__(self, input: Any, *args: Any, **options: Any) -> Any:
        """Become a layer for such inputs, and do what it does."""
        given, named = self.__dict__.pop("arguments")
        moves = self.__dict__.pop("moves")
        made = self.becomes(base(input).shape[self.axis], *given, **named)
        self.__class__ = self.becomes
        for name, x in made._parameters.items():
            if x is not None:
                self._parameters[name].become(x)
        for name, value in made.__dict__.items():
            if name not in (*TABLES, *HOOKS, "training"):
                self.__dict__[name] = value
        self._buffers.update(made._buffers)
        for move in moves:
            self._apply(move)
        return self(input, *args, **options)

    def extra_repr(self) -> str:
        """The sizes that are known."""
        text: str = self.__dict__["text"]
        return text


def _lazy(layer: Any, axis: int, **more: Any) -> Any:
    name = f"Lazy{layer.__name__}"
    rest = {
        "__doc__": f"As ``{layer.__name__}``, without its first argument.",
        "__module__": "lantern.torch.nn",
        "becomes": layer,
        "axis": axis,
    }
    return type(name, (_Lazy,), rest | more)


LAYERS: dict[str, Any] = {"LazyLinear": _lazy(Linear, -1)}
for _n in (1, 2, 3):
    for _name in (f"Conv{_n}d", f"ConvTranspose{_n}d"):
        LAYERS[f"Lazy{_name}"] = _lazy(getattr(convolution, _name), -_n - 1)
    for _name in (f"BatchNorm{_n}d", f"InstanceNorm{_n}d"):
        LAYERS[f"Lazy{_name}"] = _lazy(
            getattr(normalisation, _name), 1, usual=("affine", "track_running_stats")
        )
