"""The tests are tested: wrong rules and a broken library make them fail."""

import numpy as np
import pytest

import lantern
from lantern import RuleError, grad, jvp, vjp
from lantern.core.namespace import namespace
from lantern.op import elementwise, linear, op
from lantern.rules import number
from lantern.tensor.accumulate import accumulator
from lantern.testing import GradientError, check_grads
from tests.cases import Case
from tests.every_op import test_every_op
from tests.transforms import test_nesting
from tests.transforms import test_paper_values as test_facts

pytestmark = pytest.mark.usefixtures("own_rules")
VECTOR = np.array([0.4, -1.2, 1.7])
MATRIX = np.array([[0.3, -0.8, 1.1], [0.9, 0.5, -1.4]])
SQUARE = np.array([[0.3, -0.8], [0.9, 0.5]])


def product_rule(kind, x_bar, y_bar):
    """A rule for x * y with given contributions."""

    def product(x, y, /):
        z_bar = yield x * y
        yield x_bar(z_bar, x, y)
        yield y_bar(z_bar, x, y)

    return kind(product)


def unary_rule(kind, value, x_bar):
    def unary(x, /):
        z_bar = yield value(x)
        yield x_bar(z_bar, x)

    return kind(unary)


def matrix_rule(x_bar, y_bar):
    def matrix_product(x, y, /):
        z_bar = yield x @ y
        yield x_bar(z_bar, x, y)
        yield y_bar(z_bar, x, y)

    return op(matrix_product)


def sine(x):
    return namespace(x).sin(x)


def cosine(z_bar, x):
    return z_bar * namespace(x).cos(x)


def plain_cosine(z_bar, x):
    """Right, but a constant to every outer derivative."""
    return z_bar * np.cos(lantern.stop_gradient(x))


RIGHT_PRODUCT = (lambda z_bar, x, y: z_bar * y, lambda z_bar, x, y: z_bar * x)
RIGHT_MATRIX = (lambda z_bar, x, y: z_bar @ y.mT, lambda z_bar, x, y: x.mT @ z_bar)


def overwriting(z_bar, x, y):
    """Right, but it writes into the cotangent that it was given."""
    z_bar *= y
    return z_bar


class Family:
    """Rules of one operation, right and wrong.

    Args:
        make: an operation of its contributions (or of what else tells them apart).
        right: what makes it right.
        operands: where it is checked.
        order: of the derivative that shows the fault.
    """

    def __init__(self, make, right, operands, order=1):
        self.make, self.right = make, right
        self.operands, self.order = operands, order


