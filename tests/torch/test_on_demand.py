"""Packages that import what few programs need when it is asked for."""

import pickle
import subprocess
import sys

import pytest

import lantern.torch as torch

# In a process of its own, where nothing has been asked for.
FRESH = "import lantern.torch as torch, sys\n"

of_packages = pytest.mark.parametrize(
    ("package", "names"),
    [
        ("nn", "Linear Conv2d ReLU LSTM MaxPool2d Transformer init utils"),
        ("nn.functional", "relu conv2d ctc_loss layer_norm grid_sample"),
        ("optim", "SGD Adam LBFGS lr_scheduler"),
        ("autograd", "grad Function"),
    ],
)


def fresh(program):
    run = [sys.executable, "-c", FRESH + program]
    return subprocess.run(run, capture_output=True, text=True, check=True).stdout


@of_packages
def test_all_names_are_listed_before_they_are_there(package, names):
    program = f"p = torch.{package}; names = dir(p)\n"
    listed = fresh(
        f"{program}print(*names if all(hasattr(p, n) for n in names) else ())"
    )
    assert {*names.split()} <= {*listed.split()}


@of_packages
def test_a_star_gives_all_of_them(package, names):
    given = fresh(f"from lantern.torch.{package} import *\nprint(*globals())").split()
    assert {*names.split()} <= {*given}
    assert "seldom" not in given


@pytest.mark.parametrize(
    "path",
    "nn.lazy nn.modules nn.functional.pooling optim.lbfgs autograd.checking".split(),
)
def test_a_module_may_be_the_first_to_be_imported(path):
    assert fresh(f"import lantern.torch.{path} as m; print(m.__name__)").endswith(
        f"{path}\n"
    )


def test_who_looks_through_a_package_sees_all_of_it():
    looked = fresh("""
for package, names in {
    torch.nn: "Conv2d ReLU LSTM utils", torch.nn.functional: "conv2d relu",
    torch.optim: "LBFGS lr_scheduler", torch.autograd: "Function",
}.items():
    for name, x in package.__dict__.items():
        known = [getattr(package, name) for name in names.split()]
    print(all(vars(package)[name] is x for name, x in zip(names.split(), known)))
""")
    assert looked == 4 * "True\n"


def test_threads_that_ask_at_once_wait_for_one_another():
    program = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
sys.setswitchinterval(1e-5)
barrier = Barrier(4)
def ask(name):
    barrier.wait()
    found = torch
    for part in name.split("."):
        found = getattr(found, part)
    return found.__name__
names = "optim.lr_scheduler.StepLR nn.Conv2d autograd.functional.jacobian".split()
with ThreadPoolExecutor(4) as pool:
    for name in names:
        print(*pool.map(ask, 4 * [name]))
"""
    rows = [4 * [name] for name in ("StepLR", "Conv2d", "jacobian")]
    assert [row.split() for row in fresh(program).splitlines()] == rows


def test_a_layer_takes_no_function_that_stands_there_for_a_while():
    program = """
from unittest import mock
x = torch.arange(4.0).reshape(1, 2, 2)
with mock.patch("lantern.torch.nn.functional.max_pool2d", lambda *args, **options: 0):
    pool = torch.nn.MaxPool2d(2)
print(pool(x).item(), torch.nn.functional.max_pool2d(x, 2).item())
"""
    assert fresh(program) == "3.0 3.0\n"


def test_a_layer_is_one_class():
    assert torch.nn.MaxPool2d is torch.nn.modules.pooling.MaxPool2d
    assert type(pickle.loads(pickle.dumps(torch.nn.MaxPool2d(2)))) is torch.nn.MaxPool2d
    made = fresh("print(torch.nn.ReLU is torch.nn.modules.activation.ReLU)")
    assert made == "True\n"


def test_a_name_that_is_missing_is_told_with_the_nearest():
    told = fresh(
        "try:\n    torch.nn.Conv2\nexcept AttributeError as error:\n    print(error)"
    )
    assert told.startswith("module 'torch.nn' has no attribute 'Conv2'. Did you mean:")
    with pytest.raises(AttributeError, match="max_pool2d"):
        torch.nn.functional.max_pol2d


def test_functions_of_lists_are_made_when_one_is_asked_for():
    program = "print('lantern.torch.functions.foreach' in sys.modules)\n"
    program += "print(torch._foreach_add([torch.ones(1)], 1.0))"
    assert fresh(program) == "False\n[tensor([2.])]\n"
    with pytest.raises(AttributeError, match="_foreach_nothing"):
        torch._foreach_nothing


def test_a_saved_model_is_loaded_where_its_layers_were_not_asked_for(tmp_path):
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 1, 1), torch.nn.MaxPool2d(2))
    model.last = torch.nn.functional.layer_norm
    torch.save(model, tmp_path / "model")
    program = f"m = torch.load({str(tmp_path / 'model')!r}, weights_only=False)\n"
    program += "print(m(torch.ones(1, 1, 2, 2)).shape, m.last is torch.nn.functional."
    assert fresh(f"{program}layer_norm)") == "torch.Size([1, 1, 1, 1]) True\n"


def test_a_function_that_is_asked_for_later_asks_its_arguments():
    program = """
class Own(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__
x = torch.ones(2).as_subclass(Own)
print(torch.nn.functional.pad(x, (1, 1)))
"""
    assert fresh(program) == "pad\n"


def test_a_function_that_is_asked_for_while_a_program_is_written_down_is_a_step():
    program = """
from lantern.torch import fx
traced = fx.symbolic_trace(lambda x: torch.nn.functional.pad(x, (1, 1)))
print(*(node.op for node in traced.graph.nodes))
"""
    assert fresh(program) == "placeholder call_function output\n"
