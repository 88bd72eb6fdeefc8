"""Classes that say what functions do with them, in a program, beside PyTorch."""

import builtins
import inspect
import json
import operator
import subprocess
import sys

import pytest

import lantern.torch as ours
from lantern.errors import MissingRuleError
from lantern.torch.tensor.subclasses import disabled

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")

# One program for all: what a class is asked depends on when it is made.
PROGRAM = '''
import copy, json, pickle
from torch import exp  # before anyone asks
import torch
import torch.nn.functional as F
from torch import nn

HANDLED, log = {torch.mean: lambda input: input.value}, []

class Scalar:  # no tensor
    def __init__(self, value):
        self.value = value
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func not in HANDLED or not all(issubclass(t, Scalar) for t in types):
            return NotImplemented
        return HANDLED[func](*args, **(kwargs or {}))

HANDLED[torch.stack] = lambda xs: sum(x.value for x in xs)
HANDLED[torch.add] = lambda x, y: 10 + getattr(x, "value", 0)
HANDLED[F.relu] = lambda input, inplace=False: max(input.value, 0)
HANDLED[exp] = lambda input: "exp"
HANDLED[torch.linalg.det] = lambda A: A.value ** 2

class Same(torch.Tensor):
    pass

class Further(Same):
    def twice(self):
        return self * 2

class Logged(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        log.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})

class Marked(torch.Tensor):
    def __new__(cls, data, mark=None):
        x = torch.as_tensor(data).as_subclass(cls)
        x.mark = mark
        return x

class Plain(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl

class Leaf(torch.Tensor):
    @staticmethod
    def __new__(cls, x):
        return torch.Tensor._make_subclass(cls, x, True)

class Double(torch.Tensor):
    def __add__(self, other):
        return super().__add__(other) * 2
    def __mul__(self, other):
        return -super().__mul__(other)
    def sum(self):
        return -super().sum()

KEPT = {"relu": F.relu, "add": torch.Tensor.add}  # before anyone asks
s, scalars = Scalar(3), [Scalar(1), Scalar(2)]
def same(*values): return torch.tensor(values).as_subclass(Same)
def further(*values): return torch.tensor(values).as_subclass(Further)
def logged(f):
    log.clear()
    f(torch.tensor([1.0, 2.0]).as_subclass(Logged))
    return list(log)
def disabled(f):
    with torch._C.DisableTorchFunctionSubclass():
        return f()
def written():
    base = torch.zeros(3)
    base.as_subclass(Same)[0] = 1
    return base
def tracked(write):
    w = torch.ones(3, requires_grad=True)
    h = w * 2
    x = h.as_subclass(Same)
    write(h, x)
    (h.sum() + (x * x).sum()).backward()
    return w.grad
def inplace():
    x = same(1.0, 2.0)
    x += 1
    x[0] = 5
    return x.mul_(2)
def leaf():
    x = Leaf(torch.ones(2))
    (x * x).sum().backward()
    return x.grad
def writes():
    x = torch.zeros(2)
    view = x.as_subclass(Double)[0]
    view.add_(1)
    return [x, view]
layer = nn.Linear(2, 1)
nn.init.ones_(layer.weight), nn.init.zeros_(layer.bias)
cases = dict(enumerate("""
torch.mean(s)
torch.mean(input=s)
torch.stack(scalars)
torch.add(torch.ones(1), s)
torch.add(s, 1)
F.relu(s)
exp(s)
torch.linalg.det(s)
torch.overrides.has_torch_function([s])
disabled(lambda: torch.overrides.has_torch_function([same(1.0)]))
same(1.0) + 1
1 - same(1.0)
torch.ones(1) * same(2.0)
same(2.0) + further(1.0)
further(2.0) + same(1.0)
further(2.0).twice()
same(3.0, 1.0).sort()
same(3.0, 1.0).max(0)
same(3.0, 1.0)[0]
same(3.0, 1.0).view(2, 1).T
same(3.0, 1.0).split(1)
same(3.0, 1.0).to(torch.float64)
same(3.0, 1.0) == 3
torch.exp(same(0.0))
exp(same(0.0))
torch.cat([same(0.0), torch.ones(1)])
torch.where(same(0.0, 1.0) > 0, 1.0, 2.0)
F.softmax(same(0.0, 0.0), 0)
torch.einsum("i,i->", same(1.0, 2.0), same(1.0, 2.0))
torch.zeros_like(same(1.0))
torch.linalg.norm(same(3.0, 4.0))
layer(same(1.0, 2.0))
nn.Sequential(layer, nn.ReLU())(same(1.0, 2.0))
F.mse_loss(same(1.0), torch.zeros(1))
same(3.0, 1.0).tolist()
float(same(3.0))
len(same(3.0))
same(3.0, 1.0).shape
same(3.0, 1.0).size()
same(3.0, 1.0).numpy()
repr(same(3.0, 1.0))
repr(same(3.0, 1.0).requires_grad_())
isinstance(same(1.0), torch.Tensor)
disabled(lambda: same(1.0) + 1)
disabled(lambda: torch.exp(same(0.0)))
written()
tracked(lambda h, x: x.mul_(3))
tracked(lambda h, x: h.mul_(3))
tracked(lambda h, x: None)
inplace()
leaf()
Leaf(torch.ones(2)) + 1
Leaf(torch.ones(2)).is_leaf
Marked([1.0], "m").mark
pickle.loads(pickle.dumps(Marked([1.0], "m")))
pickle.loads(pickle.dumps(Marked([1.0], "m"))).mark
pickle.loads(pickle.dumps(torch.exp)) is torch.exp
copy.deepcopy(torch.exp) is torch.exp
torch.ones(1).as_subclass(Plain) + 1
nn.Parameter(torch.ones(1)) + 1
torch.nn.functional.relu.__name__
Double([1.0]) + 1
torch.add(Double([1.0]), 1)
torch.lerp(Double([1.0]), Double([2.0]), Double([0.5]))
torch.mean(Double([1.0, 3.0]))
torch.nn.functional.mse_loss(Double([1.0, 3.0]), torch.zeros(2))
Double([1.0, 3.0]).sum()
Double([1.0, 3.0]).add_(Double([1.0]))
writes()
KEPT["relu"](same(1.0))
KEPT["add"](torch.ones(1), same(1.0))
torch.ones(1).add(same(1.0))
torch.ones(1).add_(same(1.0))
torch.ones(1) == same(1.0)
torch.ones(1) - same(1.0)
torch.ones(1) ** same(1.0)
torch.ones(1) == s
torch.ones(1) == object()
torch.ones(1) != object()
2 << torch.tensor([1, 2])
8 >> torch.tensor([1, 2])
torch.ones(1) + s
torch.Tensor.clone is torch.clone
torch.Tensor.exp == torch.exp
torch.less.__name__
torch.Tensor.absolute.__name__
torch.clone(same(1.0))
same(1.0).as_subclass(torch.Tensor)
same(1.0).requires_grad_().grad
same(1.0).new_zeros(2)
logged(lambda x: x + 1)
logged(lambda x: 1 - x)
logged(lambda x: torch.ones(2) + x)
logged(lambda x: torch.ones(2) - x)
logged(lambda x: torch.ones(2).sub(x))
logged(lambda x: x ** 2)
logged(lambda x: x == 2)
logged(lambda x: x & 2 if x.dtype == torch.int else None)
logged(lambda x: x.shape)
logged(lambda x: len(x))
logged(lambda x: x.requires_grad)
logged(lambda x: x.tolist())
logged(lambda x: x.clone())
logged(lambda x: torch.clone(x))
logged(lambda x: float(x[0]))
logged(lambda x: x.data)
copy.copy(same(1.0))
logged(lambda x: x.__setitem__(0, 1))
logged(lambda x: 2 * x)
logged(lambda x: x < 1)
logged(lambda x: x.sum())
logged(lambda x: torch.sum(x))
logged(lambda x: x[0])
logged(lambda x: x.add_(1))
logged(lambda x: -x)
logged(lambda x: F.softmax(x, 0))
logged(lambda x: torch.stack([x, x]))
logged(lambda x: layer(x))
logged(lambda x: x.T)
logged(lambda x: torch.add(torch.ones(2), x))
""".strip().splitlines()))

def shown(x):
    if isinstance(x, torch.Tensor):
        return [type(x).__name__, x.detach().double().tolist()]
    if isinstance(x, (list, tuple)):
        return [type(x).__name__, *map(shown, x)]
    return x if isinstance(x, (bool, int, float, str)) else type(x).__name__

def tried(text):
    try:
        return shown(eval(text))
    except TypeError:
        return "TypeError"

for text in cases.values():
    print(json.dumps([text, tried(text)]))
'''
CASES = [
    line
    for line in PROGRAM.partition('enumerate("""\n')[2]
    .partition('\n"""')[0]
    .splitlines()
    if line
]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What each expression is under both."""
    path = tmp_path_factory.mktemp("asking") / "program.py"
    path.write_text(PROGRAM)

    def of(*options):
        done = subprocess.run(
            [sys.executable, *options, str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return dict(map(json.loads, done.stdout.splitlines()))

    return of("-m", "lantern.torch"), of()


@pytest.mark.parametrize("text", CASES)
def test_what_is_asked_and_what_comes_of_it_is_as_in_pytorch(results, text):
    mine, others = results
    assert mine[text] == others[text]


class Refusing:
    """No tensor, and of no use."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


