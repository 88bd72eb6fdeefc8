"""The rules of this face alone: derivatives of two orders, by finite differences."""

import numpy as np
import pytest

import lantern.torch as torch
from lantern.core.contribution import Masked
from lantern.op import registry
from lantern.testing import check_grads
from lantern.torch import special
from lantern.torch.functions import comparison, limits, products
from lantern.torch.linalg import elimination
from lantern.torch.nn import (
    edges,
    entropies,
    gates,
    halves,
    pools,
    rules,
    sequences,
    windows,
)
from lantern.torch.tensor import layouts, scaling, views
from lantern.torch.tensor.layouts import FORMATS

random = np.random.default_rng(1)


def draw(*shape):
    return random.normal(size=shape)


FORM = windows.Form((5, 6), (3, 2), (2, 1), ((1, 0), (0, 1)), (1, 2))
GROUPED = FORM._replace(groups=2)
STEPS = FORM.steps
CHOSEN = random.integers(0, 6, (2, 3, *STEPS))
NORMED = {"axes": (-1,), "eps": 1e-3, "shape": (4,), "found": None}
CASES = {
    # name: the operation, its operands, its options
    "affine": (rules._affine, (draw(5, 4), draw(3, 4), draw(3), draw(5, 3)), {}),
    "affine of many axes": (
        rules._affine,
        (draw(2, 5, 4), draw(3, 4), draw(3), None),
        {},
    ),
    "affine of one axis": (rules._affine, (draw(4), draw(3, 4), None, draw(3)), {}),
    "normalised": (rules._normalised, (draw(3, 4), draw(4), draw(4)), NORMED),
    "normalised channels": (
        rules._normalised,
        (draw(3, 2, 4), draw(2), draw(2)),
        {"axes": (0, 2), "eps": 1e-3, "shape": (2, 1), "found": None},
    ),
    "entropy": (
        entropies._entropy,
        (draw(5, 4),),
        {"places": np.array([0, 7, 9, 13, 18]), "scales": random.uniform(0, 1, 5)},
    ),
    "entropy of equal rows": (
        entropies._entropy,
        (draw(5, 4),),
        {"places": np.array([0, 7, 9, 13, 18]), "scales": 0.2},
    ),
    "entropy of one": (entropies._entropy_of_one, (draw(1, 4),), {"target": 2}),
    "entropy of one axis": (entropies._entropy_of_one, (draw(4),), {"target": 0}),
    "pick": (
        pools._pick,
        (draw(2, 3, *FORM.lengths),),
        {"form": FORM, "chosen": CHOSEN, "known": []},
    ),
    "unpick": (pools._unpick, (draw(2, 3, *STEPS),), {"form": FORM, "chosen": CHOSEN}),
    "logsigmoid": (rules._logsigmoid, (draw(3, 4),), {}),
    "rows": (rules._rows, (draw(4, 3),), {"index": np.array([1, 1, 3]), "keep": None}),
    "elu": (rules._elu, (draw(3, 4),), {"alpha": 1.5}),
    "gelu": (rules._gelu, (draw(3, 4),), {}),
    "leaky_relu": (rules._leaky_relu, (draw(3, 4),), {"slope": -0.3}),
    "silu": (rules._silu, (draw(3, 4),), {}),
    "multiplied": (scaling.multiplied, (draw(3, 4),), {"number": 0.3}),
    "copied": (layouts.copied, (draw(3, 4).T,), {"form": FORMATS["contiguous_format"]}),
    "divided": (scaling.divided, (draw(3, 4),), {"number": -0.3}),
    "hardswish": (rules._hardswish, (np.array([-3.5, -2.0, 0.6, 4.0]),), {}),
    "euclidean": (products._euclidean, (draw(2, 5, 3), draw(4, 3)), {}),
    "huber": (rules._huber, (np.array([-2.0, -0.3, 0.6, 1.4]),), {"delta": 0.7}),
    "cell": (
        gates._cell,
        (
            draw(2, 5),
            draw(2, 3),
            draw(2, 3),
            draw(12, 5),
            draw(12, 3),
            draw(12),
            draw(12),
        ),
        {},
    ),
    "cell of products": (
        gates._cell,
        (draw(1, 12), draw(1, 3), draw(1, 3), None, draw(12, 3), None, draw(12)),
        {},
    ),
    "limited": (
        limits._limited,
        (draw(3, 4),),
        {"low": -1, "high": 0.5},
    ),
    "limited below": (
        limits._limited,
        (draw(3, 4),),
        {"low": 0.1, "high": None},
    ),
    "memories": (
        sequences._memories,
        (draw(7, 12), draw(3, 3), draw(3, 3), draw(12, 3), draw(12)),
        {"steps": sequences.course((3, 2, 2), False)},
    ),
    "memories backwards": (
        sequences._memories,
        (draw(7, 12), draw(4, 3), draw(4, 3), draw(12, 3), None),
        {"steps": sequences.course((4, 2, 1), True)},
    ),
    "over_time": (
        sequences._over_time,
        (
            *(draw(6, 2), draw(2, 3), draw(2, 3)),
            *(draw(12, 2), draw(12, 3), draw(12), draw(12)),
        ),
        {"steps": sequences.course((2, 2, 2), False)},
    ),
    "over_time backwards": (
        sequences._over_time,
        (draw(6, 2), draw(2, 3), draw(2, 3), draw(12, 2), draw(12, 3), None, None),
        {"steps": sequences.course((2, 2, 2), True)},
    ),
    "correlate": (windows._correlate, (draw(2, 3, 5, 6), draw(4, 3, 3, 2)), FORM),
    "correlate groups": (
        windows._correlate,
        (draw(2, 4, 5, 6), draw(6, 2, 3, 2)),
        GROUPED,
    ),
    "spread": (windows._spread, (draw(2, 4, *STEPS), draw(4, 3, 3, 2)), FORM),
    "match": (windows._match, (draw(2, 3, 5, 6), draw(2, 4, *STEPS)), FORM),
    "sum_windows": (pools._sum_windows, (draw(2, 3, 5, 6),), FORM),
    "independent": (comparison._independent, (draw(2, 3),), {"value": np.ones((2, 3))}),
    "expanded": (views._expanded, (draw(3, 1),), {"shape": (2, 3, 4)}),
    "triangles": (
        elimination._triangles,
        (np.diag([4.0, 3.0, 2.0]) + 0.1 * draw(2, 3, 3),),
        {},
    ),
    "shown": (
        views._shown,
        (draw(3, 4),),
        {"show": lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 1)},
    ),
    "rearranged": (
        rules._rearranged,
        (draw(4, 6),),
        {"shape": (2, 2, 3, 2), "order": (2, 0, 3, 1), "result": (3, 8)},
    ),
    "mixed": (rules._mixed, (draw(2, 3, 4),), {"weights": draw(3, 2), "axis": -2}),
    "surrounded": (
        edges._surrounded,
        (draw(2, 4, 3),),
        {"widths": ((0, 0), (2, 1), (1, 0)), "mode": "reflect"},
    ),
    "folded": (
        edges._folded,
        (draw(2, 6, 3),),
        {"widths": ((0, 0), (2, 1), (0, 0)), "mode": "wrap"},
    ),
    "spread_windows": (pools._spread_windows, (draw(2, 3, *STEPS),), FORM),
    "erfcx": (special._erfcx, (draw(3, 4),), {}),
    "rounded_affine": (
        halves._rounded_affine,
        (draw(2, 5, 4), draw(3, 4), draw(3)),
        {},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_two_orders(name):
    function, operands, options = CASES[name]
    if isinstance(options, windows.Form):
        options = {"form": options}
    given = [x for x in operands if x is not None]

    def f(*xs):
        xs = iter(xs)
        filled = [None if x is None else next(xs) for x in operands]
        return function(*filled, **options)

    check_grads(f, given, order=2, atol=1e-5, rtol=1e-5)


def test_every_rule_of_the_face_has_a_case():
    ours = {
        name
        for name, operation in registry.items()
        if operation.rule.__module__.startswith("lantern.torch")
        and name not in ("completion", "custom")  # test_autograd
        and name != "one_of"  # test_edges: its value comes from elsewhere
        and name not in ("alignment", "surprise")  # PyTorch's own idea of a derivative
        and name not in ("zeta", "first_of_zeta")  # test_vmap: one is not known
    }
    assert ours == {
        function.rule.__name__.strip("_") for function, *_ in CASES.values()
    }


@pytest.mark.parametrize("name", sorted({n.split()[0] for n in CASES}))
def test_every_rule_says_what_it_is(name):
    doc = registry[name].rule.__doc__
    assert "Shapes:" in doc
    assert "Rule:" in doc


def test_a_mask_goes_back_only_where_losses_do_not_count(monkeypatch):
    """A mask makes what passes through all classes twice as large, and complex."""
    nll_loss, cross_entropy = (
        getattr(torch.nn.functional, name) for name in ("nll_loss", "cross_entropy")
    )
    masks = []
    dense = Masked.dense
    monkeypatch.setattr(
        Masked, "dense", lambda m, shape: masks.append(m) or dense(m, shape)
    )
    for smoothing, ignored in ((0.0, 2), (0.1, 2), (0.0, 1), (0.1, 1)):
        x = torch.tensor([[0.5, 1.0, 2.0], [1.0, 0.0, -1.0]], requires_grad=True)
        t = torch.tensor([0, 1])
        if smoothing:
            loss = cross_entropy(x, t, None, None, ignored, label_smoothing=smoothing)
        else:
            loss = nll_loss(x.log_softmax(1), t, None, None, ignored)
        loss.backward()
        assert bool(masks) == (ignored == 1)
        assert ignored != 1 or not x.grad[1].any()
        masks.clear()
