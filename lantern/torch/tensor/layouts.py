"""Names for how elements are stored: one layout is here, and one order of memory."""

__all__ = ["layout", "memory_format"]


class layout:
    """How the elements of a tensor are stored, a name.

    Example:
        >>> import lantern.torch as torch
        >>> torch.strided, isinstance(torch.strided, torch.layout)
        (torch.strided, True)
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


class memory_format:
    """In which order the axes lie in memory, a name: rows are the only one here.

    Example:
        >>> import lantern.torch as torch
        >>> torch.channels_last
        torch.channels_last
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


LAYOUTS = {
    name: layout(name)
    for name in (
        "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc jagged _mkldnn"
    ).split()
}
FORMATS = {
    name: memory_format(name)
    for name in (
        "contiguous_format preserve_format channels_last channels_last_3d"
    ).split()
}
strided = LAYOUTS["strided"]
