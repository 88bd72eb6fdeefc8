"""Lantern's transforms of programs with tensors: right, or an error; never a zero."""

import inspect

import numpy as np
import pytest

import lantern
import lantern.torch as torch
from lantern.core.value import Value, base
from lantern.errors import DetachError, LanternError

F = torch.nn.functional
POINT = [0.3, 0.6, 0.9]
WEIGHTS = torch.tensor([1.0, 2.0, 3.0])


def cube(x):
    return (x**3 * WEIGHTS[: len(x)]).sum()


# --- a tensor as an argument ---------------------------------------------------------

TENSORS = {
    "plain": torch.tensor,
    "tracked": lambda data: torch.tensor(data, requires_grad=True),
    "parameter": lambda data: torch.nn.Parameter(torch.tensor(data)),
    "buffer": lambda data: torch.nn.Buffer(torch.tensor(data)),
    "computed": lambda data: torch.tensor(data, requires_grad=True) * 1.0,
}
ONES = torch.ones(3)
TRANSFORMS = {
    "grad": lambda x: lantern.grad(cube)(x),
    "grad by name": lambda x: lantern.grad(cube, argnums="x")(x),
    "grad of a dict": lambda x: lantern.grad(lambda p: cube(p["w"]))({"w": x})["w"],
    "value_and_grad": lambda x: lantern.value_and_grad(cube)(x),
    "vjp": lambda x: lantern.vjp(cube, x)[1](torch.tensor(1.0)),
    "vjp, a number": lambda x: lantern.vjp(cube, x)[1](1.0),
    "jvp": lambda x: lantern.jvp(cube, (x,), (ONES,)),
    "linearize": lambda x: lantern.linearize(cube, x)[1](ONES),
    "jacfwd": lambda x: lantern.jacfwd(lambda x: x**3)(x),
    "jacrev": lambda x: lantern.jacrev(lambda x: x**3)(x),
    "jacobian": lambda x: lantern.jacobian(lambda x: x**3)(x),
    "hessian": lambda x: lantern.hessian(cube)(x),
    "diag_hessian": lambda x: lantern.diag_hessian(cube)(x),
    "hvp": lambda x: lantern.hvp(cube, (x,), (ONES,)),
    "vhp": lambda x: lantern.vhp(cube, (x,), (ONES,)),
    "elementwise_grad": lambda x: lantern.elementwise_grad(lambda x: x**3)(x),
    "jet": lambda x: lantern.jet(cube, (x,), ([ONES, ONES],))[1],
    "taylor": lambda x: lantern.taylor(cube, x, 2),
    "checkpoint": lambda x: lantern.grad(lantern.checkpoint(cube))(x),
    "grad of grad": lambda x: lantern.grad(lambda x: lantern.grad(cube)(x).sum())(x),
    "vmap": lambda x: lantern.vmap(lambda x: x * x)(x),
    "torch.func.grad": lambda x: torch.func.grad(cube)(x),
}


def leaves(z):
    if isinstance(z, tuple | list):
        return [leaf for part in z for leaf in leaves(part)]
    return [z]