VECTORS, SQUARES = (VECTOR, VECTOR + 1), (SQUARE, SQUARE + 1)
PRODUCT = Family(lambda *c: product_rule(elementwise, *c), RIGHT_PRODUCT, VECTORS)
GENERAL = Family(lambda *c: product_rule(op, *c), RIGHT_PRODUCT, (MATRIX, MATRIX + 1))
MATMUL = Family(matrix_rule, RIGHT_MATRIX, SQUARES)
SINE = Family(lambda c: unary_rule(elementwise, sine, c), (cosine,), (VECTOR,), 2)
SINE_OF_A_NUMBER = Family(SINE.make, SINE.right, (0.7,), 2)
CONJ = Family(
    lambda c: unary_rule(linear, lambda x: namespace(x).conj(x), c),
    (lambda z_bar, x: namespace(z_bar).conj(z_bar),),
    (VECTOR + 1j * VECTOR**2,),
)
KIND = Family(
    lambda kind: unary_rule(kind, lambda x: x * x, lambda z_bar, x: z_bar * 2 * x),
    (elementwise,),
    (VECTOR,),
)
FIRST, SECOND = RIGHT_PRODUCT
FAULTS = {
    "a factor of 1.001": (PRODUCT, (lambda z, x, y: z * y * 1.001, SECOND)),
    "a wrong sign": (PRODUCT, (FIRST, lambda z, x, y: -z * x)),
    "a missing factor": (PRODUCT, (lambda z, x, y: z, SECOND)),
    "swapped operands": (PRODUCT, (SECOND, FIRST)),
    "nothing where something is due": (PRODUCT, (FIRST, lambda z, x, y: None)),
    "a contribution that overwrites": (PRODUCT, (overwriting, SECOND)),
    "a sum for all": (GENERAL, (lambda z, x, y: lantern.sum(z * y), SECOND)),
    "one row for all": (GENERAL, (lambda z, x, y: (z * y)[:1], SECOND)),
    "a matrix untransposed": (MATMUL, (lambda z, x, y: z @ y, RIGHT_MATRIX[1])),
    "matrices in wrong order": (MATMUL, (RIGHT_MATRIX[0], lambda z, x, y: z @ x.mT)),
    "a wrong second order": (SINE, (plain_cosine,)),
    "a wrong second order of a number": (SINE_OF_A_NUMBER, (plain_cosine,)),
    "a missing conjugate": (CONJ, (lambda z, x: z,)),
    "linear where it is not": (KIND, (linear,)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_check_grads_finds_a_wrong_rule_and_passes_its_right_twin(fault):
    family, wrong = FAULTS[fault]
    check_grads(family.make(*family.right), family.operands, order=2, atol=1e-6)
    if family.order == 2:
        check_grads(family.make(*wrong), family.operands)
    with pytest.raises(GradientError, match="finite differences"):
        check_grads(family.make(*wrong), family.operands, family.order, atol=1e-6)


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_check_grads_finds_a_wrong_rule_in_each_mode_alone(mode):
    wrong = product_rule(elementwise, RIGHT_PRODUCT[1], RIGHT_PRODUCT[0])
    with pytest.raises(GradientError, match=mode):
        check_grads(wrong, (2.0, 3.0), modes=[mode])


@pytest.mark.parametrize("x", [2.0, VECTOR], ids=["number", "array"])
@pytest.mark.parametrize("yields", [0, 1, 2])
def test_a_rule_that_yields_too_little_says_so(x, yields):
    @op
    def short(x, y, /):
        if yields == 0:
            return
        z_bar = yield x * y
        if yields == 2:
            yield z_bar * y

    def f(x, y):
        z = short(x, y)
        return lantern.sum(z) if np.shape(lantern.stop_gradient(z)) else z

    for run in (
        lambda: grad(f, (0, 1))(x, x),
        lambda: grad(f, (0, 1), driver="switching")(x, x),
        lambda: vjp(short, x, x)[1](x),
        lambda: jvp(short, (x, x), (x, x)),
    ):
        with pytest.raises(RuleError, match="short: the rule yielded too few"):
            run()


def test_what_is_no_rule_is_refused_when_it_is_registered():
    with pytest.raises(RuleError, match="generator function"):
        op(lambda x, /: x)
    with pytest.raises(RuleError, match="no differentiable operand"):

        @op
        def keyword(x):
            yield x


def overwrite_number(self, contribution):
    self.cotangent = self.fit(contribution)


def overwrite_array(self, contribution):
    self.cotangent, self.owned = self.fit(contribution), False


def resume_with_overwriting(self, answer):
    z_bar, self.cotangent = self.cotangent, None
    if z_bar is not None:
        self.settle(self.suspended, z_bar, self.operands())
    self.release()
    return answer


def every_op(shapes, statics=None, name="multiply"):
    case = Case(name, ((-2.0, 2.0),) * len(shapes), statics or {}, shapes)
    tests = test_every_op.TestArrays()
    return lambda: tests.test_derivatives_of_both_orders_in_every_mix_of_modes(case)


def a_fact(name):
    return lambda: test_facts.test_gradients_of_arrays(name, "in place")


def scalar_fact(name):
    return lambda: (
        test_facts.test_derivatives_of_a_scalar_function_in_every_mix_of_variants(
            name, 1
        )
    )


def nesting():
    tests = test_nesting.TestPerturbationConfusion()
    tests.test_an_inner_derivative_used_twice([grad, grad])


def broken_number(patch):
    patch.setattr(number.Number, "accumulate", overwrite_number)
    patch.setattr(number.Number, "resume", resume_with_overwriting)


def broken_array(patch):
    for method in ("accumulate", "add"):
        patch.setattr(accumulator.Accumulator, method, overwrite_array)


def no_unbroadcast(patch):
    patch.setattr(accumulator, "unbroadcast", lambda x, shape: x)


BREAKAGES = {
    "= for += on numbers, in a sum": (broken_number, scalar_fact("2x + x^3")),
    "= for += on numbers, in a loop": (broken_number, scalar_fact("power by loop")),
    "= for += on numbers, nested": (broken_number, nesting),
    "= for += on arrays, repeated reads": (
        broken_array,
        a_fact("an element read in two places"),
    ),
    "= for += on arrays, reuse": (broken_array, a_fact("ten nodes that accumulate")),
    "no unbroadcast, a product": (
        no_unbroadcast,
        a_fact("a product with broadcasting"),
    ),
    "no unbroadcast, a row": (no_unbroadcast, every_op(((2, 3), (3,)))),
    "no unbroadcast, a column": (no_unbroadcast, every_op(((2, 3), (2, 1)))),
    "no unbroadcast, a sum": (no_unbroadcast, every_op(((2, 3),), {"axis": 0}, "sum")),
}


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_a_broken_library_fails_its_tests(breakage, monkeypatch):
    broken, test = BREAKAGES[breakage]
    test()
    broken(monkeypatch)
    with pytest.raises(AssertionError):
        test()


class TestReport:
    def test_it_names_the_worst_elements_of_the_right_argument(self):
        @lantern.custom_rule
        def wrong(p, /):
            z_bar = yield [p["w"] ** 2, p["b"] * 2]
            by_w = z_bar[0] * 2 * p["w"] * np.array([[1, 1.1], [1, 1.5]])
            yield {"w": by_w, "b": z_bar[1] * 2}

        point = ({"w": np.ones((2, 2)), "b": np.ones(3)},)
        with pytest.raises(GradientError) as caught:
            check_grads(wrong, point, modes=("rev",))
        report = str(caught.value).splitlines()
        assert report[0] == "check_grads: rev is wrong in 2 of 7 elements."
        assert report[1].startswith("    args[0]['w'][1, 1]: found")
        assert report[2].startswith("    args[0]['w'][0, 1]: found")
        with pytest.raises(GradientError, match=r"f\(\*args\)\[0\]\[1, 1\]: found"):
            check_grads(wrong, point, modes=("fwd",))

    def test_it_names_the_order(self):
        @lantern.custom_vjp
        def f(x):
            return x**3

        f.defvjp(
            lambda x: (x**3, x),
            lambda x, g: (g * 3 * lantern.stop_gradient(x) ** 2,),
        )
        check_grads(f, (2.0,))
        with pytest.raises(GradientError, match="rev of rev is wrong in 1 of 1"):
            check_grads(f, (2.0,), order=2, modes=("rev",))

    def test_it_shows_a_few_of_many(self):
        wrong = lantern.custom_rule(_twice_as_steep)
        with pytest.raises(GradientError, match="and 95 more"):
            check_grads(wrong, (np.linspace(1, 2, 100),))

    @pytest.mark.parametrize(
        "wrong", [{"order": 0}, {"modes": ("bwd",)}, {"modes": ()}, {"args": 1.0}]
    )
    def test_arguments_that_would_check_nothing_are_refused(self, wrong):
        with pytest.raises(lantern.ArgumentError, match="check_grads"):
            check_grads(lantern.sin, **{"args": (1.0,), **wrong})


def _twice_as_steep(x, /):
    z_bar = yield x * x
    yield z_bar * 4 * x
