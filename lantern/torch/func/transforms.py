"""Gradients, pullbacks and pushforwards of functions of tensors.

Lantern's own transforms, which show the function its values under NumPy's names: here
they are given PyTorch's tensors on the way in, and lose it on the way out.
"""

from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from functools import wraps
from operator import attrgetter
from typing import Any

import numpy as np

from lantern.blocks import between_turns
from lantern.core.tree import tree_leaves as leaves_of
from lantern.core.tree import tree_map
from lantern.core.value import Value, base
from lantern.eager.grad_mode import enable_grad, is_enabled, stoppable
from lantern.errors import EagerError
from lantern.tensor.backend.numpy_namespace import buffers
from lantern.torch.func.checks import (
    check_argnums,
    check_depends,
    check_one_structure,
    check_outputs,
    check_pair,
)
from lantern.torch.tensor.tensor import Tensor, numpy_face, torch_face
from lantern.torch.utils import _pytree as pytree
from lantern.transforms import forward, reverse

__all__ = [
    "grad",
    "grad_and_value",
    "jvp",
    "linearize",
    "vjp",
]

Function = Callable[..., Any]
_GRAD, _VJP = "grad_and_value(f)(*args)", "vjp(f, *primals)"
_JVP = "jvp(f, primals, tangents)"
level_of = attrgetter("depth")


def tree_leaves(tree: Any) -> list[Any]:
    """The leaves of a structure, in order."""
    return list(leaves_of(tree))


def _inside(x: Any) -> Any:
    is_array = isinstance(x, Value | np.generic) or type(x) in buffers
    return torch_face(x) if is_array else x


def _faces(tree: Any) -> Any:
    """A structure as a program has it: tensors in place of Lantern's arrays."""
    return tree_map(_inside, tree)


def _plain(tree: Any) -> Any:
    """A structure as Lantern's transforms have it."""
    return tree_map(numpy_face, tree)


def _outside(tree: Any) -> Any:
    """A structure as a transform gives it: without the derivatives that are stopped."""
    tree = _faces(tree)
    return tree if is_enabled() else _faces(_plain(tree))


@contextmanager
@between_turns
def _stoppable(args: Any, reverse: bool) -> Any:
    """A block in which ``no_grad`` stops the derivative that tracks some arguments.

    It stops no forward one. The function itself runs with derivatives, also where the
    transform stands under ``no_grad``: that stops what comes out (``_outside``).
    """
    prompts = [x.level for x in leaves_of(args) if isinstance(x, Value)]
    before = stoppable.get()
    inside = prompts and reverse
    token = stoppable.set((*before, max(prompts, key=level_of)) if inside else before)
    try:
        with enable_grad() if inside else nullcontext():
            yield
    finally:
        stoppable.reset(token)


def _shown(name: str, f: Function, has_aux: bool, reverse: bool = True) -> Function:
    """A function of tensors, as one of Lantern's arrays."""

    def function(*args: Any, **options: Any) -> Any:
        with _stoppable(args, reverse):
            z = f(*_faces(args), **_faces(options))
        if has_aux:
            check_pair(name, z)
            return _plain(z[0]), _plain(z[1])
        return _plain(z)

    return function


def _scalar(f: Function, has_aux: bool) -> Function:
    """A function, checked to return one number."""

    def function(*args: Any, **options: Any) -> Any:
        z = f(*args, **options)
        if has_aux:
            check_pair(_GRAD, z)
        value = z[0] if has_aux else z
        if not isinstance(value, Tensor):
            raise EagerError(
                "Expected f(*args) to return a tensor to be differentiated, got "
                f"{type(value).__name__}"
            )
        if base(value).ndim:
            raise EagerError(
                "Expected f(*args) to return a scalar tensor, got tensor with "
                f"{base(value).ndim} dims. Maybe you wanted to use the vjp or jacrev "
                "APIs instead?"
            )
        return z

    return function


