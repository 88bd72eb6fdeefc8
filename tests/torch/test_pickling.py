"""What PyTorch's users can pickle and copy, they can here."""

import copy
import importlib
import pickle
import types

import pytest

import lantern.torch as ours

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")
PARTS = (
    "torch nn nn.functional nn.init nn.utils nn.utils.rnn nn.parameter linalg fft "
    "special optim optim.lr_scheduler autograd autograd.functional func distributions "
    "distributions.constraints utils utils.data utils.checkpoint signal.windows random "
    "sparse testing amp cuda"
).split()


def again(x):
    return pickle.loads(pickle.dumps(x))


def is_itself(x):
    """Whether what is unpickled is the same object."""
    try:
        return again(x) is x
    except Exception:  # PyTorch's lambdas, among others
        return False


@pytest.mark.parametrize("part", PARTS)
def test_public_names_are_found_again(part):
    path = "" if part == "torch" else f".{part}"
    mine, other = (importlib.import_module(f"{t}{path}") for t in NAMES)
    lost = []
    for name, thing in vars(other).items():
        if name[0] == "_" or isinstance(thing, types.ModuleType) or not callable(thing):
            continue
        found = getattr(mine, name, None)
        if found is not None and is_itself(thing) and not is_itself(found):
            lost.append(name)
    assert lost == []


NAMES = ("lantern.torch", "torch")


def test_methods_are_found_again():
    methods = {n: f for n, f in vars(ours.Tensor).items() if callable(f)}
    methods.pop("__hash__")
    for name, f in methods.items():
        methods[name] = getattr(f, "__func__", f)  # of those that are static
    lost = [n for n, f in methods.items() if not is_itself(f)]
    assert lost == []


VALUES = {
    "dtype": lambda t: t.float32,
    "device": lambda t: t.device("cuda:1"),
    "size": lambda t: t.Size([1, 2]),
    "shape of a tensor": lambda t: t.ones(2, 3).shape,
    "generator": lambda t: t.Generator().manual_seed(3).initial_seed(),
    "named results": lambda t: t.tensor([[1.0, 2.0]]).max(1),
    "named results of a row": lambda t: t.return_types.sort([t.ones(1), t.ones(1)]),
    "named results of linalg": lambda t: t.linalg.slogdet(t.eye(2)),
    "a typed class": lambda t: t.FloatTensor,
    "a parameter with more to it": lambda t: with_tag(t.nn.Parameter(t.ones(2))),
    "a tensor with more to it": lambda t: with_tag(t.ones(2)),
    "a transposed tensor": lambda t: t.ones(2, 3).t(),
    "a layer with a function": lambda t: (
        t.nn.TransformerEncoderLayer(
            4, 2, 8, activation=t.nn.functional.gelu
        ).activation.__name__
    ),
    "an optimiser": lambda t: str(t.optim.Adam([t.nn.Parameter(t.ones(2))])),
}


def with_tag(x):
    x.tag = [3]
    return x


@pytest.mark.parametrize("name", VALUES)
def test_values_come_back(name):
    for torch in (ours, theirs):
        x = VALUES[name](torch)
        for y in (again(x), copy.copy(x), copy.deepcopy(x)):
            assert type(y) is type(x)
            assert repr(y) == repr(x)
            if hasattr(x, "tag") and hasattr(y, "tag"):
                assert y.tag == [3]
    assert repr(VALUES[name](ours)) == repr(VALUES[name](theirs))


class TestMemory:
    """Tensors that share memory share it in a copy, too."""

    @pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])
    def test_is_shared_in_a_deep_copy(self, torch):
        x = torch.zeros(4)
        y, part, row = copy.deepcopy([x, x[1:3], x.expand(2, 4)])
        y[1] = 5
        assert part.tolist() == [5, 0]
        assert row.tolist() == [[0, 5, 0, 0]] * 2
        assert x.tolist() == [0] * 4
        assert (row.stride(), part.stride()) == ((0, 1), (1,))

    @pytest.mark.parametrize("torch", [ours, theirs], ids=["ours", "pytorch"])
    def test_is_shared_with_a_shallow_copy(self, torch):
        p = with_tag(torch.nn.Parameter(torch.zeros(2)))
        q = copy.copy(p)
        q.data[0] = 5
        assert p.tolist() == [5, 0]
        assert q.tag is p.tag
        assert q.is_leaf
        assert q.requires_grad
