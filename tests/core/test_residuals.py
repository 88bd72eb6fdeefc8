"""What the user does to an array after it was used has no effect on derivatives."""

import contextlib
import copy
import io
import threading
import warnings
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import lantern
from lantern import grad, jvp, vjp
from lantern.core.numpy_protocols import find_function
from lantern.core.residuals import (
    changed,
    copied,
    is_ours,
    is_promised,
    mark,
    owned,
    owners,
    register_mutable,
    residual,
    unchanged,
)
from lantern.op import op
from lantern.testing import random_like
from tests import numpy_walk
from tests.cases import call
from tests.every_op.test_every_op import CASES, operands
from tests.numpy_walk import MASK, ODD_CALLS, PATTERNS, TWO, V, X, functions
from tests.numpy_walk import _floats as floats

FUNCTIONS = {
    name: function
    for name, function in functions().items()
    if find_function(function.__name__, getattr(function, "__module__", "") or "")
}
# What computes with an index of the library's own, and is never handed the user's.
INTERNAL = {"getitem", "scatter", "put", "add_at", "reorder"}
USED = [c for c in CASES if 0 not in c.shapes[0] and c.name not in INTERNAL]


def spoil(tree):
    """Write something else into every array of a structure."""
    for x in lantern.tree_leaves(tree):
        if isinstance(x, np.ndarray) and x.flags.writeable:
            x[...] = 1 - x if x.dtype.kind != "b" else ~x


def with_others(f, given, i, x):
    """f of arguments of which one is x."""
    return f(*given[:i], x, *given[i + 1 :])


@pytest.mark.parametrize("case", USED, ids=str)
def test_no_operation_sees_later_changes_of_what_it_was_given(case):
    for i, x_i in enumerate(operands(case)):
        given = [x.copy() for x in operands(case)]
        statics = copy.deepcopy(case.statics)
        f = call(case._replace(statics=statics))
        y, pullback = vjp(partial(with_others, f, given, i), x_i)
        y_bar = random_like(y, np.random.default_rng(1))
        expected = pullback(y_bar)[0]
        spoil([given, y, x_i, list(statics.values())])
        np.testing.assert_array_equal(pullback(y_bar)[0], expected)


