"""A function of one example, for all examples at once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

import numpy as np

from lantern.blocks import between_turns
from lantern.errors import BatchedValueError, EagerError, ShapeError
from lantern.replaced import restore
from lantern.tensor.ops.shape import moveaxis
from lantern.torch.functions.join_repeat import cat
from lantern.torch.functions.reduction import axis_of
from lantern.torch.methods.sampling import get_rng_state, set_rng_state
from lantern.torch.tensor.batches import Mapping, mapping, remember_outside
from lantern.torch.tensor.tensor import Tensor, numpy_face, torch_face
from lantern.torch.tensor.views import view_if_shared
from lantern.torch.utils import _pytree as pytree
from lantern.vectorizing.batched import Batched, Examples

__all__ = ["vmap"]

Function = Callable[..., Any]
RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Function,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Function:
    """The function of one example, computed for all examples at once.

    It is called once. Each operation in it is computed for all examples together; what
    cannot be is computed for one after another, with the same results.

    Args:
        func: takes and returns tensors, or structures of them.
        in_dims: which axis counts the examples, for each argument; None for none.
        out_dims: where that axis goes in the results; None for a result that is the
            same for all examples.
        randomness: "different" random numbers for each example, the "same" ones for
            all, or an "error".
        chunk_size: how many examples are computed at once; None for all.

    Raises:
        ValueError: if axes or structures do not fit.
        RuntimeError: by what asks for one number, as ``x.item()`` or ``if x > 0``, by a
            result of another size for each example, and by writing values of examples
            to a tensor that they have in common.

    Example:
        >>> import lantern.torch as torch
        >>> torch.func.vmap(torch.dot)(torch.ones(2, 3), torch.ones(2, 3))
        tensor([3., 3.])

        The gradient of each example by itself, in one pass:

        >>> def loss(w, x):
        ...     return (w * x).sum() ** 2
        >>> gradients = torch.vmap(torch.func.grad(loss), in_dims=(None, 0))
        >>> gradients(torch.tensor([1.0, 2.0]), torch.tensor([[1.0, 0.0], [1.0, 1.0]]))
        tensor([[2., 0.],
                [6., 6.]])
    """
    _check_options(randomness, chunk_size)

    @wraps(func)
    def mapped(*args: Any, **options: Any) -> Any:
        name = named(func)
        check_out_dims(name, out_dims)
        size, axes, leaves, spec = _taken(name, in_dims, args)
        run = partial(_once, func, axes, spec, out_dims, randomness, options)
        if chunk_size is None or chunk_size >= size:
            return run(size, leaves)
        start = get_rng_state() if randomness == "same" else None
        return _in_chunks(run, axes, leaves, out_dims, size, chunk_size, start)

    return mapped


def _check_options(randomness: str, chunk_size: int | None) -> None:
    if randomness not in RANDOMNESS:
        raise EagerError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. "
            f"Got {randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ShapeError(
            f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})"
        )


def named(func: Any) -> str:
    """What a function is called in messages."""
    if isinstance(func, partial):
        return f"functools.partial({named(func.func)}, ...)"
    return getattr(func, "__name__", None) or repr(func)


def check_out_dims(name: str, out_dims: Any) -> None:
    """Raise unless the axes of results are numbers, None, or structures of these."""
    for axis in pytree.tree_leaves(out_dims):
        if axis is not None and not isinstance(axis, int):
            raise ShapeError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, "
                f"None or a python collection of ints representing where in the "
                f"outputs the vmapped dimension should appear."
            )


def _taken(name: str, in_dims: Any, args: Any) -> tuple[int, list[Any], list[Any], Any]:
    """How many examples there are; the arguments' axes, leaves and structure."""
    if not isinstance(in_dims, int | tuple):
        raise ShapeError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to "
            f"be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ShapeError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, "
            f"or you are trying to vmap over a function with no inputs. The latter is "
            f"unsupported."
        )
    leaves, spec = pytree.tree_flatten(args)
    axes = pytree.broadcast_to_and_flatten(in_dims, spec)
    if axes is None:
        raise ShapeError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not "
            f"compatible with the structure of `inputs`. in_dims has structure "
            f"{pytree.tree_structure(in_dims)} but inputs has structure {spec}."
        )
    where = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    pairs = list(zip(leaves, axes, strict=True))
    axes = [_checked_axis(where, x, axis) for x, axis in pairs]
    sizes = [x.shape[a] for x, a in zip(leaves, axes, strict=True) if a is not None]
    if not sizes:
        raise ShapeError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ShapeError(
            f"vmap: Expected all tensors to have the same size in the mapped "
            f"dimension, got sizes {sizes} for the mapped dimension"
        )
    return sizes[0], axes, leaves, spec


