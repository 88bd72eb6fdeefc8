"""Damaged and hostile files: each is refused by name, or is a file of the format.

Each of a few files is damaged in every way that is listed here: cut at every byte,
flipped, with wrong types, huge numbers, deep nesting and doubled names at every place
of its header and of its structure. None may take more than two seconds or 256 MB.
"""

import argparse
import copy
import io
import json
import math
import random
import signal
import tracemalloc
from contextlib import contextmanager, suppress

import numpy as np
import pytest

import lantern.torch as torch
from lantern.errors import ArgumentError, FileFormatError
from tests.torch.test_saving import file_of, same, written

STRUCTURE = "lantern.structure"


def examples():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU())
    weight = torch.nn.Parameter(torch.ones(2))
    plain = {"a": torch.arange(4.0).reshape(2, 2), "b": torch.ones(3) > 0}
    return {
        "tensors": without_structure(written(plain)),
        "a structure": written(
            {
                "state": model.state_dict(),
                "epoch": 3,
                "rest": [None, True, 1.5, "x", b"ab", (1, 2), {"s"}, np.arange(3)],
                "about": [torch.Size([2, 3]), torch.float32, torch.relu],
            }
        ),
        "parameters": written([weight, weight, torch.ones(0, 2)]),
        "a module": written({"model": model, "args": argparse.Namespace(lr=0.1)}),
    }


def parts_of(data):
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def without_structure(data):
    header, rest = parts_of(data)
    del header["__metadata__"]
    return file_of(header, rest)


EXAMPLES = examples()


