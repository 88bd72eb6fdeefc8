"""Derivatives compared with differences: ``gradcheck``."""

from collections.abc import Callable
from typing import Any

import numpy as np

from lantern.core.value import base
from lantern.eager.grad_mode import enable_grad
from lantern.errors import EagerError
from lantern.torch import autograd
from lantern.torch.autograd import forward_ad
from lantern.torch.tensor.devices import on_host
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = ["gradcheck", "gradgradcheck"]


def _row(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, Tensor) else tuple(x)


def _difference(call: Any, x: Tensor, place: Any, eps: float) -> Any:
    """The change of tracked results with one element, by central differences."""
    array, found = base(x), []
    before = array[place].copy()
    for step in (eps, -eps):
        array[place] = before + step
        outputs = [z for z in _row(call()) if z.requires_grad]
        found.append([on_host(base(z)).copy() for z in outputs])
    array[place] = before
    return [(a - b) / (2 * eps) for a, b in zip(*found, strict=True)]


def _back(func: Any, inputs: Any, x: Tensor, rows: Any) -> list[Any]:
    """The derivatives of the results by one input, row by row."""
    found = []
    outputs = [z for z in _row(func(*inputs)) if z.requires_grad]
    for z, row in zip(outputs, rows, strict=True):
        known = np.zeros_like(row)
        for place in np.ndindex(base(z).shape):
            seed = np.zeros_like(base(z))
            seed[place] = 1
            (g,) = autograd.grad(
                z, x, fresh(seed), retain_graph=True, allow_unused=True
            )
            known[place] = 0 if g is None else on_host(base(g))
        found.append(known)
    return found


def _forth(func: Any, inputs: Any, x: Tensor, rows: Any) -> list[Any]:
    """The derivatives of the results by one input, column by column."""
    found = [np.zeros_like(row) for row in rows]
    for place in np.ndindex(base(x).shape):
        tangent = np.zeros_like(base(x))
        tangent[place] = 1
        with forward_ad.dual_level():
            moved = forward_ad.make_dual(x.detach(), fresh(tangent))
            outputs = _row(func(*[moved if y is x else y for y in inputs]))
            for known, z in zip(found, outputs, strict=True):
                z_dot = forward_ad.unpack_dual(z).tangent
                known[(..., *place)] = 0 if z_dot is None else on_host(base(z_dot))
    return found


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    **options: Any,
) -> bool:
    """Whether the gradients of a function are what differences of it suggest.

    Args:
        func: a function of tensors, which gives a tensor or several.
        inputs: where to try it, in double precision; those that require gradients
            are varied.
        eps: by how much.
        atol: the absolute tolerance.
        rtol: the relative tolerance.
        raise_exception: whether to raise instead of giving False.
        check_forward_ad: whether to compare tangents, too.
        check_backward_ad: whether to compare gradients.
        options: have no effect.

    Raises:
        RuntimeError: if they differ.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.ones(2, dtype=torch.float64, requires_grad=True)
        >>> gradcheck(lambda x: x.exp(), (x,))
        True
    """
    inputs = _row(inputs)
    varied = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
    outputs = [z for z in _row(func(*inputs)) if z.requires_grad]
    for number, x in enumerate(varied):
        rows = [np.zeros((*base(z).shape, *base(x).shape)) for z in outputs]
        for place in np.ndindex(base(x).shape):
            changes = _difference(lambda: func(*inputs), x, place, eps)
            for row, change in zip(rows, changes, strict=False):
                row[(..., *place)] = change
        for way, asked in ((_back, check_backward_ad), (_forth, check_forward_ad)):
            found = way(func, inputs, x, rows) if asked else rows
            for which, (known, row) in enumerate(zip(found, rows, strict=True)):
                if np.allclose(known, row, rtol, atol):
                    continue
                if not raise_exception:
                    return False
                raise EagerError(
                    f"Jacobian mismatch for output {which} with respect to "
                    f"input {number},\nnumerical:{row}\nanalytical:{known}"
                )
    return True


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, **options: Any
) -> bool:
    """As ``gradcheck``, of the gradients themselves."""
    inputs = _row(inputs)
    varied = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]

    def gradients(*args: Any) -> Any:
        with enable_grad():
            outputs = _row(func(*inputs))
            seeds = grad_outputs and _row(grad_outputs)
            seeds = seeds or [fresh(np.ones_like(base(z)) * 0.7) for z in outputs]
            found = autograd.grad(
                outputs, varied, seeds, create_graph=True, allow_unused=True
            )
        return tuple(g for g in found if g is not None)

    return gradcheck(gradients, varied, **options)
