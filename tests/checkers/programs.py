"""Small programs as users write them: a checker finds fault with marked lines alone."""

PROGRAMS = {
    "a misspelt function": """
import lantern

print(lantern.sinn(1.0))  # wrong
""",
    "a misspelt layer": """
from lantern.torch import nn

nn.Lineer(2, 3)  # wrong
""",
    "a misspelt method": """
import lantern.torch as torch

torch.ones(3).summ()  # wrong
""",
    "a misspelt function of layers": """
import lantern.torch as torch
import lantern.torch.nn.functional as F

F.rellu(torch.ones(3))  # wrong
""",
    "a misspelt optimiser": """
import lantern.torch as torch

torch.optim.Adamm([torch.ones(3)])  # wrong
""",
    "a part that is not there": """
import lantern.torch as torch
import lantern.scipy

torch.onnx  # wrong
lantern.scipy.optimise  # wrong
""",
    "a tensor is no number": """
import lantern.torch as torch

x: int = torch.ones(3)  # wrong
y: float = torch.tensor([1.0]).sum()  # wrong
z: str = torch.zeros(2) + 1  # wrong
""",
    "what is missing and what is too much": """
import lantern
import lantern.torch as torch
from lantern.torch import nn

lantern.sin(1.0, 2.0)  # wrong
nn.Linear(3)  # wrong
torch.matmul(torch.ones(3))  # wrong
torch.ones(3).unsqueeze()  # wrong
""",
    "a derivative takes what its function takes": """
import lantern


def f(x: float, scale: float = 1.0) -> float:
    return scale * x**3


lantern.grad(f)(2.0, scale=3.0)
lantern.grad(f)("two")  # wrong
lantern.grad(f)(2.0, size=3.0)  # wrong
lantern.value_and_grad(f)()  # wrong
lantern.hessian(f)([1.0])  # wrong
""",
    "what comes back": """
import lantern


def f(x: float) -> float:
    return x**3


value, gradient = lantern.value_and_grad(f)(2.0)
text: str = value  # wrong
z, pullback = lantern.vjp(f, 2.0)
pullback(1.0)
name: str = z  # wrong
y, y_dot = lantern.jvp(f, (2.0,), (1.0,))
y.upper()  # wrong
a, b, c = lantern.vjp(f, 2.0)  # wrong
""",
    "a checkpoint is the function": """
import lantern


@lantern.checkpoint
def block(x: float, *, times: int) -> float:
    return x * times


number: float = block(2.0, times=3)
words: str = block(2.0, times=3)  # wrong
block(2.0)  # wrong
""",
    "a compiled function is the function": """
import lantern


@lantern.jit
def cube(x: float) -> float:
    return x**3


@lantern.jit(exact=True)
def scaled(x: float, *, by: float) -> float:
    return x * by


number: float = cube(2.0) + scaled(2.0, by=3.0) + lantern.jit(lantern.grad(cube))(2.0)
cube("two")  # wrong
scaled(2.0)  # wrong
words: str = cube(2.0)  # wrong
""",
    "rules of one's own": """
from collections.abc import Generator
from typing import Any

import lantern
from lantern.op import elementwise


@elementwise
def cube(x: Any, /) -> Generator[Any, Any, None]:
    z_bar = yield x**3
    yield z_bar * 3 * x**2


cube(2.0) + cube()  # wrong


@lantern.custom_vjp
def safe(x: float, y: float) -> float:
    return x / y


safe(1.0, 2.0)
safe(1.0)  # wrong
""",
    "ten lines": """
import numpy as np

import lantern


def loss(w: np.ndarray, x: np.ndarray) -> float:
    y = lantern.tanh(x @ w)
    return lantern.sum(y * y) / 2


gradient = lantern.grad(loss)(np.ones(3), np.ones((5, 3)))
each = lantern.vmap(lantern.grad(loss), in_axes=(None, 0))(np.ones(3), np.eye(3))
print(gradient.shape, each.shape, lantern.grad(lambda x: x * x)(3.0))
""",
    "a training": """
import lantern.torch as torch
from lantern.torch import nn
from lantern.torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layers(x)
        return result


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2)
data = TensorDataset(torch.randn(64, 4), torch.randint(0, 2, (64,)))
for x, y in DataLoader(data, batch_size=16, shuffle=True):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
scheduler.step()
with torch.no_grad():
    accuracy = (model(data.tensors[0]).argmax(1) == data.tensors[1]).float().mean()
print(f"{accuracy.item():.2f}")
torch.save(model.state_dict(), "model.safetensors")
""",
    "results with names": """
import lantern.torch as torch

x = torch.randn(3, 4)
values, indices = torch.sort(x, dim=1)
top = torch.topk(x, 2).values + values[:, :2]
parts = torch.chunk(x, 2)
first: torch.Tensor = parts[0]
mean, deviation = torch.std_mean(x), torch.linalg.svd(x).S
number: int = torch.topk(x, 2).values  # wrong
top.values.items()  # wrong
""",
    "operators and methods of tensors": """
import lantern.torch as torch

x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
y = 2 * x - x / 3 + x**2 @ torch.ones(3, 3)
z = (y > 0) & (x[0] <= y.max().item())
y[z] = 0.0
y += 1
y.add_(x).clamp_(min=0.0)
w = torch.zeros(2, 3, requires_grad=True)
(w.exp() * y.T.mT).sum().backward()
print(w.grad, w.shape[0] + 1, w.device.type, w.dtype, len(w), w.size(0), z.any())
w.shape.append(3)  # wrong
""",
    "scipy and linear algebra": """
import numpy as np

import lantern
from lantern.scipy import special, stats

a = np.eye(3)
q, r = lantern.linalg.qr(a)
print(stats.norm.logpdf(2.0), special.gammaln(3.0), lantern.linalg.det(a))
lantern.linalg.solv(a, a)  # wrong
special.gamaln(3.0)  # wrong
""",
    "distributions": """
import lantern.torch as torch
from lantern.torch.distributions import Categorical, Normal, kl_divergence

p = Normal(torch.zeros(3), torch.ones(3))
print(p.rsample((2,)).shape, p.log_prob(torch.ones(3)).sum())
print(kl_divergence(p, Normal(0.0, 1.0)), Categorical(logits=torch.ones(4)).entropy())
torch.distributions.Gaussian(0.0, 1.0)  # wrong
""",
    "transforms of lantern.torch": """
import lantern.torch as torch
from lantern.torch.autograd import Function, gradcheck
from lantern.torch.func import functional_call, grad, vmap


class Twice(Function):
    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    @staticmethod
    def backward(ctx: object, g: torch.Tensor) -> torch.Tensor:
        return 2 * g


x = torch.ones(3, dtype=torch.float64, requires_grad=True)
gradcheck(Twice.apply, (x,))
torch.autograd.grad(x.sum(), [x])
torch.autograd.backwards(x)  # wrong
""",
    "all names at once": """
from lantern import *
from lantern.torch import tensor
from lantern.torch.nn import LSTM, CrossEntropyLoss, Module, Parameter

print(sin(1.0), grad(cos)(1.0), LSTM(3, 4)(tensor([[1.0, 2.0, 3.0]])))
CrossEntropyLoss(reduction="sum")(tensor([[1.0]]), tensor([0]))
CrossEntropyLoss(reducton="sum")  # wrong
no_grad(1.0).x  # wrong
""",
}
