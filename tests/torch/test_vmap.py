"""vmap: all examples at once must be what a loop makes of each by itself."""

import gc
from itertools import product

import numpy as np
import pytest

import lantern
import lantern.torch as torch

F = torch.nn.functional

EXAMPLES = 3


def tensor(*shape, seed=0):
    rng = np.random.default_rng(seed)
    return torch.tensor(rng.uniform(0.2, 1.2, (EXAMPLES, *shape)))


PLACES = torch.tensor([[2, 0], [1, 1], [0, 3]])
LABELS = torch.tensor([[2, 0], [1, 1], [0, 2]])
WEIGHTS = torch.tensor(np.random.default_rng(7).normal(size=(4, 2, 3, 3)))
LENGTHS = torch.tensor([2, 2])
LSTM = torch.nn.LSTM(4, 3, dtype=torch.float64)
ATTENTION = torch.nn.MultiheadAttention(4, 2, dtype=torch.float64)


def written_part(x, y):
    z = x + 0 * y
    z[1:] *= y[1:]
    z.view(-1)[0] = y.sum()
    return z


def by_own_gradient(x, y):
    return torch.func.grad(lambda v: (v * v * y).sum())(x)


def inner_map(x, y):
    return torch.vmap(lambda a, b: (a * b).sum() + a, in_dims=(0, None))(x, y[0])


# Functions of the tensors of one example; behind them the shapes of these.
CASES = {
    "arithmetic": (lambda x, y: x * y.sum() / (x + y) - 2**x, (4,), (4,)),
    "floor division": (
        lambda x, y: torch.div(x, y, rounding_mode="floor") * x,
        (2, 4),
        (),
    ),
    "matmul": (lambda x, y: x @ y, (2, 4), (4, 3)),
    "einsum": (lambda x, y: torch.einsum("ij,kj->ik", x, y), (2, 4), (3, 4)),
    "reductions": (
        lambda x: x.std(0) + x.logsumexp(0) + x.amax(0) + x.cumsum(0)[1],
        (3, 4),
    ),
    "sort": (lambda x: x.sort(-1).values * torch.arange(4.0), (2, 4)),
    "shapes": (
        lambda x: x.mT.reshape(2, 6).flip(0).unsqueeze(1).expand(2, 5, 6),
        (3, 4),
    ),
    "cat": (lambda x, y: torch.cat([x, y, torch.ones(1, 4)]), (2, 4), (1, 4)),
    "where": (lambda x, y: torch.where(x > y, x * 2, y), (4,), (4,)),
    "masked_fill_": (lambda x: x.clone().masked_fill_(x > 0.7, 0.0) * x, (4,)),
    "written part": (written_part, (3,), (3,)),
    "solve": (lambda x, y: torch.linalg.solve(x + torch.eye(3), y), (3, 3), (3, 2)),
    "factors with pivots": (lambda x: torch.linalg.lu(x)[2], (3, 3)),
    "cholesky_ex": (
        lambda x: torch.linalg.cholesky_ex(x @ x.mT + torch.eye(3)).L,
        (3, 3),
    ),
    "zeta": (lambda x: torch.special.zeta(2.5, x.abs() + 1) * x, (3,)),
    "polynomial": (lambda x: torch.special.chebyshev_polynomial_t(x, 3) + x, (3,)),
    "unique": (lambda x: x * torch.unique((x > 9).long()), (3,)),
    "linear": (lambda x, y: F.gelu(F.linear(x, y, y[:, 0])), (2, 4), (3, 4)),
    "conv2d": (
        lambda x: F.conv2d(x, WEIGHTS, WEIGHTS[:, 0, 0, 0], padding=1),
        (2, 2, 5, 5),
    ),
    "conv2d, own weights": (
        lambda x, w, b: F.conv2d(x, w, b, stride=2),
        (2, 2, 5, 5),
        (4, 2, 3, 3),
        (4,),
    ),
    "conv_transpose1d": (lambda x, w: F.conv_transpose1d(x, w), (2, 2, 5), (2, 3, 3)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), (2, 2, 4, 4)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 2), (2, 2, 4)),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), (4, 2)),
    "layer_norm": (lambda x, w: F.layer_norm(x, (4,), w), (2, 4), (4,)),
    "lstm": (lambda x: LSTM(x)[0], (5, 2, 4)),
    "attention": (lambda x: ATTENTION(x, x, x)[0], (5, 2, 4)),
    "scaled_dot_product_attention": (
        lambda x, y: F.scaled_dot_product_attention(x, y, x * y, is_causal=True),
        (2, 5, 4),
        (2, 5, 4),
    ),
    "ctc_loss": (
        lambda x: F.ctc_loss(
            x.log_softmax(-1), torch.ones(2, 2).long(), LENGTHS * 3, LENGTHS
        ),
        (6, 2, 3),
    ),
    "a derivative inside": (by_own_gradient, (4,), (4,)),
    "jacfwd inside": (
        lambda x: torch.func.jacfwd(lambda v: v.sin() * v.sum())(x),
        (3,),
    ),
    "vmap inside": (inner_map, (2, 4), (2, 4)),
}


