"""PyTorch's own files: read as data, never run; damaged and hostile ones are refused.

The files of the first half are made by PyTorch, where it is installed; those of the
second half by hand, so that they are what PyTorch would never write.
"""

import io
import mmap
import pickle
import random
import re
import struct
import tracemalloc
import zipfile
from collections import OrderedDict
from contextlib import contextmanager, suppress

import numpy as np
import pytest

import lantern.torch as torch
from lantern.errors import FileFormatError, LanternError
from tests.torch.test_damaged_files import Slow, two_seconds


def loaded(data, **options):
    with two_seconds():
        return torch.load(io.BytesIO(data), **options)


def saved(x):
    file = io.BytesIO()
    torch.save(x, file, format="pytorch")
    return file.getvalue()


def state(t):
    """An object with all that a file of weights may hold, by either library."""
    t.manual_seed(0)
    model = t.nn.Sequential(t.nn.Linear(3, 2), t.nn.BatchNorm1d(2))
    optimiser = t.optim.Adam(model.parameters(), lr=0.1)
    model(t.ones(4, 3)).sum().backward()
    optimiser.step()
    shared = t.arange(12.0, dtype=t.float64).reshape(3, 4)
    kinds = (
        "float16 float32 float64 int8 int16 int32 int64 uint8 bool complex64".split()
    )
    told, weight = t.ones(2), t.nn.Parameter(t.zeros(2))
    told.about = {"units": ["m", shared]}
    weight.decays = False
    return {
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "parameters": [*model.parameters(), next(model.parameters())],
        "shared": [shared, shared.T, shared[1:, ::2], shared[2, 3]],
        "kinds": {kind: t.ones(2, 1, dtype=getattr(t, kind)) for kind in kinds},
        "complex": t.ones(2, dtype=t.complex64) * (1 + 2j),
        "empty": [t.zeros(0, 3), t.zeros(()), t.ones(2, 3).expand(4, 2, 3)],
        "wants": t.ones(2, requires_grad=True),
        "about": [t.Size([2, 3]), t.float16, t.device("cpu"), (1, (2, None)), {1, "a"}],
        "plain": {1: -1, "a": [1.5, True, "ä", b"\0\xff", 10**30, -(2**31), 2j]},
        "none": [(), [], {}, OrderedDict(), set()],
        "attributes": [told, weight, told],
        "bytes": bytearray(b"\0\xff"),
    }


def same(mine, theirs):
    """Whether an object is that of PyTorch's."""
    if hasattr(theirs, "detach"):
        assert isinstance(mine, torch.Tensor)
        assert type(mine).__name__ == type(theirs).__name__
        assert mine.requires_grad == theirs.requires_grad
        assert str(mine.dtype) == str(theirs.dtype)
        assert tuple(mine.shape) == tuple(theirs.shape)
        np.testing.assert_array_equal(mine.detach().numpy(), theirs.detach().numpy())
        same(vars(mine), vars(theirs))
    elif isinstance(theirs, dict):
        assert type(mine).__name__ == type(theirs).__name__
        assert list(mine) == list(theirs)
        assert getattr(mine, "_metadata", 0) == getattr(theirs, "_metadata", 0)
        for key in theirs:
            same(mine[key], theirs[key])
    elif isinstance(theirs, list | tuple):
        assert type(mine).__name__ == type(theirs).__name__
        for a, b in zip(mine, theirs, strict=True):
            same(a, b)
    elif type(theirs).__module__ == "torch":
        assert str(mine) == str(theirs)
    else:
        assert type(mine) is type(theirs)
        assert mine == theirs


def check_sharing(found):
    shared = found["shared"]
    shared[0][1, 2] = 100.0
    assert shared[1][2, 1] == 100
    assert shared[2][0, 1] == 100
    assert shared[0].untyped_storage().data_ptr() == shared[0].data_ptr()
    assert found["parameters"][0] is found["parameters"][-1]
    told, _, again = found["attributes"]
    assert told is again
    assert told.about["units"][1] is shared[0]


@pytest.fixture
def theirs():
    return pytest.importorskip("torch", reason="whose files these are")


