"""Views of memory that becomes tracked later; threads that share leaves; warnings."""

import subprocess
import sys
import threading

import pytest

import lantern.torch as ours
from tests.torch.compared import assert_same, assert_same_scenario, plain

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")


def by_the_base(b, w):
    v = b[0:2]
    b.mul_(w)
    return v * v


def by_another_view(b, w):
    v, u = b[0:2], b[1:]
    u.mul_(w[1:])
    return v * v


def by_an_item(b, w):
    v = b.view(3, 1)
    b[0] = w[0]
    return v * v


def of_a_view_twice(b, w):
    v = b[0:2][1:]
    b += w
    b *= w
    return v * v + b.sum()


def under_no_grad(b, w):
    v = b[0:2].detach()
    b += w
    return v * b.sum()


def of_what_is_cut_off(b, w):
    v = b.detach()[0:2]
    b += w
    return v * b.sum()


def through_what_is_cut_off(b, w):
    v = b.detach()
    v += w
    return v.sum() + (b * b).sum()


WRITES = [
    by_the_base,
    by_another_view,
    by_an_item,
    of_a_view_twice,
    under_no_grad,
    of_what_is_cut_off,
    through_what_is_cut_off,
]


@pytest.mark.parametrize("program", WRITES, ids=lambda f: f.__name__)
def test_a_view_of_an_untracked_base_follows_a_tracked_write(program):
    found = []
    for torch in (ours, theirs):
        w = torch.tensor([2.0, 3.0, 4.0], requires_grad=True)
        b = torch.tensor([1.0, 1.0, 1.0])
        z = program(b, w)
        z.sum().backward()
        found.append((z.tolist(), w.grad.tolist(), b.requires_grad))
    assert found[0] == found[1]


# Functions of a matrix, by whether PyTorch's result shows its memory.
VIEWS = """
x.view(-1); x.T; x[1:, ::2]; x.diagonal(); x.diagonal(1); x.T.diagonal(); x.expand_as(x)
torch.linalg.diagonal(x); x.as_strided((2, 2), (4, 1)); x[1:].as_strided((2,), (1,), 1)
x.T.as_strided((2, 3), (1, 2)); x[1].as_strided((2,), (2,)); x.T.ravel(); x.T.flatten()
torch.einsum('ij->ji', x); torch.einsum('ij->ij', x); x.narrow(1, 1, 2)
torch.broadcast_tensors(x, x)[1]; torch.meshgrid(x[0], indexing='ij')[0]; x.flip(0)
torch.Tensor(x); x.rot90(); x.rot90(2); x.fliplr(); x.flipud(); x.diag(); x.diag(1)
x.T.diag(-1); torch.take(x, torch.arange(12)); torch.FloatTensor(x); x.real
x.unfold(1, 2, 2)
torch.nn.functional.pixel_shuffle(x[None], 1)[0]; x.to('cpu', x.dtype, False, True)
x.movedim(0, 1); x.detach(); x.reshape(4, 3); x.T.reshape(12); x.roll(0, 0)
"""
SHOWN = [e.strip() for e in VIEWS.replace("\n", ";").split(";") if e.strip()]


@pytest.mark.parametrize("source", SHOWN)
@pytest.mark.parametrize("tracked", [False, True], ids=["base", "tracked base"])
def test_memory_is_shared_where_pytorch_shares_it(source, tracked):
    found = []
    for torch in (ours, theirs):
        a = torch.arange(12.0).view(3, 4).requires_grad_()
        w = torch.tensor(3.0, requires_grad=True)
        x = a * 1 if tracked else a.detach().clone()
        y = eval(source, {"torch": torch, "x": x})
        y.mul_(w)
        ((x * x).sum() + (y * y * y).sum()).backward()
        grads = [w.grad.tolist(), a.grad.tolist() if tracked else None]
        found.append((x.tolist(), y.tolist(), *grads))
    assert found[0] == found[1]


@pytest.mark.parametrize("source", SHOWN)
def test_a_plain_write_is_seen_where_pytorch_shows_it(source):
    found = []
    for torch in (ours, theirs):
        x = torch.arange(12.0).view(3, 4)
        y = eval(source, {"torch": torch, "x": x})
        x += 1
        seen = y.tolist()
        y[...] = 7
        found.append((seen, x.tolist(), y.tolist()))
    assert found[0] == found[1]


