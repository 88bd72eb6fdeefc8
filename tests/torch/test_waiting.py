"""What waits at a leaf comes to the same sums, whenever someone looks."""

import numpy as np
import pytest

import lantern.torch as torch
from lantern.core.contribution import Contribution
from lantern.tensor.accumulate.deferred_products import Collector, DeferredSum
from lantern.tensor.ops.products import Product
from lantern.torch.nn import rules

nn = torch.nn
F = nn.functional


@pytest.fixture(params=[0.0, 0.5, 1.0, 100.0])
def share(request, monkeypatch):
    monkeypatch.setattr(Collector, "share", request.param)


def leaf(*shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape) * 0.3
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def recurrent(use):
    """The same weight in products with matrices, stacks and vectors, by turns."""
    w, h = leaf(6, 6), torch.ones(2, 6, dtype=torch.float64)
    for t in range(20):
        h = torch.tanh(h @ use(w) + t / 10) + F.linear(h, use(w)) * 0.1
    z = h.expand(3, 2, 6) @ use(w)
    return w, (z * z).sum() + h[0] @ use(w) @ h[1] + (use(w) * use(w)).sum()


def tied(use):
    """A table whose rows are read, and which is a weight as well."""
    w, total = leaf(9, 4), 0
    for t in range(8):
        x = F.embedding(torch.tensor([t, 3, 3, t % 2]), use(w), padding_idx=7)
        total = total + F.linear(torch.tanh(x), use(w)).pow(2).sum() + use(w)[t].sum()
    return w, total


def rows_alone(use):
    """A table of which few rows are read."""
    w = leaf(50, 4)
    x = F.embedding(torch.tensor([1, 7, 7, 1]), use(w))
    return w, (x * x).sum() + F.embedding(torch.tensor([[49], [1]]), use(w)).sum()


@pytest.fixture(params=[recurrent, tied, rows_alone])
def program(request):
    return request.param


def expected(program):
    """The gradient where each use is a clone, which is no leaf."""
    w, loss = program(lambda w: w.clone())
    loss.backward()
    return w.grad.numpy()


def close(got, wanted):
    np.testing.assert_allclose(np.asarray(got.detach()), wanted, rtol=1e-12, atol=1e-13)


class TestSameSums:
    def test_backward(self, program, share):
        w, loss = program(lambda w: w)
        loss.backward()
        close(w.grad, expected(program))

    def test_twice(self, program, share):
        w, loss = program(lambda w: w)
        loss.backward(retain_graph=True)
        loss.backward()
        close(w.grad, 2 * expected(program))

    def test_grad_of_inputs(self, program, share):
        w, loss = program(lambda w: w)
        close(torch.autograd.grad(loss, w)[0], expected(program))
        assert w.grad is None

    def test_create_graph(self, program, share):
        w, loss = program(lambda w: w)
        (g,) = torch.autograd.grad(loss, w, create_graph=True)
        close(g, expected(program))
        g.sum().backward()
        v, again = program(lambda w: w.clone())
        torch.autograd.grad(again, v, create_graph=True)[0].sum().backward()
        close(w.grad, v.grad.numpy())

    def test_a_hook_sees_the_sum(self, program, share):
        w, loss = program(lambda w: w)
        seen = []
        w.register_hook(lambda g: seen.append(g) or g * 2)
        loss.backward()
        close(seen[0], expected(program))
        close(w.grad, 2 * expected(program))


def test_products_wait():
    _, loss = recurrent(lambda w: w)
    waited = []
    take = DeferredSum.take
    try:
        DeferredSum.take = lambda *args: waited.append(1) or take(*args)
        loss.backward()
    finally:
        DeferredSum.take = take
    assert len(waited) > 20


def test_a_hook_that_writes_while_a_product_waits_is_noticed():
    w, y = leaf(6, 6), torch.ones(1, 6, dtype=torch.float64)
    z = leaf(1, 6) * 2  # resumed last
    z.register_hook(lambda g: y.zero_().new_ones(1, 6))
    loss = (z @ w).sum() + (y @ w).sum() + (y @ w).sum()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


