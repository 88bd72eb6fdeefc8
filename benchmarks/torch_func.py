"""``torch.func`` as in tutorials: gradients of each sample, Jacobians, ensembles.

The program is given once, for a ``torch`` that is either library, in single precision.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

from benchmarks.entrant import Program
from benchmarks.harness import race
from benchmarks.table import Row, Target
from benchmarks.training import MODULES, draws, program_of, same_start


def rows(quick: bool) -> list[Row]:
    """One row for each program."""
    table = []
    for name, make in PROGRAMS.items():
        makers = {
            who: partial(program_of, partial(make, quick), MODULES[who])
            for who in MODULES
        }
        target = {"PyTorch": Target(1)}
        table += race(f"torch.func {name}", 1, makers, target, quick=quick, rtol=1e-3)
    return table


def _parameters(model: Any) -> dict[str, Any]:
    return {name: p.detach() for name, p in model.named_parameters()}


def _per_sample(torch: Any, model: Any, x: Any, y: Any) -> Program:
    """The gradient of each sample's loss by all parameters."""
    func, F = torch.func, torch.nn.functional
    parameters = _parameters(model)

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        z = func.functional_call(model, parameters, (x[None],))
        return F.cross_entropy(z, y[None])

    gradients = func.vmap(func.grad(loss), in_dims=(None, 0, 0))
    return lambda: list(gradients(parameters, x, y).values())


def _mlp(torch: Any, *sizes: int) -> Any:
    nn = torch.nn
    layers: list[Any] = []
    for n, m in pairwise(sizes):
        layers += [nn.Linear(n, m), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def _samples_of_mlp(quick: bool, torch: Any) -> Program:
    n = 16 if quick else 64
    model = same_start(torch, _mlp(torch, 784, 128, 128, 10))
    return _per_sample(torch, model, draws(torch, n, 784), draws(torch, n, classes=10))


def _samples_of_cnn(quick: bool, torch: Any) -> Program:
    n, nn = 4 if quick else 32, torch.nn
    layers = (
        *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU()),
        *(nn.MaxPool2d(2), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU()),
        nn.Linear(128, 10),
    )
    model = same_start(torch, nn.Sequential(*layers))
    x, y = draws(torch, n, 1, 28, 28), draws(torch, n, classes=10)
    return _per_sample(torch, model, x, y)


def _samples_of_text(quick: bool, torch: Any) -> Program:
    n, nn = 8 if quick else 32, torch.nn

    class Classifier(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(1000, 64)
            self.block = nn.TransformerEncoderLayer(
                64, 4, 128, dropout=0.0, batch_first=True
            )
            self.out = nn.Linear(64, 10)

        def forward(self, x: Any) -> Any:
            return self.out(self.block(self.table(x)).mean(1))

    model = same_start(torch, Classifier())
    x, y = draws(torch, n, 32, classes=1000), draws(torch, n, classes=10)
    return _per_sample(torch, model, x, y)


def _predict(torch: Any, weight: Any, bias: Any, x: Any) -> Any:
    return torch.nn.functional.linear(x, weight, bias).tanh()


def _jacobian(name: str, quick: bool, torch: Any) -> Program:
    n, m = (32, 32) if quick else (256, 256)
    w, b, x = draws(torch, m, n) * 0.1, draws(torch, m), draws(torch, n)
    jacobian = getattr(torch.func, name)(partial(_predict, torch), argnums=2)
    return lambda: jacobian(w, b, x)


def _hessians(quick: bool, torch: Any) -> Program:
    n, size = (4, 8) if quick else (32, 31)
    w, b, x = draws(torch, size, size), draws(torch, size), draws(torch, n, size)
    hessian = torch.func.hessian(partial(_predict, torch), argnums=2)
    each = torch.func.vmap(hessian, in_dims=(None, None, 0))
    return lambda: each(w, b, x)


def _ensemble(own_data: bool, quick: bool, torch: Any) -> Program:
    """Several models at once, on data of their own, or all on the same."""
    count, n = (3, 8) if quick else (10, 64)
    models = [same_start(torch, _mlp(torch, 784, 128, 128, 10)) for _ in range(count)]
    parameters, buffers = torch.func.stack_module_state(models)
    parameters = {
        name: p.detach() * draws(torch, count, *[1] * (p.ndim - 1))
        for name, p in parameters.items()
    }
    x = draws(torch, count, n, 784)

    def call(parameters: Any, buffers: Any, x: Any) -> Any:
        return torch.func.functional_call(models[0], (parameters, buffers), (x,))

    each = torch.func.vmap(call, in_dims=(0, 0, 0 if own_data else None))
    return lambda: each(parameters, buffers, x if own_data else x[0])


PROGRAMS: dict[str, Callable[[bool, Any], Program]] = {
    "gradients of each sample, perceptron": _samples_of_mlp,
    "gradients of each sample, convolutions": _samples_of_cnn,
    "gradients of each sample, transformer": _samples_of_text,
    "jacrev": partial(_jacobian, "jacrev"),
    "jacfwd": partial(_jacobian, "jacfwd"),
    "hessian of each sample": _hessians,
    "ensemble, same data": partial(_ensemble, False),
    "ensemble, data of their own": partial(_ensemble, True),
}
