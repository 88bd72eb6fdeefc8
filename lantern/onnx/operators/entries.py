"""Every file of operators, imported: what each enters is then in the table."""

from lantern.onnx.operators import elementwise as elementwise
from lantern.onnx.operators import layers as layers
from lantern.onnx.operators import linear as linear
from lantern.onnx.operators import normalisation as normalisation
from lantern.onnx.operators import optional as optional
from lantern.onnx.operators import recurrent as recurrent
from lantern.onnx.operators import reduction as reduction
from lantern.onnx.operators import resizing as resizing
from lantern.onnx.operators import scattering as scattering
from lantern.onnx.operators import shaping as shaping