class TestRows:
    def table(self):
        w, loss = rows_alone(lambda w: w)
        loss.backward()
        return w

    def test_they_stay_apart_until_someone_looks(self):
        w = self.table()
        assert isinstance(w.receiver.grad, Contribution)
        close(w.grad, expected(rows_alone))
        assert not isinstance(w.receiver.grad, Contribution)

    def test_what_is_written_afterwards_does_not_matter(self):
        w, index = leaf(50, 4), torch.tensor([1, 2])
        x = F.embedding(index, w)
        x.retain_grad()
        x.sum().backward()
        index.zero_()
        x.grad.zero_()
        assert w.grad.sum(1).tolist() == [0, 4, 4] + [0] * 47

    def test_more_passes_add_up(self):
        w = self.table()
        F.embedding(torch.tensor([3]), w).sum().backward()
        (w * w).sum().backward()
        wanted = expected(rows_alone) + 2 * w.detach().numpy()
        wanted[3] += 1
        close(w.grad, wanted)

    def test_other_data_of_another_shape(self):
        w = self.table()
        w.data = torch.ones(3, dtype=torch.float64)
        assert w.grad.shape == (50, 4)

    @pytest.mark.parametrize("look", [False, True])
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"maximize": True},
            {"momentum": 0.9},
            {"weight_decay": 0.1},
            {"momentum": 0.9, "nesterov": True},
        ],
    )
    def test_descent(self, options, look):
        made = []
        for use in (lambda w: w, lambda w: w.clone()):
            w, _ = rows_alone(use)
            optimizer = torch.optim.SGD([w], lr=0.1, **options)
            for step in range(3):
                optimizer.zero_grad()
                x = F.embedding(torch.tensor([1, 7, step, 1]), use(w))
                (x * x).sum().backward()
                if look:
                    assert w.grad is not None
                optimizer.step()
            made.append(w)
        close(made[0], made[1].detach().numpy())
        close(made[0].grad, made[1].grad.numpy())

    def test_frozen_parameters_beside(self):
        frozen = nn.Parameter(torch.ones(2), requires_grad=False)
        optimizer = torch.optim.SGD([frozen, w := self.table()], lr=0.1)
        before = w.detach().clone()
        optimizer.step()
        assert frozen.tolist() == [1, 1]
        close(w, before.numpy() - 0.1 * expected(rows_alone))


def large(x, weight):
    """The loss of a layer whose weight takes many times the memory of its factors."""
    return F.linear(x, weight).square().sum()


@pytest.fixture(params=[True, False])
def blas(request, monkeypatch):
    """With and without a BLAS that is found inside NumPy."""
    if not request.param:
        monkeypatch.setattr("lantern.tensor.backend.blas._gemm", lambda letter: None)


class TestProducts:
    def test_one_stays_apart_until_someone_looks(self):
        w, x = leaf(208, 160), leaf(2, 160, seed=1).detach()
        large(x, w).backward()
        assert isinstance(w.receiver.grad, Contribution)
        wanted = 2 * (x.numpy() @ w.detach().numpy().T).T @ x.numpy()
        x.zero_()  # too late to matter
        optimizer = torch.optim.SGD([w], lr=0.5)
        before = w.detach().clone()
        optimizer.step()
        close(w.grad, wanted)
        close(w, before.numpy() - 0.5 * wanted)
        large(leaf(2, 160), w).backward()
        assert not isinstance(w.receiver.grad, Contribution)

    @pytest.mark.parametrize("look", [False, True])
    @pytest.mark.parametrize(
        "options", [{}, {"maximize": True}, {"momentum": 0.9}, {"weight_decay": 0.1}]
    )
    def test_descent(self, options, look, blas):
        made = []
        for use in (lambda w: w, lambda w: w.clone()):
            w = leaf(208, 160)
            optimizer = torch.optim.SGD([w], lr=0.1, **options)
            for step in range(3):
                optimizer.zero_grad()
                large(leaf(1 + step, 160, seed=step), use(w)).backward()
                assert not look or w.grad is not None
                optimizer.step()
            made.append(w)
        close(made[0], made[1].detach().numpy())
        close(made[0].grad, made[1].grad.numpy())

    def test_what_a_hook_writes_to_does_not_matter(self):
        w, x = leaf(208, 160), leaf(2, 160, seed=1).detach()
        wanted = 2 * (x.numpy() @ w.detach().numpy().T).T @ x.numpy()
        z = leaf(3) * 2  # resumed last
        z.register_hook(lambda g: g + x.zero_().sum())
        (z.sum() + large(x, w)).backward()
        close(w.grad, wanted)

    @pytest.mark.parametrize("rows", [0, 1, 3])
    @pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, np.complex64])
    def test_they_are_added_in_one_pass(self, rows, kind, blas):
        random = np.random.default_rng(0)
        x, z_bar = (random.standard_normal((rows, n)).astype(kind) for n in (5, 7))
        total = random.standard_normal((5, 7)).astype(kind)
        wanted, eps = total + x.T @ z_bar, np.finfo(kind).eps
        turned, strided = total.T.copy().T, np.repeat(total, 2, axis=1)[:, ::2]
        for sum_ in (total, turned, strided):
            Product(x, z_bar).add_to(sum_)
            np.testing.assert_allclose(sum_, wanted, rtol=8 * eps, atol=8 * eps)
        Product(x, z_bar[:, ::-1]).add_to(total)
        np.testing.assert_allclose(total, wanted + x.T @ z_bar[:, ::-1], 1e-2, 1e-2)