@contextmanager
def two_seconds():
    """Fails if what is inside computes for longer, whatever else the machine does."""

    def late(*_):
        raise TimeoutError("two seconds of computing")

    before = signal.signal(signal.SIGVTALRM, late)
    signal.setitimer(signal.ITIMER_VIRTUAL, 2.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def loaded(data):
    with two_seconds():
        return torch.load(io.BytesIO(data), weights_only=False)


def check(data, *, must_fail=False):
    """A file is refused, or what it gives can be saved, and is the same again."""
    found, error = outcome(data)
    if error is None:
        assert not must_fail, found
        again = written(found)
        assert parts_of(written(loaded(again))) == parts_of(again)
    else:
        assert str(error).startswith(("torch.load: ", "Weights only load failed: "))
        assert len(str(error)) < 500


def outcome(data):
    """What a file gives, or the error by which it is refused."""
    try:
        return loaded(data), None
    except FileFormatError as error:
        return None, error


def places(x, path=()):
    """The path of every part of a JSON value."""
    yield path
    if isinstance(x, dict | list):
        for key, value in x.items() if isinstance(x, dict) else enumerate(x):
            yield from places(value, (*path, key))


def replaced(x, path, value):
    """A JSON value with another part at a path."""
    if not path:
        return value
    made = copy.copy(x)
    made[path[0]] = replaced(x[path[0]], path[1:], value)
    return made


def variants(data, value):
    """The file with a value in every place of its header, and of its structure."""
    header, rest = parts_of(data)
    for path in places(header):
        yield file_of(replaced(header, path, value), rest)
    packed = header.get("__metadata__", {}).get(STRUCTURE)
    if packed is not None:
        structure = json.loads(packed)
        for path in places(structure):
            text = json.dumps(replaced(structure, path, value))
            at = ("__metadata__", STRUCTURE)
            yield file_of(replaced(header, at, text), rest)


OTHERS = [
    None, True, False, 0, 1, -1, 2**31, 2**63 - 1, 2**63, 2**64, 10**40, 1.5, -0.0,
    math.inf, math.nan, "", "a", "F32", "\ud800", "x" * 1000, [], [1], ["a"], [[]],
    [0, 8], [1, 2, 3], {}, {"a": 1}, {"tensor": "a"}, {"list": "abc"}, {"size": ["a"]},
    {"size": [True]}, {"dtype": "<f4"}, {"dtype": ["f4"]}, {"parameter": ["a", 1]},
    {"dict": [[1, 2], [1, 3]]}, {"set": "ab"}, {"code": ["argparse", "Namespace", []]},
    {"object": ["os", "path", []]}, {"object": ["builtins", "type", []]},
    {"object": ["argparse", "Namespace", [[1, 2]]]}, {"dict": [[{"list": []}, 1]]},
    {"tensor": "a", "list": []}, {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
]  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
class TestEachFile:
    def test_is_a_file_of_the_format(self, name):
        with two_seconds():
            assert type(loaded(EXAMPLES[name])) in (dict, list)

    def test_is_refused_if_it_ends_too_early_or_too_late(self, name):
        data = EXAMPLES[name]
        for length in range(len(data)):
            check(data[:length], must_fail=True)
        for more in (b"\0", b"}", data):
            check(data + more, must_fail=True)

    def test_with_flipped_bytes(self, name):
        data, chance = EXAMPLES[name], random.Random(0)
        for at in range(len(data)):
            for other in (data[at] ^ (1 << chance.randrange(8)), chance.randrange(256)):
                check(data[:at] + bytes([other]) + data[at + 1 :])
        for _ in range(500):
            broken = bytearray(data)
            for at in chance.choices(range(len(data)), k=chance.choice([2, 5, 20])):
                broken[at] = chance.randrange(256)
            check(bytes(broken))

    @pytest.mark.parametrize("value", OTHERS, ids=lambda x: repr(x)[:30])
    def test_with_another_value_in_each_place(self, name, value):
        for damaged in variants(EXAMPLES[name], value):
            check(damaged)

    def test_with_bytes_moved_inserted_and_taken_out(self, name):
        data, chance = EXAMPLES[name], random.Random(1)
        for _ in range(500):
            start, end, to = sorted(chance.choices(range(len(data)), k=3))
            part = data[start:end]
            check(data[:start] + data[end:], must_fail=start < end)
            check(data[:to] + part + data[to:], must_fail=start < end)
            check(data[:start] + data[end:to] + part + data[to:])

    def test_with_names_that_come_twice(self, name):
        header, rest = parts_of(EXAMPLES[name])
        for key, entry in header.items():
            pair = f"{json.dumps(key)}: {json.dumps(entry)}"
            doubled = json.dumps(header).replace(pair, f"{pair}, {pair}", 1)
            check(file_of(doubled.encode(), rest), must_fail=True)
            for inner, value in entry.items():
                pair = f"{json.dumps(inner)}: {json.dumps(value)}"
                doubled = json.dumps(header).replace(pair, f"{pair}, {pair}")
                check(file_of(doubled.encode(), rest), must_fail=True)
        packed = header.get("__metadata__", {}).get(STRUCTURE, "")
        for at, letter in enumerate(packed):
            if letter == "{":
                kind = packed[at + 1 : packed.index(":", at)]
                doubled = f"{packed[: at + 1]}{kind}: 1, {packed[at + 1 :]}"
                text = replaced(header, ("__metadata__", STRUCTURE), doubled)
                check(file_of(text, rest), must_fail=True)

    def test_in_another_encoding(self, name):
        header, rest = parts_of(EXAMPLES[name])
        text = json.dumps(header)
        for encoding in ("utf-8-sig", "utf-16", "utf-16-le", "utf-32-be", "utf-7"):
            damaged = file_of(text.encode(encoding), rest)
            check(damaged, must_fail=encoding != "utf-7")
        for around in (" {}", "\n{}", "{}x", "{}\0", "[{}]", "{},", "/**/{}"):
            check(file_of(around.format(text).encode(), rest), must_fail=True)

    def test_with_a_header_that_only_looks_different(self, name):
        header, rest = parts_of(EXAMPLES[name])
        expected = loaded(EXAMPLES[name])
        for text in (
            json.dumps(header, indent=3),
            json.dumps(header, sort_keys=True) + "   ",
            json.dumps(dict(reversed(header.items()))),
        ):
            found = loaded(file_of(text.encode(), rest))
            if name == "tensors":
                found = dict(sorted(found.items()))
            assert parts_of(written(found)) == parts_of(written(expected))


HUGE = {
    "many digits": "9" * 900_000,
    "many digits behind a point": "0." + "3" * 900_000,
    "a large exponent": "1e" + "9" * 900_000,
    "many axes": "[" + "999999999," * 90_000 + "1]",
    "many axes of nothing": "[0" + ",9223372036854775807" * 45_000 + "]",
    "axes of nothing that do not fit": "[0, 9223372036854775807, 9223372036854775807]",
    "deep lists": "[" * 400_000 + "]" * 400_000,
    "deep dictionaries": '{"a":' * 150_000 + "1" + "}" * 150_000,
    "many empty lists": "[" + "[]," * 300_000 + "[]]",
    "many empty dictionaries": "[" + "{}," * 300_000 + "{}]",
    "a long text": '"' + "x" * 900_000 + '"',
    "escapes": '"' + "\\u00e9" * 150_000 + '"',
    "many names": "{" + ",".join(f'"{i}":0' for i in range(90_000)) + "}",
}
WHERE = {
    "the header": "%s",
    "an entry": '{"a": %s}',
    "a type": '{"a": {"dtype": %s, "shape": [2], "data_offsets": [0, 8]}}',
    "a shape": '{"a": {"dtype": "F32", "shape": %s, "data_offsets": [0, 8]}}',
    "a length": '{"a": {"dtype": "F32", "shape": [%s], "data_offsets": [0, 8]}}',
    "the offsets": '{"a": {"dtype": "F32", "shape": [2], "data_offsets": %s}}',
    "an offset": '{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, %s]}}',
    "the metadata": '{"__metadata__": %s}',
    "the structure": '{"__metadata__": {"lantern.structure": %s}}',
}
KINDS = "list tuple size dict ordered tensor parameter dtype set bytes object function"


def bombs():
    for where, text in WHERE.items():
        for huge, value in HUGE.items():
            yield f"{huge} in {where}", text % value
    for kind in KINDS.split():
        for huge, value in HUGE.items():
            packed = json.dumps(f'{{"{kind}": {value}}}')
            yield f"{huge} in a {kind}", WHERE["the structure"] % packed
    entry = '{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    many = ",".join(f'"{i}":{entry}' for i in range(15_000))
    yield "many tensors", "{" + many + ',"x":0}'
    inner = '{"list":[' * 100_000 + "]}" * 100_000
    yield "a deep structure", WHERE["the structure"] % json.dumps(inner)


@pytest.mark.parametrize(("name", "text"), [pytest.param(*b, id=b[0]) for b in bombs()])
def test_bombs_of_a_megabyte(name, text):
    check(file_of(text.encode(), bytes(8)))


def test_bombs_take_less_than_256_megabytes():
    ends = ("header", "structure", "list", "object")
    for name, text in bombs():
        if not (name.startswith("many") and name.endswith(ends)) or "digits" in name:
            continue
        data = file_of(text.encode(), bytes(8))
        tracemalloc.start()
        try:
            with suppress(FileFormatError):
                torch.load(io.BytesIO(data))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 256e6, name


def test_headers_of_every_length():
    """None is taken for a pickle, which begins with bytes like those of a length."""
    data = file_of({"a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}, b"\7")
    length = int.from_bytes(data[:8], "little")
    for more in range(2_000):
        longer = data[8 : 8 + length] + b" " * more
        found = loaded(len(longer).to_bytes(8, "little") + longer + b"\7")
        assert found["a"].tolist() == [7]


def test_a_byte_that_is_no_truth_value():
    header = {"a": {"dtype": "BOOL", "shape": [2], "data_offsets": [0, 2]}}
    same(loaded(file_of(header, b"\0\1")), {"a": torch.tensor([False, True])})
    with pytest.raises(FileFormatError, match=r"'a' has truth values .* above 1"):
        loaded(file_of(header, b"\0\2"))


def test_files_without_an_end_are_refused():
    for path in ("/dev/zero", "/dev/urandom"):
        with two_seconds(), pytest.raises(FileFormatError, match=path):
            torch.load(path)


class Slow(io.RawIOBase):
    """A file that gives a few bytes at a time."""

    def __init__(self, data):
        self.data = io.BytesIO(data)

    def readable(self):
        return True

    def readinto(self, room):
        part = self.data.read(min(3, len(room)))
        room[: len(part)] = part
        return len(part)


def test_files_that_give_a_part_at_a_time():
    data = EXAMPLES["parameters"]
    same(torch.load(Slow(data))[2], loaded(data)[2])


def test_a_file_that_is_open_as_text_is_refused_by_name():
    with pytest.raises(ArgumentError, match=r"is open as text. Open it with mode 'rb'"):
        torch.load(io.StringIO("12345678 and more"))


class TestSaving:
    """What is saved can be read again; what could not be is refused then."""

    def test_depth(self):
        nested, deepest = [], 0
        with pytest.raises(ArgumentError, match="nested too deep"):
            for deepest in range(1000):
                nested = [nested]
                data = written(nested)
                if deepest % 10 == 0:
                    torch.load(io.BytesIO(data))
        torch.load(io.BytesIO(data))
        assert deepest > 100

    def test_what_holds_itself(self):
        for x in ([], {}):
            x.update(a=x) if isinstance(x, dict) else x.append(x)
            with pytest.raises(ArgumentError, match="holds itself"):
                written({"x": x})

    def test_numbers_of_many_digits(self):
        same(loaded(written([10**3000, -(10**3000)])), [10**3000, -(10**3000)])
        with pytest.raises(ArgumentError, match=r"number at 'x.0' has 16610 bits"):
            written({"x": [10**5000]})

    def test_arrays_of_other_types(self):
        for kind in ("uint16", "uint32", "uint64", ">f4", ">i8", "bool"):
            x = np.arange(3).astype(kind)
            found = loaded(written({"x": x}))["x"]
            assert found.dtype == x.dtype.newbyteorder("=")
            np.testing.assert_array_equal(found, x)
        for x in (np.array(["a"]), np.array([{}]), np.ones(2) * 1j, np.longdouble(1)):
            with pytest.raises(ArgumentError, match=r"torch.save: the format has no"):
                written({"x": x})

    def test_names_that_no_encoding_has(self):
        found = loaded(written({"\ud800": torch.ones(1), "a": "\ud800"}))
        same(found, {"\ud800": torch.ones(1), "a": "\ud800"})
