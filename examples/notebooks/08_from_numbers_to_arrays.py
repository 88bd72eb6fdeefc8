# %% [markdown]
# # 08 From numbers to arrays
#
# **An array is many numbers at once. What has to be added to rules that were written for
# numbers, so that they are right for arrays?**
#
# One answer would be: nothing, an array of a thousand numbers is a thousand numbers. It
# would be right, and a thousand times too slow. We want one operation for the whole
# array, there and back. Then three questions come up: shapes, products, and parts.

# %% [markdown]
# ## The same rule
#
# Here is the rule of multiplication from [notebook 04](04_reverse_mode.ipynb), as the
# library writes it. It was made for numbers. Give it arrays:

# %%
import numpy as np

import lantern
from lantern.op import elementwise


@elementwise
def product(x, y, /):
    z_bar = yield x * y
    yield z_bar * y
    yield z_bar * x


x, y = np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 30.0])
lantern.grad(lambda x: product(x, y).sum())(x)

# %% [markdown]
# Python's `*` means "each with each", so the rule was right all along. (The `.sum()` is
# there because `grad` wants *one* number at the end.)

# %% [markdown]
# ## Shapes: what was used many times receives many times
#
# NumPy lets a row be added to a table: the row is used again for each line. That is
# called *broadcasting*. Now go back: the cotangent of the sum has the shape of the
# table, 4 × 3. But the row has 3 numbers, and its gradient must have 3.

# %% jupyter={"source_hidden": true} tags=["remove-input"]
import matplotlib.pyplot as plt


def grid(axes, x, y, rows, columns, color, text):
    for i in range(rows):
        for j in range(columns):
            box = plt.Rectangle((x + j, y - i), 0.94, 0.94, facecolor=color)
            axes.add_patch(box)
            name = text(i, j)
            axes.text(x + j + 0.47, y - i + 0.47, name, ha="center", va="center")


blue, orange = "#D3E6F3", "#F8DCCB"
figure, axes = plt.subplots(figsize=(8, 3.4), layout="constrained")
grid(axes, 0, 3, 4, 3, blue, lambda i, j: f"$x_{{{i}{j}}}$")
grid(axes, 4.2, 3, 1, 3, blue, lambda i, j: f"$b_{j}$")
axes.text(3.6, 3.47, "+", ha="center", va="center", fontsize=16)
for i in (1, 2, 3):
    grid(axes, 4.2, 3 - i, 1, 3, "#F1F6FA", lambda i, j: f"$b_{j}$")
grid(axes, 9.2, 3, 4, 3, orange, lambda i, j: f"$\\bar z_{{{i}{j}}}$")
grid(axes, 14.2, 3, 1, 3, orange, lambda i, j: f"$\\bar b_{j}$")
arrow = {"arrowstyle": "-|>", "color": "#D55E00", "linewidth": 1.6}
axes.annotate("", (14.1, 3.47), (12.4, 1.6), arrowprops=arrow)
axes.text(13.5, 2.1, "sum over the lines", color="#A84A00", va="top")
axes.text(1.5, 4.3, "there: b is used four times", color="#0072B2", fontsize=11)
axes.text(9.2, 4.3, "back again: b is told four times", color="#A84A00", fontsize=11)
axes.set(xlim=(-0.1, 17.3), ylim=(-0.2, 4.9), aspect="equal")
_ = axes.axis("off")

# %% [markdown]
# You know the rule for that from notebook 04: *every use is a way to act on the result,
# and the contributions of all uses add up.* $b_0$ was used four times, in four lines, so
# its four contributions are added. **The way back from broadcasting is a sum.**
#
# Who should do it? If each rule did, each rule would have to think about shapes, and
# somebody would forget. So in Lantern no rule does. The one who *receives* knows its own
# shape, and brings whatever arrives into it:


# %%
class Receiver:
    def __init__(self, shape):
        self.cotangent = np.zeros(shape)

    def accumulate(self, contribution):
        shape = self.cotangent.shape
        while contribution.ndim > len(shape):
            contribution = contribution.sum(axis=0)  # an axis that was put in front
        for axis, size in enumerate(shape):
            if size == 1:
                contribution = contribution.sum(axis=axis, keepdims=True)
        self.cotangent += contribution


b = Receiver((3,))
b.accumulate(np.ones((4, 3)))
b.cotangent

# %% [markdown]
# The library's own is called `Accumulator`. Since it stands between all rules and all
# arrays, our `product` from above, which has never heard of broadcasting, is right for
# every pair of shapes:

# %%
table, row, column = np.ones((4, 3)), np.arange(3.0), np.arange(4.0).reshape(4, 1)
for other in (row, column, 2.0):
    g = lantern.grad(lambda b: product(table, b).sum())(other)
    print(np.shape(other), "receives", np.asarray(g).tolist())

# %% [markdown]
# In the same place it is decided that the gradient of a `float32` array is a `float32`
# array, that a second contribution is added in place, and where the memory for it comes
# from. *One operation, one place; one concern, one place.*

# %% [markdown]
# ## Products: let the shapes tell you
#
# `z = x @ w`, where `x` is n × k and `w` is k × m. What do `x` and `w` receive?
#
# One entry is $z_{ij} = \sum_l x_{il} w_{lj}$. So $w_{lj}$ acts on $z_{ij}$ for every $i$,
# and each time with the factor $x_{il}$. Add up all the ways:
# $\bar w_{lj} = \sum_i x_{il} \bar z_{ij}$. That is a matrix product again, with `x` lying
# on its side. And you could have guessed it: from an n × k and an n × m matrix there is
# only one way to make a k × m matrix by a product.

# %%
from lantern.op import bilinear


@bilinear
def matrix_product(x, w, /):
    z_bar = yield x @ w
    yield z_bar @ w.T  # (n, m) @ (m, k): the shape of x
    yield x.T @ z_bar  # (k, n) @ (n, m): the shape of w


rng = np.random.default_rng(0)
x, w = rng.normal(size=(4, 3)), rng.normal(size=(3, 2))
ours = lantern.grad(lambda w: np.tanh(matrix_product(x, w)).sum())(w)
numpys = lantern.grad(lambda w: np.tanh(x @ w).sum())(w)
np.allclose(ours, numpys)

# %% [markdown]
# Here is a layer of a network as nested continuations. Each line is *one* operation, on
# whole arrays:

# %%
from lantern import viz


def layer(w, b):
    return np.tanh(x @ w + b).sum()


viz.trace(layer, w, np.zeros(2))

# %% [markdown]
# ## Parts: a thousand reads, one buffer
#
# A loop that reads `x[0]`, `x[1]`, … acts on `x` a thousand times. Written naively, the
# contribution of `x[i]` is an array of zeros with one number in it. A thousand of these,
# each with a thousand entries, make a million additions for a thousand reads. But the
# receiver can do better: a read hands it *the number and its place*, and it adds the one
# into its buffer at the other.

# %% tags=["varies"]
import time


def one_by_one(x):
    total = 0.0
    for i in range(len(x)):
        total = total + x[i] * x[i]
    return total


def seconds(n):
    begin = time.perf_counter()
    lantern.grad(one_by_one)(np.ones(n))
    return time.perf_counter() - begin


lengths = (1_000, 4_000, 16_000)
runs = [[seconds(n) / n for n in lengths] for _ in range(6)]
for n, times in zip(lengths, zip(*runs, strict=True), strict=True):
    print(f"{2 * n} reads: {1e6 * min(times):.1f} µs for each turn of the loop")

# %% [markdown]
# The time for each turn does not grow with the length of the array.

# %% [markdown]
# ## What a layer does to a gradient
#
# Cotangents travel back through every layer, and each layer multiplies them by its
# matrix. Twelve times a factor of a half is very little. `viz.gradient_flow` shows the
# size of each gradient: a dot for the typical size, a bar where nine tenths of the
# entries lie, on a logarithmic scale. Here are the gradients of the twelve biases, each
# of which is the cotangent in its layer, summed over the examples:


# %%
def network(layers, x, target):
    for layer in layers.values():
        x = np.tanh(x @ layer["w"] + layer["b"])
    return ((x - target) ** 2).mean()


def start(scale, size=30):
    rng = np.random.default_rng(1)
    weights = [scale * rng.normal(size=(size, size)) for _ in range(12)]
    return {f"layer {i}": {"w": w, "b": np.zeros(size)} for i, w in enumerate(weights)}


x, target = rng.normal(size=(20, 30)), rng.normal(size=(20, 30))


def flow_of_biases(scale):
    gradient = lantern.grad(network)(start(scale), x, target)
    return viz.gradient_flow({name: g["b"] for name, g in gradient.items()})


flow_of_biases(0.08)

# %% [markdown]
# Read it from below, as the cotangents travel: from the last layer to the first the
# gradient becomes more than ten thousand times smaller. The first layers would learn next to
# nothing. That is a *vanishing gradient*. With entries of size $1/\sqrt{30} \approx 0.18$
# a layer keeps the size of what passes through it:

# %%
flow_of_biases(30**-0.5)

# %% [markdown]
# Same program, same derivative. What changed is where the weights start. This is why
# initialisation schemes exist, and now you can see what they do.

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** Predict the shape of the gradient with respect to `u` and to `v` of
# `(u * v).sum()` for `u` of shape (5, 1, 3) and `v` of shape (4, 1). Feed a `Receiver` of
# each shape with an array of ones of the full shape. How often was each entry used?
#
# **Exercise 2.** Write the operation `row_mean(x)` for a matrix, the mean of each row, as
# a rule with `lantern.op.linear`. How much does each entry receive?
#
# **Exercise 3.** By the argument from shapes, find the rule of `z = x @ y.T` for `x` of
# shape (n, k) and `y` of shape (m, k), and check it against the library.

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 1. The full shape is (5, 4, 3). u was used 4 times, v 15 times.

u, v = Receiver((5, 1, 3)), Receiver((4, 1))
for receiver in (u, v):
    receiver.accumulate(np.ones((5, 4, 3)))
assert u.cotangent.shape == (5, 1, 3)
assert (u.cotangent == 4).all()
assert v.cotangent.shape == (4, 1)
assert (v.cotangent == 15).all()

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 2. Each entry receives its row's cotangent, divided by the number of columns.

from lantern.op import linear
from lantern.testing import check_grads


@linear
def row_mean(x, /):
    n = x.shape[1]
    z_bar = yield x.sum(axis=1) / n
    yield z_bar[:, None] / n + 0 * x


matrix = rng.normal(size=(4, 3))
check_grads(row_mean, (matrix,))
assert np.allclose(lantern.grad(lambda x: row_mean(x).sum())(matrix), 1 / 3)

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 3. z_bar is (n, m). For x: (n, m) @ (m, k). For y: (m, n) @ (n, k).


@bilinear
def against(x, y, /):
    z_bar = yield x @ y.T
    yield z_bar @ y
    yield z_bar.T @ x


x, y = rng.normal(size=(4, 3)), rng.normal(size=(5, 3))
for i in (0, 1):
    ours = lantern.grad(lambda x, y: np.sin(against(x, y)).sum(), argnums=i)(x, y)
    theirs = lantern.grad(lambda x, y: np.sin(x @ y.T).sum(), argnums=i)(x, y)
    assert np.allclose(ours, theirs)

# %% [markdown]
# ## What to remember
#
# - A rule says what the mathematics says. Shapes, types and memory are the business of
#   the one who receives.
# - The way back from "used many times" is a sum: of copies, of broadcast axes, of reads.
# - For a matrix product, the shapes leave only one choice.
# - From here on you can train: [09 Train a classifier](09_train_a_classifier.ipynb).
