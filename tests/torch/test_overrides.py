"""What a subclass of Module overrides is called where PyTorch calls it."""

import copy

import pytest

import lantern.torch as ours

theirs = pytest.importorskip("torch", reason="the peer that this face is compared with")

# PyTorch's own steps, which no program overrides: the tracer, the compiler, replicas.
INNER = {
    "_get_backward_hooks", "_get_backward_pre_hooks", "_slow_forward", "ipu", "mtia",
    "_maybe_warn_non_full_backward_hook", "_replicate_for_data_parallel", "xpu",
    "_call_impl", "_wrapped_call_impl",
}  # fmt: skip
METHODS = [
    name
    for name, method in vars(theirs.nn.Module).items()
    if callable(method) and name not in INNER
    and (not name.startswith("__") or name in ("__getstate__", "__setstate__"))
]  # fmt: skip


def watched(torch, log):
    """A model of two modules, whose every method notes that it was called."""

    class Watched(torch.nn.Module):
        def __init__(self, inner=None):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))
            self.register_buffer("count", torch.zeros(1))
            self.name = "outer" if inner else "inner"
            self.inner = inner

        def forward(self, x):
            return (x if self.inner is None else self.inner(x)) * self.weight

    def noting(name):
        def method(self, *args, **options):
            log.append((self.__dict__.get("name"), name))
            return getattr(super(Watched, self), name)(*args, **options)

        return method

    model = Watched(Watched())
    for name in METHODS:
        if name != "forward":
            setattr(Watched, name, noting(name))
    Watched.get_extra_state = lambda self: log.append((self.name, "get")) or self.name
    Watched.set_extra_state = lambda self, x: log.append((self.name, "set"))
    return model


def replaced(model, torch):
    model.weight = torch.nn.Parameter(torch.zeros(2))
    model.weight = None
    model.count = torch.ones(1)
    model.count = None
    model.other = model.inner
    model.inner = None


def hooked(model, torch):
    model.register_forward_hook(lambda m, a, z: z + 1)
    model.register_forward_pre_hook(lambda m, a: (a[0] * 2,))
    model(torch.ones(2))


ACTIONS = {
    "state_dict": lambda m, t: m.state_dict(),
    "load_state_dict": lambda m, t: m.load_state_dict(m.state_dict()),
    "load_state_dict, assign": lambda m, t: m.load_state_dict(
        m.state_dict(), assign=True
    ),
    "to a type": lambda m, t: m.to(t.float64),
    "to a device": lambda m, t: m.to("cpu"),
    "float": lambda m, t: m.float(),
    "double": lambda m, t: m.double(),
    "half": lambda m, t: m.half(),
    "cpu": lambda m, t: m.cpu(),
    "type": lambda m, t: m.type(t.float64),
    "to_empty": lambda m, t: m.to_empty(device="cpu"),
    "train": lambda m, t: m.train(),
    "eval": lambda m, t: m.eval(),
    "apply": lambda m, t: m.apply(lambda x: None),
    "requires_grad_": lambda m, t: m.requires_grad_(False),
    "zero_grad": lambda m, t: m.zero_grad(),
    "parameters": lambda m, t: list(m.parameters()),
    "named_parameters": lambda m, t: list(m.named_parameters()),
    "buffers": lambda m, t: list(m.buffers()),
    "modules": lambda m, t: list(m.modules()),
    "children": lambda m, t: list(m.children()),
    "repr": lambda m, t: repr(m),
    "get_parameter": lambda m, t: m.get_parameter("inner.weight"),
    "get_buffer": lambda m, t: m.get_buffer("inner.count"),
    "set_submodule": lambda m, t: m.set_submodule("inner", t.nn.Identity()),
    "register_module": lambda m, t: m.register_module("more", t.nn.Identity()),
    "deepcopy": lambda m, t: copy.deepcopy(m),
    "copy": lambda m, t: copy.copy(m),
    "assignment": replaced,
    "call": lambda m, t: m(t.ones(2)),
    "call with hooks": hooked,
    "share_memory": lambda m, t: m.share_memory(),
    "optimiser": lambda m, t: t.optim.SGD(m.parameters(), lr=1.0),
    "compile": lambda m, t: m.compile and None,
}


def test_every_method_of_pytorchs_is_here():
    assert [name for name in METHODS if not hasattr(ours.nn.Module, name)] == []


@pytest.mark.parametrize("action", ACTIONS)
def test_overrides_are_called_where_pytorch_calls_them(action):
    logs = []
    for torch in (ours, theirs):
        log = []
        model = watched(torch, log)
        log.clear()
        ACTIONS[action](model, torch)
        logs.append(log)
    assert logs[0] == logs[1]
