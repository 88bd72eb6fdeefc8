"""The only file that imports matplotlib: colours, a sheet, what a picture is."""

import io
import json
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

from lantern.core.value import base
from lantern.errors import ArgumentError, MissingExtraError
from lantern.files import write_file

__all__ = ["Picture"]

# After Okabe and Ito: told apart by everyone, and dark enough to be read on white, as
# the tests measure. Each means one thing in all pictures.
INK, SOFT, FAINT, PAPER = "#222222", "#767676", "#D5D5D5", "#FFFFFF"
THERE, BACK = "#0072B2", "#C05000"  # the forward pass, the backward pass
INPUT, MARK = "#00794C", "#E69F00"  # inputs and their gradients; what happens now
THERE_LIGHT, BACK_LIGHT, MARK_LIGHT = "#E3EFF7", "#FBE9DF", "#FDF3DC"
SIZE = 10.0  # of text, in points
CODE = {"family": "DejaVu Sans Mono", "parse_math": False}  # a dollar is a dollar
MONO = 0.602 * SIZE / 72  # the width of one letter of code, in inches

_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": SIZE,
    "svg.hashsalt": "lantern",  # the same picture has the same bits
    "svg.fonttype": "path",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
}


def matplotlib(name: str = "matplotlib") -> Any:
    """A module of matplotlib.

    Raises:
        MissingExtraError: if it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(
            "viz: drawing needs matplotlib, which is not installed. Install it with "
            "pip install matplotlib, or print the picture as text."
        ) from None


def styled() -> Any:
    """A block in which matplotlib draws as all pictures here are drawn."""
    return matplotlib().rc_context(_STYLE)


def new_figure(width: float, height: float) -> Any:
    """An empty figure, in inches, that no window or notebook knows of."""
    module = matplotlib("matplotlib.figure")
    figure = module.Figure(figsize=(width, height), layout="none")
    figure.set_facecolor(PAPER)
    return figure


def sheet(width: float, height: float) -> tuple[Any, Any]:
    """A figure and axes that cover it, measured in inches from the lower left."""
    figure = new_figure(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(0, height))
    axes.axis("off")
    return figure, axes


def svg(figure: Any) -> str:
    """A figure as SVG, the same every time."""
    out = io.StringIO()
    with styled():
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = re.sub(r"\s*(<!--.*?-->)?\s*\n\s*", "\n", out.getvalue())
    return text.replace(">\n<", "><").replace("\n", " ")  # a picture is one line


def brief(x: Any) -> str:
    """A value in a few letters: a number, a small array whole, a large one's shape."""
    x = base(x)
    if isinstance(x, str) or x is None:
        return repr(x)
    if isinstance(x, list | tuple | dict):
        return "1 value" if len(x) == 1 else f"{len(x)} values"
    shape = getattr(x, "shape", ())
    if shape:
        if len(shape) == 1 and shape[0] <= 4:
            return f"[{' '.join(map(brief, x.tolist()))}]"
        return f"{'×'.join(map(str, shape))} array"
    if isinstance(x, Fraction):  # which newer Pythons would round
        return clipped(str(x), 16)
    try:
        return f"({x:.4g})" if isinstance(x, complex) else f"{x:.4g}"
    except (TypeError, ValueError):
        return clipped(str(x), 16)


def clipped(text: str, length: int) -> str:
    """A text of at most so many letters."""
    return text if len(text) <= length else text[: length - 1] + "…"


def squeezed(text: str, length: int) -> str:
    """A text of at most so many letters, of which both ends are kept."""
    half = length // 2
    short = f"{text[: length - half - 1]}…{text[-half:]}"
    return text if len(text) <= length else short


def dot(parts: Iterable[tuple[tuple[str, ...], dict[str, str]]]) -> str:
    """A graph in the language of Graphviz, its edges in their order.

    Args:
        parts: the names of a node, or of the two that an edge leads from and to, and
            what is said of it.
    """
    lines = ["digraph {", 'graph [ordering="out"]', 'node [shape="box"]']
    for names, said in parts:
        words = [
            f"{key}={json.dumps(text, ensure_ascii=False)}"
            for key, text in said.items()
        ]
        lines.append(f"{' -> '.join(map(json.dumps, names))} [{', '.join(words)}]")
    return "\n".join([*lines, "}"])


class Picture:
    """Something drawn, that shows itself in a notebook.

    Args:
        draw: makes the figure, of matplotlib.
        text: what a terminal shows instead.

    Example:
        >>> print(Picture(lambda: None, "what a terminal shows"))
        what a terminal shows
    """

    def __init__(self, draw: Callable[[], Any], text: str) -> None:
        self._draw, self._text = draw, text

    def figure(self) -> Any:
        """The picture as a new figure of matplotlib.

        Raises:
            MissingExtraError: if matplotlib is not installed.
        """
        with styled():
            return self._draw()

    def save(self, path: str | Path) -> Path:
        """Write the picture.

        Args:
            path: where; its ending says how: ``.svg``, ``.png`` or ``.pdf``.

        Returns:
            The path.

        Raises:
            ArgumentError: if the ending is another one.
            MissingExtraError: if matplotlib is not installed.
        """
        path = Path(path)
        kind = path.suffix.lower()
        if kind == ".svg":
            data = self._repr_svg_().encode()
        elif kind in (".png", ".pdf"):
            figure, out = self.figure(), io.BytesIO()
            with styled():
                figure.savefig(out, format=kind[1:], dpi=200)
            data = out.getvalue()
        else:
            raise ArgumentError(
                f"save: a picture is written as .svg, .png or .pdf, not as {kind!r}. "
                f"Choose one of these endings."
            )
        write_file("save", path, data)
        return path

    def _repr_svg_(self) -> str:
        return svg(self.figure())

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text
