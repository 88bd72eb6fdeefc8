"""Random programs: source text from a seed, in a grammar of what people write.

Numbers, branches, loops, closures, recursion over numbers and over the caller's trees,
and containers made inside and given from outside.

``compare`` runs one of them in all ways; ``many_programs.py`` runs many.
"""

import linecache
import math
import os
import random
import warnings
from contextlib import contextmanager, nullcontext

import lantern
from lantern.staging import dispatch
from lantern.staging.closures import functions_of
from lantern.staging.derived import Derived

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
STATEMENTS = (
    """try:
    {0} = {1} / ({2} - {3})
except ZeroDivisionError:
    {0} = {2}""",
    """try:
    {0} = {1}
finally:
    {4} = {4} + {2}""",
    """match n % 3:
    case 0:
        {0} = {1}
    case 1 | 2 if {5}:
        {0} = {2}
    case _:
        {4} = {3}""",
    """if ({0} := {1}) > {2}:
    {4} = {0} * {3}""",
    """match ({1}, {2}):
    case ({0}, {4}) if {5}:
        {0} = {0} * {4}
    case _:
        {0} = {3}""",
    """with nullcontext({1}) as {0}:
    {4} = {0} + {2}""",
    """{0}, r0 = {1}, [{2}, {3}]
r0[0], {4} = {3}, r0[1]
{0} = {0} + r0[0]""",
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
        self.lists = []
        self.functions = []
        self.loops = 0
        self.turns = 1  # of the loops around, in all
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
        if r < 0.82:
            return self.contained(depth - 1)
        if r < 0.85:
            return f"walk({self.float(depth - 1)}, {self.float(0)}, t)"
        if r < 0.87 and self.functions:
            args = ", ".join(self.float(depth - 1) for _ in range(2))
            return f"{self.random.choice(self.functions)}({args})"
        return self.random.choice(BINARY).format(
            self.float(depth - 1), self.float(depth - 1)
        )

    def contained(self, depth):
        """A float out of a container: one made here, or the caller's row."""
        a, b, c = (self.float(depth if i == 0 else 0) for i in range(3))
        choices = [
            f"[{a}, {b}, {c}][{self.int()} % 3]",
            f"({a}, ({b}, {c}))[1][0]",
            f"{{'a': {a}, 'b': {b}}}['b']",
            f"sum([v * {b} for v in ({a}, {c}, 0.5) if v is not None])",
            f"Pair({a}, {b}).swapped().left",
            f"r[{self.int()} % 3]",
            f"sum([u * v for u, v in zip(r, [{a}, {b}, {c}])])",
            f"max(r[0], {a})",
        ]
        if self.lists:
            name = self.random.choice(self.lists)
            choices += [f"{name}[-1]", f"{name}[0]", f"{name}[{self.int()} % 2]"]
            choices += [f"sum({name})", f"(len({name}) * {a})"]
        return self.random.choice(choices)

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
        before = [list(x) for x in self.scope()]
        for _ in range(self.random.randint(1, 3)):
            self.statement(indent, depth)
        self.floats, self.ints, self.lists, self.functions = before

    def scope(self):
        """The names that are known."""
        return self.floats, self.ints, self.lists, self.functions

    def add(self, indent, text):
        """A line."""
        self.lines.append("    " * indent + text)

    def statement(self, indent, depth):
        """One statement."""
        r = self.random.random()
        if depth == 0 or r < 0.31:
            self.assignment(indent)
        elif r < 0.35:
            self.container(indent)
        elif r < 0.37:
            self.function(indent)
        elif r < 0.4:
            self.special(indent)
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

    def container(self, indent):
        """A list is made, or one of those that were made changes."""
        if not self.lists or self.random.random() < 0.5:
            name = f"l{len(self.lists)}"
            self.add(indent, f"{name} = [{self.float()}, {self.float()}]")
            self.lists.append(name)
        elif self.random.random() < 0.5:
            name = self.random.choice(self.lists)
            self.add(indent, f"{name}.append({self.float()})")
        else:
            name = self.random.choice(self.lists)
            self.add(indent, f"{name}[{self.random.choice((0, 1))}] = {self.float()}")

    def function(self, indent):
        """A function inside, which closes over variables."""
        self.counts += 1
        name, before = f"g{self.counts}", list(self.floats)
        self.add(indent, f"def {name}(a, b):")
        self.floats += ["a", "b"]
        if self.random.random() < 0.5:
            self.add(indent + 1, f"if {self.test()}:")
            self.add(indent + 2, f"return {self.float()}")
        self.add(indent + 1, f"return {self.float()}")
        self.floats = before
        self.functions.append(name)

    def special(self, indent):
        """``try``, ``match``, ``with``, ``:=``, targets of several kinds."""
        names = self.random.sample(self.floats, 2)
        parts = [self.float(1) for _ in range(3)]
        text = self.random.choice(STATEMENTS)
        text = text.format(names[0], *parts, names[1], self.test(0))
        for line in text.splitlines():
            self.add(indent, line)

    def walk(self):
        """A function that calls itself on the branches of a tree."""
        names = "x", "y", "t[2]", "walk(x, y, t[0])", "walk(y, x, t[1])"
        a, b, c, d, e = self.random.sample(names, 5)
        first, second = self.random.choice(WALKS)
        self.add(0, "def walk(x, y, t):")
        self.add(1, "if t is None:")
        self.add(2, f"return {self.random.choice(('x', 'x * y', '0.5', 'y + 1.0'))}")
        if self.random.random() < 0.5:
            self.add(1, "if t[2] > 0.8:")
            self.add(2, f"return {first.format(a, b, c)}")
        self.add(1, f"return {second.format(e, d, a)}")
        self.add(0, "")
        self.add(0, "")

    def count_loop(self, indent, depth):
        """A loop over a range."""
        end = self.random.choice(sorted(TURNS))
        if self.turns * TURNS[end] > MOST_TURNS:
            self.assignment(indent)
            return
        self.counts += 1
        i = f"i{self.counts}"
        self.add(indent, f"for {i} in range({end}):")
        ints = list(self.ints)
        self.ints.append(i)
        self.turned(indent, depth, TURNS[end])
        self.ints = ints

    def turned(self, indent, depth, turns):
        """The body of a loop."""
        self.loops += 1
        self.turns *= turns
        self.block(indent + 1, depth - 1)
        self.turns //= turns
        self.loops -= 1

    def while_loop(self, indent, depth):
        """A loop that ends after some turns at the latest."""
        if self.turns * 6 > MOST_TURNS:
            self.assignment(indent)
            return
        self.counts += 1
        k = f"k{self.counts}"
        self.add(indent, f"{k} = 0")
        self.add(indent, f"while {k} < 6 and {self.test()}:")
        self.add(indent + 1, f"{k} += 1")
        self.turned(indent, depth, 6)

    def text(self):
        """The whole program."""
        self.walk()
        self.add(0, "def f(x, y, n, t, r):")
        depth = self.random.choice((1, 1, 2, 2, 3))
        for _ in range(self.random.randint(1, 3)):
            self.statement(1, depth)
        self.add(1, f"return {self.float()}")
        return HELPER + "\n".join(self.lines) + "\n"


TURNS = {"n": 5, "3": 3, "12": 12, "n + 2": 7}  # at most, n being at most 5
MOST_TURNS = 72
WALKS = (
    ("{} + 0.5 * {}", "{} * {} + {}"),
    ("lantern.sin({})", "lantern.tanh({} + {}) * {}"),
    ("{} - {} * 0.25", "max({}, {}) - {} * 0.5"),
    ("{} * {}", "{} / (1.5 + abs({})) + {}"),
)
HELPER = """
class Pair:
    def __init__(self, left, right):
        self.left, self.right = left, right

    def swapped(self):
        return Pair(self.right, self.left)


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
    space = {"lantern": lantern, "math": math, "nullcontext": nullcontext}
    space["__name__"] = "random_program"
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


def alike(a, b, tolerance=0.0, doubt=0.0):
    """Whether two outcomes are the same, up to what is in doubt."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        if a == b or (a != a and b != b):
            return True
        return abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-3) + doubt
    return a == b


