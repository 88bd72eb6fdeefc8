"""What the user changes before the backward pass: the old value, or MutationError.

Never the new value, in whatever way a derivative comes to read it late.
"""

import array
import functools
import mmap
import types

import numpy as np
import pytest

import lantern
from lantern import (
    MutationError,
    RuleError,
    custom_jvp,
    custom_rule,
    custom_vjp,
    grad,
    jvp,
    linearize,
    vjp,
    vmap,
)

pytestmark = pytest.mark.usefixtures("probe")
GLOBAL = np.zeros(3)
MODULE = types.ModuleType("settings")
factor = 2.0


def by_vjp(fwd, bwd):
    f = custom_vjp(lambda x: fwd(x)[0])
    f.defvjp(fwd, bwd)
    return f


# How a rule of the user's keeps an array c, of which its derivative is made.
def residual(c):
    return by_vjp(lambda x: (x * c, c), lambda r, g: (g * r,))


def residual_view(c):
    return by_vjp(lambda x: (x * c, {"part": [c[:]]}), lambda r, g: (g * r["part"][0],))


def residual_twice(c):
    return by_vjp(lambda x: (x * c, (c, c)), lambda r, g: (g * (r[0] + r[1]) / 2,))


def residual_in_an_object(c):
    return by_vjp(
        lambda x: (x * c, Holder(c)),
        lambda r, g: (g * r.held,),
    )


def closure(c):
    return by_vjp(lambda x: (x * c, None), lambda _, g: (g * c,))


def closure_of_a_list(c):
    weights = [{"w": c}]
    return by_vjp(lambda x: (x * c, None), lambda _, g: (g * weights[0]["w"],))


def closure_of_a_helper(c):
    def helper(g):
        return g * c

    return by_vjp(lambda x: (x * c, None), lambda _, g: (helper(g),))


def closure_of_a_part(c):
    scaled = functools.partial(np.multiply, c)
    return by_vjp(lambda x: (x * c, None), lambda _, g: (g * scaled(np.ones(3)),))


def closure_of_an_untracked_tensor(c):
    t = lantern.Tensor(c)
    return by_vjp(lambda x: (x * c, None), lambda _, g: (g * t,))


def closure_of_a_buffer(c):
    b = lantern.Buffer(c)

    def bwd(_, g):
        return (g * b,)

    def fwd(x):
        b[:] = c  # before the user changes it
        return x * c, None

    f = by_vjp(fwd, bwd)

    def f_and_change(x):
        y = f(x)
        c_is_changed_with(b)
        return y

    return f_and_change


def c_is_changed_with(b):
    b[:] = np.array([5.0, 7.0, 2.0])


def default(c):
    return by_vjp(lambda x: (x * c, None), lambda _, g, c=c: (g * c,))


def global_name(c):
    GLOBAL[:] = c
    return by_vjp(lambda x: (x * GLOBAL, None), lambda _, g: (g * GLOBAL,))


def global_of_a_module(c):
    MODULE.weights = c
    return by_vjp(lambda x: (x * c, None), lambda _, g: (g * MODULE.weights,))


class Holder:
    def __init__(self, held):
        self.held = held

    def back(self, residuals, g):
        return (g * self.held,)

    def __call__(self, residuals, g):
        return (g * self.held,)

    def rule(self, x, /):
        z_bar = yield x * self.held
        yield z_bar * self.held

    def scaled(self, g):
        return g * self.held

    @property
    def scale(self):
        return self.held


class Called(Holder):
    def __call__(self, g):
        return g * self.held


def attribute(c):
    model = Holder(Holder(c))
    return by_vjp(lambda x: (x * c, None), lambda _, g: (g * model.held.held,))


def method_that_is_called(c):
    model = Holder(c)
    return by_vjp(lambda x: (x * c, None), lambda _, g: (model.scaled(g),))


def method_of_a_class(c):
    class Model:
        held = c

        @classmethod
        def scaled(cls, g):
            return g * cls.held

    return by_vjp(lambda x: (x * c, None), lambda _, g: (Model.scaled(g),))


