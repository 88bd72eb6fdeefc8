"""Contexts: what a program's own operation keeps for the way back."""

import warnings
import weakref
from collections.abc import Iterable
from typing import Any

from lantern.core.value import UNTRACKED, Value, base
from lantern.eager.packed import Packed
from lantern.eager.recorder import AMBIENT, SECOND_TIME, Recorder
from lantern.eager.versions import (
    check_arrays,
    last_write,
    order,
    owner,
    version,
    version_of_others,
    written_by_own,
)
from lantern.errors import ArgumentError, EagerError
from lantern.guards.captured import Reading, Search, Unchanged
from lantern.tensor.backend.numpy_namespace import buffers
from lantern.torch.tensor.nodes import Node, SavedTensor
from lantern.torch.tensor.tensor import Tensor, make, torch_face

__all__ = ["Context", "Output"]


class Context:
    """What a ``Function`` keeps between its forward and its backward step.

    Attributes:
        needs_input_grad: for each argument, whether its gradient is wanted.

    Example:
        >>> import lantern.torch as torch
        >>> class Scale(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x, factor):
        ...         ctx.factor = factor
        ...         return x * factor
        ...
        ...     @staticmethod
        ...     def backward(ctx, z_bar):
        ...         return z_bar * ctx.factor, None
        >>> x = torch.tensor(1.0, requires_grad=True)
        >>> Scale.apply(x, 5.0).backward()
        >>> x.grad
        tensor(5.)
    """

    needs_input_grad: tuple[bool, ...] = ()
    _own_materialize = True
    _own_places: tuple[int, ...] = ()
    _own_shapes: dict[int, Any]
    _own_count = 0  # of the arguments
    _own_slots: tuple[bool, ...] = ()  # of each result, whether it is a tensor
    _own_still: tuple[int, ...] = ()  # the results without derivative
    _materialize_non_diff_grads = True

    def _own_with_gaps(self, z_bars: list[Any], missing: Any = ()) -> list[Any]:
        """The cotangents of the results, with None for what is no tensor.

        Args:
            z_bars: of the results that are tensors.
            missing: the places among these where nothing came.
        """
        kept = self._own_materialize
        row = [None if i in missing and not kept else z for i, z in enumerate(z_bars)]
        left = iter(row)
        found = [next(left) if is_tensor else None for is_tensor in self._own_slots]
        if not self._materialize_non_diff_grads:
            for i in self._own_still:
                found[i] = None
        return found

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()
        self._constant: tuple[int, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._level: Any = None  # the derivative of a transform that the results are of
        self._since = 0
        self._read: set[str] = set()
        self._unchanged: Unchanged | None = None

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for the backward step."""
        for i, x in enumerate(tensors):
            if x is not None and not isinstance(x, Tensor):
                raise ArgumentError(
                    f"save_for_backward can only save variables, but argument {i} is "
                    f"of type {type(x).__name__}"
                )
        self._saved = tensors

    save_for_forward = save_for_backward

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What ``save_for_backward`` kept.

        Raises:
            EagerError: if one was written to meanwhile.
        """
        self._check(_arrays(self._saved))
        return tuple(self._outside(_read(x)) for x in self._saved)

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """``saved_tensors``, by a name of old."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.saved_tensors

    def _own_pack(self, pair: Any) -> None:
        """Keep what a program's functions make of the saved tensors."""
        self._saved = tuple(
            x if x is None or isinstance(x.primal, Value) else PackedTensor(x, pair)
            for x in self._saved
        )

    def _own_shown(self, name: str, freed: bool) -> Any:
        """An attribute, as ``grad_fn`` shows it."""
        if name in ("saved_tensors", "_raw_saved_tensors"):
            if freed:
                raise EagerError(SECOND_TIME)
            if name == "_raw_saved_tensors":
                places = range(len(self._saved))
                return tuple(SavedInContext.of(self, i) for i in places)
        return getattr(self, name)

    def _outside(self, x: Any) -> Any:
        """A saved tensor as the backward step takes it: without its own derivative."""
        while self._level is not None and getattr(x, "level", None) is self._level:
            x = torch_face(x.primal)
        return x

    def _own_settle(self, backward: Any) -> None:
        """The forward step is over: what the backward step will read must not change.

        Saved tensors are looked at when they are read, what else it names in the
        context or closes over at the beginning of the backward step.
        """
        search = Search(backward)
        found = search.found()
        self._since, self._read = next(order), search.attributes
        arrays = [x for x in self._named() if type(x) in buffers]
        found += [Reading("an array of ctx", x) for x in arrays]
        self._unchanged = Unchanged("backward", found)

    def _own_check(self) -> list[Any]:
        """Raise if others have written to something that lies in the context.

        Returns:
            the arrays that lie in it, each with when others last wrote to it.
        """
        arrays = _arrays(self._named())
        self._check(arrays, version_of_others)
        name = None if self._unchanged is None else self._unchanged.changes()
        if name is not None:
            raise EagerError(
                f"one of the variables needed for gradient computation has been "
                f"modified by an inplace operation: {name}, which the backward step "
                f"reads. Save a copy of it, or make a new array instead of writing to "
                f"this one."
            )
        return [(x, version_of_others(x)) for x in arrays]

    @staticmethod
    def _own_written(checked: list[Any], start: int, gradients: Any) -> Any:
        """The backward step may have added to what lies in the context for that.

        Tensors to which all steps add are written to between the forward and the
        backward step of each, by the others; so a gradient that is a part of one
        becomes a copy.

        Args:
            checked: what ``_own_check`` gave.
            start: the last write before the step.
            gradients: what the step returned.
        """
        added = [(x, stamp) for x, stamp in checked if version(x) > start]
        if not added:
            return gradients
        for x, stamp in added:
            written_by_own(x, stamp)
        owners = {id(owner(x)) for x, _ in added}
        return [
            g.clone() if any(id(owner(x)) in owners for x in _arrays([g])) else g
            for g in gradients
        ]

    def _named(self) -> list[Any]:
        own = vars(self)
        return [own[name] for name in self._read if name in own]

    def _check(self, arrays: list[Any], when: Any = version) -> None:
        if self._since and self._since < last_write[0]:
            check_arrays(self._since, arrays, when)

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """Say that results have no derivative."""
        self._constant = tuple(map(id, outputs))

    def mark_dirty(self, *tensors: Any) -> None:
        """Say that arguments were written to: they become the results that they are."""
        self._dirty = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether missing cotangents are zeros, or None."""
        self._own_materialize = value


def _arrays(values: Iterable[Any]) -> list[Any]:
    """The memory of what is a tensor, or a result."""
    tensors = [base(x) for x in values if isinstance(x, Tensor)]
    outputs = [x.primal for x in values if isinstance(x, Output)]
    return [x for x in tensors + outputs if type(x) in buffers]


def _read(x: Any) -> Any:
    """A saved tensor again."""
    if isinstance(x, Output | PackedTensor):
        return x.tensor()
    return x


class PackedTensor:
    """A saved tensor as a program's functions keep it, and the rule behind it.

    Args:
        x: the tensor, or the result that it is.
        pair: of functions of arrays.
    """

    def __init__(self, x: Any, pair: Any) -> None:
        receiver, self.level = x.receiver, getattr(x, "level", AMBIENT)
        weak = isinstance(x, Output)
        self.receiver = receiver if weak else lambda: receiver
        self.packed = Packed(x.primal, pair)

    def tensor(self) -> Any:
        """The tensor again, with the rule behind it."""
        array = self.packed.array()
        receiver = None if self.receiver is None else self.receiver()
        if receiver is None or self.level is UNTRACKED:
            return torch_face(array)
        return make(array, self.level, receiver)


class SavedInContext(SavedTensor):
    """One of the tensors that a program's own operation has saved."""

    __slots__ = ()

    def tensor(self) -> Any:
        """The tensor."""
        return self.holder.saved_tensors[self.place]

    def register_hooks(self, pack_hook: Any, unpack_hook: Any = None) -> None:
        """Keep what a function makes of it; another one gives it back."""
        saved = list(self.holder._saved)
        x = saved[self.place]
        pair = self.checked(x, pack_hook, unpack_hook)
        saved[self.place] = PackedTensor(x, pair)
        self.holder._saved = tuple(saved)


class Output:
    """A saved result: its array, and weakly its receiver, so as to close no ring."""

    def __init__(self, primal: Any, receiver: Any) -> None:
        self.primal = primal
        self.receiver = weakref.ref(receiver) if type(receiver) is Recorder else None

    def tensor(self) -> Any:
        """The result as a tensor."""
        receiver = None if self.receiver is None else self.receiver()
        return (
            torch_face(self.primal)
            if receiver is None
            else make(self.primal, AMBIENT, receiver)
        )


Node.register(Context)