@pytest.mark.parametrize("kind", TENSORS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_tensor_is_an_argument_of_every_transform(transform, kind):
    mine = TRANSFORMS[transform](TENSORS[kind](POINT))
    theirs = TRANSFORMS[transform](TENSORS["plain"](POINT))
    arrays = [np.asarray(base(z)) for z in leaves(theirs)]
    assert all(np.any(array) for array in arrays)
    for z, array in zip(leaves(mine), arrays, strict=True):
        assert type(z) is torch.Tensor
        assert z.dtype is torch.float32
        np.testing.assert_allclose(base(z), array, rtol=1e-6)


def test_the_gradient_by_plain_tensors_is_that_by_arrays():
    x = np.array(POINT)
    mine = lantern.grad(cube)(torch.tensor(x))
    np.testing.assert_allclose(mine.numpy(), 3 * x**2 * [1, 2, 3])
    assert mine.dtype is torch.float64


def test_a_function_gets_tensors_for_tensors():
    seen = []

    def f(x, y):
        seen.append((type(x), type(y)))
        return (x.unsqueeze(0) @ y.view(-1, 1)).squeeze()

    x, y = torch.tensor([1.0, 2.0]), torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    found = lantern.grad(f, argnums=(0, 1))(x, y)
    assert [g.tolist() for g in found] == [[3.0, 4.0], [1.0, 2.0]]
    assert seen == [(torch.Tensor, torch.Tensor)]


def test_parameters_of_a_module_are_an_argument():
    model = torch.nn.Linear(2, 1)
    x = torch.tensor([[3.0, 4.0]])

    def loss(parameters):
        return torch.func.functional_call(model, parameters, x).sum()

    found = lantern.grad(loss)(dict(model.named_parameters()))
    assert found["weight"].tolist() == [[3.0, 4.0]]
    assert found["bias"].tolist() == [1.0]


def test_backward_goes_through_a_gradient():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    lantern.grad(lambda x: (x**3).sum())(w).sum().backward()
    assert w.grad.tolist() == [6.0, 12.0]


def test_backward_goes_through_a_gradient_by_a_number():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    found = lantern.grad(lambda s: (w * w * s).sum())(3.0)
    assert isinstance(found, torch.Tensor)
    found.backward()
    assert w.grad.tolist() == [2.0, 4.0]


def test_under_no_grad_a_gradient_is_plain():
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        found = lantern.grad(lambda x: (x**3).sum())(w)
    assert not found.requires_grad
    assert found.tolist() == [3.0, 12.0]


def test_backward_inside_a_transform_says_what_to_do():
    def f(s):
        w = torch.ones(2, requires_grad=True)
        (w * w * s).sum().backward()
        return w.grad.sum()

    with pytest.raises(LanternError, match=r"belongs to grad.*torch\.func\.grad"):
        lantern.grad(f)(2.0)


# --- a tracked number, written or used to fill ---------------------------------------


def write(statement):
    """A function of a number that writes it to a tensor, and adds the tensor up."""

    def program(s):
        names = {
            "q": torch.tensor([1.0, -1.0, 0.0]),
            "i": torch.tensor([0, 2]),
            "s": s,
            "torch": torch,
            "F": F,
            "nan": torch.tensor([float("nan"), float("inf"), -float("inf")]),
        }
        exec(statement, names)
        return (names["q"] * WEIGHTS).sum()

    return program


# A statement, and the derivative of q[0] + 2 q[1] + 3 q[2] by s at 2.
WRITES = {
    "q[0] = s": 1,
    "q[q < 0] = s": 2,
    "q[1:] = s": 5,
    "q[:] = s * s": 24,
    "q[i] = s": 4,
    "q.view(3)[1] = s": 2,
    "q[1:][0] = s": 2,
    "q += s": 6,
    "q *= s": -1,
    "q -= s": -6,
    "q /= s": 0.25,
    "q **= s": None,
    "q.fill_(s)": 6,
    "q.add_(s)": 6,
    "q.add_(q, alpha=s)": -1,
    "q.sub_(q, alpha=s)": 1,
    "q.mul_(s)": -1,
    "q.copy_(torch.as_tensor(s))": 6,
    "q.index_fill_(0, i, s)": 4,
    "q.masked_fill_(q < 0, s)": 2,
    "q.scatter_(0, i, s)": 4,
    "q.index_put_((i,), torch.as_tensor(s))": 4,
    "q.lerp_(q * 2, s)": -1,
    "q.clamp_(min=s)": 6,
    "q.addcmul_(q, q, value=s)": 3,
    "q = q.expand(3, 3).clone().fill_diagonal_(s).sum(1)": 6,
    "q.normal_(s, 1.0)": 6,
    "q.uniform_(0.0, s)": None,
    "q = torch.full((3,), s)": 6,
    "q = torch.full((3,), s, dtype=torch.float64)": 6,
    "q = torch.full_like(q, s)": 6,
    "q = torch.full_like(q, fill_value=s)": 6,
    "q = q.new_full((3,), s)": 6,
    "q = torch.fill(q, s)": 6,
    "q = torch.nan_to_num(nan, s, 0.0, 0.0)": 1,
    "q = torch.nan_to_num(nan, 0.0, s, 0.0)": 2,
    "q = torch.nan_to_num(nan, 0.0, 0.0, neginf=s)": 3,
    "q = torch.normal(s, 1.0, (3,))": 6,
    "q = torch.tensor([s, 1.0, s])": 4,
    "q = torch.as_tensor([s, s * s, 0.0])": 9,
    "q = torch.scalar_tensor(s)": 6,
    "q = q.clamp(max=s)": 0,
    "q = q.clamp(min=s)": 6,
    "q = torch.where(q > 0, s, q)": 1,
    "q = torch.where(q > 0, q, s)": 5,
    "q = F.elu(q, alpha=s)": 2 * (np.exp(-1) - 1),
    "q = F.celu(q, alpha=s)": None,
    "q = F.leaky_relu(q, s)": -2,
    "q = F.hardtanh(q * 9, -s, s)": -1,
    "q = F.threshold(q, 0.5, s)": 5,
    "q = F.huber_loss(q, q + 9, delta=s, reduction='none')": 42,
    "q = F.pad(q[:2], (0, 1), value=s)": 3,
    "q = torch.add(q, q, alpha=s)": -1,
    "q.data[0] = s": DetachError,
    "q.data = torch.as_tensor([s, s, s])": DetachError,
    "q.detach().data.fill_(s)": DetachError,
    "q.detach()[0] = s": DetachError,
    "q.detach().fill_(s)": DetachError,
    "q[1:].detach().mul_(s)": DetachError,
    "q.detach()[1:].add_(s)": DetachError,
    "q.detach().detach().copy_(torch.as_tensor(s))": DetachError,
    "d = q.detach(); d += s": DetachError,
    "d = q.detach(); q += s; q = d": DetachError,
    "d = q.detach()[:2]; q += s; q = d": DetachError,
    "d = q[:2].data[1:]; q.fill_(s); q = q * d": DetachError,
    "c, d = q.detach(), q.detach(); q = None; c[0] = s; q = d": DetachError,
    "p = torch.nn.Buffer(q); p.fill_(s)": DetachError,
    "p = torch.zeros(3); p.data = q; p.fill_(s)": DetachError,
    "q = q.detach(); q[0] = s": 1,
    "q = q.detach().clone(); q += s": 6,
    "d = q.detach().clone(); q += s; q = q * d": -1,
    "q = torch.nn.Buffer(q.clone()); q += s": 6,
    "d = torch.zeros(3); p = d.detach(); p.data = q; d += s; q = q + d": 6,
    "q = F.dropout(q, s / 4)": DetachError,
    "q = torch.from_numpy(torch.as_tensor(s).numpy())": DetachError,
    "q = torch.Tensor([s, s, s])": DetachError,
    "q.bernoulli_(s / 4)": DetachError,
    "q = torch.linspace(0.0, s, 3)": DetachError,
    "q = torch.arange(0.0, torch.as_tensor(s), 0.7)": DetachError,
}
# A tensor is no number to these, in PyTorch either.
REFUSE_TENSORS = {"q.scatter_(0, i, s)"}
FORMS = {
    "number": lambda f: lantern.grad(f)(2.0),
    "of an array": lambda f: lantern.grad(lambda a: f(a[0]))(np.array([2.0, 1.0]))[0],
    "of a tensor": lambda f: lantern.grad(lambda a: f(a[0]))(torch.tensor([2.0]))[0],
    "jvp": lambda f: lantern.jvp(f, (2.0,), (1.0,))[1],
    "vjp": lambda f: lantern.vjp(f, 2.0)[1](1.0)[0],
    "torch.func": lambda f: torch.func.grad(f)(torch.tensor(2.0)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("statement", WRITES)
def test_what_is_written_keeps_its_derivative(statement, form):
    expected, program = WRITES[statement], write(statement)
    torch.manual_seed(0)
    if form in ("of a tensor", "torch.func") and statement in REFUSE_TENSORS:
        expected = DetachError
    if expected is None or expected is DetachError:
        try:
            found = float(FORMS[form](program))
        except LanternError:
            return  # it says so
        assert expected is None
        assert np.isnan(found) or found != 0
        return
    assert float(FORMS[form](program)) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_a_value_that_would_be_lost_names_the_remedy():
    with pytest.raises(DetachError, match=r"torch\.as_tensor\(x\).*stop_gradient"):
        lantern.grad(write("q = torch.linspace(0.0, s, 3)"))(2.0)
    for statement in ("q.data[0] = s", "q.detach()[0] = s", "d = q.data; q[0] = s"):
        with pytest.raises(DetachError, match=r"clone\(\).*stop_gradient"):
            lantern.grad(write(statement))(2.0)


def test_an_array_of_numpy_keeps_what_it_had():
    array = np.zeros(2)

    def f(s):
        q = torch.from_numpy(array)
        q[0] = s
        return q.sum()

    assert lantern.value_and_grad(f)(2.0) == (2.0, 1.0)
    np.testing.assert_array_equal(array, [0.0, 0.0])


def test_a_constant_is_written_where_others_see_it():
    def f(s):
        q = torch.zeros(2)
        q.detach()[0] = lantern.stop_gradient(s)
        return (q * s).sum()

    assert lantern.value_and_grad(f)(2.0) == (4.0, 2.0)


def test_running_moments_are_constants():
    layer = torch.nn.BatchNorm1d(2)
    x = torch.tensor([[1.0, 2.0], [3.0, 5.0]])
    found = lantern.grad(lambda s: (layer(x * s) ** 3 * x).sum())(torch.tensor(2.0))
    assert torch.isfinite(found)
    assert not layer.running_mean.requires_grad
    np.testing.assert_allclose(layer.running_mean, [0.4, 0.7], rtol=1e-6)


def new_weights(s):
    model = torch.nn.Linear(2, 1)
    state = {"weight": torch.full((1, 2), s), "bias": torch.zeros(1)}
    model.load_state_dict(state)
    return model(torch.ones(1, 2)).sum()


def buffer(s):
    model = torch.nn.Module()
    model.register_buffer("b", torch.zeros(2))
    model.b.fill_(s)
    return model.b.sum()


def density(s):
    normal = torch.distributions.Normal(torch.zeros(2), s)
    return normal.log_prob(torch.ones(2)).sum()


def moments(s):
    return torch.nn.BatchNorm1d(2, momentum=s)(torch.eye(2)).sum()


def step(s):
    w = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([w], lr=s)
    w.sum().backward()
    optimizer.step()
    return w.detach().sum()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (new_weights, 2.0),
        (buffer, 2.0),
        (density, -0.75),
        (moments, DetachError),
        (step, DetachError),
    ],
)
def test_what_modules_and_optimisers_keep_loses_nothing(program, expected, form):
    if program is new_weights and form == "torch.func":
        expected = 0.0  # it is loaded in ``no_grad``, which stops that transform
    if expected is DetachError:
        with pytest.raises(DetachError, match="stop_gradient"):
            FORMS[form](program)
    else:
        assert float(FORMS[form](program)) == pytest.approx(expected)


# --- every public name, with a tracked number wherever a number may stand -------------

ELEMENT = {
    "t": lambda: torch.tensor([0.52, 0.21, 0.73]),
    "m": lambda: torch.tensor([True, False, True]),
    "i": lambda: torch.tensor([0, 2]),
    "0": lambda: 0,
    "3": lambda: (3,),
    "x": lambda: 0.5,
}
CALLS = "|x|t|t t|0 i x|0 i t|m x|3 x|x x".split("|")
NOT_OPTIONS = {"dim", "dtype", "device", "out", "generator", "n", "dims", "axis"}
OPTIONS = "alpha value min max fill_value nan posinf neginf eps p".split()


def public():
    """Functions and methods, each with whether a tensor comes first."""
    for name in sorted(vars(torch)):
        f = getattr(torch, name)
        if inspect.isfunction(f) and not name.startswith("_"):
            yield f"torch.{name}", f, (True, False)
    for name in sorted(dir(torch.Tensor)):
        f = inspect.getattr_static(torch.Tensor, name)
        if inspect.isfunction(f) and not name.startswith("_"):
            yield f"Tensor.{name}", f, (True,)
    for name in F.__all__ if hasattr(F, "__all__") else dir(F):
        f = getattr(F, name)
        if inspect.isfunction(f) and not name.startswith("_"):
            yield f"F.{name}", f, (True,)


# What sets a state of the whole program, or waits for something.
STATES = "seed set_ save load compile share use_ backward hook apply map vmap".split()
NAMES = {
    name: (f, selves)
    for name, f, selves in public()
    if not any(word in name for word in STATES)
}


# What is no derivative: ``hard=True`` has another way back; a mask is no mean.
OTHER_SLOPES = {"F.gumbel_softmax", "torch.normal"}


def options(f):
    """The names of options that may be numbers."""
    parameters = inspect.signature(f).parameters.values()
    found = [
        p.name
        for p in parameters
        if p.default is None
        or (isinstance(p.default, int | float) and type(p.default) is not bool)
    ]
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        found += [name for name in OPTIONS if name not in found]
    return [name for name in found if name not in NOT_OPTIONS]


def called(f, with_self, words, place):
    """A function of one number, which stands at a place of a call; sums the result."""

    def program(s):
        torch.manual_seed(0)
        args = [ELEMENT[word]() for word in words]
        named = {}
        if isinstance(place, int):
            args[place] = s
        else:
            named[place] = s
        q = torch.tensor(POINT)
        z = f(*([q] if with_self else []), *args, **named)
        total, found = 0.0, leaves(z)
        for part in found:
            if isinstance(part, Value) and np.isfinite(base(part)).all():
                total = (
                    total
                    + (
                        part * torch.arange(1.0, 1.0 + part.numel()).view(part.shape)
                    ).sum()
                    if part.dtype.is_floating_point
                    else total
                )
            else:
                raise TypeError
        return total

    return program


def cases(name):
    """The calls that a plain number can be part of, with the slope by it."""
    f, selves = NAMES[name]
    names, s, h = options(f), 0.37, 1e-6
    for with_self in selves:
        for words in map(str.split, CALLS):
            numbers = [i for i, word in enumerate(words) if word == "x"]
            for place in numbers or names:
                program = called(f, with_self, words, place)
                try:
                    above, below = float(program(s + h)), float(program(s - h))
                except Exception:  # no call of this function
                    continue
                slope = (above - below) / (2 * h)
                if abs(slope) < 1e5:  # else a step
                    yield program, s, slope


@pytest.fixture
def doubles():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(NAMES.keys() - OTHER_SLOPES))
def test_no_name_loses_a_number(name, doubles):
    for program, s, slope in cases(name):
        for form in (
            lambda f, s: lantern.grad(f)(s),
            lambda f, s: lantern.grad(lambda a: f(a[0]))(np.array([s, 1.0]))[0],
            lambda f, s: lantern.grad(f)(torch.tensor(s)),
        ):
            try:
                found = float(form(program, s))
            except (LanternError, TypeError, ValueError, AttributeError):
                continue  # it says so
            assert found == pytest.approx(slope, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("name", ["multiply", "power", "maximum", "hypot"])
def test_a_number_and_a_tensor_make_a_tensor(name):
    kinds, function = set(), getattr(lantern, name)

    def f(s):
        found = function(s, WEIGHTS), function(WEIGHTS, s)
        kinds.update(map(type, found))
        return sum(z.sum() for z in found)

    lantern.grad(f)(2.0)
    assert kinds == {torch.Tensor}


def test_one_pullback_of_tensors_runs_twice_at_once():
    again = []

    def f(x):
        def hooked(z_bar):
            if not again:
                again.append(None)
                again.append(pullback(torch.tensor(10.0)))
            return z_bar

        return (lantern.hook(hooked, x) ** 2).sum()

    _, pullback = lantern.vjp(f, torch.tensor([1.0, 2.0]))
    (outer,) = pullback(torch.tensor(1.0))
    assert outer.tolist() == [2.0, 4.0]
    assert again[1][0].tolist() == [20.0, 40.0]
