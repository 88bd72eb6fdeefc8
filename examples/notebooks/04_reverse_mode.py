# %% [markdown]
# # 04 Reverse mode in one page: there and back again
#
# **How can one pass over a program find the slope of its result with respect to every
# input, when each operation has to wait for all that comes after it?**
#
# This is what `loss.backward()` does. You have all the parts: an operation can hold the
# rest of the program ([01](01_the_rest_of_the_program.ipynb)), Python can capture it for
# us ([02](02_shift_and_reset.ipynb)), and the slope of a product is known
# ([03](03_dual_numbers.ipynb)). What is left fits on a page.

# %% [markdown]
# ## The idea
#
# Every number gets a second field, its *cotangent*: how fast the final result changes
# when this number does. (PyTorch's name for it is `.grad`.) Nobody knows it on the way
# there. But suppose you are the multiplication `z = x * y`, and that the rest of the
# program, once it is over, has left you the cotangent of `z`. Then your part is easy.
# If `x` moves a little, `z` moves `y` times as much, so the result moves
# `z.cotangent * y` times as much. You tell `x`, and you tell `y`.
#
# So an operation does three things, in this order:
#
# 1. compute its value;
# 2. let the rest of the program run;
# 3. tell its operands what they have contributed.
#
# That is a handler, with a `yield` in the middle.


# %%
class Number:
    def __init__(self, primal):
        self.primal, self.cotangent = primal, 0.0


def add(x, y):
    z = Number(x.primal + y.primal)
    yield z  # the rest of the program runs
    x.cotangent += z.cotangent
    y.cotangent += z.cotangent


def times(x, y):
    z = Number(x.primal * y.primal)
    yield z  # the rest of the program runs
    x.cotangent += z.cotangent * y.primal
    y.cotangent += z.cotangent * x.primal


# %% [markdown]
# These two are the heart of the matter. What remains is to let `+` and `*` call `shift`
# with them. `partial(rule, x, y)` is the rule with its operands: a generator function
# without arguments, as handlers are, whose `yield` runs the rest of the program.

# %%
from functools import partial

from lantern.cps import reset, shift


def number(x):
    return x if isinstance(x, Number) else Number(x)


def operator(rule):
    return lambda x, y: shift(partial(rule, x, number(y)))


Number.__add__ = Number.__radd__ = operator(add)
Number.__mul__ = Number.__rmul__ = operator(times)

# %% [markdown]
# And the delimiter. It marks the end of "the rest of the program": there, the result
# changes exactly as fast as itself, so its cotangent is 1. That is where the program
# turns around.


# %%
def grad(f):
    def gradient(x):
        x = Number(x)

        def body():
            f(x).cotangent = 1.0

        reset(body)
        return x.cotangent

    return gradient


def f(x):
    return 2 * x + x * x * x


grad(f)(3.0)

# %% [markdown]
# $2 + 3 \cdot 3^2 = 29$. That was reverse-mode automatic differentiation, whole. There is
# no graph, no tape, no sorting: the operations are told in the right order because calls
# return in that order.

# %% [markdown]
# ## Who waits where
#
# Step through it. On the way there each operation computes its value and then waits for
# the frame below it, which is the rest of the program. On the way back each one learns
# its cotangent, and passes each operand its share. (`a_bar` is the cotangent of `a`: on
# paper one writes $\bar a$. `→ x 2` says that `x` gets 2.) Press **play**, or use the
# arrows.

# %%
from lantern import viz

player = viz.trace(f, 3.0).play(seconds=1.2)
player

# %% [markdown]
# If you read this where nothing can be pressed, here it is as a film
# (`player.save("who_waits_where.gif")`; an animated `.svg` can be written, too):
#
# ![who waits where](who_waits_where.gif)

# %% [markdown]
# ## Why `+=`?
#
# `x` is used four times: once in `2 * x`, three times in `x * x * x`. Each use is a way
# by which `x` acts on the result, and the slopes of all ways add up. Look at the picture:
# on the way back `x` is told 9 (by `c`), then 9 and 9 (by `b`), then 2 (by `a`). Together
# 29.
#
# Write `=` for `+=`, and you have made the most common mistake in such a program. Try it:


# %%
def wrong_times(x, y):
    z = Number(x.primal * y.primal)
    yield z
    x.cotangent = z.cotangent * y.primal  # forgets what was there
    y.cotangent = z.cotangent * x.primal


