"""The nesting of continuations as a picture: where things stand, when each appears."""

from typing import Any, NamedTuple

from lantern.viz.drawing import (
    BACK,
    CODE,
    FAINT,
    INK,
    INPUT,
    MARK,
    MARK_LIGHT,
    MONO,
    PAPER,
    SIZE,
    SOFT,
    THERE,
    THERE_LIGHT,
    brief,
    matplotlib,
    sheet,
    squeezed,
)

__all__ = ["Part", "Stage", "draw_nesting", "set_up"]

ROW = 0.36  # inches
SIDE = 0.62  # beside the frames, for the arrows
PAD = 0.12
LETTERS = 54  # at most, in one half of a row


class Part(NamedTuple):
    """One thing in the picture, and the steps at which it is to be seen.

    Attributes:
        artist: of matplotlib.
        first: the step at which it appears; the picture as a whole is the last step.
        end: the step at which it is gone; None for never.
    """

    artist: Any
    first: int
    end: int | None = None

    def seen(self, step: int) -> bool:
        """Whether it is there at a step."""
        return self.first <= step and (self.end is None or step < self.end)


class Stage:
    """A sheet, laid out for a trace, on which parts are put.

    Steps are counted from 0, where only the inputs stand, over one for each operation
    there, one for the turn, and one for each operation back, to the gradients.

    Attributes:
        parts: all that stands on it.
        steps: how many steps there are.
    """

    def __init__(self, trace: Any, moving: bool) -> None:
        self.trace, self.moving = trace, moving
        self.rows = trace.shown()
        self.parts: list[Part] = []
        count = len(self.rows)
        self.turn = count + 1
        self.steps = 2 * count + 3
        self.inset = min(0.2, 2.4 / max(count, 1))
        left = [x.there for x in [*trace.inputs, *filter(None, self.rows)]]
        right = [x.back for x in [*trace.inputs, *filter(None, self.rows)]]
        letters = [min(max(map(len, half)), LETTERS) for half in (left, right)]
        inner = (sum(letters) + 14) * MONO + 2 * PAD
        self.width = max(6.4, inner + 2 * self.inset * count + 2 * SIDE)
        self.gap = min(0.07, self.inset * 0.4)
        self.floor = PAD + (ROW + 0.06 if moving else 0.0)  # the words are below it
        rows = len(trace.inputs) + count + 2
        self.height = rows * ROW + PAD + self.floor + count * self.gap
        self.figure, self.axes = sheet(self.width, self.height)

    def y(self, row: int) -> float:
        """The middle of a row; 0 is the heading."""
        return self.height - PAD - (row + 0.5) * ROW

    def put(self, artist: Any, first: int = 0, end: int | None = None) -> None:
        """Note when something is to be seen."""
        self.parts.append(Part(artist, first, end))

    def write(
        self, x: float, row: int, text: str, first: int = 0, **style: Any
    ) -> None:
        """Write in a row."""
        options = CODE | {"va": "center_baseline"} | style
        self.put(self.axes.text(x, self.y(row), text, zorder=3, **options), first)

    def frame(self, row: int, depth: int, first: int) -> None:
        """The frame of the rest of the program, below the operation that waits."""
        patches = matplotlib("matplotlib.patches")
        x = SIDE + depth * self.inset
        bottom = self.floor + depth * self.gap
        box = patches.FancyBboxPatch(
            (x, bottom),
            self.width - 2 * x,
            self.y(row) + ROW / 2 - 0.03 - bottom,
            boxstyle="round,pad=0,rounding_size=0.09",
            facecolor=PAPER if depth % 2 else "#F6F6F6",
            edgecolor="#BDBDBD",
            linewidth=0.8,
            zorder=1 + depth / 1000,
        )
        self.put(self.axes.add_patch(box), first)

    def mark(self, row: int, depth: int, step: int) -> None:
        """A light behind what happens at a step."""
        if not self.moving:
            return
        patches = matplotlib("matplotlib.patches")
        x = SIDE + depth * self.inset + 0.04
        size = (self.width - 2 * x, ROW - 0.1)
        box = patches.FancyBboxPatch(
            (x, self.y(row) - ROW / 2 + 0.05),
            *size,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=MARK_LIGHT,
            edgecolor=MARK,
            linewidth=1,
            zorder=2,
        )
        self.put(self.axes.add_patch(box), step, step + 1)

    def waits(self, row: int, begin: float, end: float, step: int, back: int) -> None:
        """The line from an operation's first half to its second."""
        style = {"color": MARK if self.moving else FAINT, "linewidth": 1.2}
        last = back if self.moving else None
        y = self.y(row)
        if end - begin < 0.35:
            return
        half = 0.27 if end - begin > 0.8 else 0.0
        middle = min(max(self.width / 2, begin + 0.4), end - 0.4)
        spans = [(begin, middle - half), (middle + half, end)]
        for a, b in spans if half else [(begin, end)]:
            line = self.axes.plot([a, b], [y, y], ls=(0, (1, 2)), zorder=2.5, **style)
            self.put(line[0], step, last)
        if half:
            color = "#9A6700" if self.moving else SOFT
            text = self.axes.text(
                middle,
                y,
                "waits",
                color=color,
                ha="center",
                va="center_baseline",
                zorder=3,
            )
            text.set_fontsize(SIZE - 1.5)
            self.put(text, step, last)


