"""Optimisers and schedules against PyTorch's, step by step; their state."""

import numpy as np
import pytest

import lantern.torch as ours
from lantern.errors import MissingRuleError

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")

OPTIMISERS = """
SGD(p, lr=0.1); SGD(p, 0.1, 0.9, nesterov=True, weight_decay=0.01)
SGD(p, lr=0.1, momentum=0.9, dampening=0.1); SGD(p, lr=0.1, maximize=True)
Adam(p); Adam(p, lr=0.05, weight_decay=0.1, amsgrad=True); AdamW(p, lr=0.05)
Adam(p, 0.05, (0.8, 0.9), 1e-4); NAdam(p, lr=0.05, weight_decay=0.1)
NAdam(p, lr=0.05, weight_decay=0.1, decoupled_weight_decay=True)
RAdam(p, lr=0.05); RAdam(p, lr=0.05, betas=(0.5, 0.7)); Adamax(p); ASGD(p)
Adagrad(p, lr=0.1, lr_decay=0.1); Adagrad(p, initial_accumulator_value=0.2)
RMSprop(p, momentum=0.5, centered=True); RMSprop(p, weight_decay=0.1); Adadelta(p)
Rprop(p); Rprop(p, lr=0.05, maximize=True); Adam(p, maximize=True)
RMSprop(p, maximize=True, momentum=0.5); Adagrad(p, maximize=True)
Adadelta(p, maximize=True); Adamax(p, maximize=True); ASGD(p, maximize=True)
NAdam(p, maximize=True); RAdam(p, maximize=True); AdamW(p, maximize=True)
Adafactor(p); Adafactor(p, 0.1, -0.5, (1e-3, 0.01), 2.0, 0.1, maximize=True)
Muon(p[::2]); Muon(p[::2], 0.1, 0.0, 0.8, False, adjust_lr_fn='match_rms_adamw')
Muon(p[::2], lr=0.02, ns_coefficients=(2, -1.5, 0.5), ns_steps=3)
Muon(p[::2], adjust_lr_fn='spectral_unclamped')
LBFGS(p, lr=0.5); LBFGS(p, line_search_fn='strong_wolfe', max_iter=5)
LBFGS(p, line_search_fn='strong_wolfe', history_size=3)
LBFGS(p, lr=0.01, max_iter=3, maximize=True)
SGD([{'params': p[:2], 'lr': 0.5}, {'params': p[2:]}], lr=0.1, momentum=0.5)
"""
SOURCES = [e.strip() for e in OPTIMISERS.replace("\n", ";").split(";") if e.strip()]

SCHEDULES = """
StepLR(o, 3)
MultiStepLR(o, [2, 5, 5], 0.5)
ExponentialLR(o, 0.9)
CosineAnnealingLR(o, 8, 0.01)
CosineAnnealingWarmRestarts(o, 3, 2)
OneCycleLR(o, 0.5, total_steps=25)
OneCycleLR(o, 0.5, total_steps=25, three_phase=True, anneal_strategy='linear')
ReduceLROnPlateau(o, patience=1, factor=0.5, threshold=0.2)
LambdaLR(o, lambda e: 0.9**e)
LinearLR(o, 0.1, 1, 5)
ConstantLR(o)
PolynomialLR(o, 6, 2)
MultiplicativeLR(o, lambda e: 0.95)
CyclicLR(o, 0.01, 0.1, 3)
CyclicLR(o, 0.01, 0.1, 3, mode='triangular2', cycle_momentum=False)
SequentialLR(o, [S.LinearLR(o, 0.1, total_iters=4), S.CosineAnnealingLR(o, 10)], [4])
ChainedScheduler([S.LinearLR(o, 0.1, total_iters=4), S.ExponentialLR(o, 0.9)])
"""
SCHEDULE_SOURCES = SCHEDULES.strip().split("\n")


