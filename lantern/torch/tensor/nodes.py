"""What ``grad_fn`` shows: suspended rules, as PyTorch has nodes of a graph."""

import gc
from abc import ABC
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from lantern.core.operation import operation_of
from lantern.core.value import base
from lantern.eager.hooks import After, Before, Notes
from lantern.eager.packed import Packed
from lantern.eager.recorder import (
    AMBIENT,
    FREED,
    NOTHING,
    SECOND_TIME,
    STANDIN,
    Recorder,
)
from lantern.eager.versions import order
from lantern.errors import ArgumentError, EagerError
from lantern.rules.multiple_results import SeveralReceiver
from lantern.torch.tensor import dtypes
from lantern.torch.tensor.dtypes import Size
from lantern.torch.tensor.tensor import Tensor, make, plain_cotangent, torch_face

__all__ = [
    "GradientEdge",
    "Node",
    "RemovableHandle",
    "SavedTensor",
    "Suspended",
    "add_hook",
    "hook_pair",
    "node_class",
    "node_of",
    "part_of",
    "place_of",
]


class RemovableHandle:
    """What a hook's registration returns: ``remove()`` takes it back.

    Args:
        hooks: the table that the hook stands in, or is going to.
        key: its number there; a new one by default, as ``id``.
        marked: further tables that it is noted in.
    """

    next_id = 0

    def __init__(self, hooks: Any, key: int | None = None, *marked: Any) -> None:
        self.hooks, self.marked = hooks, marked
        self.id = next(order) if key is None else key

    def hooks_dict_ref(self) -> Any:
        """The table."""
        return self.hooks

    def remove(self) -> None:
        """Forget the hook."""
        for table in (self.hooks, *self.marked):
            table.pop(self.id, None)

    def __enter__(self) -> "RemovableHandle":
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()


def add_hook(receiver: Any, hook: Any) -> RemovableHandle:
    """Put a hook into a receiver's table."""
    if receiver.hooks is None:
        receiver.hooks = {}
    key = next(order)
    receiver.hooks[key] = hook
    return RemovableHandle(receiver.hooks, key)


class GradientEdge(NamedTuple):
    """Which result of which suspended rule a gradient is of."""

    node: Any
    output_nr: int


class Node(ABC):  # noqa: B024 - its subclasses are registered, as in PyTorch
    """What stands behind a tensor; the class of each ``grad_fn``.

    Example:
        >>> import lantern.torch as torch
        >>> y = torch.ones(1, requires_grad=True).exp()
        >>> isinstance(y.grad_fn, torch.autograd.graph.Node)
        True
    """


# Where PyTorch calls an operation otherwise.
_NAMES = {
    "affine": "addmm",
    "copied": "clone",
    "correlate": "convolution",
    "divide": "div",
    "divided": "div",
    "entropy": "nll_loss",
    "entropy_of_one": "nll_loss",
    "matmul": "mm",
    "multiplied": "mul",
    "multiply": "mul",
    "negative": "neg",
    "normalised": "native_layer_norm",
    "permute_dims": "permute",
    "positive": "clone",
    "reshape": "view",
    "rows": "embedding",
    "subtract": "sub",
}


def _started(receiver: Any) -> Any:
    """What holds the rule of a receiver, and its arguments by name."""
    return receiver if type(receiver) is Recorder else receiver.suspended


def _name(receiver: Any) -> str:
    """What PyTorch calls the node of a receiver."""
    started = _started(receiver)
    rule = getattr(started, "function", None) or getattr(started, "rule", None)
    if rule is None:
        return "AccumulateGrad" if started is receiver else "Freed"
    name = rule.__name__.strip("_")
    if name == "custom":
        return f"{started.statics['function'].__name__}Backward"
    words = _NAMES.get(name, name).split("_")
    return "".join(word.capitalize() for word in words) + "Backward0"


def place_of(receiver: Any) -> tuple[Any, int]:
    """Whose rule made a value, and which of its results the value is."""
    operands = receiver.operands()
    if operands and type(operands[0]) is SeveralReceiver:
        whole = operands[0]
        return whole, _places(whole)[_started(receiver).statics["index"]]
    return receiver, 0


def _places(receiver: Any) -> Any:
    """Where the tensors are among the results of a rule."""
    context = _context(receiver)
    if context is None:
        several = type(receiver) is SeveralReceiver
        return range(len(receiver.primals) if several else 1)
    return [i for i, is_tensor in enumerate(context._own_slots) if is_tensor]


