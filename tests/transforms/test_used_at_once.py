"""What is called again while it is being called: right, or refused by name.

Every object that the library hands out and that may be called more than once, in every
way in which a second call can begin before the first one has ended.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import greenlet
import numpy as np
import pytest

import lantern
import lantern.torch as torch
from lantern.debugger import Session
from lantern.errors import InUseError, LanternError
from lantern.op import linear

pytestmark = pytest.mark.usefixtures("probe")


class Meanwhile:
    """What happens in the middle of a call: nothing, unless a test says so."""

    def __init__(self):
        self.do = lambda: None

    def __call__(self):
        self.do()


meanwhile = Meanwhile()


@pytest.fixture(autouse=True)
def _nothing_happens_later(probe):
    yield
    meanwhile.do = lambda: None


def point(x):
    """x itself; in the middle of every pass, there or back, something happens."""
    return _point(x)


@pytest.fixture(autouse=True)
def _rules(own_rules):
    global _point

    @linear
    def _point(x, /):
        meanwhile()
        z_bar = yield x * 1.0
        meanwhile()
        yield z_bar * 1.0


def number(x):
    return lantern.sin(point(x * x)) * x


W = np.arange(4.0).reshape(2, 2)


def array(x):
    y = lantern.tanh(point(x @ W) + x)
    return (y * y[0]).sum() + x[0] * x[1]


def several(x):
    q, r = lantern.linalg.qr(point(x * 2.0 + W))
    return (q * W).sum() + (r * r).sum()


def beside_a_constant(x):
    return lantern.sin(point(x * x)) * x, 3.0, np.ones(2)


def with_custom_rule(x):
    @lantern.custom_rule
    def square(x, /, scale):
        z_bar = yield x * x * scale
        meanwhile()
        yield 2 * scale * x * z_bar

    return lantern.sin(square(point(x), 3.0)) * x


def with_residuals(x):
    @lantern.custom_vjp
    def square(x):
        return x * x

    square.defvjp(
        lambda x: (x * x, [x]), lambda kept, g: (meanwhile(), 2 * kept[0] * g)[1:]
    )
    return lantern.sin(square(point(x))) * x


def in_pieces(x):
    return lantern.checkpoint(lambda x: lantern.sin(x * x))(x) * point(x)


def both_ways(x):
    with lantern.both_ways(lambda: np.errstate(divide="ignore")):
        y = point(x * x)
    return lantern.sin(y) * x


def in_tasks(x):
    parts = lantern.parallel_map(lambda i: lantern.sin(x * i), (1.0, 2.0), workers=2)
    return sum(parts) * point(x)


def mapped(x):
    return lantern.vmap(lambda row: lantern.sin(point(row)) * row[0])(x).sum()


def batched(x):
    return sum(lantern.batch(lambda i: lantern.sin(x[i]) * x[i], [0, 1])) * point(x[0])


def quiet(x):
    with lantern.no_grad(x):
        scale = point(x * x)
    return point(scale * x) * scale


def second(x):
    return lantern.grad(number)(x) * point(x)


def pullback(f, x, seed=2.0):
    pull = lantern.vjp(f, x)[1]
    return lambda: pull(seed)


def pushforward(f, x):
    push = lantern.linearize(f, x)[1]
    return lambda: push(x * 0 + 2.0)


def function(made, x):
    return lambda: made(x)


def backward(f, x):
    leaf = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    y = f(leaf)

    def call():
        y.backward(retain_graph=True)
        grad, leaf.grad = leaf.grad, None
        return grad.numpy()

    return call


def eager_pullback(f, x):
    pull = torch.func.vjp(f, torch.tensor(x, dtype=torch.float64))[1]
    one = torch.tensor(2.0, dtype=torch.float64)
    return lambda: [g.numpy() for g in pull(one)]


def gradient(f, x):
    leaf = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    y = f(leaf)
    return lambda: torch.autograd.grad(y, leaf, retain_graph=True)[0].numpy()


def hooked(x):
    y = x * x
    y.register_hook(lambda g: meanwhile())
    return (y.sin() * x + y).sum()


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        meanwhile()
        return 2 * ctx.saved_tensors[0] * g


def torch_function(x):
    return (Square.apply(x).sin() * x).sum()


def torch_checkpoint(x):
    return torch.utils.checkpoint.checkpoint(hooked, x, use_reentrant=False) * x.sum()


MATRIX, ROW = np.array([[0.3, 0.4], [0.5, 0.7]]), np.array([0.3, 0.4])
# By name: a function that makes a call, which a program may interrupt in its midst.
RIGHT = {
    "pullback of a number": lambda: pullback(number, 0.7),
    "pullback of an array": lambda: pullback(array, ROW),
    "pullback of several results": lambda: pullback(several, MATRIX),
    "pullback beside a constant": lambda: pullback(
        beside_a_constant, 0.7, (2.0, 1.0, np.ones(2))
    ),
    "pullback through a custom rule": lambda: pullback(with_custom_rule, 0.7),
    "pullback through residuals": lambda: pullback(with_residuals, 0.7),
    "pullback of a vmap": lambda: pullback(mapped, MATRIX),
    "pullback past no_grad": lambda: pullback(quiet, 0.7),
    "pullback of a gradient": lambda: pullback(second, 0.7),
    "pushforward of a number": lambda: pushforward(number, 0.7),
    "pushforward of an array": lambda: pushforward(array, ROW),
    "pushforward of several results": lambda: pushforward(several, MATRIX),
    "pushforward beside a constant": lambda: pushforward(beside_a_constant, 0.7),
    "pushforward through a custom rule": lambda: pushforward(with_custom_rule, 0.7),
    "pushforward of a vmap": lambda: pushforward(mapped, MATRIX),
    "grad": lambda: function(lantern.grad(number), 0.7),
    "jacrev": lambda: function(lantern.jacrev(array), ROW),
    "jacfwd": lambda: function(lantern.jacfwd(array), ROW),
    "hessian": lambda: function(lantern.hessian(array), ROW),
    "elementwise_grad": lambda: function(lantern.elementwise_grad(number), 0.7),
    "vmap": lambda: function(lantern.vmap(number), ROW),
    "grad of a checkpoint": lambda: function(lantern.grad(in_pieces), 0.7),
    "batched": lambda: function(lantern.grad(batched), ROW),
}
REFUSED = {
    "pullback of a checkpoint": lambda: pullback(in_pieces, 0.7),
    "pullback of both_ways": lambda: pullback(both_ways, 0.7),
    "pullback of tasks": lambda: pullback(in_tasks, 0.7),
}
# These share leaves: in one thread one is inside the other, or it is refused.
EAGER = {
    "backward": lambda: backward(hooked, ROW),
    "autograd.grad": lambda: gradient(hooked, ROW),
    "backward through a Function": lambda: backward(torch_function, ROW),
    "autograd.grad through a Function": lambda: gradient(torch_function, ROW),
    "backward of a checkpoint": lambda: gradient(torch_checkpoint, ROW),
}
# Nothing can happen in their midst but a turn of another thread.
PLAIN = {
    "torch.func.vjp": lambda: eager_pullback(lambda x: (x.sin() * x).sum(), ROW),
}


def flat(result):
    return np.concatenate([np.ravel(x) for x in lantern.tree_leaves(result)])


def agree(found, expected):
    np.testing.assert_allclose(flat(found), flat(expected), rtol=1e-12)


def inside(call):
    """The result of a call in whose midst it is called again, and of that one."""
    results = []

    def again():
        meanwhile.do = lambda: None
        results.append(call())

    meanwhile.do = again
    results.append(call())
    assert len(results) == 2
    return results


def in_programs(call, first):
    """Two programs that pause in the midst of their calls, and go on in turn."""
    waiting = [True, True]

    def start(i):
        def pauses():
            if waiting[i]:
                waiting[i] = False
                lantern.pause(i)

        meanwhile.do = pauses
        return lantern.Program(call)

    programs = [start(0), start(1)]
    meanwhile.do = lambda: None
    assert [program.request for program in programs] == [0, 1]
    for i in (first, 1 - first):
        programs[i].resume()
    return [program.result for program in programs]


def in_greenlets(call, first):
    """As ``in_programs``, of greenlets."""
    main, results = greenlet.getcurrent(), {}

    def start(i):
        def switches():
            meanwhile.do = lambda: None
            main.switch()

        def run():
            results[i] = call()

        meanwhile.do = switches
        made = greenlet.greenlet(run)
        made.switch()
        return made

    made = []
    try:
        made = [start(0)]
        made += [start(1)]
        order = (made[first], made[1 - first])
    except BaseException:
        order = made
        raise
    finally:
        for x in order:
            x.switch()
    return list(results.values())


def in_threads(call):
    barrier = threading.Barrier(4)

    def work(_):
        barrier.wait()
        return [call() for _ in range(8)]

    with ThreadPoolExecutor(4) as pool:
        return [x for found in pool.map(work, range(4)) for x in found]


WAYS = {
    "inside its own call": inside,
    "in two programs, the first one first": lambda call: in_programs(call, 0),
    "in two programs, the second one first": lambda call: in_programs(call, 1),
    "in two greenlets, the first one first": lambda call: in_greenlets(call, 0),
    "in two greenlets, the second one first": lambda call: in_greenlets(call, 1),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RIGHT)
def test_what_is_called_twice_at_once_is_right(name, way):
    call = RIGHT[name]()
    expected = call()
    for found in WAYS[way](call):
        agree(found, expected)
    agree(call(), expected)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_run_twice_at_once_says_so(name, way):
    call = REFUSED[name]()
    expected = call()
    with pytest.raises(InUseError, match="in use already"):
        WAYS[way](call)
    meanwhile.do = lambda: None
    agree(call(), expected)


@pytest.mark.usefixtures("threads_switch_often")
@pytest.mark.parametrize(
    "name", [*RIGHT, *(name for name in EAGER if "grad" in name), *PLAIN]
)
def test_threads_that_share_it_are_right(name):
    call = (RIGHT | EAGER | PLAIN)[name]()
    expected = call()
    for found in in_threads(call):
        agree(found, expected)


@pytest.mark.usefixtures("threads_switch_often")
@pytest.mark.parametrize("f", [hooked, torch_function])
def test_threads_that_share_a_leaf_leave_the_sum_of_their_gradients(f):
    leaf = torch.tensor(ROW, dtype=torch.float64, requires_grad=True)
    y = f(leaf)
    (expected,) = torch.autograd.grad(y, leaf, retain_graph=True)
    in_threads(lambda: y.backward(retain_graph=True))
    agree(leaf.grad.numpy(), 32 * expected.numpy())


@pytest.mark.usefixtures("threads_switch_often")
@pytest.mark.parametrize("name", REFUSED)
def test_threads_that_share_what_cannot_are_right_or_told(name):
    call = REFUSED[name]()
    expected = call()

    def told():
        try:
            return call()
        except InUseError:
            return expected

    for found in in_threads(told):
        agree(found, expected)
    agree(call(), expected)


@pytest.mark.parametrize("name", EAGER)
def test_an_eager_pass_inside_another_one_is_right(name):
    call = EAGER[name]()
    expected = call()
    for found in inside(call):
        agree(found, expected)
    agree(call(), expected)


@pytest.mark.parametrize("way", [way for way in WAYS if "two" in way])
@pytest.mark.parametrize("name", EAGER)
def test_an_eager_pass_beside_a_paused_one_says_so(name, way):
    call = EAGER[name]()
    expected = call()
    with pytest.raises(InUseError, match="under way in this thread"):
        WAYS[way](call)
    meanwhile.do = lambda: None
    agree(call(), expected)


def gradient_while_pending():
    """A gradient that a hook asks for, when its leaf has received something."""
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    found = []
    y = x * x

    @torch.enable_grad()  # hooks run without derivatives, as in PyTorch
    def ask(g):
        found.append(torch.autograd.grad((x**3).sum(), x)[0])

    y.register_hook(ask)
    (x.exp() + y).sum().backward()
    return found[0].numpy(), x.grad.numpy()


def test_a_gradient_asked_for_in_a_hook_has_nothing_of_the_pass_around_it():
    inner, outer = gradient_while_pending()
    np.testing.assert_allclose(inner, [12.0, 27.0])
    np.testing.assert_allclose(
        outer, np.exp([2.0, 3.0]) + 2.0 * np.array([2.0, 3.0]), rtol=1e-6
    )


PASSES = {
    "backward_steps": lambda f, x: lantern.backward_steps(f, x),
    "debugger": lambda f, x: Session(f, x),
}


def step(x):
    return next(x, None) if hasattr(x, "__next__") else x._take()


def all_steps(x):
    taken = []
    while (done := step(x)) is not None:
        taken.append(done)
    return taken


VERBS = {
    "a step": step,
    "close": lambda x: x.close(),
    "a look": lambda x: x.operation if isinstance(x, Session) else next(x),
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("name", PASSES)
def test_a_step_inside_a_step_is_refused(name, verb):
    expected, steps, seen = lantern.grad(number)(0.7), PASSES[name](number, 0.7), []

    def inside():
        with pytest.raises(InUseError, match="a step is being taken already"):
            VERBS[verb](steps)
        seen.append(repr(steps))

    meanwhile.do = inside
    assert all_steps(steps)[-1].cotangents == (expected,)
    assert len(seen) == 1
    steps.close()


@pytest.mark.parametrize("name", PASSES)
def test_a_step_beside_a_paused_step_is_refused(name):
    steps = PASSES[name](number, 0.7)
    meanwhile.do = lantern.pause
    program = lantern.Program(all_steps, steps)
    with pytest.raises(InUseError):
        step(steps)
    meanwhile.do = lambda: None
    program.resume()
    assert program.result[-1].cotangents == (lantern.grad(number)(0.7),)


@pytest.mark.usefixtures("threads_switch_often")
def test_threads_that_take_steps_of_one_pass_take_each_once():
    steps = lantern.backward_steps(number, 0.7)
    expected = [op.name for op, _ in lantern.backward_steps(number, 0.7)]

    def work(_):
        taken = []
        while True:
            try:
                taken.append(next(steps).op.name)
            except InUseError:
                continue
            except StopIteration:
                return taken

    with ThreadPoolExecutor(4) as pool:
        taken = [x for found in pool.map(work, range(4)) for x in found]
    assert sorted(taken) == sorted(expected)


def test_a_program_or_a_rest_that_goes_on_is_not_made_to_go_on():
    from lantern.cps import reset, shift

    kept = []

    def body():
        lantern.pause()
        try:
            kept[0].resume()
        except LanternError as error:
            return str(error)

    kept.append(lantern.Program(body))
    kept[0].resume()
    assert "running" in kept[0].result
    k = reset(lambda: 1 + shift(lambda k: k))

    def again(_):
        try:
            return k(1)
        except LanternError as error:
            return type(error).__name__

    with ThreadPoolExecutor(2) as pool:
        assert set(pool.map(again, range(2))) == {"ResumptionError"}
    assert k(1) == 2
    assert again(0) == "AlreadyResumedError"
    kept.clear()
