"""How tensors print, against PyTorch."""

import copy
import math

import pytest

import lantern.torch as ours
from tests.torch.compared import theirs

SOURCES = """
tensor([1., 2.])
tensor([1., 2.], requires_grad=True)
tensor([1, 2, 300])
tensor([[1, 2], [3, 4]])
tensor([[1.5, -2], [3, 4]])
tensor(3)
tensor(3.25)
tensor(-0.5, dtype=float64)
tensor([True, False])
tensor([])
zeros(2, 0)
zeros(2, 3, dtype=int32)
tensor([1e-5, 1.0])
tensor([1e10, 1.0])
tensor([1e9])
tensor([0.00001])
tensor([1234.5, 0.5])
tensor([12345.5, 0.5])
tensor([nan, 1.0, inf])
tensor([nan, 1.5, -inf])
arange(30)
arange(30.)
arange(2000)
arange(2000.).view(20, 100)
arange(24).view(2, 3, 4)
arange(24.).view(2, 3, 4) / 7
arange(4000).view(10, 20, 20)
linspace(0, 1, 40)
ones(2, requires_grad=True) * 2
ones(2, requires_grad=True) + 2
ones(2, requires_grad=True).sum()
ones(2, 2, requires_grad=True).exp()
ones(2, 2, requires_grad=True).mean()
ones(2, 2, requires_grad=True).view(4)
ones(30, requires_grad=True).view(30) - 1
tensor([1 + 2j, 3.5 - 1j])
tensor([1., 2.]).shape
tensor([[1., 2.]]).size()
float32
int64
bool
device('cpu')
device('cuda:1')
float16.is_floating_point
tensor([[1., 2.]]).max(1)
tensor([[1., 2.]]).topk(1)
linalg.eigh(tensor([[2., 0.], [0., 3.]]))
linalg.inv_ex(tensor([[2., 0.], [0., 4.]]))
linalg.slogdet(tensor([[2., 0.], [0., 3.]]))
histogram(tensor([1., 2.]), 2)
""".split("\n")


class Names(dict):
    """What a module has, for ``eval``."""

    def __init__(self, module):
        self.module = module

    def __missing__(self, name):
        return getattr(self.module, name)


@pytest.mark.parametrize("source", [s for s in SOURCES if s])
def test_it_prints_the_same(source):
    names = {"nan": math.nan, "inf": math.inf}
    mine, other = (repr(eval(source, names, Names(t))) for t in (ours, theirs))
    assert mine == other


def test_a_row_of_results_can_be_copied_and_mapped():
    row = ours.tensor([[1.0, 3.0, 2.0]]).sort()
    for other in (copy.copy(row), copy.deepcopy(row)):
        assert type(other) is type(row)
        assert other.values.tolist() == [[1.0, 2.0, 3.0]]
    found = ours.vmap(lambda x: x.max(0))(ours.tensor([[1.0, 3.0], [4.0, 2.0]]))
    assert found.indices.tolist() == [1, 0]


def test_a_missing_name_is_answered_with_the_nearest():
    with pytest.raises(AttributeError, match="Did you mean: 'softmax'"):
        _ = ours.sofmax
    # Python itself answers for tensors, whose class has no ``__getattr__``.
    with pytest.raises(AttributeError, match="'Tensor' object has no attribute"):
        _ = ours.ones(2).sofmax
    assert not hasattr(type(ours.ones(2)), "__getattr__")


def test_grad_fn_shows_the_suspended_rule():
    y = ours.ones(2, requires_grad=True) * 2
    assert y.grad_fn.name() == "MulBackward0"
    assert repr(y.grad_fn).startswith("<MulBackward0 object at 0x")
