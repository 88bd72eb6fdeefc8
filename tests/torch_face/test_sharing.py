"""Views of memory that becomes tracked later; threads that share leaves; warnings."""

import subprocess
import sys
import threading

import pytest

import lantern.torch as ours

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
    z.register_hook(lambda z_bar: (y * y).sum().backward())
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
