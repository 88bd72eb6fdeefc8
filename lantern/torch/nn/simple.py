"""Modules that are functions with options: a table makes their classes.

A class is made when it is asked for, and its function imported, for few networks need
more than some of them.
"""

import inspect
from importlib import import_module
from typing import Any

from lantern.errors import ArgumentError, OptionError
from lantern.torch.nn.functional import usual
from lantern.torch.nn.functional.loss import chosen
from lantern.torch.nn.module import Module
from lantern.torch.tables import documented

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
            for name in cls.others:  # in no comprehension, which takes twice as long
                given[name] = own[name]
            for name in cls.buffers_among:
                given[name] = own["_buffers"][name]
        except KeyError:  # assigned anew, as something else
            given = {name: getattr(self, name) for name in self.options}
        if cls.with_training:
            given["training"] = self.training
        return cls._function(*inputs, **given, **named)

    def inputs(self) -> list[inspect.Parameter]:
        """What the function takes besides its options."""
        found = inspect.signature(type(self)._function).parameters.values()
        return [p for p in found if p.default is p.empty and p.name not in self.options]

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


class Loss(Simple):
    """A loss, and the base of those that programs define.

    Args:
        size_average: has been replaced by ``reduction``, as ``reduce``.
        reduce: likewise.
        reduction: what becomes of the losses of all elements.
    """

    options: dict[str, Any] = {}  # noqa: RUF012
    others = ()
    shown = ()

    def __init__(
        self, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
    ) -> None:
        Module.__init__(self)
        given = size_average is not None or reduce is not None
        self.reduction = chosen(reduction, size_average, reduce) if given else reduction


