"""Hooks of what operations save: gradients come from what they give back."""

import contextlib

import pytest

import lantern.torch as torch
from tests.torch.compared import assert_same_scenario

graph = torch.autograd.graph
# Programs of tensors, the shapes of these, and how many arrays are saved.
PROGRAMS = {
    "a product with itself": (lambda x: x * x, [(3,)], 2),
    "products and chains": (lambda x, y: (x @ y).tanh().exp(), [(3, 4), (4, 2)], 4),
    "a softmax": (lambda x: (x.softmax(-1) * x.sin()).log(), [(3, 4)], 5),
    "a view's part": (lambda x: x.view(12)[2:7] ** 3, [(3, 4)], 1),
    "a sum": (lambda x, y: x + y, [(3,), (3,)], 0),
    "a choice": (lambda x: torch.where(x > 1, x * x, x / 3).cumsum(0), [(4, 4)], 2),
    "several results": (lambda x: torch.cat(x.split(2)) * x.sum(), [(4, 4)], 2),
    "a convolution": (
        lambda x, w: torch.nn.functional.conv2d(x, w).relu() * 2,
        [(2, 3, 6, 6), (4, 3, 3, 3)],
        3,
    ),
}


def derivatives(program, tensors, block):
    """Gradients, and the gradients of their squares."""
    leaves = [x.clone().requires_grad_() for x in tensors]
    with block:
        z = program(*leaves).sum()
    first = torch.autograd.grad(z, leaves, create_graph=True)
    squares = sum((g * g).sum() for g in first)
    if not squares.requires_grad:
        return first
    return *first, *torch.autograd.grad(squares, leaves)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_of_any_order_come_from_what_is_unpacked(name):
    program, shapes, saved = PROGRAMS[name]
    torch.manual_seed(0)
    tensors = [torch.rand(*s, dtype=torch.float64) + 0.5 for s in shapes]
    packed, unpacked = [], set()

    def pack(x):
        packed.append(x.tolist())
        return len(packed) - 1

    def unpack(i):
        unpacked.add(i)
        return torch.tensor(packed[i], dtype=torch.float64)

    with_hooks = graph.saved_tensors_hooks(
        lambda x: pack(x) if x.dtype.is_floating_point else x,
        lambda kept: unpack(kept) if isinstance(kept, int) else kept,
    )
    right = derivatives(program, tensors, contextlib.nullcontext())
    found = derivatives(program, tensors, with_hooks)
    assert all(map(torch.equal, found, right))
    assert len(packed) == saved
    assert unpacked == set(range(saved))


def test_a_gradient_is_that_of_what_the_hook_gives_back():
    x = torch.tensor(3.0, requires_grad=True)
    with graph.saved_tensors_hooks(lambda x: x, lambda x: x * 10):
        y = x * x
    y.backward()
    assert x.grad == 60


def test_nothing_of_the_block_lasts_and_hooks_do_not_meet_their_own_operations():
    seen = []
    x = torch.tensor(3.0, requires_grad=True)

    def pack(kept):
        seen.append((kept * x).detach())
        return kept

    with pytest.raises(ZeroDivisionError), graph.saved_tensors_hooks(pack, pack):
        x.exp()
        1 / 0
    x.exp().backward()
    assert seen == [9.0]


def test_what_is_kept_as_it_is_must_not_be_written_to():
    x = torch.ones(2, requires_grad=True)
    y = x * 1.0
    with graph.saved_tensors_hooks(lambda x: x, lambda x: x):
        z = y * y
    with torch.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_what_is_no_tensor_is_refused():
    x = torch.ones(2, requires_grad=True)
    with graph.saved_tensors_hooks(lambda x: x, lambda x: x.numpy()):
        z = x.exp()
    with pytest.raises(TypeError, match="expected to be a Tensor"):
        z.sum().backward()


WRITES = {
    "what is saved": lambda torch, x: ((y := x.clone()).square().sum(), y.sin_())[0],
    "through a view": lambda torch, x: ((y := x.clone()).square().sum(), y[:1].zero_())[
        0
    ],
    "of what is saved, the view": lambda torch, x: (
        ((y := x.clone())[:] ** 2).sum(),
        y.mul_(2),
    )[0],
    "twice": lambda torch, x: (
        (y := x.clone()).square().sum(),
        y.sin_(),
        y.square().sum(),
        y.sin_(),
    )[::2],
    "an operand without derivative": lambda torch, x: (
        (x * (w := torch.tensor([2.0, 3.0]))).sum(),
        torch.sin(torch.ones(2), out=w),
    )[0],
    "complex": lambda torch, x: (
        ((y := torch.complex(x, x * 2)).conj() ** 2).sum().abs(),
        y.zero_(),
    )[0],
}


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("name", WRITES)
def test_what_is_saved_may_be_written_to(name, second):
    def run(torch):
        x = torch.tensor([0.5, 2.0], requires_grad=True)
        with torch.autograd.graph.allow_mutation_on_saved_tensors():
            z = WRITES[name](torch, x)
            z = sum(z[::2], torch.zeros(())) if isinstance(z, tuple) else z
            (g,) = torch.autograd.grad(z, x, create_graph=second)
            if second and g.requires_grad:
                return torch.autograd.grad(g.square().sum(), x)
            return g.detach()

    assert_same_scenario(run)


def outside(torch, x):
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        z = x.square().sum()
    z.backward()


def in_another(torch, x):
    allowed = torch.autograd.graph.allow_mutation_on_saved_tensors
    with allowed():
        z = x.square().sum()
    with allowed():
        z.backward()


def one_in_another(torch, x):
    allowed = torch.autograd.graph.allow_mutation_on_saved_tensors
    with allowed(), allowed():
        pass


@pytest.mark.parametrize("program", [outside, in_another, one_in_another])
def test_copies_are_of_one_block(program):
    def run(torch):
        return program(torch, torch.tensor([0.5, 2.0], requires_grad=True))

    assert_same_scenario(run)


def test_each_version_is_copied_once_and_only_as_long_as_needed():
    x = torch.tensor([0.5, 2.0], requires_grad=True).clone()
    with graph.allow_mutation_on_saved_tensors() as copies:
        a, b = x.square(), x.sin()
        assert len(copies.cloned) == 1
        del a, b
        assert len(copies.cloned) == 0
        a = x.square()
        x.zero_()
        b = x.square()
        assert len(copies.cloned) == 2
        a.sum().backward()
        assert len(copies.cloned) == 1
        del b
        assert len(copies.cloned) == 0
