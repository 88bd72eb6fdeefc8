"""Modules that are functions with options: a table makes their classes."""

import inspect
from typing import Any

from lantern.errors import ArgumentError, OptionError
from lantern.torch.nn import functional as F
from lantern.torch.nn.functional.loss import chosen
from lantern.torch.nn.module import Module

REQUIRED = inspect.Parameter.empty
ORDER = inspect.Parameter.POSITIONAL_OR_KEYWORD


class Simple(Module):
    """A function with options that are given once."""

    options: dict[str, Any]
    shown: tuple[str, ...]
    buffers_among: tuple[str, ...] = ()
    others: tuple[str, ...]
    _function: Any
    with_training = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        try:
            bound = self.__signature__.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(f"{type(self).__name__}: {error}") from None
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if name in self.buffers_among:
                self.register_buffer(name, value)
            else:
                setattr(self, name, value)
        self._check()

    def _check(self) -> None:
        pass

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """The function's value."""
        own, cls = self.__dict__, type(self)
        try:
            given = {}
            for name in cls.others:
                given[name] = own[name]
            for name in cls.buffers_among:
                given[name] = own["_buffers"][name]
        except KeyError:  # assigned anew, as something else
            given = {name: getattr(self, name) for name in self.options}
        if cls.with_training:
            given["training"] = self.training
        return cls._function(*inputs, **given, **named)

    def extra_repr(self) -> str:
        """The options."""
        parts = []
        for name in self.shown:
            value = getattr(self, name.removeprefix("="))
            if name.startswith("="):  # the value alone
                parts.append(f"{value!r}")
                continue
            if name == "inplace" and not value and self.hides_inplace:
                continue
            parts.append(f"{name}={value!r}")
        return ", ".join(parts)

    hides_inplace = False


def layer(
    name: str,
    function: Any,
    options: dict[str, Any] | None = None,
    shown: str | None = None,
    **more: Any,
) -> Any:
    """A class of modules from a function.

    Args:
        name: of the class.
        function: of inputs and of the options.
        options: with their defaults, in their order; ``REQUIRED`` for none.
        shown: the options that are printed; all by default.
        more: other attributes of the class.
    """
    options = {} if options is None else options
    buffers = [name for name in more.pop("buffers_among", ()) if name in options]
    parameters = [
        inspect.Parameter(key, ORDER, default=value) for key, value in options.items()
    ]
    doc = (function.__doc__ or "").partition("\n")[0]
    attributes = {
        "__doc__": f"A module: {doc}",
        "__module__": "lantern.torch.nn",
        "__signature__": inspect.Signature(parameters),
        "_function": staticmethod(function),
        "buffers_among": tuple(buffers),
        "options": options,
        "others": tuple(name for name in options if name not in buffers),
        "shown": tuple(options) if shown is None else tuple(shown.split()),
    }
    return type(name, (Simple,), attributes | more)


def unordered(function: Any, *names: str) -> Any:
    """A function that ignores some options."""

    def call(*inputs: Any, **options: Any) -> Any:
        for name in names:
            options.pop(name, None)
        return function(*inputs, **options)

    call.__doc__ = function.__doc__
    return call


def _dropout_check(self: Any) -> None:
    if not 0 <= self.p <= 1:
        raise OptionError(
            f"dropout probability has to be between 0 and 1, but got {self.p}"
        )


_INPLACE = {"inplace": False}
_HIDDEN: dict[str, Any] = {"hides_inplace": True}
_REDUCED = {"size_average": None, "reduce": None, "reduction": "mean"}
_WEIGHTED = {"weight": None, **_REDUCED}
_DROPOUT = {"p": 0.5, "inplace": False}
_POOLED = {"kernel_size": REQUIRED, "stride": None, "padding": 0}
_POOLED_WHOLE = {"kernel_size": REQUIRED, "stride": None, "ceil_mode": False}
_MAX = {**_POOLED, "dilation": 1, "return_indices": False, "ceil_mode": False}
_MEAN = {**_POOLED, "ceil_mode": False, "count_include_pad": True}
_MEANS = {**_MEAN, "divisor_override": None}
_PADDED = "kernel_size stride padding"


def _stride(self: Any) -> None:
    if self.stride is None:
        self.stride = self.kernel_size


def _in_tuples(axes: int) -> Any:
    def check(self: Any) -> None:
        _stride(self)
        for name in ("kernel_size", "stride", "padding"):
            value = getattr(self, name)
            value = value if isinstance(value, tuple) else (value,) * axes
            setattr(self, name, value)

    return check