def property_of_an_object(c):
    model = Holder(c)
    return by_vjp(lambda x: (x * c, None), lambda _, g: (g * model.scale,))


def object_that_is_called(c):
    model = Called(c)
    return by_vjp(lambda x: (x * c, None), lambda _, g: (model(g),))


def two_readers_of_an_object(c):
    model, other = Holder(c), Holder(1.0)
    model.ones = np.ones(3)

    def first(g):
        return g * model.ones * other.held

    def last(g):
        return g * model.held

    return by_vjp(lambda x: (x * c, None), lambda _, g: (last(first(g)),))


def argument_of_a_helper(c):
    model = Holder(c)

    def helper(g, model):
        return g * model.held

    return by_vjp(lambda x: (x * c, None), lambda _, g: (helper(g, model),))


def function_of_a_module(c):
    def helper(g):
        return g * c

    MODULE.helper = helper
    return by_vjp(lambda x: (x * c, None), lambda _, g: (MODULE.helper(g),))


def method(c):
    return by_vjp(lambda x: (x * c, None), Holder(c).back)


def callable_object(c):
    return by_vjp(lambda x: (x * c, None), Holder(c))


def generator(c):
    @custom_rule
    def f(x, /):
        z_bar = yield x * c
        yield z_bar * c

    return f


def generator_with_a_local_name(c):
    @custom_rule
    def f(x, /):
        w = c
        z_bar = yield x * w
        yield z_bar * w

    return f


def generator_with_a_view(c):
    @custom_rule
    def f(x, /):
        (w,) = [c[:]]
        z_bar = yield x * w
        yield z_bar * w

    return f


def generator_with_a_list(c):
    @custom_rule
    def f(x, /):
        w = [c]
        z_bar = yield x * c
        yield z_bar * w[0]

    return f


def generator_with_a_thunk(c):
    @custom_rule
    def f(x, /):
        z_bar = yield x * c
        yield lambda: z_bar * c

    return f


def generator_that_recovers(c):
    @custom_rule
    def f(x, /):
        try:
            z_bar = yield x * c
            raise ArithmeticError
        except ArithmeticError:
            yield z_bar * c

    return f


def generator_with_an_alternative(c):
    @custom_rule
    def f(x, /):
        nothing = None
        z_bar = yield x * c
        yield z_bar * (nothing if nothing is not None else nothing or c)

    return f


def generator_inside(c):
    def inner(x):
        w = c
        z_bar = yield x * w
        yield z_bar * w

    @custom_rule
    def f(x, /):
        yield from inner(x)

    return f


def generator_inside_with_a_global_name(c):
    GLOBAL[:] = c

    def inner(x):
        z_bar = yield x * GLOBAL
        yield z_bar * GLOBAL

    @custom_rule
    def f(x, /):
        yield from inner(x)

    return f


def generator_with_what_a_helper_keeps(c):
    def helper():
        return c

    @custom_rule
    def f(x, /):
        w = helper()
        z_bar = yield x * w
        yield z_bar * w

    return f


def generator_of_an_object(c):
    model = Holder(c)

    @custom_rule
    def f(x, /):
        z_bar = yield x * model.held
        yield z_bar * model.held

    return f


def static(c):
    @custom_rule
    def f(x, /, by):
        z_bar = yield x * by
        yield z_bar * by

    return lambda x: f(x, c)


def static_list(c):
    @custom_rule
    def f(x, /, by):
        z_bar = yield x * by[0]
        yield z_bar * by[0]

    return lambda x: f(x, [c])


def static_of_a_port(c):
    f = custom_vjp(lambda x, by: x * by[0], nondiff_argnums=(1,))
    f.defvjp(lambda x, by: (x * by[0], None), lambda by, _, g: (g * by[0],))
    return lambda x: f(x, [c])


def tangent(c):
    f = custom_jvp(lambda x: x * c)
    f.defjvp(lambda p, t: (p[0] * c, t[0] * c))
    return f


