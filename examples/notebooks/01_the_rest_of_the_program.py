# %% [markdown]
# # 01 The rest of the program
#
# **When an operation has computed its value, what happens next? And can a program hold
# "what happens next" in its hand?**
#
# You know PyTorch, and you have called `loss.backward()` many times. In these notebooks
# you will see how such a gradient is computed, with one idea that fits on a page. This
# first one has no derivatives in it. It is about the idea. To type along, open
# [micro_lantern.py](../micro_lantern.py) beside it: numbers and arrays, reverse and
# forward mode, and a perceptron, in 150 lines.

# %% [markdown]
# ## A callback is something that runs later
#
# You have used this before. A button gets a function to call when somebody presses it;
# a data loader gets a `collate_fn`. You hand over a function, and somebody else decides
# when it runs and what it gets.


# %%
def load(name, callback):
    print("loading", name)
    data = len(name)  # pretend that this took long
    callback(data)


load("digits", lambda data: print("got", data))

# %% [markdown]
# ## Every program has a rest
#
# Take a program of a few lines, and stop in any one of them. What is left to do from
# there on is *the rest of the program*:

# %% jupyter={"source_hidden": true} tags=["remove-input"]
import matplotlib.pyplot as plt

lines = ["a = 3 + 1", "b = a * a", "c = 10 * b", "return c"]
colors = ["#0072B2", "#009E73", "#D55E00"]
figure, axes = plt.subplots(figsize=(7, 2.4), layout="constrained")
for row, line in enumerate(lines):
    axes.text(0, -row, line, family="monospace", fontsize=13, va="center")
for row, color in enumerate(colors):
    x, name = 1.5 + 1.05 * row, "abc"[row]
    axes.plot(
        [x - 0.1, x, x, x - 0.1], [-row - 0.7] * 2 + [-3.3] * 2, color=color, lw=2
    )
    style = {"color": color, "va": "center", "fontsize": 11}
    axes.text(x + 0.08, -(row + 4) / 2, f"the rest,\nonce {name}\nis known", **style)
axes.set(xlim=(-0.1, 5.2), ylim=(-3.6, 0.4))
_ = axes.axis("off")

# %% [markdown]
# Each rest waits for one value (`a`, then `b`, then `c`) and does with it whatever the
# program does from there on. *Something that waits for a value*: that is a function. So
# write it down as one, and hand it over like a callback. It is usually called `k`.


# %%
def add(x, y, k):
    return k(x + y)


def times(x, y, k):
    return k(x * y)


def program(x, k):
    return add(x, 1, lambda a: times(a, a, lambda b: times(10, b, lambda c: k(c))))


program(3, lambda result: result)

# %% [markdown]
# This is the program above, `10 * (x + 1) ** 2`, and it gives the same. But every
# operation is now called with two things: its operands, and **the rest of the
# program**. The rest of the program, as a value, is called a *continuation*. That is
# the whole definition.
#
# Read the nested `lambda`s from left to right: *add, and call the result a; multiply,
# and call the result b; multiply, and call the result c.* It is the order of the
# three lines. Only the indentation looks unusual, so let us give each rest a line:


# %%
def program(x, k):
    return add(x, 1, lambda a:  # then
        times(a, a, lambda b:  # then
        times(10, b, k)))  # fmt: skip


program(3, lambda result: result)

# %% [markdown]
# ## What comes after `k(...)`?
#
# An operation *calls* its rest. A call comes back. So there may be code behind it, and
# that code runs when the whole rest of the program is over. Watch the order:


# %%
def loud_add(x, y, k):
    print(f"there:       add {x} and {y}")
    answer = k(x + y)
    print(f"back again:  add knows that the answer was {answer}")
    return answer


def loud_times(x, y, k):
    print(f"there:       multiply {x} by {y}")
    answer = k(x * y)
    print(f"back again:  multiply knows that the answer was {answer}")
    return answer


loud_add(3, 1, lambda a: loud_times(a, a, lambda b: loud_times(10, b, lambda c: c)))

# %% [markdown]
# The operations run first to last on the way there, and last to first on the way back.
# Nobody sorted anything and nobody kept a list: a call returns to its caller, and that
# is all. The last operation to start is the first to finish.
#
# If you have ever wondered why a backward pass runs in reverse order, this is why.

