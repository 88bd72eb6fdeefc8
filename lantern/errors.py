"""Every error class of the library: a LanternError and the builtin people expect.

Messages read ``where: what happened, with the actual values. What to do.``
"""

__all__ = [
    "AlreadyResumedError",
    "AnomalyError",
    "ArgumentError",
    "BatchedValueError",
    "ConvergenceError",
    "DetachError",
    "DeviceError",
    "DistributedError",
    "EagerError",
    "EscapedError",
    "FileFormatError",
    "InUseError",
    "LanternError",
    "MissingExtraError",
    "MissingRuleError",
    "MutationError",
    "NestingError",
    "NoDelimiterError",
    "NotArrayError",
    "NotRegularFileError",
    "NotScalarError",
    "OptionError",
    "PositionError",
    "RankLostError",
    "ResumptionError",
    "RuleError",
    "ShapeError",
    "SizeError",
    "StagingError",
    "TakenNameError",
    "ThreadError",
    "UnhandledEffectError",
    "UninitializedError",
]


def counted(n: int, thing: str, things: str = "") -> str:
    """A number of things in words: the plural has an s, or is given."""
    return f"{n} {thing}" if n == 1 else f"{n} {things or thing + 's'}"


class LanternError(Exception):
    """The root of every error that the library raises itself.

    Example:
        >>> import lantern
        >>> try:
        ...     lantern.grad(lambda x: x)([1.0, 2.0])
        ... except lantern.LanternError as error:
        ...     print(type(error).__name__)
        NotScalarError
    """


class ArgumentError(LanternError, TypeError):
    """An argument has a type that the function cannot take.

    Example:
        >>> import lantern
        >>> lantern.grad(lambda x: x * x)("2")
        Traceback (most recent call last):
            ...
        lantern.errors.ArgumentError: grad: cannot differentiate with respect to ...
    """


class BatchedValueError(LanternError, TypeError, ValueError):
    """A value with an axis of examples was used as if it were one value.

    Example:
        >>> import lantern
        >>> import numpy as np
        >>> lantern.vmap(lambda x: 1.0 if x > 0 else 2.0)(np.array([1.0, -1.0]))
        Traceback (most recent call last):
            ...
        lantern.errors.BatchedValueError: if: inside vmap this value stands for ...
    """


class ShapeError(LanternError, ValueError):
    """Arrays have shapes or values that do not fit together.

    Example:
        >>> import lantern
        >>> import numpy as np
        >>> lantern.vjp(lambda x: 2 * x, np.ones(3))[1](np.ones(2))
        Traceback (most recent call last):
            ...
        lantern.errors.ShapeError: pullback: expected the structure and shapes ...
    """


class ConvergenceError(LanternError, ArithmeticError):
    """A search did not come to an end within its steps.

    Example:
        >>> import lantern
        >>> lantern.fixed_point(lambda x: -x, 1.0)
        Traceback (most recent call last):
            ...
        lantern.errors.ConvergenceError: fixed_point: x still changes after 10000 ...
    """


class OptionError(LanternError, ValueError):
    """An option has a value that it cannot have.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.Dropout(2.0)
        Traceback (most recent call last):
            ...
        lantern.errors.OptionError: dropout probability has to be between 0 and ...
    """


class SizeError(LanternError, AssertionError):
    """A size does not fit another, where PyTorch asserts that it does.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.Embedding(3, 2, padding_idx=5)
        Traceback (most recent call last):
            ...
        lantern.errors.SizeError: Padding_idx must be within num_embeddings
    """


class StagingError(LanternError, TypeError):
    """A value is asked for before the program runs, or cannot be staged.

    Example:
        >>> from lantern import staging
        >>> staging.stage(lambda x: 1.0 if x > 0.0 else 2.0, 3.0)
        Traceback (most recent call last):
            ...
        lantern.staging.staged.NeedsPlainError: bool: ...
    """


class TakenNameError(LanternError, KeyError):
    """A name that is taken already, or that nothing can have.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.Module().add_module("forward", None)
        Traceback (most recent call last):
            ...
        lantern.errors.TakenNameError: "attribute 'forward' already exists"
    """