LEAF = torch.ones(4, dtype=torch.float64, requires_grad=True)


def loop(f, axes):
    def run(*tensors):
        rows = []
        for i in range(EXAMPLES):
            pairs = zip(tensors, axes, strict=True)
            rows.append(f(*(x if a is None else x[i].clone() for x, a in pairs)))
        if isinstance(rows[0], tuple):
            return tuple(map(torch.stack, zip(*rows, strict=True)))
        return torch.stack(rows)

    return run


def weighted(f):
    def loss(*tensors):
        z = f(*tensors)
        return (z * torch.arange(1.0, z.numel() + 1).cos().reshape(z.shape)).sum()

    return loss


def gradients(f, tensors):
    xs = [x.clone().requires_grad_() for x in tensors]
    weighted(f)(*xs).backward()
    return [x.grad for x in xs]


def assert_same(mine, theirs):
    for a, b in zip(mine, theirs, strict=True):
        assert a.dtype is b.dtype
        np.testing.assert_allclose(
            a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-12
        )


AXES = [
    (name, axes)
    for name, (_, *shapes) in CASES.items()
    for axes in product((0, None), repeat=len(shapes))
    if 0 in axes
]


@pytest.mark.parametrize(("name", "axes"), AXES)
def test_all_examples_at_once_are_each_by_itself(name, axes):
    f, *shapes = CASES[name]
    tensors = [tensor(*shape, seed=n) for n, shape in enumerate(shapes)]
    pairs = zip(tensors, axes, strict=True)
    tensors = [x if axis == 0 else x[0].clone() for x, axis in pairs]
    at_once, each = torch.vmap(f, axes), loop(f, axes)
    assert_same([at_once(*tensors)], [each(*tensors)])
    argnums = tuple(range(len(tensors)))
    g = torch.func.grad(weighted(f), argnums)
    assert_same(torch.vmap(g, axes)(*tensors), loop(g, axes)(*tensors))
    assert_same(gradients(at_once, tensors), gradients(each, tensors))


@pytest.mark.parametrize(
    "f",
    [
        lambda x, i: x[i],
        lambda x, i: x[i[0]],
        lambda x, i: x.gather(0, i),
        lambda x, i: x.index_select(0, i),
        lambda x, i: x.take(i),
        lambda x, i: x.index_add(0, i, x[:2]),
        lambda x, i: x.scatter(0, i, x[1:3]),
        lambda x, i: x.index_put((i,), x[:2], accumulate=True),
        lambda x, i: F.embedding(i, x.reshape(4, 1)),
        lambda x, i: F.one_hot(i, 4) * x,
        lambda x, i: F.cross_entropy(x.expand(2, 4), i, reduction="none"),
        lambda x, i: F.nll_loss(x.expand(2, 4), i),
        lambda x, i: F.cross_entropy(x.expand(2, 4), i, x.detach(), ignore_index=1),
        lambda x, i: torch.bincount(i, minlength=4) * x,
    ],
)
@pytest.mark.parametrize("axis", [0, None])
def test_places_of_each_example(f, axis):
    x = tensor(4) if axis == 0 else tensor(4)[0]
    places, axes = PLACES, (axis, 0)
    run = lambda g: lambda x: g(x, places)  # noqa: E731
    at_once, each = run(torch.vmap(f, axes)), run(loop(f, axes))
    assert_same([at_once(x)], [each(x)])
    assert_same(gradients(at_once, [x]), gradients(each, [x]))
    g = torch.func.grad(weighted(f))
    assert_same([torch.vmap(g, axes)(x, places)], [loop(g, axes)(x, places)])