def tangents(c):
    f = custom_jvp(lambda x: x * c)
    f.defjvps(lambda t, z, x: t * c)
    return f


def result(c):
    """Of which the derivative is made later; the user has it too."""

    @custom_rule
    def f(x, /):
        z_bar = yield c
        yield 0.0 * z_bar

    return lambda x: f(x) * x


def result_of_a_port(c):
    f = by_vjp(lambda x: ((c, c), None), lambda r, g: (0.0 * g[0],))
    return lambda x: f(x)[0] * x


def recomputed(c):
    return lantern.checkpoint(lambda x: x * c)


def recomputed_argument(c):
    f = lantern.checkpoint(lambda x, c: x * c[0])
    return lambda x: f(x, [c])


def recomputed_loop(c):
    return lambda x: lantern.remat_loop(lambda y, i: y * c if i == 0 else y, x, 4)


def solution(c):
    def f(y, a):
        return 0.5 * y + 0.5 * c * a

    return lambda x: lantern.fixed_point(f, np.zeros(3), x)


def solved(c):
    return lambda x: lantern.root(lambda y, a: 2.0 * (y - c * a), np.zeros(3), x)


def in_parallel(c):
    return lambda x: lantern.parallel_map(lambda x: x * c, [x])[0]


def for_each_example(c):
    return lambda x: vmap(lambda x, c: x * c)(x, c)


RULES = [f for f in list(globals().values()) if isinstance(f, types.FunctionType)]
RULES = [f for f in RULES if f.__code__.co_varnames[:1] == ("c",)]
# These give the old value; the others may raise.
OLD = {residual, residual_view, residual_twice, static, result_of_a_port}
OLD |= {recomputed_argument, in_parallel, for_each_example}
X = np.array([0.0, 1.0, 1.0])  # at 0 a changed factor does not show in the result


def in_time(f, c, spoil):
    def loss(x):
        y = f(x)
        spoil()
        return lantern.sum(y)

    return grad(loss)(X)


def later(f, c, spoil):
    _, pullback = vjp(f, X)
    spoil()
    return pullback(np.ones(3))[0]


def again(f, c, spoil):
    _, pullback = vjp(f, X)
    pullback(np.ones(3))
    spoil()
    return pullback(np.ones(3))[0]


def forward_later(f, c, spoil):
    _, pushforward = linearize(f, X)
    spoil()
    return pushforward(np.ones(3))


def forward(f, c, spoil):
    def program(x):
        y = f(x)
        spoil()
        return y

    return jvp(program, (X,), (np.ones(3),))[1]


def second(f, c, spoil):
    """The first derivative of the sum of f(x) * x, by a second one."""

    def loss(x):
        y = f(x)
        spoil()
        return lantern.sum(y * x) / 2

    return grad(lambda x: lantern.vdot(grad(loss)(x), np.ones(3)))(X)


def example_by_example(f, c, spoil):
    def loss(x):
        y = vmap(f)(lantern.stack([x]))
        spoil()
        return lantern.sum(y)

    return grad(loss)(X)


WAYS = [in_time, later, again, forward_later, forward, second, example_by_example]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rule", RULES)
def test_the_old_value_counts_or_it_is_an_error(rule, way):
    c = np.array([1.0, 2.0, 3.0])

    def spoil():
        c[:] = GLOBAL[:] = [5.0, 7.0, 2.0]  # with the same result, and the same sum

    try:
        found = way(rule(c), c, spoil)
    except MutationError:
        assert rule not in OLD
        return
    np.testing.assert_allclose(found, [1.0, 2.0, 3.0], rtol=1e-9)


def test_the_error_says_what_was_changed():
    c = np.array([1.0, 2.0, 3.0])
    for rule in (closure, generator):
        with pytest.raises(MutationError, match=r": c was changed after .* Pass it"):
            in_time(rule(c), c, lambda: c.fill(7.0))
        c[:] = 1.0
    with pytest.raises(MutationError, match=r"model\.held\.held was changed"):
        in_time(attribute(c), c, lambda: c.fill(7.0))