def _checked_axis(where: str, x: Any, axis: Any) -> int | None:
    """An axis of an argument, counted from 0; None for none."""
    if axis is None:
        return None
    if not isinstance(axis, int):
        raise ShapeError(
            f"{where}: Got in_dim={axis} for an input but in_dim must be either an "
            f"integer dimension or None."
        )
    if not isinstance(x, Tensor):
        raise ShapeError(
            f"{where}: Got in_dim={axis} for an input but the input is of type "
            f"{type(x)}. We cannot vmap over non-Tensor arguments, please use None as "
            f"the respective in_dim"
        )
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(
            f"{where}: Got in_dim={axis} for some input, but that input is a Tensor of "
            f"dimensionality {x.ndim} so expected in_dim to satisfy -{x.ndim} <= "
            f"in_dim < {x.ndim}."
        )
    return axis % x.ndim


def _once(
    func: Function,
    axes: list[Any],
    spec: Any,
    out_dims: Any,
    randomness: str,
    options: Any,
    size: int,
    leaves: list[Any],
) -> Any:
    """The function of all examples, or of a chunk of them, at once."""
    with under_way(size, randomness) as examples:
        pairs = zip(leaves, axes, strict=True)
        args = [x if a is None else entered(x, a, examples) for x, a in pairs]
        z = func(*pytree.tree_unflatten(args, spec), **options)
        results, form = pytree.tree_flatten(z)
        places = _places(named(func), out_dims, z, form)
        found = [
            _shown(left(named(func), x, a, examples), leaves)
            for x, a in zip(results, places, strict=True)
        ]
    return pytree.tree_unflatten(found, form)


@contextmanager
@between_turns
def under_way(size: int, randomness: str = "error") -> Iterator[Examples]:
    """A block in which there is a level of so many examples."""
    examples = Examples("vmap", size)
    token = mapping.set((*mapping.get(), Mapping(examples, randomness)))
    try:
        yield examples
    except BatchedValueError as error:
        if isinstance(error, EagerError):
            raise
        raise EagerError(f"vmap: {error}") from error
    except (RuntimeError, ValueError) as error:
        restore(error)
        raise
    finally:
        mapping.reset(token)
        examples.close()


def entered(x: Tensor, axis: int, examples: Examples) -> Tensor:
    """A tensor as the function gets it: of one example."""
    array = numpy_face(x)
    z = torch_face(Batched(moveaxis(array, axis, 0) if axis else array, examples))
    remember_outside(z, x, axis)
    return z


def _shown(z: Any, leaves: list[Any]) -> Any:
    """A result, marked as a view of the argument whose memory it shows, if it does."""
    array = z.primal if isinstance(z, Tensor) else None
    if type(array) is np.ndarray and array.base is not None and z.viewed is None:
        for x in leaves:
            if isinstance(x, Tensor) and x is not z and z.dtype is x.dtype:
                z = view_if_shared(z, x)
                if z.viewed is not None:
                    break
    return z


def left(name: str, x: Any, axis: int | None, examples: Examples) -> Any:
    """A result with the axis of the examples where it belongs."""
    own = numpy_face(x) if isinstance(x, Tensor) else x
    mapped = examples.owns(own) and own.mapped
    if axis is None:
        if mapped:
            raise ShapeError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when "
                f"out_dim is None"
            )
        return torch_face(own.stacked) if examples.owns(own) else x
    if not isinstance(x, Tensor):
        raise ShapeError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type "
            f"{type(x)}. Did you mean to set out_dims= to None for output?"
        )
    z = torch_face(own.stacked) if examples.owns(own) else x
    if not mapped:
        z = z.expand(examples.size, *x.shape)
    axis = axis_of(axis, x.ndim + 1)
    return z.movedim(0, axis) if axis else z


def _places(name: str, out_dims: Any, z: Any, form: Any) -> list[Any]:
    """For each result the axis where the examples go."""
    single = isinstance(z, Tensor) and isinstance(out_dims, tuple)
    one = out_dims[0] if single and len(out_dims) == 1 else out_dims
    places = pytree.broadcast_to_and_flatten(one, form)
    if places is None:
        raise ShapeError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not "
            f"compatible with the structure of `outputs`. out_dims has structure "
            f"{pytree.tree_structure(out_dims)} but outputs has structure {form}."
        )
    return places


def _in_chunks(
    run: Function,
    axes: list[Any],
    leaves: list[Any],
    out_dims: Any,
    size: int,
    chunk_size: int,
    random: Any,
) -> Any:
    """The results of some examples after others, joined.

    ``random`` is the state of the random numbers that are to be the same for all.
    """
    found: list[Any] = []
    for start in range(0, size, chunk_size):
        count = min(chunk_size, size - start)
        pairs = zip(leaves, axes, strict=True)
        part = [x if a is None else x.narrow(a, start, count) for x, a in pairs]
        if random is not None:
            set_rng_state(random)
        found.append(pytree.tree_flatten(run(count, part)))
    form = found[0][1]
    places = pytree.broadcast_to_and_flatten(out_dims, form) or [out_dims[0]]
    columns = zip(*(row for row, _ in found), strict=True)
    joined = [
        parts[0] if axis is None else cat(parts, axis)
        for parts, axis in zip(columns, places, strict=True)
    ]
    return pytree.tree_unflatten(joined, form)