def part_of(edge: GradientEdge) -> int | None:
    """Which of several tensors an edge is of; None where there is one."""
    receiver = edge.node.receiver
    if type(receiver) is not SeveralReceiver:
        return None
    return list(_places(receiver)).index(edge.output_nr)


_nodes: WeakValueDictionary[int, Any] = WeakValueDictionary()


def node_of(receiver: Any) -> Any:
    """The node of a receiver: the same object as long as somebody holds it."""
    receiver, _ = place_of(receiver)
    node = _nodes.get(id(receiver))
    if node is None:
        context = _context(receiver)
        if context is None:
            cls = node_class(_name(receiver))
        else:
            cls = _started(receiver).statics["function"]._backward_cls
        node = cls(receiver)
        _nodes[id(receiver)] = node
    return node


@lru_cache(512)
def node_class(name: str) -> Any:
    """The class of the nodes of a name."""
    bases = (_Leaf if name == "AccumulateGrad" else Suspended,)
    return type(name, bases, {"__slots__": (), "__module__": Suspended.__module__})


# By PyTorch's name of a saved argument: its place. For all operations but these few.
_PLACES = {"self": 0, "other": 1}
_OWN_PLACES: dict[str, dict[str, int]] = {
    "matmul": {"self": 0, "mat2": 1},
    "power": {"self": 0, "exponent": 1},
    "pow": {"self": 0, "exponent": 1},
}
# By PyTorch's names: what our rules call it.
_STATICS = {"dim": "axis", "dims": "axes", "keepdim": "keepdims"}


class Suspended:
    """What ``grad_fn`` shows: the suspended rule that made a tensor.

    Attributes:
        receiver: who owns it.
    """

    __slots__ = ("__weakref__", "receiver")
    requires_grad = True

    def __init__(self, receiver: Any) -> None:
        self.receiver = receiver

    def name(self) -> str:
        """Its name, as PyTorch would call it."""
        return _name(self.receiver)

    @property
    def next_functions(self) -> tuple[Any, ...]:
        """The nodes of the operands, with their numbers of results; None: constant."""
        receiver = self.receiver
        rules = [
            (None, 0) if x is None else (node_of(x), place_of(x)[1])
            for x in receiver.operands()
        ]
        if type(receiver) is Recorder and receiver.function is not None:
            arity = operation_of(receiver.function).arity
            rules += [(None, 0)] * (arity - len(rules))
        return tuple(rules)

    @property
    def metadata(self) -> Any:
        """A dictionary for whatever a program wants to write down here."""
        hooks = self.receiver.hooks or {}
        for notes in hooks.values():
            if type(notes) is Notes:
                return notes
        notes = Notes()
        add_hook(self.receiver, notes)
        return notes

    @property
    def _input_metadata(self) -> list[Any]:
        """Of each result: its shape and type."""
        receiver = self.receiver
        whole = getattr(receiver, "primals", None) or (receiver,)
        return [_Metadata(x.shape, x.dtype) for x in whole]

    def _sequence_nr(self) -> int:
        return order_number(self.receiver)

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call a function of what the rule hands on, and of its cotangents.

        Args:
            fn: ``fn(grad_inputs, grad_outputs)``, both tuples; what it returns, if not
                None, is handed on in place of the first one.

        Example:
            >>> import lantern.torch as torch
            >>> x = torch.tensor(2.0, requires_grad=True)
            >>> y = x * x
            >>> handle = y.grad_fn.register_hook(lambda gi, go: print(len(gi), go))
            >>> y.backward()
            2 (tensor(1.),)
        """
        receiver = self.receiver
        context = _context(receiver)

        def call(found: list[Any], z_bar: Any) -> list[Any]:
            row = tuple(map(_shown, found))
            replaced = fn(row, _cotangents(context, z_bar))
            return found if replaced is None else _replaced(replaced, row, found)

        return add_hook(receiver, After(call))

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Call a function of the cotangents before the rule is resumed with them.

        Args:
            fn: ``fn(grad_outputs)``, a tuple; what it returns, if not None, takes the
                place of that.

        Example:
            >>> import lantern.torch as torch
            >>> x = torch.tensor(2.0, requires_grad=True)
            >>> y = x.exp()
            >>> handle = y.grad_fn.register_prehook(lambda go: (go[0] * 0,))
            >>> y.backward()
            >>> x.grad
            tensor(0.)
        """
        receiver = self.receiver
        context, places = _context(receiver), _places(receiver)

        def call(z_bar: Any) -> Any:
            row = _cotangents(context, z_bar)
            replaced = fn(row)
            if replaced is None:
                return z_bar
            several = isinstance(z_bar, list)
            plain = _replaced(
                [_row(replaced)[i] for i in places],
                [row[i] for i in places],
                z_bar if several else [z_bar],
            )
            return plain if several else plain[0]

        return add_hook(receiver, Before(call))

    def __getattr__(self, name: str) -> Any:
        receiver = self.receiver
        if name.startswith("_saved_"):
            return _saved(receiver, name.removeprefix("_saved_"))
        if name.startswith("_raw_saved_"):
            word = name.removeprefix("_raw_saved_")
            if word != "tensors":
                return SavedTensor.of(receiver, _place(receiver, word))
        if not name.startswith("__"):
            context = _context(receiver)
            if context is not None:
                return context._own_shown(name, _freed(receiver))
        raise AttributeError(
            f"'{type(self).__name__}' object has no attribute '{name}'"
        )

    def __dir__(self) -> list[str]:
        names = [f"_saved_{word}" for word in _kept(self.receiver)]
        return [*super().__dir__(), *names]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


