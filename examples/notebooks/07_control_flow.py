# %% [markdown]
# # 07 Loops, branches, recursion, trees
#
# **Can one differentiate a program whose very shape depends on its data?**
#
# A network of layers is the same computation for every input. A search, a parser or a
# simulation is not: how often a loop turns and how deep a function calls itself depends
# on the numbers. Some tools want such programs rewritten with special loops. Here the
# rest of the program is whatever Python does next, so there is nothing to rewrite.

# %% [markdown]
# ## A loop that stops when it is good enough
#
# Heron's method for the square root: repeat $y \leftarrow (y + x / y) / 2$ until $y$
# stands still. The number of turns is not known beforehand.

# %%
import lantern
from lantern import viz

turns = 0


def square_root(x):
    global turns
    turns, y, before = 0, 1.0 * x, 0.0
    while abs(y - before) > 1e-12 * abs(y):
        y, before, turns = (y + x / y) / 2, y, turns + 1
    return y


for x in (0.25, 2.0, 100.0):
    slope = lantern.grad(square_root)(x)
    print(f"√{x:<5g} slope {slope:.12f}, expected {0.5 * x**-0.5:.12f}, {turns} turns")

# %% [markdown]
# The comparison `abs(y - before) > …` gave a plain `bool`, and Python decided. What was
# differentiated is the program *as it ran*: this many turns. You can look at such a run;
# with a coarse tolerance, 1.05 takes a single turn. What only the comparison needed
# (a difference, an absolute value) hears nothing on the way back, and says so:


# %%
def coarse_root(x):
    y, before = 1.0 * x, 0.0
    while abs(y - before) > 0.03:
        y, before = (y + x / y) / 2, y
    return y


viz.trace(coarse_root, 1.05)

# %% [markdown]
# ## A branch, and what its edges mean
#
# The derivative follows the branch that was taken. Away from the edges that is exactly
# right.

# %%
import matplotlib.pyplot as plt
import numpy as np


def fare(km):
    if km < 2:
        return 4.0 + 0 * km
    if km < 10:
        return 4.0 + 1.5 * (km - 2)
    return 16.0 + 0.08 * (km - 10) ** 2


kms = np.linspace(0, 18, 181)
figure, (above, below) = plt.subplots(
    2, sharex=True, figsize=(7, 4), layout="constrained"
)
above.plot(kms, [fare(km) for km in kms], color="#0072B2", linewidth=2)
below.plot(kms, [lantern.grad(fare)(km) for km in kms], ".", color="#D55E00", ms=3)
above.set_ylabel("fare")
below.set(xlabel="km", ylabel="its slope")
for axes in (above, below):
    axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# At 10 km the fare has a corner: 1.5 from the left, 0 from the right. There is no
# derivative there, and you get that of the branch which Python took, here the right one.
# Worse is a *jump*: at a jump the slopes on both sides say nothing about the jump itself.
# `if` is fine wherever the function is continuous, and you should think where it is not.
#
# One more thing that has no slope: whatever is counted. The number of turns of a loop
# is a whole number, and a small change of `x` does not change it.

# %%
lantern.grad(lambda x: x * len([i for i in range(10) if i < x]))(4.5)

# %% [markdown]
# ## Recursion
#
# Raising to a power by repeated squaring: $x^{13} = x \cdot ((x \cdot x^2)^2)^2$. The
# function calls itself; each call contains operations; each operation waits for all that
# follows, be it deeper in the recursion or behind it.


