"""The mistakes that people make: PyTorch's classes of errors, and its words."""

import pytest

import lantern.torch as ours

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")

# m is a linear layer of 3 and 2 features, x a tracked row of 3 ones.
SAME_WORDS = r"""
torch.add(1, 1, alpha=True)
torch.add(torch.tensor([1]), 2, alpha=1.5)
torch.tensor([1]).sub_(2, alpha=1.5)
torch.rsub(torch.ones(2), 1, alpha=1j)
torch.ones(2,3) @ torch.ones(2,3)
torch.ones(2,3) @ torch.ones(4)
torch.ones(2,3,4) @ torch.ones(2,3,4)
torch.mm(torch.ones(2,3), torch.ones(2,3))
torch.bmm(torch.ones(2,3,4), torch.ones(2,3,4))
torch.dot(torch.ones(2), torch.ones(3))
torch.mv(torch.ones(2,3), torch.ones(2))
torch.addmm(torch.ones(2), torch.ones(2,3), torch.ones(4,2))
nn.Linear(3,2)(torch.ones(2,4))
nn.Linear(3,2)(torch.ones(2,3).double())
nn.Linear(3,2)(torch.ones(2,3,dtype=torch.long))
nn.Conv2d(3,4,3)(torch.ones(1,2,5,5))
nn.Conv2d(3,4,3)(torch.ones(3,3))
nn.Conv2d(3,4,3)(torch.ones(1,3,2,2))
nn.Embedding(3,2)(torch.tensor([5]))
nn.BatchNorm1d(3)(torch.ones(1,3))
nn.BatchNorm2d(3)(torch.ones(2,3))
nn.BatchNorm2d(3)(torch.ones(2,4,5,5))
nn.LayerNorm(3)(torch.ones(2,4))
nn.LSTM(3,4)(torch.ones(5,2,4))
nn.GRU(3,4)(torch.ones(5,2,3), torch.ones(1,3,4))
nn.MultiheadAttention(5,2)
nn.MultiheadAttention(4,2)(torch.ones(3,1,5),torch.ones(3,1,5),torch.ones(3,1,5))
nn.Dropout(1.5)
nn.Conv2d(3,4,3,groups=2)
nn.CrossEntropyLoss()(torch.ones(2,3), torch.ones(2))
nn.CrossEntropyLoss()(torch.ones(2,3), torch.ones(3).long())
nn.CrossEntropyLoss()(torch.ones(2,3), torch.tensor([0,3]))
nn.NLLLoss()(torch.ones(2,3), torch.ones(2))
nn.BCELoss()(torch.ones(2,1), torch.ones(2))
nn.BCELoss()(torch.ones(2)*2, torch.ones(2))
nn.BCELoss()(torch.ones(2), torch.ones(2).long())
nn.BCEWithLogitsLoss()(torch.ones(2,1), torch.ones(2))
nn.MSELoss()(torch.ones(2), torch.ones(3))
torch.ones(3, requires_grad=True).backward()
torch.ones(3).sum().backward()
twice()
inplace_leaf()
x.backward(torch.ones(4))
(x*2).requires_grad_(False)
x.numpy()
torch.autograd.grad(x.sum(), torch.ones(3, requires_grad=True))
torch.autograd.grad((x*2), x)
x.grad.zero_()
setattr(x, 'grad', torch.ones(4))
setattr(x, 'grad', 3)
m.load_state_dict({'weight': torch.ones(2,3)})
m.load_state_dict({**m.state_dict(), 'extra': torch.ones(1)})
m.load_state_dict({'weight': torch.ones(3,3), 'bias': torch.ones(2)})
m.load_state_dict([1])
nn.Sequential(m).load_state_dict(m.state_dict())
torch.ones(2,3) + torch.ones(2,4)
torch.ones(2,3).view(5)
torch.ones(2,3).t().view(6)
torch.ones(2,3).reshape(4,-1)
torch.cat([torch.ones(2,3), torch.ones(2,4)])
torch.stack([torch.ones(2), torch.ones(3)])
torch.ones(2,3)[0,0,0]
torch.ones(2,3).sum(2)
torch.ones(2,3).squeeze(3)
torch.ones(2,3).item()
bool(torch.ones(2))
float(torch.ones(2))
int(torch.ones(2))
torch.tensor('a')
torch.tensor(None)
torch.from_numpy([1])
torch.ones(2).add_(torch.ones(2,2))
torch.ones(2).long().add_(1.5)
torch.zeros(2,2).gather(0, torch.tensor([1]))
torch.zeros(2,2).gather(0, torch.tensor([[5]]))
torch.zeros(2,2).scatter(0, torch.tensor([[5]]), 1.0)
torch.ones(2).expand(3)
torch.ones(2,3).expand(4,3)
torch.ones(2,3).permute(0,0)
torch.ones(2,3).permute(0)
torch.ones(2,3).transpose(0,2)
torch.ones(2,3).split([1,2])
torch.ones(2,3).chunk(0)
torch.where(torch.ones(2), torch.ones(2), torch.ones(2))
torch.ones(2,2).topk(3)
torch.ones(0).max()
torch.ones(2,0).max(1)
torch.linalg.inv(torch.zeros(2,3))
torch.optim.SGD([], lr=0.1)
torch.optim.SGD([x*2], lr=0.1)
torch.optim.SGD([3], lr=0.1)
torch.optim.Adam([x], lr=-1)
torch.optim.Adam([x], betas=(1.0,0.9))
torch.optim.lr_scheduler.StepLR(3, 1)
torch.mean(torch.ones(2).long())
torch.softmax(torch.ones(2), 1)
torch.arange(0, 3, -1)
torch.ones(-1)
torch.randint(0, 0, (2,))
torch.multinomial(torch.zeros(3), 1)
torch.exp('a')
torch.exp([1.0])
torch.ones(2) + 'a'
torch.ones(2) + None
torch.ones(2) + [1,2]
nn.Linear(3)
nn.Module()(1)
m.nonexistent
m.register_parameter('a.b', None)
m.register_buffer('weight', torch.ones(1))
setattr(m, 'weight', torch.ones(1))
torch.utils.data.TensorDataset(torch.ones(2), torch.ones(3))
torch.utils.data.DataLoader([1,2], batch_size=0)
torch.utils.data.DataLoader([1,2], shuffle=True, sampler=[0])
torch.utils.data.random_split([1,2,3], [1,1])
nn.utils.rnn.pad_sequence([])
nn.utils.rnn.pack_padded_sequence(torch.ones(3,2,1), [1,3])
torch.load('/nonexistent/file')
[1,2,3][torch.tensor(1.5)]
fn_wrong()
torch.ones(2).register_hook(lambda g: g)
torch.ones(2).retain_grad()
torch.set_grad_enabled('a')
torch.normal(torch.ones(2), torch.ones(3))
torch.flip(torch.ones(2), [1])
torch.ones(2,2).unfold(0,3,1)
F.interpolate(torch.ones(1,1,3,3))
F.one_hot(torch.tensor([3]), 2)
F.dropout(torch.ones(2), 2.0)
F.embedding(torch.tensor([3]), torch.ones(2,2))
F.cosine_similarity(torch.ones(2,3), torch.ones(2,4))
F.layer_norm(torch.ones(2,3),(2,))
F.softmax(torch.ones(2),dim=4)
F.linear(torch.ones(2,3), torch.ones(3,2))
"""
SAME_CLASS = r"""
torch.mm(torch.ones(2,3), torch.ones(3))
torch.matmul(torch.ones(2,3), torch.ones(3,2).double())
torch.ones(2,3) @ torch.ones(3,2,dtype=torch.long)
nn.Embedding(3,2)(torch.tensor([1.0]))
nn.GroupNorm(3,4)
inplace_saved()
torch.ones(2, dtype=torch.long, requires_grad=True)
torch.ones(2).long().requires_grad_()
torch.device('gpu')
torch.ones(2).to('banana')
torch.cat([torch.ones(2,3), torch.ones(2,3,1)])
torch.ones(2,3)[2]
torch.ones(2,3)[0,3]
torch.ones(2,3)[1.0]
torch.ones(2,3)[torch.tensor([5])]
torch.ones(2,3)[torch.ones(3).bool()]
torch.tensor([[1,2],[3]])
torch.tensor([1,'a'])
torch.zeros(2).index_select(0, torch.tensor([1.0]))
torch.zeros(2).index_select(0, torch.tensor([3]))
torch.einsum('ij,jk', torch.ones(2,3), torch.ones(2,3))
torch.ones(2).masked_fill(torch.ones(2), 1)
torch.ones(2).masked_fill_(torch.ones(3).bool(), 1)
torch.ones(0).argmax()
torch.optim.SGD(torch.ones(2), lr=0.1)
torch.ones(2).softmax()
torch.randn(2, 'a')
torch.bernoulli(torch.ones(2)*2)
torch.add(1, 'a')
torch.nonexistent
torch.ones(2).nonexistent
nn.Nonexistent
F.nonexistent
nn.Sequential(3)
m.register_parameter('weight', 3)
nn.ModuleList([1])
nn.Parameter(3)
torch.Generator(device='banana')
torch.unique(torch.ones(2,2), dim=3)
torch.normal(0.0, -1.0, (2,))
F.one_hot(torch.tensor([1.0]))
F.grid_sample(torch.ones(1,1,2,2), torch.ones(1,2,2,3))
"""