def grad_and_value(
    func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Function:
    """The function that returns the gradient and the value, in this order.

    Args:
        func: returns a tensor without axes.
        argnums: the arguments with respect to which.
        has_aux: whether the function returns something more, which is handed on.

    Returns:
        A function of the same arguments: the gradient and the value; with has_aux the
        gradient and the pair of the value and what comes with it.

    Example:
        >>> import lantern.torch as torch
        >>> torch.func.grad_and_value(lambda x: x**2)(torch.tensor(3.0))
        (tensor(6.), tensor(9.))
    """

    @wraps(func)
    def gradient(*args: Any, **options: Any) -> Any:
        numbers = check_argnums(argnums, args)
        chosen = numbers[0] if isinstance(argnums, int) else numbers
        shown = _shown(_GRAD, _scalar(func, has_aux), has_aux)
        both = reverse.value_and_grad(shown, chosen, has_aux=has_aux)
        value, found = both(*_plain(args), **_plain(options))
        return _outside(found), _outside(value)

    return gradient


def grad(
    func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Function:
    """The gradient of a function; see ``grad_and_value``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.func.grad(torch.func.grad(torch.sin))(torch.tensor(0.0))
        tensor(-0.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @wraps(func)
    def gradient(*args: Any, **options: Any) -> Any:
        found, value = both(*args, **options)
        return (found, value[1]) if has_aux else found

    return gradient


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """The value, and the function from its cotangent to the arguments' cotangents.

    Example:
        >>> import lantern.torch as torch
        >>> z, pullback = torch.func.vjp(torch.square, torch.tensor([1.0, 2.0]))
        >>> pullback(torch.ones(2))
        (tensor([2., 4.]),)
    """
    kept: list[Any] = []
    form: list[Any] = []

    def counted(*args: Any) -> Any:
        z = func(*args)
        value = z[0] if has_aux and isinstance(z, tuple) and z else z
        check_outputs(_VJP, value)
        form[:] = [pytree.tree_structure(value)]
        return z

    def function(*args: Any) -> Any:
        z = _shown(_VJP, counted, has_aux)(*args)
        if has_aux:
            kept[:] = [tree_map(base, z[1])]
            return z[0]
        return z

    value, pullback = reverse.vjp(function, *_plain(primals))

    def pull(cotangent: Any) -> Any:
        given = pytree.tree_structure(cotangent)
        if given != form[0]:
            raise EagerError(
                f"Expected pytree structure of cotangents to be the same as pytree "
                f"structure of outputs to the function. cotangents: {given}, primal "
                f"output: {form[0]}"
            )
        found = _outside(pullback(_plain(cotangent)))
        return found if isinstance(found, tuple) else (found,)

    if has_aux:
        return _outside(value), pull, _outside(kept[0])
    return _outside(value), pull


def jvp(
    func: Function,
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """The value, and its derivative along tangents of the arguments.

    What the function writes to its arguments stands in them afterwards.

    Example:
        >>> import lantern.torch as torch
        >>> torch.func.jvp(torch.square, (torch.tensor(3.0),), (torch.tensor(1.0),))
        (tensor(9.), tensor(6.))
    """
    check_one_structure(primals, tangents)
    kept: list[Any] = []

    def counted(*args: Any) -> Any:
        with _written_back(primals, args):
            z = func(*args)
        value = z[0] if has_aux and isinstance(z, tuple) and z else z
        check_outputs(_JVP, value)
        if strict:
            check_depends(value, args)
        return z

    def function(*args: Any) -> Any:
        z = _shown(_JVP, counted, has_aux, reverse=False)(*args)
        if has_aux:
            kept[:] = [tree_map(base, z[1])]
            return z[0]
        return z

    value, along = forward.jvp(function, _plain(primals), _plain(tangents))
    found = _faces(value), _faces(along)
    return (*found, _faces(kept[0])) if has_aux else found


@contextmanager
@between_turns
def _written_back(given: Any, shown: Any) -> Any:
    """A block after which tensors hold what was written to those that stand for them.

    Args:
        given: the arguments as a program has them.
        shown: the same with tangents.
    """
    rows = pytree.tree_leaves(given), pytree.tree_leaves(shown)
    before = [(x, moving, moving.primal) for x, moving in zip(*rows, strict=True)]
    yield
    for x, moving, primal in before:
        if moving.primal is not primal:
            x.copy_(torch_face(moving.primal))


def linearize(func: Function, *primals: Any) -> Any:
    """The value, and the function from tangents of the arguments to the value's.

    Example:
        >>> import lantern.torch as torch
        >>> value, pushforward = torch.func.linearize(torch.square, torch.tensor(3.0))
        >>> value, pushforward(torch.tensor(1.0))
        (tensor(9.), tensor(6.))
    """
    value = func(*primals)
    return value, lambda *tangents: jvp(func, primals, tangents)[1]
