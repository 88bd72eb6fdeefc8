"""Programs that differentiate and write in place, against PyTorch, step by step."""

import gc
import textwrap
import warnings
import weakref

import numpy as np
import pytest

import lantern
import lantern.torch as ours
from lantern.op import op
from lantern.torch.nn.starting import fused
from tests.torch.compared import assert_same, inputs, plain, theirs

PROGRAMS = {
    "accumulate": """
        for _ in range(3):
            (a * b).sum().backward()
        out = a.grad, b.grad
    """,
    "retain": """
        y = (a.exp() * b).sum()
        y.backward(retain_graph=True)
        first = a.grad.clone()
        y.backward()
        out = first, a.grad
    """,
    "second time": """
        y = (a * b).sum()
        y.backward()
        y.backward()
    """,
    "second time, nothing saved": """
        y = (a + b).sum()
        y.backward()
        y.backward()
        out = a.grad
    """,
    "several losses": """
        h = (a @ q).tanh()
        (h * h).sum().backward(retain_graph=True)
        h.sin().sum().backward()
        out = a.grad, q.grad
    """,
    "create graph": """
        y = (a ** 3).sum()
        g, = torch.autograd.grad(y, a, create_graph=True)
        (g * b).sum().backward()
        out = g, a.grad, b.grad
    """,
    "third derivative": """
        y = s.sin()
        for _ in range(3):
            y, = torch.autograd.grad(y, s, create_graph=True)
        out = y
    """,
    "gradient penalty": """
        h = torch.relu(a @ q).sigmoid().sum(1)
        g, = torch.autograd.grad(h.sum(), a, create_graph=True)
        loss = ((g.norm(2, dim=1) - 1) ** 2).mean()
        loss.backward()
        out = loss, a.grad, q.grad
    """,
    "backward with create_graph": """
        (s * s * s).backward(create_graph=True)
        g = s.grad
        s.grad = None
        g.backward()
        out = g, s.grad, g.requires_grad
    """,
    "double through softmax": """
        y = a.softmax(1).log().sum(0).max(0)[0].sum() + a[1, 1:].prod() + c.mean()
        g, = torch.autograd.grad(y, a, create_graph=True)
        (g * g).sum().backward()
        out = g, a.grad
    """,
    "inputs": """
        y = (a * b).sum()
        y.backward(inputs=[a])
        out = a.grad, b.grad
    """,
    "grad of an inner value": """
        h = a * 2
        y = (h * h).sum()
        out = torch.autograd.grad(y, [h, a])
    """,
    "grad unused": "torch.autograd.grad(a.sum(), b)",
    "grad allowed unused": """
        out = torch.autograd.grad(a.sum(), [a, b], allow_unused=True)
    """,
    "grad of what needs none": "torch.autograd.grad(a.sum(), i)",
    "grad materialized": """
        out = torch.autograd.grad(
            a.sum(), [b], allow_unused=True, materialize_grads=True)
    """,
    "grad materialized, and again": """
        (g,) = torch.autograd.grad(
            a.sum(), [b], create_graph=True, materialize_grads=True)
        out = torch.autograd.grad(g.sum(), [a], materialize_grads=True)
    """,
    "grad materialized by an edge": """
        edge = torch.autograd.graph.get_gradient_edge(a)
        out = torch.autograd.grad(
            a.sum(), [edge, b], allow_unused=True, materialize_grads=True)
    """,
    "grad materialized of an edge": """
        edge = torch.autograd.graph.get_gradient_edge(b)
        out = torch.autograd.grad(
            a.sum(), [edge], allow_unused=True, materialize_grads=True)
    """,
    "integers as the data of a leaf": "a.data = torch.ones(3, 4, dtype=torch.int64)",
    "integers as data": "c = a.detach(); c.data = torch.ones(2, dtype=torch.int64)",
    "not a scalar": "(a * b).backward()",
    "gradient of another shape": "(a * b).backward(torch.ones(3))",
    "gradient": "(a * b).backward(torch.ones(3, 4) * 2); out = a.grad",
    "no grad": """
        with torch.no_grad():
            y = a * 2
        out = y.requires_grad, y.is_leaf, torch.is_grad_enabled()
    """,
    "modes": """
        @torch.no_grad()
        def f(x):
            return (x * 2).requires_grad, torch.is_grad_enabled()
        @torch.no_grad
        def g(x):
            return (x * 2).requires_grad
        with torch.no_grad():
            with torch.enable_grad():
                inner = (a * 2).requires_grad
        with torch.set_grad_enabled(False):
            off = (a * 2).requires_grad
        torch.set_grad_enabled(False)
        still = (a * 2).requires_grad
        torch.set_grad_enabled(True)
        with torch.inference_mode():
            inference = (a * 2).requires_grad, torch.is_inference_mode_enabled()
        out = f(a), g(a), inner, off, still, inference, (a * 2).requires_grad
    """,
    "frozen": """
        q.requires_grad_(False)
        (a @ q).sum().backward()
        out = a.grad, q.grad
    """,
    "detach": """
        h = a * 2
        (h.detach() * a).sum().backward()
        out = a.grad, h.detach().requires_grad
    """,
    "hooks": """
        seen = []
        a.register_hook(lambda g: seen.append(g.clone()))
        h = a * 2
        handle = h.register_hook(lambda g: g * 10)
        removed = h.register_hook(lambda g: g * 100)
        removed.remove()
        h.sum().backward()
        out = seen, a.grad
    """,
    "retain_grad": """
        h = a * 2
        h.retain_grad()
        (h * b).sum().backward()
        out = h.grad, h.retains_grad, a.grad
    """,
    "requires_grad of what was computed": "(a * 2).requires_grad_(False)",
    "optimiser by hand": """
        for _ in range(3):
            loss = ((a @ q - b) ** 2).mean()
            loss.backward()
            with torch.no_grad():
                q -= 0.1 * q.grad
                a.sub_(a.grad, alpha=0.1)
            q.grad.zero_()
            a.grad = None
        out = loss, a, q
    """,
    "data": """
        loss = (a * a).sum()
        loss.backward()
        a.data -= 0.5 * a.grad.data
        a.data.mul_(2)
        out = a, a.requires_grad, a.is_leaf
    """,
    "leaf in place": "a += 1",
    "leaf in place by method": "a.mul_(2)",
    "leaf item": "a[0] = 1.0",
    "view of leaf in place": "a[0].mul_(2)",
    "view of leaf by view": "a.view(-1).add_(1)",
    "in place": """
        h = a * 2
        h += b
        h *= 3
        h.add_(1).exp_()
        h.sum().backward()
        out = h, a.grad, b.grad
    """,
    "in place on what was saved": """
        h = a * 2
        y = h * h
        h += 1
        y.sum().backward()
    """,
    "in place on a saved result": """
        h = a.exp()
        h.add_(1)
        h.sum().backward()
    """,
    "in place on a quotient": """
        h = a / (1 + b * b)
        h.masked_fill_(h > 0.5, -1.0)
        (h * h).sum().backward()
        out = a.grad
    """,
    "in place on a quotient by a number": """
        h = a / 2
        h.masked_fill_(h > 0.5, -1.0)
        (h * h).sum().backward()
        out = a.grad
    """,
    "in place on a power": """
        h = (a * b) ** 2
        h.masked_fill_(h > 0.5, -1.0)
        (h * h).sum().backward()
        out = a.grad
    """,
    "in place on a size": """
        h = (a * b).abs()
        h.masked_fill_(h > 0.5, -1.0)
        (h * h).sum().backward()
        out = a.grad
    """,
    "in place on a norm without weights": """
        h = torch.nn.functional.layer_norm(a, a.shape[-1:])
        h.masked_fill_(h > 0.5, -1.0)
        (h * h).sum().backward()
        out = a.grad
    """,
    "in place on the logarithm of a chance": """
        h = torch.nn.functional.logsigmoid(a * b)
        h.masked_fill_(h > -0.5, -1.0)
        (h * h).sum().backward()
        out = a.grad
    """,
    "in place on what was not saved": """
        h = a * 2
        y = h + b
        h += 1
        (y.sum() + h.sum()).backward()
        out = a.grad
    """,
    "saved parameter written": """
        y = (a @ q).sum()
        with torch.no_grad():
            q.mul_(2)
        y.backward()
    """,
    "item": """
        h = a * 2
        h[0] = b[1]
        h[:, 1] = 5.0
        h[m] = 0.0
        (h * h).sum().backward()
        out = h, a.grad, b.grad
    """,
    "item of zeros": """
        z = torch.zeros(3, 4)
        for j in range(3):
            z[j] = a[j] * b[j]
        z.sum().backward()
        out = z, z.requires_grad, a.grad
    """,
    "augmented item": """
        h = a * 2
        h[0] += b[0]
        h[:, 2] *= v[0]
        h[1:, 1:].add_(1)
        (h ** 2).sum().backward()
        out = h, a.grad, b.grad, v.grad
    """,
    "view in place": """
        h = a * 2
        w = h.view(-1)
        w.mul_(3)
        w[0] = 7.0
        (h.sum() + (w * w).sum()).backward()
        out = h, w, a.grad
    """,
    "transposed view in place": """
        h = a * 2
        h.t()[1].add_(b.t()[1])
        (h * h).sum().backward()
        out = h, a.grad, b.grad
    """,
    "data of views": """
        z = torch.zeros(2, 3)
        z[0].fill_(1)
        z.view(-1)[4] = 2
        z.t()[2] += 3
        w = z[:, 1]
        w.zero_()
        out = z, w
    """,
    "copies": """
        z = torch.zeros(3, 4)
        z.copy_(a.detach())
        z.fill_(2).clamp_(0, 1)
        z.copy_(torch.tensor(5))
        out = z
    """,
    "copy with derivative": """
        z = torch.empty(3, 4)
        z.copy_(a)
        (z * z).sum().backward()
        out = z, a.grad
    """,
    "fill with derivative": """
        h = a * 1
        h.zero_()
        (h + a).sum().backward()
        out = a.grad
    """,
    "integers in place": """
        n = torch.arange(4)
        n += 2
        n *= 3
        n -= torch.tensor(1)
        n //= 2
        out = n
    """,
    "integer divided in place": "n = torch.arange(4); n /= 2",
    "integer plus float in place": "n = torch.arange(4); n += 0.5",
    "shape grows in place": "n = torch.ones(4); n += torch.ones(3, 4)",
    "masked writes": """
        h = a.clone()
        h.masked_fill_(m, 0.0)
        h.scatter_(1, k.view(3, 1), 9.0)
        h.index_fill_(0, k[:1], 1.0)
        h.clamp_(min=0)
        (h * b).sum().backward()
        out = h, a.grad, b.grad
    """,
    "scatter_add_": """
        z = torch.zeros(4)
        z.scatter_add_(0, k, v[:3])
        z.index_add_(0, k, v[1:])
        z.sum().backward()
        out = z, v.grad
    """,
    "a view used late": """
        h = a * 2
        row = h[0]
        y = row * b[0]
        y.sum().backward()
        out = a.grad, b.grad
    """,
    "function": """
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, n):
                ctx.save_for_backward(x)
                ctx.n = n
                return x ** 2 * n
            @staticmethod
            def backward(ctx, g):
                x, = ctx.saved_tensors
                return 2 * x * ctx.n * g, None
        y = Square.apply(a * 2, 3)
        y.sum().backward()
        out = y, a.grad, y.requires_grad
    """,
    "function twice differentiated": """
        class Exp(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                z = x.exp()
                ctx.save_for_backward(z)
                return z
            @staticmethod
            def backward(ctx, g):
                z, = ctx.saved_tensors
                return g * z
        y = Exp.apply(a)
        g, = torch.autograd.grad(y.sum(), a, create_graph=True)
        g.sum().backward()
        out = g, a.grad
    """,
    "function of several": """
        class Both(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(x, y)
                return x * y, x + y
            @staticmethod
            def backward(ctx, g, h):
                x, y = ctx.saved_tensors
                return g * y + h, g * x + h
        y, z = Both.apply(a, b)
        (y * 2 + z).sum().backward()
        out = a.grad, b.grad
    """,
    "function with context set up": """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(x, factor):
                return x * factor
            @staticmethod
            def setup_context(ctx, inputs, output):
                ctx.factor = inputs[1]
            @staticmethod
            def backward(ctx, g):
                return g * ctx.factor, None
        Scale.apply(a, 3.0).sum().backward()
        out = a.grad
    """,
    "straight through": """
        hard = (a > 0).float()
        soft = a.sigmoid()
        z = hard + soft - soft.detach()
        (z * b).sum().backward()
        out = z, a.grad
    """,
    "grad assigned": """
        a.grad = torch.ones(3, 4)
        (a * 2).sum().backward()
        out = a.grad
    """,
    "grad of a wrong shape": "a.grad = torch.ones(3)",
    "numpy of what is tracked": "a.numpy()",
    "float of integers": "y = (i.float() * a).sum(); y.backward(); out = y, a.grad",
    "types meet": """
        y = (a.double() * b).sum() + s
        y.backward()
        out = y, a.grad, b.grad, s.grad
    """,
    "masked softmax": """
        y = a.masked_fill(m, float('-inf')).softmax(-1)
        (y @ q).sum().backward()
        out = y, a.grad
    """,
    "recurrence": """
        h = torch.zeros(3, 4)
        states = []
        for j in range(5):
            h = torch.tanh(h @ q + a)
            states.append(h)
        torch.stack(states).pow(2).mean().backward()
        out = h, a.grad, q.grad
    """,
    "joined": """
        y = torch.cat([torch.zeros(1, 4), a, b.exp()]) ** 2
        z = torch.stack([y[1:4], torch.ones(3, 4), a])
        first = torch.autograd.grad(z.sum(), [a, b], retain_graph=True)
        g, = torch.autograd.grad((z ** 2).sum(), a, create_graph=True)
        g.sum().backward()
        out = first, g, a.grad
    """,
    "function whose saved tensor is written to": """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, c):
                ctx.save_for_backward(c)
                return x * c

            @staticmethod
            def backward(ctx, z_bar):
                return z_bar * ctx.saved_tensors[0], None

        c = torch.ones(3, 4)
        z = Scale.apply(a, c)
        c.mul_(2)
        z.sum().backward()
    """,
    "function whose result is written to": """
        class Exp(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                z = x.exp()
                ctx.save_for_backward(z)
                return z

            @staticmethod
            def backward(ctx, z_bar):
                return z_bar * ctx.saved_tensors[0]

        z = Exp.apply(a)
        with torch.no_grad():
            z.mul_(2)
        z.sum().backward()
    """,
    "function whose tensor is written to when it is over": """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, c):
                ctx.save_for_backward(c)
                ctx.times = c
                return x * c

            @staticmethod
            def backward(ctx, z_bar):
                return z_bar * ctx.saved_tensors[0], None

        c = torch.ones(3, 4)
        for _ in range(2):
            Scale.apply(a, c).sum().backward()
            c.mul_(2)
        out = a.grad
    """,
    "embedding": """
        rows = q[i]
        (rows * rows).sum().backward()
        out = q.grad
    """,
    "shared branch": """
        h = a.exp()
        y = h.sum(0) * h.mean(0) + h[0] - h[1].detach()
        y.sum().backward()
        out = a.grad
    """,
    "expanded": """
        z = v.expand(3, 4) * a
        z.sum().backward()
        out = v.grad, a.grad
    """,
}