@pytest.mark.parametrize("n", [3, 3_000])
def test_a_workspace_that_the_next_use_writes_to(n):
    workspace = np.zeros(n)

    def fwd(x):
        workspace[:] = 2.0 * x
        return x * workspace, None

    def rule(x, /):
        workspace[:] = 2.0 * x
        z_bar = yield x * x
        yield z_bar * workspace

    x = np.ones(n)
    square = custom_rule(rule)
    # B023: each lambda is called in its own turn of the loop.
    for f in (by_vjp(fwd, lambda _, g: (2.0 * g * workspace,)), square):
        with pytest.raises(MutationError, match="workspace was changed"):
            grad(lambda x: lantern.sum(f(f(x) + 1.0)))(x)  # noqa: B023
        _, pullback = vjp(lambda x: f(f(x) + 1.0), x)  # noqa: B023
        if f is square:  # whose forward step is made again
            np.testing.assert_array_equal(pullback(np.ones(n))[0], [8.0] * n)
        else:
            with pytest.raises(MutationError, match="workspace was changed"):
                pullback(np.ones(n))


@pytest.mark.parametrize("n", [3, 3_000])
def test_a_residual_cannot_be_written_to(n):
    def bwd(r, g):
        r *= 2.0
        return (g * r,)

    f = by_vjp(lambda x: (2.0 * x, np.ones(n)), bwd)
    with pytest.raises(ValueError, match="read-only"):
        vjp(f, np.ones(n))[1](np.ones(n))


@pytest.mark.parametrize("n", [3, 3_000])
@pytest.mark.parametrize("kind", [float, complex, np.longdouble, np.int8, bool, object])
def test_arrays_of_every_size_and_kind(n, kind):
    c = np.arange(n).astype(kind)

    def back(_, g):
        return (g + 0.0 * c.real.astype(float).sum(),)

    f = by_vjp(lambda x: (x, None), back)
    x = np.ones(n)
    assert grad(lambda x: lantern.sum(f(x)))(x).tolist() == x.tolist()

    def loss(x):
        y = f(x)
        c[::-1] = c.copy()
        return lantern.sum(y)

    with pytest.raises(MutationError):
        grad(loss)(x)


class TestRebinding:
    """A name that is bound to something else: what the rule reads is new as well."""

    def test_a_variable_that_a_rule_closes_over(self):
        def loss(x, rule):
            for scale in (2.0, 3.0):

                @custom_rule
                def f(x, /):
                    z_bar = yield x * scale  # noqa: B023  # that is what is tested
                    yield z_bar * scale  # noqa: B023

                own = by_vjp(
                    lambda x: (x * scale, None),  # noqa: B023
                    lambda _, g: (g * scale,),  # noqa: B023
                )
                x = (f if rule else own)(x)
            return x

        for rule in (False, True):
            with pytest.raises(MutationError, match="scale was changed"):
                grad(loss)(2.0, rule)

    @pytest.mark.parametrize("key", [0, "w"])
    @pytest.mark.parametrize("way", ["closure", "static"])
    def test_an_element_of_a_list_or_a_dictionary(self, key, way):
        @custom_rule
        def by(x, /, weights):
            z_bar = yield x * weights[key]
            yield z_bar * weights[key]

        weights = [np.ones(3)] if key == 0 else {"w": np.ones(3)}
        own = by_vjp(
            lambda x: (x * weights[key], None), lambda _, g: (g * weights[key],)
        )

        def loss(x):
            y = own(x) if way == "closure" else by(x, weights)
            weights[key] = weights[key] + 1.0
            return lantern.sum(y)

        with pytest.raises(MutationError, match="was changed"):
            grad(loss)(X)

    def test_a_global_variable(self, monkeypatch):
        own = by_vjp(lambda x: (x * factor, None), lambda _, g: (g * factor,))

        def loss(x):
            y = own(x)
            monkeypatch.setitem(globals(), "factor", 3.0)
            return y

        with pytest.raises(MutationError, match="factor was changed"):
            grad(loss)(2.0)
        assert grad(own)(2.0) == 3.0

    def test_equal_numbers_are_the_same(self):
        scale = 2.0
        own = by_vjp(lambda x: (x * scale, None), lambda _, g: (g * scale,))

        def loss(x):
            nonlocal scale
            y = own(x)
            scale = float("2.0")
            return y

        assert grad(loss)(2.0) == 2.0