class NotScalarError(ArgumentError):
    """A gradient was asked of a function whose result is not one number.

    Example:
        >>> import lantern
        >>> import numpy as np
        >>> lantern.grad(lambda x: 2 * x)(np.ones(3))
        Traceback (most recent call last):
            ...
        lantern.errors.NotScalarError: grad: f must return a scalar, got shape ...
    """


class NotArrayError(ArgumentError, AttributeError):
    """A function of arrays was given a number, or something else that is no array.

    Example:
        >>> import lantern
        >>> lantern.softmax(2.0)
        Traceback (most recent call last):
            ...
        lantern.errors.NotArrayError: max: it is a function of arrays, and was ...
    """


class DetachError(LanternError, TypeError):
    """A tracked value was about to become a constant in silence.

    Example:
        >>> import lantern
        >>> import math
        >>> lantern.grad(lambda x: math.sin(x))(2.0)
        Traceback (most recent call last):
            ...
        lantern.errors.DetachError: float: a tracked number would become a ...
    """


class DistributedError(LanternError, RuntimeError):
    """Something went wrong between processes: calls that do not match, a time limit.

    Example:
        >>> import lantern.distributed as dist
        >>> dist.broadcast(1.0, root=3)
        Traceback (most recent call last):
            ...
        lantern.errors.DistributedError: broadcast: root is 3, and the group has ...
    """


class RankLostError(DistributedError, ConnectionError):
    """Another process of the job has ended, hangs, or cannot be reached.

    Example:
        >>> import lantern
        >>> issubclass(lantern.errors.RankLostError, ConnectionError)
        True
    """


class EagerError(LanternError, RuntimeError):
    """Something that PyTorch refuses with a RuntimeError, in its words.

    Example:
        >>> import lantern.torch as torch
        >>> torch.ones(2, requires_grad=True).backward()
        Traceback (most recent call last):
            ...
        lantern.errors.EagerError: grad can be implicitly created only for scalar ...
    """


class SingleValueError(EagerError, BatchedValueError):
    """Inside ``torch.vmap``, a number was asked for that each example has of its own.

    Example:
        >>> import lantern.torch as torch
        >>> torch.vmap(lambda x: x.item())(torch.ones(2))
        Traceback (most recent call last):
            ...
        lantern.errors.SingleValueError: vmap: It looks like you're calling .item() ...
    """


class PositionError(LanternError, IndexError):
    """An axis or a position that an array does not have.

    Example:
        >>> import lantern.torch as torch
        >>> try:
        ...     torch.ones(2)[5]
        ... except IndexError as error:
        ...     print(type(error).__name__)
        PositionError
    """


class FileFormatError(LanternError, RuntimeError, ValueError):
    """A file is not what its format says, or is cut off.

    Example:
        >>> import io
        >>> import lantern.torch as torch
        >>> torch.load(io.BytesIO(b"not a file of tensors"))
        Traceback (most recent call last):
            ...
        lantern.errors.FileFormatError: torch.load: the file is cut off, or no ...
    """


class NotRegularFileError(LanternError, OSError):
    """A folder, a device or a pipe stands where a file was to be written.

    Example:
        >>> import os
        >>> import lantern.torch as torch
        >>> torch.save({"epoch": 3}, os.devnull)
        Traceback (most recent call last):
            ...
        lantern.errors.NotRegularFileError: torch.save: /dev/null is a device, no ...
    """


class EscapedError(LanternError, RuntimeError):
    """A tracked value was used after the derivative it belongs to was over.

    Example:
        >>> import lantern
        >>> kept = []
        >>> lantern.grad(lambda x: kept.append(x) or x * x)(2.0)
        4.0
        >>> kept[0] * 3
        Traceback (most recent call last):
            ...
        lantern.errors.EscapedError: grad: a tracked value was used after the ...
    """


class MissingRuleError(LanternError, NotImplementedError):
    """An operation has no derivative rule for these operands.

    Example:
        >>> import lantern
        >>> from decimal import Decimal
        >>> lantern.sin(Decimal("0.5"))
        Traceback (most recent call last):
            ...
        lantern.errors.MissingRuleError: sin: Decimal numbers have no such ...
    """


