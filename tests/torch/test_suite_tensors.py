"""What PyTorch's own test files ask of tensors: memory, forms, refusals, checks."""

import warnings

import numpy as np
import pytest

import lantern.torch as torch

pytorch = pytest.importorskip(
    "torch", reason="the peer that this face is compared with"
)

ALIKE = """
torch.empty_strided((2, 3), (1, 2)).stride()
torch.empty_strided((2, 3), (7, 2), dtype=torch.int16).stride()
torch.empty_strided((), ()).shape
torch.empty_strided((0, 3), (3, 1), requires_grad=True).shape
torch.ones(2).double().new_empty_strided((2, 3), (0, 2)).stride()
torch.ones(2).double().new_empty_strided((2, 3), (1, 2)).dtype
torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last).stride()
torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last).clone().stride()
torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride()
torch.ones(2, 3, 4, 5).is_contiguous(memory_format=torch.channels_last)
torch.empty_like(torch.ones(3, 4).t(), memory_format=torch.contiguous_format).stride()
torch.rand_like(torch.ones(3, 4).t()).stride()
torch.randn(10, 8).t()[::2, ::2].clone().stride()
torch.ones(4, 3).t().clone().stride()
torch.ones(1, 3).expand(4, 3).clone().stride()
torch.empty(0, 1, 2, 0).stride()
torch.empty(2, 3).t().resize_as_(torch.empty(3, 2)).stride()
torch.arange(12.0).reshape(3, 4).storage().tolist()
torch.arange(6)[2:].storage().size()
torch.ones(2).set_(torch.arange(6.0).storage(), 1, (2, 2), (2, 1))
torch.FloatStorage([1, 2]).type(), torch.LongStorage(3).nbytes()
torch.ShortStorage.from_buffer(bytes([1, 2, 3, 4]), "big").tolist()
isinstance(torch.ones(1).storage(), torch.FloatStorage)
torch.FloatTensor(torch.arange(3.0).storage())
torch.arange(3.0).new(size=(2, 2)).shape
torch.arange(3.0).new((3, 4))
torch.ones(3, dtype=torch.int32).type(torch.Tensor).dtype
torch.arange(24, dtype=torch.uint8).view(2, 12).view(torch.int32)
torch.arange(4, dtype=torch.int32).view(2, 2).view(torch.uint8).shape
torch.zeros(2, dtype=float).dtype, torch.zeros(2, dtype=complex).dtype
list(reversed(torch.arange(3)))
reversed(torch.arange(6).reshape(2, 3))
torch.Size([1, 2]) * 2
[x.shape for x in torch.chunk(torch.empty(0, 2), 3)]
torch.split_copy(torch.arange(3), 2)
torch.tensor([0, 1], dtype=torch.uint8) + 1000
torch.tensor([3], dtype=torch.int8) * -300
torch.zeros(3, dtype=torch.uint8).index_add(0, torch.tensor([1]), torch.ones(1, dtype=torch.uint8), alpha=-1)
torch.ones(2).map2_(torch.tensor([3.0, 4.0]), torch.tensor(2.0), lambda a, b, c: a + b * c)
torch.arange(4.0).scatter(0, torch.zeros(0, 4, dtype=torch.int64), torch.zeros(0, 4))
torch.gather(torch.arange(3), 0, torch.tensor(1))
torch.promote_types(torch.complex32, torch.complex32)
torch.isclose(torch.ones(2), torch.ones(2), torch.tensor(1.5), torch.tensor(1))
torch.bernoulli(torch.ones(3), out=torch.zeros(3, dtype=torch.uint8))
torch.logcumsumexp(torch.empty(0, 2), 0).shape
torch._debug_has_internal_overlap(torch.randn(1, 3).expand(4, 3))
torch.arange(0., 4), torch.arange(start=0.0, end=4), torch.arange(0.0, 4, dtype=torch.int64)
torch.tensor(1)[torch.tensor(1, dtype=torch.uint8)], torch.tensor(1)[torch.tensor(False)]
torch.arange(3)[None, torch.tensor(1, dtype=torch.uint8)], torch.arange(3)[torch.tensor(1)]
torch.zeros(2, dtype=torch.int64).index_add(0, torch.tensor([0]), torch.tensor([3]), alpha=2.5)
torch.view_as_complex(torch.ones(0, 2))
torch.logcumsumexp(torch.ones(2), axis=0), torch.unique_consecutive(torch.ones(2), dim=0)
torch.median(torch.tensor([], dtype=torch.int64)), torch.nanmedian(torch.tensor([], dtype=torch.uint8))
torch.repeat_interleave(torch.tensor([1, 2], dtype=torch.int32)), torch.chain_matmul(torch.ones(1, 2))
torch.div(torch.tensor([5], dtype=torch.uint8), -2, rounding_mode="trunc"), torch.tensor([5], dtype=torch.uint8) // -2
torch.tensor([5], dtype=torch.uint8) & -2, torch.tensor([5], dtype=torch.uint8) % -2
torch.clamp(torch.tensor([5], dtype=torch.uint8), -2), torch.clamp(torch.tensor([5], dtype=torch.uint8), torch.tensor(-2))
torch.tensor([16777217]) == torch.tensor([16777216.0]), torch.tensor([1], dtype=torch.uint8) & torch.tensor(-1, dtype=torch.int8)
torch.tensor([2, 1, -1, -1, 0, 3]) ** torch.tensor([-1, -2, -3, -2, -1, 2])
torch.pow(2, torch.tensor([-1, 2])), torch.tensor([2, -1]) ** torch.tensor(-1)
torch.tensor([2, 1], dtype=torch.uint8) ** torch.tensor([-1, -1], dtype=torch.int8)
torch.where(torch.tensor(5)), torch.where(torch.tensor(0))
torch.angle(torch.tensor([-0.0, -1.0, float("nan"), 2.0])), torch.angle(torch.tensor(-2))
torch.block_diag(torch.tensor([[1]]), torch.tensor([[1.0]])), torch.inner(torch.tensor(2), torch.tensor([1.0, 2.0]))
torch.kron(torch.tensor([2]), torch.tensor([1.0, 2.0])), torch.erfinv(torch.tensor([0.5]).half())
torch.xlogy(torch.ones(2), 2), torch.xlogy(2, torch.ones(2)), torch.special.xlog1py(torch.ones(2), 2.0)
torch.remainder(torch.empty(0, dtype=torch.int64), 0), torch.empty(0, dtype=torch.int64) // 0
torch.sum(x=torch.ones(2, 2), axis=1), torch.mean(a=torch.ones(2))
torch.bincount(torch.tensor([], dtype=torch.int64), minlength=2)
torch.sum(torch.ones(3) * 1.5, 0, out=torch.tensor(0)), torch.prod(torch.ones(3) * 1.5, 0, out=torch.tensor(0))
torch.cumsum(torch.ones(3) * 1.5, 0, out=torch.zeros(3, dtype=torch.int64))
torch.cumprod(torch.ones(3) * 1.5, 0, out=torch.zeros(3, dtype=torch.int64))
torch.cumsum(torch.full((9,), 9e3).half(), 0, out=torch.zeros(9))
torch.argmax(torch.ones(2, 0, 4), dim=2), torch.median(torch.ones(2, 0, 4), dim=2).indices
"""  # noqa: E501  # an expression a line


