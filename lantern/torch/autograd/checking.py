"""Derivatives compared with differences: ``gradcheck``.

Complex numbers are pairs of real ones here, of a step as of a result: a derivative is a
matrix of real numbers, the real parts of a result before its imaginary ones.
"""

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lantern.blocks import between_turns
from lantern.core.value import base
from lantern.eager.grad_mode import enable_grad
from lantern.errors import EagerError, OptionError, SizeError
from lantern.torch import autograd
from lantern.torch.autograd import forward_ad
from lantern.torch.functions.join_repeat import stack
from lantern.torch.tensor.devices import on_host
from lantern.torch.tensor.dtypes import INEXACT
from lantern.torch.tensor.operators import in_memory
from lantern.torch.tensor.tensor import Tensor, fresh

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


class GradcheckError(EagerError):
    """A derivative that is not what differences suggest.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.ones(1, dtype=torch.float64, requires_grad=True)
        >>> torch.autograd.gradcheck(lambda x: x * x.detach(), (x,))
        Traceback (most recent call last):
            ...
        lantern.torch.autograd.checking.GradcheckError: Jacobian mismatch for output...
    """


class _Asked(NamedTuple):
    eps: float
    close: tuple[float, float]
    spread: float
    types: bool
    batched: bool


def _row(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, Tensor) else tuple(x)


def _tensors(results: Any) -> list[Tensor]:
    row = results if isinstance(results, tuple | list) else (results,)
    return [z for z in row if isinstance(z, Tensor)]


def _is_complex(x: Tensor) -> bool:
    return bool(base(x).dtype.kind == "c")


def _is_inexact(x: Tensor) -> bool:
    return base(x).dtype.kind in INEXACT


def _units(x: Tensor) -> tuple[complex, ...]:
    return (1, 1j) if _is_complex(x) else (1,)


def _parts(z: Any) -> Any:
    """A result as a row of real numbers: real parts, then imaginary ones."""
    z = np.ravel(z)
    return np.concatenate([z.real, z.imag]) if z.dtype.kind == "c" else z


def _basis(x: Tensor, order: str) -> Iterator[Tensor]:
    """Each direction in which a tensor can move.

    Args:
        x: the tensor.
        order: whether the imaginary unit comes "last", or "next" to the real one.
    """
    places = list(np.ndindex(base(x).shape))
    if order == "last":
        steps = [(place, unit) for unit in _units(x) for place in places]
    else:
        steps = [(place, unit) for place in places for unit in _units(x)]
    for place, unit in steps:
        direction = np.zeros_like(base(x))
        direction[place] = unit
        yield fresh(direction)


def _differences(call: Any, x: Tensor, eps: float, outputs: list[Tensor]) -> list[Any]:
    """The derivatives of some results by one input, by central differences."""
    array = in_memory(x)
    columns: list[list[Any]] = [[] for _ in outputs]
    for place in np.ndindex(array.shape):
        before = array[place].copy()
        for unit in _units(x):
            ends = []
            try:
                for step in (eps * unit, -eps * unit):
                    array[place] = before + step
                    ends.append([on_host(base(z)).copy() for z in _tensors(call())])
            finally:
                array[place] = before
            for column, z, a, b in zip(columns, outputs, *ends, strict=False):
                for end in (a, b):
                    _check_same(z, end, place)
                moved = (a - b) / (2 * eps) if _is_inexact(z) else np.zeros(a.shape)
                column.append(_parts(moved))
    sizes = [base(z).size * len(_units(z)) for z in outputs]
    return [
        np.array(column).reshape(len(column), size).T
        for column, size in zip(columns, sizes, strict=True)
    ]


def _check_same(z: Tensor, found: Any, place: Any) -> None:
    for what, known, other in (
        ("shape", base(z).shape, found.shape),
        ("dtype", base(z).dtype, found.dtype),
    ):
        if known != other:
            raise SizeError(
                f"Expected `func` to return outputs with the same {what} when inputs "
                f"are perturbed on index {place} by eps, but got: {known} and {other}."
            )


def _gradients(z: Tensor, varied: Any, seed: Any) -> list[Any]:
    """The gradients of a result by the inputs, zeros where there are none."""
    found = autograd.grad(z, varied, seed, True, allow_unused=True)
    return [
        np.zeros(base(x).shape, base(x).dtype) if g is None else on_host(base(g))
        for g, x in zip(found, varied, strict=True)
    ]


