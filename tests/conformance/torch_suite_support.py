"""A light stand-in for ``torch.testing._internal``: comparisons, and tests in variants.

PyTorch's own support imports its compiler, its devices and its packages. What tests
need of it is here; smaller helpers are borrowed from the installed package.
"""

import collections
import contextlib
import copy
import functools
import gc
import importlib.machinery
import inspect
import io
import itertools
import math
import operator
import os
import pathlib
import random
import re
import sys
import tempfile
import textwrap
import threading
import time
import types
import typing
import unittest
import unittest.mock
import warnings
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from numbers import Number

import numpy as np
from torch_suite_loading import Borrowed, Missing, idle, load

NAME = "torch.testing._internal"
# By type, as in PyTorch's comparison: relative and absolute.
TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}
NUMBERS = (bool, int, float, complex, np.number, np.bool_)
torch = None  # set by ``install``


def plain(x):
    """The values of a tensor or number as an array."""
    if not isinstance(x, torch.Tensor):
        return np.asarray(x)
    x = x.detach()
    if x.layout != torch.strided:
        x = x.to_dense()
    if x.dtype == torch.bfloat16:
        x = x.float()
    return np.asarray(x.cpu().resolve_conj().resolve_neg().numpy())


def kind(x):
    """The name of an operand's type, by which it is compared."""
    return "float64" if isinstance(x, NUMBERS) else str(x.dtype).removeprefix("torch.")


class TestCase(unittest.TestCase):
    """Comparisons of tensors, by the tolerances of their types."""

    precision = rel_tol = 0.0
    maxDiff = None
    exact_dtype = True

    def setUp(self):
        seed()

    def fails(self, text):
        raise self.failureException(text)

    def assertEqual(self, x, y, msg=None, *, atol=None, rtol=None, **options):
        tensors = (torch.Tensor, np.ndarray)
        if isinstance(x, tensors) and isinstance(y, list | tuple | range):
            y = like(y, x)
        if isinstance(y, tensors) and isinstance(x, list | tuple | range):
            x = like(x, y)
        numeric = tensors + NUMBERS
        if isinstance(x, numeric) and isinstance(y, numeric):
            return self.compare(x, y, atol, rtol, msg, **options)
        if isinstance(x, Mapping) and isinstance(y, Mapping):
            super().assertEqual(set(x), set(y))
            pairs = [(x[name], y[name]) for name in x]
        elif isinstance(x, SEQUENCES) and isinstance(y, SEQUENCES):
            x, y = list(x), list(y)
            if len(x) != len(y):
                self.fails(f"lengths {len(x)} != {len(y)}")
            pairs = list(zip(x, y, strict=True))
        elif isinstance(x, torch.Tensor) != isinstance(y, torch.Tensor):
            self.fails(f"{type(x).__name__} and {type(y).__name__}: {x} != {y}"[:200])
        else:
            return super().assertEqual(x, y, msg if isinstance(msg, str) else None)
        for a, b in pairs:
            self.assertEqual(a, b, msg, atol=atol, rtol=rtol, **options)
        return None

    assertEquals = assertEqual

    def compare(self, x, y, atol, rtol, msg, exact_dtype=True, **options):
        both = isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor)
        if both and exact_dtype and x.dtype != y.dtype:
            self.fails(f"DTYPE {x.dtype} != {y.dtype}")
        if both and options.get("exact_stride") and x.stride() != y.stride():
            self.fails(f"STRIDE {x.stride()} != {y.stride()}")
        arrays = [z for z in (x, y) if not isinstance(z, NUMBERS)] or [x, y]
        own = [TOLERANCES.get(kind(z), (0.0, 0.0)) for z in arrays]
        given = atol is not None or rtol is not None
        r = max([self.rel_tol, rtol or 0.0] + [t[0] for t in own if not given])
        a = max([self.precision, atol or 0.0] + [t[1] for t in own if not given])
        one, other = plain(x), plain(y)
        if len(arrays) == 1 and one.size == other.size == 1:
            one, other = one.reshape(()), other.reshape(())
        if one.shape != other.shape:
            self.fails(f"SHAPE {one.shape} != {other.shape}")
        if "O" in (one.dtype.kind, other.dtype.kind) or not (r or a):
            same = np.array_equal(one, other)
        else:
            wide = np.result_type(one, other, np.float64)
            equal_nan = options.get("equal_nan", True)
            with np.errstate(all="ignore"):
                same = np.allclose(
                    one.astype(wide), other.astype(wide), r, a, equal_nan=equal_nan
                )
        if not same:
            self.fails(
                f"VALUES {str(one)[:150]} != {str(other)[:150]} ({r}, {a}) {msg}"
            )

    def assertNotEqual(self, x, y, msg=None, **options):
        options["exact_dtype"] = False
        try:
            self.assertEqual(x, y, **options)
        except (AssertionError, TypeError, ValueError, RuntimeError):
            return
        self.fails(f"EQUAL {x}"[:150])

    def assertEqualIgnoreType(self, *args, **options):
        self.assertEqual(*args, exact_dtype=False, **options)

    def assertEqualBroadcasting(self, x, y, *args, **options):
        if not isinstance(y, torch.Tensor):
            y = torch.as_tensor(y, dtype=x.dtype)
        self.assertEqual(x, y.expand_as(x), exact_dtype=False)

    def assertEqualTypeString(self, x, y):
        self.assertEqual((x.device, x.dtype), (y.device, y.dtype))

    def assertExpectedInline(self, actual, expect, skip=0):
        unittest.TestCase.assertEqual(
            self, str(actual).strip(), textwrap.dedent(expect).strip()
        )

    def assertExpected(self, *args, **options):
        raise unittest.SkipTest("needs files of expected text")

    assertExpectedInlineMunged = assertExpectedStripMangled = assertExpected

    @contextlib.contextmanager
    def assertWarnsOnceRegex(self, category, regex=""):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            yield
        if not any(
            isinstance(w.message, category) and re.search(regex, str(w.message))
            for w in found
        ):
            self.fails(f"WARNING {regex!r} not among {[str(w.message) for w in found]}")

    def compare_with_numpy(
        self, function, reference, x, device=None, dtype=None, **options
    ):
        if not isinstance(x, torch.Tensor):
            x = torch.tensor(x, device=device, dtype=dtype)
        result, expected = function(x), reference(plain(x))
        self.assertEqual(expected, result, exact_dtype=False, **options)

    compare_with_reference = compare_with_numpy

    def wrap_with_cuda_policy(self, *args):
        return args[-1]

    def safeToDense(self, x):
        return x if x.layout == torch.strided else x.to_dense()

    def runWithPytorchAPIUsageStderr(self, *args):
        raise unittest.SkipTest("starts a process")

    run_process_no_exception = runWithPytorchAPIUsageStderr


