"""Prepare spoken prompts for speech.py: 25 minutes of one voice, with what it says.

They are the English prompts of the telephone exchange Asterisk, spoken by Allison Smith
(CC BY-SA 3.0). By default their archive, 20 MB, is fetched from Debian's, and checked.
Where they are already, as after `apt-get download asterisk-core-sounds-en-wav` and
`dpkg -x`, --sounds names the folder and --transcripts the list core-sounds-en.txt.
It needs tqdm: pip install tqdm.
"""

import argparse
import io
import re
import tarfile
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fetching import (
    Array,
    DataError,
    checked,
    complaining,
    download,
    home,
    read_arrays,
    write_arrays,
)

URL = (
    "https://deb.debian.org/debian/pool/main/a/asterisk-core-sounds/"
    "asterisk-core-sounds_1.6.1.orig-en-wav.tar.gz"
)
SIZE = 20_176_188
SHA256 = "07ad543764567ea235d3a96dcd15ecce4521855efc295de6f5443299c331ec0b"
RATE = 8000  # samples a second
LETTERS = " 'abcdefghijklmnopqrstuvwxyz"
DIGITS = "zero one two three four five six seven eight nine".split()


def load(folder: Path) -> list[tuple[Array, str]]:
    """Read what `keep` has written: sounds, as 16-bit samples, and what is said."""
    file = read_arrays(folder / "speech.npz", ["samples", "ends", "texts"], "speech")
    sounds = np.split(file["samples"], file["ends"][:-1])
    return list(zip(sounds, map(str, file["texts"]), strict=True))


def spelt(text: str) -> str | None:
    """What is said, in small letters; None where it is not clear how it is said."""
    text = re.sub(r"[\[(].*?[\])]", " ", text)
    text = re.sub(r"(?<!\d)\d(?!\d)", lambda digit: f" {DIGITS[int(digit[0])]} ", text)
    text = text.lower().replace("#", " pound ").replace("*", " star ")
    if re.search(r"[^a-z' .,;:?!\"\n-]", text):
        return None
    text = re.sub(r"\b([a-z])\.", r"\1 ", text)  # A.M., P.M.
    return " ".join(re.sub(r"[^a-z' ]", " ", text).split()) or None


def transcripts(text: str) -> dict[str, str]:
    """What is said in each file, by its name without an ending."""
    found = {}
    for line in text.splitlines():
        name, colon, said = line.partition(":")
        words = spelt(said)
        if colon and not name.startswith(";") and words:
            found[name.strip().removesuffix(".wav")] = words
    return found


def sounds_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The sounds in a folder, with their paths."""
    for path in sorted(folder.rglob("*.wav")):
        yield path.as_posix(), path.read_bytes()


def samples_of(data: bytes) -> Array:
    """The samples of a sound."""
    with wave.open(io.BytesIO(data)) as sound:
        if (sound.getframerate(), sound.getsampwidth(), sound.getnchannels()) != (
            RATE, 2, 1
        ):  # fmt: skip
            raise DataError("a sound is not of 8,000 samples a second, 16 bits each.")
        return np.frombuffer(sound.readframes(sound.getnframes()), "<i2")


def keep(folder: Path, sounds: Any, text: str) -> Path:
    """Write sounds whose words are known; they stand in the order of their names."""
    said = transcripts(text)
    found = {}
    for path, data in sounds:
        parts = path.removesuffix(".wav").split("/")
        for name in ("/".join(parts[-2:]), parts[-1]):
            if name in said and name not in found:
                found[name] = samples_of(data)
                break
    if not found:
        raise DataError("there is no sound whose words are known.")
    names = sorted(found)
    return write_arrays(
        folder / "speech.npz",
        samples=np.concatenate([found[name] for name in names]),
        ends=np.cumsum([len(found[name]) for name in names]),
        texts=np.array([said[name] for name in names]),
    )


def unpacked(data: bytes) -> tuple[dict[str, bytes], str]:
    """The sounds in an archive, and its list; nothing is unpacked to a path."""
    sounds, text = {}, ""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None and member.name.endswith(".wav"):
                sounds[member.name] = file.read()
            elif file is not None and member.name.endswith("core-sounds-en.txt"):
                text = file.read().decode("utf-8", "replace")
    return sounds, text


def main() -> None:
    """Fetch, check and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--data", type=Path, default=home(), help="where to keep them")
    add("--sounds", type=Path, help="a folder of sounds that are here already")
    add("--transcripts", type=Path, help="what is said: lines of name: words")
    options = parser.parse_args()
    with complaining():
        if (options.sounds is None) != (options.transcripts is None):
            raise DataError("--sounds and --transcripts go together.")
        if options.sounds is None:
            data = download(URL, SIZE, "--sounds FOLDER --transcripts FILE")
            sounds, text = unpacked(checked(data, URL.rpartition("/")[2], SHA256))
            path = keep(options.data, sounds.items(), text)
        else:
            text = options.transcripts.read_text("utf-8", "replace")
            path = keep(options.data, sounds_of(options.sounds), text)
    print(f"speech: {path}")


if __name__ == "__main__":
    main()
