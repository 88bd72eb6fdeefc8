"""The names of TorchScript's inner part that libraries import."""

from typing import Any

from lantern.torch.jit import Final as Final
from lantern.torch.jit import export as export
from lantern.torch.jit import ignore as ignore
from lantern.torch.jit import is_scripting as is_scripting
from lantern.torch.jit import unused as unused

__all__ = ["boolean_dispatch"]


def _same(function: Any) -> Any:
    """A function as it is: nothing is compiled."""
    return function


_copy_to_script_wrapper = _overload = _overload_method = _same


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Any,
    if_false: Any,
    module_name: str,
    func_name: str,
) -> Any:
    """A function that is one of two, by one of its arguments.

    Args:
        arg_name: the argument's name.
        arg_index: its place.
        default: what it is if it is left out.
        if_true: the function if it is true.
        if_false: the function if it is not.
        module_name: has no effect.
        func_name: the function's name.

    Example:
        >>> def turned(x, backwards):
        ...     return x[::-1]
        >>> def plain(x, backwards=False):
        ...     return x
        >>> f = boolean_dispatch("backwards", 1, False, turned, plain, "", "f")
        >>> f("ab"), f("ab", backwards=True)
        ('ab', 'ba')
    """

    def chosen(*args: Any, **options: Any) -> Any:
        given = args[arg_index] if arg_index < len(args) else default
        return (if_true if options.get(arg_name, given) else if_false)(*args, **options)

    chosen.__name__ = func_name
    return chosen