class TestFilesOfPyTorch:
    @pytest.mark.parametrize("new", [True, False], ids=["archive", "legacy"])
    def test_are_read(self, theirs, new, tmp_path):
        path, expected = tmp_path / "a.pt", state(theirs)
        theirs.save(expected, path, _use_new_zipfile_serialization=new)
        found = torch.load(path, weights_only=True)
        same(found, expected)
        assert found["shared"][1].storage().tolist() == list(range(12))
        check_sharing(found)

    def test_are_written(self, theirs):
        mine = state(torch)
        found = theirs.load(io.BytesIO(saved(mine)), weights_only=True)
        same(mine, found)
        check_sharing(found)
        again = torch.load(io.BytesIO(saved(mine)))
        check_sharing(again)
        check_sharing(torch.load(io.BytesIO(saved(again))))

    def test_bfloat16(self, theirs):
        pytest.importorskip("ml_dtypes", reason="where bfloat16 comes from")
        file, x = io.BytesIO(), theirs.tensor([1.5, -2.0, 3e38]).bfloat16()
        theirs.save({"x": x, "type": x.dtype}, file)
        found = loaded(file.getvalue())
        assert found["x"].dtype == found["type"] == torch.bfloat16
        assert found["x"].tolist() == x.tolist()
        back = theirs.load(io.BytesIO(saved(found)), weights_only=True)
        assert back["x"].dtype == back["type"] == theirs.bfloat16
        assert back["x"].tolist() == x.tolist()

    def test_types_without_a_storage_of_their_own(self, theirs):
        for kind in ("uint16", "uint32", "uint64"):
            file, x = io.BytesIO(), theirs.arange(6).to(getattr(theirs, kind))
            theirs.save([x, x.view(2, 3)], file)
            found = loaded(file.getvalue())
            assert found[0].dtype == getattr(torch, kind)
            assert found[1].tolist() == [[0, 1, 2], [3, 4, 5]]
            found[0].numpy()[0] = 7
            assert found[1].tolist()[0][0] == 7
            found[0].about = "a type that came late"
            back = theirs.load(io.BytesIO(saved(found)), weights_only=True)
            assert back[0].about == found[0].about
            back[0][1] = 8
            assert back[1].tolist() == [[7, 8, 2], [3, 4, 5]]

    def test_types_that_are_not_here_are_named(self, theirs):
        file = io.BytesIO()
        theirs.save(theirs.ones(2).to(theirs.float8_e5m2), file)
        with pytest.raises(FileFormatError, match="a tensor of float8_e5m2, of which"):
            loaded(file.getvalue())

    def test_a_whole_module_is_refused_by_its_name(self, theirs):
        for new in (True, False):
            file = io.BytesIO()
            theirs.save(theirs.nn.ReLU(), file, _use_new_zipfile_serialization=new)
            for options in ({}, {"weights_only": False}):
                with pytest.raises(FileFormatError, match=r"holds torch.nn.*ReLU, and"):
                    loaded(file.getvalue(), **options)

    def test_a_program_is_refused(self, theirs):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name in ("data.pkl", "constants.pkl", "code/__torch__.py"):
                archive.writestr(f"a/{name}", b"\x80\x02N.")
        with pytest.raises(FileFormatError, match="TorchScript"):
            loaded(file.getvalue())


class Mine:
    """A class that only the program may allow."""

    def __init__(self, *values):
        self.values = values


# --- files made by hand ---------------------------------------------------------------


def archive(steps, memories=(), order="little", packed=False, more=(), first=()):
    """A file of the new format, with these steps as its pickle."""
    file = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", kind) as made:
        for name, content in first:
            made.writestr(name, content)
        made.writestr("archive/data.pkl", steps)
        if order is not None:
            made.writestr("archive/byteorder", order)
        for key, memory in enumerate(memories):
            made.writestr(f"archive/data/{key}", memory)
        for name, content in more:
            made.writestr(name, content)
    return file.getvalue()


def legacy(steps, keys=(), memories=(), about=None):
    """A file of the old format."""
    about = {"little_endian": True} if about is None else about
    head = [0x1950A86A20F9469CFC6C, 1001, about]
    parts = [pickle.dumps(x, 2) for x in head] + [steps, pickle.dumps(list(keys), 2)]
    for count, memory in memories:
        parts += struct.pack("<q", count), memory
    return b"".join(parts)


def name(module, name):
    return f"c{module}\n{name}\n".encode()


def text(x):
    return b"X" + struct.pack("<I", len(x)) + x.encode()