@pytest.mark.parametrize("name", ["logcumsumexp", "cumprod"])
def test_second_derivatives_of_each_example(name):
    f = weighted(lambda x: getattr(torch, name)(x, 0))
    x = tensor(4)
    for h in (torch.func.hessian(f), torch.func.jacrev(torch.func.jacrev(f))):
        assert_same([torch.vmap(h)(x)], [loop(h, [0])(x)])


def test_what_each_example_has_for_itself_may_be_written_to():
    def f(x):
        y, z, w = torch.zeros_like(x), x.new_ones(4), torch.full_like(x, 2.0)
        y[1] = x[0]
        return y + z.mul_(x) + w.add_(x)

    x = tensor(4)
    assert_same([torch.vmap(f)(x)], [loop(f, [0])(x)])


def test_the_function_is_called_once():
    calls = []

    def f(x):
        calls.append(x.shape)
        return x.sin()

    torch.vmap(f)(tensor(4))
    assert calls == [(4,)]


def test_axes_of_arguments_and_results():
    x, y = tensor(4, 5), tensor(4, 5, seed=1)
    z, w = torch.vmap(
        lambda a, b: (a * b["b"], a.sum()), in_dims=(1, {"b": 2}), out_dims=(1, 0)
    )(x.movedim(0, 1), {"b": y.movedim(0, -1)})
    assert z.shape == (4, 3, 5)
    assert_same([z.movedim(1, 0), w], [x * y, x.sum((1, 2))])
    z, same = torch.vmap(lambda a: (a, torch.ones(2)), out_dims=(0, None))(x)
    assert same.shape == (2,)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_some_examples_after_others(chunk):
    x = tensor(4)
    f = lambda a: {"z": a * 2, "w": a.sum()}  # noqa: E731
    z = torch.vmap(f, chunk_size=chunk)(x)
    assert_same([z["z"], z["w"]], [x * 2, x.sum(1)])
    jacobian = torch.func.jacrev(torch.sin, chunk_size=chunk)(x[0])
    assert_same([jacobian], [torch.diag(x[0].cos())])


@pytest.mark.parametrize("draw", [
    lambda x: x + torch.randn(4),
    lambda x: x + torch.rand_like(x),
    lambda x: x + torch.randint(1000, (4,)),
    lambda x: x * F.dropout(torch.ones(4)) + torch.rand(4),
    lambda x: x + torch.empty_like(x).normal_(),
    lambda x: x + torch.randperm(1000)[:4],
])  # fmt: skip
def test_random_numbers_are_refused_the_same_or_different(draw):
    x = torch.zeros(EXAMPLES, 4)
    with pytest.raises(RuntimeError, match="randomness"):
        torch.vmap(draw)(x)
    same = torch.vmap(draw, randomness="same")(x)
    assert (same == same[0]).all()
    assert (same != 0).any()
    different = torch.vmap(draw, randomness="different")(x)
    assert not (different[0] == different[1]).all()
    torch.manual_seed(3)
    again = torch.vmap(draw, randomness="different")(x)
    torch.manual_seed(3)
    assert (again == torch.vmap(draw, randomness="different")(x)).all()


def test_draws_from_chances_of_each_example():
    chances = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    drawn = torch.vmap(torch.bernoulli, randomness="different")(chances)
    assert (drawn == chances).all()
    rows = torch.vmap(lambda p: torch.multinomial(p, 1), randomness="different")(
        chances[:2]
    )
    assert rows.tolist() == [[1], [0]]
    with pytest.raises(RuntimeError, match="randomness"):
        torch.vmap(torch.poisson, randomness="same")(chances)


def if_positive(x):
    return x if x.sum() > 0 else -x


@pytest.mark.parametrize(
    ("f", "word"),
    [
        (if_positive, "torch.where"),
        (lambda x: x * x.sum().item(), "item"),
        (lambda x: x * float(x.sum()), "item"),
        (lambda x: x.numpy(), "numpy"),
        (lambda x: torch.tensor(x.tolist()), "tolist"),
        (lambda x: x[x > 0.5], "number of elements"),
        (lambda x: x.nonzero(), "size"),
        (lambda x: torch.zeros(4).add_(x), "inplace"),
        (lambda x: torch.zeros(4).copy_(x), "inplace"),
        (lambda x: torch.add(x, 1, out=torch.zeros(4)), "vmap"),
        (lambda x: x.data, "data"),
        (lambda x: torch.allclose(x, x), "truth"),
        (lambda x: F.one_hot(x.long()), "num_classes"),
        (lambda x: torch.tensor_split(x, x[:1].long()), "tolist"),
        (lambda x: range(x.sum().long()), "item"),
        (lambda x: x.requires_grad_(), "torch.func"),
        (lambda x: x.backward(), "torch.func"),
        (lambda x: torch.autograd.grad((x * LEAF).sum(), LEAF), "torch.func"),
    ],
)
def test_what_is_one_thing_for_all_examples_is_refused(f, word):
    with pytest.raises(RuntimeError, match=word):
        torch.vmap(f)(tensor(4))
    assert_same([torch.vmap(torch.sin)(tensor(4))], [tensor(4).sin()])


