"""PyTorch's own tests of several processes, of the installed copy, under Lantern.

``python tests/conformance/torch_distributed.py [NAME ...]`` takes the bodies that need
no GPU from ``torch/testing/_internal/distributed/distributed_test.py``, runs them in
three processes one after another, and prints what came of each; with ``--write`` the
counts go into docs/torch.md. A test that fails ends its processes; the next ones begin
afresh.
"""

import ast
import contextlib
import copy
import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RANKS = 3
GPU = "skip_if_no_gpu skip_if_lt_x_gpu nccl_skip_if_lt_x_gpu require_n_gpus_for_nccl"
BACKENDS = {
    "gpu": {"nccl", "gloo", "ucc"},
    "cuda": {"nccl", "gloo", "ucc"},
    "ddp": {"nccl", "gloo", "ucc"},
    "subgroup": {"nccl", "gloo", "ucc"},
    "plugin": set(),
}
WITHOUT = {
    "allgather_coalesced": {"nccl", "mpi", "ucc"},
    "reduce": set(),
    "sendrecv anysource": {"nccl", "ucc"},
    "cpu barrier": {"nccl", "ucc"},
}
# Why what fails does: by words of the error, or of the test's name.
REASONS = json.loads((Path(__file__).parent / "torch_distributed.json").read_text())


def source():
    """The text of PyTorch's file, and where it lies."""
    folder = importlib.util.find_spec("torch").submodule_search_locations[0]
    return Path(folder, "testing/_internal/distributed/distributed_test.py").read_text()


def base_class(tree):
    (outer,) = [
        n
        for n in tree.body
        if isinstance(n, ast.ClassDef) and n.name == "DistributedTest"
    ]
    (inner,) = [n for n in outer.body if isinstance(n, ast.ClassDef)]
    return inner


def skips(condition):
    """Whether a condition of PyTorch's decorators leaves a test out for processors."""
    return all(skips_for(backend, condition) for backend in ("gloo", "mpi"))


def skips_for(backend, condition):
    """Whether it does so for one of the backends."""
    names = {
        "BACKEND": backend,
        "IS_FBCODE": False,
        "IS_SANDCASTLE": False,
        "IS_LINUX": True,
        "IS_MACOS": False,
        "IS_WINDOWS": False,
        "TEST_WITH_ROCM": False,
        "HAS_TORCHVISION": False,
        "sys": sys,
        "DistTestCases": types.SimpleNamespace(
            backend_feature=BACKENDS, skip_collective=WITHOUT
        ),
        "CUDA_PROFILING_SUPPORTED_BACKENDS": ["gloo", "mpi", "nccl"],
    }
    try:
        return bool(eval(ast.unparse(condition), {**names, "torch": None}))
    except Exception:
        return True


def left_out(test):
    """Whether a test needs a GPU, another backend, or PyTorch leaves it out itself."""
    for decorator in test.decorator_list:
        text = ast.unparse(decorator)
        if any(word in text for word in GPU.split()) or "requires_nccl" in text:
            return True
        if text.startswith(("unittest.skip(", "skip_but_pass_in_sandcastle(")):
            return True
        if text.startswith(("unittest.skipIf(", "skip_but_pass_in_sandcastle_if(")):
            if skips(decorator.args[0]):
                return True
        elif text.startswith("require_backend_is_available("):
            names = eval(
                ast.unparse(decorator.args[0]),
                {"DistTestCases": types.SimpleNamespace(backend_feature=BACKENDS)},
            )
            if "gloo" not in names:
                return True
        elif (
            text.startswith(("require_world_size(4", "require_exact_world_size(4"))
            or text == "skipIfNoTorchVision"
        ):
            return True
    return "cuda" in test.name or "nccl" in test.name


def chosen(tree):
    """The names of the tests that are for processors."""
    tests = [n for n in base_class(tree).body if isinstance(n, ast.FunctionDef)]
    return [n.name for n in tests if n.name.startswith("test_") and not left_out(n)]


# --- inside the processes -----------------------------------------------------------


class Missing:
    """What could not be imported: an error when it is used."""

    def __init__(self, name):
        self.name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Missing(f"{self.name}.{name}")

    def __call__(self, *args, **options):
        raise NotImplementedError(f"missing: {self.name}")


class Tolerant(ast.NodeTransformer):
    """Imports that fail give a ``Missing``; tests lose their decorators."""

    def guarded(self, node, name, what):
        fallback = ast.parse(f"{name} = __missing__({what!r})").body
        handler = ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, fallback)
        return ast.Try([node], [handler], [], [])

    def visit_ImportFrom(self, node):
        return [
            self.guarded(
                ast.ImportFrom(node.module, [alias], node.level),
                alias.asname or alias.name,
                f"{node.module}.{alias.name}",
            )
            for alias in node.names
        ]

    def visit_Import(self, node):
        return [
            self.guarded(ast.Import([a]), a.asname or "_unused", a.name)
            for a in node.names
        ]

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        kept = "debug_levels parametrize property method contextmanager setter no_grad"
        node.decorator_list = [
            d
            for d in node.decorator_list
            if any(word in ast.unparse(d) for word in kept.split())
        ]
        return node