@pytest.mark.parametrize("expression", ALIKE.strip().splitlines())
def test_an_expression_gives_what_pytorch_gives(expression):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns of its typed storages
        mine = eval(expression, {"torch": torch})
        theirs = eval(expression, {"torch": pytorch})
    assert repr(mine).replace("lantern.", "") == repr(theirs)


REFUSED = """
RuntimeError | torch.empty_strided((2, 3), (1,))
RuntimeError | torch.empty_strided((2, 3), (1, -1))
TypeError | torch.ones(2).__delitem__(0)
IndexError | torch.ones(2, 5).index_copy_(1, torch.full((2,), -1), torch.ones(2, 2))
IndexError | torch.ones(2).index_add(0, torch.tensor([2]), torch.ones(1))
RuntimeError | torch.promote_types(torch.float8_e5m2, torch.float)
RuntimeError | torch.ones(()).index_add(0, torch.tensor([0]), torch.ones(1, 1, 1))
RuntimeError | torch.ones(2).masked_select(torch.ones(2, dtype=torch.uint8))
RuntimeError | torch.ones(2, 2).index_fill_(1, torch.tensor([0]), 1 + 1j)
RuntimeError | torch.addcdiv(*[torch.ones(2, dtype=torch.int64)] * 3)
RuntimeError | torch.cummax(torch.ones(2), 0, out=(torch.ones(0, dtype=torch.int16), torch.ones(0, dtype=torch.int64)))
RuntimeError | torch.max(torch.ones(2), 0, out=(torch.ones(0, dtype=torch.int16), torch.ones(0, dtype=torch.int64)))
RuntimeError | torch.imag(torch.ones(2))
RuntimeError | torch.floor(torch.ones(2, dtype=torch.complex64))
RuntimeError | torch.lerp(torch.ones(2).double(), torch.ones(2), 1)
RuntimeError | torch.ones(2).expand(-1, -1)
RuntimeError | torch.ones(2).mT
RuntimeError | torch.ones(2).adjoint()
RuntimeError | torch.empty(0).view(-1, 0)
RuntimeError | torch.ones(3, dtype=torch.uint8).view(torch.int16)
RuntimeError | torch.ones(4, 2).t().view(torch.int64)
RuntimeError | torch.ones(()).view(torch.int64)
RuntimeError | torch.empty(()).resize_([2, 4, 2**29, 2**29])
RuntimeError | torch.tensor_split(torch.ones(()), 2)
RuntimeError | torch.tensor_split(torch.ones(3), 0)
RuntimeError | torch.split(torch.ones(3), 0)
RuntimeError | torch.view_as_complex(torch.tensor(2.0))
RuntimeError | torch.ones(2, dtype=torch.float32).set_(torch.ones(2).double())
RuntimeError | torch.empty(3, 3, memory_format=torch.channels_last)
RuntimeError | torch.device("cuda:2.")
RuntimeError | torch.device("cpu", -1)
RuntimeError | "a" in torch.ones(2)
RuntimeError | torch._check(False, lambda: "no")
ValueError | torch._check_value(False)
TypeError | torch._check("yes")
TypeError | torch.ones(2).apply_(lambda x: "text")
TypeError | torch.ones(2).map_(torch.ones(2), "text")
TypeError | torch.Size(torch.ones(3))
TypeError | __import__("types").new_class("Own", (torch.FloatTensor,))
TypeError | torch.ones(2).new(torch.ones(2).double())
TypeError | torch.LongTensor((6, 0), 1, 1, 0)
RuntimeError | torch._assert_async(torch.tensor(0))
RuntimeError | torch.index_select(torch.ones(()), 0, torch.tensor([0, 0]))
RuntimeError | torch.diff(torch.ones(2, 3), dim=0, prepend=torch.ones(1, 2))
RuntimeError | torch.sum(torch.ones(3), 0, dtype=torch.float64, out=torch.tensor(0.0))
RuntimeError | torch.cumsum(torch.ones(3), 0, dtype=torch.float64, out=torch.zeros(3))
RuntimeError | torch.mean(torch.ones(3), 0, dtype=torch.float64, out=torch.tensor(0.0))
RuntimeError | torch.softmax(torch.ones(3), 0, dtype=torch.float64, out=torch.zeros(3))
TypeError | torch.unravel_index(torch.tensor([1]), (1, 2, 2.0))
TypeError | torch.unravel_index(torch.tensor([1]), torch.tensor([2, 2]))
TypeError | torch.unravel_index(torch.tensor([1.0]), (2, 2))
ValueError | torch.unravel_index(torch.tensor([1]), (2, -2))
IndexError | torch.argmax(torch.ones(2, 0, 4), dim=1)
IndexError | torch.kthvalue(torch.ones(2, 0, 4), 1, dim=1)
IndexError | torch.median(torch.ones(2, 0, 4), dim=1)
IndexError | torch.nanmedian(torch.ones(2, 0, 4), dim=1)
IndexError | torch.mode(torch.ones(2, 0, 4), dim=1)
RuntimeError | torch.sum(torch.ones(2, 2), dim=(0, 0))
RuntimeError | torch.tensor([2, 3]) ** -1
RuntimeError | torch.clamp(torch.tensor([5], dtype=torch.uint8), 0, 300)
RuntimeError | torch.mean(torch.ones(2, 2), dim=(0, -2))
RuntimeError | torch.norm(torch.ones(2, 2), dim=(1, 1))
RuntimeError | torch.std(torch.ones(2, 2), dim=(0, 0))
RuntimeError | torch.bincount(torch.tensor([1, -1]))
RuntimeError | torch.bincount(torch.tensor([[1]]))
RuntimeError | torch.bincount(torch.tensor([1.0]))
RuntimeError | torch.bincount(torch.tensor([1]), minlength=-1)
RuntimeError | torch.bincount(torch.tensor([1]), torch.ones(2))
NotImplementedError | torch.ones(2) << 1
NotImplementedError | torch.ones(2) >> torch.ones(2)
RuntimeError | torch.nanmean(torch.ones(2, dtype=torch.int32))
RuntimeError | torch.take_along_dim(torch.ones(2, 3), torch.ones(2, dtype=torch.int64), 0)
RuntimeError | torch.take_along_dim(torch.ones(2), torch.tensor([True, False]), 0)
IndexError | torch.take_along_dim(torch.ones(2), torch.ones(2, dtype=torch.int64), 7)
RuntimeError | torch.rand([]).index_put([], torch.tensor([1.0]), True)
RuntimeError | torch.zeros(2, 3).index_put_((torch.tensor([0, 1]),), torch.ones(5))
IndexError | torch.ones(3)[torch.tensor([True])]
"""  # noqa: E501  # an expression a line


