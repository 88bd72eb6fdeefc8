"""Files from anybody: each is read, or refused in words.

What each case takes, time and memory, is no test: measured by
``python -m tests.onnx.test_hostile_files``.
"""

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason='the extra "onnx" is not installed')

import lantern.onnx  # noqa: E402
import lantern.torch as torch  # noqa: E402
from lantern.errors import LanternError  # noqa: E402

HEAD = '<ir_version: 10, opset_import: ["": 20, "own": 1]>'
FLOATS = "(float[N] x) => (float[M] y)"


def parsed(text):
    return onnx.parser.parse_model(f"{HEAD} {text}")


def one(body, inputs="float[N] x"):
    """A file whose graph has this body, and makes y of x."""
    return parsed(f"f ({inputs}) => (float[M] y) {{ {body} }}").SerializeToString()


def with_weight(**fields):
    """A file with one initialiser, whose message has these fields."""
    model = parsed(f"f {FLOATS} {{ y = Add(x, w) }}")
    tensor = model.graph.initializer.add(name="w", **fields)
    return model, tensor


def weight(**fields):
    return with_weight(**fields)[0].SerializeToString()


def external(folder, location, **entries):
    """A file whose weight lies in another one."""
    model, tensor = with_weight(data_type=1, dims=[2], data_location=1)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    path = Path(folder) / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def linked(folder):
    inside = Path(folder) / "inside"
    inside.mkdir()
    (Path(folder) / "secret").write_bytes(bytes(8))
    (inside / "link").symlink_to(Path(folder) / "secret")
    return external(inside, "link")


def of_length(folder, count, **entries):
    (Path(folder) / "data").write_bytes(bytes(count))
    return external(folder, "data", **entries)


def piped(folder):
    os.mkfifo(Path(folder) / "pipe")
    return external(folder, "pipe")


def calling(depth, times):
    """Functions that call the next one, each so many times."""
    bodies = []
    for i in range(depth):
        calls = "".join(f"b{k} = own.f{i + 1}(b{k - 1}) " for k in range(1, times + 1))
        bodies.append(
            f'<opset_import: ["": 20, "own": 1], domain: "own"> '
            f"f{i} (b0) => (b{times}) {{ {calls} }}"
        )
    last = (
        f'<opset_import: ["": 20], domain: "own"> f{depth} (a) => (b) {{ b = Abs(a) }}'
    )
    return parsed(f"f {FLOATS} {{ y = own.f0(x) }} {' '.join(bodies)} {last}")


def circular():
    model = calling(2, 1)
    model.functions[1].node[0].op_type = "f0"
    return model.SerializeToString()


def doubling(turns):
    steps = "".join(f"a{i} = Concat<axis = 0>(a{i - 1}, a{i - 1}) "
                    for i in range(1, turns + 1))  # fmt: skip
    return one(f"a0 = Abs(x) {steps} y = Abs(a{turns})")


def kept(count):
    """Many values that are alive at a time."""
    steps = "".join(f"a{i} = ConstantOfShape(s) " for i in range(count))
    names = ", ".join(f"a{i}" for i in range(count))
    return one(f"s = Constant<value_ints = [5000000]>() {steps} y = Sum({names})")


def swapped():
    model = parsed(f"f {FLOATS} {{ a = Abs(x) y = Abs(a) }}")
    first, second = list(model.graph.node)
    second.input[0], first.input[0] = "a", "y"
    return model.SerializeToString()


def crowded():
    """Six megabytes of nodes that say nothing."""
    return (
        weight(data_type=1, dims=[1])[:0]
        + b"\x08\x0a\x3a"
        + varint(6 << 20)
        + (b"\x0a\x00" * (3 << 20))
    )


def varint(n):
    found = b""
    while n > 127:
        found += bytes([n & 127 | 128])
        n >>= 7
    return found + bytes([n])


BIG = "s = Constant<value_ints = [1000000, 1000000]>()"
LOOP = """c = Constant<value = bool {1}>()
    y = Loop (, c, x) <body = b (int64 i, bool go, float[N] a) => (bool on, float[N] b)
        { on = Identity(go) b = Neg(a) }>"""