class _Leaf(Suspended):
    """Where a leaf's gradient is added up."""

    __slots__ = ()

    def name(self) -> str:
        """Its name, as PyTorch has it."""
        return "torch::autograd::AccumulateGrad"

    @property
    def next_functions(self) -> tuple[Any, ...]:
        """Nothing."""
        return ()

    @property
    def variable(self) -> Any:
        """The leaf itself."""
        return tensor_of(self.receiver)


Node.register(Suspended)


class _Metadata:
    """Shape and type of one result."""

    is_nested_tensor = is_cpp_nested_tensor = False

    def __init__(self, shape: Any, dtype: Any) -> None:
        self.shape, self.dtype = Size(shape), dtypes.by_numpy[dtype]
        self.device = dtypes.CPU


def tensor_of(receiver: Any, array: Any = None) -> Any:
    """The tensor that a receiver belongs to: nobody has noted it, so all are asked."""
    for x in gc.get_referrers(receiver):
        if isinstance(x, Tensor) and (array is None or x.primal is array):
            return x
    return None


def order_number(receiver: Any) -> int:
    """When a rule was suspended."""
    return int(getattr(_started(receiver), "order", 0))


def _shown(x: Any) -> Any:
    return None if x is None else torch_face(x)


def _row(x: Any) -> Any:
    return x if isinstance(x, tuple | list) else (x,)


def _cotangents(context: Any, z_bar: Any) -> tuple[Any, ...]:
    """A rule's cotangents as a program sees them: None for what is no tensor."""
    row = [_shown(x) for x in (z_bar if isinstance(z_bar, list) else [z_bar])]
    return tuple(row if context is None else context._own_with_gaps(row))


def _replaced(new: Any, shown: Any, plain: list[Any]) -> list[Any]:
    """The arrays of what a hook has returned; the same ones where it has not changed.

    A gradient of another shape or type is refused by whoever receives it.
    """
    new = _row(new)
    if len(new) != len(plain):
        raise EagerError(
            f"hook has changed the number of values: it got {len(plain)}, and returned "
            f"{len(new)}"
        )
    return [
        old if x is y or x is None else plain_cotangent(x)
        for x, y, old in zip(new, shown, plain, strict=True)
    ]


def _context(receiver: Any) -> Any:
    """What the program's own operation keeps; None for another one's rule."""
    statics = getattr(_started(receiver), "statics", None)
    return statics.get("context") if statics else None


# --- what a rule has saved --------------------------------------------------------


def _freed(receiver: Any) -> bool:
    """Whether a rule has been resumed for the last time."""
    if type(receiver) is Recorder:
        return receiver.saved is FREED
    return receiver.suspended is None


def _kept(receiver: Any) -> list[str]:
    """PyTorch's names of what can be read."""
    if type(receiver) is not Recorder or not receiver.function or _freed(receiver):
        return []
    places = _OWN_PLACES.get(receiver.function.__name__.strip("_"), _PLACES)
    saved = receiver.saved if receiver.saved is not NOTHING else ()
    found = [w for w, i in places.items() if i < len(saved) and saved[i] is not STANDIN]
    statics = receiver.statics or {}
    return [*found, *[w for w, own in _STATICS.items() if own in statics]]


