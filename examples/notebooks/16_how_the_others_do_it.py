# %% [markdown]
# # 16 How the others do it
#
# **A tape, source transformation, staging, continuations: what can each of them do, and
# what can it not?**
#
# There are four ways from a program to its derivative. Each is a page of Python here,
# for numbers with + and ×. We run the same seven programs through all four.

# %%
import ast
import inspect
import textwrap
import timeit

import matplotlib.pyplot as plt

import lantern

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
plt.rcParams.update(
    {
        "figure.figsize": (7.5, 2.8),
        "figure.constrained_layout.use": True,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
    }
)


# %% [markdown]
# ## Seven programs


# %%
def straight(x):
    y = x * x
    return y * x + 2.0 * x


def square(x):
    return x * x


def calls(x):
    return square(square(x) + x)


def branch(x):
    if x > 1.0:
        return x * x
    return x


def fixed_loop(x):
    y = x
    for _ in range(3):
        y = y * x + x
    return y


# %%
def open_loop(x):  # how often, depends on x
    y = x
    while y < 100.0:
        y = y * x
    return y


def recursive(x, n=4):
    return x if n == 0 else x * recursive(x, n - 1)


def in_a_list(x):
    parts = [x]
    parts.append(parts[0] * x)
    return parts[0] + parts[1]


PROGRAMS = [straight, calls, branch, fixed_loop, open_loop, recursive, in_a_list]


# %% [markdown]
# All four need operators. One class has them, and each way says what `operate` does.


# %%
class Number:
    """Whatever has a value, + and *."""

    def __add__(self, other):
        return self.operate("+", other)

    def __mul__(self, other):
        return self.operate("*", other)

    def __rmul__(self, other):
        return self.operate("*", other)

    def __gt__(self, other):
        return self.value > other

    def __lt__(self, other):
        return self.value < other


# %% [markdown]
# ## 1. A tape
#
# Run the program. Every operation appends to a list what is to be done on the way back:
# its operands, and its partial derivatives. Then go through the list from its end.


# %%
class Taped(Number):
    def __init__(self, value, tape):
        self.value, self.tape, self.bar = value, tape, 0.0

    def operate(self, sign, other):
        if not isinstance(other, Taped):
            other = Taped(other, self.tape)
        if sign == "+":
            z, partials = self.value + other.value, (1.0, 1.0)
        else:
            z, partials = self.value * other.value, (other.value, self.value)
        z = Taped(z, self.tape)
        self.tape.append((z, (self, other), partials))
        return z


def grad_tape(f):
    def derivative(x):
        tape = []
        x = Taped(x, tape)
        f(x).bar = 1.0
        for z, operands, partials in reversed(tape):
            for operand, partial in zip(operands, partials, strict=True):
                operand.bar += z.bar * partial
        return x.bar

    return derivative


grad_tape(straight)(2.0)

# %% [markdown]
# What Python does between the operations does not matter: the tape holds what *has
# happened*. So branches, loops and recursion just work. Every run makes a new tape.

# %% [markdown]
# ## 2. Source transformation
#
# Can we do without a run? Then we must *read* the program. First turn its text into
# simple steps. Each step has a new name, so nothing is overwritten.


# %%
def parse(f):
    return ast.parse(textwrap.dedent(inspect.getsource(f))).body[0]


def read(tree):
    """The steps of a function of one argument: (name, left, sign, right)."""
    names = {tree.args.args[0].arg: "x"}
    steps = []

    def flat(node):
        match node:
            case ast.Constant():
                return repr(node.value)
            case ast.Name():
                return names[node.id]
            case ast.BinOp(left, ast.Add() | ast.Mult() as sign, right):
                sign = "+" if isinstance(sign, ast.Add) else "*"
                step = flat(left), sign, flat(right)
                steps.append((f"t{len(steps) + 1}", *step))
                return steps[-1][0]
        raise NotImplementedError(type(node).__name__)

    for statement in tree.body:
        match statement:
            case ast.Assign([ast.Name(target)], value):
                names[target] = flat(value)
            case ast.Return(value):
                return steps, flat(value)
            case _:
                raise NotImplementedError(type(statement).__name__)


