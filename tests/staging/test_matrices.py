"""Ways back that are a matrix per turn, and those that must not be."""

import math

import pytest

import lantern
from benchmarks.staging import lorenz
from benchmarks.staging_programs import PROGRAMS as PROGRAMS_OF_OTHERS
from benchmarks.staging_programs import pendulum
from lantern.staging.ir import Function
from lantern.staging.native.hurry import SHORT, hurried
from lantern.staging.native.matrices import Matrix, matrices
from lantern.staging.native.tapes import Origins


def swing(x, v):
    """Two numbers that go through each turn."""
    for _ in range(50):
        x, v = x + 0.1 * v, v - 0.1 * (x * x * x + 0.2 * v * x) * (1.0 - 0.1 * x * x)
    return x * v


def pulled(x, v):
    """Numbers from outside, which each turn adds to."""
    a, b = x * 0.5, v * v
    for _ in range(50):
        y = x * (1.0 - a * x * (0.5 - a * x))
        x, v = x + 0.1 * v, v - (b * 0.1) * (y * x * x + a * v * x) * (1.0 - a * y * y)
    return x * v


def divided(x, v):
    """Quotients, and a choice."""
    for _ in range(30):
        w = lantern.where(v > x, x * v, x / (1.0 + v * v))
        x, v = w / (1.0 + x * x), v + 0.1 * w * w / (2.0 + w)
    return x + v


def alone(x, v):
    """One number, in a turn that is long."""
    for _ in range(30):
        x = x + 0.1 * (1.0 - x * (1.0 - x * (0.3 - x * (0.2 - x * (v - x * x)))))
    return x


def five(x, v):
    """Five numbers, which take a vector of eight."""
    a = b = c = v
    for _ in range(20):
        y = x * (1.0 - x * (0.5 - x * (0.4 - x * (0.3 - x * (0.2 - x * (0.1 - x))))))
        x, v, a, b, c = v, a, b, c, 0.5 * y
    return x * v + a + b + c


def coupled(x, v):
    """Four numbers, of which each turn's ends come from several."""
    y, w = x * v, x - v
    for _ in range(30):
        d = x - y
        force = d * (1.0 - d * d * (0.1 - 0.01 * d * d))
        x, v = x + 0.1 * v, v - 0.1 * (force + x * x * x)
        y, w = y + 0.1 * w, w + 0.1 * (force - y * y * y)
    return x * w + y * v


def nested(x, v):
    """A loop inside of another, whose tape lies on that one's."""
    for i in range(6):
        y = x * 0.3 + 0.1 * i
        for _ in range(5):
            w = x * (1.0 - x * (0.5 - x * (0.2 - 0.1 * x)))
            x, v = x + y * v, v - y * (x * w * x + 0.2 * v * x) * (1.0 - 0.1 * x * w)
        x = lantern.sin(x)
    return x * v


def twice(x, v):
    """Two loops, one behind the other."""
    return swing(swing(x, v), 0.3 * v)


def kept(x, v):
    """A number that is used up in the first turn: its column is zero later."""
    for _ in range(20):
        y = v * (1.0 - v * (0.3 - v * (0.2 - v * (0.1 - v * (0.1 - v * (0.1 - v))))))
        x, v = y, 0.9 * y * (1.0 - v * v)
    return x + v


PROGRAMS = [swing, pulled, divided, alone, five, coupled, nested, twice, kept]


def found(jitted) -> list[Matrix]:
    (made,) = jitted.__self__.known.values()
    if made.program is None:
        return []
    main: Function = made.program.function
    return [] if main.is_exact else matrices(main, Origins(main))


