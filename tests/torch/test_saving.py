"""Files of tensors: there and back, exchanged with PyTorch's users, damaged."""

import contextlib
import dataclasses
import enum
import io
import json
import os
import random

import numpy as np
import pytest

import lantern.torch as torch
from lantern.errors import FileFormatError
from lantern.torch.file_format import TYPES, file_bytes


def written(obj):
    file = io.BytesIO()
    torch.save(obj, file)
    return file.getvalue()


def again(obj):
    return torch.load(io.BytesIO(written(obj)))


def same(a, b):
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, list | tuple):
        for x, y in zip(a, b, strict=True):
            same(x, y)
    else:
        assert a == b


KINDS = "bool uint8 int8 int16 int32 int64 float16 float32 float64".split()


@pytest.mark.parametrize(
    "obj",
    [
        torch.arange(6.0).reshape(2, 3),
        torch.tensor(3),
        torch.zeros(0, 2),
        torch.ones(3, 2).T,
        {n: torch.ones(3, dtype=getattr(torch, n)) for n in KINDS},
        {"a": 1, 2: [None, True, "x", 1.5, float("inf"), (1, 2)], "t": torch.ones(2)},
        {"shape": torch.Size([2, 3]), "dtype": torch.float64, "a.b": {"c": [3]}},
        {"a": {"b": torch.ones(1)}, "a.b": torch.zeros(1)},
        [],
        {},
        {"__metadata__": torch.ones(1)},
    ],
)
def test_there_and_back(obj):
    same(again(obj), obj)


def test_training_goes_on_from_a_file(tmp_path):
    def parts():
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 0.1, total_steps=20)
        return model, optimiser, schedule

    def run(model, optimiser, schedule, steps):
        losses = []
        for i in range(steps):
            x = torch.arange(12.0).reshape(4, 3) / (i + 5)
            loss = (model(x) ** 3).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
            losses.append(loss.item())
        return losses

    first = parts()
    run(*first, 3)
    path = tmp_path / "checkpoint.pt"
    names = ("model", "optimiser", "schedule")
    torch.save(
        {n: p.state_dict() for n, p in zip(names, first, strict=True)} | {"epoch": 3},
        path,
    )
    found = torch.load(path, map_location="cpu", weights_only=True)
    second = parts()
    for name, part in zip(names, second, strict=True):
        part.load_state_dict(found[name])
    assert found["epoch"] == 3
    assert run(*first, 4) == run(*second, 4)