steps, result = read(parse(straight))
print(*steps, sep="\n")


# %% [markdown]
# Now write the text of the derivative: all steps forwards, then all of them backwards.


# %%
def write(steps, result):
    """The text of the derivative of these steps."""
    bars = [f"{name}_bar" for name in ["x", *(step[0] for step in steps)]]
    there, back = [], [" = ".join(bars) + " = 0.0", f"{result}_bar = 1.0"]
    for z, left, sign, right in steps:
        there.append(f"{z} = {left} {sign} {right}")
    for z, left, sign, right in reversed(steps):
        for operand, other in [(left, right), (right, left)]:
            if f"{operand}_bar" in bars:
                factor = "" if sign == "+" else f" * {other}"
                back.append(f"{operand}_bar += {z}_bar{factor}")
    lines = [*there, *back, "return x_bar"]
    return "def derivative(x):\n" + textwrap.indent("\n".join(lines), "    ")


def compiled(text):
    scope = {}
    exec(text, scope)
    return scope["derivative"]


print(write(steps, result))


# %%
def grad_source(f):
    return compiled(write(*read(parse(f))))


grad_source(straight)(2.0)

# %% [markdown]
# You can read this derivative, keep it, or give it to a compiler. And what is the
# price? A reader of source must know *all of the language*. Ours knows assignments and
# arithmetic. It knows no loops and no calls.

# %% [markdown]
# ## 3. Staging
#
# Can Python read the program for us? Run it on *symbols*, which have no value, and
# write down the steps. Python carries out the calls, the lists and the loops of known
# length. The steps remain, and `write` takes them as above.


# %%
class Symbol(Number):
    def __init__(self, name, steps):
        self.name, self.steps = name, steps

    def operate(self, sign, other):
        other = other.name if isinstance(other, Symbol) else repr(other)
        z = f"t{len(self.steps) + 1}"
        self.steps.append((z, self.name, sign, other))
        return Symbol(z, self.steps)

    def compare(self, other):
        raise TypeError("a symbol has no value yet")

    __gt__ = __lt__ = compare


def stage(f):
    steps = []
    return steps, f(Symbol("x", steps)).name


def grad_staged(f):
    return compiled(write(*stage(f)))


print(write(*stage(fixed_loop)))

# %% [markdown]
# The loop is gone: it is unrolled. But what about `x > 1.0`? There is no x yet, so
# there is no answer. Real systems have their own branches and loops for that, which
# *are* steps.

# %% [markdown]
# ## 4. Continuations
#
# You know this one. An operation hands its value to the rest of the program, and goes
# on when the rest is over.


# %%
class Waiting(Number):
    def __init__(self, value, rest):
        self.value, self.rest, self.bar = value, rest, 0.0

    def operate(self, sign, other):
        if not isinstance(other, Waiting):
            other = Waiting(other, self.rest)
        rule = (self.plus if sign == "+" else self.times)(other)
        self.rest.append(rule)
        return next(rule)

    def plus(self, other):
        yield (z := Waiting(self.value + other.value, self.rest))
        self.bar += z.bar
        other.bar += z.bar

    def times(self, other):
        yield (z := Waiting(self.value * other.value, self.rest))
        self.bar += z.bar * other.value
        other.bar += z.bar * self.value


def grad_continuations(f):
    def derivative(x):
        rest = []
        x = Waiting(x, rest)
        f(x).bar = 1.0
        for rule in reversed(rest):
            next(rule, None)
        return x.bar

    return derivative


grad_continuations(straight)(2.0)