def run(source, torch):
    names = inputs(torch)
    warnings.simplefilter("ignore")  # PyTorch's, about create_graph
    try:
        exec(textwrap.dedent(source), names)
    except Exception as error:
        return error
    return plain(names.get("out"))


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_the_same(name):
    mine, other = run(PROGRAMS[name], ours), run(PROGRAMS[name], theirs)
    if isinstance(other, Exception):
        assert isinstance(mine, type(other)), (mine, other)
        assert words(mine)[:6] == words(other)[:6]
    else:
        assert not isinstance(mine, Exception), mine
        assert_same(mine, other)


def words(error):
    return str(error).replace(":", " ").split()


@pytest.fixture
def uncollected():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_gradients_of_several_cotangents_at_once():
    found = []
    for torch in (ours, theirs):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        w = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        y = torch.stack([x.prod(), (x * x).sum()])
        (z,) = torch.autograd.grad(y, x, w, is_grads_batched=True, create_graph=True)
        z.sum().backward()
        found.append((z.tolist(), x.grad.tolist()))
    assert found[0] == found[1]


def test_a_dropped_branch_is_freed_at_once(uncollected):
    x = ours.randn(1000, requires_grad=True)
    y = (x * 2).exp()
    array, receiver = weakref.ref(y.primal), weakref.ref(y.receiver)
    z = y * x + y.sum()
    del y
    assert array() is not None
    del z
    assert array() is None
    assert receiver() is None


