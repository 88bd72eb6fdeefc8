"""What is called around steps and states; steps that are tracked themselves."""

import math
import warnings
from functools import partial

import numpy as np
import pytest

import lantern.torch as ours
from lantern.torch.optim.optimizer import register_optimizer_step_post_hook

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")


def problem(torch):
    p = torch.tensor([1.0, 2.0], requires_grad=True)
    p.grad = torch.tensor([0.5, -0.5])
    return p, torch.optim.SGD([p], lr=0.1)


@pytest.mark.parametrize("torch", [ours, theirs])
def test_hooks_see_states(torch):
    _, optimizer = problem(torch)
    optimizer.register_state_dict_pre_hook(lambda o: o.state.update(seen=1))
    optimizer.register_state_dict_post_hook(lambda o, s: s | {"more": 2})
    state = optimizer.state_dict()
    assert state["state"]["seen"] == 1
    assert state["more"] == 2

    def shorten(optimizer, state, lr):
        state["param_groups"][0]["lr"] = lr

    optimizer.register_load_state_dict_pre_hook(partial(shorten, lr=0.5))
    optimizer.register_load_state_dict_pre_hook(partial(shorten, lr=9.0), prepend=True)
    optimizer.register_load_state_dict_post_hook(lambda o: o.state.update(loaded=True))
    optimizer.load_state_dict(state)
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert optimizer.state["loaded"]


def test_hooks_of_all_optimisers_run_also_where_step_is_ones_own():
    class Still(ours.optim.Optimizer):
        def step(self, closure=None):
            return "stood"

    calls = []
    optimizer = Still([ours.zeros(1)], {})
    optimizer.register_step_pre_hook(lambda *given: calls.append("before"))
    handle = register_optimizer_step_post_hook(lambda *given: calls.append("after"))
    with handle:
        assert optimizer.step() == "stood"
    optimizer.step()
    assert calls == ["before", "after", "before"]


def test_duplicates_are_warned_of():
    p = ours.zeros(1)
    with pytest.warns(UserWarning, match="duplicate parameters"):
        ours.optim.SGD([p, p])


def test_a_schedule_that_steps_first_is_warned_of():
    _, optimizer = problem(ours)
    schedule = ours.optim.lr_scheduler.StepLR(optimizer, 3)
    with pytest.warns(UserWarning, match="how-to-adjust-learning-rate"):
        schedule.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, optimizer = problem(ours)
        schedule = ours.optim.lr_scheduler.StepLR(optimizer, 3)
        optimizer.step()
        schedule.step()


def test_a_plain_number_of_steps_is_loaded():
    p = ours.tensor([1.0], requires_grad=True)
    optimizer = ours.optim.RAdam([p])
    p.grad = ours.tensor([1.0])
    optimizer.step()
    state = optimizer.state_dict()
    state["state"][0]["step"] = 1.0
    optimizer.load_state_dict(state)
    optimizer.step()
    assert float(optimizer.state[p]["step"]) == 2.0


DIFFERENTIABLE = """
SGD(p, 0.1, 0.9, nesterov=True, weight_decay=0.1); Adam(p, 0.1, amsgrad=True)
AdamW(p, 0.1, weight_decay=0.1); NAdam(p, 0.1, weight_decay=0.1); RAdam(p, 0.1)
Adamax(p, 0.1); ASGD(p, 0.1); Adagrad(p, 0.1, lr_decay=0.1); Rprop(p, 0.1)
RMSprop(p, 0.1, momentum=0.5, centered=True); Adadelta(p, maximize=True); SGD(p, 0.1)
"""


@pytest.mark.parametrize("source", DIFFERENTIABLE.replace("\n", ";").split(";")[1:-1])
def test_a_step_is_tracked_if_asked_for(source):
    """Before, ``differentiable=True`` gave derivatives of 0 in silence."""
    if not source.strip():
        return
    targets = ours.tensor(np.random.default_rng(0).normal(size=(3, 4)))

    def trained(start, scale, differentiable=True):
        p = start.clone() if differentiable else start.detach().requires_grad_()
        call = f"{source.strip()[:-1]}, differentiable={differentiable})"
        optimizer = eval(call, vars(ours.optim) | {"p": [p]})
        for target in targets:
            g = scale * target
            p.grad = g if differentiable else g.detach()
            optimizer.step()
        return p

    start, scale = (
        ours.tensor(x, dtype=ours.float64, requires_grad=True)
        for x in ([0.5, -1.0, 2.0, 0.1], [1.0, 2.0, -1.0, 0.7])
    )
    found = trained(start, scale).detach().numpy()
    np.testing.assert_array_equal(found, trained(start, scale, False).detach().numpy())
    assert ours.autograd.gradcheck(trained, (start, scale))
    if "Adam" in source or "SGD" in source:
        (by_start,) = ours.autograd.grad(trained(start, scale).sum(), start)
        assert by_start.abs().min() > 0.1


