"""Files are written whole or not at all, by every function that writes one."""

import ast
import io
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import lantern
import lantern.torch as torch
from lantern.errors import NotRegularFileError
from lantern.files import write_file

HOME = Path(lantern.__file__).parent


def saved(path):
    torch.save({"x": torch.ones(3)}, path)


def drawn(path):
    lantern.viz.trace(lambda x: x * x, 2.0).save(path)


def played(path):
    lantern.viz.trace(lambda x: x * x, 2.0).play().save(path)


def plotted(path):
    double = lantern.batched(lambda x: 2 * x)
    lantern.batch(double, [np.ones(2), np.ones(2)]).plot(path)


WRITERS = {
    "torch.save": (saved, "a.pt"),
    "a picture": (drawn, "a.svg"),
    "a picture of points": (drawn, "a.png"),
    "a picture in motion": (played, "a.html"),
    "a report": (plotted, "a.png"),
}


@pytest.fixture(params=WRITERS)
def writer(request):
    write, name = WRITERS[request.param]
    if write is not saved:
        pytest.importorskip("matplotlib", reason="what draws")
    return write, name


def mode_of(path):
    return stat.S_IMODE(os.lstat(path).st_mode)


class TestEveryWriter:
    def test_keeps_the_mode_of_what_it_replaces(self, writer, tmp_path):
        write, name = writer
        path = tmp_path / name
        for mode in (0o600, 0o640, 0o666):
            path.write_bytes(b"old")
            path.chmod(mode)
            write(path)
            assert mode_of(path) == mode
            assert path.read_bytes() != b"old"

    def test_follows_links(self, writer, tmp_path):
        write, name = writer
        (tmp_path / "deep").mkdir()
        target, link, far = tmp_path / "deep" / "file", tmp_path / name, tmp_path / "b"
        far.symlink_to("deep/file")
        link.symlink_to(far)
        for _ in range(2):  # the first time, nothing is where the links lead
            write(link)
            assert link.is_symlink()
            assert far.is_symlink()
            assert not target.is_symlink()
            assert len(target.read_bytes()) > 10
        assert os.listdir(target.parent) == ["file"]

    def test_refuses_what_is_no_file(self, writer, tmp_path):
        write, name = writer
        path = tmp_path / name
        path.mkdir()
        with pytest.raises(NotRegularFileError, match=f"{name} is a folder"):
            write(path)
        path.rmdir()
        os.mkfifo(path)
        with pytest.raises(NotRegularFileError, match="is a pipe"):
            write(path)
        assert stat.S_ISFIFO(os.lstat(path).st_mode)
        path.unlink()
        path.symlink_to(os.devnull)
        with pytest.raises(OSError, match=r"is a device.*Choose another path"):
            write(path)
        assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
        assert os.listdir(tmp_path) == [name]

    def test_names_the_path_where_there_is_no_folder(self, writer, tmp_path):
        write, name = writer
        with pytest.raises(FileNotFoundError) as caught:
            write(tmp_path / "none" / name)
        assert caught.value.filename == str(tmp_path / "none" / name)

    def test_gives_a_new_file_the_mode_of_any_new_file(self, writer, tmp_path):
        write, name = writer
        before = os.umask(0o027)
        try:
            write(tmp_path / name)
        finally:
            os.umask(before)
        assert mode_of(tmp_path / name) == 0o640


def test_no_module_writes_files_in_a_way_of_its_own():
    """Whoever opens a file to write it, or lets others do so, is listed here."""
    own = {
        "files.py",
        "torch/utils/tensorboard.py",  # it grows while it is read
        "torch/storage.py",  # memory that is a file's grows it to its length
        "torch/distributed/stores.py",  # a lock, which is empty
        "torch/distributed/checkpoint.py",  # by torch.save, under names of its own
    }
    found = set()
    for path in HOME.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = ast.unparse(node.func).rpartition(".")[2]
            given = [a.value for a in node.args if isinstance(a, ast.Constant)]
            modes = [
                a for a in given if isinstance(a, str) and set(a) <= set("rwxabt+")
            ]
            opens = name == "open" and any(set(a) & set("wxa+") for a in modes)
            if opens or name in ("write_text", "write_bytes", "tofile", "save_file"):
                found.add(path.relative_to(HOME).as_posix())
    assert found == own


def test_threads_that_write_one_path_leave_one_of_their_files(tmp_path):
    path, failed = tmp_path / "a", []
    contents = [bytes([65 + i]) * 200_000 for i in range(8)]
    start = threading.Barrier(len(contents))

    def write(data):
        start.wait()
        try:
            for _ in range(20):
                write_file("test", path, data)
                assert path.read_bytes() in contents
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(data,)) for data in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert os.listdir(tmp_path) == ["a"]


def test_what_a_killed_program_left_behind_is_in_nobodys_way(tmp_path):
    path = tmp_path / "a"
    for name in (f"a.{os.getpid()}.tmp", "a.tmp", ".tmp"):
        (tmp_path / name).write_bytes(b"left")
    write_file("test", path, b"new")
    assert path.read_bytes() == b"new"


KILLED = """
import sys
from lantern.files import write_file
print("ready", flush=True)
while True:
    for letter in b"ab":
        write_file("test", sys.argv[1], bytes([letter]) * 1_000_000)
"""


def test_a_program_that_is_killed_leaves_old_or_new_contents(tmp_path):
    path = tmp_path / "a"
    write_file("test", path, b"b" * 1_000_000)
    for _ in range(3):
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE
        )
        with child:
            child.stdout.readline()
            while path.read_bytes() == b"b" * 1_000_000:
                pass  # until it writes
            child.send_signal(signal.SIGKILL)
        found = path.read_bytes()
        assert len(found) == 1_000_000
        assert found.strip(found[:1]) == b""
        write_file("test", path, b"b" * 1_000_000)


@pytest.mark.parametrize("call", ["fsync", "replace", "fchmod"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError])
def test_a_write_that_fails_changes_nothing(tmp_path, monkeypatch, call, error):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fails(*args):
        raise error

    monkeypatch.setattr(os, call, fails)
    with pytest.raises(error):
        write_file("test", path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_contents_are_on_the_disk_before_they_have_the_name(tmp_path, monkeypatch):
    order = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *a, n=name, real=real: (order.append(n), real(*a))[1]
        )
    write_file("test", tmp_path / "a", b"new")
    assert order == ["fsync", "replace"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_another_owner_stays(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    os.chown(path, 1234, 2345)
    write_file("test", path, b"new")
    found = path.stat()
    assert (found.st_uid, found.st_gid) == (1234, 2345)


def test_names_of_any_form(tmp_path):
    long = tmp_path / ("n" * 255)
    for path in (long, str(long), os.fsencode(long)):
        write_file("test", path, b"new")
    assert long.read_bytes() == b"new"
    round_about = tmp_path / "loop"
    round_about.symlink_to("loop")
    with pytest.raises(OSError, match="symbolic links"):
        write_file("test", round_about, b"new")


class Little(io.RawIOBase):
    """A file that takes three bytes at a time."""

    def __init__(self):
        self.taken = []

    def write(self, data):
        self.taken.append(bytes(data[:3]))
        return len(data[:3])


def test_an_open_file_gets_everything():
    file, little = io.BytesIO(), Little()
    write_file("test", file, b"12345678")
    write_file("test", little, b"12345678")
    assert file.getvalue() == b"12345678"
    assert little.taken == [b"123", b"456", b"78"]