class Problem:
    """A small perceptron, its data, an optimiser and perhaps a schedule."""

    def __init__(self, torch, optimiser, schedule=None):
        random = np.random.default_rng(0)
        nn = torch.nn
        model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 2)).double()
        with torch.no_grad():
            for p in model.parameters():
                p.copy_(torch.from_numpy(random.normal(size=tuple(p.shape))))
        self.model = model
        self.x = torch.from_numpy(random.normal(size=(16, 5)))
        self.y = torch.from_numpy(random.integers(0, 2, 16))
        self.loss_of = nn.functional.cross_entropy
        names = {"p": list(model.parameters())}
        self.optimiser = eval(f"optim.{optimiser}", {"optim": torch.optim, **names})
        self.schedule = None
        if schedule:
            s = torch.optim.lr_scheduler
            self.schedule = eval(f"S.{schedule}", {"S": s, "o": self.optimiser})

    def closure(self):
        self.optimiser.zero_grad()
        loss = self.loss_of(self.model(self.x), self.y)
        loss.backward()
        return loss

    def run(self, steps):
        out = []
        for _ in range(steps):
            loss = self.optimiser.step(self.closure).item()
            out.append(loss)
            if type(self.schedule).__name__ == "ReduceLROnPlateau":
                self.schedule.step(loss)
            elif self.schedule is not None:
                self.schedule.step()
            if self.schedule is not None:
                out.append([float(lr) for lr in self.schedule.get_last_lr()])
        return out


def flat(rows):
    return np.concatenate([np.ravel(row) for row in rows])


@pytest.mark.parametrize("source", SOURCES)
def test_an_optimiser_goes_as_pytorchs(source):
    mine, other = Problem(ours, source), Problem(theirs, source)
    np.testing.assert_allclose(mine.run(20), other.run(20), rtol=1e-8)
    for a, b in zip(mine.model.parameters(), other.model.parameters(), strict=True):
        np.testing.assert_allclose(
            a.detach().numpy(), b.detach().numpy(), rtol=1e-7, atol=1e-10
        )


@pytest.mark.parametrize("source", SCHEDULE_SOURCES)
def test_a_schedule_goes_as_pytorchs(source):
    optimiser = "SGD(p, lr=0.1, momentum=0.5)"
    mine = Problem(ours, optimiser, source).run(20)
    other = Problem(theirs, optimiser, source).run(20)
    np.testing.assert_allclose(flat(mine), flat(other), rtol=1e-8)


@pytest.mark.parametrize("source", SCHEDULE_SOURCES)
def test_a_schedule_writes_to_a_step_length_that_is_a_tensor(source):
    """As programs that hold the tensor, or compile it, expect."""
    ends = []
    for torch in (ours, theirs):
        lr = torch.tensor(0.1, dtype=torch.float64)
        p = torch.nn.Parameter(torch.ones(2))
        o, s = torch.optim.SGD([p], lr=lr, momentum=0.5), torch.optim.lr_scheduler
        schedule = eval(source, vars(s) | {"o": o, "S": s})
        for _ in range(6):
            o.step()
            schedule.step(*([1.0] if "Plateau" in source else []))
        (group,) = o.param_groups
        assert group["lr"] is lr
        assert group.get("initial_lr") is not lr
        ends.append([float(lr), *map(float, schedule.get_last_lr())])
    assert ends[0] == pytest.approx(ends[1], rel=1e-12)


def test_rows_that_were_read_are_moved_alone():
    found = []
    for torch in (ours, theirs):
        table = torch.nn.Embedding(7, 3, sparse=True).double()
        values = torch.from_numpy(np.sin(np.arange(21.0))).view(7, 3)
        table.weight.data.copy_(values)
        optimiser = torch.optim.SparseAdam(table.parameters(), lr=0.1)
        for i in range(6):
            optimiser.zero_grad()
            (table(torch.tensor([i % 3, 5, (i * i) % 4])) ** 2).sum().backward()
            optimiser.step()
        state = optimiser.state_dict()
        kept = {k: v for k, v in state["state"][0].items() if k != "step"}
        found.append((table.weight.tolist(), {k: v.tolist() for k, v in kept.items()}))
        with pytest.raises(ValueError, match="learning rate"):
            torch.optim.SparseAdam(table.parameters(), lr=0)
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    assert found[0][1].keys() == found[1][1].keys()
    for key, kept in found[0][1].items():
        np.testing.assert_allclose(kept, found[1][1][key], rtol=1e-12)


@pytest.mark.parametrize("source", [s for s in SOURCES if "maximize" not in s])
def test_state_goes_on_where_it_was(source):
    first, second = Problem(ours, source), Problem(ours, source)
    first.run(4)
    second.model.load_state_dict(first.model.state_dict())
    second.optimiser.load_state_dict(first.optimiser.state_dict())
    expected = first.run(4)
    if not source.startswith("LBFGS"):  # which counts evaluations of its own
        np.testing.assert_array_equal(second.run(4), expected)


