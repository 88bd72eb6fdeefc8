"""What every test can ask for: the probe of a healthy library, and rules of its own.

The probe asks, after whatever a test did: is the next derivative right, has anything
of ours been left behind, is the interpreter as it was? The library is imported late, so
that the tests of ``lantern.cps`` run without the rest of it.
"""

import contextvars
import decimal
import doctest
import gc
import linecache
import os
import signal
import sys
import threading
import time
import types
import warnings
import weakref

import greenlet
import numpy as np
import pytest

# The tests' workers, and what they start, take one processor each. With a thread for
# every processor in each of them, PyTorch and BLAS wait for turns more than they work.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
# Machine code is compiled anew: what is found is what this process has made.
os.environ.setdefault("LANTERN_JIT_CACHE", "off")
# Programs of their own, which test_scripts.py runs.
collect_ignore_glob = ["torch_scripts/*"]
# What takes long, and what looks at the same thing a second time, in other modes, with
# faults or at random: `-m "not slow"` leaves it out. A file, a folder or one test.
SLOW = tuple(
    f"tests/{name}"
    for name in (
        "array_api/test_clients.py::test_functions_of_scipy "
        "checkers/test_checkers.py::test_stubs_are_as "
        "contract/test_docstring_examples.py::test_an_example "
        "contract/test_families contract/test_fault_injection contract/test_load "
        "contract/test_feature_pairs "
        "contract/test_files contract/test_memory contract/test_programs "
        "contract/test_site "
        "control/test_checkpoint.py::TestLoop::test_memory_grows "
        "core/test_operands cps/test_concurrency "
        "cps/test_depth cps/test_programs "
        "distributed/test_collectives.py::test_arrays_on_gpus "
        "distributed/test_collectives.py::test_what_nccl_cannot "
        "distributed/test_faults "
        "every_op/test_batching_every_op "
        "every_op/test_debug_every_op every_op/test_short_ways "
        "every_op/test_vmap_every_op examples/ "
        "onnx/test_export.py::test_gradients onnx/test_export.py::test_modules "
        "parallel/test_executor.py::test_the_same_bits "
        "parallel/test_executor.py::test_random "
        "rules/test_edges rules/test_numpy_on_numbers "
        "rules/test_where scipy/test_scipy.py::TestOdeint::test_values "
        "staging/test_derivatives.py::test_second "
        "staging/test_emit_c.py::test_random "
        "staging/test_tiers.py::test_a_second_process "
        "staging/test_trees.py::test_an_allocation_that_fails "
        "tensor/test_backends tensor/test_bits "
        "tensor/test_devices.py::TestTransfers::test_arrays_of_cupy "
        "tensor/test_numpy_on_devices tensor/test_random "
        "torch/test_both_faces torch/test_damaged_files torch/test_devices "
        "torch/test_distributed.py::test_every_collective "
        "torch/test_distributed.py::test_tensors_on_gpus "
        "torch/test_distributions torch/test_examples torch/test_grad_scaler "
        "torch/test_interrupted_steps torch/test_libraries torch/test_modules "
        "torch/test_of_torchvision.py::test_deformed "
        "torch/test_pickles torch/test_records torch/test_running "
        "torch/test_scripts torch/test_vmap "
        "transforms/test_transforms.py::test_three "
        "vectorizing/test_vmap_keywords "
        "vectorizing/test_vmap_numpy "
        "viz/test_viz.py::TestPlayer::test_files "
        "viz/test_viz.py::TestTree::test_a_deep_tree "
        "viz/test_viz.py::test_nothing_overlaps viz/test_viz.py::test_written"
    ).split()
)
# The modules whose objects are made for one derivative.
OURS = {
    f"lantern.{m}"
    for m in (
        *("core.value", "rules.number", "rules.noncommutative", "tensor.tensor"),
        *("transforms.reverse", "transforms.forward", "transforms.taylor"),
        *("transforms.custom_rule", "vectorizing.batched", "guards.environment"),
        *("control.no_grad", "control.checkpoint"),
        *("parallel.thread_team", "parallel.deferred", "parallel.task"),
    )
}


def pytest_addoption(parser):
    parser.addoption(
        "--backend",
        choices=("standin", "cupy"),
        default="standin",
        help="the arrays of tests on a device: of the stand-in for a GPU, or of CuPy",
    )


def pytest_ignore_collect(collection_path, config):
    """Leave out what is slow before it is imported, where nothing else is asked for."""
    if config.option.markexpr != "not slow":
        return None
    path = collection_path.relative_to(config.rootpath).as_posix()
    return f"{path}/".startswith(SLOW) or None


_generators = {}  # of each module with tests: those of random numbers, as they begin


def pytest_collection_modifyitems(items):
    """Mark what is slow, and note where the generators of each module begin."""
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker(pytest.mark.slow)
    for module in {i.module for i in items if isinstance(i, pytest.Function)}:
        _generators[module] = [
            (x.bit_generator, x.bit_generator.state)
            for x in vars(module).values()
            if isinstance(x, np.random.Generator)
        ]


@pytest.fixture(scope="session")
def backend(request):
    """The arrays on a device that tests compute with."""
    from tests.backends import BACKENDS

    return BACKENDS[request.config.getoption("--backend")]()