# Results that PyTorch lays in rows, whatever the order of the operands' memory.
LAID = """
torch.cat([x.T, x.T]); torch.stack([x.T, x.T]); torch.einsum('ij,kj->ki', x, x)
x[None].permute(2, 1, 0).sum(1); x.T.softmax(-1); x.T.log_softmax(0); x.T.cumsum(0)
x.T.masked_fill(x.T > 3, 0); x.T.index_select(0, torch.tensor([1, 0])); x.T.tril()
"""
IN_ROWS = [e.strip() for e in LAID.replace("\n", ";").split(";") if e.strip()]


@pytest.mark.parametrize("tracked", [False, True], ids=["plain", "tracked"])
@pytest.mark.parametrize("source", IN_ROWS)
def test_a_result_can_be_viewed_in_another_shape(source, tracked):
    found = []
    for torch in (ours, theirs):
        x = torch.arange(12.0).view(3, 4).requires_grad_(tracked)
        y = eval(source, {"torch": torch, "x": x})
        z = y.view(-1)
        z *= 2
        found.append((plain(y), plain(z)))
    assert_same(*map(list, found))


def test_a_result_that_others_see_stays_where_it_is():
    for torch in (ours, theirs):
        with pytest.raises(RuntimeError, match="view size is not compatible"):
            torch.ones(3, 4).T.view(12)
    y = ours.cat([ours.ones(3, 4).T])
    array = y.numpy()[0]
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        y.view(12)
    y += 1
    assert array.tolist() == [2.0] * 3


# What shows a result that NumPy's functions have not laid in rows; how it is viewed.
TOGETHER = """
x[0] | x.view(8, 16)
x[0][:, 1:3] | x.view(8, 16)
x.detach() | x.view(8, 16)
x.data[1] | x.view(8, 16)
x.expand(3, 2, 4, 4, 4) | x.view(8, 16)
x.permute(3, 2, 1, 0) | x.view(8, 16)
x.permute(1, 0, 2, 3) | y.permute(1, 0, 2, 3).view(8, 16)
x.view(2, 4, 16) | y.view(2, 4, 4, 4).view(8, 16)
x.view(2, 4, 16)[1] | x.view(2, 4, 4, 4).view(8, 16)
x.unsqueeze(0) | y.view(8, 16)
x[:, ::2, 1:] | y[0].view(2, 12)
x.diagonal(0, 2, 3) | x.view(-1)
x[:0] | x.view(-1)
"""


@pytest.mark.parametrize("tracked", [False, True], ids=["plain", "tracked"])
@pytest.mark.parametrize("case", TOGETHER.strip().splitlines())
def test_a_result_is_laid_in_rows_with_all_that_shows_it(case, tracked):
    found = []
    for torch in (ours, theirs):
        shown, viewed = case.split(" | ")
        a = (
            torch.arange(144.0, dtype=torch.float64)
            .view(2, 2, 6, 6)
            .requires_grad_(tracked)
        )
        weight = torch.arange(72.0, dtype=torch.float64).view(4, 2, 3, 3).sin()
        x = torch.nn.functional.conv2d(a.cos(), weight)
        space = {"torch": torch, "x": x}
        y = space["y"] = eval(shown, space)
        z = eval(viewed, space)
        z[0] = z[1] * 2
        ((x * x).sum() + (y**3).sum() + z.sum()).backward() if tracked else None
        found.append([plain(x), plain(y), plain(z), a.grad.tolist() if tracked else 0])
    assert_same(*found)


def test_what_rules_have_saved_of_a_result_stays():
    a = ours.arange(50.0).view(2, 1, 5, 5).requires_grad_()
    x = ours.nn.functional.conv2d(a, ours.ones(3, 1, 2, 2))
    square, part = x * x, x[0]
    assert x.stride() != (48, 16, 4, 1)
    z = x.view(12, 8)
    assert x.stride() == (48, 16, 4, 1)
    (square.sum() + z.sum() + part.sum()).backward()
    b = ours.arange(50.0).view(2, 1, 5, 5).requires_grad_()
    y = ours.nn.functional.conv2d(b, ours.ones(3, 1, 2, 2))
    ((y * y).sum() + y.sum() + y[0].sum()).backward()
    assert a.grad.tolist() == b.grad.tolist()
    with ours.no_grad():
        z.zero_()
    assert float(part.abs().sum()) == 0 < float(square.sum())