@pytest.mark.parametrize("source", [s for s in SOURCES if "LBFGS" not in s])
def test_state_has_pytorchs_names(source):
    mine, other = Problem(ours, source), Problem(theirs, source)
    for problem in (mine, other):
        problem.run(2)
    a, b = (problem.optimiser.state_dict() for problem in (mine, other))
    assert [set(g) for g in a["param_groups"]] == [set(g) for g in b["param_groups"]]
    assert [g["params"] for g in a["param_groups"]] == [
        g["params"] for g in b["param_groups"]
    ]
    assert set(a["state"]) == set(b["state"])
    for key, kept in b["state"].items():
        named = {k for k, v in kept.items() if v is not None}
        assert set(a["state"][key]) == named


@pytest.mark.parametrize(
    "source",
    [
        "SGD(p, lr=-1)",
        "SGD([])",
        "SGD(p[0])",
        "SGD(p, nesterov=True)",
        "Adam(p, betas=(1.0, 0.9))",
        "SGD([{'params': p}, {'params': p}], lr=1)",
        "SGD([p[0] * 2], lr=1)",
        "LBFGS([{'params': p[:1]}, {'params': p[1:]}])",
    ],
)
def test_errors_are_pytorchs(source):
    with pytest.raises(Exception) as theirs_raised:  # any class
        Problem(theirs, source)
    with pytest.raises(theirs_raised.type):
        Problem(ours, source)


def test_a_step_allocates_nothing_large():
    import tracemalloc

    p = ours.nn.Parameter(ours.zeros(100_000))
    optimiser = ours.optim.Adam([p])
    p.grad = ours.ones(100_000)
    optimiser.step()
    tracemalloc.start()
    optimiser.step()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000


COMPLEX = """
SGD(p, 0.1, 0.9, nesterov=True, weight_decay=0.01); Adam(p, lr=0.1, amsgrad=True)
AdamW(p, lr=0.1, maximize=True); NAdam(p, lr=0.1); RAdam(p, lr=0.1, betas=(0.5, 0.7))
Adamax(p, lr=0.1); Adagrad(p, lr=0.1, initial_accumulator_value=0.2); ASGD(p, lr=0.1)
RMSprop(p, lr=0.1, centered=True, momentum=0.5); Adadelta(p, lr=10.0)
Rprop(p, lr=0.1); LBFGS(p, lr=0.5, max_iter=3)
LBFGS(p, line_search_fn='strong_wolfe', max_iter=3)
"""
COMPLEX_SOURCES = [
    e.strip() for e in COMPLEX.replace("\n", ";").split(";") if e.strip()
]


@pytest.mark.parametrize("source", COMPLEX_SOURCES)
def test_complex_parameters_move_as_the_pairs_of_their_parts(source):
    ends = []
    for torch in (ours, theirs):
        start = torch.tensor(
            [[1 + 2j, 0.5 - 1j], [-1j, 2 + 0j]], dtype=torch.complex128
        )
        start = start if "LBFGS" in source else start.T
        z, x = start.requires_grad_(), torch.ones(3, dtype=torch.float64)
        p = [z, x.requires_grad_()]
        optimiser = eval(f"optim.{source}", {"optim": torch.optim, "p": p})

        def closure(optimiser=optimiser, z=z, x=x):
            optimiser.zero_grad()
            loss = (z.abs() ** 4).sum() + ((z.real - 1) * z.imag).sum() + (x**2).sum()
            loss.backward()
            return loss

        for _ in range(12):
            optimiser.step(closure)
        kept = optimiser.state[z]
        ends.append((z.detach().numpy(), x.detach().numpy(), kept.get("exp_avg")))
    for mine, other in zip(*ends, strict=True):
        if other is not None:
            np.testing.assert_allclose(mine, other, rtol=1e-8)


def test_a_step_of_complex_parameters_is_not_differentiated():
    p = ours.tensor([1 + 2j], requires_grad=True)
    optimiser = ours.optim.Adam([p], differentiable=True)
    (p.abs() ** 2).sum().backward()
    with pytest.raises(MissingRuleError, match="complex parameters"):
        optimiser.step()