def _place(receiver: Any, word: str) -> int:
    """Which of the saved arguments PyTorch calls so."""
    if type(receiver) is Recorder and receiver.function is not None:
        if _freed(receiver):
            raise EagerError(SECOND_TIME)
        name = receiver.function.__name__.strip("_")
        place = _OWN_PLACES.get(name, _PLACES).get(word)
        saved = () if receiver.saved is NOTHING else receiver.saved
        if place is not None and place < len(saved) and saved[place] is not STANDIN:
            return place
    raise AttributeError(f"'{_name(receiver)}' object has no attribute '_saved_{word}'")


def _saved(receiver: Any, word: str) -> Any:
    """What a rule has saved, by PyTorch's name."""
    statics = getattr(receiver, "statics", None) or {}
    if _STATICS.get(word) in statics:
        return statics[_STATICS[word]]
    operands = receiver.operands()
    if word == "self_sym_sizes" and operands and operands[0] is not None:
        return tuple(operands[0].shape)
    if word == "result" and type(receiver) is Recorder and receiver.function:
        rule = receiver.function
        if _freed(receiver):
            raise EagerError(SECOND_TIME)
        known = tensor_of(receiver)
        if known is not None:
            return make(known.primal, AMBIENT, receiver)
        array = next(rule(*receiver.plain_arguments(), **statics))
        return make(array, AMBIENT, receiver)
    return SavedTensor.of(receiver, _place(receiver, word)).tensor()


class SavedTensor:
    """What a rule has saved of an argument.

    Raises:
        RuntimeError: where a program makes one.
    """

    __slots__ = ("holder", "place")
    holder: Any
    place: int

    def __init__(self) -> None:
        raise EagerError(
            "Trying to create a SavedTensor object from Python is forbidden."
        )

    @classmethod
    def of(cls, holder: Any, place: int) -> Any:
        """The one at a place of a receiver's arguments."""
        saved = object.__new__(cls)
        saved.holder, saved.place = holder, place
        return saved

    def tensor(self) -> Any:
        """The tensor, with the rule behind it."""
        receiver = self.holder
        kept = receiver.saved[self.place]
        array = kept.array() if type(kept) is Packed else kept
        operands = receiver.operands()
        operand = operands[self.place] if self.place < len(operands) else None
        if operand is None:
            return torch_face(array)
        known = tensor_of(operand, array)
        return make(array, AMBIENT, operand) if known is None else known

    def register_hooks(self, pack_hook: Any, unpack_hook: Any = None) -> None:
        """Keep what a function makes of it; another one gives it back."""
        receiver = self.holder
        if receiver.saved is FREED:
            raise EagerError(
                "Calling register_hooks on a saved tensor after it has been freed. "
                "Saved intermediate values of the graph are freed when you call "
                ".backward() or autograd.grad()."
            )
        saved = list(receiver.saved)
        kept = saved[self.place]
        saved[self.place] = Packed(kept, self.checked(kept, pack_hook, unpack_hook))
        receiver.saved, receiver.suspended = tuple(saved), None

    def checked(self, kept: Any, pack_hook: Any, unpack_hook: Any) -> Any:
        """Functions of arrays from those of tensors, for what can be kept so."""
        if not callable(pack_hook) or not callable(unpack_hook):
            raise ArgumentError(
                "register_hooks(): incompatible function arguments: it takes two "
                "functions."
            )
        if kept is None:
            raise EagerError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        if hasattr(kept, "unpack") or hasattr(kept, "packed"):
            raise EagerError(
                "Calling register_hooks on a saved tensor whose hooks have already "
                "been set. Hint: only one pair of hooks is allowed at a time."
            )
        return hook_pair(pack_hook, unpack_hook)


def hook_pair(pack_hook: Any, unpack_hook: Any) -> Any:
    """Functions of arrays from functions of tensors."""

    def pack(array: Any) -> Any:
        return pack_hook(torch_face(array))

    def unpack(kept: Any) -> Any:
        x = unpack_hook(kept)
        if not isinstance(x, Tensor):
            raise ArgumentError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got "
                f"result of type {type(x).__name__}"
            )
        return base(x)

    return pack, unpack
