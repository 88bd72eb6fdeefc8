"""How layers are written down: each as the operator of its name."""

from typing import Any

import numpy as np

from lantern.core.value import base
from lantern.onnx.export.basic import first, refuse
from lantern.onnx.export.table import translation
from lantern.torch.nn import functional, rules

__all__: list[str] = []

f = functional
_ACTIVATIONS: dict[Any, Any] = {
    f.relu: lambda a: ("Relu", {}),
    f.leaky_relu: lambda a: ("LeakyRelu", {"alpha": float(a["negative_slope"])}),
    f.elu: lambda a: ("Elu", {"alpha": float(a["alpha"])}),
    f.selu: lambda a: ("Selu", {}),
    f.softsign: lambda a: ("Softsign", {}),
    f.hardswish: lambda a: ("HardSwish", {}),
    f.hardsigmoid: lambda a: ("HardSigmoid", {"alpha": 1 / 6, "beta": 0.5}),
}
for _function, _form in _ACTIVATIONS.items():

    @translation(_function)
    def _activation(g: Any, a: dict[str, Any], z: Any, form: Any = _form) -> Any:
        name, options = form(a)
        return g.emit(name, first(a), **options)


def _number(g: Any, x: Any, z: Any) -> str:
    return g.constant(np.asarray(x, base(z).dtype))