def debug_levels(levels):
    """Once for each level."""

    def decorate(test):
        @functools.wraps(test)
        def run(self, *args, **options):
            for level in levels:
                os.environ["TORCH_DISTRIBUTED_DEBUG"] = level
                test(self, *args, **options)
                self._barrier()
            os.environ.pop("TORCH_DISTRIBUTED_DEBUG", None)

        return run

    return decorate


def parametrize(names, values):
    """Once for each value."""

    def decorate(test):
        @functools.wraps(test)
        def run(self, *args, **options):
            for value in values:
                test(self, *args, **{names: value}, **options)
                self._barrier()

        return run

    return decorate


def loaded(tree):
    """PyTorch's module with ours in place of torch."""
    import torch
    import torch.distributed as dist

    def equal(x, y, msg=None, *, atol=None, rtol=None, **more):
        if isinstance(x, torch.Tensor) or isinstance(y, torch.Tensor):
            x, y = (
                v if isinstance(v, torch.Tensor) else torch.as_tensor(v) for v in (x, y)
            )
            torch.testing.assert_close(
                x,
                y,
                atol=1e-5 if atol is None else atol,
                rtol=1.3e-6 if rtol is None else rtol,
                check_dtype=False,
            )
        elif isinstance(x, list | tuple) and isinstance(y, list | tuple):
            assert len(x) == len(y), (x, y)
            for a, b in zip(x, y, strict=True):
                equal(a, b)
        elif isinstance(x, float) or isinstance(y, float):
            assert abs(x - y) <= 1e-5 + 1.3e-6 * abs(y), (x, y)
        else:
            assert x == y, (x, y)

    class Base(unittest.TestCase):
        def assertEqual(self, x, y, msg=None, **more):
            equal(x, y, msg, **more)

        def assertNotEqual(self, x, y, *rest, **more):
            try:
                equal(x, y)
            except AssertionError:
                return
            raise AssertionError(f"{x} equals {y}")

        def assertGreaterAlmostEqual(self, x, y, *rest, **more):
            assert x >= y - 0.5, (x, y)

        def assertLessAlmostEqual(self, x, y, *rest, **more):
            assert x <= y + 0.5, (x, y)

        def assertEqualIgnoreType(self, x, y, *rest, **more):
            equal(x, y)

        def run_test(self, *rest):
            pass

    @contextlib.contextmanager
    def captured():
        import io

        out, error = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            yield out, error

    tree = Tolerant().visit(copy.deepcopy(tree))
    wanted = (ast.ClassDef, ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Try)
    body = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "TestDistBackend":
            continue
        guard = [ast.Pass()]
        handler = ast.ExceptHandler(ast.Name("Exception", ast.Load()), None, guard)
        plain = isinstance(node, wanted) or ast.unparse(node).startswith("BACKEND")
        body.append(node if plain else ast.Try([node], [handler], [], []))
    tree.body = body
    ast.fix_missing_locations(tree)
    module = types.ModuleType("distributed_test")
    sys.modules["distributed_test"] = module
    identity = lambda *a, **k: lambda test: test  # noqa: E731
    module.__dict__["__missing__"] = Missing
    code = compile(tree, "distributed_test.py", "exec")
    internal = types.ModuleType("torch.testing._internal.common_distributed")
    internal.__dict__.update(
        {
            "MultiProcessTestCase": Base,
            "DistTestCases": types.SimpleNamespace(
                backend_feature=BACKENDS, skip_collective=WITHOUT
            ),
            "with_dist_debug_levels": debug_levels,
            "captured_output": captured,
            "TEST_SKIPS": {},
            **dict.fromkeys(
                "require_n_gpus_for_nccl_backend requires_nccl_version "
                "skip_if_lt_x_gpu nccl_skip_if_lt_x_gpu".split(),
                identity,
            ),
            "verify_ddp_error_logged": lambda model, text: None,
        }
    )
    common = types.ModuleType("torch.testing._internal.common_utils")
    common.__dict__.update(
        {
            "FILE_SCHEMA": "file://",
            "IS_LINUX": True,
            **dict.fromkeys(
                "IS_FBCODE IS_MACOS IS_SANDCASTLE IS_WINDOWS TEST_WITH_ROCM".split(),
                False,
            ),
            "instantiate_parametrized_tests": lambda cls: cls,
            "parametrize": parametrize,
            "skip_but_pass_in_sandcastle": identity,
            "skip_but_pass_in_sandcastle_if": identity,
            "TemporaryFileName": temporary,
        }
    )
    for part in (internal, common):
        sys.modules[part.__name__] = part
    exec(code, module.__dict__)
    cls = module.DistributedTest._DistTestBase

    class Tests(cls, Base):
        @property
        def world_size(self):
            return str(dist.get_world_size())

        @property
        def rank(self):
            return dist.get_rank()

        def _barrier(self, *rest, **more):
            dist.barrier()

    return Tests