@pytest.mark.parametrize("map_", [torch.vmap, lantern.vmap], ids=["torch", "lantern"])
def test_a_refused_write_leaves_what_all_examples_share_as_it_was(map_):
    shared = torch.zeros(4)
    with pytest.raises(RuntimeError, match="inplace"):
        map_(shared.add_)(tensor(4))
    assert shared.add(1).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("options", "arguments", "word"),
    [
        ({"in_dims": 2}, (torch.ones(2, 3),), "dimensionality"),
        ({"in_dims": (0, None)}, (torch.ones(2),), "not compatible"),
        ({"in_dims": None}, (torch.ones(2),), "in_dims"),
        ({"in_dims": (None,)}, (torch.ones(2),), "at least one"),
        ({}, (torch.ones(2), torch.ones(3)), "same size"),
        ({}, (1.0,), "non-Tensor"),
        ({}, (), "no inputs"),
        ({"out_dims": "a"}, (torch.ones(2),), "out_dims"),
        ({"out_dims": None}, (torch.ones(2),), "out_dim is None"),
        ({"chunk_size": 0}, (torch.ones(2),), "chunk_size"),
    ],
)
def test_axes_that_do_not_fit(options, arguments, word):
    f = lambda x=None, *_: x  # noqa: E731
    with pytest.raises(ValueError, match=word):
        torch.vmap(f, **options)(*arguments)


def test_what_is_written_to_an_argument_is_seen_outside():
    x = tensor(4)
    before = x.clone()
    z = torch.vmap(lambda a: a.mul_(2))(x)
    assert_same([z, x], [before * 2, before * 2])
    columns = tensor(4).mT.clone()
    torch.vmap(lambda a: a.add_(1), in_dims=1)(columns)
    assert_same([columns], [tensor(4).mT + 1])


def test_examples_of_no_grad_have_no_derivative():
    x = tensor(4).requires_grad_()

    def f(a):
        with torch.no_grad():
            stopped = a * 3
        return a * stopped + a.detach()

    (grad,) = torch.autograd.grad(torch.vmap(f)(x).sum(), x)
    assert_same([grad], [x.detach() * 3])
    with torch.no_grad():
        assert not torch.vmap(torch.sin)(x).requires_grad
    assert torch.vmap(torch.sin)(x).requires_grad


def test_a_captured_tensor_gets_its_gradient_from_all_examples():
    x, w = tensor(4), tensor(4, seed=2)[0].requires_grad_()
    torch.vmap(lambda a: (a * w).sum() ** 2)(x).sum().backward()
    expected = (2 * (x @ w.detach())[:, None] * x).sum(0)
    assert_same([w.grad], [expected])


def test_an_error_inside_leaves_nothing_behind():
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        torch.vmap(fails)(tensor(4))
    torch.rand(3)  # no vmap is under way
    assert_same([torch.vmap(torch.cos)(tensor(4))], [tensor(4).cos()])


def test_a_value_of_one_example_does_not_leave_its_vmap():
    kept = []
    torch.vmap(lambda x: kept.append(x * 1) or x)(tensor(4))
    with pytest.raises(RuntimeError, match="vmap"):
        kept[0] + 1


def test_an_ensemble_of_modules():
    nn = torch.nn
    models = [
        nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2)) for _ in range(3)
    ]
    parameters, buffers = torch.func.stack_module_state(models)
    x = torch.rand(6, 4)

    def call(p, b, x):
        return torch.func.functional_call(models[0], (p, b), (x,))

    z = torch.vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)
    assert torch.allclose(z, torch.stack([m(x) for m in models]), atol=1e-6)


