"""What ``torch.func`` asks of arguments and results, in PyTorch's words."""

from typing import Any

from lantern.core.value import Value
from lantern.errors import EagerError, ShapeError
from lantern.torch.tensor.tensor import Tensor
from lantern.torch.utils import _pytree as pytree

__all__ = [
    "check_argnums",
    "check_depends",
    "check_one_structure",
    "check_only_tensors",
    "check_outputs",
    "check_pair",
    "check_real",
    "slice_argnums",
]

_JVP = "jvp(f, primals, tangents)"


def check_argnums(argnums: Any, args: Any) -> tuple[int, ...]:
    """The numbers of the arguments with respect to which, counted from 0."""
    if not isinstance(argnums, int | tuple):
        raise EagerError(
            f"argnums must be int or Tuple[int, ...], got: {type(argnums)}"
        )
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise EagerError("argnums must be non-empty")
    for n in numbers:
        if not isinstance(n, int):
            raise EagerError(f"argnum must be int, got: {type(n)}")
        if not -len(args) <= n < len(args):
            raise EagerError(f"Got argnum={n}, but only {len(args)} positional inputs")
    found = tuple(n % len(args) for n in numbers)
    if len(set(found)) < len(found):
        raise EagerError(f"argnums elements must be unique, got {argnums}")
    return found


def check_real(name: str, leaves: Any, what: str) -> None:
    """Raise for tensors of complex numbers."""
    for x in leaves:
        if isinstance(x, Tensor) and x.dtype.is_complex:
            raise EagerError(
                f"{name}: Expected all {what} to be real but received complex tensor "
                f"with dtype {x.dtype}"
            )


def check_only_tensors(name: str, leaves: Any) -> None:
    """Raise unless there are tensors, and nothing else."""
    if not leaves:
        raise EagerError(f"{name}: Expected at least one Tensor, got none.")
    for x in leaves:
        if not isinstance(x, Tensor):
            raise EagerError(
                f"{name}: Expected all leaves to be Tensors, to only contain Tensors; "
                f"got unsupported type {type(x)}"
            )


def check_outputs(name: str, z: Any) -> None:
    """Raise unless a function has returned tensors, and nothing else."""
    leaves = pytree.tree_leaves(z)
    if z is None or not leaves:
        raise EagerError(
            f"{name}: Expected f to be a function that has non-empty output "
            f"(got output = {z})"
        )
    for x in leaves:
        if not isinstance(x, Value):
            raise EagerError(
                f"{name}: expected f(*primals) to return only tensors, got "
                f"unsupported type {type(x)}"
            )


def check_pair(name: str, z: Any) -> None:
    """Raise unless a function has returned a value and what comes with it."""
    if not (isinstance(z, tuple) and len(z) == 2):
        raise EagerError(
            f"{name}: output of function f should be a tuple: (output, aux) if "
            f"has_aux is True"
        )


def check_one_structure(primals: Any, tangents: Any) -> None:
    """Raise unless arguments of ``jvp`` and their tangents are tensors alike."""
    if not isinstance(primals, tuple):
        raise EagerError(
            f"{_JVP}: Expected primals to be a tuple. E.g. it should be valid to call "
            f"f(*primals)."
        )
    leaves, spec = pytree.tree_flatten(primals)
    tangent_leaves, tangent_spec = pytree.tree_flatten(tangents)
    if spec != tangent_spec:
        raise EagerError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. "
            f"For example, if primals is a tuple of 3 tensors, tangents also must be. "
            f"Got primals with structure {spec} and tangents with structure "
            f"{tangent_spec}"
        )
    check_only_tensors(_JVP, leaves)
    check_only_tensors(_JVP, tangent_leaves)
    for x, x_dot in zip(leaves, tangent_leaves, strict=True):
        if x.shape != x_dot.shape:
            raise ShapeError(
                f"{_JVP}: Expected primals and tangents of the same shapes, got "
                f"{list(x.shape)} and {list(x_dot.shape)}"
            )


def check_depends(z: Any, args: Any) -> None:
    """Raise unless each result of the function of a strict ``jvp`` has a tangent."""
    level = next(x.level for x in pytree.tree_leaves(args) if isinstance(x, Value))
    for x in pytree.tree_leaves(z):
        if not isinstance(x, Value) or x.level is not level:
            raise EagerError(
                f"{_JVP}: The output of f is independent of the inputs. This is not "
                f"allowed with strict=True."
            )


def slice_argnums(args: Any, argnums: Any, as_tuple: bool = True) -> Any:
    """The arguments that a derivative is taken by; one alone, if that is asked for.

    Args:
        args: all of them.
        argnums: their numbers; below 0 from the end.
        as_tuple: whether one alone stands in a tuple.

    Example:
        >>> slice_argnums((1.0, 2.0, 3.0), (2, 0))
        (3.0, 1.0)
    """
    found = tuple(args[n] for n in check_argnums(argnums, args))
    return found if as_tuple or isinstance(argnums, tuple) else found[0]