def test_anomalies_are_looked_for_in_what_waits():
    w = rows_alone(lambda w: w)[0]
    with torch.autograd.detect_anomaly():
        F.embedding(torch.tensor([1]), w).sum().backward()
        with pytest.raises(RuntimeError, match="nan"):
            x = torch.full((1, 160), np.nan, dtype=torch.float64)
            large(x, leaf(208, 160)).backward()


@pytest.mark.parametrize("positions", [[], [2], [4, 1], [0, 0, 3, 0, 4, 3], [[1], [1]]])
def test_rows_are_added_once_for_each_time(positions):
    index = np.array(positions, int)
    z_bar = np.random.default_rng(0).standard_normal((*index.shape, 3))
    wanted = np.ones((5, 3))
    for i, row in zip(index.ravel(), z_bar.reshape(-1, 3), strict=True):
        wanted[i] += row
    buffer = np.ones((5, 3))
    rules.Rows(index, z_bar).add_to(buffer)
    np.testing.assert_allclose(buffer, wanted, rtol=1e-14)
    strided = np.ones((5, 6))[:, ::2]
    rules.Rows(index, z_bar).add_to(strided)
    np.testing.assert_allclose(strided, wanted, rtol=1e-14)


@pytest.mark.parametrize("kind", [torch.int32, torch.uint8, torch.int64])
def test_positions_of_any_integer_type(kind):
    index = torch.tensor([1, 2], dtype=kind)
    assert nn.Embedding(5, 2)(index).shape == (2, 2)
    with pytest.raises(IndexError):
        nn.Embedding(2, 2)(index)


@pytest.mark.parametrize("rows", [1, 2, 3, 64, 65])
def test_products_of_any_number_of_rows(rows):
    random = np.random.default_rng(0)
    x, w = random.standard_normal((rows, 256)), random.standard_normal((256, 256))
    z = rules.product(x, w)
    np.testing.assert_allclose(z, x @ w.T, rtol=1e-12, atol=1e-12)
    assert z.flags.c_contiguous


def test_a_step_of_one_example():
    cell = nn.LSTMCell(3, 5)
    x, h, c = torch.rand(3), torch.rand(5), torch.rand(5)
    for one, row in zip(
        cell(x, (h, c)), cell(x[None], (h[None], c[None])), strict=True
    ):
        assert one.shape == (5,)
        close(one, row[0].detach().numpy())


def test_states_can_be_written_to():
    cell, x = nn.LSTMCell(3, 5), torch.rand(2, 3)
    h, c = cell(x)
    h[0] = 0
    again = cell(x, (h, c))[0]
    again.sum().backward()
    wanted = cell.weight_ih.grad
    cell.zero_grad()
    h, c = cell(x)
    h = h * torch.tensor([[0.0], [1.0]])
    cell(x, (h, c))[0].sum().backward()
    np.testing.assert_allclose(cell.weight_ih.grad.numpy(), wanted.numpy(), rtol=1e-5)


def test_nothing_passes_where_a_mask_holds():
    x = torch.tensor([[0.0, 1.0], [2.0, 0.0]], requires_grad=True)
    w = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    z = (x.log() * 2).masked_fill(x == 0, 0.0).t() @ w
    z.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0.0, 6.0], [7.0, 0.0]])
    y = torch.tensor([0.0, 4.0], requires_grad=True)
    scores = (y.sqrt().masked_fill(y == 0, 0.0) + 0).reshape(1, 2) @ w
    scores.masked_fill(torch.tensor([[True, False]]), -1.0).sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), [0.0, 1.0])


def test_cross_entropy_of_logits_that_lie_in_another_order():
    values = np.random.default_rng(0).standard_normal((4, 6))
    y, made = torch.tensor([0, 5, 2, 2]), []
    for array in (values, np.asfortranarray(values), np.repeat(values, 2, 1)[:, ::2]):
        x = torch.from_numpy(array).requires_grad_()
        F.cross_entropy(x, y).backward()
        made.append(x.grad.numpy())
    np.testing.assert_allclose(made[0].sum(1), 0, atol=1e-15)
    np.testing.assert_allclose(made[1], made[0], rtol=1e-14)
    np.testing.assert_allclose(made[2], made[0], rtol=1e-14)