class Cube(torch.autograd.Function):
    """Of PyTorch's operations."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, z_bar):
        (x,) = ctx.saved_tensors
        return 3 * x * x * z_bar


class NumpyCube(torch.autograd.Function):
    """Of NumPy's functions, which know nothing of examples."""

    @staticmethod
    def forward(x):
        return torch.tensor(x.detach().numpy() ** 3)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, z_bar):
        (x,) = ctx.saved_tensors
        return torch.tensor(3 * x.detach().numpy() ** 2 * z_bar.detach().numpy())


class OwnCube(NumpyCube):
    """For all examples at once by what it says itself."""

    calls = 0

    @staticmethod
    def vmap(info, in_dims, x):
        assert info == (EXAMPLES, "error")
        assert in_dims == (0,)
        OwnCube.calls += 1
        return NumpyCube.apply(x), 0


@pytest.mark.parametrize("function", [Cube, NumpyCube, OwnCube])
def test_operations_of_a_program(function):
    x = tensor(4)
    f = function.apply
    assert_same([torch.vmap(f)(x)], [x**3])
    assert_same(gradients(torch.vmap(f), [x]), gradients(lambda v: v**3, [x]))
    g = torch.func.grad(lambda v: f(v).sum())
    assert_same([torch.vmap(g)(x)], [3 * x**2])
    assert_same([torch.func.jacrev(f)(x[0])], [torch.diag(3 * x[0] ** 2)])
    common = torch.vmap(lambda a, b: a + f(b), (0, None))(x, x[0])
    assert_same([common], [x + x[0] ** 3])


def test_an_operation_that_says_how_is_called_once():
    OwnCube.calls = 0
    torch.vmap(OwnCube.apply)(tensor(4))
    assert OwnCube.calls == 1


@pytest.mark.parametrize(
    ("found", "word"),
    [(lambda x: x, "two returns"), (lambda x: (x, (0, 0)), "incompatible")],
)
def test_what_an_operation_says_wrongly(found, word):
    class Wrong(NumpyCube):
        @staticmethod
        def vmap(info, in_dims, x):
            return found(x)

    with pytest.raises(RuntimeError, match=word):
        torch.vmap(Wrong.apply)(tensor(4))


def test_rows_of_a_jacobian_by_autograd():
    x = tensor(4)[0].requires_grad_()
    y = x.sin() * x.sum()
    rows = torch.vmap(lambda v: torch.autograd.grad(y, x, v, retain_graph=True)[0])(
        torch.eye(4, dtype=torch.float64)
    )
    expected = torch.func.jacfwd(lambda v: v.sin() * v.sum())(x.detach())
    assert_same([rows], [expected])


def test_a_tensor_of_one_example_shows_those_of_all():
    shown = []
    x = torch.tensor([[1.0], [2.0]])
    torch.vmap(lambda a: shown.append(f"{a}") or a)(x)
    torch.vmap(torch.func.grad(lambda a: shown.append(repr(a)) or a.sum()))(x)
    inner = (
        "BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[1.],\n            [2.]])\n)"
    )
    assert shown[0] == inner
    assert shown[1].startswith("GradTrackingTensor(lvl=2, value=\n    BatchedTensor")


def test_checkpoint_computes_as_usual():
    x = tensor(4)
    f = lambda v: torch.utils.checkpoint.checkpoint(  # noqa: E731
        torch.sin, v, use_reentrant=False
    ).sum()
    assert_same([torch.vmap(torch.func.grad(f))(x)], [x.cos()])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.vmap(torch.func.grad(lambda v: v.sin().sum()))(x),
        lambda x: torch.func.jacrev(torch.sin)(x[0]),
        lambda x: torch.func.hessian(lambda v: v.sin().sum())(x[0]),
        lambda x: torch.vmap(torch.linalg.lu)(x[:, :, None]),
        lambda x: torch.vmap(NumpyCube.apply)(x),
    ],
)
def test_nothing_waits_for_the_garbage_collector(call):
    x = tensor(4)
    call(x)
    gc.collect()
    gc.disable()
    try:
        call(x)
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_chunks_have_the_same_random_numbers():
    x = torch.zeros(4, 3)
    z = torch.vmap(lambda a: a + torch.rand(3), randomness="same", chunk_size=2)(x)
    assert (z == z[0]).all()
    again = torch.vmap(lambda a: a + torch.rand(3), randomness="same")(x)
    assert not (again[0] == z[0]).all()