@pytest.mark.parametrize("row", REFUSED.strip().splitlines())
def test_what_pytorch_refuses_is_refused(row):
    kind, _, expression = row.partition(" | ")
    for library in (torch, pytorch):
        with warnings.catch_warnings(), pytest.raises(eval(kind)):
            warnings.simplefilter("ignore")
            eval(expression, {"torch": library})


OVERLAPS = [
    "y.index_add_(0, k, y[:3])",
    "k.index_copy_(0, k, k.clone())",
    "k.put_(k.clone(), k)",
    "y.index_put_((k,), y[:3])",
    "y.scatter_(0, k, y)",
    "k.index_fill_(0, k, 0)",
    "m[1:].masked_fill_(m[:-1], False)",
    "torch.rand(1).expand(6).scatter_(0, k, torch.rand(3))",
]


@pytest.mark.parametrize("statement", OVERLAPS)
def test_positions_are_not_written_over_while_they_are_read(statement):
    for library in (torch, pytorch):
        names = {
            "torch": library,
            "y": library.rand(6),
            "k": library.tensor([2, 1, 0]),
            "m": library.tensor([True, False, True]),
        }
        with pytest.raises(RuntimeError, match="unsupported operation"):
            exec(statement, names)


@pytest.mark.parametrize(
    "statement",
    [
        "x.index_fill_(0, k, 1.0)",
        "x.index_put_((k,), torch.tensor(1.0))",
        "x.masked_fill_(k == 1, 1.0)",
    ],
)
def test_expanded_memory_is_written_to_with_a_warning(statement):
    for library in (torch, pytorch):
        whole = library.zeros(1)
        names = {"torch": library, "x": whole.expand(3), "k": library.tensor([1, 0, 2])}
        with pytest.warns(UserWarning, match="expanded tensors"):
            exec(statement, names)
        assert whole.tolist() == [1.0]