MODES = ("interpret", "O0", "O2")
WAYS = ("value", "gradient", "gradient of compiled", "forward")


def ways(f):
    """What is compared: its name, what is compiled, what is called, a tolerance."""

    def moved(x, y, n, t, r):
        return lantern.jvp(lambda x: f(x, y, n, t, r), (x,), (0.5,))[1]

    gradient = lantern.grad(f)
    yield "value", f, lambda jitted: jitted, f, 0.0
    yield "gradient", gradient, lambda jitted: jitted, gradient, 1e-9
    yield "gradient of compiled", f, lantern.grad, gradient, 1e-9
    yield "forward", moved, lambda jitted: jitted, moved, 1e-9


def drawn_tree(draw, depth):
    """A tree of tuples: two branches, or None, and a number."""
    if depth == 0 or draw.random() < 0.2:
        return None
    branches = drawn_tree(draw, depth - 1), drawn_tree(draw, depth - 1)
    return (*branches, round(draw.uniform(0.3, 1.3), 2))


@contextmanager
def staged_once():
    """Have each function staged once for all modes, none of which changes programs."""
    stage, known = dispatch.staged, {}

    def staged(f, args, apart=(), look=None):
        name = (type(f), f.f, f.by) if isinstance(f, Derived) else f
        key = name, dispatch.signature_of(args, apart)
        if key not in known:
            try:
                known[key] = stage(f, args, apart), None
            except Exception as error:
                known[key] = None, error
        made, error = known[key]
        if error is not None:
            raise error
        return made

    dispatch.staged = staged
    try:
        yield known
    finally:
        dispatch.staged = stage


