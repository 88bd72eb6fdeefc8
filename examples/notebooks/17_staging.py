# %% [markdown]
# # 17 Staging: the rest of the program becomes code
#
# **Can the rules run before the numbers are there?**
#
# So far a rule was a generator that ran with the program: it got numbers, waited, and
# got a cotangent. Nothing in it asks that these be numbers. Give it something that only
# *stands* for a number, and writes down what is done to it: then the way there and the
# way back are written down, too, and what comes out is a program. That is section 4 of
# the paper, and it is how `lantern.jit` makes native code.

# %%
import contextlib

import lantern
from lantern import viz
from lantern.staging import IF, TREE, WHILE, show_adjoint, show_ir, stage

# %% [markdown]
# ## A number that is not there yet
#
# It has operators, and each leaves a note.


# %%
notes = []


def note(text):
    """Write down a line, whose value gets a name."""
    notes.append(f"v{len(notes)} = {text}")
    return Later(f"v{len(notes) - 1}")


class Later:
    """A number that somebody will know."""

    def __init__(self, name):
        self.name = name

    def __mul__(self, other):
        return note(f"{self.name} * {getattr(other, 'name', other)}")

    __rmul__ = __mul__


def times(x, y):
    """The rule of a product, as in chapter 04: there, `yield`, and back."""
    z_bar = yield x * y
    yield z_bar * y
    yield z_bar * x


rule = times(Later("a"), Later("b"))
z = next(rule)  # there
bars = rule.send(Later("z_bar")), next(rule)  # and back
print(*notes, sep="\n")

# %% [markdown]
# The rule has not noticed. It ran once, on names, and its two halves are two pieces of
# code. The library's own rules do the same.

# %%
show_ir(lambda x: x * x + 1.0, 1.0)

# %%
show_adjoint(lambda x: lantern.sin(x) * x, 1.0)

# %% [markdown]
# The same program with a number in it, as it ran in the chapters before: what is blue
# here happened on the way there, what is orange on the way back. The code above has both,
# and none of the waiting.

# %%
viz.trace(lambda x: lantern.sin(x) * x, 1.0)

# %% [markdown]
# No table says that the derivative of `sin` is `cos`: the rule of chapter 10 said so,
# when it was resumed with a name.
#
# ## What happens while the code is made
#
# Everything that is not a number happens *now*: loops over lists, closures, functions
# of functions. Of a list there is nothing left in the program.

# %%
weights = [0.5, 2.0, 3.0]
show_ir(lambda x: sum([w * x for w in weights]), 1.0)

# %% [markdown]
# But a question to a number cannot be answered now.

# %%
try:
    stage(lambda x: x if x > 0 else -x, 1.0)
except lantern.errors.LanternError as error:
    print(error)

# %% [markdown]
# ## IF, WHILE, TREE
#
# So control flow has to be written down as well. `IF` runs both ways, each on its own
# sheet.


# %%
def conditional(x):
    return IF(x > 0.0, lambda: -1.0 * x * x, lambda: x * x)


show_ir(conditional, 1.0)

# %% [markdown]
# And its gradient, as the paper prints it: what comes after the branch is a function
# `k1`, the rest of the program, called from both ways. Whatever stands behind a call of
# `k1` is the way back.

# %%
show_ir(conditional, 1.0, style="cps")


# %% [markdown]
# A loop is a function that calls itself, or else the rest. On the way back the calls
# return one by one, newest first: there and back again.


# %%
def halving(x):
    return WHILE(x, lambda t: t > 1.0, lambda t: t * 0.5)


show_ir(halving, 1.0, style="cps")


# %% [markdown]
# A function that calls itself twice gets the rest of the program as an argument.


# %%
def product(x, tree):
    return TREE(x, tree, lambda left, right, t: left * right * t[2])


show_ir(product, 1.0, (None, None, 3.0), style="cps", trees=[1])

# %% [markdown]
# In these listings continuations are functions, and what they remember is on the stack.
# A machine has a better place: each turn of a loop leaves a record, and the way back
# reads them from the newest to the oldest. As Python, that is:


# %%
def square_root(x):
    y = x
    while abs(y * y - x) > 1e-12 * x:
        y = 0.5 * (y + x / y)
    return y


lantern.emit_python(lantern.grad(square_root), 2.0)

# %% [markdown]
# `square_root` has a plain `while`: nobody wrote `WHILE`. The library has read the
# source of the function and written it anew, with the combinators in place of `while`,
# `if`, `and`, `return`. All else is left alone and happens while the code is made.
#
# ## Native code
#
# A program of nodes can be printed in LLVM's language as well as in Python's.

# %%
fast = lantern.jit(lantern.grad(square_root))
print(fast(2.0), lantern.grad(square_root)(2.0))

# %%
print("fdiv double" in lantern.show_llvm(lantern.grad(square_root), 2.0))

# %% [markdown]
# Derivatives of programs are programs: of any order, and in both modes.

# %%
third = lantern.jit(lantern.grad(lantern.grad(lantern.grad(square_root))))
curvature = lantern.jit(lambda x, v: lantern.hvp(square_root, x, v))
print(f"{third(2.0):.12f} {curvature(2.0, 1.0):.12f}")

# %% [markdown]
# ## Always right
#
# What is not known to be safe is not compiled, and what native code cannot do is handed
# back: the plain function then runs from the start.

# %%
inverse = lantern.jit(lambda n: 1 / n)
print(inverse(4))
try:
    inverse(0)
except ZeroDivisionError as error:
    print(error)


# %%
def loud(x):
    print("x is", x)
    return x * x


loud = lantern.jit(loud)
print(loud(3.0))
print("runs as it is" in lantern.explain(loud))

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** *A rule of your own.* Run the rule of a quotient on names, and print
# the notes. What has to be added to `Later`?
#
# **Exercise 2.** *Then and now.* `power(x, 3)` below is staged with a plain 3. Which
# operations are left? And what is left of the recursion?
#
# **Exercise 3.** *Deeper than the stack.* Compile the gradient of a function that calls
# itself a hundred thousand times. What does the plain function do?


# %%
def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
def quotient(x, y):
    z = x / y
    z_bar = yield z
    share = z_bar / y
    yield share
    yield -1.0 * share * z


notes.clear()
Later.__truediv__ = lambda x, y: note(f"{x.name} / {y.name}")
rule = quotient(Later("a"), Later("b"))
next(rule)
bars = rule.send(Later("z_bar")), next(rule)
assert notes[:2] == ["v0 = a / b", "v1 = z_bar / b"]

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
text = show_ir(lambda x: power(x, 3), 2.0)
assert text.count("multiply") == 2  # x * 1.0 is x: it is known now
assert "call" not in text


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
def down(x, n):
    return x if n == 0 else 0.5 * lantern.sin(down(x, n - 1)) + x


assert 1.0 < lantern.jit(lantern.grad(down))(0.1, 100_000) < 2.0
with contextlib.suppress(RecursionError):
    down(0.1, 100_000)

# %% [markdown]
# ## What to remember
#
# - A rule that runs on names is code, there and back: no second table of derivatives.
# - What is known now happens now; what is asked of a number must be written down.
# - A continuation in code is a function; in a machine it is a record that the way back
#   reads.
# - From here: [Compiling](../../docs/jit.md), what `lantern.jit` does with Python;
#   [paper_staging.py](../paper_staging.py), section 4 of the paper as a program.
