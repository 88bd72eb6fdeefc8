"""``vmap``: a function of one example, computed for all examples at once."""

from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec

from lantern.core.namespace import namespace
from lantern.core.residuals import owned
from lantern.core.tree import tree_leaves, tree_map, tree_structure
from lantern.core.unwrap import frozen
from lantern.core.value import Value
from lantern.errors import ArgumentError, ShapeError, counted
from lantern.replaced import restore
from lantern.tensor.ops.shape import as_array, broadcast_to, moveaxis
from lantern.transforms.arguments import (
    check_function,
    check_result,
    describe,
    is_number,
    named_positions,
    place,
)
from lantern.vectorizing.batched import Batched, Examples

__all__ = ["vmap"]

P = ParamSpec("P")


def vmap(
    f: Callable[P, Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    axis_size: int | None = None,
) -> Callable[P, Any]:
    """The function that computes f for many examples at once.

    f is written for one example and runs once. Each operation in it is computed for all
    examples together, whether f differentiates, is differentiated, or maps again.

    Args:
        f: takes and returns any structures of numbers and arrays.
        in_axes: which axis of the arguments counts the examples: one number for all, or
            a tuple with an entry for each positional argument, or a dict of entries by
            the names of parameters; an entry is a number, None for what all examples
            have in common, or a structure of these in the argument's form. Arguments
            without an entry are mapped over their first axis.
        out_axes: which axis of the results counts the examples, in the same way; None
            for what is the same for all examples.
        axis_size: how many examples there are; needed only if nothing is mapped.

    Returns:
        A function of f's arguments, those that are mapped with one axis more.

    Raises:
        ArgumentError: if f is no plain function, or something without axes is mapped.
        ShapeError: if the axes do not exist or have different lengths.
        BatchedValueError: by what needs the value of one example, as ``if x > 0``: use
            ``lantern.where``.

    Example:
        >>> import numpy as np
        >>> import lantern
        >>> xs = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        >>> vmap(lambda x, y: x @ y, in_axes=(0, None))(xs, np.array([1.0, 10.0]))
        array([21., 43., 65.])

        The gradient of each example by itself, in one pass:

        >>> def loss(w, x):
        ...     return lantern.tanh(w @ x) ** 2
        >>> gradients = vmap(lantern.grad(loss), in_axes=(None, 0))
        >>> gradients(np.array([0.1, -0.1]), xs).round(3)
        array([[-0.197, -0.395],
               [-0.592, -0.789],
               [-0.987, -1.184]])
    """
    check_function("vmap", f)

    def mapped(*args: Any, **kwargs: Any) -> Any:
        return _map(f, in_axes, out_axes, axis_size, args, kwargs)

    mapped.__name__ = f"vmap_of_{getattr(f, '__name__', 'f')}"
    mapped.__qualname__ = mapped.__name__
    mapped.__doc__ = f.__doc__
    mapped.__wrapped__ = f  # type: ignore[attr-defined]  # as functools.wraps
    return mapped


def _map(
    f: Callable[..., Any],
    in_axes: Any,
    out_axes: Any,
    axis_size: int | None,
    args: Any,
    kwargs: Any,
) -> Any:
    """f of all examples at once."""
    entries = _entries(f, in_axes, args, kwargs)
    examples = Examples("vmap", _size(entries, axis_size))
    taken = set(map(id, tree_leaves([args, kwargs])))
    enter, leave = partial(_enter, examples), partial(_leave, examples, taken)
    inputs = [_each(where, enter, axes, x) for where, axes, x in entries]
    batched, named = inputs[: len(args)], inputs[len(args) :]
    try:
        y = frozen(f(*batched, **dict(zip(kwargs, named, strict=True))))
        check_result("vmap", y, examples)
        return _each("the result", leave, out_axes, y)
    except (RuntimeError, ValueError) as error:
        restore(error)
        raise
    finally:
        examples.close()


def _entries(f: Any, in_axes: Any, args: Any, kwargs: Any) -> list[Any]:
    """For each argument its name, its axes and what it is."""
    if in_axes is not None and not isinstance(in_axes, int | tuple | list | dict):
        raise ArgumentError(
            f"vmap: in_axes must be an int, None, a tuple with an entry for each "
            f"argument, or a dict of entries by their names, got {in_axes!r}. Write "
            f"in_axes=({in_axes!r},) for one argument."
        )
    if isinstance(in_axes, dict):
        axes = _by_name(f, in_axes, args, kwargs)
    else:
        every = [in_axes] * len(args)
        axes = [*in_axes] if isinstance(in_axes, tuple | list) else every
        if len(axes) != len(args):
            raise ArgumentError(
                f"vmap: in_axes={in_axes!r} has "
                f"{counted(len(axes), 'entry', 'entries')}, and f was called with "
                f"{counted(len(args), 'positional argument')}. Give one for each; "
                "None for "
                f"what all examples have in common."
            )
        axes += [0] * len(kwargs)
    names = [f"argument {i}" for i in range(len(args))] + list(kwargs)
    return list(zip(names, axes, [*args, *kwargs.values()], strict=True))


def _by_name(f: Any, in_axes: dict[str, Any], args: Any, kwargs: Any) -> list[Any]:
    """For each argument the entry under its name; 0 where there is none."""
    names: list[Any] = [*named_positions("vmap", f, args)]
    names += [None] * (len(args) - len(names))
    names += kwargs
    if wrong := [name for name in in_axes if name not in names]:
        raise ArgumentError(
            f"vmap: in_axes={in_axes!r}, but the call of f has no argument "
            f"{wrong[0]!r}. Name parameters that it has; for one argument that is a "
            f"dict, write in_axes=({in_axes!r},)."
        )
    return [in_axes.get(name, 0) for name in names]


_COMMON = object()  # None is a structure without leaves


def _marked(axes: Any) -> Any:
    """Axes with something in place of None that is a leaf."""
    if axes is None:
        return _COMMON
    if isinstance(axes, dict):
        return {key: _marked(child) for key, child in axes.items()}
    if isinstance(axes, tuple | list):
        children = map(_marked, axes)
        return type(axes)(*children) if hasattr(axes, "_fields") else tuple(children)
    return axes


def _each(where: str, visit: Callable[..., Any], axes: Any, tree: Any) -> Any:
    """``visit(where, axis, leaf)`` for each leaf; axes may be given for whole parts."""

    def part(axis: Any, subtree: Any) -> Any:
        if axis is not _COMMON and type(axis) is not int:
            raise ArgumentError(
                f"vmap: an axis must be an int or None, got {axis!r} for {where}. "
                f"Count axes from 0."
            )
        number = None if axis is _COMMON else axis
        return tree_map(partial(visit, where, number), subtree)

    try:
        return tree_map(part, _marked(axes), tree)
    except ShapeError as error:
        if not str(error).startswith("tree_map"):
            raise
        raise ShapeError(
            f"vmap: the axes {axes!r} do not have the structure of {where}, "
            f"{tree_structure(tree)}. Give one for each part, or one for all."
        ) from None


def _size(entries: list[tuple[str, Any, Any]], axis_size: int | None) -> int:
    """How many examples there are."""
    found: dict[int, str] = {}
    if axis_size is not None:
        found[axis_size] = "axis_size"

    def measure(tree: Any, where: str, axis: int | None, leaf: Any) -> None:
        if axis is None:
            return
        shape = getattr(leaf, "shape", None)
        if not is_number(leaf) or not shape:
            raise ArgumentError(
                f"vmap: {where} is {describe(leaf)}{place('x', tree, leaf)}, which has "
                f"no axis {axis} to map over. Give an array, or say None in in_axes."
            )
        found.setdefault(shape[_axis(where, axis, len(shape))], where)

    for where, axes, tree in entries:
        _each(where, partial(measure, tree), axes, tree)
    if len(found) > 1:
        lengths = ", ".join(f"{n} in {where}" for n, where in found.items())
        raise ShapeError(
            f"vmap: the axes that are mapped have different lengths: {lengths}. Give "
            f"as many examples in each, or say None in in_axes."
        )
    if not found:
        raise ArgumentError(
            "vmap: no argument is mapped, so the number of examples is not known. Map "
            "one with in_axes, or give axis_size."
        )
    return next(iter(found))


def _axis(where: str, axis: int, ndim: int) -> int:
    """An axis counted from 0, checked."""
    if not -ndim <= axis < ndim:
        raise ShapeError(
            f"vmap: {where} has {ndim} axes, so there is no axis {axis}. Count from 0."
        )
    return axis % ndim


def _enter(examples: Examples, where: str, axis: int | None, leaf: Any) -> Any:
    """A leaf of an argument, as f gets it."""
    if axis is None:
        return leaf
    axis = _axis(where, axis, len(leaf.shape))
    return Batched(moveaxis(leaf, axis, 0) if axis else leaf, examples)


def _leave(
    examples: Examples, taken: set[int], where: str, axis: int | None, leaf: Any
) -> Any:
    """A leaf of f's result with the axis of the examples where it belongs."""
    own = examples.owns(leaf)
    mapped, z = own and leaf.mapped, leaf.stacked if own else leaf
    if axis is None:
        if mapped:
            raise ArgumentError(
                "vmap: out_axes is None for a result that differs between the "
                "examples. Say along which axis they shall be, or combine them."
            )
        return owned(z, taken)
    ndim = len(getattr(leaf, "shape", ()))
    axis = _axis(where, axis, ndim + 1)
    if not mapped:
        z = as_array(z)
        z = broadcast_to(z, (examples.size, *z.shape))
        if not isinstance(z, Value):
            z = namespace(z).array(z)
    z = owned(z, taken)
    return moveaxis(z, 0, axis) if axis else z