SEQUENCES = (list, tuple, collections.deque, type({}.values()))


def like(values, x):
    """Numbers in the form and type of an operand."""
    if isinstance(x, np.ndarray):
        return np.asarray(values)
    return torch.as_tensor(values, dtype=x.dtype)


def seed(number=1234):
    """The same draws for every test."""
    for start in (torch.manual_seed, random.seed, np.random.seed):
        start(number)


# --- tests in variants ----------------------------------------------------------------


class subtest:
    """One choice of arguments, with a name."""

    def __init__(self, arg_values, name=None, decorators=()):
        self.arg_values, self.name, self.decorators = arg_values, name, decorators


class parametrize:
    """A test for each choice of arguments."""

    def __init__(self, arg_str, arg_values, name_fn=None):
        self.names = [name.strip() for name in arg_str.split(",") if name.strip()]
        self.choices, self.name_fn = list(arg_values), name_fn

    def __call__(self, function):
        before = vars(function).get("parameters", [])
        function.parameters = [self, *before]
        return function

    def variants(self):
        for number, choice in enumerate(self.choices):
            label, decorators = None, ()
            if isinstance(choice, subtest):
                label, decorators, choice = (
                    choice.name,
                    choice.decorators,
                    choice.arg_values,
                )
            values = tuple(choice) if len(self.names) > 1 else (choice,)
            if label is None:
                label = self.label(values, number)
            yield label, dict(zip(self.names, values, strict=True)), decorators

    def label(self, values, number):
        if self.name_fn:
            return str(self.name_fn(*values))
        parts = zip(self.names, values, strict=True)
        return "_".join(f"{name}_{short(value, number)}" for name, value in parts)