def _back(z: Tensor, varied: list[Tensor]) -> list[Any]:
    """The derivatives of one result by the inputs, row by row."""
    rows = [_gradients(z, varied, seed) for seed in _basis(z, "last")]
    return [
        np.array([_next(row[i]) for row in rows]).reshape(len(rows), size)
        for i, size in enumerate(base(x).size * len(_units(x)) for x in varied)
    ]


def _next(g: Any) -> Any:
    """A gradient as real numbers, the imaginary part of each beside the real one."""
    return np.stack([g.real, g.imag], -1).ravel() if g.dtype.kind == "c" else g.ravel()


def _forth(func: Any, inputs: Any, varied: list[Tensor], x: Tensor) -> list[Any]:
    """The derivatives of the results by one input, column by column."""
    columns: list[Any] = []
    kept = {id(y) for y in varied}
    for direction in _basis(x, "next"):
        with forward_ad.dual_level():
            args = []
            for y in inputs:
                if id(y) in kept:
                    still = fresh(np.zeros_like(base(y)))
                    dot = direction if y is x else still
                    y = forward_ad.make_dual(y.detach(), dot)
                args.append(y)
            column = []
            for z in _tensors(func(*args)):
                primal, z_dot = forward_ad.unpack_dual(z)
                known = np.zeros_like(base(primal)) if z_dot is None else base(z_dot)
                column.append(_parts(on_host(known)))
            columns.append(column)
    return [np.array(found).T for found in zip(*columns, strict=True)]


def _compare(
    known: Any, row: Any, z: Tensor, where: Any, asked: _Asked, how: str
) -> None:
    """Raise unless two derivatives agree."""
    close = asked.close
    if known.shape == row.shape and np.allclose(known, row, *close):
        return
    part = ""
    if _is_complex(z):
        half = len(row) // 2
        wrong = not np.allclose(known[half:], row[half:], *close)
        part = f"While considering the {'imaginary' if wrong else 'real'} part of "
        part += "complex outputs only, "
    raise GradcheckError(
        f"{part}Jacobian {how}mismatch for output {where[0]} with respect to input "
        f"{where[1]},\nnumerical:{row}\nanalytical:{known}"
    )


def _check_inputs(inputs: Any) -> list[Tensor]:
    """The inputs that are varied; an error if there are none that can be."""
    varied = []
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue
        varied.append(x)
        if base(x).dtype.char not in "dD":
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating "
                "point or complex. This check will likely fail if all the inputs are "
                "not of double precision floating point or complex. ",
                stacklevel=3,
            )
        if base(x).size and any(
            stride == 0 and n > 1
            for stride, n in zip(base(x).strides, base(x).shape, strict=True)
        ):
            raise EagerError(
                f"The {i}th input has a dimension with stride 0. gradcheck only "
                "supports inputs that are non-overlapping to be able to compute the "
                "numerical gradients correctly. You should call .contiguous on the "
                "input before passing it to gradcheck."
            )
    if not varied:
        raise OptionError(
            "gradcheck expects at least one input tensor to require gradient, but "
            "none of the them have requires_grad=True."
        )
    return varied


def _check_way_back(z: Tensor, varied: list[Tensor], asked: _Asked) -> None:
    """Raise unless the way back is linear, as often as asked the same, of its types."""
    zero = np.zeros_like(base(z))
    if any(np.any(g != 0) for g in _gradients(z, varied, fresh(zero))):
        raise GradcheckError("backward not multiplied by grad_output")
    seeds = [_seed(z, i) for i in range(2)]
    rows = [_gradients(z, varied, seed) for seed in seeds]
    again = _gradients(z, varied, seeds[0])
    for x, g, other in zip(varied, rows[0], again, strict=True):
        if asked.types and g.dtype != base(x).dtype:
            raise GradcheckError(f"Gradient has dtype mismatch: {g.dtype} of {x.dtype}")
        if not np.allclose(g, other, 0, asked.spread, equal_nan=True):
            raise GradcheckError(
                "Backward is not reentrant, i.e., running backward with same input and "
                "grad_output multiple times gives different values, although "
                "analytical gradient matches numerical gradient. The tolerance for "
                f"nondeterminism was {asked.spread}."
            )
    if asked.batched:
        several = stack(seeds)
        found = autograd.grad(z, varied, several, True, False, True, True, True)
        for g, *known in zip(found, *rows, strict=True):
            if g is not None and not np.allclose(on_host(base(g)), np.stack(known)):
                raise GradcheckError(
                    "gradcheck or gradgradcheck failed while testing batched gradient "
                    "computation: the gradients of several cotangents at once are not "
                    "those of each."
                )


