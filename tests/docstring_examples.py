"""What the tests of examples share: which names there are, and how one is run."""

import doctest
import importlib
import importlib.util
import inspect
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location(
    "reference", Path(__file__).parent.parent / "docs" / "reference.py"
)
reference = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(reference)


def public_names(modules):
    """The functions and classes that the reference has, by module and name."""
    for path in modules:
        module = importlib.import_module(path)
        for name, value in reference.public_names(module):
            if callable(value) and reference.home(value):
                yield f"{path.removeprefix('lantern.')}.{name}", value


def check_words(names):
    """Each has words, and one section with an example."""
    found = {name: inspect.getdoc(value) or "" for name, value in names.items()}
    assert [name for name, text in found.items() if text.count("Example:") != 1] == []
    assert [name for name, text in found.items() if ">>>" not in text] == []
    assert [name for name, text in found.items() if not text[:1].strip()] == []


def texts(names):
    """Each docstring once, with the name it is known by first."""
    return {inspect.getdoc(value): name for name, value in reversed(names.items())}


def check_example(text, name, known):
    """An example prints what it shows, where these names are known."""
    test = doctest.DocTestParser().get_doctest(text, dict(known), name, None, None)
    try:
        doctest.DebugRunner(optionflags=doctest.ELLIPSIS).run(test)
    except doctest.UnexpectedException as failure:
        if isinstance(failure.exc_info[1], ImportError):
            pytest.skip(str(failure.exc_info[1]))
        raise failure.exc_info[1] from None
    except doctest.DocTestFailure as failure:
        shown, found = failure.example.want, failure.got
        pytest.fail(f"{failure.example.source}{shown}but it prints\n{found}")
