"""Derivatives of functions of eager tensors: ``torch.autograd.functional``."""

from collections.abc import Callable
from typing import Any

from lantern.core.value import base
from lantern.eager.grad_mode import enable_grad
from lantern.errors import ArgumentError, EagerError
from lantern.torch import autograd, func
from lantern.torch.functions.creation import ones_like, zeros_like
from lantern.torch.functions.join_repeat import stack
from lantern.torch.tensor.detaching import has_transform
from lantern.torch.tensor.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Function = Callable[..., Any]


def _row(where: str, x: Any) -> tuple[bool, tuple[Any, ...]]:
    """Whether there are several tensors, and the row of them."""
    several = isinstance(x, tuple)
    row = x if several else (x,)
    for y in row:
        if not isinstance(y, Tensor):
            raise ArgumentError(
                f"{where} must be a Tensor or a tuple of Tensors, got "
                f"{type(y).__name__}"
            )
    return several, row


def _tracked(inputs: tuple[Any, ...], create: bool) -> tuple[Any, ...]:
    """The inputs as tracked tensors that nothing else uses."""
    found = []
    for x in inputs:
        if create and x.requires_grad:
            found.append(x.view_as(x))
        else:
            found.append(_detached(x).requires_grad_())
    return tuple(found)


def _seed(where: str, v: Any, like: tuple[Any, ...]) -> tuple[Any, ...]:
    """A vector in the form of a row of tensors; 1 for a single number."""
    if v is None:
        if len(like) != 1 or base(like[0]).size != 1:
            raise EagerError(
                f"{where}: The vector v can only be None if the user-provided function "
                f"returns a single Tensor with a single element."
            )
        return (ones_like(like[0].detach()),)
    _, row = _row("v", v)
    if [base(x).shape for x in row] != [base(x).shape for x in like]:
        raise EagerError(
            f"{where}: v has invalid size: should be {[list(x.shape) for x in like]} "
            f"but got {[list(x.shape) for x in row]}."
        )
    return row


def _gradients(
    outputs: Any, inputs: Any, seeds: Any, create: bool, strict: bool
) -> tuple[Any, ...]:
    kept = [(y, s) for y, s in zip(outputs, seeds, strict=True) if y.requires_grad]
    if strict and len(kept) < len(outputs):
        n = [y.requires_grad for y in outputs].index(False)
        raise EagerError(
            f"Output {n} of the user-provided function does not require gradients. The "
            f"outputs must be computed in a differentiable manner from the input when "
            f"running in strict mode."
        )
    found: Any = (None,) * len(inputs)
    if kept:
        ys, row = zip(*kept, strict=True)
        found = autograd.grad(
            ys, inputs, row, retain_graph=True, create_graph=create, allow_unused=True
        )
    if strict and any(g is None for g in found):
        raise EagerError(
            f"The output of the user-provided function is independent of input "
            f"{list(found).index(None)}. This is not allowed in strict mode."
        )
    return tuple(
        zeros_like(_detached(x)) if g is None else g
        for x, g in zip(inputs, found, strict=True)
    )


def _detached(x: Any) -> Any:
    """A tensor without derivative.

    Raises:
        RuntimeError: inside of a transform that would find it to be a constant.
    """
    if has_transform(x):
        raise EagerError(
            "torch.autograd.functional.* was called inside of a function being "
            "transformed by torch.func or lantern, which its results would have no "
            "derivative for. Use torch.func's transforms inside: jvp, vjp, jacrev, "
            "hessian."
        )
    return x.detach()


def _finished(row: Any, several: bool, create: bool) -> Any:
    row = tuple(row) if create else tuple(map(_detached, row))
    return row if several else row[0]