def _seed(z: Tensor, number: int) -> Tensor:
    """A cotangent without symmetry."""
    angles = 1.0 + number + np.arange(base(z).size).reshape(base(z).shape)
    seed = np.cos(angles) + (1j * np.sin(2 * angles) if _is_complex(z) else 0)
    return z.new_tensor(np.asarray(seed.astype(base(z).dtype)))


def _check(func: Any, inputs: Any, varied: Any, asked: _Asked, ways: Any) -> None:
    """Raise unless the derivatives of a function are what differences suggest."""
    outputs = _tensors(func(*inputs))
    moving = [i for i, z in enumerate(outputs) if z.requires_grad]
    numerical = [
        _differences(lambda: func(*inputs), x, asked.eps, outputs) for x in varied
    ]
    if not moving and any(np.any(row != 0) for rows in numerical for row in rows):
        raise GradcheckError("Numerical gradient for function expected to be zero")
    if ways[0]:
        for i in moving:
            found = _back(outputs[i], varied)
            for n, known in enumerate(found):
                _compare(known, numerical[n][i], outputs[i], (i, n), asked, "")
            _check_way_back(outputs[i], varied, asked)
    if ways[1]:
        for n, x in enumerate(varied):
            found = _forth(func, inputs, varied, x)
            for i, known in enumerate(found):
                if _is_inexact(outputs[i]):
                    how, row = "computed with forward mode ", numerical[n][i]
                    _compare(known, row, outputs[i], (i, n), asked, how)


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
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
        nondet_tol: by how much two ways back may differ.
        check_grad_dtypes: whether gradients must have the types of the inputs.
        check_batched_grad: whether to compare gradients of several cotangents at once.
        check_forward_ad: whether to compare tangents, too.
        check_backward_ad: whether to compare gradients.
        options: ``fast_mode`` and others have no effect: each element is varied.

    Raises:
        GradcheckError: if they differ.
        ValueError: if no input requires a gradient.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.ones(2, dtype=torch.float64, requires_grad=True)
        >>> gradcheck(lambda x: x.exp(), (x,))
        True
    """
    ways = check_backward_ad, check_forward_ad
    if not any(ways):
        raise SizeError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    asked = _Asked(eps, (rtol, atol), nondet_tol, check_grad_dtypes, check_batched_grad)
    inputs = _row(inputs)
    varied = _check_inputs(inputs)
    try:
        _check(func, inputs, varied, asked, ways)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    gen_non_contig_grad_outputs: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    **options: Any,
) -> bool:
    """As ``gradcheck``, of the gradients themselves, by inputs and cotangents.

    Args:
        func: a function of tensors, which gives a tensor or several.
        inputs: where to try it; those that require gradients are varied.
        grad_outputs: the cotangents of its results, varied where they require
            gradients; by default some that do.
        gen_non_contig_grad_outputs: has no effect.
        check_fwd_over_rev: has no effect: see ``lantern.testing.check_grads``.
        check_rev_over_rev: has no effect: that is what is checked.
        options: as of ``gradcheck``.

    Raises:
        GradcheckError: if they differ.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.ones(2, dtype=torch.float64, requires_grad=True)
        >>> gradgradcheck(lambda x: x.exp(), (x,))
        True
    """
    inputs = _row(inputs)
    _check_inputs(inputs)
    outputs = [z for z in _tensors(func(*inputs)) if z.requires_grad]
    if grad_outputs is None:
        seeds = [_seed(z, 0).requires_grad_() for z in outputs]
    else:
        seeds = list(_row(grad_outputs))

    @between_turns
    def gradients(*args: Any) -> Any:
        with enable_grad():
            given, z_bars = args[: len(inputs)], args[len(inputs) :]
            outputs = [z for z in _tensors(func(*given)) if z.requires_grad]
            varied = [x for x in given if isinstance(x, Tensor) and x.requires_grad]
            found = autograd.grad(
                outputs, varied, z_bars, create_graph=True, allow_unused=True
            )
        return tuple(g for g in found if g is not None)

    return gradcheck(gradients, (*inputs, *seeds), **options)