def test_one_element_of_an_expanded_tensor_can_be_set():
    x = torch.zeros(3, 1)
    x.expand(3, 4)[1, 2] = 5
    assert x.flatten().tolist() == [0.0, 5.0, 0.0]
    with pytest.raises(RuntimeError, match="single memory location"):
        x.expand(3, 4)[1] = 5


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.unfold(0, 3, 2),
        lambda x: x.as_strided((3,), (2,)),
        lambda x: x.as_strided((3, 2), (2, 1))[1],
        lambda x: x.view(torch.int32),
        lambda x: x[::2],
    ],
)
def test_a_write_to_a_view_of_other_strides_spoils_what_was_saved(view):
    w, x = torch.ones(6, requires_grad=True), torch.arange(6.0)
    y = w * x
    view(x).mul_(10)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_parts_of_complex_numbers_are_written_to():
    x = torch.zeros(2, dtype=torch.complex64)
    x.real, x.imag = 3, torch.tensor([1.0, 2.0])
    assert x.tolist() == [3 + 1j, 3 + 2j]


def test_a_derivative_goes_through_another_order_of_the_axes():
    x = torch.randn(2, 3, 4, 5, requires_grad=True)
    (x.contiguous(memory_format=torch.channels_last) * 2).sum().backward()
    assert x.grad.tolist() == torch.full((2, 3, 4, 5), 2.0).tolist()


