"""Every public name of lantern.torch shows an example, and the examples are run."""

import inspect

import pytest

import lantern.torch as torch
from lantern.torch.methods.typed_constructors import TYPES
from tests import docstring_examples as shown

MODULES = """
torch torch.accelerator torch.amp torch.autograd torch.autograd.function
torch.autograd.functional torch.autograd.profiler torch.backends torch.compiler
torch.cuda torch.distributed torch.distributed.algorithms torch.distributed.nn
torch.distributed.optim torch.distributions torch.distributions.constraints
torch.fft torch.func torch.fx torch.jit torch.linalg torch.multiprocessing torch.nn
torch.nn.functional torch.nn.init torch.nn.utils torch.nn.utils.parametrizations
torch.nn.utils.parametrize torch.nn.utils.prune torch.nn.utils.rnn torch.optim
torch.optim.lr_scheduler torch.profiler torch.quasirandom torch.random
torch.return_types
torch.serialization torch.signal
torch.signal.windows torch.sparse torch.special torch.testing torch.utils
torch.utils.benchmark
torch.utils.checkpoint torch.utils.data torch.utils.tensorboard torch.version
""".split()
# Of tensors, what all values have that a derivative tracks: no program calls it.
PROTOCOL = {
    f"Tensor.{name}"
    for name in (
        "emerge frozen gradient inside join like_this numpy_face one shown takes "
        "through"
    ).split()
}


def public_names():
    """The names that the reference has, and the attributes of a tensor."""
    for name, value in shown.public_names(f"lantern.{path}" for path in MODULES):
        module, _, last = name.rpartition(".")
        yield f"{module.removeprefix('torch.')}.{last}", value
    for name, value in TYPES.items():  # in the reference, they are PyTorch's
        yield f"torch.{name}", value
    for name in dir(torch.Tensor):
        value = inspect.getattr_static(torch.Tensor, name)
        is_made = callable(value) or isinstance(value, property | classmethod)
        if is_made and not name.startswith("_") and f"Tensor.{name}" not in PROTOCOL:
            yield f"Tensor.{name}", value


NAMES = dict(public_names())


def test_every_name_has_words_and_an_example():
    shown.check_words(NAMES)


TEXTS = shown.texts(NAMES)


@pytest.mark.parametrize("text", TEXTS, ids=TEXTS.values())
def test_an_example_prints_what_it_shows_to_whom_copies_it(text):
    shown.check_example(text, TEXTS[text], {})