def number(n):
    return b"\x8a\x09" + n.to_bytes(9, "little", signed=True)


def storage(kind="FloatStorage", key="0", count=4):
    module = "torch.storage" if kind == "UntypedStorage" else "torch"
    told = text("storage") + name(module, kind) + text(key) + text("cpu")
    return b"(" + told + number(count) + b"tQ"


def tensor(offset=0, size=(4,), stride=(1,), memory=None, wants=b"\x89"):
    sizes = [b"(" + b"".join(map(number, x)) + b"t" for x in (size, stride)]
    return (
        name("torch._utils", "_rebuild_tensor_v2")
        + b"("
        + (storage() if memory is None else memory)
        + number(offset)
        + b"".join(sizes)
        + wants
        + name("collections", "OrderedDict")
        + b")RtR"
    )


FOUR = np.arange(4, dtype="<f4").tobytes()


def test_memory_of_either_order_of_bytes():
    big = np.arange(4, dtype=">f4").tobytes()
    steps = b"\x80\x02" + tensor() + b"."
    for data in (
        archive(steps, [FOUR]),
        archive(steps, [big], order="big"),
        legacy(steps, ["0"], [(4, FOUR)]),
    ):
        assert loaded(data).tolist() == [0, 1, 2, 3]
    swapped = legacy(steps, ["0"], [], about={"little_endian": False})
    assert loaded(swapped + struct.pack(">q", 4) + big).tolist() == [0, 1, 2, 3]


def test_files_that_cannot_be_sought_or_begin_in_the_middle():
    steps = b"\x80\x02" + tensor() + b"."
    for data in (archive(steps, [FOUR]), legacy(steps, ["0"], [(4, FOUR)])):
        assert torch.load(Slow(data)).tolist() == [0, 1, 2, 3]
        file = io.BytesIO(b"before" + data)
        file.seek(6)
        assert torch.load(file).tolist() == [0, 1, 2, 3]


def test_an_order_of_bytes_that_no_file_tells():
    big = np.arange(4, dtype=">f4").tobytes()
    data = archive(b"\x80\x02" + tensor() + b".", [big], order=None)
    orders = torch.serialization.LoadEndianness
    torch.serialization.set_default_load_endianness(orders.BIG)
    try:
        assert loaded(data).tolist() == [0, 1, 2, 3]
    finally:
        torch.serialization.set_default_load_endianness(None)
    assert loaded(data).tolist() != [0, 1, 2, 3]


def test_map_location():
    data = archive(b"\x80\x02" + tensor() + b".", [FOUR])
    seen = []

    def chosen(memory, device):
        seen.append((memory.tolist(), device))
        return memory

    for where in ("cpu", torch.device("cpu"), {"cuda:0": "cpu"}, chosen):
        assert loaded(data, map_location=where).tolist() == [0, 1, 2, 3]
    assert seen == [([0, 1, 2, 3], "cpu")]
    for where in ("cuda", lambda memory, device: memory.to("cuda"), {"cpu": "cuda"}):
        if not torch.cuda.is_available():
            with pytest.raises(LanternError) as error:
                loaded(data, map_location=where)
            assert not isinstance(error.value, FileFormatError)


def test_classes_that_the_program_allows():
    class_ = name(Mine.__module__, "Mine")
    steps = b"\x80\x02" + class_ + b"K\x01\x85R}" + text("more") + b"K\x02sb."
    with pytest.raises(FileFormatError, match=r"test_pickles.Mine, and.*safe_globals"):
        loaded(archive(steps))
    with torch.serialization.safe_globals([Mine]):
        found = loaded(archive(steps))
    assert (found.values, found.more) == ((1,), 2)


def in_a_row(*steps):
    return b"\x80\x02" + b"".join(steps) + b"."