# %% [markdown]
# ## What an operation may do with its rest
#
# The one who holds `k` is in charge. Usually it calls it once. But it does not have to.
#
# **Not call it.** Then the rest never happens: an early exit, from any depth.


# %%
def square_root(x, k):
    if x < 0:
        return f"no square root of {x}"
    return k(x**0.5)


def two_steps(x):
    return add(x, -5, lambda a: square_root(a, lambda b: times(2, b, lambda c: c)))


two_steps(9), two_steps(1)

# %% [markdown]
# **Call it more than once**, with different values, and compare what comes of them. The
# operation below does not know what the rest does with its coin. It tries both sides.


# %%
def flip(k):
    return (k(0) + k(1)) / 2  # the mean of both futures


flip(lambda a: flip(lambda b: (a + b) ** 2))

# %% [markdown]
# That was an expected value: two fair coins, and the square of their sum, is 1½ on
# average. The program reads as if there were one future; `flip` ran four.

# %% [markdown]
# ## A first look at a derivative
#
# Now something that you care about. An operation holds the rest of the program. It can
# ask: *if my value were a little larger, how much larger would the final result be?*


# %%
def curious_times(x, y, k):
    z, h = x * y, 1e-6
    answer = k(z)
    slope = (k(z + h) - answer) / h
    print(f"{x} * {y} = {z}; the result changes {slope:.3f} times as fast")
    return answer


def cube(x):
    return curious_times(x, x, lambda a: curious_times(a, x, lambda b: b))


cube(2.0)

# %% [markdown]
# Look at the *last* line printed. The first multiplication has made `a = 4.0`; the
# rest multiplies it by `x = 2.0`, so the result changes twice as fast as `a`. Every
# operation has found the derivative of **the rest of the program** with respect to its
# own value.
#
# That number is what PyTorch calls the gradient of an intermediate tensor, and what we
# shall call its *cotangent*. Two things are wrong with this way to find it: it is only
# approximate, and every operation runs its rest twice, so that the third one runs four
# times and the eleventh a thousand times (that is why there are three lines for two
# multiplications). The cure is to call `k` once, and let the rest *tell* us on the way
# back. That is notebook 04.

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** Write `largest(options, k)`, which tries the rest of the program with
# each of the options, and returns the best answer that came back. With it, find the
# largest value of `(x - 3) * (7 - x)` for whole numbers from 0 to 9.
#
# **Exercise 2.** Write `checked_divide(x, y, k)`, which leaves the program with the
# answer `None` when `y` is zero. What does a `raise` do that this does not, and the
# other way round?
#
# **Exercise 3.** Write `logged(name, value, k)`, which hands on `value` unchanged and
# appends two lines to a list `log`: one on the way there and one, with the answer, on
# the way back. Which line of the log is last?
#
# The solutions follow, hidden: open a cell to read it. Each ends with its test.

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 1


def largest(options, k):
    return max(k(option) for option in options)


assert largest(range(10), lambda x: (x - 3) * (7 - x)) == 4

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 2. A `raise` leaves through all callers up to whoever catches it, and k never
# hears of it either. The difference: what checked_divide returns is an ordinary answer,
# so the operations before it go on behind their own k(...), and see it.


def checked_divide(x, y, k):
    return None if y == 0 else k(x / y)


assert checked_divide(1, 4, lambda a: add(a, 1, lambda b: b)) == 1.25
assert checked_divide(1, 0, lambda a: add(a, 1, lambda b: b)) is None

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 3. The last line is the first operation's: it has waited for all the others.

log = []


def logged(name, value, k):
    log.append(f"there {name}")
    answer = k(value)
    log.append(f"back {name} {answer}")
    return answer


assert logged("a", 1, lambda a: logged("b", a + 1, lambda b: 5 * b)) == 10
assert log == ["there a", "there b", "back b 10", "back a 10"]

# %% [markdown]
# ## What to remember
#
# - The rest of the program, as a function of the value that it waits for, is a
#   *continuation*.
# - An operation that calls its continuation `k` may do something behind `k(...)`. That
#   part runs on the way back, in reverse order.
# - Writing all these `lambda`s is tiresome. Python can capture the rest for you: see
#   [02 shift and reset](02_shift_and_reset.ipynb).