def test_a_result_that_resizes_what_it_is_written_to_says_so():
    with pytest.warns(UserWarning, match="was resized since it had shape"):
        torch.add(torch.ones(3), 1, out=torch.ones(2))


def test_storages_and_tensors_share_memory(tmp_path):
    x = torch.arange(4.0)
    x.storage()[1] = 9
    assert x.tolist() == [0, 9, 2, 3]
    path = tmp_path / "numbers"
    for share in (True, False):
        a = torch.from_file(str(path), share, 4, dtype=torch.float32)
        a.fill_(5.0 if share else 6.0)
    assert np.fromfile(path, np.float32).tolist() == [5.0] * 4


@pytest.mark.parametrize("mask", [True, torch.tensor(True), torch.tensor([True] * 2)])
def test_leading_axes_of_length_1_are_dropped_where_a_mask_is_set(mask):
    x = torch.zeros(2, 3)
    x[mask] = torch.ones(1, 1, 2, 3)
    assert x.tolist() == [[1] * 3] * 2


def test_masks_of_bytes_are_read_with_a_warning():
    x = torch.arange(3)
    with pytest.warns(
        UserWarning, match=r"uint8 is now deprecated, please use"
    ) as told:
        assert x[torch.tensor([1, 0, 1], dtype=torch.uint8)].tolist() == [0, 2]
    assert told[0].filename == __file__


def test_draws_of_complex_numbers():
    """Normal draws share their variance among both parts; uniform ones fill squares."""
    torch.manual_seed(0)
    of = {"dtype": torch.complex64}
    for x, mean, variance in (
        (torch.randn(20_000, **of), 0, 0.5),
        (torch.empty(20_000, **of).normal_(1, 2), 1, 2),
        (torch.normal(1.0, 2.0, (20_000,), **of), 1, 2),
        (torch.nn.init.normal_(torch.empty(20_000, **of), 1, 2), 1, 2),
    ):
        for part in (x.real, x.imag):
            assert abs(part.mean() - mean) < 0.05
            assert abs(part.var() - variance) < 0.1
    x = torch.rand(20_000, dtype=torch.complex128)
    assert abs(x.real.mean() - 0.5) < 0.02
    assert abs(x.imag.mean() - 0.5) < 0.02


OF_REALS = """
z < z
z >= 1j
z.max()
z.min(0)
z.amax()
z.amin(0)
z.argmax()
z.argmin(0)
z.aminmax()
z.sort()
z.argsort()
z.msort()
z.topk(1)
z.kthvalue(1)
z.median()
z.median(0)
z.nanmedian()
z.mode()
z.cummax(0)
z.cummin(0)
torch.maximum(z, z)
torch.minimum(z, z)
torch.max(z, z)
torch.fmax(z, z)
torch.fmin(z, z)
z.clamp(0, 1)
z.clamp(min=z)
z.clip(0, 1)
z.clamp_(0, 1)
torch.searchsorted(z, z)
torch.bucketize(z, z)
z.histc()
torch.histogram(z)
torch.bincount(z)
z.frac()
torch.heaviside(z, z)
torch.hypot(z, z)
torch.atan2(z, z)
torch.fmod(z, z)
z % 2
z // 2
z.lgamma()
torch.nextafter(z, z)
torch.copysign(z, z)
z.signbit()
torch.deg2rad(z)
torch.gcd(z, z)
torch.isposinf(z)
torch.digamma(z)
torch.polygamma(1, z)
z.quantile(0.5)
"""


@pytest.mark.parametrize("expression", OF_REALS.strip().splitlines())
def test_complex_numbers_have_no_order(expression):
    for library in (torch, pytorch):
        names = {"torch": library, "z": library.tensor([2 + 1j, 1 - 3j])}
        with pytest.raises(RuntimeError):
            eval(expression, names)


LAID = """
F.max_pool2d(x, 2)
F.max_pool2d(x, 2, return_indices=True)[1]
F.avg_pool2d(x, 2)
F.adaptive_avg_pool2d(x, 2)
F.adaptive_max_pool2d(x, 2)
F.interpolate(x, scale_factor=2)
F.interpolate(x, scale_factor=2, mode="bilinear")
F.pad(x, (1, 2, 0, 1))
F.pixel_shuffle(x, 2)
F.pixel_unshuffle(x, 2)
F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2)
""".strip().splitlines()