def outcome(torch, source):
    """The class and the first line of an error."""
    x = torch.ones(3, requires_grad=True)

    def twice():
        y = (x * x).sum()
        y.backward()
        y.backward()

    def inplace_leaf():
        x.add_(1)

    def inplace_saved():
        y = x * 1
        z = y * y
        y.add_(1)
        z.sum().backward()

    def fn_wrong():
        class Fn(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                return a * 2

            @staticmethod
            def backward(ctx, z_bar):
                return z_bar, z_bar

        Fn.apply(x).sum().backward()

    names = {
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
        "x": x,
        "m": torch.nn.Linear(3, 2),
        **{f.__name__: f for f in (twice, inplace_leaf, inplace_saved, fn_wrong)},
    }
    try:
        eval(source, names)
    except Exception as error:
        return type(error), str(error).partition("\n")[0].strip()
    return None, ""


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("source", SAME_WORDS.strip().split("\n"))
def test_an_error_has_pytorchs_words(source):
    (mine, words), (other, expected) = outcome(ours, source), outcome(theirs, source)
    assert other is not None
    assert mine is not None
    assert issubclass(mine, other)
    assert words == expected


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("source", SAME_CLASS.strip().split("\n"))
def test_an_error_has_pytorchs_class(source):
    (mine, words), (other, _) = outcome(ours, source), outcome(theirs, source)
    assert other is not None
    assert mine is not None
    assert issubclass(mine, other)
    assert len(words) > 10


@pytest.mark.parametrize("source", ["torch.ones(2, device='cuda')", "m.to('cuda')"])
def test_a_device_that_is_not_there(source):
    if ours.cuda.is_available() or theirs.cuda.is_available():
        pytest.skip("there is a GPU")
    (mine, words), (other, _) = outcome(ours, source), outcome(theirs, source)
    assert issubclass(mine, other)
    assert "cuda" in words


def test_a_singular_matrix():
    with pytest.raises(ours.linalg.LinAlgError):
        ours.linalg.inv(ours.zeros(2, 2))