def test_files_are_exchanged_with_pytorch(tmp_path):
    theirs = pytest.importorskip("torch", reason="whose users exchange such files")
    exchange = pytest.importorskip("safetensors.torch", reason="how they do")
    pytest.importorskip("ml_dtypes", reason="where bfloat16 comes from")
    path = tmp_path / "model.safetensors"
    model = theirs.nn.Linear(3, 2)
    tensors = {k: v.clone() for k, v in model.state_dict().items()}
    tensors["brain"] = theirs.tensor([1.5, -2.0, 3e38]).bfloat16()
    exchange.save_file(tensors, path)
    found = torch.load(path)
    assert found["brain"].dtype == torch.bfloat16
    np.testing.assert_array_equal(
        found.pop("brain").float().numpy(), tensors["brain"].float().numpy()
    )
    mine = torch.nn.Linear(3, 2)
    mine.load_state_dict(found)
    torch.save(mine.state_dict(), path)
    back = exchange.load_file(path)
    for name, x in model.state_dict().items():
        np.testing.assert_array_equal(back[name].numpy(), x.detach().numpy())


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "a.pt"
    torch.save(torch.ones(2), path)
    before = path.read_bytes()

    def fails(*args):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(OSError, match="no space"):
        torch.save(torch.zeros(1000), path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.pt"]


def test_what_only_a_pickle_could_hold_is_refused():
    with pytest.raises(TypeError, match=r"class function at 'model'.*state_dict"):
        torch.save({"model": lambda x: x}, io.BytesIO())

    class Inner(torch.nn.Module):
        pass

    with pytest.raises(TypeError, match=r"Inner at 'model' is defined inside"):
        torch.save({"model": Inner()}, io.BytesIO())
    with pytest.raises(TypeError, match="complex"):
        torch.save(torch.ones(1) * 1j, io.BytesIO())


class Tied(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table = torch.nn.Embedding(5, 3)
        self.linear = torch.nn.Linear(3, 5)
        self.linear.weight = self.table.weight
        self.activation = torch.nn.functional.gelu
        self.rest = {"sizes": (3, 5), "names": {"a"}}
        self.register_buffer("scale", torch.ones(5))

    def forward(self, x):
        return self.scale * self.linear(self.activation(self.table(x)))


@pytest.mark.parametrize("size", [640, 896, 1152, 1408])
def test_a_file_whose_first_bytes_are_those_of_a_pickle(size):
    key = "a"
    while int.from_bytes(written({key: torch.ones(1)})[:8], "little") < size:
        key += "a"
    assert written({key: torch.ones(1)})[:8] == size.to_bytes(8, "little")
    assert list(again({key: torch.ones(1)})) == [key]


def test_a_state_keeps_the_versions_of_its_modules():
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Linear(2, 1))
    found = again({"model": model.state_dict()})["model"]
    assert found._metadata == model.state_dict()._metadata
    assert found._metadata["0"] == {"version": 2}
    model.load_state_dict(found)


class Counting(torch.nn.Linear):
    """A module that says itself what is kept of it."""

    def __getstate__(self):
        return {**super().__getstate__(), "saved": True}

    def __setstate__(self, state):
        super().__setstate__(state)
        self.loaded = True


def test_a_whole_module_is_asked_for_its_state():
    file = io.BytesIO(written(Counting(1, 1)))
    found = torch.load(file, weights_only=False)
    assert found.saved
    assert found.loaded


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Options:
    colour: Colour
    more: dict


class Ending:
    def __del__(self):
        raise AssertionError("run by a file")


class TestObjects:
    def test_come_back_if_their_classes_are_allowed(self):
        more = {"x": torch.ones(2), "on": torch.device("cpu")}
        kept = written(Options(Colour.RED, more))
        with torch.serialization.safe_globals([Options, Colour]):
            found = torch.load(io.BytesIO(kept))
        assert isinstance(found, Options)
        assert found.colour is Colour.RED
        same(found.more, more)

    @pytest.mark.parametrize("weights_only", [True, False])
    @pytest.mark.parametrize("obj", [Options(None, {}), Colour.RED])
    def test_are_refused_otherwise(self, obj, weights_only):
        file = io.BytesIO(written([obj]))
        with pytest.raises(RuntimeError, match=rf"{type(obj).__name__}\. Allow it"):
            torch.load(file, weights_only=weights_only)

    def test_constraints_and_distributions_come_back_if_classes_need_not_be_known(self):
        known = torch.distributions.constraints
        normal = torch.distributions.Normal(torch.zeros(2), 1.0)
        kept = written([known.positive, known.simplex, known.interval(0, 2), normal])
        found = torch.load(io.BytesIO(kept), weights_only=False)
        assert [repr(x) for x in found[:3]] == [
            "GreaterThan(lower_bound=0.0)",
            "Simplex()",
            "Interval(lower_bound=0, upper_bound=2)",
        ]
        assert not found[0].check(torch.tensor(-1.0))
        x = torch.tensor([0.5, 1.0])
        same(found[3].log_prob(x), normal.log_prob(x))
        with pytest.raises(RuntimeError, match="Say weights_only=False, or allow it"):
            torch.load(io.BytesIO(kept))

    def test_none_is_made_of_a_class_that_does_more(self):
        with pytest.raises(TypeError, match="could only be saved as code"):
            written([slice(3)])
        structure = json.dumps({"list": [{"object": [__name__, "Ending", []]}]})
        text = file_bytes({}, {"format": "pt", "lantern.structure": structure})
        with (
            torch.serialization.safe_globals([Ending]),
            pytest.raises(RuntimeError, match="no class of objects in files"),
        ):
            torch.load(io.BytesIO(text))


class TestWholeModules:
    def saved(self):
        file, model = io.BytesIO(), Tied()
        torch.save({"model": model}, file)
        file.seek(0)
        return file, model

    @pytest.mark.parametrize("how", ["weights_only", "safe_globals"])
    def test_come_back_if_their_class_is_allowed(self, how):
        file, model = self.saved()
        if how == "weights_only":
            found = torch.load(file, weights_only=False)["model"]
        else:
            with torch.serialization.safe_globals([Tied]):
                found = torch.load(file)["model"]
        x = torch.tensor([1, 4])
        assert torch.equal(found(x), model(x))
        assert found.linear.weight is found.table.weight
        assert isinstance(found.linear.weight, torch.nn.Parameter)
        assert found.rest == model.rest
        assert len(list(found.parameters())) == 2

    def test_are_refused_otherwise(self):
        file, _ = self.saved()
        with pytest.raises(RuntimeError, match=r"Tied\. Say weights_only=False"):
            torch.load(file)

    def test_are_refused_if_their_class_is_unknown_or_no_module(self):
        file, _ = self.saved()
        data = file.getvalue()
        for name, message in (("Tidy", "does not have"), ("pytest", "no class")):
            other = data.replace(b'"Tied', f'"{name}'.encode(), 1)
            length = int.from_bytes(data[:8], "little") + len(other) - len(data)
            changed = io.BytesIO(length.to_bytes(8, "little") + other[8:])
            with pytest.raises(RuntimeError, match=message):
                torch.load(changed, weights_only=False)


def file_of(header, data=b""):
    packed = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(packed).to_bytes(8, "little") + packed + data


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
DAMAGED = {
    "empty": (b"", "cut off"),
    "a pickle": (b"PK\x03\x04rest of it", "damaged archive"),
    "a long header": (b"\xff" * 8 + b"{}", "cut off"),
    "no JSON": (file_of(b"{nope"), "damaged header"),
    "no text": (file_of(b"\xff\xfe\x00{}"), "damaged header"),
    "a list": (file_of([1]), "no dictionary"),
    "deep": (file_of(b"[" * 100_000), "damaged header"),
    "a name twice": (
        file_of(
            b'{"a":' + json.dumps(ENTRY).encode() + b',"a":'
            + json.dumps(ENTRY).encode() + b"}",
            bytes(8),
        ),
        "twice",
    ),
    "a bomb": (
        file_of({"a": {**ENTRY, "shape": [10**12, 10**6], "data_offsets": [0, 8]}}),
        "does not take",
    ),
    "too little data": (file_of({"a": ENTRY}, bytes(4)), "cut off"),
    "too much data": (file_of({"a": ENTRY}, bytes(12)), "too long"),
    "an overlap": (file_of({"a": ENTRY, "b": ENTRY}, bytes(8)), "overlap"),
    "a negative size": (
        file_of({"a": {**ENTRY, "shape": [-2], "data_offsets": [8, 0]}}, bytes(8)),
        "impossible",
    ),
    "an unknown type": (file_of({"a": {**ENTRY, "dtype": "X"}}, bytes(8)), "type"),
    "half an entry": (file_of({"a": {"dtype": "F32"}}), "incompletely"),
    "a structure without its tensor": (
        file_of({"__metadata__": {"lantern.structure": '{"tensor": "a"}'}}),
        "has not the tensor",
    ),
    "a broken structure": (
        file_of({"__metadata__": {"lantern.structure": '{"code": []}'}}),
        "structure",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_refused(name):
    data, words = DAMAGED[name]
    with pytest.raises(FileFormatError, match=words):
        torch.load(io.BytesIO(data))


def test_no_flipped_byte_does_worse_than_an_error():
    data = written({"a": torch.arange(4.0), "epoch": 3, "b": [torch.ones(2)]})
    chance = random.Random(0)
    for _ in range(300):
        broken = bytearray(data)
        for _ in range(chance.choice([1, 1, 3])):
            broken[chance.randrange(len(broken))] = chance.randrange(256)
        cut = chance.choice([len(broken), chance.randrange(len(broken))])
        with contextlib.suppress(FileFormatError):
            torch.load(io.BytesIO(bytes(broken[:cut])))


def test_a_file_is_what_the_package_writes():
    package = pytest.importorskip("safetensors.numpy", reason="the format's package")
    arrays = {
        f"{name}.{i}": np.arange(3 * i).reshape(3, i).astype(kind)
        for i, (name, kind) in enumerate(TYPES.items())
    }
    arrays |= {"none": np.ones((0, 3), np.float32), "one": np.array(3.0), 'ü"\n': A}
    for metadata in ({"format": "pt"}, {"note": 'a"b\u2028ü\x01'}):
        assert file_bytes(arrays, metadata) == package.save(arrays, metadata)


A = np.ones(2, np.float32)