@pytest.mark.parametrize("call", LAID)
def test_results_lie_as_their_inputs_do(call):
    F = torch.nn.functional
    values = torch.rand(2, 4, 6, 8, dtype=torch.float64)
    found = []
    for form in (torch.contiguous_format, torch.channels_last):
        x = values.clone(memory_format=form).requires_grad_()
        z = eval(call, {"F": F, "x": x})
        assert z.is_contiguous(memory_format=form)
        if z.requires_grad:
            (z * z).sum().backward()
            found.append((z.detach().numpy(), x.grad.numpy()))
        else:
            found.append((z.numpy(),))
    for rows, last in zip(*found, strict=True):
        np.testing.assert_array_equal(rows, last)


def test_a_scatter_of_nothing_still_has_its_source():
    source = torch.ones(5, requires_grad=True)
    nowhere = torch.zeros(0, dtype=torch.int64)
    z = torch.zeros(2, 3).scatter(0, nowhere, source)
    assert z.shape == (2, 3)
    (gradient,) = torch.autograd.grad(z.sum(), source)
    assert gradient.tolist() == [0] * 5
    pooled, where = torch.nn.functional.max_pool2d(
        torch.rand(0, 2, 4, 4, requires_grad=True), 2, return_indices=True
    )
    assert torch.nn.functional.max_unpool2d(pooled, where, 2).requires_grad


@pytest.mark.parametrize("dim", [None, 0])
@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
def test_different_elements_keep_their_derivative(name, dim):
    x = torch.tensor([3.0, 1.0, 1.0, 2.0], requires_grad=True)
    options = {"dim": dim, "return_inverse": True, "return_counts": True}
    values, inverse, counts = getattr(torch, name)(x, **options)
    other = getattr(pytorch, name)(pytorch.tensor(x.tolist()), **options)
    assert [z.tolist() for z in (values, inverse, counts)] == [
        z.tolist() for z in other
    ]
    assert not inverse.requires_grad
    (gradient,) = torch.autograd.grad((values**2).sum(), x)
    assert gradient.tolist() == [6, 2, 0, 4]  # of those alike, the first
    assert getattr(torch, name)(x.detach(), dim=dim).requires_grad is False
    rows = torch.stack([x, x, x * 2])
    (gradient,) = torch.autograd.grad(getattr(torch, name)(rows, dim=0).sum(), x)
    assert gradient.tolist() == [3, 3, 3, 3]


def test_data_must_be_a_dense_tensor_and_is_left_if_not():
    x = torch.ones(1, 2)
    sparse = torch.sparse_coo_tensor(torch.zeros(1, 1).long(), torch.ones(1))
    with pytest.raises(RuntimeError, match="incompatible tensor type"):
        x.data = sparse
    for wrong in (np.ones(2), None, [1.0]):
        with pytest.raises(TypeError, match="Variable data has to be a tensor"):
            x.data = wrong
    assert x.tolist() == [[1, 1]]


@pytest.mark.parametrize(
    "statement",
    [
        "torch.empty(3, 0)[:, [0, 1]]",
        "torch.empty(0)[torch.tensor([0])]",
        "x[torch.tensor([True, True, False])] = torch.ones(3)",
        "x[torch.tensor([0, 1])] = torch.ones(3)",
        "x[torch.zeros(3).bool()] = torch.ones(4)",
        "x[:2] = torch.ones(3)",
    ],
)
def test_indices_that_do_not_fit_are_refused_as_by_pytorch(statement):
    said = []
    for library in (pytorch, torch):
        with pytest.raises((IndexError, RuntimeError, ValueError, TypeError)) as caught:
            exec(statement, {"torch": library, "x": library.zeros(3)})
        said.append((caught.value, str(caught.value)))
    (theirs, words), (ours, own_words) = said
    assert isinstance(ours, type(theirs))
    if "dimension with size 0" in words or "shape mismatch: value" in words:
        assert own_words == words
    with pytest.raises(RuntimeError, match="must match"):
        torch.zeros(3)[[0, 1]] = [1.0, 2.0, 3.0]  # PyTorch takes no lists