@translation(f.relu6)
def _relu6(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Clip", first(a), _number(g, 0, z), _number(g, 6, z))


@translation(f.hardtanh)
def _hardtanh(g: Any, a: dict[str, Any], z: Any) -> Any:
    ends = _number(g, a["min_val"], z), _number(g, a["max_val"], z)
    return g.emit("Clip", first(a), *ends)


@translation(f.silu)
def _silu(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Mul", first(a), g.emit("Sigmoid", first(a)))


@translation(f.softplus)
def _softplus(g: Any, a: dict[str, Any], z: Any) -> Any:
    if a["beta"] != 1:
        raise refuse("softplus(beta=...)")
    return g.emit("Softplus", first(a))


@translation(f.logsigmoid)
def _logsigmoid(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Neg", g.emit("Softplus", g.emit("Neg", first(a))))


@translation(f.gelu)
def _gelu(g: Any, a: dict[str, Any], z: Any) -> Any:
    x = first(a)
    half = g.emit("Mul", x, _number(g, 0.5, z))
    if a["approximate"] == "tanh":
        cube = g.emit("Mul", g.emit("Mul", x, x), x)
        inner = g.emit("Add", x, g.emit("Mul", cube, _number(g, 0.044715, z)))
        scaled = g.emit("Mul", inner, _number(g, np.sqrt(2 / np.pi), z))
        share = g.emit("Tanh", scaled)
    else:
        share = g.emit("Erf", g.emit("Mul", x, _number(g, np.sqrt(0.5), z)))
    return g.emit("Mul", half, g.emit("Add", share, _number(g, 1, z)))


@translation(f.dropout)
def _dropout(g: Any, a: dict[str, Any], z: Any) -> Any:
    if a.get("training") and a.get("p"):
        raise refuse("dropout while training")
    return g.name(first(a))


@translation(f.linear)
def _linear(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, weight, bias = first(a), a["weight"], a["bias"]
    if base(x).ndim == 2:
        return g.emit("Gemm", x, weight, bias, transB=1)
    product = g.emit("MatMul", x, g.emit("Transpose", weight, perm=[1, 0]))
    return product if bias is None else g.emit("Add", product, bias)


@translation(f.embedding)
def _embedding(g: Any, a: dict[str, Any], z: Any) -> Any:
    if a.get("max_norm") is not None:
        raise refuse("embedding(max_norm=...)")
    return g.emit("Gather", a["weight"], first(a), axis=0)


@translation(f.one_hot)
def _one_hot(g: Any, a: dict[str, Any], z: Any) -> Any:
    return g.emit("Gather", g.constant(np.eye(base(z).shape[-1], dtype=np.int64)),
                  first(a), axis=0)  # fmt: skip


# --- windows --------------------------------------------------------------------------


def _each(value: Any, axes: int) -> list[int]:
    return [int(value)] * axes if isinstance(value, int) else [int(i) for i in value]


def _of_batch(g: Any, x: Any, axes: int) -> Any:
    """An input with an axis of examples."""
    if base(x).ndim == axes + 2:
        return g.name(x)
    return g.reshaped(x, (1, *base(x).shape))


def _as_given(g: Any, name: str, x: Any, z: Any, axes: int) -> str:
    return name if base(x).ndim == axes + 2 else g.reshaped(name, base(z).shape)


@translation(f.conv1d, f.conv2d, f.conv3d)
def _conv(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, weight, axes = first(a), a["weight"], base(a["weight"]).ndim - 2
    dilation, padding = _each(a["dilation"], axes), a["padding"]
    if padding == "same":
        kernel = base(weight).shape[2:]
        total = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        pads = [n // 2 for n in total] + [n - n // 2 for n in total]
    else:
        pads = _each(0 if padding == "valid" else padding, axes) * 2
    made = g.emit(
        "Conv", _of_batch(g, x, axes), weight, a["bias"], pads=pads,
        strides=_each(a["stride"], axes), dilations=dilation, group=a["groups"],
    )  # fmt: skip
    return _as_given(g, made, x, z, axes)


@translation(f.conv_transpose1d, f.conv_transpose2d, f.conv_transpose3d)
def _conv_transpose(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, weight, axes = first(a), a["weight"], base(a["weight"]).ndim - 2
    made = g.emit(
        "ConvTranspose", _of_batch(g, x, axes), weight, a["bias"],
        pads=_each(a["padding"], axes) * 2, strides=_each(a["stride"], axes),
        dilations=_each(a["dilation"], axes), group=a["groups"],
        output_padding=_each(a["output_padding"], axes),
    )  # fmt: skip
    return _as_given(g, made, x, z, axes)


def _options(a: dict[str, Any]) -> dict[str, Any]:
    axes, stride = a["axes"], a["stride"]
    kernel = _each(a["kernel_size"], axes)
    return {
        "kernel_shape": kernel,
        "strides": kernel if stride is None or stride == [] else _each(stride, axes),
        "pads": _each(a["padding"], axes) * 2,
        "ceil_mode": int(a["ceil_mode"]),
    }


@translation(f.max_pool1d, f.max_pool2d, f.max_pool3d)
def _max_pool(g: Any, a: dict[str, Any], z: Any) -> Any:
    if a["return_indices"]:
        raise refuse("a pool that gives places")
    x, axes = first(a), a["axes"]
    steps, given = _each(a["dilation"], axes), _options(a)
    made = g.emit("MaxPool", _of_batch(g, x, axes), dilations=steps, **given)
    return _as_given(g, made, x, z, axes)


@translation(f.avg_pool1d, f.avg_pool2d, f.avg_pool3d)
def _avg_pool(g: Any, a: dict[str, Any], z: Any) -> Any:
    if a["divisor_override"] is not None:
        raise refuse("avg_pool with a divisor")
    x, axes, counted = first(a), a["axes"], int(a["count_include_pad"])
    name, given = _of_batch(g, x, axes), _options(a)
    made = g.emit("AveragePool", name, count_include_pad=counted, **given)
    return _as_given(g, made, x, z, axes)


def _parts_are_equal(a: dict[str, Any]) -> bool:
    """Whether an adaptive pool is one with windows of one size."""
    axes, asked = a["axes"], a["output_size"]
    asked = [asked] * axes if isinstance(asked, int) else list(asked)
    lengths = base(first(a)).shape[-axes:]
    return all(m is None or n % m == 0 for n, m in zip(lengths, asked, strict=True))


def _adaptive(g: Any, a: dict[str, Any], z: Any, name: str) -> Any:
    x, axes = first(a), a["axes"]
    new, old = base(z).shape[-axes:], base(x).shape[-axes:]
    each = [m // n for m, n in zip(old, new, strict=True)]
    given = _of_batch(g, x, axes)
    if set(new) == {1}:
        made = g.emit(f"Global{name}", given)
    else:
        made = g.emit(name, given, kernel_shape=each, strides=each)
    return _as_given(g, made, x, z, axes)


# Of unequal parts the mean is written down as the products that it is made of.
@translation(
    f.adaptive_avg_pool1d, f.adaptive_avg_pool2d, f.adaptive_avg_pool3d,
    when=_parts_are_equal,
)  # fmt: skip
def _adaptive_avg_pool(g: Any, a: dict[str, Any], z: Any) -> Any:
    return _adaptive(g, a, z, "AveragePool")


@translation(rules.mixed)
def _mixed(g: Any, a: dict[str, Any], z: Any) -> Any:
    (x,), (weights, axis) = a["operands"], a["statics"].values()
    order = list(range(base(z).ndim))
    order[axis], order[-1] = order[-1], order[axis]
    last = g.emit("Transpose", g.name(x), perm=order)
    made = g.emit("MatMul", last, g.constant(np.asarray(weights, base(z).dtype)))
    return g.emit("Transpose", made, perm=order)


@translation(rules.rearranged)
def _rearranged(g: Any, a: dict[str, Any], z: Any) -> Any:
    (x,), (shape, order, result) = a["operands"], a["statics"].values()
    made = g.emit("Transpose", g.reshaped(g.name(x), shape), perm=list(order))
    return g.reshaped(made, result)


@translation(f.adaptive_max_pool1d, f.adaptive_max_pool2d, f.adaptive_max_pool3d)
def _adaptive_max_pool(g: Any, a: dict[str, Any], z: Any) -> Any:
    if a["return_indices"] or not _parts_are_equal(a):
        raise refuse("an adaptive largest element of unequal parts, or with places,")
    return _adaptive(g, a, z, "MaxPool")


# --- normalisations -------------------------------------------------------------------


@translation(f.batch_norm)
def _batch_norm(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, eps = first(a), float(a["eps"])
    if a["training"]:
        raise refuse("batch_norm by the moments of a batch")
    n = base(a["running_mean"]).shape
    scale = _number(g, np.ones(n), z) if a["weight"] is None else a["weight"]
    bias = _number(g, np.zeros(n), z) if a["bias"] is None else a["bias"]
    moments = a["running_mean"], a["running_var"]
    return g.emit("BatchNormalization", x, scale, bias, *moments, epsilon=eps)


@translation(f.layer_norm)
def _layer_norm(g: Any, a: dict[str, Any], z: Any) -> Any:
    shape = a["normalized_shape"]
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    scale = _number(g, np.ones(shape), z) if a["weight"] is None else a["weight"]
    return g.emit(
        "LayerNormalization", first(a), scale, a["bias"], axis=-len(shape),
        epsilon=float(a["eps"]),
    )  # fmt: skip


@translation(f.group_norm)
def _group_norm(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, groups = first(a), int(a["num_groups"])
    shape = base(x).shape
    rows = g.reshaped(x, (shape[0], groups, -1))
    one, zero = _number(g, np.ones(groups), z), _number(g, np.zeros(groups), z)
    eps = float(a["eps"])
    made = g.emit("InstanceNormalization", rows, one, zero, epsilon=eps)
    made = g.reshaped(made, shape)
    form = (-1, *[1] * (len(shape) - 2))
    if a["weight"] is not None:
        made = g.emit("Mul", made, g.reshaped(a["weight"], form))
    if a["bias"] is not None:
        made = g.emit("Add", made, g.reshaped(a["bias"], form))
    return made


@translation(f.instance_norm)
def _instance_norm(g: Any, a: dict[str, Any], z: Any) -> Any:
    if not a["use_input_stats"]:
        raise refuse("instance_norm by given moments")
    n = base(z).shape[1]
    scale = _number(g, np.ones(n), z) if a["weight"] is None else a["weight"]
    bias = _number(g, np.zeros(n), z) if a["bias"] is None else a["bias"]
    eps = float(a["eps"])
    return g.emit("InstanceNormalization", first(a), scale, bias, epsilon=eps)


# --- losses ---------------------------------------------------------------------------


@translation(f.cross_entropy)
def _cross_entropy(g: Any, a: dict[str, Any], z: Any) -> Any:
    if a["label_smoothing"] or base(a["target"]).dtype.kind == "f":
        raise refuse("cross_entropy against shares of classes")
    return _of_classes(g, "SoftmaxCrossEntropyLoss", a)


@translation(f.nll_loss)
def _nll_loss(g: Any, a: dict[str, Any], z: Any) -> Any:
    return _of_classes(g, "NegativeLogLikelihoodLoss", a)


def _of_classes(g: Any, name: str, a: dict[str, Any]) -> Any:
    x, y = first(a), a["target"]
    if base(x).ndim == 1 or a["size_average"] is not None or a["reduce"] is not None:
        raise refuse("a loss of one example, or with size_average or reduce,")
    options = {"ignore_index": int(a["ignore_index"]), "reduction": a["reduction"]}
    return g.emit(name, x, g.cast(y, np.dtype(np.int64)), a["weight"], **options)


# --- pictures -------------------------------------------------------------------------


@translation(f.pad)
def _pad(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, given = first(a), [int(i) for i in a["pad"]]
    mode = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}
    if a["mode"] not in mode:
        raise refuse(f"pad(mode={a['mode']!r})")
    n = base(x).ndim
    before, after = [0] * n, [0] * n
    for k in range(len(given) // 2):
        before[n - 1 - k], after[n - 1 - k] = given[2 * k], given[2 * k + 1]
    value = _number(g, a["value"] or 0, z)
    return g.emit("Pad", x, g.ints(before + after), value, mode=mode[a["mode"]])


_MODES = {
    "nearest": "nearest",
    "nearest-exact": "nearest", "linear": "linear", "bilinear": "linear",
    "trilinear": "linear", "bicubic": "cubic",
}  # fmt: skip


# What Resize has not is written down as the products that it is made of.
@translation(
    f.interpolate, when=lambda a: a["mode"] in _MODES and not a.get("antialias")
)
def _interpolate(g: Any, a: dict[str, Any], z: Any) -> Any:
    x, mode, factor = first(a), a["mode"], a["scale_factor"]
    places = "align_corners" if a["align_corners"] else "half_pixel"
    if mode == "nearest":
        places = "asymmetric"
    rounded = "round_prefer_ceil" if mode == "nearest-exact" else "floor"
    axes = base(x).ndim - 2
    scales, sizes = None, g.ints(base(z).shape)
    if factor is not None and not a["recompute_scale_factor"]:
        row = list(factor) if isinstance(factor, tuple | list) else [factor] * axes
        scales, sizes = g.constant(np.array([1, 1, *row], np.float32)), None
    return g.emit(
        "Resize", x, None, scales, sizes, mode=_MODES[mode], nearest_mode=rounded,
        coordinate_transformation_mode=places, cubic_coeff_a=-0.75,
    )  # fmt: skip


@translation(f.grid_sample)
def _grid_sample(g: Any, a: dict[str, Any], z: Any) -> Any:
    if base(first(a)).ndim != 4:
        raise refuse("grid_sample of volumes")
    return g.emit(
        "GridSample", first(a), a["grid"], mode=a["mode"],
        padding_mode=a["padding_mode"], align_corners=int(bool(a["align_corners"])),
    )  # fmt: skip