class TestWhatMayChange:
    """No error where nothing is read late, or where the rule itself keeps a record."""

    def check(self, f, expected=(2.0, 2.0, 2.0)):
        for _ in range(2):
            for use in (f, lambda x: f(f(x)) / 2.0):
                g = grad(lambda x: lantern.sum(use(x)))(X)  # noqa: B023
                np.testing.assert_array_equal(g, expected)
                _, pullback = vjp(use, X)
                for _ in range(2):
                    np.testing.assert_array_equal(pullback(np.ones(3))[0], expected)

    def test_a_record_of_the_forward_pass(self):
        calls, last = np.zeros(1), np.zeros(3)

        @custom_rule
        def f(x, /):
            calls[0] += 1
            last[:] = x
            z_bar = yield 2.0 * x
            yield 2.0 * z_bar

        self.check(f)

        def fwd(x):
            calls[0] += 1
            return 2.0 * x, None

        self.check(by_vjp(fwd, lambda _, g: (2.0 * g,)))

    def test_a_record_of_the_backward_pass(self):
        seen, count = [], 0

        def bwd(_, g):
            nonlocal count
            count += 1
            seen.append((g, count))
            return (2.0 * g,)

        self.check(by_vjp(lambda x: (2.0 * x, None), bwd))
        last = {"g": np.ones(3)}

        def bwd_with_a_record(_, g):
            last["g"] = g
            return (2.0 * g,)

        self.check(by_vjp(lambda x: (2.0 * x, None), bwd_with_a_record))

        @custom_rule
        def f(x, /):
            z_bar = yield 2.0 * x
            seen.append(z_bar)
            yield 2.0 * z_bar

        self.check(f)

    def test_state_of_a_function_that_is_recomputed(self):
        mean = np.zeros(3)

        def f(x):
            mean[:] = 0.9 * mean + 0.1
            return 2.0 * x

        self.check(lantern.checkpoint(f))

    def test_what_a_rule_has_made_itself(self):
        def f(x):
            y = np.array(x) * 2.0
            z = y.copy()
            z_bar = yield z
            z *= 0.0  # nobody else's
            y += z
            yield z_bar * (y - y + 2.0)

        self.check(lambda x: custom_rule_of(f)(x))

    def test_a_promise_is_believed(self):
        c = np.full(3, 2.0)
        c.setflags(write=False)
        self.check(closure(c))
        self.check(generator(c))

    def test_after_the_backward_pass(self):
        w = np.full(3, 2.0)
        f = generator(w)
        for _ in range(3):
            before = w.copy()
            g = grad(lambda x: lantern.sum(f(x)))(X)
            np.testing.assert_array_equal(g, before)
            w -= 0.1 * g


def custom_rule_of(f):
    @custom_rule
    def rule(x, /):
        yield from f(x)

    return rule


class TestRulesThatCheckNothing:
    """Those of ``lantern.op`` read no array that may change."""

    @pytest.mark.parametrize("kind", [lantern.op.op, lantern.op.elementwise])
    def test_a_rule_that_reads_an_array_is_refused(self, kind, own_rules):
        c = np.ones(3)

        def scaled(x, /):
            z_bar = yield x * c
            yield z_bar * c

        with pytest.raises(RuleError, match=r"reads the array c, .*custom_rule"):
            kind(scaled)
        c.setflags(write=False)
        np.testing.assert_array_equal(
            grad(lambda x: lantern.sum(kind(scaled)(x)))(X), c
        )


