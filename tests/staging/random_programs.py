"""Random programs: source text from a seed, in a grammar of what people write.

``python -m tests.staging.random_programs 1000`` compares a thousand of them.
"""

import linecache
import math
import os
import random
import sys
import warnings

import lantern

UNARY = (
    "lantern.sin({})",
    "lantern.tanh({})",
    "lantern.exp(-abs({}))",
    "-{}",
    "abs({})",
)
BINARY = (
    "({} + {})",
    "({} - {})",
    "({} * {})",
    "({} / (1.5 + abs({})))",
    "max({}, {})",
)
RARE = (
    "({} // {})",
    "({} % {})",
    "({} / {})",
    "({} ** 2 + {})",
    "lantern.log({} + {})",
)
TESTS = ("{} > {}", "{} <= {}", "not {} < {}", "0.1 < {} < {}", "{} == {}")


class Grammar:
    """One program in the making."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.floats = ["x", "y"]
        self.ints = ["n"]
        self.lines = []
        self.loops = 0
        self.counts = 0

    def float(self, depth=2):
        """An expression whose value is a float."""
        r = self.random.random()
        if depth == 0 or r < 0.25:
            if r < 0.06:
                return repr(round(self.random.uniform(-2, 2), 2))
            return self.random.choice(self.floats)
        if r < 0.45:
            return self.random.choice(UNARY).format(self.float(depth - 1))
        if r < 0.52:
            return self.random.choice(RARE).format(
                self.float(depth - 1), self.float(depth - 1)
            )
        if r < 0.6:
            a, b = self.float(depth - 1), self.float(depth - 1)
            return f"({a} if {self.test(depth - 1)} else {b})"
        if r < 0.66:
            return f"({self.float(depth - 1)} * {self.int()})"
        if r < 0.7:
            return f"sum([{self.float(0)}, {self.float(depth - 1)}])"
        if r < 0.74:
            return f"helper({self.float(depth - 1)}, {self.int()} % 4)"
        if r < 0.78:
            return f"(lambda a, b=x: a * b + y)({self.float(depth - 1)})"
        return self.random.choice(BINARY).format(
            self.float(depth - 1), self.float(depth - 1)
        )

    def int(self):
        """An expression whose value is an int."""
        return self.random.choice(
            [*self.ints, "2", "3", f"({self.random.choice(self.ints)} + 1)", "n // 2"]
        )

    def test(self, depth=1):
        """A condition."""
        r = self.random.random()
        if r < 0.15:
            return f"({self.test(0)} and {self.test(0)})"
        if r < 0.3:
            return f"({self.test(0)} or {self.test(0)})"
        if r < 0.4:
            return f"{self.int()} % 2 == 0"
        return self.random.choice(TESTS).format(self.float(depth), self.float(depth))

    def block(self, indent, depth):
        """Some statements."""
        floats, ints = list(self.floats), list(self.ints)
        for _ in range(self.random.randint(1, 3)):
            self.statement(indent, depth)
        self.floats, self.ints = floats, ints

    def add(self, indent, text):
        """A line."""
        self.lines.append("    " * indent + text)

    def statement(self, indent, depth):
        """One statement."""
        r = self.random.random()
        if depth == 0 or r < 0.35:
            self.assignment(indent)
        elif r < 0.6:
            self.add(indent, f"if {self.test()}:")
            self.block(indent + 1, depth - 1)
            if self.random.random() < 0.6:
                self.add(indent, "else:")
                self.block(indent + 1, depth - 1)
        elif r < 0.8:
            self.count_loop(indent, depth)
        elif r < 0.9:
            self.while_loop(indent, depth)
        elif self.loops and r < 0.95:
            self.add(indent, f"if {self.test()}:")
            self.add(indent + 1, self.random.choice(["break", "continue"]))
        elif r < 0.97:
            self.add(indent, f"if {self.test()}:")
            self.add(indent + 1, f"return {self.float()}")
        else:
            a, b = self.random.choice(self.floats), self.random.choice(self.floats)
            self.add(indent, f"{a}, {b} = {self.float()}, {self.float()}")

    def assignment(self, indent):
        """A variable gets a value, at the outermost level a new one, too."""
        new = indent == 1 and self.random.random() < 0.5
        name = f"v{len(self.floats)}" if new else self.random.choice(self.floats)
        if not new and self.random.random() < 0.3:
            self.add(indent, f"{name} {self.random.choice('+-*')}= {self.float()}")
        elif self.random.random() < 0.08:
            self.add(indent, f"{name} = {self.int()}")
        else:
            self.add(indent, f"{name} = {self.float(3)}")
        if new:
            self.floats.append(name)

    def count_loop(self, indent, depth):
        """A loop over a range."""
        self.counts += 1
        i = f"i{self.counts}"
        end = self.random.choice(["n", "3", "12", "n + 2"])
        self.add(indent, f"for {i} in range({end}):")
        ints = list(self.ints)
        self.ints.append(i)
        self.loops += 1
        self.block(indent + 1, depth - 1)
        self.loops -= 1
        self.ints = ints

    def while_loop(self, indent, depth):
        """A loop that ends after some turns at the latest."""
        self.counts += 1
        k = f"k{self.counts}"
        self.add(indent, f"{k} = 0")
        self.add(indent, f"while {k} < 6 and {self.test()}:")
        self.add(indent + 1, f"{k} += 1")
        self.loops += 1
        self.block(indent + 1, depth - 1)
        self.loops -= 1

    def text(self):
        """The whole program."""
        self.add(0, "def f(x, y, n):")
        for _ in range(self.random.randint(2, 4)):
            self.statement(1, 3)
        self.add(1, f"return {self.float()}")
        return HELPER + "\n".join(self.lines) + "\n"


HELPER = """
def helper(x, k):
    if k <= 0:
        return x
    return lantern.sin(x) * helper(x * 0.9, k - 1)


