"""The text of a tensor, as PyTorch prints it."""

import math
from textwrap import indent as indented
from typing import Any

import numpy as np

from lantern.core.value import base
from lantern.torch.tensor import dtypes
from lantern.vectorizing.batched import Batched

__all__ = ["set_printoptions", "text"]

OPTIONS: dict[str, Any] = {
    "precision": 4,
    "threshold": 1000,
    "edgeitems": 3,
    "linewidth": 80,
    "sci_mode": None,
}


def set_printoptions(
    precision: Any = None,
    threshold: Any = None,
    edgeitems: Any = None,
    linewidth: Any = None,
    profile: Any = None,
    sci_mode: Any = None,
) -> None:
    """Choose how many digits and how many elements are printed.

    Example:
        >>> import lantern.torch as torch
        >>> torch.set_printoptions(precision=2)
        >>> torch.tensor([1 / 3])
        tensor([0.33])
        >>> torch.set_printoptions(profile="default")
    """
    if profile == "default":
        OPTIONS.update(precision=4, threshold=1000, edgeitems=3, linewidth=80)
    elif profile == "short":
        OPTIONS.update(precision=2, threshold=1000, edgeitems=2, linewidth=80)
    elif profile == "full":
        OPTIONS.update(precision=4, threshold=math.inf, edgeitems=3, linewidth=80)
    given = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    OPTIONS.update({name: value for name, value in given.items() if value is not None})
    OPTIONS["sci_mode"] = sci_mode


class _Format:
    """How the numbers of one array are written, all in one width."""

    def __init__(self, shown: Any) -> None:
        self.real = shown.dtype.kind in dtypes.FLOATING
        self.scientific, self.whole, self.width = False, True, 1
        if not self.real:
            words = [str(x) for x in shown.tolist()]
            self.width = max(map(len, words), default=1)
            return
        # Only these numbers decide, as in PyTorch: not 0, and finite.
        deciding = shown[np.isfinite(shown) & (shown != 0)]
        finite = np.abs(deciding.astype(float))
        if finite.size:
            low, high = float(finite.min()), float(finite.max())
            self.whole = bool((finite == np.ceil(finite)).all())
            self.scientific = high / low > 1000 or high > 1e8
            self.scientific |= low < 1e-4 and not self.whole
        if OPTIONS["sci_mode"] is not None:
            self.scientific = OPTIONS["sci_mode"]
        self.width = max((len(self.raw(x)) for x in deciding.tolist()), default=1)

    def raw(self, x: Any) -> str:
        """One number, in no particular width."""
        if not self.real or not math.isfinite(x):
            return str(x)
        if self.scientific:
            return f"{x:.{OPTIONS['precision']}e}"
        return f"{x:.0f}." if self.whole else f"{x:.{OPTIONS['precision']}f}"

    def __call__(self, x: Any) -> str:
        return self.raw(x).rjust(self.width)


class _ComplexFormat:
    """How complex numbers are written."""

    def __init__(self, shown: Any) -> None:
        self.parts = _Format(shown.real), _Format(shown.imag)
        self.width = sum(part.width for part in self.parts) + 1

    def __call__(self, x: Any) -> str:
        real, imag = self.parts[0](x.real), self.parts[1].raw(x.imag).lstrip()
        sign = "" if imag.startswith("-") else "+"
        return f"{real}{sign}{imag}j"


def _shown(array: Any, summary: bool) -> Any:
    """The elements that are printed."""
    if not summary:
        return array.reshape(-1)
    edge = OPTIONS["edgeitems"]
    for axis, n in enumerate(array.shape):
        if n > 2 * edge:
            keep = [*range(edge), *range(n - edge, n)]
            array = np.take(array, keep, axis)
    return array.reshape(-1)


def _row(array: Any, indent: int, form: Any, summary: bool) -> str:
    edge = OPTIONS["edgeitems"]
    if summary and len(array) > 2 * edge:
        words = [
            *map(form, array[:edge].tolist()),
            " ...",
            *map(form, array[-edge:].tolist()),
        ]
    else:
        words = list(map(form, array.tolist()))
    per_line = max(1, (OPTIONS["linewidth"] - indent) // (form.width + 2))
    lines = [words[i : i + per_line] for i in range(0, len(words), per_line)] or [[]]
    return "[" + (",\n" + " " * (indent + 1)).join(map(", ".join, lines)) + "]"


def _body(array: Any, indent: int, form: Any, summary: bool) -> str:
    if array.ndim == 0:
        return form(array.item())
    if array.ndim == 1:
        return _row(array, indent, form, summary)
    edge = OPTIONS["edgeitems"]
    if summary and len(array) > 2 * edge:
        parts = [_body(x, indent + 1, form, summary) for x in array[:edge]]
        parts.append("...")
        parts += [_body(x, indent + 1, form, summary) for x in array[-edge:]]
    else:
        parts = [_body(x, indent + 1, form, summary) for x in array]
    gap = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return "[" + gap.join(parts) + "]"


def _of_examples(x: Any, face: Any) -> tuple[str, int]:
    """What ``repr`` of a tensor in a ``vmap`` is, and how many transforms it names."""
    if type(x.primal) is not Batched:
        return text(x, face), 0
    inner, levels = _of_examples(face(x.primal.stacked), face)
    if x.primal.mapped:
        levels += 1
        inner = _wrapped(f"BatchedTensor(lvl={levels}, bdim=0", inner)
    if x.level.is_derivative:
        levels += 1
        inner = _wrapped(f"GradTrackingTensor(lvl={levels}", inner)
    return inner, levels


def _wrapped(what: str, inner: str) -> str:
    return f"{what}, value=\n{indented(inner, '    ')}\n)"


def text(x: Any, face: Any, name: str = "tensor") -> str:
    """What ``repr`` of a tensor is.

    Args:
        x: the tensor.
        face: makes a tensor of an array.
        name: what stands before the numbers.
    """
    plain = base(x)
    if type(plain) is Batched:
        return _of_examples(x, face)[0]
    array = np.asarray(plain.get() if hasattr(plain, "get") else plain)
    summary = array.size > OPTIONS["threshold"]
    if array.size:
        shown = _shown(array, summary)
        form = (_ComplexFormat if array.dtype.kind == "c" else _Format)(shown)
        body = _body(array, len(name) + 1, form, summary)
    else:
        body = "[]"
    further = []
    usual = (dtypes.default(), dtypes.I64, dtypes.BOOL, np.dtype(np.complex64))
    if not array.size and array.shape != (0,):
        further.append(f"size={tuple(array.shape)}")
    if str(x.device) != "cpu":
        further.append(f"device='{x.device}'")
    if array.dtype not in usual or (not array.size and array.dtype != dtypes.default()):
        further.append(f"dtype={dtypes.by_numpy[array.dtype]}")
    if not x.is_leaf:
        further.append(f"grad_fn=<{x.grad_fn.name()}>")
    elif x.requires_grad:
        further.append("requires_grad=True")
    if not further:
        return f"{name}({body})"
    last = len(body) - body.rfind("\n") - 1 + (0 if "\n" in body else len(name) + 1)
    result, used = f"{name}({body}", last
    for word in further:
        if used + len(word) + 3 > OPTIONS["linewidth"]:
            result += ",\n" + " " * (len(name) + 1) + word
            used = len(name) + 1 + len(word)
        else:
            result += f", {word}"
            used += len(word) + 2
    return result + ")"
