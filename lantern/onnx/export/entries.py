"""Every file of translations, imported: what each enters is then in the table."""

from lantern.onnx.export import basic as basic
from lantern.onnx.export import forms as forms
from lantern.onnx.export import layers as layers
from lantern.onnx.export import places as places
from lantern.onnx.export import recurrent as recurrent