def draw_nesting(trace: Any) -> Any:
    """The whole picture of a trace."""
    return set_up(trace, moving=False).figure


def set_up(trace: Any, moving: bool) -> Stage:
    """A stage with everything on it; ``moving`` adds what is only there for a while."""
    stage = Stage(trace, moving)
    _headings(stage)
    head = len(trace.inputs) + 1
    last = stage.steps - 1
    for i, entry in enumerate(trace.inputs, 1):
        stage.write(SIDE + PAD, i, squeezed(entry.there, LETTERS), color=INPUT)
        right = stage.width - SIDE - PAD
        text = squeezed(entry.back, LETTERS)
        stage.write(right, i, text, last, ha="right", color=INPUT, weight="bold")
        stage.mark(i, 0, last)
    for depth, entry in enumerate(stage.rows):
        _operation(stage, entry, head + depth, depth)
    _turn(stage, head + len(stage.rows))
    if moving:
        _words(stage)
    return stage


def _headings(stage: Stage) -> None:
    """The words and arrows at both sides."""
    top, bottom = stage.y(1) + 0.12, stage.floor + 0.02
    sides = (
        (SIDE / 2, THERE, top, bottom, 0),
        (stage.width - SIDE / 2, BACK, bottom, top, stage.turn),
    )
    for x, color, begin, end, first in sides:
        arrow = stage.axes.annotate(
            "",
            xy=(x, end),
            xytext=(x, begin),
            arrowprops={
                "arrowstyle": "-|>,head_width=0.28,head_length=0.55",
                "color": color,
                "linewidth": 2,
                "shrinkA": 0,
                "shrinkB": 0,
            },
        )
        stage.put(arrow.arrow_patch, first)
    style: Any = {"family": "DejaVu Sans", "weight": "bold"}
    stage.write(0.2, 0, "there", color=THERE, **style)
    right = stage.width - 0.2
    stage.write(right, 0, "back again", stage.turn, color=BACK, ha="right", **style)


def _operation(stage: Stage, entry: Any, row: int, depth: int) -> None:
    """One operation: its first half, its second half, and the frame around."""
    step = depth + 1
    back = 2 * len(stage.rows) + 1 - depth
    stage.frame(row, depth, step)
    left = SIDE + depth * stage.inset + PAD
    if entry is None:
        count = len(stage.trace.operations) - len(stage.rows) + 1
        text = f"… {count} more operations …"
        stage.write(left, row, text, step, color=SOFT, family="DejaVu Sans")
        return
    there, again = squeezed(entry.there, LETTERS), squeezed(entry.back, LETTERS)
    stage.mark(row, depth, step)
    stage.write(left, row, there, step, color=THERE)
    needed = entry.cotangent is not None
    color = BACK if needed else SOFT
    stage.write(stage.width - left, row, again, back, color=color, ha="right")
    begin = left + len(there) * MONO + 0.1
    end = stage.width - left - len(again) * MONO - 0.1
    stage.mark(row, depth, back)
    stage.waits(row, begin, end, step, back)


def _turn(stage: Stage, row: int) -> None:
    """Where the program is over, and the way back begins."""
    depth = len(stage.rows)
    patches = matplotlib("matplotlib.patches")
    trace = stage.trace
    left = SIDE + depth * stage.inset + 0.06
    box = patches.FancyBboxPatch(
        (left, stage.y(row) - ROW / 2 + 0.06),
        stage.width - 2 * left,
        ROW - 0.12,
        boxstyle="round,pad=0,rounding_size=0.08",
        facecolor=THERE_LIGHT,
        edgecolor="none",
        zorder=2,
    )
    stage.put(stage.axes.add_patch(box), stage.turn)
    name = f"{trace.result} = " if trace.result else ""
    text = f"the result: {name}{brief(trace.value)}"
    stage.write(left + 0.1, row, text, stage.turn, color=INK)
    seed = f"{trace.result}_bar = 1" if trace.result else "a constant"
    right = stage.width - left - 0.1
    stage.write(right, row, seed, stage.turn, color=BACK, ha="right")


def _words(stage: Stage) -> None:
    """A line below the picture that says what happens at each step."""
    style = {"color": INK, "ha": "center", "va": "center", "fontsize": SIZE + 0.5}
    middle = stage.width / 2, PAD + ROW / 2
    for step, words in enumerate(told(stage)):
        stage.put(stage.axes.text(*middle, words, **style), step, step + 1)


def told(stage: Stage) -> list[str]:
    """What happens at each step, in words."""
    rows = stage.rows
    left_out = "some operations that are left out here"
    there = [
        f"{x.name} is computed, and waits for the rest of the program"
        if x
        else left_out
        for x in rows
    ]
    back = [_returned(x) if x else left_out for x in reversed(rows)]
    result = stage.trace.result or "the result"
    return [
        "before the first operation",
        *there,
        f"the program is over: {result} changes as fast as itself",
        *back,
        "nobody waits any more: the gradients are complete",
    ]


def _returned(entry: Any) -> str:
    """What an operation does on the way back, in words."""
    if entry.cotangent is None:
        return f"nothing depends on {entry.name}: it has nothing to tell"
    names = " and ".join(dict.fromkeys(name for name, _ in entry.given))
    who = f", and tells {names}" if names else ""
    return f"{entry.name} learns its cotangent{who}"