SYSTEM = name("os", "system") + text("true") + b"\x85R"
NESTED = b"".join(b"]" + b"r" + struct.pack("<I", i) for i in range(200))
# l0 = [], l1 = [l0, l0], ..., each twice in the next
LAUGHS = b"]q\x00" + b"".join(
    b"](h" + bytes([i]) + b"h" + bytes([i]) + b"eq" + bytes([i + 1]) for i in range(60)
)
TUPLES = b")q\x00" + b"".join(
    b"h" + bytes([i]) + b"h" + bytes([i]) + b"\x86q" + bytes([i + 1]) for i in range(60)
)
REFUSED = {
    "a function of the system": (SYSTEM, "holds os.system"),
    "eval": (name("builtins", "eval") + text("1") + b"\x85R", "builtins.eval"),
    "eval of Python 2": (name("__builtin__", "eval"), "builtins.eval"),
    "an attribute of an attribute": (name("torch", "load"), "torch.load"),
    "a path in a name": (name("torch.serialization", "os.system"), "os.system"),
    "a name with spaces": (name("os ", "system"), "os .system"),
    "a name without an end": (b"c" + b"x" * 1000, "endless name"),
    "a name of another alphabet": (b"c\xff\xfe\nx\n", "damaged pickle"),
    "a class as a value": (name("collections", "OrderedDict"), "as a value"),
    "a class in a list": (b"]" + name("torch", "Size") + b"a", "as a value"),
    "a class in two tuples": (name("torch", "Size") + b"\x85\x85", "as a value"),
    "memory as a value": (storage(), "as a value"),
    "a call of a value": (b"]K\x01\x85R", "no function"),
    "a call with a list": (name("collections", "OrderedDict") + b"]R", "no function"),
    "a state of a tensor": (tensor() + b"}b", "a state"),
    "a state of a list": (b"]}b", "a state"),
    "a state with other names": (
        name("collections", "OrderedDict") + b")R}" + text("x") + b"Nsb",
        "a state",
    ),
    "an old instance": (b"(" + b"ios\nsystem\n", "has steps"),
    "a name on the stack": (text("os") + text("system") + b"\x93", "has steps"),
    "an extension": (b"\x82\x01", "has steps"),
    "another protocol": (b"\x80\x04N", "protocol 4"),
    "an empty stack": (b"", "damaged pickle"),
    "two values": (b"NN", "damaged pickle"),
    "an open mark": (b"N(N", "damaged pickle"),
    "a mark that is not there": (b"]e", "damaged pickle"),
    "more than there is": (b"N\x87", "damaged pickle"),
    "nothing remembered": (b"h\x05", "damaged pickle"),
    "remembering nothing": (b"q\x05", "damaged pickle"),
    "an item of a number": (b"K\x01K\x02a", "no container"),
    "a key of a list": (b"]NNs", "no container"),
    "a list as a key": (b"}]Ns", "no plain one"),
    "a tuple in a tuple as a key": (b"}N\x85\x85Ns", "no plain one"),
    "half a pair": (b"}(Nu", "damaged pickle"),
    "a list that holds itself": (b"]q\x00h\x00a", "holds itself"),
    "a list in its own tuple": (b"]q\x00h\x00\x85a", "holds itself"),
    "deep lists": (NESTED + b"a" * 199, "deeper"),
    "deep tuples": (b"N" + b"\x85" * 200, "deeper"),
    "deep marks": (b"(" * 1000, "deeper"),
    "what repeats itself": (LAUGHS, "repeat"),
    "tuples that repeat themselves": (TUPLES, "repeat"),
    "many steps": (b"]" + b"Na" * 500_001, "steps"),
    "many lists": (b"](" + b"]" * 250_001 + b"e", "containers"),
    "many sets": (
        b"](" + (name("__builtin__", "set") + b"q\x00)R") + b"h\x00)R" * 250_000 + b"e",
        "containers",
    ),
    "a text that is not there": (b"X\xff\xff\xff\xff", "cut off|bytes"),
    "a text of no encoding": (b"X\x01\0\0\0\xff", "damaged pickle"),
    "a set of lists": (name("__builtin__", "set") + b"]]a\x85R", "plain values"),
    "a set of tuples in tuples": (
        name("__builtin__", "set") + b"]N\x85\x85a\x85R",
        "plain values",
    ),
    "a dictionary of a text": (
        name("collections", "OrderedDict") + text("ab") + b"\x85R",
        "pairs",
    ),
    "a size of texts": (name("torch", "Size") + text("a") + b"\x85\x85R", "no size"),
    "a device that is none": (
        name("torch", "device") + text("os") + b"\x85R",
        "damaged pickle",
    ),
    "bytes in a codec": (
        name("_codecs", "encode") + text("x") + text("zip") + b"\x86R",
        "bytes in another form",
    ),
    "a type that is called": (name("torch", "float32") + b")R", "no function"),
    "memory of no type": (storage("FloatTensor"), "FloatTensor"),
    "memory that is a path": (tensor(memory=storage(key="../../x")), "nothing where"),
    "memory of two sizes": (
        b"]" + tensor() + b"a" + tensor(memory=storage(count=3)) + b"a",
        "of two types or sizes",
    ),
    "memory of two types": (
        b"]" + tensor() + b"a" + tensor(memory=storage("IntStorage")) + b"a",
        "of two types or sizes",
    ),
    "too much memory": (tensor(memory=storage(count=5)), "16 bytes where 20"),
    "huge memory": (tensor(memory=storage(count=1 << 60)), "names .* bytes of memory"),
    "negative memory": (tensor(memory=storage(count=-1)), "no size"),
    "a reference to nothing": (b"NQ", "damaged pickle"),
    "a reference to a module": (b"(" + text("module") + b"NNNNtQ", "damaged reference"),
    "a tensor without memory": (tensor(memory=b"N"), "without memory"),
    "a tensor that is too long": (tensor(size=(5,)), "4 elements"),
    "a tensor that begins too late": (tensor(1), "4 elements"),
    "a tensor with long steps": (tensor(stride=(2,)), "4 elements"),
    "a tensor of negative steps": (tensor(3, stride=(-1,)), "no size"),
    "a tensor before its memory": (tensor(-1), "no size"),
    "a tensor of fewer steps": (tensor(stride=()), "damaged pickle"),
    "a tensor of many axes": (tensor(size=(1,) * 65, stride=(0,) * 65), "4 elements"),
    "a huge view": (tensor(size=(1 << 40,) * 2, stride=(0, 0)), "4 elements"),
    "a huge empty view": (
        tensor(size=(0, 1 << 62, 1 << 62), stride=(1, 1, 1)),
        "4 elements",
    ),
    "a parameter of a number": (
        name("torch._utils", "_rebuild_parameter") + b"K\x01\x88N\x87R",
        "without a tensor",
    ),
    "a parameter of integers": (
        name("torch._utils", "_rebuild_parameter")
        + tensor(memory=storage("IntStorage"))
        + b"\x88N\x87R",
        "damaged pickle",
    ),
}