class MutationError(LanternError, TypeError):
    """A tracked value was about to be written to.

    Example:
        >>> import lantern
        >>> import numpy as np
        >>> def overwrite(x):
        ...     x[0] = 0.0
        ...     return x.sum()
        >>> lantern.grad(overwrite)(np.ones(2))
        Traceback (most recent call last):
            ...
        lantern.errors.MutationError: x[i] = v: a tracked array cannot be written ...
    """


class MissingExtraError(LanternError, ImportError):
    """A feature needs an optional package that is not installed.

    Example:
        >>> import lantern
        >>> issubclass(lantern.MissingExtraError, ImportError)
        True
    """


class DeviceError(MissingExtraError, AssertionError, RuntimeError):
    """There is no such device here, or nothing that computes on it.

    Example:
        >>> import lantern
        >>> issubclass(lantern.DeviceError, lantern.MissingExtraError)
        True
    """


class AnomalyError(LanternError, ArithmeticError):
    """A nan, an infinity or another oddity that ``debug`` was asked to find.

    Example:
        >>> import lantern
        >>> with lantern.debug():
        ...     lantern.grad(lambda x: lantern.sqrt(x))(0.0)
        Traceback (most recent call last):
            ...
        lantern.errors.AnomalyError: debug: the backward step of sqrt gave inf, ...
    """


class RuleError(LanternError, TypeError):
    """A derivative rule breaks the protocol of ``lantern.op``.

    Example:
        >>> import lantern
        >>> from lantern.op import op
        >>> @op
        ... def double(x):
        ...     z_bar = yield 2 * x
        ...     yield 2 * z_bar
        Traceback (most recent call last):
            ...
        lantern.errors.RuleError: double: the rule has no differentiable operand. ...
    """


class NoDelimiterError(LanternError, RuntimeError):
    """``shift`` was called where no enclosing ``reset`` waits for it.

    Example:
        >>> import lantern
        >>> from lantern.cps import shift
        >>> shift(lambda k: k(1))
        Traceback (most recent call last):
            ...
        lantern.errors.NoDelimiterError: shift: called where no delimiter ...
    """


class AlreadyResumedError(LanternError, RuntimeError):
    """A one-shot continuation was called a second time.

    Example:
        >>> import lantern
        >>> from lantern.cps import reset, shift
        >>> reset(lambda: shift(lambda k: k(1) + k(2)))
        Traceback (most recent call last):
            ...
        lantern.errors.AlreadyResumedError: k: called a second time, but ...
    """


class ResumptionError(LanternError, RuntimeError):
    """A continuation was called where it cannot go on (aborted, other thread).

    Example:
        >>> import lantern
        >>> program = lantern.Program(lambda: lantern.pause())
        >>> program.result
        Traceback (most recent call last):
            ...
        lantern.errors.ResumptionError: Program: it is waiting, and has no ...
    """


class InUseError(LanternError, RuntimeError):
    """Something that can do one thing at a time was called again meanwhile.

    Example:
        >>> import lantern
        >>> steps = lantern.backward_steps(
        ...     lambda x: lantern.hook(lambda g: next(steps), x * x), 2.0
        ... )
        >>> list(steps)
        Traceback (most recent call last):
            ...
        lantern.errors.InUseError: backward_steps: a step is being taken already ...
    """


class NestingError(LanternError, RecursionError):
    """Delimiters are nested so deep that the C stack would be in danger.

    Example:
        >>> import lantern
        >>> issubclass(lantern.NestingError, RecursionError)
        True
    """


class ThreadError(LanternError, RuntimeError):
    """A thread has died before it had done its part.

    Example:
        >>> import lantern
        >>> issubclass(lantern.errors.ThreadError, RuntimeError)
        True
    """


class UnhandledEffectError(LanternError, RuntimeError):
    """A program asked for an effect, and no handler was in force to answer it.

    Example:
        >>> import lantern
        >>> from lantern.effects import Effect
        >>> Effect("ask")("how many?")
        Traceback (most recent call last):
            ...
        lantern.errors.UnhandledEffectError: ask: no handler is in force here. ...
    """


class UninitializedError(OptionError, EagerError):
    """A parameter was used before its layer had seen an input, and so its size.

    Example:
        >>> import lantern.torch as torch
        >>> torch.nn.LazyLinear(2).weight + 1
        Traceback (most recent call last):
            ...
        lantern.errors.UninitializedError: Attempted to use an uninitialized ...
    """
