"""SqueezeNet 1.1 with the weights of a file of Caffe's."""

import numpy as np

import lantern.torch as torch
from lantern.models import squeezenet1_1

# The fields: layers of a net; a layer's name and arrays; an array's numbers and shape.
LAYER, NAME, BLOB, DATA, SHAPE, LENGTHS = 100, 1, 7, 5, 7, 1


def number(data, at):
    """A number of seven bits a byte, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def several(data, which):
    """All fields of a message that have one number."""
    found, at = [], 0
    while at < len(data):
        key, at = number(data, at)
        length = {1: 8, 5: 4}.get(key & 7)
        if length is None:
            length, at = number(data, at)
        if key & 7 == 0:  # the number itself
            length = 0
        elif key >> 3 == which:
            found.append(data[at : at + length])
        at += length
    return found


def array(blob):
    """An array of single precision."""
    (row,) = several(several(blob, SHAPE)[0], LENGTHS)
    shape, at = [], 0
    while at < len(row):
        length, at = number(row, at)
        shape.append(length)
    return np.frombuffer(several(blob, DATA)[0], "<f4").reshape(shape)


def squeezenet(data):
    """SqueezeNet 1.1 with the weights of a file, for red, green and blue."""
    model = squeezenet1_1().eval()
    state = model.state_dict()
    layers = [several(layer, BLOB) for layer in several(data, LAYER)]
    arrays = [array(blob) for blobs in layers for blob in blobs]
    for name, value in zip(state, arrays, strict=True):  # in the same order
        state[name] = torch.tensor(value.copy())
    first = "features.0.weight"  # Caffe's pictures are blue, green and red
    state[first] = state[first].flip(1)
    model.load_state_dict(state)
    return model