def test_backward_frees_what_was_saved(uncollected):
    x = ours.randn(1000, requires_grad=True)
    y = x.exp()
    array = weakref.ref(y.primal)
    loss = (y * y).sum()
    del y
    loss.backward()
    assert array() is None
    assert loss.item() > 0


def test_evaluation_without_no_grad_does_not_grow(uncollected):
    q = ours.randn(4, 4, requires_grad=True)
    x = ours.randn(3, 4)

    def evaluate():
        for _ in range(20):
            (x @ q).relu().sum().item()

    evaluate()
    before = len(gc.get_objects())
    evaluate()
    assert len(gc.get_objects()) <= before + 2


def test_training_leaves_no_cycles(uncollected):
    q = ours.randn(4, 4, requires_grad=True)

    def step():
        h = (q @ q) * 2
        h[0] += 1
        loss = (h - h.mean(0)).pow(2).sum()
        loss.backward()
        with ours.no_grad():
            q.sub_(q.grad, alpha=0.01)
        q.grad = None

    step()
    gc.collect()
    for _ in range(5):
        step()
    assert gc.collect() == 0


def test_long_chains_neither_recurse_nor_crash(uncollected):
    x = ours.tensor(1.0, requires_grad=True)
    y = x
    for _ in range(30_000):
        y = y + x
    y.backward()
    assert x.grad.item() == 30_001
    for _ in range(30_000):
        y = y * 1.0
    del y


