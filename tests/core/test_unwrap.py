"""What is inside of values, and whether one is hidden in something else."""

from types import SimpleNamespace

import numpy as np
import pytest

import lantern
from lantern import grad
from lantern.core.namespace import register_namespace
from lantern.core.unwrap import detached, holds, plain, read_only, strip


def inside_of_grad(check):
    """Call a function with a tracked array, and its derivative."""
    grad(lambda x: check(x, x.level) or lantern.sum(x))(np.ones(3))


def test_a_value_is_found_behind_a_structure_that_holds_itself():
    def check(x, level):
        circle = SimpleNamespace(parts=[])
        circle.parts += 300 * [circle, circle.parts]
        hidden = SimpleNamespace(circle=circle, a=[{"b": ([[[x]]],)}])
        assert holds(hidden, level)
        del hidden.a
        assert not holds(hidden, level)

    inside_of_grad(check)


def test_a_value_is_found_in_an_array_of_objects():
    def check(x, level):
        found = np.array([None, {}], dtype=object)
        assert not holds(found, level)
        found[1]["x"] = x
        assert holds(found, level)

    inside_of_grad(check)


def test_what_becomes_plain_is_the_array_itself_or_a_copy():
    def check(x, level):
        assert strip([x], level)[0] is x.primal
        fresh = strip([x], level, fresh=True)[0]
        assert fresh is not x.primal
        np.testing.assert_array_equal(fresh, x.primal)

    inside_of_grad(check)


def test_a_constant_of_many_examples_is_one_of_each():
    def one(x):
        kept.append(detached(x))
        return lantern.sum(kept[-1] * x)

    kept, x = [], np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(lantern.vmap(grad(one))(x), x)
    np.testing.assert_array_equal(plain(kept[0]), x)


def test_what_cannot_be_made_read_only_is_copied(backend):
    x = backend.array(np.ones(3))
    y = read_only(x)
    assert y is not x
    assert read_only(2.0) == 2.0
    np.testing.assert_array_equal(backend.host(y), np.ones(3))


def test_what_has_no_flags_is_copied_by_its_library():
    class Theirs:
        shape = (3,)

        def view(self):
            return SimpleNamespace()  # it has no flags

    copy, x = object(), Theirs()
    register_namespace(Theirs, SimpleNamespace(array=lambda y: copy if y is x else y))
    assert read_only(x) is copy


def test_a_read_only_array_is_a_view():
    x = np.ones(3)
    y = read_only(x)
    assert np.shares_memory(x, y)
    with pytest.raises(ValueError, match="read-only"):
        y[0] = 2.0