NEW = [5.0, 7.0, 2.0]


def filled(make):
    """A thing made of the old values, and how its owner changes it."""
    thing = make(np.array([1.0, 2.0, 3.0]))

    def spoil():
        dtype = getattr(thing, "dtype", np.dtype(float))
        thing[:] = np.array([2, 1, 2] if dtype.kind == "i" else NEW).astype(dtype)

    return thing, spoil


def of_buffer(make):
    raw = bytearray(np.array([1.0, 2.0, 3.0]).tobytes())

    def spoil():
        raw[:] = np.array(NEW).tobytes()

    return make(raw), spoil


def mapped_file():
    raw = mmap.mmap(-1, 24)
    raw[:] = np.array([1.0, 2.0, 3.0]).tobytes()
    return np.frombuffer(raw, dtype=float), lambda: raw.write(np.array(NEW).tobytes())


def listed():
    x = [1.0, 2.0, 3.0]
    return x, lambda: x.__setitem__(slice(None), NEW)


def array_of_python():
    x = array.array("d", [1.0, 2.0, 3.0])
    return x, lambda: x.__setitem__(slice(None), array.array("d", NEW))


def frame():
    pandas = pytest.importorskip("pandas", reason="data frames are pandas'")
    x = pandas.DataFrame({"a": [1.0, 2.0, 3.0]})
    return x, lambda: x.__setitem__("a", NEW)


def buffer():
    x = lantern.Buffer(np.array([1.0, 2.0, 3.0]))
    return x, lambda: x.__setitem__(slice(None), np.array(NEW))


def of(thing):
    return lambda: filled(thing)


# A thing, how it is changed, and what is computed with it.
THINGS = {
    "a matrix": (of(lambda c: c.view(np.matrix)), lambda x, c: x * np.asarray(c)[0]),
    "a masked array": (of(np.ma.array), lambda x, c: x * np.asarray(c)),
    "a field of records": (
        lambda: (
            (r := np.array([(1.0, 0), (2.0, 0), (3.0, 0)], "f8,i4"))["f0"],
            lambda: r["f0"].__setitem__(slice(None), NEW),
        ),
        lambda x, c: x * c,
    ),
    "a list": (listed, lambda x, c: lantern.multiply(x, c)),
    "a list as an array": (listed, lambda x, c: x * lantern.array(c)),
    "an array of Python's": (array_of_python, lambda x, c: x * np.asarray(c)),
    "a memoryview": (lambda: of_buffer(memoryview), lambda x, c: x * np.frombuffer(c)),
    "a view of bytes": (lambda: of_buffer(np.frombuffer), lambda x, c: x * c),
    "a mapped file": (mapped_file, lambda x, c: x * c),
    "a column of a data frame": (frame, lambda x, c: x * c["a"].to_numpy()),
    "a buffer": (buffer, lambda x, c: x * c),
    "an untracked tensor": (of(lantern.Tensor), lambda x, c: x * c),
    "a mask": (of(lambda c: c > 1.5), lambda x, c: lantern.where(c, x * x, x)),
    "a mask as an index": (
        of(lambda c: c > 1.5),
        lambda x, c: lantern.concat([(x * x)[c], x[~c]]),
    ),
    "a mask of where=": (
        of(lambda c: c > 1.5),
        lambda x, c: np.sum(lantern.stack([x * x, x, x * 3]), axis=0, where=c),
    ),
    "a list as an index": (
        lambda: ((i := [0, 0, 2]), lambda: i.__setitem__(slice(None), [1, 2, 1])),
        lambda x, c: (x * x)[c],
    ),
    "an array in a tuple as an index": (
        of(lambda c: (c % 3).astype(int)),
        lambda x, c: lantern.outer(x, x)[(c, [0, 1, 2])],
    ),
    "positions of take": (
        of(lambda c: (c % 3).astype(int)),
        lambda x, c: np.take(x * x, c, mode="clip"),
    ),
    "points of interp": (of(np.array), lambda x, c: np.interp(x, c - 2.0, c * c)),
    "values of interp": (of(np.array), lambda x, c: np.interp(x, [-1, 0.5, 4.0], c)),
    "a kernel": (of(np.array), lambda x, c: np.convolve(x * x, c)[:3]),
    "an operand of einsum": (of(np.array), lambda x, c: np.einsum("i,i->i", x, c)),
    "a spacing": (of(np.array), lambda x, c: np.gradient(x * x, np.cumsum(c))),
    "bounds": (of(np.array), lambda x, c: np.clip(x * 3.0, c - 2.0, c)),
    "an exponent": (of(np.array), lambda x, c: (x + 1.0) ** c),
    "weights": (of(np.array), lambda x, c: np.average(x * x, weights=c) * x),
    "conditions": (
        of(lambda c: c > 1.5),
        lambda x, c: np.select([c, ~c], [x * x, x * 3.0]),
    ),
    "a seed by closure of vmap": (
        of(np.array),
        lambda x, c: vmap(lambda x: x * c[0] * c)(lantern.stack([x, x]))[0],
    ),
    "at": (of(np.array), lambda x, c: (x * x).at[[0, 2]].multiply(c[:2])),
}
P = np.array([0.3, 1.1, 0.7])