def test_an_axis_of_length_1_has_a_step_as_well():
    x = ours.arange(12.0).view(3, 4)
    found = [y.stride() for y in (x[None], x[0:1], x[:, [1]], x[0:1, [1, 2]])]
    assert found == [(12, 4, 1), (4, 1), (1, 1), (2, 1)]


COMPLEX = """
torch.view_as_real(z); z.real; z.imag; torch.view_as_complex(x); z.conj().clone()
torch.view_as_real(torch.view_as_complex(x)); torch.view_as_complex(x).imag
"""
PARTS = [e.strip() for e in COMPLEX.replace("\n", ";").split(";") if e.strip()]


@pytest.mark.parametrize("source", PARTS)
def test_parts_of_complex_numbers_are_views(source):
    found = []
    for torch in (ours, theirs):
        x = torch.arange(12.0).view(3, 2, 2)
        z = torch.complex(x[..., 0], x[..., 1])
        y = eval(source, {"torch": torch, "x": x, "z": z})
        y *= 3
        found.append((x.tolist(), z.tolist(), y.tolist()))
    assert found[0] == found[1]


def test_a_view_as_another_type_is_not_written_to_with_a_derivative():
    w = ours.tensor(2.0, requires_grad=True)
    z = ours.complex(ours.ones(3), ours.ones(3))
    with pytest.raises(RuntimeError, match="another type"):
        z.imag.mul_(w)
    part = z.real
    with pytest.raises(RuntimeError, match="another type"):
        z.mul_(w)
    assert not part.requires_grad


@pytest.mark.parametrize("write", ["y.add_(1)", "y[:] = 1", "y.mul_(w)", "y += 1"])
def test_what_is_shown_more_than_once_is_not_written_to(write):
    for torch in (ours, theirs):
        w = torch.tensor(2.0, requires_grad=True)
        y = torch.ones(3).expand(2, 3)
        with pytest.raises(RuntimeError, match="single memory location"):
            exec(write, {"y": y, "w": w})


def test_a_view_from_before_a_write_has_the_gradient_of_what_it_shows():
    a = ours.ones(3, requires_grad=True)
    x = a * 1
    y = x.view(3, 1)
    x.mul_(2)
    (g,) = ours.autograd.grad(y, a, ours.ones(3, 1), retain_graph=True)
    y.backward(ours.ones(3, 1))
    assert (g.tolist(), a.grad.tolist()) == ([2.0] * 3, [2.0] * 3)


def test_threads_that_share_leaves_take_turns():
    w = ours.ones(3, requires_grad=True)
    other = threading.Thread(target=lambda: (w * 5).sum().backward())
    y = w * 2
    z = w * 3  # resumed first: the leaf holds its contribution when the hook is called

    def meanwhile(y_bar):
        other.start()
        other.join(0.2)

    y.register_hook(meanwhile)
    (found,) = ours.autograd.grad((y + z).sum(), w)
    other.join()
    assert (found.tolist(), w.grad.tolist()) == ([5.0] * 3, [5.0] * 3)


def test_a_pass_may_start_another():
    x, y = (ours.ones(2, requires_grad=True) for _ in range(2))
    z = x * 2

    def another(z_bar):
        with ours.enable_grad():  # hooks run as their pass does: without, here
            (y * y).sum().backward()

    z.register_hook(another)
    z.sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([2.0, 2.0], [2.0, 2.0])