def _old_names(self: Any) -> None:
    """Give a reduction its name, which older programs say by two truths."""
    old = self.__dict__.pop("size_average", None), self.__dict__.pop("reduce", None)
    self.size_average = self.reduce = None
    if "size_average" in self.options and old != (None, None):
        self.reduction = chosen(self.reduction, *old)
    if not isinstance(getattr(self, "delta", 1.0), int | float):
        raise ArgumentError(f"delta must be a float or int, got: {type(self.delta)}")


CLASSES: dict[str, Any] = {
    # name: function, options, options that are printed, attributes of the class
    "CELU": (F.celu, {"alpha": 1.0, **_INPLACE}, None, _HIDDEN),
    "ELU": (F.elu, {"alpha": 1.0, **_INPLACE}, None, _HIDDEN),
    "GELU": (F.gelu, {"approximate": "none"}),
    "GLU": (F.glu, {"dim": -1}),
    "Hardshrink": (F.hardshrink, {"lambd": 0.5}, "=lambd"),
    "Hardsigmoid": (F.hardsigmoid, _INPLACE, ""),
    "Hardswish": (F.hardswish, _INPLACE, ""),
    "Hardtanh": (
        F.hardtanh,
        {"min_val": -1.0, "max_val": 1.0, **_INPLACE},
        None,
        _HIDDEN,
    ),
    "LeakyReLU": (
        F.leaky_relu,
        {"negative_slope": 0.01, **_INPLACE},
        None,
        _HIDDEN,
    ),
    "LogSigmoid": (F.logsigmoid,),
    "LogSoftmax": (F.log_softmax, {"dim": None}),
    "Mish": (F.mish, _INPLACE, None, _HIDDEN),
    "ReLU": (F.relu, _INPLACE, None, _HIDDEN),
    "ReLU6": (F.relu6, _INPLACE, None, _HIDDEN),
    "RReLU": (
        F.rrelu,
        {"lower": 1 / 8, "upper": 1 / 3, **_INPLACE},
        None,
        {"with_training": True, "hides_inplace": True},
    ),
    "SELU": (F.selu, _INPLACE, None, _HIDDEN),
    "SiLU": (F.silu, _INPLACE, None, _HIDDEN),
    "Sigmoid": (F.sigmoid,),
    "Softmax": (F.softmax, {"dim": None}),
    "Softmin": (F.softmin, {"dim": None}),
    "Softplus": (F.softplus, {"beta": 1.0, "threshold": 20.0}),
    "Softshrink": (F.softshrink, {"lambd": 0.5}, "=lambd"),
    "Softsign": (F.softsign,),
    "Tanh": (F.tanh,),
    "Tanhshrink": (F.tanhshrink,),
    "Threshold": (
        F.threshold,
        {"threshold": REQUIRED, "value": REQUIRED, **_INPLACE},
        None,
        _HIDDEN,
    ),
    **{
        name: (
            function,
            _DROPOUT,
            None,
            {"with_training": True, "_check": _dropout_check},
        )
        for name, function in {
            "AlphaDropout": F.alpha_dropout,
            "Dropout": F.dropout,
            "Dropout1d": F.dropout1d,
            "Dropout2d": F.dropout2d,
            "Dropout3d": F.dropout3d,
            "FeatureAlphaDropout": F.feature_alpha_dropout,
        }.items()
    },
    "AvgPool1d": (F.avg_pool1d, _MEAN, _PADDED, {"_check": _in_tuples(1)}),
    "AvgPool2d": (F.avg_pool2d, _MEANS, _PADDED, {"_check": _stride}),
    "AvgPool3d": (F.avg_pool3d, _MEANS, _PADDED, {"_check": _stride}),
    **{
        f"MaxPool{n}d": (
            getattr(F, f"max_pool{n}d"),
            _MAX,
            f"{_PADDED} dilation ceil_mode",
            {"_check": _stride},
        )
        for n in (1, 2, 3)
    },
    **{
        f"AdaptiveAvgPool{n}d": (
            getattr(F, f"adaptive_avg_pool{n}d"),
            {"output_size": REQUIRED},
        )
        for n in (1, 2, 3)
    },
    **{
        f"AdaptiveMaxPool{n}d": (
            getattr(F, f"adaptive_max_pool{n}d"),
            {"output_size": REQUIRED, "return_indices": False},
            "output_size",
        )
        for n in (1, 2, 3)
    },
    **{
        f"LPPool{n}d": (
            getattr(F, f"lp_pool{n}d"),
            {"norm_type": REQUIRED, **_POOLED_WHOLE},
        )
        for n in (1, 2, 3)
    },
    **{
        f"MaxUnpool{n}d": (
            getattr(F, f"max_unpool{n}d"),
            _POOLED,
            None,
            {"_check": _in_tuples(n)},
        )
        for n in (1, 2, 3)
    },
    "ChannelShuffle": (F.channel_shuffle, {"groups": REQUIRED}),
    "CosineSimilarity": (F.cosine_similarity, {"dim": 1, "eps": 1e-8}, ""),
    "PairwiseDistance": (
        F.pairwise_distance,
        {"p": 2.0, "eps": 1e-6, "keepdim": False},
        "",
    ),
    "Fold": (
        F.fold,
        {
            "output_size": REQUIRED,
            "kernel_size": REQUIRED,
            "dilation": 1,
            "padding": 0,
            "stride": 1,
        },
    ),
    "Unfold": (
        F.unfold,
        {"kernel_size": REQUIRED, "dilation": 1, "padding": 0, "stride": 1},
    ),
    "PixelShuffle": (F.pixel_shuffle, {"upscale_factor": REQUIRED}),
    "PixelUnshuffle": (F.pixel_unshuffle, {"downscale_factor": REQUIRED}),
    "LocalResponseNorm": (
        F.local_response_norm,
        {"size": REQUIRED, "alpha": 1e-4, "beta": 0.75, "k": 1.0},
        "=size alpha beta k",
    ),
}
_LOSSES: dict[str, Any] = {
    "BCELoss": (F.binary_cross_entropy, _WEIGHTED),
    "BCEWithLogitsLoss": (
        F.binary_cross_entropy_with_logits,
        {**_WEIGHTED, "pos_weight": None},
    ),
    "CTCLoss": (
        F.ctc_loss,
        {"blank": 0, "reduction": "mean", "zero_infinity": False},
    ),
    "CosineEmbeddingLoss": (F.cosine_embedding_loss, {"margin": 0.0, **_REDUCED}),
    "CrossEntropyLoss": (
        F.cross_entropy,
        {
            "weight": None,
            "size_average": None,
            "ignore_index": -100,
            "reduce": None,
            "reduction": "mean",
            "label_smoothing": 0.0,
        },
    ),
    "GaussianNLLLoss": (
        F.gaussian_nll_loss,
        {"full": False, "eps": 1e-6, "reduction": "mean"},
    ),
    "HingeEmbeddingLoss": (F.hinge_embedding_loss, {"margin": 1.0, **_REDUCED}),
    "HuberLoss": (F.huber_loss, {"reduction": "mean", "delta": 1.0}),
    "KLDivLoss": (F.kl_div, {**_REDUCED, "log_target": False}),
    "L1Loss": (F.l1_loss, _REDUCED),
    "MSELoss": (F.mse_loss, _REDUCED),
    "MarginRankingLoss": (F.margin_ranking_loss, {"margin": 0.0, **_REDUCED}),
    "MultiLabelMarginLoss": (F.multilabel_margin_loss, _REDUCED),
    "MultiLabelSoftMarginLoss": (F.multilabel_soft_margin_loss, _WEIGHTED),
    "MultiMarginLoss": (
        F.multi_margin_loss,
        {"p": 1, "margin": 1.0, "weight": None, **_REDUCED},
    ),
    "NLLLoss": (
        F.nll_loss,
        {
            "weight": None,
            "size_average": None,
            "ignore_index": -100,
            "reduce": None,
            "reduction": "mean",
        },
    ),
    "PoissonNLLLoss": (
        F.poisson_nll_loss,
        {
            "log_input": True,
            "full": False,
            "size_average": None,
            "eps": 1e-8,
            "reduce": None,
            "reduction": "mean",
        },
    ),
    "SmoothL1Loss": (F.smooth_l1_loss, {**_REDUCED, "beta": 1.0}),
    "SoftMarginLoss": (F.soft_margin_loss, _REDUCED),
    "TripletMarginLoss": (
        F.triplet_margin_loss,
        {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False, **_REDUCED},
    ),
    "TripletMarginWithDistanceLoss": (
        F.triplet_margin_with_distance_loss,
        {
            "distance_function": None,
            "margin": 1.0,
            "swap": False,
            "reduction": "mean",
        },
    ),
}


def _made(name: str, row: Any, shown: str | None = None, **more: Any) -> Any:
    rest: Any = (None, shown, {})[len(row) - 1 :]
    function, options, printed, attributes = tuple(row) + rest
    return layer(name, function, options, printed, **attributes, **more)


MODULES = {name: _made(name, row) for name, row in CLASSES.items()} | {
    name: _made(
        name, row, "", buffers_among=("weight", "pos_weight"), _check=_old_names
    )
    for name, row in _LOSSES.items()
}
globals().update(MODULES)