@pytest.mark.parametrize("way", [in_time, later, again, forward_later, forward])
@pytest.mark.parametrize("name", THINGS)
def test_whatever_is_computed_with_the_old_value_counts(name, way, monkeypatch):
    monkeypatch.setitem(globals(), "X", P)
    make, f = THINGS[name]
    thing, spoil = make()
    expected = way(lambda x: f(x, thing), thing, lambda: None)
    found = way(lambda x: f(x, thing), thing, spoil)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    after = way(lambda x: f(x, thing), thing, lambda: None)
    assert not np.allclose(found, after)  # it has been changed


def test_random_draws_count_as_they_were():
    rng = np.random.default_rng(1)
    for f in (
        lambda x: lantern.checkpoint(lambda x: x * rng.normal(size=3))(x),
        lambda x: x * rng.normal(size=3),
    ):
        values, gradients = [], []
        for spoil in (lambda: None, lambda: rng.normal(size=5)):
            rng.bit_generator.state = np.random.default_rng(1).bit_generator.state
            y, pullback = vjp(f, P)
            spoil()
            values.append(y)
            gradients.append(pullback(np.ones(3))[0])
        np.testing.assert_array_equal(*values)
        np.testing.assert_array_equal(*gradients)
        np.testing.assert_allclose(gradients[0] * P, values[0], rtol=1e-14)


@pytest.mark.parametrize("n", [3, 3_000])
@pytest.mark.parametrize("rule", [residual, closure, generator, result, default])
def test_arrays_on_a_device(backend, rule, n):
    x, c = backend.array(np.ones(n)), backend.array(np.arange(n) * 1.0)
    f = rule(c)

    def loss(x, value):
        y = f(x)
        c[:] = value if value is not None else c
        return lantern.sum(y)

    np.testing.assert_array_equal(backend.host(grad(loss)(x, None)), np.arange(n))
    if rule in (residual, result):
        np.testing.assert_array_equal(backend.host(grad(loss)(x, 7.0)), np.arange(n))
    else:
        with pytest.raises(MutationError):
            grad(loss)(x, 7.0)


