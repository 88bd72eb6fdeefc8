"""What layers refuse, warn of, and take although it is empty; as PyTorch does."""

import warnings

import numpy as np
import pytest

import lantern.torch as torch

pytorch = pytest.importorskip(
    "torch", reason="the peer that this face is compared with"
)
KINDS = RuntimeError, ValueError, TypeError, AssertionError
# What is refused by both: a call of a library, and words that both say.
REFUSED = {
    "mode of a transpose": (
        lambda torch: torch.nn.ConvTranspose2d(3, 3, 3, padding_mode="reflect"),
        'Only "zeros" ',
    ),
    "columns of unfold": (
        lambda torch: torch.nn.Unfold((2, 3))(torch.ones(1, 2, 2, 2)),
        "its components must be at least one",
    ),
    "no channels to unfold": (
        lambda torch: torch.nn.Unfold(2)(torch.ones(0, 0, 3, 3)),
        "Expected 3D or 4D",
    ),
    "columns of fold": (
        lambda torch: torch.nn.Fold((4, 5), (2, 3))(torch.ones(1, 5, 9)),
        "be divisible by the product of kernel_size",
    ),
    "windows of fold": (
        lambda torch: torch.nn.Fold((4, 5), (2, 3))(torch.ones(1, 6, 10)),
        "match the calculated number of sliding blocks",
    ),
    "image of fold": (
        lambda torch: torch.nn.Fold((4, 5), 2, dilation=8)(torch.ones(1, 12, 12)),
        "calculated shape of the array of sliding blocks as",
    ),
    "axes of dropout1d": (
        lambda torch: torch.nn.Dropout1d()(torch.ones(1, 2, 2, 2)),
        "Expected 2D or 3D input, but received a 4D input",
    ),
    "slope that is no number": (
        lambda torch: torch.nn.init.calculate_gain("leaky_relu", True),
        "not a valid number",
    ),
    "no sequences": (
        lambda torch: torch.nn.utils.rnn.pad_sequence(5),
        "Expected iterable for input sequences",
    ),
    "empty sequences": (
        lambda torch: torch.nn.utils.rnn.pack_padded_sequence(torch.ones(0, 0), []),
        "empty tensor",
    ),
    "more lengths than sequences": (
        lambda torch: torch.nn.utils.rnn.pack_padded_sequence(
            torch.ones(3, 2), [3, 2, 1]
        ),
        "batch_size",
    ),
    "windows of another number": (
        lambda torch: torch.nn.functional.max_pool2d(torch.ones(1, 9, 9), (2, 2, 2)),
        "must either be a single int, or a tuple of",
    ),
    "whole numbers": (
        lambda torch: torch.nn.AdaptiveMaxPool2d(2)(torch.ones(4, 4, 4).long()),
        "not implemented for",
    ),
    "channels of a random pool": (
        lambda torch: torch.nn.FractionalMaxPool2d(3, output_size=2)(
            torch.ones(1, 0, 9, 9)
        ),
        "Expected input",
    ),
    "ratios of a random pool": (
        lambda torch: torch.nn.functional.fractional_max_pool2d(
            torch.ones(1, 1, 9, 9), 2, output_ratio=(0.5, 0.5, 0.5)
        ),
        "output_ratio to either be a single Int or tuple of",
    ),
    "a loss of negative beta": (
        lambda torch: torch.nn.functional.smooth_l1_loss(
            torch.ones(2), torch.ones(2), beta=-1.0
        ),
        "does not support negative values for beta",
    ),
    "axes of cosines": (
        lambda torch: torch.nn.functional.cosine_embedding_loss(
            torch.ones(10), torch.ones(10), torch.ones(10)
        ),
        "1D target tensor expects 2D input tensors",
    ),
    "cosines of whole numbers": (
        lambda torch: torch.nn.functional.cosine_similarity(
            torch.ones(1, 2).long(), torch.ones(1, 2).long()
        ),
        "expected common dtype to be floating point",
    ),
    "sets of no classes": (
        lambda torch: torch.nn.MultiLabelMarginLoss()(
            torch.ones(9, 0), torch.ones(9, 0).long()
        ),
        "Expected",
    ),
    "classes of nothing": (
        lambda torch: torch.nn.functional.one_hot(torch.ones(4, 0).long()),
        "Can not infer total number of classes from empty tensor",
    ),
    "no classes": (
        lambda torch: torch.nn.functional.one_hot(torch.tensor([3]), -2),
        "smaller than num_classes",
    ),
    "a scalar for a layer": (
        lambda torch: torch.nn.Linear(1, 1)(torch.tensor(1.0)),
        "both arguments to .* need to be at least 1D",
    ),
    "nothing to normalise over": (
        lambda torch: torch.nn.functional.layer_norm(torch.ones(2), ()),
        "Expected normalized_shape to be at least 1-dimensional",
    ),
    "channels to normalise": (
        lambda torch: torch.nn.InstanceNorm1d(3, affine=True)(torch.ones(2, 4, 5)),
        "expected input's size at dim=",
    ),
    "more padding than there is": (
        lambda torch: torch.nn.functional.pad(torch.ones(1, 1, 4), (-3, -2)),
        "negative",
    ),
    "reflections of nothing": (
        lambda torch: torch.nn.ReflectionPad1d(2)(torch.ones(3, 0, 10)),
        "2D or 3D",
    ),
    "channels of pixels": (
        lambda torch: torch.nn.PixelShuffle(2)(torch.ones(5, 3, 3)),
        "divisible by the square of",
    ),
    "pixels of channels": (
        lambda torch: torch.nn.PixelUnshuffle(2)(torch.ones(1, 3, 4)),
        "divisible by",
    ),
    "a negative factor": (
        lambda torch: torch.nn.PixelShuffle(-2)(torch.ones(4, 3, 3)),
        "expects a positive",
    ),
    "half a pixel": (
        lambda torch: torch.nn.functional.interpolate(torch.ones(1, 1, 2), (2.0,)),
        "expected size to be one of int or",
    ),
    "no pixels": (
        lambda torch: torch.nn.functional.interpolate(
            torch.ones(1, 1, 2, 2), scale_factor=-1.0, mode="bilinear"
        ),
        "sizes should be greater than 0",
    ),
    "axes of affine maps": (
        lambda torch: torch.nn.functional.affine_grid(
            torch.ones(1, 2, 3), (1, 2, 2), align_corners=False
        ),
        "only supports 4D and 5D sizes",
    ),
    "a grid for other examples": (
        lambda torch: torch.nn.functional.grid_sample(
            torch.ones(1, 1, 2, 2), torch.ones(2, 1, 1, 2), align_corners=False
        ),
        "expected grid and input to have same batch size",
    ),
    "a grid of other axes": (
        lambda torch: torch.nn.functional.grid_sample(
            torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 3), align_corners=False
        ),
        "expected grid to have size 2 in last dimension",
    ),
    "a module's whole numbers": (
        lambda torch: torch.nn.Linear(1, 1).to(torch.device("cpu"), True),
        "to",
    ),
    "a module's copy": (
        lambda torch: torch.nn.Linear(1, 1).to("cpu", copy=True),
        "copy",
    ),
    "a module's place": (lambda torch: torch.nn.Linear(1, 1).to([]), "to"),
    "a hint without a mask": (
        lambda torch: attended(torch, is_causal=True),
        "Need attn_mask if specifying the is_causal hint",
    ),
    "a mask of whole numbers": (
        lambda torch: attended(torch, key_padding_mask=torch.ones(1, 3).int()),
        "only bool and floating types of key_padding_mask are supported",
    ),
    "a mask for other keys": (
        lambda torch: attended(torch, key_padding_mask=torch.ones(1, 4) > 0),
        "4",
    ),
    "axes of a mask": (
        lambda torch: attended(torch, attn_mask=torch.ones(3) > 0),
        "expected `attn_mask` to be `None`, 2-D or 3-D",
    ),
    "a mask and a hint": (
        lambda torch: torch.nn.functional.scaled_dot_product_attention(
            *[torch.ones(1, 2, 4)] * 3,
            attn_mask=torch.ones(2, 2) > 0,
            is_causal=True,
        ),
        "Explicit attn_mask should not be set when is_causal=True",
    ),
    "sentences for other examples": (
        lambda torch: torch.nn.Transformer(4, 2, 1, 1, 4, batch_first=True)(
            torch.ones(2, 3, 4), torch.ones(1, 3, 4)
        ),
        "the batch number of src and tgt must be equal",
    ),
}