@contextlib.contextmanager
def temporary(*rest, **more):
    with tempfile.NamedTemporaryFile(delete=False) as file:
        pass
    try:
        yield file.name
    finally:
        Path(file.name).unlink(missing_ok=True)


def work(names, report):
    """Run tests, in one of the processes; the first writes what came of each."""
    from datetime import timedelta

    import torch
    import torch.distributed as dist

    os.environ["BACKEND"] = "gloo"
    tests = loaded(ast.parse(source_text()))
    dist.init_process_group("gloo", timeout=timedelta(seconds=10))
    folder = os.environ["TEMP_DIR"]
    for name in names:
        for part in ("barrier", "test_dir", "init_dir"):
            path = Path(folder, part)
            path.mkdir(exist_ok=True)
        dist.barrier()
        if dist.get_rank() == 0:
            for file in Path(folder, "test_dir").glob("*"):
                file.unlink()
        torch.manual_seed(0)
        dist.barrier()
        test = tests(name)
        error = ""
        try:
            getattr(test, name)()
        except unittest.SkipTest as skip:
            error = f"skipped: {skip}"
        except BaseException as raised:
            error = f"{type(raised).__name__}: {raised}"
            import traceback

            frames = traceback.format_exc().splitlines()
            path = Path(report).with_suffix(f".{dist.get_rank()}.txt")
            path.write_text("\n".join([name, *frames]))
            if "is lost" not in error:
                note(report, name, error)
            os._exit(3)  # the others may wait for this one
        torch.set_default_dtype(torch.float32)
        dist.barrier()
        if dist.get_rank() == 0:
            note(report, name, error)


def note(report, name, error):
    with open(report, "a") as file:
        file.write(json.dumps([name, error[:300]]) + "\n")


def source_text():
    return Path(os.environ["TORCH_TESTS"]).read_text()


# --- the command --------------------------------------------------------------------


def run(names):
    """What came of each test: "" for passed."""
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "distributed_test.py")
        text.write_text(source())
        while remaining := [name for name in names if name not in outcomes]:
            report = Path(folder, "report")
            report.write_text("")
            variables = {
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "TEMP_DIR": folder,
                "TORCH_TESTS": str(text),
            }
            command = [
                *(sys.executable, "-m", "lantern.torch.distributed.run"),
                *("--nproc_per_node", str(RANKS), __file__, "--work", str(report)),
                *remaining,
            ]
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(
                    command,
                    env=variables,
                    capture_output=True,
                    timeout=240,
                    check=False,
                )
            before = len(outcomes)
            for name, error in map(json.loads, report.read_text().splitlines()):
                if name in outcomes:
                    continue
                outcomes.setdefault(name, error)
                print(name, error[:150].replace("\n", " ") or "passed", flush=True)
            left = [name for name in remaining if name not in outcomes]
            if left and len(outcomes) == before:
                said = "".join(
                    f"{path.read_text()}\n"
                    for path in Path(folder).glob("report.*.txt")
                )
                errors = re.findall(r"^\w*(?:Error|Exception)\b.*", said, re.MULTILINE)
                first = [e for e in errors if "is lost" not in e and "left" not in e]
                outcomes[left[0]] = (first or errors or ["ended without a word"])[0]
                if os.environ.get("SHOW"):
                    print(said)
            for path in Path(folder).glob("report.*.txt"):
                path.unlink()
    return outcomes


def main():
    tree = ast.parse(source())
    names = [a for a in sys.argv[1:] if not a.startswith("-")] or chosen(tree)
    began = time.monotonic()
    outcomes = run(names)
    failed = {name: text for name, text in outcomes.items() if text}
    for name, text in sorted(failed.items()):
        print(name, "|", text[:200].replace("\n", " "))
    passed = len(outcomes) - len(failed)
    print(f"{passed} of {len(outcomes)} pass, in {time.monotonic() - began:.0f} s")
    if "--write" in sys.argv:
        write(passed, outcomes, failed)


def write(passed, outcomes, failed):
    """Put the counts into docs/torch.md."""
    page = ROOT / "docs/torch.md"
    begin, end = "<!-- distributed: begin -->", "<!-- distributed: end -->"
    before, _, rest = page.read_text().partition(begin)
    rows = [f"| `{name}` | {REASONS.get(name, '')} |" for name in sorted(failed)]
    text = "\n".join(
        [
            f"{passed} of {len(outcomes)} pass, in {RANKS} processes.",
            "",
            "| what does not | why |",
            "|---|---|",
            *rows,
        ]
    )
    page.write_text(f"{before}{begin}\n{text}\n{end}{rest.partition(end)[2]}")


if __name__ == "__main__":
    if "--work" in sys.argv:
        at = sys.argv.index("--work")
        work(sys.argv[at + 2 :], sys.argv[at + 1])
    else:
        main()