class TestBatches:
    """A batched function runs when all examples wait."""

    @pytest.mark.parametrize("how", ["by name", "by closure", "by position"])
    @pytest.mark.parametrize("n", [3, 3_000])
    def test_an_array_that_an_example_changes_after_a_call(self, how, n):
        c = np.ones(n)

        @lantern.batched
        def scaled(x, y=None, *, by=None):
            return x * (y if by is None else by)

        if how == "by closure":

            @lantern.batched
            def scaled(x):
                return x * c

        def example(x):
            y = x
            for _ in range(3):  # what comes back is known at the third call
                if how == "by position":
                    y = scaled(y, c)
                else:
                    y = scaled(y, by=c) if how == "by name" else scaled(y)
            c[:] += 1.0
            return lantern.sum(y)

        def loss(w):
            return sum(lantern.batch(lambda k: example(w * k), [1.0, 1.0]))

        if how == "by position":
            np.testing.assert_array_equal(grad(loss)(np.ones(n)), [1.0 + 2.0] * n)
        else:
            with pytest.raises(MutationError, match=r"scaled: (c|by) was changed"):
                grad(loss)(np.ones(n))

    def test_an_array_that_another_example_changes(self):
        c = np.ones(3)

        @lantern.batched
        def product(x, y):
            return x * y

        def example(k):
            c[:] *= k
            return product(k * X, c)

        first, second = lantern.batch(example, [1.0, 5.0])
        np.testing.assert_array_equal(first, X)
        np.testing.assert_array_equal(second, 25.0 * X)

    def test_a_state_of_the_function_itself(self):
        calls = np.zeros(1)

        @lantern.batched
        def doubled(x):
            calls[0] += 1
            return 2.0 * x

        def example(x):
            return doubled(doubled(x)).sum()

        assert [float(y) for y in lantern.batch(example, [X, X, X])] == [8.0] * 3
        assert calls[0] == 2


class TestWhatARuleHandsOver:
    """A contribution that the rule itself writes to again is one of its own."""

    def test_one_array_for_every_contribution(self):
        class Scratch:
            array = None

        scratch = Scratch()
        scratch.array = np.zeros(3)

        def doubled(g):
            return np.multiply(g, 2.0, out=vars(scratch)["array"])

        @custom_rule
        def f(x, y, /):
            z_bar = yield 2.0 * (x + y)
            yield doubled(z_bar)
            yield lambda: doubled(3.0 * z_bar)

        own = by_vjp(lambda x: (2.0 * x, None), lambda _, g: (doubled(g),))
        hooked = lambda x: lantern.hook(doubled, x)  # noqa: E731

        def loss(x, y):
            return lantern.sum(f(x, y) + 5.0 * own(x) + 7.0 * own(y) + hooked(y))

        by_x, by_y = grad(loss, (0, 1))(X, X)
        assert (by_x.tolist(), by_y.tolist()) == ([12.0] * 3, [22.0] * 3)
        for g in (*vjp(loss, X, X)[1](1.0), by_x, by_y):
            assert not np.shares_memory(g, scratch.array)

    def test_one_local_array_for_several_operands(self):
        @custom_rule
        def f(x, y, /):
            z_bar = yield 2.0 * x + 3.0 * y
            out = np.multiply(z_bar, 2.0)
            yield out
            yield np.multiply(z_bar, 3.0, out=out)

        by_x, by_y = grad(lambda x, y: lantern.sum(f(x, y)), (0, 1))(X, X)
        assert (by_x.tolist(), by_y.tolist()) == ([2.0] * 3, [3.0] * 3)

    def test_a_tangent(self):
        c = np.ones(3)
        f = custom_jvp(lambda x: x * 1.0)
        f.defjvp(lambda p, t: (p[0] * 1.0, c))
        _, moved = jvp(f, (X,), (np.ones(3),))
        assert not np.shares_memory(moved, c)

    def test_the_cotangent_itself_is_not_copied(self):
        @custom_rule
        def same(x, /):
            z_bar = yield x
            seen.append(z_bar)
            yield z_bar

        seen = []
        passed = []

        def keep(g):
            passed.append(g)

        grad(lambda x: lantern.sum(same(lantern.hook(keep, x * 1.0)) * 2.0))(X)
        assert np.shares_memory(seen[0], passed[0])


def test_a_static_array_counts_as_it_was_when_it_was_used():
    x = np.arange(20_000.0)
    kept = x % 2 == 0

    def total(x):
        mask = kept.copy()
        z = (x * x).sum(where=mask)
        mask[:] = ~mask
        return z

    np.testing.assert_array_equal(grad(total)(x), np.where(kept, 2 * x, 0))