# %% [markdown]
# How does this differ from the tape? Both are a list, and both run it backwards. A tape
# holds *data* about the operations. This list holds the operations themselves, stopped
# in the middle. (Chapter 05 makes one from the other.)

# %% [markdown]
# What is that good for? An operation that is *still there* can hold a file open from
# there to back, catch an exception of the backward pass, or pause the program (chapter
# 15). An entry on a tape cannot.

# %% [markdown]
# ## All programs, all systems

# %%
SYSTEMS = {
    "tape": grad_tape,
    "source": grad_source,
    "staging": grad_staged,
    "continuations": grad_continuations,
    "lantern.grad": lantern.grad,
}


def attempt(system, program):
    """What comes of it: "right", or the name of the error."""
    try:
        derivative = system(program)(2.0)
    except (NotImplementedError, TypeError, KeyError) as error:
        return f"{type(error).__name__}: {error}"
    assert derivative == lantern.grad(program)(2.0), "a wrong gradient, in silence"
    return "right"


table = [[attempt(s, program) for s in SYSTEMS.values()] for program in PROGRAMS]

marks = {"right": ("✓", BLUE), "TypeError": ("✗", ORANGE)}
figure, axes = plt.subplots(figsize=(7.5, 3.2))
for row, (program, cells) in enumerate(zip(PROGRAMS, table, strict=True)):
    axes.text(-0.6, row, program.__name__, ha="right", va="center", family="monospace")
    for column, cell in enumerate(cells):
        mark, color = marks.get(cell.partition(":")[0], ("not on this page", GREY))
        size = 15 if len(mark) == 1 else 8
        place = {"ha": "center", "va": "center"}
        axes.text(column, row, mark, color=color, size=size, **place)
for column, name in enumerate(SYSTEMS):
    axes.text(column, -0.9, name, ha="center", weight="bold", size=9)
axes.set(xlim=(-1.9, 4.6), ylim=(6.6, -1.2))
axes.axis("off")
plt.show()

# %%
for program, cells in zip(PROGRAMS, table, strict=True):
    for name, cell in zip(SYSTEMS, cells, strict=True):
        if cell != "right":
            print(f"{program.__name__:<12}{name:<9}{cell}")

# %% [markdown]
# There are two kinds of gaps. "Not on this page" means more work. The two ✗ are
# different: the program asks for x, and there is no x yet.

# %% [markdown]
# Each gap is an error, and none is a wrong number. One line sees to that: `compare`. If
# a symbol answered `x > 1.0` with True, staging would be wrong in silence.

# %% [markdown]
# ## What the gaps buy
#
# Speed. A derivative that was written before the run does no bookkeeping in the run.
# (`lantern.grad` does more than our page: it takes any kind of number, nests, and
# checks its input.)

# %% tags=["varies"]
derivatives = {name: system(straight) for name, system in SYSTEMS.items()}
seconds = dict.fromkeys(SYSTEMS, 1.0)
for _ in range(10):  # in turns, so that other load meets all of them
    for name, derivative in derivatives.items():
        run = timeit.timeit(lambda d=derivative: d(2.0), number=500) / 500
        seconds[name] = min(seconds[name], run)

figure, axes = plt.subplots(figsize=(6, 2.2))
for name, second in seconds.items():
    micro = 1e6 * second
    axes.barh(name, micro, color=GREY if "lantern" in name else BLUE, height=0.6)
    axes.text(micro + 0.1, name, f"{micro:.1f} µs", va="center")
axes.invert_yaxis()
axes.set(xticks=[], title="One gradient of straight")
axes.spines["bottom"].set_visible(False)
plt.show()