class WeightedLoss(Loss):
    """A loss with a weight for each class.

    Args:
        weight: the weights.
        size_average: as in ``Loss``, as what follows.
        reduce: likewise.
        reduction: likewise.
    """

    def __init__(
        self,
        weight: Any = None,
        size_average: Any = None,
        reduce: Any = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


def layer(
    name: str,
    function: Any,
    options: dict[str, Any] | None = None,
    shown: str | None = None,
    base: type = Simple,
    **more: Any,
) -> Any:
    """A class of modules from a function.

    Args:
        name: of the class.
        function: of inputs and of the options.
        options: with their defaults, in their order; ``REQUIRED`` for none.
        shown: the options that are printed; all by default.
        base: the class that it is one of.
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
    if base is not Simple:
        attributes["__init__"] = Simple.__init__
    return type(name, (base,), attributes | more)


def unordered(function: Any, *names: str) -> Any:
    """A function that ignores some options."""

    def call(*inputs: Any, **options: Any) -> Any:
        for name in names:
            options.pop(name, None)
        return function(*inputs, **options)

    call.__doc__ = function.__doc__
    return call


def _unpool(function: Any) -> Any:
    """A function whose third argument is the size of the result."""

    def call(input: Any, indices: Any, output_size: Any = None, **options: Any) -> Any:
        return function(input, indices, output_size=output_size, **options)

    call.__doc__ = function.__doc__
    return call


def _dropout_check(self: Any) -> None:
    if not 0 <= self.p <= 1:
        raise OptionError(
            f"dropout probability has to be between 0 and 1, but got {self.p}"
        )


def _axis_check(self: Any) -> None:
    if self.dim is not None and type(self.dim) is not int:
        raise ArgumentError(f"dim must be an int or None, got {type(self.dim)}")


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
_ADAPTIVE = {"output_size": REQUIRED}
_PADDED = "kernel_size stride padding"
_MAX_SHOWN = f"{_PADDED} dilation ceil_mode"


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


_FRACTIONAL = {
    "kernel_size": REQUIRED,
    "output_size": None,
    "output_ratio": None,
    "return_indices": False,
    "_random_samples": None,
}


def _one_of_two(axes: int) -> Any:
    def check(self: Any) -> None:
        from lantern.torch.nn.functional.convolution import each  # with its engine

        size, ratio = self.output_size, self.output_ratio
        if size is None and ratio is None:
            raise OptionError(
                f"{type(self).__name__} requires specifying either an output size, or "
                f"a pooling ratio"
            )
        if size is not None and ratio is not None:
            raise OptionError(
                "only one of output_size and output_ratio may be specified"
            )
        self.kernel_size = each(self.kernel_size, axes)
        if size is not None:
            self.output_size = each(size, axes)
            return
        self.output_ratio = (ratio,) * axes if isinstance(ratio, float) else ratio
        if not all(0 < part < 1 for part in self.output_ratio):
            raise OptionError(f"output_ratio must be between 0 and 1 (got {ratio})")

    return check


def _old_names(self: Any) -> None:
    """Give a reduction its name, which older programs say by two truths."""
    old = self.__dict__.pop("size_average", None), self.__dict__.pop("reduce", None)
    self.size_average = self.reduce = None
    if "size_average" in self.options and old != (None, None):
        self.reduction = chosen(self.reduction, *old)
    if not isinstance(getattr(self, "delta", 1.0), int | float):
        raise ArgumentError(f"delta must be a float or int, got: {type(self.delta)}")


_RANDOM: dict[str, Any] = {"with_training": True, "_check": _dropout_check}
CLASSES: dict[str, Any] = {
    # name: the function's, example, options, those that are printed, its attributes
    "CELU": (
        "celu",
        """
        >>> torch.nn.CELU()(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
        """,
        {"alpha": 1.0, **_INPLACE},
        None,
        _HIDDEN,
    ),
    "ELU": (
        "elu",
        """
        >>> torch.nn.ELU()(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])
        """,
        {"alpha": 1.0, **_INPLACE},
        None,
        _HIDDEN,
    ),
    "GELU": (
        "gelu",
        """
        >>> torch.nn.GELU()(torch.tensor([-1.0, 2.0]))
        tensor([-0.1587,  1.9545])
        """,
        {"approximate": "none"},
    ),
    "GLU": (
        "glu",
        """
        >>> torch.nn.GLU()(torch.tensor([1.0, 2.0, 0.0, 0.0]))
        tensor([0.5000, 1.0000])
        """,
        {"dim": -1},
    ),
    "Hardshrink": (
        "hardshrink",
        """
        >>> torch.nn.Hardshrink()(torch.tensor([-1.0, 0.3, 2.0]))
        tensor([-1.,  0.,  2.])
        """,
        {"lambd": 0.5},
        "=lambd",
    ),
    "Hardsigmoid": (
        "hardsigmoid",
        """
        >>> torch.nn.Hardsigmoid()(torch.tensor([-4.0, 0.0, 1.5]))
        tensor([0.0000, 0.5000, 0.7500])
        """,
        _INPLACE,
        "",
    ),
    "Hardswish": (
        "hardswish",
        """
        >>> torch.nn.Hardswish()(torch.tensor([-4.0, 1.0, 4.0]))
        tensor([-0.0000, 0.6667, 4.0000])
        """,
        _INPLACE,
        "",
    ),
    "Hardtanh": (
        "hardtanh",
        """
        >>> torch.nn.Hardtanh()(torch.tensor([-2.0, 0.5, 2.0]))
        tensor([-1.0000,  0.5000,  1.0000])
        """,
        {"min_val": -1.0, "max_val": 1.0, **_INPLACE},
        None,
        _HIDDEN,
    ),
    "LeakyReLU": (
        "leaky_relu",
        """
        >>> torch.nn.LeakyReLU(0.1)(torch.tensor([-1.0, 2.0]))
        tensor([-0.1000,  2.0000])
        """,
        {"negative_slope": 0.01, **_INPLACE},
        None,
        _HIDDEN,
    ),
    "LogSigmoid": (
        "logsigmoid",
        """
        >>> torch.nn.LogSigmoid()(torch.tensor([-1.0, 0.0]))
        tensor([-1.3133, -0.6931])
        """,
    ),
    "LogSoftmax": (
        "log_softmax",
        """
        >>> torch.nn.LogSoftmax(dim=0)(torch.tensor([0.0, 0.0]))
        tensor([-0.6931, -0.6931])
        """,
        {"dim": None},
        None,
        {"_check": _axis_check},
    ),
    "Mish": (
        "mish",
        """
        >>> torch.nn.Mish()(torch.tensor([-1.0, 2.0]))
        tensor([-0.3034,  1.9440])
        """,
        _INPLACE,
        None,
        _HIDDEN,
    ),
    "ReLU": (
        "relu",
        """
        >>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
        """,
        _INPLACE,
        None,
        _HIDDEN,
    ),
    "ReLU6": (
        "relu6",
        """
        >>> torch.nn.ReLU6()(torch.tensor([-1.0, 2.0, 9.0]))
        tensor([0., 2., 6.])
        """,
        _INPLACE,
        None,
        _HIDDEN,
    ),
    "RReLU": (
        "rrelu",
        """
        >>> torch.nn.RReLU().eval()(torch.tensor([-24.0, 2.0]))
        tensor([-5.5000,  2.0000])
        """,
        {"lower": 1 / 8, "upper": 1 / 3, **_INPLACE},
        None,
        {"with_training": True, "hides_inplace": True},
    ),
    "SELU": (
        "selu",
        """
        >>> torch.nn.SELU()(torch.tensor([-1.0, 2.0]))
        tensor([-1.1113,  2.1014])
        """,
        _INPLACE,
        None,
        _HIDDEN,
    ),
    "SiLU": (
        "silu",
        """
        >>> torch.nn.SiLU()(torch.tensor([-1.0, 2.0]))
        tensor([-0.2689,  1.7616])
        """,
        _INPLACE,
        None,
        _HIDDEN,
    ),
    "Sigmoid": (
        "sigmoid",
        """
        >>> torch.nn.Sigmoid()(torch.tensor([0.0, 2.0]))
        tensor([0.5000, 0.8808])
        """,
    ),
    "Softmax": (
        "softmax",
        """
        >>> torch.nn.Softmax(dim=0)(torch.tensor([0.0, 0.0, 1.0]))
        tensor([0.2119, 0.2119, 0.5761])
        """,
        {"dim": None},
        None,
        {"_check": _axis_check},
    ),
    "Softmin": (
        "softmin",
        """
        >>> torch.nn.Softmin(dim=0)(torch.tensor([0.0, 0.0, 1.0]))
        tensor([0.4223, 0.4223, 0.1554])
        """,
        {"dim": None},
    ),
    "Softplus": (
        "softplus",
        """
        >>> torch.nn.Softplus()(torch.tensor([-1.0, 0.0, 30.0]))
        tensor([ 0.3133,  0.6931, 30.0000])
        """,
        {"beta": 1.0, "threshold": 20.0},
    ),
    "Softshrink": (
        "softshrink",
        """
        >>> torch.nn.Softshrink()(torch.tensor([-1.0, 0.3, 2.0]))
        tensor([-0.5000,  0.0000,  1.5000])
        """,
        {"lambd": 0.5},
        "=lambd",
    ),
    "Softsign": (
        "softsign",
        """
        >>> torch.nn.Softsign()(torch.tensor([-1.0, 3.0]))
        tensor([-0.5000,  0.7500])
        """,
    ),
    "Tanh": (
        "tanh",
        """
        >>> torch.nn.Tanh()(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
        """,
    ),
    "Tanhshrink": (
        "tanhshrink",
        """
        >>> torch.nn.Tanhshrink()(torch.tensor([-1.0, 2.0]))
        tensor([-0.2384,  1.0360])
        """,
    ),
    "Threshold": (
        "threshold",
        """
        >>> torch.nn.Threshold(2.0, -1.0)(torch.tensor([1.0, 3.0]))
        tensor([-1.,  3.])
        """,
        {"threshold": REQUIRED, "value": REQUIRED, **_INPLACE},
        None,
        _HIDDEN,
    ),
    "AlphaDropout": (
        "alpha_dropout",
        """
        >>> torch.nn.AlphaDropout(0.2).eval()(torch.tensor([1.0, 2.0]))
        tensor([1., 2.])
        """,
        _DROPOUT,
        None,
        _RANDOM,
    ),
    "Dropout": (
        "dropout",
        """
        >>> sorted(set(torch.nn.Dropout(0.5)(torch.ones(1000)).tolist()))
        [0.0, 2.0]
        """,
        _DROPOUT,
        None,
        _RANDOM,
    ),
    "Dropout1d": (
        "dropout1d",
        """
        >>> x = torch.nn.Dropout1d(0.5)(torch.ones(99, 3))
        >>> bool((x == x[:, :1]).all())
        True
        """,
        _DROPOUT,
        None,
        _RANDOM,
    ),
    "Dropout2d": (
        "dropout2d",
        """
        >>> x = torch.nn.Dropout2d(0.5)(torch.ones(1, 99, 2, 2))
        >>> sorted(set(x.sum((2, 3))[0].tolist()))
        [0.0, 8.0]
        """,
        _DROPOUT,
        None,
        _RANDOM,
    ),
    "Dropout3d": (
        "dropout3d",
        """
        >>> x = torch.nn.Dropout3d(0.5)(torch.ones(1, 99, 1, 2, 2))
        >>> sorted(set(x.sum((2, 3, 4))[0].tolist()))
        [0.0, 8.0]
        """,
        _DROPOUT,
        None,
        _RANDOM,
    ),
    "FeatureAlphaDropout": (
        "feature_alpha_dropout",
        """
        >>> torch.nn.FeatureAlphaDropout(0.2).eval()(torch.tensor([1.0, 2.0]))
        tensor([1., 2.])
        """,
        _DROPOUT,
        None,
        _RANDOM,
    ),
    "AvgPool1d": (
        "avg_pool1d",
        """
        >>> torch.nn.AvgPool1d(2)(torch.tensor([[[1.0, 3.0, 5.0, 7.0]]]))
        tensor([[[2., 6.]]])
        """,
        _MEAN,
        _PADDED,
        {"_check": _in_tuples(1)},
    ),
    "AvgPool2d": (
        "avg_pool2d",
        """
        >>> torch.nn.AvgPool2d(2)(torch.tensor([[[[1.0, 3.0], [5.0, 7.0]]]]))
        tensor([[[[4.]]]])
        """,
        _MEANS,
        _PADDED,
        {"_check": _stride},
    ),
    "AvgPool3d": (
        "avg_pool3d",
        """
        >>> torch.nn.AvgPool3d(2)(torch.ones(1, 1, 4, 4, 2)).shape
        torch.Size([1, 1, 2, 2, 1])
        """,
        _MEANS,
        _PADDED,
        {"_check": _stride},
    ),
    "MaxPool1d": (
        "max_pool1d",
        """
        >>> torch.nn.MaxPool1d(2)(torch.tensor([[[1.0, 3.0, 5.0, 7.0]]]))
        tensor([[[3., 7.]]])
        """,
        _MAX,
        _MAX_SHOWN,
        {"_check": _stride},
    ),
    "MaxPool2d": (
        "max_pool2d",
        """
        >>> torch.nn.MaxPool2d(2)(torch.tensor([[[[1.0, 3.0], [5.0, 7.0]]]]))
        tensor([[[[7.]]]])
        """,
        _MAX,
        _MAX_SHOWN,
        {"_check": _stride},
    ),
    "MaxPool3d": (
        "max_pool3d",
        """
        >>> torch.nn.MaxPool3d(2)(torch.ones(1, 1, 4, 4, 2)).shape
        torch.Size([1, 1, 2, 2, 1])
        """,
        _MAX,
        _MAX_SHOWN,
        {"_check": _stride},
    ),
    "AdaptiveAvgPool1d": (
        "adaptive_avg_pool1d",
        """
        >>> torch.nn.AdaptiveAvgPool1d(2)(torch.tensor([[[1.0, 3.0, 5.0, 7.0]]]))
        tensor([[[2., 6.]]])
        """,
        _ADAPTIVE,
    ),
    "AdaptiveAvgPool2d": (
        "adaptive_avg_pool2d",
        """
        >>> torch.nn.AdaptiveAvgPool2d(1)(torch.tensor([[[[1.0, 3.0], [5.0, 7.0]]]]))
        tensor([[[[4.]]]])
        """,
        _ADAPTIVE,
    ),
    "AdaptiveAvgPool3d": (
        "adaptive_avg_pool3d",
        """
        >>> torch.nn.AdaptiveAvgPool3d((1, 2, 3))(torch.ones(1, 1, 4, 5, 6)).shape
        torch.Size([1, 1, 1, 2, 3])
        """,
        _ADAPTIVE,
    ),
    "AdaptiveMaxPool1d": (
        "adaptive_max_pool1d",
        """
        >>> torch.nn.AdaptiveMaxPool1d(2)(torch.tensor([[[1.0, 3.0, 5.0, 7.0]]]))
        tensor([[[3., 7.]]])
        """,
        {**_ADAPTIVE, "return_indices": False},
        "output_size",
    ),
    "AdaptiveMaxPool2d": (
        "adaptive_max_pool2d",
        """
        >>> torch.nn.AdaptiveMaxPool2d(1)(torch.tensor([[[[1.0, 3.0], [5.0, 7.0]]]]))
        tensor([[[[7.]]]])
        """,
        {**_ADAPTIVE, "return_indices": False},
        "output_size",
    ),
    "AdaptiveMaxPool3d": (
        "adaptive_max_pool3d",
        """
        >>> torch.nn.AdaptiveMaxPool3d((1, 2, 3))(torch.ones(1, 1, 4, 5, 6)).shape
        torch.Size([1, 1, 1, 2, 3])
        """,
        {**_ADAPTIVE, "return_indices": False},
        "output_size",
    ),
    "FractionalMaxPool2d": (
        "fractional_max_pool2d",
        """
        >>> x = torch.arange(9.0).reshape(1, 1, 3, 3)
        >>> torch.nn.FractionalMaxPool2d(2, output_size=2)(x)
        tensor([[[[4., 5.],
                  [7., 8.]]]])
        """,
        _FRACTIONAL,
        "",
        {"_check": _one_of_two(2), "buffers_among": ("_random_samples",)},
    ),
    "FractionalMaxPool3d": (
        "fractional_max_pool3d",
        """
        >>> x = torch.ones(1, 2, 6, 6, 6)
        >>> torch.nn.FractionalMaxPool3d(2, output_ratio=0.5)(x).shape
        torch.Size([1, 2, 3, 3, 3])
        """,
        _FRACTIONAL,
        "",
        {"_check": _one_of_two(3), "buffers_among": ("_random_samples",)},
    ),
    "LPPool1d": (
        "lp_pool1d",
        """
        >>> torch.nn.LPPool1d(2, 2)(torch.tensor([[[3.0, 4.0]]]))
        tensor([[[5.]]])
        """,
        {"norm_type": REQUIRED, **_POOLED_WHOLE},
    ),
    "LPPool2d": (
        "lp_pool2d",
        """
        >>> torch.nn.LPPool2d(2, 2)(torch.tensor([[[[1.0, 1.0], [1.0, 1.0]]]]))
        tensor([[[[2.]]]])
        """,
        {"norm_type": REQUIRED, **_POOLED_WHOLE},
    ),
    "LPPool3d": (
        "lp_pool3d",
        """
        >>> torch.nn.LPPool3d(2, 2)(torch.ones(1, 1, 4, 4, 2)).shape
        torch.Size([1, 1, 2, 2, 1])
        """,
        {"norm_type": REQUIRED, **_POOLED_WHOLE},
    ),
    "MaxUnpool1d": (
        "max_unpool1d",
        """
        >>> pool = torch.nn.MaxPool1d(2, return_indices=True)
        >>> torch.nn.MaxUnpool1d(2)(*pool(torch.tensor([[[1.0, 3.0, 5.0, 2.0]]])))
        tensor([[[0., 3., 5., 0.]]])
        """,
        _POOLED,
        None,
        {"_check": _in_tuples(1)},
    ),
    "MaxUnpool2d": (
        "max_unpool2d",
        """
        >>> pool = torch.nn.MaxPool2d(2, return_indices=True)
        >>> torch.nn.MaxUnpool2d(2)(*pool(torch.tensor([[[[1.0, 3.0], [5.0, 2.0]]]])))
        tensor([[[[0., 0.],
                  [5., 0.]]]])
        """,
        _POOLED,
        None,
        {"_check": _in_tuples(2)},
    ),
    "MaxUnpool3d": (
        "max_unpool3d",
        """
        >>> pool = torch.nn.MaxPool3d(2, return_indices=True)
        >>> torch.nn.MaxUnpool3d(2)(*pool(torch.ones(1, 1, 4, 4, 2))).shape
        torch.Size([1, 1, 4, 4, 2])
        """,
        _POOLED,
        None,
        {"_check": _in_tuples(3)},
    ),
    "ChannelShuffle": (
        "channel_shuffle",
        """
        >>> torch.nn.ChannelShuffle(2)(torch.arange(4.0).reshape(1, 4, 1)).flatten()
        tensor([0., 2., 1., 3.])
        """,
        {"groups": REQUIRED},
    ),
    "CosineSimilarity": (
        "cosine_similarity",
        """
        >>> torch.nn.CosineSimilarity()(torch.eye(2), torch.ones(2, 2))
        tensor([0.7071, 0.7071])
        """,
        {"dim": 1, "eps": 1e-8},
        "",
    ),
    "PairwiseDistance": (
        "pairwise_distance",
        """
        >>> torch.nn.PairwiseDistance()(torch.zeros(1, 2), torch.tensor([[3.0, 4.0]]))
        tensor([5.0000])
        """,
        {"p": 2.0, "eps": 1e-6, "keepdim": False},
        "",
    ),
    "Fold": (
        "fold",
        """
        >>> torch.nn.Fold((3, 3), 2)(torch.ones(1, 4, 4))
        tensor([[[[1., 2., 1.],
                  [2., 4., 2.],
                  [1., 2., 1.]]]])
        """,
        {
            "output_size": REQUIRED,
            "kernel_size": REQUIRED,
            "dilation": 1,
            "padding": 0,
            "stride": 1,
        },
    ),
    "Unfold": (
        "unfold",
        """
        >>> torch.nn.Unfold(2)(torch.arange(4.0).reshape(1, 1, 2, 2))
        tensor([[[0.],
                 [1.],
                 [2.],
                 [3.]]])
        """,
        {"kernel_size": REQUIRED, "dilation": 1, "padding": 0, "stride": 1},
    ),
    "PixelShuffle": (
        "pixel_shuffle",
        """
        >>> torch.nn.PixelShuffle(2)(torch.arange(4.0).reshape(1, 4, 1, 1))
        tensor([[[[0., 1.],
                  [2., 3.]]]])
        """,
        {"upscale_factor": REQUIRED},
    ),
    "PixelUnshuffle": (
        "pixel_unshuffle",
        """
        >>> torch.nn.PixelUnshuffle(2)(torch.ones(1, 1, 4, 6)).shape
        torch.Size([1, 4, 2, 3])
        """,
        {"downscale_factor": REQUIRED},
    ),
    "LocalResponseNorm": (
        "local_response_norm",
        """
        >>> torch.nn.LocalResponseNorm(2, 1.0, 1.0)(torch.ones(1, 2, 1)).flatten()
        tensor([0.6667, 0.5000])
        """,
        {"size": REQUIRED, "alpha": 1e-4, "beta": 0.75, "k": 1.0},
        "=size alpha beta k",
    ),
}
_LOSSES: dict[str, Any] = {
    "BCELoss": (
        "binary_cross_entropy",
        """
        >>> torch.nn.BCELoss()(torch.tensor([0.5, 0.9]), torch.tensor([1.0, 1.0]))
        tensor(0.3993)
        """,
        _WEIGHTED,
    ),
    "BCEWithLogitsLoss": (
        "binary_cross_entropy_with_logits",
        """
        >>> torch.nn.BCEWithLogitsLoss()(torch.tensor([0.0, 1000.0]), torch.ones(2))
        tensor(0.3466)
        """,
        {**_WEIGHTED, "pos_weight": None},
    ),
    "CTCLoss": (
        "ctc_loss",
        """
        >>> logs = torch.zeros(3, 1, 2).log_softmax(2)
        >>> torch.nn.CTCLoss()(logs, torch.tensor([[1]]), (3,), (1,))
        tensor(0.2877)
        """,
        {"blank": 0, "reduction": "mean", "zero_infinity": False},
    ),
    "CosineEmbeddingLoss": (
        "cosine_embedding_loss",
        """
        >>> x, y = torch.eye(2), torch.ones(2, 2)
        >>> torch.nn.CosineEmbeddingLoss()(x, y, torch.ones(2))
        tensor(0.2929)
        """,
        {"margin": 0.0, **_REDUCED},
    ),
    "CrossEntropyLoss": (
        "cross_entropy",
        """
        >>> torch.nn.CrossEntropyLoss()(torch.tensor([[0.0, 2.0]]), torch.tensor([1]))
        tensor(0.1269)
        """,
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
        "gaussian_nll_loss",
        """
        >>> torch.nn.GaussianNLLLoss()(*torch.tensor([[1.0], [3.0], [4.0]]))
        tensor(1.1931)
        """,
        {"full": False, "eps": 1e-6, "reduction": "mean"},
    ),
    "HingeEmbeddingLoss": (
        "hinge_embedding_loss",
        """
        >>> x = torch.tensor([0.5, 0.2])
        >>> torch.nn.HingeEmbeddingLoss()(x, torch.tensor([1, -1]))
        tensor(0.6500)
        """,
        {"margin": 1.0, **_REDUCED},
    ),
    "HuberLoss": (
        "huber_loss",
        """
        >>> torch.nn.HuberLoss(delta=2.0)(torch.tensor([3.0]), torch.tensor([0.0]))
        tensor(4.)
        """,
        {"reduction": "mean", "delta": 1.0},
    ),
    "KLDivLoss": (
        "kl_div",
        """
        >>> p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.75])
        >>> torch.nn.KLDivLoss(reduction="sum")(q.log(), p)
        tensor(0.1438)
        """,
        {**_REDUCED, "log_target": False},
    ),
    "L1Loss": (
        "l1_loss",
        """
        >>> torch.nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(1.)
        """,
        _REDUCED,
    ),
    "MSELoss": (
        "mse_loss",
        """
        >>> torch.nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)
        """,
        _REDUCED,
    ),
    "MarginRankingLoss": (
        "margin_ranking_loss",
        """
        >>> x, y = torch.zeros(1), torch.ones(1)
        >>> torch.nn.MarginRankingLoss()(x, y, torch.tensor([1]))
        tensor(1.)
        """,
        {"margin": 0.0, **_REDUCED},
    ),
    "MultiLabelMarginLoss": (
        "multilabel_margin_loss",
        """
        >>> x = torch.tensor([0.1, 0.2, 0.4, 0.8])
        >>> torch.nn.MultiLabelMarginLoss()(x, torch.tensor([3, 0, -1, 1]))
        tensor(0.8500)
        """,
        _REDUCED,
    ),
    "MultiLabelSoftMarginLoss": (
        "multilabel_soft_margin_loss",
        """
        >>> torch.nn.MultiLabelSoftMarginLoss()(torch.zeros(1, 3), torch.eye(3)[:1])
        tensor(0.6931)
        """,
        _WEIGHTED,
    ),
    "MultiMarginLoss": (
        "multi_margin_loss",
        """
        >>> x = torch.tensor([[0.0, 0.5, 2.0]])
        >>> torch.nn.MultiMarginLoss()(x, torch.tensor([1]))
        tensor(1.)
        """,
        {"p": 1, "margin": 1.0, "weight": None, **_REDUCED},
    ),
    "NLLLoss": (
        "nll_loss",
        """
        >>> torch.nn.NLLLoss()(torch.tensor([[0.25, 0.75]]).log(), torch.tensor([0]))
        tensor(1.3863)
        """,
        {
            "weight": None,
            "size_average": None,
            "ignore_index": -100,
            "reduce": None,
            "reduction": "mean",
        },
    ),
    "PoissonNLLLoss": (
        "poisson_nll_loss",
        """
        >>> torch.nn.PoissonNLLLoss()(torch.tensor([0.0]), torch.tensor([2.0]))
        tensor(1.)
        """,
        {
            "log_input": True,
            "full": False,
            "size_average": None,
            "eps": 1e-8,
            "reduce": None,
            "reduction": "mean",
        },
    ),
    "SmoothL1Loss": (
        "smooth_l1_loss",
        """
        >>> torch.nn.SmoothL1Loss()(torch.tensor([3.0]), torch.tensor([0.0]))
        tensor(2.5000)
        """,
        {**_REDUCED, "beta": 1.0},
    ),
    "SoftMarginLoss": (
        "soft_margin_loss",
        """
        >>> x = torch.tensor([0.0, 9.0])
        >>> torch.nn.SoftMarginLoss()(x, torch.tensor([1.0, 1.0]))
        tensor(0.3466)
        """,
        _REDUCED,
    ),
    "TripletMarginLoss": (
        "triplet_margin_loss",
        """
        >>> x, far = torch.zeros(1, 2), torch.tensor([[0.3, 0.4]])
        >>> torch.nn.TripletMarginLoss()(x, x, far)
        tensor(0.5000)
        """,
        {"margin": 1.0, "p": 2.0, "eps": 1e-6, "swap": False, **_REDUCED},
    ),
    "TripletMarginWithDistanceLoss": (
        "triplet_margin_with_distance_loss",
        """
        >>> x, far = torch.zeros(1, 2), torch.tensor([[0.3, 0.4]])
        >>> torch.nn.TripletMarginWithDistanceLoss(margin=2.0)(x, x, far)
        tensor(1.5000)
        """,
        {
            "distance_function": None,
            "margin": 1.0,
            "swap": False,
            "reduction": "mean",
        },
    ),
}


# The classes of all layers that differ in their axes, for those that programs define.
KINDS: dict[str, Any] = {
    # name: the function's, options, those that are printed, its attributes
    "_DropoutNd": ("dropout", _DROPOUT, None, _RANDOM),
    "_MaxPoolNd": ("max_pool2d", _MAX, _MAX_SHOWN, {"_check": _stride}),
    "_AvgPoolNd": ("avg_pool2d", _MEAN, _PADDED, {"_check": _stride}),
    "_LPPoolNd": ("lp_pool2d", CLASSES["LPPool2d"][2], None, {}),
    "_MaxUnpoolNd": ("max_unpool2d", _POOLED, None, {}),
    "_AdaptiveAvgPoolNd": ("adaptive_avg_pool2d", _ADAPTIVE, None, {}),
    "_AdaptiveMaxPoolNd": (
        "adaptive_max_pool2d",
        CLASSES["AdaptiveMaxPool2d"][2],
        None,
        {},
    ),
}
NAMES = CLASSES.keys() | _LOSSES.keys() | KINDS.keys()
_MADE: dict[str, Any] = {}
_SELDOM = "lantern.torch.nn.functional.seldom"


def made(name: str) -> Any:
    """The class of a name in the table, the same each time.

    Args:
        name: one of ``NAMES``.
    """
    return _MADE.get(name) or _MADE.setdefault(name, _new(name))


def _new(name: str) -> Any:
    if name in KINDS:
        function, options, shown, attributes = KINDS[name]
        return layer(name, _function(function), options, shown, **attributes)
    more: dict[str, Any]
    if name in _LOSSES:
        row, printed = _LOSSES[name], ""
        base = WeightedLoss if "weight" in row[2] else Loss
        buffers = ("weight", "pos_weight")
        more = {"base": base, "buffers_among": buffers, "_check": _old_names}
    else:
        row, printed, more = CLASSES[name], None, {"base": _kind(name)}
    row += (None, printed, {})[len(row) - 2 :]
    function, example, options, shown, attributes = row
    cls = layer(name, _function(function), options, shown, **attributes, **more)
    return documented(cls, example)


def _function(name: str) -> Any:
    # Where nobody puts another in its place, as a test does for a while, or a tracer.
    place = usual if name in vars(usual) else import_module(_SELDOM)
    function = getattr(place, name)
    return _unpool(function) if "unpool" in name else function


def _kind(name: str) -> Any:
    """The class of all layers like one."""
    kind = "_DropoutNd" if "Dropout" in name else f"_{name[:-2]}Nd"
    return made(kind) if kind in KINDS else Simple