@pytest.fixture
def threads_switch_often():
    """Have threads take turns after each microsecond, so that they meet everywhere."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture
def meets(own_rules):
    """An operation: both halves wait for their counterparts in another thread."""
    from lantern.op import op

    barrier = threading.Barrier(2, timeout=20)

    @op
    def meets(x, /):
        barrier.wait()
        z_bar = yield x * x
        barrier.wait()
        yield z_bar * 2 * x

    return meets


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Find the tests without collecting garbage; set all that is made there aside.

    There it stays: no full collection looks at it, in a test or at the end.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


class _Circle:
    """What only a collection frees."""

    def __init__(self):
        self.itself = self


def collect():
    """Collect all garbage, also while another thread is about to.

    There a call of the collector does nothing, and says so to nobody.
    """
    for _ in range(1_000):
        circle = weakref.ref(_Circle())
        gc.collect()
        if circle() is None:
            return
        time.sleep(1e-3)
    raise TimeoutError("another thread has been collecting for a second")


def set_all_aside():
    """Let the collector, and who asks it, see what is made from now on and no more."""
    collect()
    gc.freeze()


class _Debugger(doctest._OutputRedirectingPdb):
    """doctest's: for each example it would look whether any file read has changed."""

    def reset(self):
        check, linecache.checkcache = linecache.checkcache, lambda: None
        try:
            super().reset()
        finally:
            linecache.checkcache = check


doctest._OutputRedirectingPdb = _Debugger


def pytest_sessionstart():
    """As at a terminal, also for tests in the background, where it is ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _callbacks():
    """Who is told of collections, besides hypothesis, which begins to look at some."""
    return [f for f in gc.callbacks if "hypothesis" not in (f.__module__ or "")]


def our_context():
    """The context variables of ours that do not have their defaults."""
    ours = (x for x in contextvars.copy_context().items() if "lantern." in x[0].name)
    empty = contextvars.Context()
    return {v.name: x for v, x in ours if x is not empty.run(v.get)}


def _settings():
    """What is set for all of lantern.torch, if it is there."""
    torch = sys.modules.get("lantern.torch")
    if torch is None:
        return None
    return (
        torch.get_default_dtype(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_num_threads(),
    )


def surroundings():
    """The state of the interpreter that a derivative must leave as it was."""
    return {
        "recursion limit": sys.getrecursionlimit(),
        "floating-point errors": np.geterr(),
        "warning filters": list(warnings.filters),
        "collector": (gc.isenabled(), gc.get_threshold(), _callbacks()),
        "signal handlers": [
            signal.getsignal(s) for s in (signal.SIGINT, signal.SIGALRM)
        ],
        "context": our_context(),
        "settings of lantern.torch": _settings(),
        "trace": (sys.gettrace(), sys.getprofile()),
        "greenlet": greenlet.getcurrent(),
    }


_passed = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Note whether the test passed: a failed one keeps its frames alive."""
    if call.when == "call":
        item.stash[_passed] = call.excinfo is None
    return (yield)


_before = pytest.StashKey[dict]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item):
    """Note how a test finds the interpreter; it draws what it would draw by itself."""
    item.stash[_before] = surroundings()
    for generator, state in _generators.get(getattr(item, "module", None), ()):
        generator.state = state
    return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item):
    """Name the test that leaves the interpreter otherwise than it found it."""
    result = yield
    if not item.stash.get(_passed, False):
        return result
    before, after = item.stash[_before], surroundings()
    del before["warning filters"]  # pytest itself puts them back after each test
    changed = [
        f"{k}: {before[k]} -> {after[k]}"
        for k in before
        if after[k] != before[k] and before[k] is not None  # it was not there yet
    ]
    if changed:
        pytest.fail("left behind by this test: " + "; ".join(changed), pytrace=False)
    return result


def is_suspended(x):
    """Whether an object is a greenlet with a body in it, and not an idle worker."""
    if not issubclass(type(x), greenlet.greenlet) or x.gr_frame is None:
        return False
    return x.gr_frame.f_code.co_name not in ("_work", "_relay")


def leftovers():
    """Tracked values, derivatives, rules and bodies alive that are not set aside."""
    from lantern.op import registry

    for thread in threading.enumerate():  # one that finds nothing to do ends by itself
        if thread.name == "lantern helper":
            thread.join(10)
    collect()
    rules = {op.rule.__code__ for op in registry.values()}
    return [
        x
        for x in gc.get_objects()
        if type(x).__module__ in OURS
        or (type(x) is types.GeneratorType and x.gi_code in rules)
        or is_suspended(x)
    ]


def check_answers():
    """The next derivatives are right, in both modes and in their mix."""
    from lantern import grad, jvp

    def forward(f):
        return lambda x: jvp(f, (x,), (1.0,))[1]

    assert grad(lambda x: x * x * x)(3.0) == 27.0
    assert forward(lambda x: x * x * x)(3.0) == 27.0
    for outer in (grad, forward):
        for inner in (grad, forward):
            assert outer(lambda x, d=inner: x * d(lambda y: x + y)(1.0))(1.0) == 1.0


@pytest.fixture
def probe(request):
    """Check after a test, and whenever it is called, that the library is healthy."""
    decimal.getcontext()  # made on first use, and then part of the context
    set_all_aside()  # what is alive now is not the test's
    before = surroundings()

    def check():
        check_answers()
        assert surroundings() == before
        assert leftovers() == []

    yield check
    if request.node.stash.get(_passed, False):
        check()


@pytest.fixture
def own_rules():
    """Let a test register rules of its own, and forget them afterwards.

    Rules of modules of the library that are imported meanwhile stay.
    """
    from lantern.core import operation

    tables = [vars(operation)[name] for name in ("registry", "by_code")]
    before = [dict(table) for table in tables]
    yield operation.registry
    for table, entries in zip(tables, before, strict=True):
        for key, found in list(table.items()):
            if not found.rule.__module__.startswith("lantern."):
                del table[key]
        table.update(entries)