# %% [markdown]
# ## Who does it how
#
# As of November 2026. The last column says how real systems close the gaps of our page.
#
# | way | for example | what they do about the gaps |
# |---|---|---|
# | tape | PyTorch 2.13, HIPS autograd 1.9, micrograd | there are none; each operation costs bookkeeping |
# | source | Tapenade (Fortran, C), Zygote (Julia's intermediate code), Enzyme (LLVM's) | they transform branches and loops, too, and keep what is overwritten on a stack |
# | staging | JAX 0.10 under `jit`, TensorFlow 1 | `cond`, `while_loop` and `scan` are steps; `while_loop` has no reverse derivative |
# | continuations | Lantern (Scala, 2019), this library | there are none; each operation costs bookkeeping, unless it is staged (chapter 17) |
#
# Some mix them. JAX's `grad` without `jit` takes any branch or loop. `torch.compile`
# stages what it can and leaves the rest to Python. The paper's Lantern stages
# continuations, so none is left when the program runs.

# %% [markdown]
# Which should you take? If a program has the same shape for every input and runs a
# million times, stage it. If its shape depends on the data, or you want to step through
# it, do not.

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** *One more operation.* Teach the tape and the continuations
# subtraction. In how many places must you change each?
#
# **Exercise 2.** *A loop for the reader.* Unroll `for _ in range(3):` with a constant,
# so that `grad_source(fixed_loop)` works. Why does this not help with `open_loop`?
#
# **Exercise 3.** *Frozen in silence.* Let `Symbol.__gt__` answer True instead of
# raising. At which input is `grad_staged(branch)` wrong then? Which program with a
# branch would be right all the same?


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
class TapedMinus(Taped):
    def __sub__(self, other):
        return self + other * -1.0  # in one place, out of what is there


class WaitingMinus(Waiting):
    def __sub__(self, other):
        self.rest.append(rule := self.minus(other))
        return next(rule)

    def minus(self, other):  # a rule of its own: one place as well
        yield (z := WaitingMinus(self.value - other.value, self.rest))
        self.bar += z.bar
        other.bar -= z.bar


tape, rest = [], []
a, b = TapedMinus(5.0, tape), TapedMinus(3.0, tape)
(a - b).bar = 1.0
for z, operands, partials in reversed(tape):
    for operand, partial in zip(operands, partials, strict=True):
        operand.bar += z.bar * partial
c, d = WaitingMinus(5.0, rest), WaitingMinus(3.0, rest)
(c - d).bar = 1.0
for rule in reversed(rest):
    next(rule, None)
assert (a.bar, b.bar) == (c.bar, d.bar) == (1.0, -1.0)


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
class Unroll(ast.NodeTransformer):
    """`for _ in range(n)` with a constant n becomes n copies of its body."""

    def visit_For(self, node):
        match node.iter:
            case ast.Call(ast.Name("range"), [ast.Constant(count)]):
                return [statement for _ in range(count) for statement in node.body]
        return node


unrolled = Unroll().visit(parse(fixed_loop))
derivative = compiled(write(*read(unrolled)))
assert derivative(2.0) == lantern.grad(fixed_loop)(2.0)
# In `open_loop` the number of rounds is known only when x is: no text of a fixed length.


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
class Credulous(Symbol):
    def operate(self, sign, other):
        z = super().operate(sign, other)
        return Credulous(z.name, z.steps)

    def __gt__(self, other):
        return True


steps = []
frozen = compiled(write(steps, branch(Credulous("x", steps)).name))
assert frozen(2.0) == lantern.grad(branch)(2.0)  # above 1 it is right, by luck
assert frozen(0.7) != lantern.grad(branch)(0.7)  # below it is wrong, without a word
# Right all the same: a program whose branches agree, such as `x * x if x > 1.0 else x * x`.

# %% [markdown]
# ## What to remember
#
# - A tape and continuations follow the run. Source transformation and staging write a
#   program before the run.
# - What is decided before the run is fast, and blind to the data.
# - An operation that is still there can do more than an entry on a tape.
# - From here: [examples/paper.py](../paper.py) has every figure of the paper as a
#   program, and [lantern/README.md](../../lantern/README.md) the order in which to read
#   the library.
# - Next: [17 Staging](17_staging.ipynb).