"""


def program(seed):
    """The text of a program, and its function."""
    text = Grammar(seed).text()
    name = f"<program {seed}>"
    lines = text.splitlines(keepends=True)
    linecache.cache[name] = (len(text), None, lines, name)
    space = {"lantern": lantern, "math": math, "__name__": "random_program"}
    exec(compile(text, name, "exec"), space)
    return text, space["f"]


def outcome(f, args):
    """What a call gives: a value, or the type of an exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return f(*args)
        except Exception as error:
            return type(error)


def alike(a, b, tolerance=0.0):
    """Whether two outcomes are the same."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        if a == b or (a != a and b != b):
            return True
        return abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-3)
    return a == b


MODES = ("interpret", "O0", "O2")
WAYS = ("value", "gradient", "gradient of compiled", "forward")


def ways(f):
    """What is compared: its name, what is compiled, what is called, a tolerance."""

    def moved(x, y, n):
        return lantern.jvp(lambda x: f(x, y, n), (x,), (0.5,))[1]

    gradient = lantern.grad(f)
    yield "value", f, lambda jitted: jitted, f, 0.0
    yield "gradient", gradient, lambda jitted: jitted, gradient, 1e-9
    yield "gradient of compiled", f, lantern.grad, gradient, 1e-9
    yield "forward", moved, lambda jitted: jitted, moved, 1e-9


def compare(seed, modes=MODES):
    """What differs between the ways to run a program; how many were compiled."""
    text, f = program(seed)
    draw = random.Random(seed + 1)
    examples = [
        (
            round(draw.uniform(-2, 2), 3),
            round(draw.uniform(-2, 2), 3),
            draw.randint(0, 5),
        )
        for _ in range(4)
    ]
    bad, compiled, reasons = [], 0, []
    before = os.environ.get("LANTERN_JIT")
    for name, compiled_one, around, plain, tolerance in ways(f):
        expected = [outcome(plain, args) for args in examples]
        for mode in modes:
            os.environ["LANTERN_JIT"] = mode
            jitted = lantern.jit(compiled_one)
            for args, right in zip(examples, expected, strict=True):
                found = outcome(around(jitted), args)
                if not alike(found, right, tolerance):
                    bad.append((mode, name, args, found, right))
            told = lantern.explain(jitted)
            compiled += "runs as it is" not in told
            reasons += [told] * ("runs as it is" in told)
    if before is None:
        del os.environ["LANTERN_JIT"]
    else:
        os.environ["LANTERN_JIT"] = before
    return text, bad, compiled, reasons


def main(count, first=0):
    """Compare many programs; print what differs."""
    compiled = wrong = 0
    causes = {}
    for seed in range(first, first + count):
        text, bad, done, reasons = compare(seed)
        compiled += done
        for told in reasons:
            cause = told.partition("runs as it is: ")[2].partition("\n")[0][:70]
            causes[cause] = causes.get(cause, 0) + 1
        if bad:
            wrong += 1
            if wrong <= 3:
                print(seed, text, *bad, sep="\n")
    total = count * len(WAYS) * len(MODES)
    print(f"{count} programs: {wrong} wrong; {compiled} of {total} compiled")
    for cause, times in sorted(causes.items(), key=lambda x: -x[1])[:10]:
        print(f"  {times}: {cause}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