def test_a_frozen_factor_is_not_multiplied_for(monkeypatch):
    from lantern.tensor.ops.products import Product

    calls = []
    original = Product.dense

    def counted(*args):
        calls.append(args)
        return original(*args)

    monkeypatch.setattr(Product, "dense", counted)
    x = ours.randn(3, 4, requires_grad=True)
    q = ours.randn(4, 4)
    (x @ q).sum().backward()
    assert calls == []


def test_gradients_share_no_memory():
    x = ours.ones(3, requires_grad=True)
    y = ours.ones(3, requires_grad=True)
    (x + y).backward(ours.ones(3))
    x.grad.add_(1)
    assert y.grad.tolist() == [1, 1, 1]
    seed = ours.ones(3)
    x.grad = None
    (x + 0).backward(seed)
    x.grad.add_(1)
    assert seed.tolist() == [1, 1, 1]


def kept_of(there, back):
    """A leaf's gradient by a rule, and a list of what that rule holds on to."""
    held = []

    @op
    def rule(x, /):
        z_bar = yield there(x)
        yield back(z_bar, held)

    x = ours.ones(4, 6, requires_grad=True)
    fused(rule)(x).backward(ours.ones(4, 6))
    return x.grad.numpy(), held


def test_another_form_of_what_nobody_else_has_is_a_gradient_as_it_is():
    addresses = []

    def back(z_bar, held):
        rows = np.full(24, 2.0, np.float32)
        addresses.append(rows.ctypes.data)
        return rows.reshape(4, 6)

    grad, _ = kept_of(np.copy, back)
    assert grad.ctypes.data == addresses[0]
    assert (grad == 2).all()


