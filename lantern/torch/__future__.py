"""How modules change the memory of their parameters: ``torch.__future__``."""

__all__ = [
    "get_overwrite_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
    "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]

_asked = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Say whether ``module.to(...)`` and its kin make new parameters.

    If not, the parameters stay the objects that they are, and get new memory.

    Args:
        value: whether they do.

    Example:
        >>> import lantern.torch as torch
        >>> layer = torch.nn.Linear(2, 1)
        >>> weight = layer.weight
        >>> torch.__future__.set_overwrite_module_params_on_conversion(True)
        >>> layer.double().weight is weight
        False
        >>> torch.__future__.set_overwrite_module_params_on_conversion(False)
        >>> layer.weight is layer.float().weight
        True
    """
    _asked["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether ``module.to(...)`` and its kin make new parameters.

    Example:
        >>> import lantern.torch as torch
        >>> torch.__future__.get_overwrite_module_params_on_conversion()
        False
    """
    return _asked["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Say whether parameters that get new memory are to stay the same objects.

    They do in any case, unless new ones are asked for.

    Args:
        value: whether they are to.

    Example:
        >>> import lantern.torch as torch
        >>> torch.__future__.set_swap_module_params_on_conversion(False)
    """
    _asked["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """What was said last by ``set_swap_module_params_on_conversion``.

    Example:
        >>> import lantern.torch as torch
        >>> torch.__future__.get_swap_module_params_on_conversion()
        False
    """
    return _asked["swap"]