# %%
def power(x, n):
    if n == 0:
        return 1.0
    if n % 2:
        return x * power(x, n - 1)
    half = power(x, n // 2)
    return half * half


viz.trace(lambda x: power(x, 13), 1.1)

# %% [markdown]
# $13 \cdot 1.1^{12} = 40.8$. Six multiplications there, six back.

# %% [markdown]
# ## Trees: how a sentence feels
#
# A sentence has a structure: words make phrases, phrases make larger ones. Let every word
# have a feeling, a number; let the feeling of a phrase come from its two parts; and let a
# word such as *not* turn around what follows it. The program follows the tree, so for each
# sentence it is another program.

# %%
sentence = ((("the", "film"), ("was", ("not", "bad"))), ("but", ("too", "long")))


def feeling(tree, p):
    if isinstance(tree, str):
        return p["words"][tree]
    left, right = tree
    if left in p["turns"]:
        return p["turns"][left] * feeling(right, p)
    return np.tanh(feeling(left, p) + feeling(right, p))


words = "the film was bad but too long great boring good and".split()
start = {"words": dict.fromkeys(words, 0.0), "turns": {"not": 1.0, "too": 1.0}}

# %% [markdown]
# Some phrases with the feeling that a reader had, from −1 to 1. The parameters are a
# dictionary of dictionaries; so is the gradient.

# %%
data = [
    (("the", ("film", ("was", "great"))), 0.8),
    (("the", ("film", ("was", "bad"))), -0.7),
    (("the", ("film", ("was", ("not", "great")))), -0.6),
    (("was", ("not", "bad")), 0.4),
    ("the", 0.0),
    (("the", "film"), 0.0),
    (("boring", ("and", "long")), -0.8),
    (("not", "boring"), 0.5),
    (("good", ("but", "long")), 0.2),
    ((("not", "long"), ("and", "good")), 0.8),
    (("was", ("too", "long")), -0.6),
]


def loss(p):
    return sum((feeling(tree, p) - target) ** 2 for tree, target in data)


p = start
for _ in range(1000):
    gradient = lantern.grad(loss)(p)
    p = lantern.tree_map(lambda x, g: x - 0.1 * g, p, gradient)
print(f"loss {loss(start):.3f}, after learning {loss(p):.3f}")
print("not:", round(p["turns"]["not"], 2), " great:", round(p["words"]["great"], 2))

# %% [markdown]
# It has found out by itself that *not* turns a feeling around: its factor is negative.
# The sentence above was not among the examples. Here is what the program makes of it. Orange is positive, blue negative:


# %%
def value(tree):
    turner = isinstance(tree, str) and tree in p["turns"]
    return None if turner else feeling(tree, p)


viz.tree(sentence, value=value)

# %% [markdown]
# And now the question that only a derivative answers: **which word does the verdict hang
# on?** The slope of the whole sentence's feeling with respect to each word:

# %%
slopes = lantern.grad(lambda p: feeling(sentence, p))(p)
known = slopes["words"] | slopes["turns"]
viz.tree(
    sentence, value=lambda tree: known.get(tree) if isinstance(tree, str) else None
)

# %% [markdown]
# *bad* has a negative slope in this sentence: since it stands behind *not*, the worse
# "bad" is, the better the verdict. Nobody told the library anything about trees.

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** Write `continued(xs)`, which computes
# $x_0 + 1/(x_1 + 1/(x_2 + \dots))$ recursively for a list of any length, and its gradient
# with respect to the list. Which element matters most?
#
# **Exercise 2.** `bisect(f, low, high)` finds a zero of `f` by halving an interval. Write
# it, let `f` be $x^2 - a$, and take the derivative of the zero with respect to `a`. It
# comes out as 0. Why? Add one step of Newton's method at the end, and look again.
#
# **Exercise 3.** Write a function `count(tree)` that returns how many operations
# `feeling` takes for a tree, without running it, and check it against
# `viz.trace(...).operations`.

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 1. The first: each further one acts through one more division.


def continued(xs):
    return xs[0] if len(xs) == 1 else xs[0] + 1.0 / continued(xs[1:])


gradient = lantern.grad(continued)([1.0, 2.0, 2.0, 2.0])
assert gradient[0] == 1.0
assert sorted(map(abs, gradient), reverse=True) == list(map(abs, gradient))
assert gradient[1] < 0 < gradient[2]

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 2. a only decides which half is taken, and decisions have no slope: the ends are
# halves of constants. Newton's step computes with a, and one step is enough, since at the
# zero the slope of the step itself with respect to x vanishes.


def bisect(f, low, high):
    while high - low > 1e-12:
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return low


def zero(a):
    return bisect(lambda x: x * x - a, 0.0, 10.0)


def mended(a):
    x = zero(a)
    return x - (x * x - a) / (2 * x)


assert lantern.grad(zero)(4.0) == 0.0
assert abs(lantern.grad(mended)(4.0) - 0.25) < 1e-9

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 3. A word takes none, a phrase a sum and a tanh, a turned phrase a product.


def count(tree):
    if isinstance(tree, str):
        return 0
    left, right = tree
    if left in p["turns"]:
        return 1 + count(right)
    return 2 + count(left) + count(right)


trace = viz.trace(lambda p: feeling(sentence, p), p)
assert count(sentence) == len(trace.operations)

# %% [markdown]
# ## What to remember
#
# - The rest of the program is what Python does next: loops, branches and recursion need
#   nothing special, and structures go in and come out as they are.
# - The derivative is that of the program as it ran. Decisions and counts have no slope.
# - Next: [08 From numbers to arrays](08_from_numbers_to_arrays.ipynb).