def of_type(state, kind="Tensor"):
    """A tensor with attributes."""
    arguments = tensor().split(b"_rebuild_tensor_v2\n", 1)[1][:-1]
    named = name("torch._utils", "_rebuild_tensor_v2") + name("torch", kind)
    start = name("torch._tensor", "_rebuild_from_type_v2") + b"("
    return start + named + arguments + state + b"tR"


def pairs(**state):
    return b"}(" + b"".join(text(k) + v for k, v in state.items()) + b"u"


def nested_attributes(depth, repeated=1):
    """Tensors in attributes of tensors, each so many times in the next."""
    steps = b"]" + tensor() + b"q\x01a"
    for _ in range(depth):
        steps += of_type(pairs(a=b"(" + b"h\x01" * repeated + b"t")) + b"q\x01a"
    return steps


REFUSED |= {
    "a tensor of a class": (
        of_type(pairs(), kind="Size"),
        "a class that is not known",
    ),
    "a tensor that something else makes": (
        of_type(pairs()).replace(b"_rebuild_tensor_v2", b"_rebuild_parameter"),
        "a class that is not known",
    ),
    "attributes that are none": (of_type(b"]"), "attributes of other kinds"),
    "an attribute that a tensor has": (
        of_type(pairs(backward=b"N")),
        "attributes of other kinds",
    ),
    "an attribute that Python has": (
        of_type(pairs(__class__=b"N")),
        "attributes of other kinds",
    ),
    "an attribute without a name": (
        of_type(b"}(K\x01Nu"),
        "attributes of other kinds",
    ),
    "a class as an attribute": (
        of_type(pairs(a=name("torch", "Tensor"))),
        "as a value",
    ),
    "a parameter with other attributes": (
        name("torch._utils", "_rebuild_parameter_with_state")
        + b"("
        + tensor()
        + b"\x88N"
        + pairs(requires_grad=b"N")
        + b"tR",
        "attributes of other kinds",
    ),
    "a class that is called": (name("torch", "Tensor") + b")R", "damaged pickle"),
    "bytes of a number": (
        name("builtins", "bytearray") + number(1 << 60) + b"\x85R",
        "something else than bytes",
    ),
    "deep attributes": (nested_attributes(200), "deeper"),
    "attributes that repeat themselves": (nested_attributes(40, 2), "repeat"),
    "a list in an attribute of its part": (
        b"]q\x00" + of_type(pairs(a=b"h\x00")) + b"a",
        "holds itself",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_hostile_pickles(case, tmp_path):
    steps, words = REFUSED[case]
    data = archive(in_a_row(steps), [FOUR])
    with pytest.raises(FileFormatError, match=words) as error:
        loaded(data)
    path = tmp_path / "a.pt"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match=words), two_seconds():
        torch.load(path, mmap=True)
    assert str(error.value).startswith("torch.load: ")
    assert len(str(error.value)) < 600
    with pytest.raises(FileFormatError):
        loaded(legacy(in_a_row(steps), ["0"], [(4, FOUR)]), weights_only=False)


NOTHING = in_a_row(b"N")
ARCHIVES = {
    "no archive": (b"PK\x03\x04rest of it", "archive"),
    "no pickle": (archive(NOTHING).replace(b"data.pkl", b"data.pkx"), "none of torch"),
    "two pickles": (archive(NOTHING, more=[("b/data.pkl", NOTHING)]), "none of torch"),
    "compressed": (archive(NOTHING + bytes(10**6), packed=True), "compressed"),
    "a pickle of protocol 4": (pickle.dumps([1], 4), "did not write"),
    "a bare pickle": (pickle.dumps([2**70], 2), "did not write"),
    "the memory of another": (legacy(NOTHING, ["1"]), "other memory"),
    "keys that are no list": (
        legacy(NOTHING)[: -len(pickle.dumps([], 2))] + pickle.dumps("a", 2),
        "damaged list",
    ),
    "memory that is cut off": (
        legacy(in_a_row(tensor()), ["0"], [(4, FOUR[:-1])]),
        "cut off in its memory",
    ),
    "memory of another size": (
        legacy(in_a_row(tensor()), ["0"], [(5, FOUR)]),
        "cut off in its memory",
    ),
    "truth values": (
        archive(in_a_row(tensor(memory=storage("BoolStorage"))), [b"\0\1\2\3"]),
        "a byte above 1",
    ),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_hostile_archives(case):
    data, words = ARCHIVES[case]
    with pytest.raises(FileFormatError, match=words):
        loaded(data)


def test_parts_that_lie_over_one_another():
    """Many entries of one megabyte that is there once: D. Fifield, WOOT 2019."""
    data = archive(NOTHING, [bytes(10**6)])
    at = data.rindex(b"PK\x05\x06")
    count, size, begin = struct.unpack("<HII", data[at + 10 : at + 20])
    entries = data[begin : begin + size]
    last = entries[entries.rindex(b"PK\x01\x02") :]
    many = [last.replace(b"data/0", b"data/%d" % n) for n in range(1, 10)]
    entries += b"".join(many)
    end = struct.pack("<HHII", count + 9, count + 9, len(entries), begin)
    data = data[:begin] + entries + data[at : at + 8] + end + data[at + 20 :]
    with pytest.raises(FileFormatError, match="larger than itself"):
        loaded(data)


WHOLE = {
    "an archive": saved(state(torch)),
    "a legacy file": legacy(
        in_a_row(b"](", tensor(), tensor(1, (1, 3), (3, 1)), b"e"), ["0"], [(4, FOUR)]
    ),
}


@pytest.mark.parametrize("case", WHOLE)
def test_damaged_files(case):
    data, chance = WHOLE[case], random.Random(0)
    loaded(data)

    def check(damaged):
        with suppress(FileFormatError):
            loaded(damaged)
        with suppress(FileFormatError), unchecked():
            loaded(damaged)

    for length in range(0, len(data), 1 + len(data) // 300):
        with pytest.raises(FileFormatError):
            loaded(data[:length])
    pickled = data.index(b"data.pkl") if case == "an archive" else 0
    for _ in range(600):
        damaged = bytearray(data)
        for _ in range(chance.choice([1, 2, 10])):
            at = chance.choice([chance.randrange(len(data)), pickled + 64])
            damaged[at % len(data)] ^= 1 << chance.randrange(8)
        check(bytes(damaged))


def test_damaged_pickles():
    """Those of which no check sum tells that they are damaged."""
    with zipfile.ZipFile(io.BytesIO(WHOLE["an archive"])) as opened:
        steps = opened.read("archive/data.pkl")
        memories = [
            opened.read(f"archive/data/{n}") for n in range(len(opened.namelist()) - 3)
        ]
    chance = random.Random(1)
    loaded(archive(steps, memories))
    for _ in range(600):
        damaged = bytearray(steps)
        for _ in range(chance.choice([1, 1, 3])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        with suppress(FileFormatError):
            loaded(archive(bytes(damaged), memories))


@contextmanager
def unchecked():
    torch.serialization.set_crc32_options(False)
    try:
        yield
    finally:
        torch.serialization.set_crc32_options(True)


def test_files_without_check_sums(theirs):
    file, x = io.BytesIO(), theirs.arange(1000.0)
    theirs.serialization.set_crc32_options(False)
    try:
        theirs.save(x, file)
    finally:
        theirs.serialization.set_crc32_options(True)
    with unchecked():
        assert loaded(file.getvalue()).tolist() == x.tolist()
    with pytest.raises(FileFormatError, match=r"set_crc32_options\(False\) first"):
        loaded(file.getvalue())


class TestMapped:
    """Files of which memory is read when it is looked at: ``mmap=True``."""

    def test_hold_the_same(self, tmp_path):
        path, expected = tmp_path / "a.pt", state(torch)
        path.write_bytes(saved(expected))
        found = torch.load(path, mmap=True)
        same(found, expected)
        check_sharing(found)
        same(torch.load(path), expected)  # what was written stays in the program

    def test_are_written_to_if_they_shall(self, tmp_path):
        path, way = tmp_path / "a.pt", torch.serialization.set_default_mmap_options
        torch.save(torch.ones(3), path, format="pytorch")
        with way(mmap.MAP_SHARED):
            torch.load(path, mmap=True)[1] = 5
        with pytest.raises(FileFormatError, match=r"set_crc32_options\(False\) first"):
            torch.load(path)
        with unchecked():
            assert torch.load(path).tolist() == [1, 5, 1]

    def test_are_at_any_place_of_the_file(self, tmp_path):
        path = tmp_path / "a.pt"
        for length in range(1, 20):
            more = [("b" * length, b"")]
            steps = in_a_row(tensor(memory=storage("DoubleStorage")))
            data = archive(steps, [np.arange(4.0).tobytes()], first=more)
            path.write_bytes(data)
            found = torch.load(path, mmap=True)
            assert found.tolist() == [0, 1, 2, 3]
            assert found.data_ptr() % 8 == 0

    def test_are_refused_if_they_are_damaged(self, tmp_path):
        path, data = tmp_path / "a.pt", WHOLE["an archive"]
        chance = random.Random(2)
        heads = [m.start() for m in re.finditer(rb"PK\x03\x04|PK\x01\x02", data)]
        for _ in range(300):
            damaged = bytearray(data)
            at = chance.choice(heads) + chance.randrange(46)
            damaged[at % len(data)] ^= 1 << chance.randrange(8)
            path.write_bytes(damaged)
            with suppress(FileFormatError), two_seconds():
                torch.load(path, mmap=True)

    def test_are_archives_with_a_path(self, tmp_path):
        path = tmp_path / "a.pt"
        with pytest.raises(ValueError, match="f must be a file name"):
            torch.load(io.BytesIO(WHOLE["an archive"]), mmap=True)
        path.write_bytes(WHOLE["a legacy file"])
        with pytest.raises(RuntimeError, match="mmap can only be used with files"):
            torch.load(path, mmap=True)


@pytest.mark.parametrize(
    "case", [case for case in REFUSED if case.startswith(("many lists", "many sets"))]
)
def test_hostile_pickles_take_less_than_256_megabytes(case):
    data = archive(in_a_row(REFUSED[case][0]), [FOUR])
    tracemalloc.start()
    try:
        with suppress(FileFormatError):
            torch.load(io.BytesIO(data))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 256e6


class TestWriting:
    def test_equal_objects_give_equal_files(self):
        assert saved(state(torch)) == saved(state(torch))

    def test_what_pytorch_would_not_read_is_refused(self):
        itself = []
        itself.append(itself)
        for x, words in (
            ([{"a": lambda: 0}], r"a function at '0.a'"),
            (np.ones(2), "a ndarray at the top|a ndarray at 'the top'"),
            (10**1000, "bits"),
        ):
            with pytest.raises(TypeError, match=words):
                saved(x)
        nested = []
        for _ in range(200):
            nested = [nested]
        with pytest.raises(TypeError, match="too deep"):
            saved(nested)

    def test_a_set_alone(self):
        for x in ({1, 2, 3}, {"a"}, set(), (1, {2}), bytearray(b"a"), 1j):
            assert loaded(saved(x)) == x

    def test_memory_of_two_types_is_refused(self):
        x = torch.ones(2)
        with pytest.raises(RuntimeError, match="view the same data as different"):
            saved([x, x.view(torch.int32)])

    def test_views_come_back_in_their_order(self):
        x = torch.arange(6.0).reshape(2, 3)
        across = x.T.contiguous().T
        found = loaded(saved([across, across[1], x.flip(0), x[:, ::2], x[2:]]))
        assert found[0].stride() == (1, 2)
        found[0][1, 2] = 100
        assert found[1].tolist() == [3, 4, 100]
        assert found[2].tolist() == [[3, 4, 5], [0, 1, 2]]
        assert found[3].tolist() == [[0, 2], [3, 5]]
        assert found[4].shape == (0, 3)

    def test_without_the_memory(self):
        with torch.serialization.skip_data():
            data = saved({"a": torch.ones(2), "b": 1})
        assert loaded(data)["a"].tolist() == [0, 0]

    def test_all_of_it_is_there_at_once(self, tmp_path):
        with open(tmp_path / "a.pt", "wb") as file:
            torch.save(torch.ones(2), file)
            assert torch.load(file.name).tolist() == [1, 1]

    def test_as_a_program_chooses(self):
        torch.serialization.set_default_format("pytorch")
        try:
            file = io.BytesIO()
            torch.save(torch.ones(2), file)
        finally:
            torch.serialization.set_default_format("safetensors")
        assert file.getvalue().startswith(b"PK")
        with pytest.raises(ValueError, match="'safetensors' or 'pytorch'"):
            torch.serialization.set_default_format("hdf5")

    def test_a_place_that_is_none_is_refused(self):
        with pytest.raises(AttributeError, match="expected 'f' to be string, path"):
            torch.save(torch.ones(2), ("a", "b"))

    def test_another_format_is_refused(self):
        with pytest.raises(ValueError, match="'safetensors' or 'pytorch'"):
            torch.save({}, io.BytesIO(), format="hdf5")


# --- several files --------------------------------------------------------------------


def sharded(folder, places, states):
    import json

    for file, tensors in states.items():
        torch.save(tensors, folder / file)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    return index


def test_a_checkpoint_in_several_files(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
    state = model.state_dict()
    names = list(state)
    places = {
        n: f"model-0000{1 + i % 2}-of-00002.safetensors" for i, n in enumerate(names)
    }
    states = {
        file: {n: state[n] for n in names if places[n] == file}
        for file in dict.fromkeys(places.values())
    }
    index = sharded(tmp_path, places, states)
    found = torch.load(index, map_location="cpu")
    assert list(found) == names
    assert all(torch.equal(found[n], state[n]) for n in names)
    model.load_state_dict(found)


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ({"a": "../x"}, "does not lie beside"),
        ({"a": "/etc/passwd"}, "does not lie beside"),
        ({"a": "..\\x"}, "does not lie beside"),
        ({"a": ".."}, "does not lie beside"),
        ({"a": ""}, "does not lie beside"),
        ({"a": "x", "b": "x"}, "has not 'b' in 'x'"),
        ({"a": "list"}, "no state"),
        ({"a": 1}, "no index"),
        ([1], "no index"),
        (None, "no index"),
    ],
)
def test_damaged_indices(places, words, tmp_path):
    states = {"x": {"a": torch.ones(1)}, "list": [1]}
    with pytest.raises(FileFormatError, match=words):
        torch.load(sharded(tmp_path, places, states))


@pytest.mark.parametrize("data", [b"", b"[", b"[]", b"\xff", b"[" * 10**5, b"0"])
def test_what_is_no_index(data, tmp_path):
    path = tmp_path / "x.index.json"
    path.write_bytes(data)
    with pytest.raises(FileFormatError, match="index"):
        torch.load(path)