def short(value, number):
    """A word for an argument."""
    if isinstance(value, int | float | str):
        return value
    return getattr(value, "__name__", number)


def variants(name, function, types_=((("", {}, None)),)):
    """All variants of a test: their names and functions."""
    rows = [list(p.variants()) for p in vars(function).get("parameters", [])]
    for row in itertools.product(*rows):
        given = {k: v for _, values, _ in row for k, v in values.items()}
        decorators = [d for _, _, more in row for d in more]
        for label, more, tolerance in types_:
            words = [name, *(part[0] for part in row), *([label] if label else [])]
            test = bound(function, given | more, tolerance)
            for decorator in decorators:
                test = decorator(test)
            yield "_".join(words), test


def bound(function, given, tolerance):
    """A test with its arguments."""

    @functools.wraps(function)
    def test(self):
        if tolerance is not None:
            self.precision = max(self.precision, tolerance[0])
            self.rel_tol = max(self.rel_tol, tolerance[1])
        return function(self, **given)

    return test


def instantiate_parametrized_tests(cls):
    """Put the variants of each test in its place."""
    for name, function in list(vars(cls).items()):
        if name.startswith("test") and "parameters" in getattr(
            function, "__dict__", {}
        ):
            delattr(cls, name)
            for label, test in variants(name, function):
                setattr(cls, label, test)
    return cls


def marking(name):
    """A decorator that keeps its arguments with the test."""

    def mark(*args, **options):
        def decorator(function):
            setattr(function, name, args)
            return function

        return decorator

    return mark


tol = namedtuple("tol", "atol rtol")


def tolerance_of(function, dtype):
    """What a test allows for a type."""
    found = vars(function).get("tolerances", ({},))[0].get(dtype)
    return (found, 0.0) if isinstance(found, int | float) else found


def instantiate_device_type_tests(
    cls, scope, except_for=None, only_for=None, **options
):
    """The tests of a class for the CPU, each for its types."""
    scope.pop(cls.__name__, None)
    if only_for is not None and "cpu" not in only_for:
        return
    asked = {k: v for k, v in vars(Device).items() if not k.startswith("__")}
    made = type(f"{cls.__name__}CPU", (cls,), asked | {"__module__": cls.__module__})
    scope[made.__name__] = made
    for name in [n for n in dir(cls) if n.startswith("test")]:
        function = getattr(cls, name)
        setattr(made, name, None)
        known = vars(function)
        if "ops" in known or getattr(function, "__unittest_skip__", False):
            continue  # records of operators have a table of their own
        for label, test in variants(name, function, types_of(function)):
            setattr(made, label, test)


class Device:
    """What a test asks of the device that it is for."""

    device_type = "cpu"
    get_primary_device = classmethod(lambda cls: "cpu")
    get_all_devices = classmethod(lambda cls: ["cpu"])


def types_of(function):
    """The variants of a test by types."""
    known, names = vars(function), inspect.signature(function).parameters
    anything = any(p.kind is p.VAR_KEYWORD for p in names.values())
    base = {"device": "cpu"} if "device" in names or anything else {}
    chosen = known.get("dtypes_cpu") or known.get("dtypes")
    if not chosen:
        return [("cpu", base, None)]
    rows = []
    for dtype in chosen:
        several = isinstance(dtype, tuple | list)
        words = [str(d).removeprefix("torch.") for d in (dtype if several else [dtype])]
        given = base | {"dtypes" if "dtypes" in names else "dtype": dtype}
        limit = None if several else tolerance_of(function, dtype)
        rows.append(("_".join(["cpu", *words]), given, limit))
    return rows


def skipping(reason):
    """A decorator, with options or without, that skips."""

    def decorator(*args, **options):
        alone = len(args) == 1 and not options and inspect.isfunction(args[0])
        if alone and args[0].__name__ != "<lambda>":
            return unittest.skip(reason)(args[0])
        return unittest.skip(reason)

    return decorator


# Records of operators, which have a table of their own.
RECORDS = ("unary_ufuncs", "binary_ufuncs", "op_db", "reduction_ops")

