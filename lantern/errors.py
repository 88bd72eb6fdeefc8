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
    "EagerError",
    "EscapedError",
    "FileFormatError",
    "LanternError",
    "MissingExtraError",
    "MissingRuleError",
    "MutationError",
    "NestingError",
    "NoDelimiterError",
    "NotArrayError",
    "NotScalarError",
    "OptionError",
    "PositionError",
    "ResumptionError",
    "RuleError",
    "ShapeError",
    "SizeError",
    "TakenNameError",
    "UnhandledEffectError",
]


class LanternError(Exception):
    """The root of every error that the library raises itself."""


class ArgumentError(LanternError, TypeError):
    """An argument has a type that the function cannot take."""


class BatchedValueError(LanternError, TypeError, ValueError):
    """A value with an axis of examples was used as if it were one value."""


class ShapeError(LanternError, ValueError):
    """Arrays have shapes or values that do not fit together."""


class ConvergenceError(LanternError, ArithmeticError):
    """A search did not come to an end within its steps."""


class OptionError(LanternError, ValueError):
    """An option has a value that it cannot have."""


class SizeError(LanternError, AssertionError):
    """A size does not fit another, where PyTorch asserts that it does."""


class TakenNameError(LanternError, KeyError):
    """A name that is taken already, or that nothing can have."""


class NotScalarError(ArgumentError):
    """A gradient was asked of a function whose result is not one number."""


class NotArrayError(ArgumentError, AttributeError):
    """A function of arrays was given a number, or something else that is no array."""


class DetachError(LanternError, TypeError):
    """A tracked value was about to become a constant in silence."""


class EagerError(LanternError, RuntimeError):
    """Something that PyTorch refuses with a RuntimeError, in its words."""


class PositionError(LanternError, IndexError):
    """An axis or a position that an array does not have."""


class FileFormatError(LanternError, RuntimeError, ValueError):
    """A file is not what its format says, or is cut off."""


class EscapedError(LanternError, RuntimeError):
    """A tracked value was used after the derivative it belongs to was over."""


class MissingRuleError(LanternError, NotImplementedError):
    """An operation has no derivative rule for these operands."""


class MutationError(LanternError, TypeError):
    """A tracked value was about to be written to."""


class MissingExtraError(LanternError, ImportError):
    """A feature needs an optional package that is not installed."""


class DeviceError(MissingExtraError, AssertionError):
    """There is no such device here, or nothing that computes on it."""


class AnomalyError(LanternError, ArithmeticError):
    """A nan, an infinity or another oddity that ``debug`` was asked to find."""


class RuleError(LanternError, TypeError):
    """A derivative rule breaks the protocol of ``lantern.op``."""


class NoDelimiterError(LanternError, RuntimeError):
    """``shift`` was called where no enclosing ``reset`` waits for it."""


class AlreadyResumedError(LanternError, RuntimeError):
    """A one-shot continuation was called a second time."""


class ResumptionError(LanternError, RuntimeError):
    """A continuation was called where it cannot go on (aborted, other thread)."""


class NestingError(LanternError, RecursionError):
    """Delimiters are nested so deep that the C stack would be in danger."""


class UnhandledEffectError(LanternError, RuntimeError):
    """A program asked for an effect, and no handler was in force to answer it."""