def test_infinities_are_no_warnings():
    program = (
        "import lantern.torch as torch\n"
        "x = torch.zeros(2, requires_grad=True)\n"
        "(x.log() + x / 0 + 1 / x).sum().backward()\n"
        "torch.tensor([1e38]) * 100"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert run.stderr == ""


VIEW_WRITES = {
    "an operator": lambda b: b.__iadd__(5),
    "a method": lambda b: b.mul_(2.0),
    "a copy": lambda b: b.copy_(b * 2),
    "an element": lambda b: b.__setitem__(0, 1.0),
    "a function": lambda b: b.sin_(),
}


@pytest.mark.parametrize("quiet", [False, True])
@pytest.mark.parametrize("name", VIEW_WRITES)
def test_a_view_of_what_became_a_leaf_is_not_written_to(name, quiet):
    def scenario(torch):
        a = torch.ones(2, 3)
        b = a[:]
        a.requires_grad_()
        with torch.no_grad() if quiet else torch.enable_grad():
            VIEW_WRITES[name](b)
        return a.detach()

    assert_same_scenario(scenario)


def loops(b):
    q = b.view(3, 2).t()
    for i in range(2):
        q[i] = q[i] * 2
    q[0] += 1
    return (q * q).sum()


def several(b):
    q = b.reshape(3, 2).transpose(0, 1)
    q[0][1] += 2
    q[1].mul_(3)
    return (q * b.reshape(3, 2).t()).sum()


def by_rows(b):
    x, y, z = b[:1], b[1:], b[0, 1:]
    x.mul_(3)
    z.sin_()
    return (x * y).sum() + z.sum()


def nested(b):
    c = b.view(6)
    d = c[1:5]
    e = d[::2]
    b.mul_(2)
    e.exp_()
    return (c.sum() + (d * d).sum()) * e.sum()


# What is computed from a view, after its memory was written to by something else.
LATER_VIEWS = {
    "an element by the view itself": lambda b: (c := b.view(6), c.__setitem__(0, 3), c)[
        2
    ],
    "an element of a row": lambda b: (c := b.view(2, 3), c[0].__setitem__(0, 3), c)[2],
    "of the base": lambda b: (c := b.view(2, 3), c[0].__setitem__(0, 3), b)[2],
    "a row of the base": lambda b: (c := b.t(), b.__setitem__(0, 3), c)[2],
    "a view beside it": lambda b: (c := b[0], d := b[0], c.mul_(2), d)[3],
    "one that does not meet it": lambda b: (c := b[0], d := b[1], c.mul_(2), c * d)[3],
    "both": lambda b: (c := b.t(), c.__setitem__((0, 1), 5), b * c.t())[2],
    "a tensor's own values": lambda b: (c := b[0], b[1].mul_(b[0]), b[1] * c)[2],
    "in loops": loops,
    "several": several,
    "by rows": by_rows,
    "nested": nested,
}


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("name", LATER_VIEWS)
def test_views_follow_what_is_written_to_their_memory(name, kept):
    """Whether or not anything is left of the tensors themselves on the way back."""

    def scenario(torch):
        a = torch.arange(6.0).reshape(2, 3).requires_grad_()
        b = a * 2
        z = LATER_VIEWS[name](b).sum()
        if not kept:
            del b
        z.backward()
        return z.detach(), a.grad

    assert_same_scenario(scenario)


def test_a_value_that_came_as_a_view_is_no_view_of_what_takes_its_place():
    w = ours.ones(6, 4, requires_grad=True)
    index = ours.tensor([0, 1, 1, 2, 0, 2]).view(-1, 1).expand(6, 4)
    twice = w * 2
    largest = ours.zeros(3, 4)
    largest.scatter_reduce_(0, index, twice, "amax", include_self=False)
    others = [ours.zeros(3, 4) for _ in range(40)]
    for other in others:  # whatever lies where the largest were computed
        other.add_(w[:3])
    sums = [ours.zeros(3, 4).scatter_add_(0, index, twice) for _ in range(40)]
    ours.cat([largest, *others, *sums]).sum().backward()
    assert w.grad.tolist() == [[121.0] * 4] * 3 + [[81.0] * 4] * 3


def test_many_views_are_forgotten():
    from lantern.torch.tensor import operators

    a = ours.ones(3, requires_grad=True)
    b = a * 2
    for _ in range(2000):
        b[1:]
    assert len(operators._recent) < 1500
    kept = [b[i:] for i in range(3) for _ in range(300)]
    b.mul_(2)
    assert {float((x.sum()).detach()) for x in kept} == {4.0, 8.0, 12.0}
    (g,) = ours.autograd.grad(kept[0].sum(), a)
    assert g.tolist() == [4.0, 4.0, 4.0]


def test_views_that_follow_keep_their_gradients():
    def scenario(torch):
        a = torch.ones(2, requires_grad=True)
        b = a * 1
        view, other = b[:], b[:]
        view.retain_grad()
        other.retain_grad()
        view.mul_(2)
        (view + other).sum().backward()
        return view.grad, other.grad, a.grad

    assert_same_scenario(scenario)
