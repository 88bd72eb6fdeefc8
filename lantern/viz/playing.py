"""The picture of nested continuations in motion: a player, an animated SVG, a GIF."""

import hashlib
import io
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from lantern.errors import ArgumentError
from lantern.files import write_file
from lantern.viz.drawing import styled, svg
from lantern.viz.nesting import Part, Stage, set_up

__all__ = ["Player"]

_PART = re.compile(r'id="part-(\d+)-(\d+)-\d+"')

_SIZE = re.compile(r' width="[^"]*" height="[^"]*"')

_PLAYER = """<div id="{name}" style="max-width:{width}px;background:#fff">
{picture}
<style>
:is([data-theme="dark"], [data-jp-theme-light="false"]) #{name} {{
  filter: invert(0.93) hue-rotate(180deg); }}
#{name} button {{ background: #f6f6f6; border: 1px solid #bbb; color: #222;
border-radius: 4px; padding: 2px 10px; }}</style>
<div style="text-align:center;font-family:sans-serif">
<button data-go="-9999" title="to the start">|◀</button>
<button data-go="-1" title="one step back">◀</button>
<button data-go="0" title="play or stop">play</button>
<button data-go="1" title="one step on">▶</button>
<input type="range" min="0" max="{last}" value="0" style="width:30%"/>
<span style="color:#555">0 / {last}</span>
</div>
<script>
(function () {{
  var root = document.getElementById("{name}"), step = 0, timer = null;
  var slider = root.querySelector("input"), count = root.querySelector("span");
  function show(s) {{
    step = Math.max(0, Math.min({last}, s));
    slider.value = step;
    count.textContent = step + " / {last}";
    root.querySelectorAll("[data-first]").forEach(function (part) {{
      var seen = step >= +part.dataset.first && step < +part.dataset.end;
      part.style.display = seen ? "inline" : "none";
    }});
  }}
  function stop() {{ clearInterval(timer); timer = null; }}
  function play() {{
    if (timer) return stop();
    if (step >= {last}) show(0);
    timer = setInterval(function () {{
      show(step + 1);
      if (step >= {last}) stop();
    }}, {milliseconds});
  }}
  root.querySelectorAll("button").forEach(function (button) {{
    var go = +button.dataset.go;
    button.onclick = go ? function () {{ stop(); show(step + go); }} : play;
  }});
  slider.oninput = function () {{ stop(); show(+slider.value); }};
  show(0);
}})();
</script>
</div>"""


class Player:
    """The picture of a trace, step by step; in a notebook it has buttons.

    Args:
        trace: what ``viz.trace`` has returned.
        seconds: how long each step is shown.

    Attributes:
        steps: how many steps there are.
    """

    def __init__(self, trace: Any, seconds: float = 1.0) -> None:
        self._trace, self._seconds = trace, seconds
        self.steps = 2 * len(trace.shown()) + 3

    def _stage(self) -> Stage:
        with styled():
            return set_up(self._trace, moving=True)

    def _parts(self) -> str:
        """The picture as SVG, all parts on top of each other, each with its steps."""
        stage = self._stage()
        for i, (artist, first, end) in enumerate(stage.parts):
            artist.set_gid(f"part-{first}-{self.steps if end is None else end}-{i}")
        picture = svg(stage.figure)
        return picture[picture.index("<svg") :]

    def _repr_html_(self) -> str:
        def interval(found: re.Match[str]) -> str:
            first, end = found.groups()
            hidden = "" if int(end) == self.steps else ' style="display:none"'
            return f'data-first="{first}" data-end="{end}"{hidden}'

        picture = _PART.sub(interval, self._parts())
        return _PLAYER.format(
            name="lantern-" + hashlib.sha256(picture.encode()).hexdigest()[:12],
            width=round(self._stage().width * 96),
            picture=_SIZE.sub(' style="width:100%;height:auto"', picture, count=1),
            last=self.steps - 1,
            milliseconds=round(1000 * self._seconds),
        )

    def frame(self, step: int) -> Any:
        """The picture at one step, as a figure of matplotlib.

        Raises:
            ArgumentError: if there is no such step.
            MissingExtraError: if matplotlib is not installed.
        """
        if not 0 <= step < self.steps:
            raise ArgumentError(
                f"frame: there are steps 0 to {self.steps - 1}, got {step}. "
                f"Choose one of them."
            )
        stage = self._stage()
        _show(stage.parts, step)
        return stage.figure

    def save(self, path: str | Path) -> Path:
        """Write the picture in motion; it begins again when it is over.

        Args:
            path: where; its ending says how: ``.svg``, ``.gif`` or ``.html``.

        Returns:
            The path.

        Raises:
            ArgumentError: if the ending is another one.
            MissingExtraError: if matplotlib is not installed.
        """
        path = Path(path)
        kind = path.suffix.lower()
        if kind == ".svg":
            data = self._animated().encode()
        elif kind == ".html":
            data = self._repr_html_().encode()
        elif kind == ".gif":
            data = self._gif()
        else:
            raise ArgumentError(
                f"save: what moves is written as .svg, .gif or .html, not as {kind!r}. "
                f"Choose one of these endings."
            )
        write_file("save", path, data)
        return path

    def _animated(self) -> str:
        """An SVG whose parts appear and vanish by style alone."""
        intervals: set[tuple[int, int]] = set()

        def named(found: re.Match[str]) -> str:
            first, end = map(int, found.groups())
            intervals.add((first, end))
            return f'class="from-{first}-{end}"'

        picture = _PART.sub(named, self._parts())
        turns = self.steps + 2  # the last step is shown for longer
        rules = []
        for first, end in sorted(intervals):
            end_turn = turns if end == self.steps else end
            name = f"from-{first}-{end}"
            stops = {0: "hidden", 100 * first / turns: "visible"}
            if end_turn < turns:
                stops[100 * end_turn / turns] = "hidden"
            frames = "".join(f"{a:.3f}%{{visibility:{b}}}" for a, b in stops.items())
            seconds = turns * self._seconds
            rules.append(
                f"@keyframes {name}{{{frames}}}"
                f".{name}{{animation:{name} {seconds:g}s step-end infinite}}"
            )
        style = f"<style>{''.join(rules)}</style>"
        begin = picture.index(">") + 1
        return picture[:begin] + style + picture[begin:]

    def _gif(self) -> bytes:
        stage, image = self._stage(), import_module("PIL.Image")
        frames = []
        with styled():
            # The whole comes first: it is what a page shows that shows one frame.
            for step in (self.steps - 1, *range(self.steps - 1)):
                _show(stage.parts, step)
                out = io.BytesIO()
                stage.figure.savefig(out, format="png", dpi=100)
                frames.append(image.open(out).convert("RGB"))
        width, height = frames[0].size
        strip = image.new("RGB", (width, height * len(frames)))
        for i, frame in enumerate(frames):
            strip.paste(frame, (0, height * i))
        colours = strip.quantize(255)  # the same in all frames, so that none flickers
        tops = range(0, height * len(frames), height)
        frames = [colours.crop((0, top, width, top + height)) for top in tops]
        milliseconds = round(1000 * self._seconds)
        out = io.BytesIO()
        frames[0].save(
            out,
            format="gif",
            save_all=True,
            append_images=frames[1:],
            duration=[3 * milliseconds] + [milliseconds] * (self.steps - 1),
            loop=0,
            optimize=True,
        )
        return out.getvalue()

    def __repr__(self) -> str:
        return f"<Player of {self.steps} steps>\n{self._trace}"


def _show(parts: list[Part], step: int) -> None:
    for part in parts:
        part.artist.set_visible(part.seen(step))