def attended(torch, **options):
    """What attention of ones to themselves gives."""
    x = torch.ones(3, 1, 4)
    return torch.nn.MultiheadAttention(4, 1)(x, x, x, **options)


@pytest.mark.parametrize("name", REFUSED)
def test_what_both_refuse(name):
    call, words = REFUSED[name]
    raised = []
    for library in (torch, pytorch):
        with pytest.raises(KINDS, match=words) as found:
            call(library)
        raised.append(found.type)
    ours, theirs = raised
    assert issubclass(ours, theirs.__mro__[-4])  # of Python's own classes


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: t.nn.Dropout2d()(t.ones(1, 2)), "Received a 2-D input to dropout2d"),
        (lambda t: t.nn.Dropout2d()(t.ones(1, 2, 2)), "1D dropout behavior is desired"),
        (lambda t: t.nn.Dropout3d()(t.ones(1, 2, 2)), "Received a 3-D input to dropou"),
        (lambda t: t.nn.init.kaiming_normal_(t.ones(0, 1)), "zero-element tensors"),
        (lambda t: t.nn.init.kaiming_uniform_(t.ones(0, 1)), "zero-element tensors"),
        (
            lambda t: t.nn.InstanceNorm1d(3)(t.ones(2, 4, 5)),
            "not used because affine=False",
        ),
        (
            lambda t: t.nn.functional.affine_grid(
                t.ones(1, 2, 3), (1, 1, 2, 1), align_corners=True
            ),
            "See the documentation of affine_grid",
        ),
    ],
)
def test_what_both_warn_of(call, words):
    for library in (torch, pytorch):
        with pytest.warns(UserWarning, match=words):
            call(library)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("ndim", [2, 3, 4, 5, 6])
