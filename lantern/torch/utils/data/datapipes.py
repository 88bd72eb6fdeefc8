"""Data sets by steps that are chained: the classes, and names for their steps."""

from collections.abc import Callable
from typing import Any, ClassVar

from lantern.errors import OptionError
from lantern.torch.utils.data.dataset import Dataset, IterableDataset

__path__: list[str] = []
__all__ = ["IterDataPipe", "MapDataPipe", "functional_datapipe"]


class _Named:
    """Steps are methods of every pipe, by the names that they were given."""

    functions: ClassVar[dict[str, Any]]

    def __getattr__(self, name: str) -> Any:
        made = self.__class__.functions.get(name)
        if made is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}"
            )
        return lambda *args, **options: made(self, *args, **options)

    @classmethod
    def register_datapipe_as_function(
        cls, name: str, made: Any, **options: Any
    ) -> None:
        """Make a class of pipes a method of all."""
        known = cls.functions.get(name, made)
        if known.__qualname__ != made.__qualname__:  # the same may be defined anew
            raise OptionError(
                f"Unable to add DataPipe function name {name} as it is already taken"
            )
        cls.functions[name] = made


class IterDataPipe(_Named, IterableDataset):
    """Examples one after another, from a step that may stand behind others.

    Example:
        >>> from lantern.torch.utils.data import IterDataPipe, functional_datapipe
        >>> @functional_datapipe("doubled")
        ... class Doubled(IterDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...
        ...     def __iter__(self):
        ...         return (2 * x for x in self.source)
        >>> class Three(IterDataPipe):
        ...     def __iter__(self):
        ...         return iter(range(3))
        >>> list(Three().doubled())
        [0, 2, 4]
    """

    functions: ClassVar[dict[str, Any]] = {}


class MapDataPipe(_Named, Dataset):
    """Examples by number, from a step that may stand behind others.

    Example:
        >>> from lantern.torch.utils.data import MapDataPipe
        >>> class Squares(MapDataPipe):
        ...     def __getitem__(self, i):
        ...         return i * i
        >>> Squares()[3]
        9
    """

    functions: ClassVar[dict[str, Any]] = {}


class functional_datapipe:
    """A decorator that makes a class of pipes a method of all of its kind.

    Args:
        name: the method's name.
        enable_df_api_tracing: has no effect.

    Example:
        >>> from lantern.torch.utils.data import MapDataPipe, functional_datapipe
        >>> @functional_datapipe("turned")
        ... class Turned(MapDataPipe):
        ...     def __init__(self, source):
        ...         self.source = source
        ...
        ...     def __getitem__(self, i):
        ...         return -self.source[i]
        >>> class Same(MapDataPipe):
        ...     def __getitem__(self, i):
        ...         return i
        >>> Same().turned()[2]
        -2
    """

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Callable[..., Any]) -> Any:
        """The class, which is a method now."""
        for kind in (IterDataPipe, MapDataPipe):
            if isinstance(cls, type) and issubclass(cls, kind):
                kind.register_datapipe_as_function(self.name, cls)
                return cls
        raise OptionError("functional_datapipe: the class must be one of pipes.")
