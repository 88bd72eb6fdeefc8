"""The ways to write and run one handler, which all have to agree.

A world is a style of handler (generator or direct) × a driver × a kind of delimiter
(``reset``, where the body has a greenlet of its own, or ``delimit``, where it has not).
"""

from dataclasses import dataclass, field
from typing import Any

from lantern.cps import Prompt, delimit, reset, shift


def same(answer: Any) -> Any:
    return answer


@dataclass
class World:
    style: str
    driver: str
    place: str
    prompt: Prompt = field(init=False)

    def __post_init__(self) -> None:
        self.prompt = Prompt(self.name, driver=self.driver)

    @property
    def name(self) -> str:
        return f"{self.style}, {self.driver}, {self.place}"

    def run(self, body: Any) -> Any:
        """The answer of a body, up to a delimiter."""
        if self.place == "reset":
            return reset(body, prompt=self.prompt)
        return delimit(body, [], self.prompt)

    def shift(self, value: Any, after: Any = same, before: Any = None) -> Any:
        """Shift to a handler that resumes the rest with a value."""
        return shift(self.handler(value, after, before), prompt=self.prompt)

    def handler(self, value: Any, after: Any = same, before: Any = None) -> Any:
        """``before()``, then hand over a value, then ``after(answer)``."""

        def generator():
            if before is not None:
                before()
            answer = yield value
            return after(answer)

        def direct(k):
            if before is not None:
                before()
            return after(k(value))

        return generator if self.style == "generator" else direct

    def catch(self, error: type[BaseException], otherwise: Any) -> Any:
        """Shift with None to a handler that turns an exception into an answer."""

        def generator():
            try:
                return (yield)
            except error:
                return otherwise

        def direct(k):
            try:
                return k()
            except error:
                return otherwise

        handler = generator if self.style == "generator" else direct
        return shift(handler, prompt=self.prompt)

    def abort(self, value: Any) -> Any:
        """Shift to a handler that returns a value and never resumes the rest."""

        def generator():
            return value
            yield

        def direct(k):
            return value

        handler = generator if self.style == "generator" else direct
        return shift(handler, prompt=self.prompt)


WORLDS = [
    World(style, driver, place)
    for style, driver in [
        ("generator", "in place"),
        ("generator", "switching"),
        ("direct", "in place"),
        ("direct", "switching"),
    ]
    for place in ("reset", "delimit")
]
