"""ONNX files: loaded as modules that are differentiated, and written.

Needs the extra ``lantern-ad[onnx]``.
"""

from lantern.onnx.export.exporting import export as export
from lantern.onnx.loading import load as load
from lantern.onnx.loading import save as save
from lantern.onnx.model import Model as Model

__all__ = ["Model", "export", "load", "save"]