@pytest.mark.parametrize(
    "form",
    [
        lambda rows: rows.reshape(4, 6),
        lambda rows: rows[: 4 * 6].reshape(6, 4).T,
        lambda rows: np.broadcast_to(rows.reshape(4, 6), (4, 6)),
        lambda rows: np.broadcast_to(rows[:1], (4, 6)),
    ],
    ids=["reshaped", "turned", "read only", "broadcast"],
)
def test_a_form_of_what_somebody_has_is_copied_as_a_gradient(form):
    def back(z_bar, held):
        held.append(np.full(24, 2.0, np.float32))
        return form(held[0])

    grad, held = kept_of(np.copy, back)
    grad += 1
    assert (held[0] == 2).all()
    assert (grad == 3).all()


@pytest.mark.parametrize(
    "form",
    [
        lambda: np.broadcast_to(np.full((4, 6), 2.0, np.float32), (4, 6)),
        lambda: np.full((8, 6), 2.0, np.float32)[:4],
    ],
    ids=["read only", "a part"],
)
def test_a_gradient_can_be_written_to_and_keeps_no_more_than_itself(form):
    grad, _ = kept_of(np.copy, lambda z_bar, held: form())
    grad += 1
    under = grad if grad.base is None else grad.base
    assert (grad == 3).all()
    assert under.nbytes == grad.nbytes