def changed_after(function, pattern, spoiled):
    """A pullback, by x, before and after all arrays are changed; None: not for us."""
    given = X.copy(), V.copy(), MASK.copy(), TWO.copy()
    with (
        contextlib.redirect_stdout(io.StringIO()),
        pytest.MonkeyPatch.context() as patch,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        patch.setattr(numpy_walk, "MASK", given[2])
        patch.setattr(numpy_walk, "TWO", given[3])
        x, v, *_ = given
        run = PATTERNS[pattern]
        try:
            if spoiled == "v":
                y, pullback = vjp(lambda x: floats(run(function, x, v)), x)
            else:
                y, pullback = vjp(lambda v: floats(run(function, x, v)), v)
            y_bar = random_like(y, np.random.default_rng(1))
            expected = pullback(y_bar)[0]
        except Exception:  # the pattern is not for this function
            return None
        spoil([given, y])
        return expected, pullback(y_bar)[0]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_of_numpy_sees_later_changes(name):
    for pattern in PATTERNS:
        if (name, pattern) in ODD_CALLS:
            continue
        for spoiled in "xv":
            pair = changed_after(FUNCTIONS[name], pattern, spoiled)
            if pair is not None:
                np.testing.assert_array_equal(*pair, err_msg=pattern)


C = np.linspace(0.5, 2.0, 4)
LARGE = np.linspace(0.5, 2.0, 3000)


def view_of_a_constant(x, c):
    y = x * c[::-1]
    c[:] = 7.0
    return y


def column(x, c):
    rows = np.stack([c, 2 * c], axis=1)
    y = x * rows[:, 1]
    rows.fill(7.0)
    return y


def used_twice_with_a_change_between(x, c):
    y = x * c
    c *= 2.0
    return y + x * c


def shuffled(x, c):
    y = x * c
    c[:] = c[::-1].copy()
    return y


def minus_zero(x, c):
    c[:] = 0.0
    y = x * c
    c[:] = -0.0
    return y + lantern.copysign(x, 1.0) * c


def untracked_tensor(x, c):
    t = lantern.Tensor(c)
    y = t * x
    t[...] = 7.0
    return y


def condition(x, c):
    mask = c > 1.0
    y = lantern.where(mask, x * x, 3.0 * x)
    mask[:] = False
    return y


def index(x, c):
    places = np.array([0, 0, 2])
    y = (x * x)[places]
    places[:] = 1
    return y


def permutation(x, c):
    axes = [1, 0]
    y = lantern.permute_dims(lantern.reshape(x, (2, -1)), axes)
    axes[:] = [0, 1]
    return y * lantern.arange(float(x.size)).reshape(-1, 2)


def matrix(x, c):
    a = np.outer(c, c)
    y = a @ x
    a[:] = 7.0
    return y


CHANGES = (
    view_of_a_constant,
    column,
    used_twice_with_a_change_between,
    shuffled,
    minus_zero,
    untracked_tensor,
    condition,
    index,
    permutation,
    matrix,
)


def slope(f, x, x_dot, eps=1e-6):
    return (f(x + eps * x_dot) - f(x - eps * x_dot)) / (2 * eps)


@pytest.mark.parametrize("c", [C, LARGE[:40], LARGE], ids=len)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.usefixtures("probe")
def test_the_old_value_of_a_changed_constant_counts(change, c):
    if change is matrix:
        c = c[:40]
    x, x_dot = 1.0 + 0.1 * c, c[::-1].copy()
    total = lambda x: lantern.sum(change(x, c.copy()) ** 2)  # noqa: E731
    once = lambda x: np.vdot(grad(total)(x), x_dot)  # noqa: E731
    np.testing.assert_allclose(once(x), slope(total, x, x_dot), rtol=1e-6)
    np.testing.assert_allclose(jvp(total, (x,), (x_dot,))[1], once(x), rtol=1e-10)
    gradient = grad(total)
    for second in (
        lambda x: grad(lambda x: lantern.vdot(gradient(x), x_dot))(x),
        lambda x: jvp(gradient, (x,), (x_dot,))[1],
        lambda x: grad(lambda x: jvp(total, (x,), (x_dot,))[1])(x),
    ):
        np.testing.assert_allclose(second(x) @ x_dot, slope(once, x, x_dot), rtol=1e-4)


@pytest.mark.usefixtures("probe")
def test_an_input_that_the_function_changes_by_closure():
    x = np.array([1.0, 2.0])

    def f(t):
        y = t * t
        x[:] = 7.0
        return lantern.sum(y * t)

    np.testing.assert_array_equal(grad(f)(x), [3.0, 12.0])
    assert x.tolist() == [7.0, 7.0]  # what the user wrote, and nothing else


@pytest.mark.usefixtures("probe")
def test_what_vjp_got_and_gave_may_be_changed_before_the_pullback():
    x = {"a": np.array([0.0, 1.0])}
    y, pullback, aux = vjp(
        lambda x: (lantern.exp(x["a"]), x["a"] * 1.0), x, has_aux=True
    )
    expected = y.copy()
    x["a"][:] = y[:] = aux[:] = 9.0
    np.testing.assert_array_equal(pullback(np.ones(2))[0]["a"], expected)
    np.testing.assert_array_equal(pullback(np.ones(2))[0]["a"], expected)


def test_what_vjp_gave_may_be_changed_where_the_function_has_used_it_itself():
    def f(x):
        y = x * 1.0
        return (y, y * y), y

    (y, _), pullback, aux = vjp(f, np.array([1.0, 2.0]), has_aux=True)
    y[:] = aux[:] = 9.0
    slope = pullback((np.ones(2), np.ones(2)))[0]
    np.testing.assert_array_equal(slope, [3.0, 5.0])


def test_a_detached_value_may_be_changed():
    def f(x):
        y = lantern.exp(x)
        z = lantern.stop_gradient(y)
        z[:] = 5.0
        return lantern.sum(y * z)

    np.testing.assert_array_equal(grad(f)(np.zeros(2)), [5.0, 5.0])


@pytest.mark.parametrize("c", [C, LARGE], ids=len)
@pytest.mark.usefixtures("probe")
def test_constants_keep_their_bytes_and_flags_also_after_errors(c):
    c, frozen = c.copy(), c.copy()
    frozen.setflags(write=False)
    part = frozen[1:]

    def f(x, fail):
        y = lantern.sum(x * c + x * frozen) + lantern.sum(x[1:] * part)
        if fail:
            raise KeyError("the user's own")
        return y

    before = c.tobytes(), c.flags.writeable, part.flags.writeable
    grad(f)(np.ones(c.shape), False)
    with pytest.raises(KeyError):
        grad(f)(np.ones(c.shape), True)
    assert (c.tobytes(), c.flags.writeable, part.flags.writeable) == before


@pytest.mark.usefixtures("probe")
def test_a_large_constant_is_copied_once_as_long_as_it_stays_the_same(own_rules):
    c, seen = LARGE.copy(), []

    @lantern.op.op
    def scaled(x, c, /):
        seen.append(c)
        z_bar = yield x * c
        yield z_bar * c
        yield None

    def f(x):
        y = scaled(scaled(x, c), c)
        c[0] = 3.0
        return lantern.sum(scaled(y, c))

    grad(f)(np.ones(c.shape))
    first, second, third = seen
    assert first is second is not third
    assert third[0] == 3.0 != first[0]


@pytest.mark.usefixtures("probe")
def test_a_constant_that_is_promised_not_to_change_is_kept_as_it_is():
    c = LARGE.copy()
    c.setflags(write=False)
    writeable = LARGE.copy()
    view = writeable[:]
    view.setflags(write=False)
    level = lantern.transforms.reverse.Reverse("test")
    assert residual(level, c) is c
    assert residual(level, c[5:]).base is c
    assert residual(level, view) is not view


@pytest.mark.usefixtures("probe")
def test_one_constant_in_concurrent_derivatives_that_change_it():
    results, go = [], threading.Barrier(4)

    def run(k):
        c = np.full(3000, float(k))

        def f(x):
            y = x * c
            go.wait(timeout=60)
            c[:] = -1.0
            go.wait(timeout=60)
            return lantern.sum(y)

        results.append((k, grad(f)(np.ones(3000))))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted((k, set(g)) for k, g in results) == [
        (k, {float(k)}) for k in range(4)
    ]


def test_constants_on_a_device(backend):
    x, c = backend.array(np.ones(3)), backend.array(np.arange(3.0))

    def f(x):
        y = x * c
        c[:] = 7.0
        return lantern.sum(y)

    np.testing.assert_array_equal(backend.host(grad(f)(x)), [0.0, 1.0, 2.0])


@pytest.mark.parametrize("n", [4, 10_000])
def test_a_change_of_shape_or_type_is_a_change(n):
    x = np.ones(n)
    before = mark(x, np.copy)
    assert not changed(x, before)
    if n > 4:  # of a small one its bytes are kept
        assert changed(x.reshape(2, -1), before)
        assert changed(x.view(np.int64), before)
    x[-1] = 2.0
    assert changed(x, before)


def test_a_copy_that_several_rules_share_cannot_be_written_to():
    @op
    def greedy(x, y, /):
        y *= 2.0
        z_bar = yield x * y
        yield z_bar * y
        yield None

    with pytest.raises(ValueError, match="read-only"):
        grad(lambda x: lantern.sum(greedy(x, np.ones(10_000))))(np.ones(10_000))


def test_an_array_is_ours_and_so_is_a_read_only_view_of_it():
    x, other = np.ones((4, 4)), np.ones(4)
    ours = owners([x[1:]])  # and so what it is a view of
    view, part, stranger = x[0], x[:2, :2], other[:]
    for array in (view, stranger):
        array.flags.writeable = False
    assert is_ours(x, ours) is is_ours(view, ours) is True
    assert is_ours(part, ours) is is_ours(stranger, ours) is is_ours(3.0, ours) is False


class Remote(np.ndarray):
    """An array of which nobody finds out soon whether it has the bytes of another."""


register_mutable(Remote, Remote.copy)


def test_of_an_array_on_a_device_the_elements_are_compared():
    x = np.array([1.0, np.nan, 0.0]).view(Remote)
    before = mark(x, Remote.copy)
    assert not changed(x, before)  # nan is nan
    for place, value in ((0, 2.0), (0, np.nan), (1, 1.0)):
        other = x.copy()
        other[place] = value
        assert changed(other, before)


def test_nothing_is_promised_of_an_array_without_a_mark_for_it():
    x = np.ones(3)
    x.flags.writeable = False
    assert is_promised(x)
    assert is_promised(x[1:])
    assert not is_promised(np.ones(3))
    assert not is_promised(SimpleNamespace(flags=SimpleNamespace(), base=None))
    assert not is_promised(SimpleNamespace())
    assert is_promised(np.frombuffer(b"12345678"))  # bytes never change
    part_of_a_device = SimpleNamespace(flags=SimpleNamespace(), base=x)
    assert not is_ours(part_of_a_device, {id(x)}), "it may be written to"


def test_an_array_of_a_class_that_was_never_met_is_copied():
    class New(np.ndarray):
        pass

    x = np.ones(3).view(New)
    assert copied(x) is not x
    y = [1.0]
    assert copied(y) == y
    assert copied(y) is not y


def test_an_array_that_somebody_holds_is_not_handed_over_as_ones_own():
    taken, x = set(), np.ones(4)
    assert owned(x, taken) is x
    again, view = owned(x, taken), owned(x[1:], taken)
    assert again is not x
    assert view.flags.owndata
    assert owned(again, taken) is not again
    assert owned("no array", taken) == "no array"


@pytest.mark.parametrize("n", [4, 10_000])
def test_the_sign_of_zero_is_a_change(n):
    x = np.zeros(n)
    before = mark(x, np.copy)
    x[0] = -0.0
    assert changed(x, before)


def test_what_nobody_has_registered_is_marked_by_a_copy():
    x, copy = object(), object()
    assert mark(x, lambda _: copy) is copy
    assert mark(x, lambda x: x) is None  # it is promised


def test_only_what_is_soon_compared_is_known_to_be_unchanged():
    x = np.ones(3)
    assert unchanged(x, x.copy())
    assert not unchanged(x, 2 * x)
    assert not unchanged(x.view(Remote), x.view(Remote))
    assert not unchanged(1.0, 1.0)