def test_which_elements_are_dropped_together(axes, ndim):
    along = []
    for library in (torch, pytorch):
        library.manual_seed(0)
        x = library.ones([8, 7, 3, 2, 2, 2][:ndim])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                z = getattr(library.nn.functional, f"dropout{axes}d")(x)
        except RuntimeError:
            along.append(None)
            continue
        along.append([bool((z == z.narrow(i, 0, 1)).all()) for i in range(ndim)])
    assert along[0] == along[1]


def test_dropout_leaves_the_order_of_axes_in_memory():
    x = torch.ones(4, 3, 5).permute(2, 0, 1)
    z = torch.nn.functional.dropout(x, 0.5)
    assert z.stride() == x.stride()


def test_convolutions_of_no_examples_have_zeros_as_gradients():
    for axes in (1, 2, 3):
        for name in ("Conv", "ConvTranspose"):
            layer = getattr(torch.nn, f"{name}{axes}d")(2, 4, 3)
            x = torch.ones(0, 2, *[5] * axes, requires_grad=True)
            layer(x).sum().backward()
            assert x.grad.shape == x.shape
            assert not any(p.grad.any() for p in layer.parameters())


def test_without_channels_a_convolution_is_its_bias():
    # PyTorch gives no channels at all.
    with pytest.warns(UserWarning, match="zero-element"):
        layer = torch.nn.Conv1d(0, 4, 2)
    layer.bias.data.fill_(3.0)
    x = torch.ones(2, 0, 5, requires_grad=True)
    z = layer(x)
    z.sum().backward()
    assert z.shape == (2, 4, 4)
    assert bool((z == 3).all())
    assert layer.bias.grad.tolist() == [8.0] * 4


def test_tables_of_small_whole_numbers():
    for kind in ("uint8", "int16", "int64"):
        table = torch.tensor([[1, 2], [3, 4]], dtype=getattr(torch, kind))
        layer = torch.nn.Embedding.from_pretrained(table)
        assert layer(torch.tensor([1, 0])).tolist() == [[3, 4], [1, 2]]


def test_convolution_with_time_first():
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(size=s) for s in ((9, 4, 5), (3, 5, 6), (6,)))
    ours = torch.nn.functional.conv_tbc(*map(torch.tensor, (x, w, b)), 2)
    theirs = pytorch.conv_tbc(*map(pytorch.tensor, (x, w, b)), 2)
    np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


def test_packed_sequences_are_converted_as_a_whole():
    rows = [torch.tensor([1, 2]), torch.tensor([3])]
    packed = torch.nn.utils.rnn.pack_sequence(rows, enforce_sorted=False)
    for name, kind in (("double", "float64"), ("half", "float16"), ("int", "int32")):
        made = getattr(packed, name)()
        assert made.data.dtype is getattr(torch, kind)
        assert made.sorted_indices.tolist() == packed.sorted_indices.tolist()
    assert packed.long() is packed.cpu() is packed.to("cpu") is packed
    assert not packed.is_cuda