# A file, and what the error says.
CASES = {
    "nothing": (lambda d: b"", "no ONNX model"),
    "another format": (lambda d: b"PK\3\4" + bytes(100), "no ONNX model"),
    "a folder": (lambda d: d, "is no file"),
    "a version to come": (
        lambda d: one("y = Abs(x)").replace(b"\x08\x0a", b"\x08\x7f", 1),
        "Install a newer onnx",
    ),
    "many fields": (lambda d: crowded(), "million fields"),
    "too large": (lambda d: weight(data_type=1, dims=[2], raw_data=bytes(2 << 20)),
                  "larger size"),
    "a shape without data": (lambda d: weight(data_type=1, dims=[1 << 40]), "damaged"),
    "a shape that overflows": (
        lambda d: weight(data_type=1, dims=[1 << 62, 1 << 62], raw_data=bytes(8)),
        "damaged",
    ),
    "a negative length": (lambda d: weight(data_type=1, dims=[-1]), r"shape \(-1,\)"),
    "data that do not fit": (
        lambda d: weight(data_type=1, dims=[3], raw_data=bytes(8)), "damaged"
    ),
    "a type to come": (lambda d: weight(data_type=99, dims=[1]), "type 99"),
    "a path upwards": (lambda d: external(d, "../data"), "outside of the model"),
    "a path from the root": (lambda d: external(d, "/etc/passwd"), "outside of the"),
    "a path through a link": (linked, "outside of the"),
    "no path": (lambda d: external(d, ""), "outside of the"),
    "a path with a zero": (lambda d: external(d, "a\0b"), "outside of the"),
    "a pipe": (piped, "is no file"),
    "a file that is not there": (lambda d: external(d, "data"), "not there"),
    "a file that is too short": (lambda d: of_length(d, 7), "has 7"),
    "an offset behind the end": (lambda d: of_length(d, 8, offset=1), "has 8"),
    "a negative offset": (lambda d: of_length(d, 8, offset=-4), "has 8"),
    "an offset that is no number": (lambda d: of_length(d, 8, offset="x"), "no number"),
    "another length": (lambda d: of_length(d, 8, length=4), "says 4"),
    "data beside bytes": (
        lambda d: external(d, "data").read_bytes(), "without a path"
    ),
    "an operator that nobody knows": (lambda d: one("y = Frobnicate(x)"), "Frobnicate"),
    "a domain without a version": (lambda d: one("y = com.me.F(x)"), "which version"),
    "an attribute that is not there": (lambda d: one("y = Abs<a = 1>(x)"), "attribute"),
    "a missing attribute": (lambda d: one("y = Concat(x, x)"), "attribute 'axis'"),
    "no graph": (lambda d: one("y = If(c)", "bool c"), "no graph"),
    "a cycle": (lambda d: swapped(), "cycle"),
    "a name made twice": (lambda d: one("y = Abs(x) y = Abs(x)"), "there already"),
    "a function that calls itself": (lambda d: circular(), "calls itself"),
    "functions that double": (lambda d: calling(30, 2).SerializeToString(), "million"),
    "functions that go deep": (lambda d: calling(99, 1).SerializeToString(), "64 deep"),
    "a large constant": (lambda d: one(f"{BIG} y = ConstantOfShape(s)"), "elements"),
    "a large expansion": (
        lambda d: one("s = Constant<value_ints = [99999999, 2]>() y = Expand(x, s)"),
        "elements",
    ),
    "a large tile": (
        lambda d: one("s = Constant<value_ints = [99999999]>() y = Tile(x, s)"),
        "elements",
    ),
    "a large range": (
        lambda d: one("""a = Constant<value_float = 0.0>()
            b = Constant<value_float = 1e15>() c = Constant<value_float = 1.0>()
            y = Range(a, b, c)"""),
        "elements",
    ),
    "a large pad": (
        lambda d: one("s = Constant<value_ints = [0, 999999999]>() y = Pad(x, s)"),
        "elements",
    ),
    "a large product": (
        lambda d: one("""s = Constant<value_ints = [1000000, 1]>()
            t = Constant<value_ints = [1, 1000000]>()
            a = ConstantOfShape(s) b = ConstantOfShape(t) y = MatMul(a, b)"""),
        "elements",
    ),
    "a large sum": (
        lambda d: one("""s = Constant<value_ints = [1000000, 1]>()
            a = ConstantOfShape(s) b = Transpose(a) y = Add(a, b)"""),
        "elements",
    ),
    "doubling": (lambda d: doubling(60), "elements"),
    "many values": (lambda d: kept(20), "elements"),
    "a loop without end": (lambda d: one(LOOP), "turns"),
}  # fmt: skip


def tried(case, folder):
    """Load a file and run it."""
    source = CASES[case][0](folder)
    model = lantern.onnx.load(source, size=1 << 20 if case == "too large" else 2 << 30)
    with torch.no_grad():
        return model(*[np.ones(2, np.float32)] * len(model.input_names))


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused_in_words(case, tmp_path):
    with pytest.raises(LanternError, match=CASES[case][1]) as refused:
        tried(case, tmp_path)
    assert str(refused.value).startswith("onnx")


def good():
    """A small file with weights, a constant, a branch, and attributes."""
    return parsed("""
        f (float[2, 3] x, bool up) => (float[2, 2] y)
        <float[3, 2] w = {1, 2, 3, 4, 5, 6}, int64[2] s = {2, 2}> {
            a = Gemm<alpha = 0.5, transA = 0>(x, w)
            b = If (up) <
                then_branch = g () => (float[2, 2] c) { c = Relu(a) },
                else_branch = h () => (float[2, 2] d) { d = Softmax<axis = 1>(a) }>
            y = Reshape(b, s)
        }""").SerializeToString()


def survives(data):
    """Whether a file is read and run, and not refused as files are."""
    try:
        model = lantern.onnx.load(data)
        with torch.no_grad():
            model(np.ones((2, 3), np.float32), np.array(True))
    except LanternError:
        return False
    return True


def test_a_file_that_is_cut_off_is_refused():
    data = good()
    assert survives(data)
    assert sum(survives(data[:n]) for n in range(len(data))) < len(data) // 10


@pytest.mark.parametrize("seed", range(8))
def test_damaged_bytes_are_read_or_refused(seed):
    rng = np.random.default_rng(seed)
    data = np.frombuffer(good(), np.uint8)
    for _ in range(60):
        damaged = data.copy()
        places = rng.integers(0, len(data), rng.integers(1, 4))
        damaged[places] = rng.integers(0, 256, len(places))
        survives(damaged.tobytes())


def main():
    """Print what each case takes."""
    for case in sys.argv[1:] or CASES:
        child = os.fork()
        if not child:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            with tempfile.TemporaryDirectory() as folder:
                source = CASES[case][0](Path(folder))
                start = time.perf_counter()
                try:
                    lantern.onnx.load(source)(np.ones(2, np.float32))
                except Exception as error:
                    words = f"{type(error).__name__}: {error}"[:60]
            seconds = time.perf_counter() - start
            more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            print(
                f"{seconds:6.2f} s {more / 1024:7.1f} MB  {case}: {words}", flush=True
            )
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