@pytest.fixture
def armed():
    """Functions that ask, for one test."""
    ours.asking.arm()
    yield
    ours.asking.disarm()


@pytest.fixture
def own():
    """A class of tensors, whose objects let functions ask for one test."""
    yield type("Own", (ours.Tensor,), {})
    ours.asking.disarm()


def test_functions_that_nobody_knows_what_to_do_with_say_so(armed):
    with pytest.raises(TypeError, match=r"'torch\.exp'.*\['Refusing'\]"):
        ours.exp(Refusing())
    ours.asking.disarm()
    with pytest.raises(TypeError, match="must be Tensor, not"):
        ours.exp(Refusing())


def test_functions_stay_what_they_are(own):
    names = [(home, name, f) for home, name, f in ours.asking.functions()]
    before = [(f.__code__, f.__kwdefaults__, dict(f.__dict__)) for _, _, f in names]
    shown = [inspect.signature(f) for _, _, f in names]
    exp, x = ours.exp, ours.ones(1).as_subclass(own)
    assert type(exp(x)) is own
    assert ours.exp is exp
    assert [inspect.signature(f) for _, _, f in names] == shown
    ours.asking.disarm()
    assert [(f.__code__, f.__kwdefaults__, f.__dict__) for _, _, f in names] == before
    assert type(exp(x)) is ours.Tensor


