"""Every public name of the face shows an example, and what an example shows is so."""

import doctest
import importlib
import importlib.util
import inspect
from pathlib import Path

import pytest

import lantern.torch as torch
from lantern.torch.legacy import TYPES

DOCS = Path(__file__).parent.parent.parent / "docs"
MODULES = """
torch torch.accelerator torch.amp torch.autograd torch.autograd.functional
torch.autograd.function torch.autograd.profiler torch.compiler torch.cuda
torch.distributed torch.fft torch.func torch.jit torch.linalg torch.multiprocessing
torch.profiler torch.random torch.serialization torch.signal.windows torch.sparse
torch.special torch.testing torch.utils.benchmark torch.utils.checkpoint
torch.utils.tensorboard
""".split()
# Of tensors, what all values have that a derivative tracks: no program calls it.
PROTOCOL = {
    f"Tensor.{name}"
    for name in "emerge frozen gradient inside join one takes through".split()
}


def public_names():
    """The names that the reference has, and the attributes of a tensor."""
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    for module in MODULES:
        part = importlib.import_module(f"lantern.{module}")
        for name, value in reference.public_names(part):
            if callable(value) and reference.home(value):
                yield f"{module.removeprefix('torch.')}.{name}", value
    for name, value in TYPES.items():  # in the reference, they are PyTorch's
        yield f"torch.{name}", value
    for name in dir(torch.Tensor):
        value = inspect.getattr_static(torch.Tensor, name)
        is_made = callable(value) or isinstance(value, property | classmethod)
        if is_made and not name.startswith("_") and f"Tensor.{name}" not in PROTOCOL:
            yield f"Tensor.{name}", value


NAMES = dict(public_names())


def test_every_name_has_words_and_an_example():
    found = {name: inspect.getdoc(value) or "" for name, value in NAMES.items()}
    assert [name for name, text in found.items() if text.count("Example:") != 1] == []
    assert [name for name, text in found.items() if ">>>" not in text] == []
    assert [name for name, text in found.items() if not text[:1].strip("\n ")] == []


def test_every_example_of_a_file_belongs_to_a_name():
    """The other way round is an error on import."""
    folder = Path(torch.__file__).parent / "examples"
    for path in folder.glob("*.txt"):
        for block in path.read_text("utf-8").strip().split("\n\n"):
            name = block.partition("\n")[0].partition(": ")[0]
            part = "signal.windows" if path.stem == "windows" else path.stem
            assert f"{part}.{name}" in NAMES


TEXTS = {inspect.getdoc(value): name for name, value in reversed(NAMES.items())}


@pytest.mark.parametrize("text", TEXTS, ids=TEXTS.values())
def test_an_example_prints_what_it_shows_to_whom_copies_it(text):
    name = TEXTS[text]
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    try:
        doctest.DebugRunner(optionflags=doctest.ELLIPSIS).run(test)
    except doctest.UnexpectedException as failure:
        if isinstance(failure.exc_info[1], ImportError):
            pytest.skip(str(failure.exc_info[1]))
        raise failure.exc_info[1] from None
    except doctest.DocTestFailure as failure:
        shown, found = failure.example.want, failure.got
        pytest.fail(f"{failure.example.source}{shown}but it prints\n{found}")