def misplaced(function):
    """Values that a program uses where it has not, or need not have, computed them.

    Native code needs no order of constants; the interpreter does.
    """
    found = []

    def look(block, before):
        known = before | set(block.parameters)
        for node in block.nodes:
            found.extend(x for x in node.inputs if x not in known)
            header = set()
            for inside in node.blocks:
                seen = look(inside, known | header)
                header = seen if inside.kind == "header" else set()
            known.add(node)
        found.extend(x for x in block.results if x not in known)
        return known

    for f in functions_of(function):
        look(f.body, set())
    return found


def doubt(f, args):
    """By how much the plain function's two derivatives by its first number differ.

    They add up the same terms in other orders: where these cancel, so does the result.
    """
    there = outcome(lantern.grad(f), args)
    ahead = outcome(
        lambda x: lantern.jvp(lambda x: f(x, *args[1:]), (x,), (1.0,))[1], args[:1]
    )
    both = isinstance(there, float) and isinstance(ahead, float)
    return abs(there - ahead) if both else 0.0


@contextmanager
def running(mode):
    """Have programs run in a mode."""
    before = os.environ.get("LANTERN_JIT")
    os.environ["LANTERN_JIT"] = mode
    try:
        yield
    finally:
        if before is None:
            del os.environ["LANTERN_JIT"]
        else:
            os.environ["LANTERN_JIT"] = before


def compare(seed, modes=MODES, count=4):
    """What differs between the ways to run a program; how many were compiled."""
    text, f = program(seed)
    draw = random.Random(seed + 1)
    examples = [
        (
            round(draw.uniform(-2, 2), 3),
            round(draw.uniform(-2, 2), 3),
            draw.randint(0, 5),
            drawn_tree(draw, 3) or (None, None, 0.5),
            [round(draw.uniform(-2, 2), 2) for _ in range(3)],
        )
        for _ in range(4)
    ]
    bad, compiled, reasons = [], 0, []
    with staged_once() as programs:
        for name, compiled_one, around, plain, tolerance in [*ways(f)][:count]:
            expected = [outcome(plain, args) for args in examples]
            for mode in modes:
                jitted = lantern.jit(compiled_one)
                with running(mode):
                    for args, right in zip(examples, expected, strict=True):
                        found = outcome(around(jitted), args)
                        if alike(found, right, tolerance):
                            continue
                        slack = 2 * doubt(f, args) if tolerance else 0.0
                        if math.isnan(slack):  # forward mode left the range of floats
                            exact = lantern.jit(compiled_one, exact=True)
                            found, slack = outcome(around(exact), args), 0.0
                        if not alike(found, right, tolerance, slack):
                            bad.append((mode, name, args, found, right))
                told = lantern.explain(jitted)
                compiled += "runs as it is" not in told
                reasons += [told] * ("runs as it is" in told)
    made = [x[0].function for x, _ in programs.values() if x is not None]
    bad += [("misplaced", x) for one in made for x in misplaced(one)]
    return text, bad, compiled, reasons