def vjp(
    func: Function,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Any:
    """The value, and the inputs' cotangents for a cotangent of it.

    Example:
        >>> import lantern.torch as torch
        >>> x, v = torch.tensor([1.0, 2.0]), torch.ones(2)
        >>> torch.autograd.functional.vjp(torch.square, x, v)
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        several, row = _row("inputs", inputs)
        row = _tracked(row, create_graph)
        many, outputs = _row("outputs", func(*row))
        seeds = _seed("vjp", v, outputs)
        found = _gradients(outputs, row, seeds, create_graph, strict)
    value = _finished(outputs, many, create_graph)
    return value, _finished(found, several, create_graph)


def jvp(
    func: Function,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Any:
    """The value, and its derivative along a tangent of the inputs.

    Example:
        >>> import lantern.torch as torch
        >>> x, v = torch.tensor([1.0, 2.0]), torch.ones(2)
        >>> torch.autograd.functional.jvp(torch.square, x, v)
        (tensor([1., 4.]), tensor([2., 4.]))
    """
    with enable_grad():
        _, row = _row("inputs", inputs)
        seeds = _seed("jvp", v, row)
        if strict:  # what does not depend on what is seen on the way back
            leaves = _tracked(row, False)
            _, outputs = _row("outputs", func(*leaves))
            _gradients(outputs, leaves, map(ones_like, outputs), False, True)
        row = _tracked(row, True) if create_graph else tuple(map(_detached, row))
        value, along = _forward(func, row, seeds)
    many, outputs = _row("outputs", value)
    _, found = _row("outputs", along)
    done = _finished(outputs, many, create_graph)
    return done, _finished(found, many, create_graph)


def _forward(f: Function, primals: Any, tangents: Any) -> Any:
    return func.jvp(f, primals, tangents)


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The derivative of each element of the value by each of the inputs.

    Shapes:
        x: (n...); value: (m...); result: (m..., n...)

    Example:
        >>> import lantern.torch as torch
        >>> torch.autograd.functional.jacobian(torch.square, torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    with enable_grad():
        several, row = _row("inputs", inputs)
        row = _tracked(row, create_graph)
        many, outputs = _row("outputs", func(*row))
        blocks = []
        for y in outputs:
            lines = [
                _gradients(
                    (part,), row, (ones_like(part.detach()),), create_graph, strict
                )
                for part in y.reshape(-1).unbind(0)
            ]
            blocks.append(
                tuple(
                    stack([line[i] for line in lines]).reshape((*y.shape, *x.shape))
                    if lines
                    else zeros_like(x.detach()).expand((*y.shape, *x.shape))
                    for i, x in enumerate(row)
                )
            )
    done = [_finished(block, several, create_graph) for block in blocks]
    return tuple(done) if many else done[0]


def _gradient_of(f: Function, strict: bool) -> Function:
    """The gradient of a function with a single number as value, tracked."""

    def gradient(*row: Any) -> Any:
        y = f(*row)
        if not isinstance(y, Tensor) or base(y).size != 1:
            raise EagerError(
                "The Tensor returned by the function given to hessian should contain a "
                "single element"
            )
        return _gradients((y,), row, (ones_like(y.detach()),), True, strict)

    return gradient


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function with a single number as value.

    Example:
        >>> import lantern.torch as torch
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.autograd.functional.hessian(lambda x: (x**3).sum(), x)
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    several, row = _row("inputs", inputs)
    found = jacobian(_gradient_of(func, strict), row, create_graph, strict)
    return found if several else found[0][0]


def _hessian_product(
    where: str, func: Function, inputs: Any, v: Any, create: bool, strict: bool
) -> Any:
    with enable_grad():
        several, row = _row("inputs", inputs)
        row = _tracked(row, create)
        seeds = _seed(where, v, row)
        y = func(*row)
        found = _gradient_of(lambda *_: y, strict)(*row)
        product = _gradients(found, row, seeds, create, strict)
    return _finished((y,), False, create), _finished(product, several, create)


def hvp(
    func: Function,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Any:
    """The value, and the product of the second derivatives with a vector.

    Example:
        >>> import lantern.torch as torch
        >>> x, v = torch.tensor([1.0, 2.0]), torch.ones(2)
        >>> torch.autograd.functional.hvp(lambda x: (x**3).sum(), x, v)
        (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def vhp(
    func: Function,
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> Any:
    """The value, and the product of a vector with the second derivatives.

    Example:
        >>> import lantern.torch as torch
        >>> x, v = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0])
        >>> torch.autograd.functional.vhp(lambda x: (x**3).sum(), x, v)
        (tensor(9.), tensor([6., 0.]))
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)
