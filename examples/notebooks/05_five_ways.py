# %% [markdown]
# # 05 Five ways to write it
#
# **Continuations, a tape, pure functions: are these different ways to differentiate, or
# one way in different clothes?**
#
# [Notebook 04](04_reverse_mode.ipynb) wrote reverse mode with `shift` and `reset`. Here
# it is once more, in five forms. Each section changes one thing in a section before it,
# so that you can see what stays. All of them differentiate this program, whose slope is
# $2 + 3x^2$, so 29 at 3:


# %%
def f(x):
    return 2 * x + x * x * x


# %% [markdown]
# What all five have in common is a number whose operators leave open how an operation is
# carried out:


# %%
class Number:
    def __init__(self, primal):
        self.primal, self.cotangent = primal, 0.0

    def lift(self, x):
        return x if type(x) is type(self) else type(self)(x)

    def __add__(self, that):
        return self.operate(self.plus, self.lift(that))

    def __mul__(self, that):
        return self.operate(self.times, self.lift(that))

    __radd__, __rmul__ = __add__, __mul__


# %% [markdown]
# ## 1. Continuation-passing style: every rest is written down
#
# An operation takes `k`. Nothing is captured, because the program itself says what comes
# next. So `x * x` is not a number yet: it is a function that waits for its `k`, and
# `(x * x)(k)` computes the square and calls `k` with it.

# %%
from functools import partial


class Passing(Number):
    def plus(self, that, k):
        z = self.lift(self.primal + that.primal)
        k(z)
        self.cotangent += z.cotangent
        that.cotangent += z.cotangent

    def times(self, that, k):
        z = self.lift(self.primal * that.primal)
        k(z)
        self.cotangent += z.cotangent * that.primal
        that.cotangent += z.cotangent * self.primal

    def operate(self, rule, that):
        return partial(rule, that)  # waits for k


# %%
def f_passing(x):
    return lambda k: (2 * x)(lambda a:  # then
        (x * x)(lambda b:  # then
        (b * x)(lambda c:  # then
        (a + c)(k))))  # fmt: skip


def turn(result):
    result.cotangent = 1.0


x = Passing(3.0)
f_passing(x)(turn)
x.cotangent

# %% [markdown]
# This works in any language that has functions. The price: *the program* had to be
# rewritten, and every operation is one call deeper on the stack.

# %% [markdown]
# ## 2. shift and reset: every rest is captured
#
# The rules stay as they are, word for word. One line changes: the operator does not wait
# for somebody to bring `k`, it takes `k`. And `f` is plain Python again.

# %%
from lantern.cps import reset, shift


class Captured(Passing):
    prompt = None  # up to which reset: the nearest

    def operate(self, rule, that):
        return shift(partial(rule, that), prompt=self.prompt)


def reverse(f, x, kind=Captured):
    x = kind(x)
    reset(lambda: turn(f(x)), prompt=kind.prompt)
    return x.cotangent


reverse(f, 3.0)

# %% [markdown]
# ## 3. A tape: what waits is put into a list
#
# Look at a rule. What waits for `k` to come back? Only the two lines below `k(z)`. So we
# need no `k`: put these two lines into a function, the function into a list, and return
# `z` at once. When the program is over, call the functions from the end of the list.


# %%
class Taped(Number):
    def __init__(self, primal, tape):
        super().__init__(primal)
        self.tape = tape

    def lift(self, x):
        return x if type(x) is Taped else Taped(x, self.tape)

    def plus(self, that):
        z = self.lift(self.primal + that.primal)

        def back():
            self.cotangent += z.cotangent
            that.cotangent += z.cotangent

        self.tape.append(back)
        return z

    def times(self, that):
        z = self.lift(self.primal * that.primal)

        def back():
            self.cotangent += z.cotangent * that.primal
            that.cotangent += z.cotangent * self.primal

        self.tape.append(back)
        return z

    def operate(self, rule, that):
        return rule(that)


# %%
def reverse_taped(f, x):
    x = Taped(x, tape=[])
    turn(f(x))
    for back in reversed(x.tape):
        back()
    return x.cotangent


reverse_taped(f, 3.0)

# %% [markdown]
# In a picture: on the left each operation holds the rest of the program between its two
# halves. On the right the halves have come apart, and nothing else has changed.