@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients_by_matrices(f, level, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", level)
    gradient = lantern.value_and_grad(f, (0, 1))
    jitted, exact = lantern.jit(gradient), lantern.jit(gradient, exact=True)
    for args in [(0.7, 0.4), (0.1, -0.6)]:
        value, slopes = gradient(*args)
        assert jitted(*args)[0] == value
        assert jitted(*args)[1] == pytest.approx(slopes, rel=1e-12, abs=1e-15)
        assert exact(*args) == (value, slopes)
    assert "runs as it is" not in lantern.explain(jitted)
    assert len(found(jitted)) == (2 if f is twice else 1)
    assert not found(exact)


@pytest.mark.parametrize("f", [lorenz, pendulum])
def test_two_systems(f):
    args = (1.0, 1.0, 1.0) if f is lorenz else PROGRAMS_OF_OTHERS[pendulum]
    gradient = lantern.grad(f, (0, 1, 2) if f is lorenz else 0)
    jitted = lantern.jit(gradient)
    assert jitted(*args) == pytest.approx(gradient(*args), rel=1e-12)
    (matrix,) = found(jitted)
    assert (len(matrix.lanes), matrix.sums) == (3 if f is lorenz else 2, frozenset())


@pytest.mark.parametrize("f", PROGRAMS)
def test_without_passes_in_other_words(f, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", "O0")
    gradient = lantern.grad(f, (0, 1))
    jitted = lantern.jit(gradient)
    assert jitted(0.7, 0.4) == pytest.approx(gradient(0.7, 0.4), rel=1e-12)
    (made,) = jitted.__self__.known.values()
    text = made.native.text
    has_vectors = any(x.width > 1 for x in found(jitted))
    assert ("shufflevector" in text) is has_vectors
    assert "musttail" in text
    words = "musttail", "insertelement", "shufflevector"
    assert not any(word in hurried(text) for word in words)
    assert "musttail" in hurried(text + "\n" * SHORT)  # its frame may be a large one


def test_what_a_matrix_is():
    jitted = lantern.jit(lantern.grad(pulled, (0, 1)))
    jitted(0.7, 0.4)
    (matrix,) = found(jitted)
    assert (len(matrix.lanes), len(matrix.sums), matrix.width) == (2, 2, 4)
    assert matrix.slots == 8
    assert [sorted(mask) for mask in matrix.masks] == [[0, 1], [0, 1], [1], [1]]


@pytest.mark.parametrize("f", PROGRAMS)
def test_derivatives_of_gradients_by_matrices(f):
    """Of higher orders: whatever is not linear any more goes back step by step."""

    def second(x, v):
        return lantern.grad(lantern.grad(f))(x, v)

    def product(x, v):
        return lantern.hvp(lambda x: f(x, v), x, 0.5)

    for plain in (second, product):
        jitted = lantern.jit(plain)
        assert jitted(0.7, 0.4) == pytest.approx(plain(0.7, 0.4), rel=1e-11)
        assert "runs as it is" not in lantern.explain(jitted)


def small(x, v):
    """Turns that are short: their order is worth more than their time."""
    for _ in range(50):
        x, v = x * v, v * 0.9
    return x


def until(x, v):
    """A way back with a branch in it."""
    for _ in range(20):
        if x > 0.5:
            x = x * (0.5 - v * (0.3 - x * (0.2 - v * x)))
        else:
            v = v + x * (0.5 - v * (0.3 - x * (0.2 - v * x)))
        x, v = x + 0.1 * v * (1.0 - x * (1.0 - v * x)), v + 0.1 * x * v * x * v
    return x * v


@pytest.mark.parametrize("f", [small, until])
def test_what_goes_back_step_by_step(f):
    jitted = lantern.jit(lantern.grad(f, (0, 1)))
    assert jitted(0.7, 0.4) == pytest.approx(lantern.grad(f, (0, 1))(0.7, 0.4))
    assert not found(jitted)


def test_what_overflows_in_a_matrix_is_left_to_the_plain_function(monkeypatch):
    """Products that are infinite before the small number they are multiplied with."""
    monkeypatch.setattr("lantern.staging.native.matrices.WORTH", -100)

    def steep(x, v):
        for _ in range(20):
            a, b = v * 1e160, v * 1e-160
            x = x * b * b * a * a
        return x * 1e-300

    gradient = lantern.grad(steep, (0, 1))
    jitted = lantern.jit(gradient)
    assert jitted(1e10, 1.0) == pytest.approx(gradient(1e10, 1.0), rel=1e-12)
    assert all(map(math.isfinite, jitted(1e10, 1.0)))
    assert found(jitted)


@pytest.mark.parametrize("f", PROGRAMS)
def test_what_follows_is_multiplied_on_the_way_there(f, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", "O2")
    jitted = lantern.jit(lantern.grad(f, (0, 1)))
    jitted(0.7, 0.4)
    matrix = found(jitted)[0]
    assert matrix.is_next is (f is not nested)
    (made,) = jitted.__self__.known.values()
    assert matrix.is_next or "icmp ne ptr %v" in made.native.text  # a walk's test


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_turns_of_any_number(level, monkeypatch):
    """None, one, and what the matrices before it come to."""
    monkeypatch.setenv("LANTERN_JIT", level)

    def turned(x, v, n):
        a = v * v
        for _ in range(n):
            y = x * (1.0 - a * x * (0.5 - a * x))
            x, v = v, x - (0.1 * a) * (y * x * x + a * v * x) * (1.0 - a * y * y)
        return x * v + x

    gradient = lantern.grad(turned, (0, 1))
    jitted = lantern.jit(gradient)
    for n in (3, 0, 1, 2, 4, 21):
        assert jitted(0.7, 0.4, n) == pytest.approx(gradient(0.7, 0.4, n), rel=1e-12)
    (matrix,) = found(jitted)
    assert matrix.is_next
    assert matrix.sums


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_walk_that_another_way_has_too(is_taken):
    """A tape that goes through a branch: its walk does not follow in the same block."""

    def chosen(x, v, n):
        if n > 2:
            x = swing(x, v)
        return x * v

    args = 0.7, 0.4, 3 if is_taken else 1
    jitted = lantern.jit(lantern.grad(chosen, (0, 1)))
    assert jitted(*args) == pytest.approx(
        lantern.grad(chosen, (0, 1))(*args), rel=1e-12
    )
    (matrix,) = found(jitted)
    assert not matrix.is_next
