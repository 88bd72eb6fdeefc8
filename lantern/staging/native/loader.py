"""An object file of LLVM's brought into memory, on Linux and x86-64.

LLVM's own linker knows all files, and takes two to three times as long for a small one.
A program of ours has few kinds of sections and relocations; a file with any other is
left to that linker.

References:
    Matz, Hubicka, Jaeger and Mitchell (2018), "System V Application Binary Interface:
    AMD64 Architecture Processor Supplement", section 4.4.
"""

import ctypes
import mmap
import platform
import sys
from collections.abc import Callable
from struct import Struct, error, iter_unpack, pack_into

__all__ = ["executable", "placed"]

SPACE = 1 << 22
"""Bytes that are reserved at once: a half for code, and a half for what it writes.

Where both stood side by side, a processor would read its code anew after each store.
"""

_HEADER = Struct("<6s10xHHIQQQIHHHHHH")
_SECTION, _SYMBOL, _RELOCATION = "<IIQQQQIIQQ", "<IBBHQQ", "<QQq"
_ELF, _X86_64 = b"\x7fELF\x02\x01", 62
_SYMBOLS, _RELOCATIONS, _ZEROS = 2, 4, 8  # kinds of sections
_WRITABLE, _IN_MEMORY = 1, 2  # flags of sections
_OUTSIDE, _SPECIAL = 0, 0xFF00  # in place of a symbol's section
_LOCAL = 0
_ADDRESS, _CALL, _DISTANCE = 1, 4, {2: "<i", 4: "<i", 24: "<q"}  # of relocations
_BY_TABLE = {9, 41, 42}  # the distance to a word that has the address
_JUMP = b"\xff\x25"  # by a word at some distance


class _OtherError(Exception):
    """Something that is left to LLVM's linker."""


def executable(size: int) -> tuple[mmap.mmap, int]:
    """Memory for machine code, and its address.

    Raises:
        OSError, ValueError: if the system gives none.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    every = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
    room = mmap.mmap(-1, size, flags, every)
    return room, ctypes.addressof(ctypes.c_char.from_buffer(room))


class _Space:
    """Room for code and data, and how much of each half is taken."""

    def __init__(self) -> None:
        self.room, self.start = executable(SPACE)
        self.ends, self.limits = [0, SPACE // 2], (SPACE // 2, SPACE)

    def take(self, size: int, alignment: int, half: int) -> int:
        """Where so many bytes may stand."""
        place = -(-self.ends[half] // alignment) * alignment
        if place + size > self.limits[half]:
            raise _OtherError
        self.ends[half] = place + size
        return place

    def has(self, size: int) -> bool:
        """Whether each half has so many bytes left."""
        pairs = zip(self.ends, self.limits, strict=True)
        return all(end + size <= limit for end, limit in pairs)


_spaces: list[_Space] = []


def placed(code: bytes, address_of: Callable[[str], int]) -> dict[str, int] | None:
    """Bring an object file into memory, where it stays.

    Args:
        code: the file.
        address_of: says where a name from outside is; 0 for one that it does not know.

    Returns:
        The addresses of its names; None if it is for LLVM's linker.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    try:
        if not _spaces or not _spaces[-1].has(2 * len(code)):
            _spaces.append(_Space())
        return _Object(code, _spaces[-1], address_of).names()
    except (_OtherError, OSError, error):
        return None


class _Object:
    """One object file in a space; places in it count from the space's start."""

    def __init__(
        self, code: bytes, space: _Space, address_of: Callable[[str], int]
    ) -> None:
        self.code, self.space, self.address_of = code, space, address_of
        magic, _, machine, _, _, _, start, *_, count, _ = _HEADER.unpack_from(code)
        if magic != _ELF or machine != _X86_64:
            raise _OtherError
        self.words: dict[str, int] = {}  # places of addresses from outside
        self.jumps: dict[str, int] = {}
        table = code[start : start + 64 * count]
        self.sections = list(iter_unpack(_SECTION, table))
        self.bases = [self._brought(*section) for section in self.sections]
        self.symbols: list[tuple[int, ...]] = []
        for _, kind, _, _, at, size, link, *_ in self.sections:
            if kind == _SYMBOLS:
                self.symbols = list(iter_unpack(_SYMBOL, code[at : at + size]))
                self.strings = self.sections[link][4]
        for _, kind, _, _, at, size, _, target, *_ in self.sections:
            if kind == _RELOCATIONS and self.sections[target][2] & _IN_MEMORY:
                for item in iter_unpack(_RELOCATION, code[at : at + size]):
                    self._relocate(self.bases[target], *item)

    def _brought(self, *section: int) -> int:
        """The place of a section, if it is one that is in memory."""
        _, kind, flags, _, at, size, _, _, alignment, _ = section
        if not flags & _IN_MEMORY:
            return 0
        place = self.space.take(size, max(alignment, 1), flags & _WRITABLE)
        if kind != _ZEROS:
            self.space.room[place : place + size] = self.code[at : at + size]
        return place

    def _name(self, symbol: tuple[int, ...]) -> str:
        start = self.strings + symbol[0]
        return self.code[start : self.code.index(0, start)].decode()

    def names(self) -> dict[str, int]:
        """The addresses of what others may ask for."""
        return {
            self._name(x): self.space.start + self._place(x)
            for x in self.symbols
            if x[1] >> 4 != _LOCAL and x[3] != _OUTSIDE
        }

    def _place(self, symbol: tuple[int, ...]) -> int:
        _, _, _, section, value, _ = symbol
        if section >= _SPECIAL or not self.sections[section][2] & _IN_MEMORY:
            raise _OtherError
        return self.bases[section] + value

    def _relocate(self, base: int, offset: int, info: int, addend: int) -> None:
        """Fill in one address, or the distance to one."""
        symbol, kind = self.symbols[info >> 32], info & 0xFFFFFFFF
        room, here = self.space.room, base + offset
        if kind in _BY_TABLE:
            pack_into("<i", room, here, self._word(symbol) + addend - here)
        elif kind in _DISTANCE:
            outside = symbol[3] == _OUTSIDE
            if outside and kind != _CALL:
                raise _OtherError
            there = self._jump(symbol) if outside else self._place(symbol)
            pack_into(_DISTANCE[kind], room, here, there + addend - here)
        elif kind == _ADDRESS:
            pack_into("<Q", room, here, self._address(symbol) + addend)
        else:
            raise _OtherError

    def _address(self, symbol: tuple[int, ...]) -> int:
        if symbol[3] != _OUTSIDE:
            return self.space.start + self._place(symbol)
        address = self.address_of(self._name(symbol))
        if not address:
            raise _OtherError
        return address

    def _word(self, symbol: tuple[int, ...]) -> int:
        """The place of a word that has a symbol's address."""
        name = self._name(symbol)
        if name not in self.words:
            place = self.words[name] = self.space.take(8, 8, 0)
            pack_into("<Q", self.space.room, place, self._address(symbol))
        return self.words[name]

    def _jump(self, symbol: tuple[int, ...]) -> int:
        """The place of a jump to what lies too far for a call."""
        name = self._name(symbol)
        if name not in self.jumps:
            word = self._word(symbol)
            place = self.jumps[name] = self.space.take(6, 1, 0)
            self.space.room[place : place + 2] = _JUMP
            pack_into("<i", self.space.room, place + 2, word - place - 6)
        return self.jumps[name]