# --- the modules ----------------------------------------------------------------------


def install(folder):
    """Put the stand-in where tests import it.

    Args:
        folder: ``torch/testing/_internal`` of an installed PyTorch, to borrow from.
    """
    global torch
    import torch as found

    torch = found
    TOLERANCES["complex32"] = TOLERANCES["float16"]
    modules = dict(
        torch=torch, np=np, numpy=np, unittest=unittest, functools=functools,
        itertools=itertools, random=random, contextlib=contextlib, inspect=inspect,
        contextmanager=contextlib.contextmanager, wraps=functools.wraps, math=math,
        partial=functools.partial, warnings=warnings, os=os, sys=sys, gc=gc, io=io,
        tempfile=tempfile, copy=copy, operator=operator, types=types, re=re, Enum=Enum,
        Iterable=Iterable, Sequence=Sequence, Callable=Callable,
        product=itertools.product, reduce=functools.reduce, OrderedDict=OrderedDict,
        defaultdict=defaultdict, nullcontext=contextlib.nullcontext,
        threading=threading, time=time, inf=math.inf, nan=math.nan, Path=pathlib.Path,
        deepcopy=copy.deepcopy, Number=Number, **{name: getattr(typing, name) for name
        in "Any Optional Union TypeVar".split()}, List=list, Tuple=tuple, Dict=dict,
        Type=type, make_tensor=testing("make_tensor"),
    )  # fmt: skip
    package = Borrowed(NAME, {})
    torch.testing._internal = package
    own = modules | utilities()
    parts = {
        "common_utils": (own, "common_utils.py"),
        "common_device_type": (modules | devices(), None),
        "common_cuda": (modules | cuda(), None),
        "common_mkldnn": (modules, None),
        "common_methods_invocations": (
            modules | {name: [] for name in RECORDS},
            "common_methods_invocations.py",
        ),
    }
    for name, (names, path) in parts.items():
        made = Borrowed(f"{NAME}.{name}", names, path and folder / path)
        setattr(package, name, made)
    sys.meta_path.insert(0, Finder(modules))
    for (
        name
    ) in "common_dtype common_nn common_optimizers two_tensor logging_tensor".split():
        try:
            setattr(package, name, load(folder / f"{name}.py", f"{NAME}.{name}"))
        except Exception as error:
            print(f"support file {name}: {error!r}"[:300])
            setattr(package, name, Borrowed(f"{NAME}.{name}", modules))
    package.common_optimizers.optims = optims
    records = getattr(package.common_nn, "get_new_module_tests", None)
    if records and not hasattr(package.common_nn, "new_module_tests"):
        with contextlib.suppress(Exception):
            package.common_nn.new_module_tests = records()


class Finder(importlib.machinery.PathFinder):
    """Any other support module: nothing but ``Missing`` names."""

    def __init__(self, names):
        self.names = names

    def find_spec(self, name, path=None, target=None):
        if name.startswith(f"{NAME}."):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return Borrowed(spec.name, self.names)

    def exec_module(self, module):
        pass


def testing(name):
    """A name of ``torch.testing``; ``Missing`` if it has it not."""
    return getattr(torch.testing, name, Missing(f"torch.testing.{name}"))


def optims(records, dtypes=None):
    """A test for each optimiser and type."""
    pairs = itertools.product(records, dtypes or [torch.float32])
    return parametrize(
        "optim_info,dtype",
        [
            subtest((o, d), name=f"{o.optim_cls.__name__}_{kind_name(d)}")
            for o, d in pairs
        ],
    )


def kind_name(dtype):
    return str(dtype).removeprefix("torch.")


@contextlib.contextmanager
def default_type(dtype):
    """Another default type, for a while."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def same_draws():
    """A block after which draws go on as if it had not been."""
    before = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(before)


@contextlib.contextmanager
def file_name(*args, **options):
    """The name of a file that is removed afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, "file")


def quiet(function):
    """A test that may warn."""

    @functools.wraps(function)
    def test(*args, **options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **options)

    return test


def checked(*names):
    """PyTorch's checks of derivatives, one after the other."""

    def check(*args, **options):
        if isinstance(args[0], unittest.TestCase):
            args = args[1:]
        options.pop("fast_mode", None)
        return all(getattr(torch.autograd, name)(*args, **options) for name in names)

    return check