def test_a_failing_hook_poisons_nothing():
    x = ours.ones(3, requires_grad=True)
    h = x * 2

    def fail(g):
        raise KeyError("mine")

    handle = h.register_hook(fail)
    y = (h * x).sum()
    with pytest.raises(KeyError, match="mine"):
        y.backward(retain_graph=True)
    handle.remove()
    x.grad = None
    (x * 3).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [3, 3, 3])


def test_a_view_follows_a_write_to_its_base():
    x = ours.ones(2, 3, requires_grad=True)
    h = x * 2
    row = h[0]
    h.mul_(3)
    (row * 2).sum().backward()
    assert x.grad.tolist() == [[12.0] * 3, [0.0] * 3]


def test_the_no_grad_of_other_derivatives_is_refused():
    x = ours.tensor([1.0, 2.0], requires_grad=True)
    refused = pytest.raises(lantern.ArgumentError, match=r"torch\.no_grad\(\)")
    with refused, lantern.no_grad(x):
        pass


def test_what_completes_a_basis_has_no_derivative():
    a = ours.arange(6.0).view(3, 2).cos().requires_grad_()
    left, sizes, right = ours.linalg.svd(a)
    whole = left.detach()
    assert ours.allclose(whole.T @ whole, ours.eye(3), atol=1e-6)
    assert ours.allclose(whole[:, :2] * sizes.detach() @ right.detach(), a.detach())
    (left[:, :2].sum() + sizes.sum()).backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="full_matrices=False"):
        left.sum().backward()


