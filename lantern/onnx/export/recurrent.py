"""How recurrent layers are written down: one operator for each layer, in both ways."""

from typing import Any

import numpy as np

from lantern.core.value import base
from lantern.onnx.export.basic import refuse
from lantern.onnx.export.table import translation
from lantern.torch import nn

__all__: list[str] = []

# Our order of the gates in that of the format.
_GATES = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}


def _weights(module: Any, part: str, layer: int, gates: Any) -> Any:
    """A weight of a layer's ways, its gates in the format's order."""
    found = []
    for way in [""] + ["_reverse"] * module.bidirectional:
        array = base(getattr(module, f"{part}_l{layer}{way}"))
        blocks = np.split(array, len(gates))
        found.append(np.concatenate([blocks[i] for i in gates]))
    return np.stack(found)


@translation(nn.LSTM.forward)
def _recurrent(g: Any, a: dict[str, Any], z: Any) -> Any:
    module, x = a["self"], a["input"]
    kind = next(k for k in ("LSTM", "GRU", "RNN") if isinstance(module, getattr(nn, k)))
    if base(x).ndim != 3 or getattr(module, "proj_size", 0):
        raise refuse("a recurrent layer of one example, or with proj_size")
    if a["hx"] is not None:
        raise refuse("a recurrent layer with first states")
    if module.training and module.dropout:
        raise refuse("dropout while training")
    gates, ways = _GATES[kind], 1 + module.bidirectional
    name = g.emit("Transpose", x, perm=[1, 0, 2]) if module.batch_first else g.name(x)
    (y, *_), ends = (z[0], z[1]), []
    times, n = base(y).shape[:2][:: -1 if module.batch_first else 1]
    options: dict[str, Any] = {"hidden_size": module.hidden_size}
    options["direction"] = "bidirectional" if ways == 2 else "forward"
    if kind == "GRU":
        options["linear_before_reset"] = 1
    if kind == "RNN":
        options["activations"] = [module.nonlinearity.capitalize()] * ways
    for layer in range(module.num_layers):
        w = _weights(module, "weight_ih", layer, gates)
        r = _weights(module, "weight_hh", layer, gates)
        b = None
        if module.bias:
            biases = [_weights(module, f"bias_{k}", layer, gates) for k in ("ih", "hh")]
            b = g.weight(np.concatenate(biases, axis=1))
        made = g.emit(
            kind, name, g.weight(w), g.weight(r), b,
            outputs=3 if kind == "LSTM" else 2, **options,
        )  # fmt: skip
        ends.append(made[1:])
        turned = g.emit("Transpose", made[0], perm=[0, 2, 1, 3])
        name = g.reshaped(turned, (times, n, ways * module.hidden_size))
    if module.batch_first:
        name = g.emit("Transpose", name, perm=[1, 0, 2])
    last = [g.emit("Concat", *parts, axis=0) for parts in zip(*ends, strict=True)]
    states = z[1] if isinstance(z[1], tuple) else (z[1],)
    for state, made in zip(states, last, strict=True):
        g.bind(state, made)
    return [name, last[0]]
