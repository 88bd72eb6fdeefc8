"""Matrices for tests, and how their functions are checked."""

import importlib

import numpy as np

import lantern
from lantern.testing import check_grads

KINDS = ["real", "complex"]


def draw(kind, *shape, seed=0):
    rng = np.random.default_rng([seed, *shape])
    x = rng.standard_normal(shape)
    return x if kind == "real" else x + 1j * rng.standard_normal(shape)


def square(kind, *shape, seed=0):
    """Matrices whose eigenvalues and singular values are far apart."""
    n = shape[-1]
    return draw(kind, *shape, seed=seed) / 2 + np.diag(np.arange(2.0, 5 * n, 5))


def hermitian(kind, *shape):
    x = draw(kind, *shape) / 2
    return x @ adjoint(x) + np.diag(np.arange(1.0, 4 * shape[-1], 4))


def adjoint(x):
    return lantern.conj(lantern.matrix_transpose(x))


def check(f, *args, **kwargs):
    check_grads(f, args, **{"order": 2, "atol": 2e-6, "rtol": 2e-6} | kwargs)


def shape_of(text):
    return () if text == "()" else tuple(map(int, text.split(",")))


def refuse_imports(monkeypatch, module):
    def refuse(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib.import_module(module), "import_module", refuse)
