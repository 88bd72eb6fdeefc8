"""An optimiser's step that is interrupted was taken as a whole, or not begun."""

import copy
import gc
import itertools
import signal
from types import FunctionType, MethodType

import numpy as np
import pytest

import lantern.torch as torch
from lantern.batching.rows import RowsRead
from lantern.core.contribution import Contribution
from lantern.tensor.ops.indexing import Scatter
from lantern.tensor.ops.products import Product
from lantern.torch.nn.products import LayerProduct
from lantern.torch.nn.rules import Rows
from lantern.torch.optim.plan import Plan, carry_out

# What interrupts a callback of the collector, as that of hypothesis, is lost there, and
# told of by a warning. What is asked here is whether all state is as it was.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)


OPTIMISERS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "SGD with momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "SGD, all options": lambda p: torch.optim.SGD(
        p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1, maximize=True
    ),
    "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
    "Adam, all options": lambda p: torch.optim.Adam(
        p, lr=0.1, amsgrad=True, weight_decay=0.1, maximize=True
    ),
    "AdamW": lambda p: torch.optim.AdamW(p, lr=0.1),
    "NAdam": lambda p: torch.optim.NAdam(p, lr=0.1),
    "RAdam": lambda p: torch.optim.RAdam(p, lr=0.1),
    "Adamax": lambda p: torch.optim.Adamax(p, lr=0.1),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
    "RMSprop": lambda p: torch.optim.RMSprop(p, centered=True, momentum=0.5),
    "Adadelta": lambda p: torch.optim.Adadelta(p),
    "ASGD": lambda p: torch.optim.ASGD(p, lr=0.1, weight_decay=0.1),
    "Rprop": lambda p: torch.optim.Rprop(p, lr=0.1),
    "SparseAdam": lambda p: torch.optim.SparseAdam(p, lr=0.1),
}


def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Embedding(16, 4), torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)
    )


def backward(net):
    net(torch.tensor([1, 5, 5])).square().sum().backward()


def snapshot(net, optimiser):
    """All that a step changes, by value."""
    kept = optimiser.state_dict()["state"]
    return [x.detach().numpy().copy() for x in net.parameters()] + [
        {k: np.array(v) for k, v in entry.items() if np.any(np.array(v))}
        for entry in kept.values()
    ]


def same(a, b):
    try:
        np.testing.assert_equal(a, b)
    except AssertionError:
        return False
    return True