@pytest.mark.parametrize("way", ["plainly", "by a helper", "once"])
@pytest.mark.parametrize("kind", ["tensor", "array", "closure"])
def test_what_a_function_keeps_elsewhere_and_was_written_to(kind, way):
    """PyTorch computes with the new values."""
    c = ours.ones(3)

    def plainly(ctx, z_bar):
        if kind == "closure":
            return z_bar * c
        return z_bar * ours.as_tensor(ctx.c)

    def helped(ctx, z_bar):
        return plainly(ctx, z_bar)

    once = ours.autograd.function.once_differentiable(plainly)

    class Scale(ours.autograd.Function):
        backward = staticmethod(
            {"plainly": plainly, "by a helper": helped, "once": once}[way]
        )

        @staticmethod
        def forward(ctx, x):
            ctx.c = {"tensor": c, "array": c.numpy(), "closure": None}[kind]
            return x * c

    x = ours.ones(3, requires_grad=True)
    z = Scale.apply(x)
    c.mul_(5.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    Scale.apply(x).sum().backward()
    assert x.grad.tolist() == [5.0] * 3


def test_what_the_backward_step_does_not_read_may_be_written_to():
    mean = ours.zeros(3)

    class Scale(ours.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mean = mean
            mean.mul_(0.9).add_(x.detach() * 0.1)
            return x * 2.0

        @staticmethod
        def backward(ctx, z_bar):
            return z_bar * 2.0

    x = ours.ones(3, requires_grad=True)
    (Scale.apply(x) + Scale.apply(x)).sum().backward()
    assert x.grad.tolist() == [4.0] * 3


# Functions of x whose first result is differentiated while others are written to.
BESIDE = {
    "max": lambda x: x.max(1),
    "min": lambda x: x.min(0),
    "median": lambda x: x.median(1),
    "nanmedian": lambda x: x.nanmedian(0),
    "mode": lambda x: x.mode(1),
    "kthvalue": lambda x: x.kthvalue(2, 1),
    "sort": lambda x: x.sort(1),
    "topk": lambda x: x.topk(2, 1),
    "cummax": lambda x: x.cummax(0),
    "eigh": lambda x: ours.linalg.eigh(x + x.mT),
    "svd": lambda x: ours.linalg.svd(x),
    "qr": lambda x: ours.linalg.qr(x)[::-1],
    "slogdet": lambda x: ours.linalg.slogdet(x)[::-1],
}


@pytest.mark.parametrize("retain", [False, True])
@pytest.mark.parametrize("name", BESIDE)
def test_what_is_written_to_other_results_is_not_read(name, retain):
    start = ours.tensor(np.random.default_rng(0).normal(size=(3, 3)))
    found = []
    for write in (False, True):
        x = start.clone().requires_grad_()
        z, *others = BESIDE[name](x)
        with ours.no_grad():
            for other in others if write else ():
                other.zero_()
        weights = ours.arange(1.0, 1 + z.numel(), dtype=z.dtype).view(z.shape)
        (z * weights).sum().backward(retain_graph=retain)
        found.append(x.grad.tolist())
    assert found[0] == found[1]


def test_operands_of_several_results_are_not_read_once_they_are_written_to():
    def written(retain, f):
        x = ours.tensor([[2.0, 1.0], [0.0, 3.0]], requires_grad=True)
        y = x * 1
        z = f(y)
        with ours.no_grad():
            y.fill_(0.7)
        z.sum().backward(retain_graph=retain)
        return x.grad.tolist()

    class Both(ours.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b * 3

    x = ours.tensor([[2.0, 1.0], [0.0, 3.0]], requires_grad=True)
    ours.linalg.svd(x)[1].sum().backward()
    assert written(False, lambda y: ours.linalg.svd(y)[1]) == x.grad.tolist()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        written(True, lambda y: ours.linalg.svd(y)[1])
    for retain in (False, True):
        assert written(retain, lambda y: Both.apply(y)[0]) == [[2.0, 2.0]] * 2
        assert written(retain, lambda y: y.unbind(0)[0]) == [[1.0, 1.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    "write",
    [
        lambda w: w.apply_(lambda a: a + 1),
        lambda w: w.map_(w * 2, lambda a, b: a + b),
        lambda w: w.map2_(w, w, lambda a, b, c: a + b + c),
        lambda w: w[0].apply_(lambda a: a + 1),
    ],
)
def test_what_functions_of_numbers_write_counts(write):
    x, w = ours.ones(2, 2, requires_grad=True), ours.ones(2, 2)
    z = (x * w).sum()
    write(w)
    assert w._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()