def test_a_derivative_by_the_step_length_is_refused():
    lr = ours.tensor(0.1, requires_grad=True)
    p = ours.ones(2, requires_grad=True).clone()
    optimizer = ours.optim.SGD([p], lr=lr, differentiable=True)
    p.grad = ours.ones(2)
    with pytest.raises(NotImplementedError, match="with respect to lr"):
        optimizer.step()


@pytest.mark.parametrize("make", [ours.optim.Adafactor, ours.optim.Muon])
def test_matrices_alone_and_real_ones(make):
    p = ours.ones(2, 2, dtype=ours.complex64, requires_grad=True)
    p.grad = ours.ones(2, 2, dtype=ours.complex64)
    with pytest.raises(RuntimeError, match="does not support complex"):
        make([p]).step()
    with pytest.raises(ValueError, match="Learning rate should be >= 0"):
        make([p], lr=-1.0)


SHAPES = {"Adafactor": [(3, 4), (5,), (2, 3, 4), ()], "Muon": [(3, 4), (7, 2), (8, 8)]}


@pytest.mark.parametrize("name", SHAPES)
def test_new_optimisers_go_as_pytorchs_to_twelve_digits(name):
    ends, states = [], []
    for torch in (ours, theirs):
        rng = np.random.default_rng(0)
        ps, ts = (
            [torch.tensor(rng.normal(size=s), requires_grad=True) for s in SHAPES[name]]
            for _ in range(2)
        )
        optimizer = getattr(torch.optim, name)(ps, weight_decay=0.1)
        for _ in range(20):
            optimizer.zero_grad()
            pairs = zip(ps, ts, strict=True)
            sum(((p - t.detach()) ** 4).sum() for p, t in pairs).backward()
            optimizer.step()
        ends.append(np.concatenate([p.detach().numpy().ravel() for p in ps]))
        states.append(
            [{k: tuple(x.shape) for k, x in optimizer.state[p].items()} for p in ps]
        )
    np.testing.assert_allclose(*ends, rtol=1e-12, atol=1e-12)
    assert states[0] == states[1]


def test_a_constant_factor_does_not_keep_what_is_overwritten():
    for factor in (0.1, ours.tensor(0.1)):
        x = ours.ones(2, requires_grad=True)
        y = x.clone()
        z = factor * y
        y.add_(1)
        z.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), [0.1, 0.1])


def test_schedules_of_groups_and_of_momentum():
    for torch in (ours, theirs):
        groups = [{"params": [torch.zeros(1)]}, {"params": [torch.zeros(1)]}]
        optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
        S = torch.optim.lr_scheduler
        cycle = S.CyclicLR(
            optimizer, [1.0, 2.0], [5.0, 6.0], 4,
            base_momentum=[0.1, 0.2], max_momentum=[0.5, 0.6],
        )  # fmt: skip
        for _ in range(3):
            optimizer.step()
            cycle.step()
        assert [g["lr"] for g in optimizer.param_groups] == [4.0, 5.0]
        found = [g["momentum"] for g in optimizer.param_groups]
        assert found == pytest.approx([0.2, 0.3])
        again = S.CyclicLR(optimizer, 1.0, 5.0)
        again.load_state_dict(cycle.state_dict())
        assert again.mode == "triangular"
        assert math.isclose(again.scale_fn(3), 1.0)


def test_values_given_as_tensors_are_copied():
    lr, end = ours.tensor(0.1), ours.tensor(0.05)
    optimizer = ours.optim.SGD([ours.zeros(1)], lr=lr)
    ours.optim.swa_utils.SWALR(optimizer, swa_lr=end)
    end.mul_(0.5)
    assert float(optimizer.param_groups[0]["swa_lr"]) == pytest.approx(0.05)


def test_a_function_with_a_memory_is_kept_with_a_schedule():
    class Times:
        def __init__(self, x):
            self.x = x

        def __call__(self, epoch):
            return self.x**epoch

    _, optimizer = problem(ours)
    make = ours.optim.lr_scheduler.LambdaLR
    state = make(optimizer, Times(0.5)).state_dict()
    other = Times(2.0)
    make(optimizer, other).load_state_dict(state)
    assert other.x == 0.5