# %% jupyter={"source_hidden": true} tags=["remove-input"]
import matplotlib.pyplot as plt

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#666666"
names = ["a = 2 * x", "b = x * x", "c = b * x", "d = a + c"]
halves = ["x is told", "x, x are told", "b, x are told", "a, c are told"]
figure, axes = plt.subplots(figsize=(7.5, 3.4), layout="constrained")
style = {"family": "monospace", "va": "center", "fontsize": 10}
for i, (name, half) in enumerate(zip(names, halves, strict=True)):
    box = plt.Rectangle((0.25 * i, i), 4.6 - 0.5 * i, 9 - 2 * i, fill=False, ec="0.75")
    axes.add_patch(box)
    axes.text(0.25 * i + 0.1, 8.5 - i, name, color=BLUE, **style)
    axes.text(0.25 * i + 0.1, i + 0.5, half, color=ORANGE, **style)
    axes.text(5.6, 8.5 - i, name, color=BLUE, **style)
    entry = plt.Rectangle((7.7, 8.05 - i), 2.1, 0.9, fc="#FBE9DF", ec="none")
    axes.add_patch(entry)
    axes.text(7.8, 8.5 - i, half, color=ORANGE, **style)
axes.text(1.1, 4.5, "the program is over", color=GREY, va="center", fontsize=10)
axes.text(0, 9.4, "operations that wait", weight="bold")
axes.text(5.6, 9.4, "the program", weight="bold")
axes.text(7.7, 9.4, "the tape", weight="bold")
arrow = {"arrowstyle": "-|>", "color": ORANGE, "linewidth": 1.6}
axes.annotate("", (10.1, 9.1), (10.1, 4.9), arrowprops=arrow)
axes.text(7.7, 4.4, "played from its end", color=ORANGE, va="center", fontsize=10)
axes.set(xlim=(-0.1, 10.3), ylim=(-0.2, 10))
_ = axes.axis("off")

# %% [markdown]
# You have just met the inside of most libraries, PyTorch's among them. **The tape is the
# continuation, taken apart**: a list of closures, each the second half of an operation.
# Nothing about the derivative has changed.
#
# Lantern does the same with less writing. A suspended generator *is* "the two lines below,
# with their variables", so each rule stays in one piece, and the list holds generators.

# %% [markdown]
# ## 4. Store-passing: nothing is ever changed
#
# Where values may not be modified, the cotangents have to travel. Let `k` *return* them:
# a dictionary from numbers to what is known of their cotangents. A rule calls `k`, looks
# up its own cotangent, and returns the dictionary with its operands' shares added.


# %%
class Pure(Captured):
    def plus(self, that, k):
        known = k(z := self.lift(self.primal + that.primal))
        z_bar = known.get(z, 0.0)
        return more(more(known, self, z_bar), that, z_bar)

    def times(self, that, k):
        known = k(z := self.lift(self.primal * that.primal))
        z_bar = known.get(z, 0.0)
        return more(more(known, self, z_bar * that.primal), that, z_bar * self.primal)


def more(known, x, share):
    return {**known, x: known.get(x, 0.0) + share}


def reverse_pure(f, x):
    x = Pure(x)
    return reset(lambda: {f(x): 1.0})[x]


reverse_pure(f, 3.0)

# %% [markdown]
# The order of events is the same, but now it is visible in the types: `k` takes a number
# and returns cotangents. Copying the dictionary at every step is slow; a persistent map
# would do better. As a description it is the cleanest of the five.

# %% [markdown]
# ## 5. Two levels: a derivative of a derivative
#
# The rules compute with `+` and `*`, also on the way back. Now let the numbers inside of
# our numbers be such numbers themselves. Then every `+` and `*` of the inner pass, there
# *and* back, is an operation of an outer pass: the whole inner derivative is a program,
# and has a derivative. Each pass captures the rest up to its own `reset`, which a prompt
# names, so that nobody takes the wrong rest.

# %%
from lantern.cps import Prompt


class Inner(Captured):
    prompt = Prompt("first derivative")


class Outer(Captured):
    prompt = Prompt("second derivative")


def reverse_twice(f, x):
    return reverse(lambda x: reverse(f, x, kind=Inner), x, kind=Outer)


reverse_twice(f, 3.0)  # 6x

# %% [markdown]
# ## Side by side
#
# | | who brings `k` | where the way back waits | where cotangents are | the program |
# |---|---|---|---|---|
# | 1 continuation-passing | the program | on Python's stack | in the numbers | rewritten |
# | 2 shift/reset | captured | in suspended functions | in the numbers | as it was |
# | 3 tape | nobody | in a list of closures | in the numbers | as it was |
# | 4 store-passing | captured | in suspended functions | in what `k` returns | as it was |
# | 5 two levels | captured, twice | twice in suspended functions | in numbers of numbers | as it was |
# | Lantern | nobody | in a list of suspended generators | in the numbers | as it was |
#
# All agree, at any point:

# %%
import lantern


def passing(x):
    f_passing(x := Passing(x))(turn)
    return x.cotangent


