"""The rows of the table, and the only file that prints, writes or draws them."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.environment import surroundings


@dataclass(frozen=True)
class Target:
    """A bound for the figure of a row, at least or at most; ``note`` is for readers."""

    bound: float
    at_most: bool = False
    note: str = ""

    def met_by(self, value: float) -> bool:
        """Whether ``value`` keeps the bound."""
        return value <= self.bound if self.at_most else value >= self.bound

    def __str__(self) -> str:
        return f"{'≤' if self.at_most else '≥'} {self.bound:.3g}{self.note}"


@dataclass(frozen=True)
class Row:
    """One line of the table: a figure, its target, and where it comes from."""

    benchmark: str
    figure: str
    value: float | None
    unit: str
    target: Target | None = None
    detail: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none, or no figure."""
        if self.target is None or self.value is None:
            return None
        return self.target.met_by(self.value)


def markdown(rows: Sequence[Row]) -> str:
    """One table of all rows, the figures first."""
    lines = [
        "| benchmark | figure | | target | met | medians (lowest to highest) |",
        "|---|---|--:|--:|:-:|---|",
    ]
    return "\n".join(lines + [_line(row) for row in rows]) + "\n"


def write(rows: Sequence[Row], folder: Path, note: str) -> list[Path]:
    """Write ``latest.md`` and, where matplotlib is installed, ``latest.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "latest.md"
    text = f"{surroundings()}\n\n{markdown(rows)}\n{note}\n"
    page.write_text(text, encoding="utf-8")
    ratios = [row for row in rows if row.unit == "×" and row.value]
    picture = folder / "latest.png"
    picture.unlink(missing_ok=True)
    if ratios and _draw(ratios, picture):
        return [page, picture]
    return [page]


def write_json(rows: Sequence[Row], file: Path) -> None:
    """Write the rows, and where they come from, for other programs."""
    content = {
        "surroundings": surroundings(),
        "rows": [{**asdict(row), "met": row.met} for row in rows],
    }
    text = json.dumps(content, indent=2, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")


def _line(row: Row) -> str:
    value = "–" if row.value is None else f"{row.value:.3g} {row.unit}"
    met = {None: "–", True: "yes", False: "**no**"}[row.met]
    target = row.target or "–"
    cells = (row.benchmark, row.figure, value, target, met, row.detail)
    return f"| {' | '.join(map(str, cells))} |"


def _draw(rows: Sequence[Row], file: Path) -> bool:
    """Draw every ratio as a bar from 1, with a mark at its target."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        return False
    figure, axes = pyplot.subplots(
        figsize=(9, 1.1 + 0.3 * len(rows)), layout="constrained"
    )
    for place, row in enumerate(rows):
        value = row.value or 1.0
        # Okabe and Ito's blue and vermilion: told apart by all eyes.
        colour = "#0072B2" if value >= 1 else "#D55E00"
        axes.barh(place, value - 1, left=1, color=colour, height=0.7)
        if row.target is not None:
            mark = [row.target.bound] * 2, [place - 0.35, place + 0.35]
            axes.plot(*mark, color="white", linewidth=5)
            axes.plot(*mark, color="black", linewidth=2)
    axes.set_yticks(range(len(rows)), [_label(row) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.axvline(1, color="0.4", linewidth=1)
    axes.set_xlabel("time of the peer ÷ time of Lantern (black mark: the target)")
    axes.spines[["top", "right"]].set_visible(False)
    values = axes.secondary_yaxis("right")
    values.set_yticks(range(len(rows)), [f"{row.value:.3g} ×" for row in rows])
    values.spines["right"].set_visible(False)
    values.tick_params(length=0)
    figure.savefig(file, dpi=120)
    pyplot.close(figure)
    return True


def _label(row: Row) -> str:
    return f"{row.benchmark}, against {row.figure.removeprefix('times as fast as ')}"