def test_classes_alone_change_nothing(own):
    code = ours.exp.__code__
    ours.nn.Parameter(ours.ones(1))
    assert ours.exp.__code__ is code
    own(2)
    assert ours.exp.__code__ is not code


@pytest.mark.parametrize("function", [{}, {"__torch_function__": disabled}])
def test_classes_that_see_inner_operations_are_refused(function):
    def see(cls, func, types, args=(), kwargs=None):
        return func(*args)

    own = {"__torch_dispatch__": classmethod(see), **function}
    kind = type("Inner", (ours.Tensor,), own)
    with pytest.raises(MissingRuleError, match="Define __torch_function__"):
        ours.ones(1).as_subclass(kind)
    with pytest.raises(MissingRuleError, match="whose values are elsewhere"):
        ours.Tensor._make_wrapper_subclass(kind, (1,))
    with pytest.raises(TypeError, match="must be a type derived from Tensor"):
        ours.ones(1).as_subclass(int)


def test_what_does_not_know_a_tensor_may_know_its_class(own):
    class Other:
        def __radd__(self, x):
            return type(x).__name__

    assert ours.ones(1).as_subclass(own) + Other() == "Own"


def test_no_frame_stands_between_a_class_and_who_makes_it():
    build = builtins.__build_class__
    ours.asking.watch()
    try:
        callers = []

        class Meta(type):
            def __new__(cls, *args):
                callers.append(sys._getframe(1).f_code.co_name)
                return super().__new__(cls, *args)

        def make():
            class Made(metaclass=Meta):
                pass

        make()
        assert callers == ["make"]
    finally:
        builtins.__build_class__ = build


def test_the_first_class_that_is_no_tensor_is_noticed():
    build = builtins.__build_class__
    code = ours.exp.__code__
    ours.asking.watch()
    try:

        def of_tensors():
            class Own(ours.Tensor):
                @classmethod
                def __torch_function__(cls, func, types, args=(), kwargs=None):
                    return super().__torch_function__(func, types, args, kwargs)

        def of_others():
            class Named:
                @classmethod
                def __torch_function__(cls, func, types, args=(), kwargs=None):
                    return func.__name__

            return Named()

        of_tensors()
        assert ours.exp.__code__ is code
        assert ours.exp(of_others()) == "exp"
        assert builtins.__build_class__ is build
    finally:
        builtins.__build_class__ = build
        ours.asking.disarm()