def square(x):
    return shift(partial(wrong_times, x, x))


grad(square)(3.0)  # should be 6

# %% [markdown]
# ## Loops and branches come for free
#
# The rest of the program is whatever Python does next. If that is another turn of a loop,
# then the operation waits for another turn of the loop. We never look at the code.


# %%
def collatz(x, n):
    while n > 1:
        if n % 2:
            x, n = 3 * x + 1, 3 * n + 1
        else:
            x, n = 0.5 * x, n // 2
    return x


[grad(lambda x, n=n: collatz(x, n))(1.0) for n in (1, 2, 3, 6, 7)]

# %% [markdown]
# ## One pass, all inputs
#
# Forward mode needed one run for each of 100 inputs. Here the program runs there once and
# back once, however many inputs there are:

# %%
calls = 0


def counted_times(x, y):
    global calls
    calls += 1
    yield from times(x, y)


Number.__mul__ = operator(counted_times)

weights = [Number(float(i)) for i in range(100)]


def body():
    loss = Number(0.0)
    for w in weights:
        loss = loss + w * w
    loss.cotangent = 1.0


reset(body)
print([w.cotangent for w in weights[:6]], "…", calls, "multiplications")

# %% [markdown]
# ## The same in Lantern
#
# The library's own rules differ in one thing from ours. Ours reach into their operands
# (`x.cotangent += …`). Lantern's rules get plain values, and *yield* what each operand is
# to receive: so the library decides how contributions are added, and one rule serves
# numbers and arrays, both modes, and derivatives of derivatives.

# %%
import lantern
from lantern.op import elementwise


@elementwise
def product(x, y, /):
    z_bar = yield x * y  # there; then the rest of the program runs
    yield z_bar * y  # back again: what x receives
    yield z_bar * x  # what y receives


lantern.grad(product, argnums=(0, 1))(2.0, 5.0)

# %% [markdown]
# And nobody waits on Python's stack. Suspended generators stand in a list, and are
# resumed from its end. A million operations need no deeper stack than ten:


# %%
def long_way(x):
    y = x
    for _ in range(500_000):
        y = y * 1.000001 + 0.0
    return y


lantern.grad(long_way)(1.0)

# %% [markdown]
# So there *is* a list of what is to be done on the way back. A tape, if you like: in the
# next notebook you will see that the two are the same thing from two sides.

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** Write the operation `sine(x)` for `Number`, and find the slope of
# $\sin(x) \cdot x$ at 1. By hand: $x \cos x + \sin x$.
#
# **Exercise 2.** Let `grad` take a function of several numbers and return a tuple of
# gradients.
#
# **Exercise 3.** In the picture of `f`, who is the first to tell `x` something, and who
# the last? Write `order(f, x)`, which returns the names of the operations in the order in
# which they come back. (`viz.trace(f, x).operations` has them in the order in which they
# go there.)

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 1

import math


def sine_rule(x):
    z = Number(math.sin(x.primal))
    yield z
    x.cotangent += z.cotangent * math.cos(x.primal)


def sine(x):
    return shift(partial(sine_rule, x))


assert grad(lambda x: sine(x) * x)(1.0) == math.cos(1.0) + math.sin(1.0)

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 2


def grad(f):
    def gradients(*xs):
        xs = [Number(x) for x in xs]

        def body():
            f(*xs).cotangent = 1.0

        reset(body)
        return tuple(x.cotangent for x in xs)

    return gradients


assert grad(lambda x, y: x * y + x)(2.0, 5.0) == (6.0, 2.0)
assert grad(f)(3.0) == (29.0,)

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 3. The first to tell x is the last that used it, c = b * x; the last is the
# first, a = 2 * x.


def order(f, x):
    return [operation.name for operation in reversed(viz.trace(f, x).operations)]


assert order(f, 3.0) == ["d", "c", "b", "a"]
told = [x.name for x in viz.trace(f, 3.0).operations if "x" in dict(x.given)]
assert told == ["a", "b", "c"]

# %% [markdown]
# ## What to remember
#
# - An operation computes its value, lets the rest of the program run, and then tells its
#   operands: there, `yield`, back again.
# - `reset` is where the program turns around; the cotangent of the result is 1.
# - Contributions add up, because every use of a value is a way to act on the result.
# - Next: [05 Five ways to write it](05_five_ways.ipynb).