def test_the_places_of_the_largest():
    rng = np.random.default_rng(0)
    for axes in (1, 2, 3):
        x = rng.normal(size=(2, 3, *[6] * axes))
        for name in (f"max_pool{axes}d", f"adaptive_max_pool{axes}d"):
            found = [
                getattr(library.nn.functional, f"{name}_with_indices")(
                    library.tensor(x), 2
                )
                for library in (torch, pytorch)
            ]
            for ours, theirs in zip(*found, strict=True):
                np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_places_may_be_written_to_before_the_way_back():
    x = torch.tensor([[[1.0, 3.0, 2.0, 5.0]]], requires_grad=True)
    for name in ("MaxPool1d", "AdaptiveMaxPool1d"):
        x.grad = None
        z, where = getattr(torch.nn, name)(2, return_indices=True)(x)
        where.add_(1)
        z.sum().backward()
        assert x.grad.tolist() == [[[0, 1, 0, 1]]]


def test_unpooling_takes_the_size_as_its_third_argument():
    found = []
    for library in (torch, pytorch):
        x = library.arange(36.0).reshape(1, 1, 6, 6)
        z, where = library.nn.MaxPool2d(3, stride=2, return_indices=True)(x)
        unpool = library.nn.MaxUnpool2d(3, stride=2)
        found.append(unpool(z, where, (6, 6)).tolist())
        empty = unpool(z[:0], where[:0])
        assert tuple(empty.shape) == (0, 1, 5, 5)
    assert found[0] == found[1]


def test_layers_take_no_features_and_no_batch():
    for shape, n, m in (((3, 4, 0), 0, 5), ((3, 4, 5), 5, 0), ((0, 4, 3), 3, 2)):
        x = torch.ones(shape, requires_grad=True)
        w, b = torch.ones(m, n, requires_grad=True), torch.ones(m, requires_grad=True)
        z = torch.nn.functional.linear(x, w, b)
        z.sum().backward()
        assert tuple(z.shape) == (*shape[:2], m)
        assert x.grad.shape == x.shape
        assert w.grad.shape == w.shape
        assert b.grad.tolist() == [shape[0] * shape[1]] * m
    for training in (True, False):
        none = torch.zeros(0)
        z = torch.nn.functional.batch_norm(none, none, none, training=training)
        assert tuple(z.shape) == (0,)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_pools_of_one_picture_want_channels_and_adaptive_ones_do_not(axes):
    functions, picture = torch.nn.functional, (3,) * axes
    for name in ("max_pool", "avg_pool"):
        pool = getattr(functions, f"{name}{axes}d")
        with pytest.raises(RuntimeError, match="optional 0 dim batch size"):
            pool(torch.zeros(0, *picture), 1)
        assert tuple(pool(torch.zeros(0, 2, *picture), 1).shape) == (0, 2, *picture)
    for name in ("adaptive_avg_pool", "adaptive_max_pool"):
        pool = getattr(functions, f"{name}{axes}d")
        assert tuple(pool(torch.zeros(0, *picture), 1).shape) == (0, *[1] * axes)


def test_layers_refuse_what_has_no_channels_and_axes_that_are_no_ints():
    for shape, what in (((1, 0, 2), "number of channels"), ((1, 2, 0), "HxW")):
        with pytest.raises(RuntimeError, match=f"Expected {what} to be greater"):
            torch.nn.functional.group_norm(torch.zeros(shape), 1)
    for layer in (torch.nn.Softmax, torch.nn.LogSoftmax):
        for dim in ("x", 1.5, True):
            with pytest.raises(TypeError, match="dim must be an int or None"):
                layer(dim=dim)
        assert layer(dim=None).dim is None


def test_samples_of_more_examples_than_there_are():
    samples = torch.full((2, 4, 3), 0.5)
    layer = torch.nn.FractionalMaxPool3d(2, output_size=2, _random_samples=samples)
    x = torch.arange(500.0).reshape(4, 5, 5, 5)
    torch.testing.assert_close(layer(x), layer(torch.stack([x, x]))[0])


def test_crossed_limits_of_logit():
    x = torch.tensor([0.1, 0.5, 0.6, 0.7], requires_grad=True)
    z = torch.logit(x, 0.6)  # below 0.6 it is 0.6, else at most 0.4
    z.sum().backward()
    bound = float(torch.logit(torch.tensor(0.6)))
    torch.testing.assert_close(z.detach(), torch.tensor([bound, bound, -bound, -bound]))
    assert x.grad.tolist() == [0.0] * 4