def utilities():
    """``common_utils``: what is not borrowed from it."""
    words = (
        "bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128"
    )
    pairs = [(np.dtype(word), getattr(torch, word)) for word in words.split()]
    return dict(
        TestCase=TestCase, TestGradients=TestCase, subtest=subtest,
        parametrize=parametrize,
        instantiate_parametrized_tests=instantiate_parametrized_tests, load_tests=None,
        run_tests=lambda *args, **options: None, swap=lambda values: idle,
        suppress_warnings=quiet, freeze_rng_state=same_draws,
        gradcheck=checked("gradcheck"), gradgradcheck=checked("gradgradcheck"),
        set_default_dtype=default_type,
        _assertGradAndGradgradChecks=checked("gradcheck", "gradgradcheck"),
        numpy_to_torch_dtype_dict=dict(pairs) | {d.type: kind for d, kind in pairs},
        torch_to_numpy_dtype_dict={kind: d.type for d, kind in pairs},
        set_rng_seed=seed, TemporaryFileName=file_name,
        TemporaryDirectoryName=tempfile.TemporaryDirectory, dtype_name=kind_name,
        SEED=1234, TEST_NUMPY=True, TEST_SCIPY=True, IS_LINUX=True,
        IS_FILESYSTEM_UTF8_ENCODING=True, NO_MULTIPROCESSING_SPAWN=True, NumPy=np,
        GRADCHECK_NONDET_TOL=0.0, set_warn_always_context=contextlib.nullcontext,
        skipIfNoDill=skipping("dill"), scoped_load_inline=skipping("compiles C++"),
        dtype2prec_DONTUSE={torch.float: 1e-5, torch.double: 1e-5, torch.half: 1e-2},
        _TestParametrizer=object, **dict.fromkeys(NOTHING, idle),
    )  # fmt: skip


# Decorators of ``common_utils`` that say something about other machines.
NOTHING = (
    "skipIfNoSciPy skipIfNoLapack skipIfTorchDynamo xfailIfTorchDynamo skipIfMPS "
    "slowTest  skipIfRocm skipIfWindows xfailIfS390X skipIfCrossRef "
    "skipIfTorchInductor skipIfXpu  serialTest markDynamoStrictTest "
    "wrapDeterministicFlagAPITest skipIfLegacyJitExecutor  skipIfSlowGradcheckEnv "
    "skipCUDAMemoryLeakCheckIf slowTestIf unMarkDynamoStrictTest  skipIfNotRocm "
    "skipIfRocmArch skipIfRocmVersionLessThan gcIfJetson xfailIfLinux "
    "skipRocmIfTorchInductor"
).split()


def devices():
    """``common_device_type``, for the CPU."""
    elsewhere = "IfCUDA IfMPS IfXPU IfHPU IfPRIVATEUSE1".split()
    foreign = "onlyCUDA onlyMPS onlyXPU onlyAccelerator onlyCUDAAndPRIVATEUSE1".split()
    kinds = "supported unsupported any_one any_common_cpu_cuda_one none".split()
    return dict(
        dtypes=marking("dtypes"), dtypesIfCPU=marking("dtypes_cpu"),
        ops=marking("ops"), precisionOverride=marking("tolerances"),
        toleranceOverride=marking("tolerances"), tol=tol,
        deviceCountAtLeast=skipping("several devices"),
        largeTensorTest=skipping("memory"), get_all_device_types=lambda: ["cpu"],
        instantiate_device_type_tests=instantiate_device_type_tests,
        OpDTypes=types.SimpleNamespace(**{name: name for name in kinds}), onlyOn=idle,
        **{f"dtypes{where}": idle for where in elsewhere},
        **{name: skipping("another device") for name in foreign},
    )  # fmt: skip


def cuda():
    """``common_cuda`` where there is none."""
    return dict(
        tf32_on_and_off=idle,
        tf32_on=contextlib.nullcontext,
        tf32_off=contextlib.nullcontext,
        tf32_is_not_fp32=lambda: False,
        _get_magma_version=lambda: (0, 0),
    )
