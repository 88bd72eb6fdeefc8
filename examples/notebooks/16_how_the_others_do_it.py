# %% [markdown]
# # 16 How the others do it
#
# **A tape, source transformation, staging, continuations: what can each of them do, and
# what can it not?**
#
# There are four ways to get from a program to its derivative. Here each of them is a
# page of Python that works: on numbers, with + and × only. We run the same seven
# programs through all four and let the result speak. Then we say which libraries do it
# in which way, and where a page of Python is unfair to them.

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
# One class for the operators; each system says what `operate` does.


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
# Run the program. Every operation appends to a list what will have to be done on the
# way back: which operands, times which partial derivatives. Then play the list from its
# end.


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
# Whatever Python does between the operations, the tape does not notice, and need not:
# it holds what *has happened*. So branches, loops and recursion just work, and a new
# tape is made in every run.
#
# ## 2. Source transformation
#
# Do not run the program: *read* it. Turn its text into a list of simple steps, and
# write the text of another program that computes the derivative. The steps first; each
# has a fresh name, so that nothing is ever overwritten.


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
# Then the text: all steps forwards, then all of them backwards.


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
# This derivative is a program that you can read, keep, and give to a compiler, and no
# class of numbers slows it down. The price: whoever transforms source must know *all of
# the language*. Our page knows assignments and arithmetic. A loop needs a loop that
# runs back and a stack of what it has overwritten; a call needs the source of what is
# called.
#
# ## 3. Staging
#
# A compromise: run the program, but on *symbols* that have no value, and write down the
# steps. Python's calls, lists and loops of known length are carried out while the steps
# are being written, and leave no trace. What remains can be transformed and compiled as
# above, by the same `write`.


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
# The loop is gone: unrolled. And a branch that asks `x > 1.0` cannot be answered, for
# there is no x yet; its answer would be frozen into the steps. So staging asks for
# branches and loops of a kind of its own, which *are* steps.
#
# ## 4. Continuations
#
# You know this one. An operation hands its value to the rest of the program and goes on
# when that has come back.


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
# Honestly: side by side with the tape, how large is the difference? Both hold a list,
# both play it backwards. A tape holds *data* about what is to be done; here the list
# holds the operations themselves, stopped in the middle. (Chapter 05 derives one from
# the other.)
#
# What it changes is who is in charge. An operation that is *still there* can hold a
# file or a lock open from there to back, catch an exception of the backward pass, look
# at the answer, pause the program (chapters 13 and 15). An entry on a tape cannot.
#
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
# Two kinds of gaps. "Not on this page" means more work: our reader of Python knows four
# words of it. The two ✗ are of another kind. What is to be done there depends on x, and
# there is no x yet.
#
# And note that each gap is an error, none a wrong number. That took a line (`compare`):
# had a symbol answered `x > 1.0` with True, staging would have been wrong in silence.
#
# ## What the gaps buy
#
# Speed. What is staged or transformed once runs without any bookkeeping, as often as
# you like. (With arrays and a real compiler the gap is larger still: operations are
# fused, memory is planned. And `lantern.grad` does more than our page: it takes any
# kind of number, nests, and checks what it is given.)

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
# As of November 2026. A page of Python is unfair to all of them; the last column says
# what the real ones can that ours cannot.
#
# | way | for example | what the real ones do about the gaps |
# |---|---|---|
# | tape | PyTorch 2.13 (in C++), HIPS autograd 1.9, micrograd | no gaps; what costs is the bookkeeping for each operation |
# | source | Tapenade (Fortran, C), Zygote (Julia's intermediate code), Enzyme (LLVM's), Tangent (Python, no longer developed) | branches and loops are transformed too, with a stack for what is overwritten; in Python itself the language is large and changes every year |
# | staging | JAX 0.10 under `jit`, TensorFlow 1's graphs | `cond`, `while_loop` and `scan` are steps; a reverse derivative of `while_loop` is refused, for nobody knows how much it will have to keep |
# | continuations | Lantern (Scala, 2019; continuations *and* staging), this library (without staging) | no gaps; the bookkeeping remains |
#
# They are mixed, too. JAX's `grad` *without* `jit` runs on values and takes any branch
# or loop. `torch.compile` stages what it can, with guards that check whether the steps
# still hold, and leaves the rest to Python. And the Lantern of the paper (Wang
# and others, 2019) stages a program written with continuations, so that no continuation
# is left when it runs.
#
# Which to take? If your program has the same shape for every input and runs a million
# times: stage it. If its shape depends on the data (trees, searches, simulations that
# stop when something happens), or you want to step through it: do not.
#
# ## Exercises
#
# **Exercise 1.** *One more operation.* Teach the tape and the continuations
# subtraction. In how many places does each have to be changed?
#
# **Exercise 2.** *A loop for the reader.* Let `read` understand `for _ in range(3):`
# with a constant, by unrolling, so that `grad_source(fixed_loop)` works. Why does this
# not help with `open_loop`?
#
# **Exercise 3.** *Frozen in silence.* Let `Symbol.__gt__` answer True instead of
# raising. Give an input at which `grad_staged(branch)` is then wrong, and a program
# that staging could derive rightly all the same.


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
# - A tape and continuations follow the run; source transformation and staging make
#   another program, before the run.
# - What is decided before the run is fast, and blind to what the data would decide.
# - A list of suspended operations can do whatever a tape can, and an operation that is
#   still there can do more.
# - From here: [examples/paper.py](../paper.py), every figure of the paper as a program;
#   and the library's own files, in the order of
#   [lantern/README.md](../../lantern/README.md).
# - Next: [17 Staging](17_staging.ipynb).
