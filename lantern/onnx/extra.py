"""The package onnx, imported when a file is first read: only this file imports it."""

from importlib import import_module
from typing import Any

from lantern.errors import MissingExtraError

__all__ = ["package"]


def package(name: str = "onnx") -> Any:
    """The package, or a module of it.

    Raises:
        MissingExtraError: if it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(
            "onnx: the package onnx, which knows the format, is not installed. Install "
            'it with pip install "lantern-ad[onnx]".'
        ) from None