ways = {
    "1 passing": passing,
    "2 shift/reset": partial(reverse, f),
    "3 tape": partial(reverse_taped, f),
    "4 store-passing": partial(reverse_pure, f),
    "lantern.grad": lantern.grad(f),
}
points = [i / 8 for i in range(-40, 41)]
for name, slope in ways.items():
    print(f"{name:<16} {slope(3.0):g}", all(slope(x) == 2 + 3 * x * x for x in points))
second = lantern.grad(lantern.grad(f))
print("5 two levels", all(reverse_twice(f, x) == second(x) == 6 * x for x in points))

# %% [markdown]
# They do not cost the same. Here is the time per operation for a chain of 200, there and
# back. (Your machine will give other numbers. The two that capture each rest for a plain
# function of `k` stay the slowest: each operation then needs a small stack of its own.
# That is why Lantern's rules are generators, which can simply be put into a list.)

# %% tags=["varies"]
import time


def chain(x):
    y = x
    for _ in range(100):
        y = y * 0.99 + x
    return y


def chain_passing(y, x, n, k):
    if n == 0:
        return k(y)
    return (y * 0.99)(lambda a: (a + x)(lambda b: chain_passing(b, x, n - 1, k)))


ways = {
    "passing": lambda: chain_passing(x := Passing(1.0), x, 100, turn),
    "shift/reset": lambda: reverse(chain, 1.0),
    "tape": lambda: reverse_taped(chain, 1.0),
    "store-passing": lambda: reverse_pure(chain, 1.0),
    "lantern.grad": lambda: lantern.grad(chain)(1.0),
}


def fastest(run):
    times = []
    for _ in range(30):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times) / 200 * 1e6


costs = {name: fastest(run) for name, run in ways.items()}

# %% tags=["varies"]
figure, axes = plt.subplots(figsize=(7, 2.6), layout="constrained")
bars = axes.barh(list(costs), costs.values(), color=BLUE, height=0.6)
axes.bar_label(bars, fmt="%.1f", padding=4)
axes.set(
    xlabel="µs per operation, there and back", xlim=(0, 1.12 * max(costs.values()))
)
axes.invert_yaxis()
axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** Continuation-passing puts every operation on Python's stack. Find a
# length of `chain_passing` at which Python gives up, and check that the tape does not.
#
# **Exercise 2.** Write the rules of section 3 as generators (`yield z` where section 1
# says `k(z)`), and let `operate` start the generator and put it on the tape. You will
# have rebuilt Lantern's engine in ten lines.
#
# **Exercise 3.** In section 4 `k` returns a dictionary. Use that to write
# `reverse_all(f, *xs)`, which returns the slopes for several inputs. What would you have
# to change in section 2 for that?

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 1


def survives(run):
    try:
        run()
    except RecursionError:
        return False
    return True


def long_chain(x):
    y = x
    for _ in range(20_000):
        y = y * 0.99 + x
    return y


assert not survives(lambda: chain_passing(x := Passing(1.0), x, 20_000, turn))
assert survives(lambda: reverse_taped(long_chain, 1.0))

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 2. `next` runs a generator up to its yield; a second `next` runs the rest.


class Generated(Taped):
    def lift(self, x):
        return x if type(x) is Generated else Generated(x, self.tape)

    def plus(self, that):
        yield (z := self.lift(self.primal + that.primal))
        self.cotangent += z.cotangent
        that.cotangent += z.cotangent

    def times(self, that):
        yield (z := self.lift(self.primal * that.primal))
        self.cotangent += z.cotangent * that.primal
        that.cotangent += z.cotangent * self.primal

    def operate(self, rule, that):
        z = next(suspended := rule(that))
        self.tape.append(suspended)
        return z


def reverse_generated(f, x):
    x = Generated(x, tape=[])
    turn(f(x))
    for suspended in reversed(x.tape):
        next(suspended, None)
    return x.cotangent


assert reverse_generated(f, 3.0) == 29.0

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 3. In section 2 one reads each input's own field instead.


def reverse_all(f, *xs):
    xs = [Pure(x) for x in xs]
    known = reset(lambda: {f(*xs): 1.0})
    return tuple(known.get(x, 0.0) for x in xs)


assert reverse_all(lambda x, y: x * y + x, 2.0, 5.0) == (6.0, 2.0)
assert reverse_all(lambda x, y: x * x, 2.0, 5.0) == (4.0, 0.0)

# %% [markdown]
# ## What to remember
#
# - One derivative, five forms. They differ in who brings the rest of the program, and in
#   where the second halves of the operations wait.
# - A tape is a list of second halves: the continuation, taken apart.
# - If this was your notebook, read [examples/paper.py](../paper.py) next: these programs
#   and some more, as in the paper they come from (Wang and others, *Demystifying
#   Differentiable Programming*, 2019).
# - Next: [06 Perturbation confusion](06_perturbation_confusion.ipynb).