@pytest.fixture
def alarm():
    """Let an alarm raise as Ctrl-C does."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_step_is_finished_or_not_begun(name, alarm):
    rng = np.random.default_rng(0)
    net, twin = model(), model()
    optimiser, other = (OPTIMISERS[name](x.parameters()) for x in (net, twin))
    backward(net)
    backward(twin)
    optimiser.step()
    other.step()
    outcomes = []
    # From one that comes at once to one that never does, however busy the machine is.
    for seconds in (1e-6, *rng.uniform(1e-5, 3e-4, 28), 60.0):
        before = snapshot(net, optimiser)
        try:
            alarm(seconds)
            optimiser.step()
            alarm(0)
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
        after = snapshot(net, optimiser)
        if interrupted and same(before, after):
            outcomes.append("not begun")
            continue
        outcomes.append("finished")
        other.step()
        assert same(after, snapshot(twin, other)), "a whole step, or none"
    assert torch.is_grad_enabled()
    assert len(set(outcomes)) == 2


def drawn(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


FORMS = {
    "rows": lambda: Rows(np.array([3, 5, 3, 0]), drawn(4, 6)),
    "a read": lambda: Scatter((slice(2, 4), 1), drawn(2)),
    "an element": lambda: Scatter((2, 1), np.float32(2)),
    "a mask": lambda: Scatter(np.arange(8) > 5, drawn(2, 6)),
    "positions": lambda: Scatter((np.array([1, 1]), 2), drawn(2)),
    "distinct rows": lambda: RowsRead(np.array([1, 7]), True, drawn(2, 6)),
    "a product": lambda: Product(drawn(3, 8), drawn(3, 6)),
    "one of others": lambda: Product(drawn(3, 16)[:, ::2], drawn(3, 6)),
    "a layer's": lambda: LayerProduct(drawn(3, 8), drawn(3, 6)),
}


@pytest.mark.parametrize("form", FORMS)
def test_gradients_in_their_own_form_are_added_by_functions_in_c(form):
    start, contribution = drawn(8, 6), FORMS[form]()
    buffer, wanted = start.copy(), 1 + start - 0.5 * contribution.dense((8, 6))
    calls = list(contribution.additions(buffer, -0.5))
    np.testing.assert_array_equal(buffer, start)  # not before they are made
    buffer += 1  # as another parameter in its memory would
    for function, *arguments in calls:
        assert not isinstance(function, FunctionType | MethodType)
        function(*arguments)
    np.testing.assert_allclose(buffer, wanted, rtol=1e-6, atol=1e-6)


def test_calls_hold_what_they_read():
    n = 1 << 10  # for oneDNN where it multiplies
    x, z_bar = drawn(3, n), drawn(3, n)
    start, wanted = drawn(n, n), drawn(n, n) + x.T @ z_bar
    contribution = LayerProduct(x.copy(), z_bar.copy())
    calls = list(contribution.additions(start))
    del contribution
    gc.collect()
    others = [np.full((3, n), np.nan, np.float32) for _ in range(4)]
    carry_out(Plan(calls))
    np.testing.assert_allclose(start, wanted, rtol=1e-4, atol=1e-4)
    assert len(others) == 4


@pytest.mark.parametrize("calls", [0, 1, 2, 3])
@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_a_step_of_lbfgs_whose_closure_fails_has_not_begun(search, calls):
    left = itertools.repeat(True)

    def step(net, optimiser):
        def closure():
            if not next(left, False):
                raise KeyboardInterrupt
            optimiser.zero_grad()
            loss = net(torch.tensor([1, 5, 5])).square().sum()
            loss.backward()
            return loss

        optimiser.step(closure)

    def whole(net, optimiser):
        kept = optimiser.state_dict()["state"]
        return copy.deepcopy((kept, [x.detach().numpy() for x in net.parameters()]))

    nets = model(), model()
    interrupted, twin = (
        (x, torch.optim.LBFGS(x.parameters(), 0.1, 4, line_search_fn=search))
        for x in nets
    )
    step(*interrupted)
    step(*twin)
    left = iter([True] * calls)
    with pytest.raises(KeyboardInterrupt):
        step(*interrupted)
    np.testing.assert_equal(whole(*interrupted), whole(*twin))
    left = itertools.repeat(True)
    step(*interrupted)
    step(*twin)
    np.testing.assert_equal(whole(*interrupted), whole(*twin))


@pytest.mark.parametrize("repeated", [False, True])
def test_gradients_in_a_form_of_their_own_are_planned_without_python(repeated):
    torch.manual_seed(0)
    table, layer = torch.nn.Embedding(300, 200), torch.nn.Linear(200, 300)
    optimiser = torch.optim.SGD([*table.parameters(), *layer.parameters()], lr=0.5)
    rows = torch.tensor([3, 3 if repeated else 4])
    (layer(table(rows)) ** 2).sum().backward()
    weights = table.weight, layer.weight
    waiting = [p.receiver.grad for p in weights]
    assert all(isinstance(grad, Contribution) for grad in waiting)
    moves = [0.5 * g.dense(p.shape) for p, g in zip(weights, waiting, strict=True)]
    wanted = [p.numpy(force=True) - d for p, d in zip(weights, moves, strict=True)]
    plan = Plan()
    optimiser._group(optimiser.param_groups[0], plan)
    carry_out(plan)
    for p, expected in zip(weights, wanted, strict=True):
        np.testing.assert_allclose(p.numpy(force=True), expected, rtol=1e-5, atol=1e-6)