def test_examples_of_a_class_with_a_join_of_its_own_may_use_that_of_tensors(own):
    from lantern.torch.utils.data._utils.collate import (
        collate_tensor_fn,
        default_collate_fn_map,
    )

    def joined(batch, *, collate_fn_map=None):
        return collate_tensor_fn(batch), "joined"

    default_collate_fn_map[own] = joined
    try:
        z, word = ours.utils.data.default_collate([own(2), own(2)])
    finally:
        del default_collate_fn_map[own]
    assert (type(z), z.shape, word) == (own, (2, 2), "joined")
    assert type(ours.utils.data.default_collate([own(2)])) is own


def test_parameters_without_a_shape_stay_what_they_are(armed):
    layer = ours.nn.LazyLinear(2)
    with pytest.raises(RuntimeError, match="Call the model once"):
        layer.weight.sum()
    assert ours.nn.parameter.is_lazy(layer.weight)
    layer(ours.ones(1, 3)).sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1, 1]] * 2


def noting(torch, log, name="", change=lambda func, z: z):
    """A block that notes what is called in it, and may change what comes of it."""

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(name + func.__name__)
            return change(func, func(*args, **(kwargs or {})))

    return Mode()


@pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])
def test_a_block_sees_functions_methods_and_operators(torch):
    log, x = [], torch.ones(2, requires_grad=True)
    with noting(torch, log) as mode:
        y = torch.add(x, 1) * 2
        y[0], y.sum(), torch.nn.functional.relu(y), torch.zeros(2)
    torch.exp(x)
    y.sum().backward()
    assert isinstance(mode, torch.overrides.TorchFunctionMode)
    assert log == ["add", "mul", "__getitem__", "sum", "relu", "zeros"]
    assert x.grad.tolist() == [2.0, 2.0]


@pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])
def test_a_block_sees_what_makes_tensors_of_anything(torch):
    log = []
    with noting(torch, log):
        made = torch.tensor([1.0]), torch.as_tensor([2.0]), torch.asarray([3.0])
    with noting(torch, [], change=lambda func, z: z + 1):
        changed = torch.tensor([1.0])
    assert log == ["tensor", "as_tensor", "asarray"]
    assert [x.item() for x in (*made, changed, torch.tensor([1.0]))] == [1, 2, 3, 2, 1]
    assert torch.tensor not in torch.overrides.get_overridable_functions()[torch]


@pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])
def test_blocks_in_blocks_see_what_the_inner_ones_call(torch):
    log = []
    x, exp = torch.zeros(1), torch.exp
    outer = noting(torch, log, "outer ", lambda f, z: z + 1 if f is exp else z)
    inner = noting(torch, log, "inner ", lambda f, z: torch.mul(z, 10))
    with outer, inner:
        z = torch.exp(x)
        n = torch._C._len_torch_function_stack()
    assert n == 2
    assert torch._C._len_torch_function_stack() == 0
    assert z.item() == 20
    assert log == ["inner exp", "outer exp", "outer mul"]


@pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])
def test_a_block_is_left_by_an_error_and_entered_again(torch):
    log = []
    mode = noting(torch, log)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), mode:
            torch.exp(torch.ones(1)) / (1 // 0)
    torch.exp(torch.ones(1))
    assert log.count("exp") == 2
    assert torch._C._len_torch_function_stack() == 0


@pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])
def test_a_block_comes_before_classes(torch):
    log = []

    class Own(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            log.append("class " + func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.ones(1).as_subclass(Own)
    log.clear()
    with noting(torch, log, "block "):
        z = torch.exp(x)
    assert type(z) is Own
    assert log == ["block exp", "class exp"]


def test_functions_that_can_be_asked_are_listed():
    for torch in (ours, theirs):
        found = torch.overrides.get_overridable_functions()
        assert torch.exp in found[torch]
        assert torch.nn.functional.relu in found[torch.nn.functional]
        assert torch.Tensor.add in found[torch.Tensor]
        assert torch.overrides.is_tensor_method_or_property(torch.Tensor.add)
        assert not torch.overrides.is_tensor_method_or_property(torch.add)
        names = map(torch.overrides.resolve_name, (torch.exp, torch.Tensor.add))
        assert list(names) == ["torch.exp", "torch.Tensor.add"]


@pytest.mark.parametrize("base", ["overrides.TorchFunctionMode", "fx.Proxy"])
def test_classes_that_are_noted_where_they_are_used_cost_nothing_before(base):
    build, code = builtins.__build_class__, ours.exp.__code__
    ours.asking.watch()
    try:

        class Own(operator.attrgetter(base)(ours)):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return func(*args, **(kwargs or {}))

        assert ours.exp.__code__ is code
        assert builtins.__build_class__ is not build
    finally:
        builtins.__build_class__ = build
        ours.asking.disarm()