def test_a_result_that_shows_an_argument_is_a_view_of_it():
    x = tensor(4).requires_grad_()
    y = x * 1
    z = torch.vmap(lambda a: a[None])(y)
    z.mul_(3)
    y.sum().backward()
    assert_same([y, x.grad], [3 * x, torch.full_like(x, 3.0)])


def test_inner_maps_write_to_arguments_of_outer_ones():
    x, y = tensor(4), tensor(4, seed=1)[0]
    torch.vmap(lambda a: torch.vmap(torch.Tensor.copy_)(a, y))(x)
    assert_same([x], [y.expand(3, 4)])


def test_batch_norms_without_running_moments_are_computed_for_each_example():
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    x = torch.randn(4, 5, 3)
    with pytest.raises(RuntimeError, match="replace_all_batch_norm_modules_"):
        torch.vmap(model)(x)
    assert torch.func.replace_all_batch_norm_modules_(model) is model
    assert model[1].running_mean is None
    one_by_one = torch.stack([model(row) for row in x])
    torch.testing.assert_close(torch.vmap(model)(x), one_by_one)


@pytest.mark.parametrize(
    "program",
    [
        lambda w, m: w.masked_fill(m, 0.0),
        lambda w, m: torch.where(m, w, 2 * w),
        lambda w, m: torch.where(m, 2 * w, 1.0),
        lambda w, m: torch.nn.functional.hinge_embedding_loss(w, 2 * m.long() - 1),
    ],
)
def test_a_mask_of_each_example_chooses_from_a_leaf(program):
    found = []
    m = torch.tensor([[True, False, True], [False, False, True]])
    for all_at_once in (True, False):
        w = torch.tensor([0.5, -1.0, 2.0], requires_grad=True)
        if all_at_once:
            z = torch.vmap(lambda m: program(w, m))(m)  # noqa: B023  # called at once
        else:
            z = torch.stack([program(w, row) for row in m])
        (z * torch.arange(1.0, 1 + z.numel()).reshape(z.shape)).sum().backward()
        found.append((z.detach(), w.grad))
    torch.testing.assert_close(*found)


def test_erfcx_has_derivatives_of_every_order_and_of_each_example():
    f, x = torch.special.erfcx, torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)
    slopes = torch.vmap(torch.func.grad(f))(x)
    torch.testing.assert_close(slopes, 2 * x * f(x) - 2 / torch.pi**0.5)
    twice = torch.vmap(torch.func.grad(torch.func.grad(f)))(x)
    torch.testing.assert_close(twice, 2 * f(x) + 2 * x * slopes)
    w = x.clone().requires_grad_()
    torch.vmap(f)(w).sum().backward()
    torch.testing.assert_close(w.grad, slopes)


@pytest.mark.parametrize("option", ["rtol", "atol"])
@pytest.mark.parametrize("function", ["pinv", "matrix_rank"])
def test_tolerances_of_each_example_beside_one_matrix(function, option):
    f, A = getattr(torch.linalg, function), torch.diag(torch.tensor([1.0, 0.3]))
    bounds = torch.tensor([0.1, 0.5])
    found = torch.vmap(lambda bound: f(A, **{option: bound}))(bounds)
    one_by_one = [f(A, **{option: bound}) for bound in bounds]
    torch.testing.assert_close(found, torch.stack(one_by_one))
    assert not torch.equal(found[0], found[1])


def test_zeta_has_derivatives_by_its_second_argument():
    s, q = torch.tensor([2.0, 3.0]).double(), torch.tensor([0.5, 1.5]).double()
    zeta = torch.special.zeta
    slopes = torch.vmap(torch.func.grad(zeta, argnums=1))(s, q)
    torch.testing.assert_close(slopes, -s * zeta(s + 1, q))
    twice = torch.vmap(torch.func.grad(torch.func.grad(zeta, argnums=1), argnums=1))
    torch.testing.assert_close(twice(s, q), s * (s + 1) * zeta(s + 2, q))
    each = torch.vmap(lambda x: zeta(x, q))(s)
    torch.testing.assert_close(each, zeta(s[:, None], q))
    z = zeta(s.requires_grad_(), q.requires_grad_())
    (by_q,) = torch.autograd.grad(z.sum(), q, retain_graph=True)
    torch.testing.assert_close(by_q, slopes)
    with pytest.raises(NotImplementedError, match="derivative by input is not known"):
        z.sum().backward()
