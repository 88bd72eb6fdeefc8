"""Functions of lists of tensors, one by one: ``torch._foreach_add_`` and the others."""

from typing import Any

from lantern.errors import EagerError

__all__ = ["FOREACH", "group_by_type"]

# Of each tensor of a list; those of several operands take lists or one for all.
_OF_ONE = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 "
    "log1p log2 neg reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
).split()
_OF_SEVERAL = ("add addcdiv addcmul clamp_max clamp_min div lerp mul pow sub").split()
_MORE = {"max": "max", "norm": "norm", "clone": "clone", "zero_": "zero_"}
# Methods that take numbers, where those of the same name take tensors only.
_EXTREMES = {
    "maximum": "clamp_min",
    "maximum_": "clamp_min_",
    "minimum": "clamp_max",
    "minimum_": "clamp_max_",
}


def _rows(n: int, arguments: Any) -> Any:
    """The arguments for each of n tensors."""
    return [
        [x[i] if isinstance(x, list | tuple) else x for x in arguments]
        for i in range(n)
    ]


def _of_each(name: str, method: str) -> Any:
    """A method of every tensor in a list."""

    def operate(self: Any, *arguments: Any, **options: Any) -> Any:
        if any(isinstance(x, list | tuple) and len(x) != len(self) for x in arguments):
            sizes = [len(x) for x in arguments if isinstance(x, list | tuple)]
            raise EagerError(
                f"_foreach_{name}: Tensor lists must have the same number of tensors, "
                f"got {len(self)} and {sizes[0]}"
            )
        scaled = name.startswith("addc")
        results = []
        for x, row in zip(self, _rows(len(self), arguments), strict=True):
            more = {("p" if k == "ord" else k): v for k, v in options.items()}
            if scaled and len(row) == 3:
                more["value"] = row.pop()
            results.append(getattr(x, method)(*row, **more))
        return results

    operate.__name__ = operate.__qualname__ = f"_foreach_{name}"
    operate.__doc__ = f"``{method}`` of every tensor in a list."
    return operate


def _copy(self: Any, src: Any, non_blocking: bool = False) -> list[Any]:
    return [x.copy_(y) for x, y in zip(self, src, strict=True)]


def _made() -> dict[str, Any]:
    names = {name: name for name in (*_OF_ONE, *_OF_SEVERAL)}
    names |= {f"{name}_": f"{name}_" for name in (*_OF_ONE, *_OF_SEVERAL)}
    names |= _MORE | _EXTREMES
    made = {f"_foreach_{name}": _of_each(name, m) for name, m in names.items()}
    return made | {"_foreach_copy_": _copy}


FOREACH = _made()
globals().update(FOREACH)


def group_by_type(tensorlistlist: Any, with_indices: bool = False) -> dict[Any, Any]:
    """Lists of tensors in groups, by the device and type of the first list's tensors.

    Args:
        tensorlistlist: lists of the same length; entries of all but the first may be
            None.
        with_indices: whether the places in the lists are given, too.

    Returns:
        By device and type, the parts of the lists, and the places or an empty list.
    """
    groups: dict[Any, Any] = {}
    for i, x in enumerate(tensorlistlist[0]):
        lists, places = groups.setdefault(
            (x.device, x.dtype), ([[] for _ in tensorlistlist], [])
        )
        for into, source in zip(lists, tensorlistlist, strict=True):
            if source:
                into.append(source[i])
        if with_indices:
            places.append(i)
    return groups
