# %% [markdown]
# # 13 Debugging a gradient
#
# **The loss is a sensible number, and its gradient is `nan`. Which operation did it?**
#
# A backward pass is a program that runs. So it can be debugged like one: stop, look,
# change a value, go on. We shall meet four bugs:
#
# - a nan;
# - a gradient that fades away;
# - a shape that should not have been broadcast;
# - an exception on the way back.

# %%
import warnings

import matplotlib.pyplot as plt
import numpy as np

import lantern
from lantern import viz
from lantern.debugger import Session

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
# ## A drawing that goes wrong
#
# Twelve points are to be placed on a plane. All we know is how far they are from each
# other. The loss is the mean squared error of these distances.


# %%
def distances(points):
    """points: (n, 2); result: (n, n)."""
    difference = points[:, None, :] - points[None, :, :]
    squares = (difference**2).sum(axis=-1)
    return np.sqrt(squares)


def loss(points, wanted):
    """How far the distances are from the wanted ones."""
    return ((distances(points) - wanted) ** 2).mean()


rng = np.random.default_rng(2)
angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
circle = np.stack([np.cos(angles), np.sin(angles)], axis=1)
wanted = distances(circle)
points = rng.normal(size=(12, 2))

with np.errstate(all="ignore"):
    value, g = lantern.value_and_grad(loss)(points, wanted)
print(f"loss {value:.2f}")
print("gradient", g[0], "and", np.isnan(g).sum(), "of", g.size, "elements are nan")

# %% [markdown]
# The loss is fine and the gradient is nan. Which line did it? Guess before you read on.
# (PyTorch and JAX give the same nan.)

# %% [markdown]
# ## First: ask
#
# In a `debug` block every operation is checked, there and back. It raises an error
# where finite numbers become nan or infinite, and names **your** line: `cell:5` is line
# 5 of its cell.

# %%
try:
    with np.errstate(all="ignore"), lantern.debug(shape="ignore"):
        lantern.grad(loss)(points, wanted)
except lantern.errors.AnomalyError as error:
    print(error)

# %% [markdown]
# It is the square root. Why? The distance of a point to *itself* is 0, and the slope of
# √ at 0 is infinite. The cotangent that arrives there is 0. And 0 · ∞ is nan.

# %% [markdown]
# (`debug` also warns of broadcasting. Here it is meant, so `shape="ignore"`.)

# %% [markdown]
# ## Then: watch it happen
#
# How does the nan spread? `backward_steps` gives you the backward pass as a loop. In
# each step we draw the sizes of the cotangents. Read the picture from left to right, as
# the backward pass runs.


# %%
def watch(f, *args):
    """The operations of the backward pass, and the sizes of their cotangents."""
    names, sizes = [], []
    with np.errstate(all="ignore"):
        for op, _ in lantern.backward_steps(f, *args):
            names.append("gradient" if op.is_input else op.name)
            sizes.append(np.abs(np.ravel(op.cotangent)))
    return names, sizes


def draw(axes, names, sizes):
    """One column for each operation: its finite cotangents, and how many are nan."""
    for i, size in enumerate(sizes):
        good = size[np.isfinite(size) & (size > 0)]
        axes.plot(np.full(len(good), i), good, "_", color=BLUE, alpha=0.4, ms=14)
        count = np.isnan(size).sum()
        if count:
            axes.plot(i, 1e2, "x", color=ORANGE, ms=8, mew=2)
            axes.text(i, 4e2, f"{count} nan", color=ORANGE, ha="center")
    axes.set_xticks(range(len(names)), names, rotation=25, ha="right")
    axes.set(yscale="log", ylim=(1e-6, 1e4))
    axes.set_title("|cotangent| of each operation's result")


names, sizes = watch(loss, points, wanted)
figure, axes = plt.subplots(figsize=(7.5, 3.2))
draw(axes, names, sizes)
plt.show()

# %% [markdown]
# Up to `sqrt` all is well. It hands twelve nans to the `sum` before it, one for each
# point. From there they spread everywhere.

# %% [markdown]
# ## Or step, and try a remedy on the spot
#
# Would it help if these twelve were zeros? A `Session` lets you try: it waits before
# each step. (In a terminal, type `lantern.debugger.run(loss, points, wanted)`.)

# %%
with np.errstate(all="ignore"):
    session = Session(loss, points, wanted)
    session.proceed(until="sqrt")
session

# %%
print(session.where())

# %% [markdown]
# Take this step. Now the `sum` has its nans. Change the cotangent, and go on.

# %%
with np.errstate(all="ignore"):
    session.step()
    print("nan in the cotangent:", np.isnan(session.cotangent).sum())
    session.cotangent = np.nan_to_num(session.cotangent, nan=0.0)
    session.proceed()
print("nan left in the gradient:", np.isnan(session.gradient).sum())


# %% [markdown]
# It helps: nothing else is wrong. Now mend the program. The distance of a point to
# itself is no news, so choose 0 there, by `where`.

# %% [markdown]
# A branch that is not taken receives nothing, so no infinity is multiplied. (In PyTorch
# and JAX you need a second `where`, inside the root.)


# %%
def distances(points):
    """points: (n, 2); result: (n, n)."""
    difference = points[:, None, :] - points[None, :, :]
    squares = (difference**2).sum(axis=-1)
    return np.where(squares > 0, np.sqrt(squares), 0.0)


with np.errstate(divide="ignore"), lantern.debug(shape="ignore"):  # still watching
    g = lantern.grad(loss)(points, wanted)
assert np.isfinite(g).all()

moved = points
path = [moved]
for _ in range(300):
    moved = moved - 1.0 * lantern.grad(loss)(moved, wanted)
    path.append(moved)
path = np.array(path)
print(f"loss {loss(points, wanted):.2f} -> {loss(moved, wanted):.2f}")

# %%
figure, axes = plt.subplots(figsize=(3.6, 3.2))
for track in path.transpose(1, 0, 2):
    axes.plot(*track.T, color=GREY, lw=0.8, alpha=0.6)
axes.plot(*points.T, "o", color=ORANGE, ms=4, label="start")
axes.plot(*moved.T, "o", color=BLUE, label="found")
axes.set_aspect("equal")
axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
axes.set_title("Found from the distances alone")
plt.show()


# %% [markdown]
# ## A gradient that fades away
#
# Sometimes nothing is nan, but the first layers do not learn. How large is the
# cotangent there? `hook(fn, x)` returns x, and on the way back gives x's cotangent to
# `fn`. Put one behind each layer, and draw the norms.


# %%
def flow(scale, activation, depth=30, width=100):
    """The norm of the cotangent behind each layer, for weights of this scale."""
    rng = np.random.default_rng(0)
    weights = [
        rng.normal(0, scale / np.sqrt(width), (width, width)) for _ in range(depth)
    ]
    norms = np.zeros(depth)

    def note(i):
        return lambda g: norms.__setitem__(i, np.linalg.norm(g))

    def network(weights):
        x = np.ones((1, width))
        for i, w in enumerate(weights):
            x = lantern.hook(note(i), activation(x @ w))
        return (x**2).sum()

    lantern.grad(network)(weights)
    return norms


figure, axes = plt.subplots()
for scale, label, color in [
    (0.5, "too small (0.5)", ORANGE),
    (1.0, "right (1.0)", GREEN),
    (2.0, "too large (2.0)", BLUE),
]:
    norms = flow(scale, lambda x: x)
    axes.semilogy(range(1, 31), norms / norms[-1], color=color, lw=2)
    axes.text(0.4, norms[0] / norms[-1], label, color=color, ha="right", va="center")
axes.set(
    xlabel="layer (the backward pass runs from right to left)",
    title="Norm of the cotangent, relative to the last layer",
    xlim=(-6, 30),
    xticks=[1, 10, 20, 30],
)
plt.show()
# %% [markdown]
# Each layer multiplies the cotangent by its weights. Thirty layers do it thirty times,
# and 0.5³⁰ is 10⁻⁹. In this linear network 1 is the right scale. For other activations
# it is another number (exercise 2).

# %% [markdown]
# And the gradients of the *weights*? `viz.gradient_flow` shows them for any model. A
# dot is the typical size. A bar holds most of the elements. Here each layer ends in the
# logistic function, whose slope is at most ¼. So the gradient fades.

# %%
rng = np.random.default_rng(0)
weights = {f"layer {i}": rng.normal(0, 0.1, (100, 100)) for i in range(1, 9)}


def logistic_network(weights):
    x = np.ones((1, 100))
    for w in weights.values():
        x = lantern.sigmoid(x @ w)
    return (x**2).sum()


viz.gradient_flow(lantern.grad(logistic_network)(weights))

# %% [markdown]
# A hook may also *return* something, and that replaces the cotangent. So you can clip a
# gradient in the middle of a program:

# %%
clip = lambda g: g / max(1.0, np.linalg.norm(g))
steep = lambda x: (lantern.hook(clip, x) ** 4).sum()
x = np.array([3.0, 4.0])
print(lantern.grad(steep)(x).round(3), "instead of", 4 * x**3)

# %% [markdown]
# ## The bug that raises nothing
#
# We fit a line to points. The loss falls a little and then stays. There is no nan and
# no error, and every shape fits. What is wrong?

# %%
x = rng.uniform(-1, 1, 50)
y = 2.0 * x + 0.5 + 0.1 * rng.normal(size=50)


def line_loss(p, x, y):
    """The mean squared error of a line."""
    predicted = x[:, None] @ p["slope"] + p["offset"]
    return ((predicted - y) ** 2).mean()


def fit(loss):
    """Gradient descent."""
    p = {"slope": np.zeros((1, 1)), "offset": np.zeros(1)}
    for _ in range(200):
        g = lantern.grad(loss)(p, x, y)
        p = {name: p[name] - 0.3 * g[name] for name in p}
    return p["slope"].item(), p["offset"].item()


print("slope, offset:", np.round(fit(line_loss), 3), "   wanted: [2, 0.5]")

# %% [markdown]
# `debug` warns where broadcasting made a result larger than *both* operands. That is
# legal, and often a mistake.

# %%
p = {"slope": np.zeros((1, 1)), "offset": np.zeros(1)}
with warnings.catch_warnings(action="ignore"), lantern.debug() as report:
    lantern.grad(line_loss)(p, x, y)
print(report)


# %% [markdown]
# `predicted` is a column of 50 numbers and `y` a row of 50. Their difference is a
# *table* of all 2,500 pairs. The best line for all pairs at once is the mean of y.


# %%
def mended(p, x, y):
    """The mean squared error of a line, each point with its own."""
    predicted = x[:, None] @ p["slope"] + p["offset"]
    return ((predicted[:, 0] - y) ** 2).mean()


figure, axes = plt.subplots(figsize=(4.5, 2.6))
axes.plot(x, y, ".", color=GREY)
for f, color, label in [(line_loss, ORANGE, "with the bug"), (mended, BLUE, "mended")]:
    slope, offset = fit(f)
    axes.plot([-1, 1], [offset - slope, offset + slope], color=color, lw=2, label=label)
axes.legend(frameon=False)
plt.show()

# %% [markdown]
# ## An exception on the way back
#
# What if a backward step fails? The traceback ends inside that step, far from your
# line. Under `debug` the exception has notes: through which of your lines its cotangent
# came, newest first.


# %%
@lantern.custom_rule
def scaled(x, /, factor):
    """x times a constant array; the rule has a slip."""
    z_bar = yield x * factor
    yield z_bar[:3] * factor


def model(x):
    """Two operations and a sum."""
    y = scaled(np.tanh(x), np.arange(5.0))
    return np.exp(y).sum()


try:
    with lantern.debug():
        lantern.grad(model)(np.ones(5))
except ValueError as error:
    print(type(error).__name__, "·", error)
    print("\n".join(error.__notes__))

# %% [markdown]
# ## In which order to look
#
# 1. Is the **loss** right at the start? (Chapter 09: log 10.)
# 2. Is the **gradient** finite? If not: `with lantern.debug():`.
# 3. Is it **right**? `check_grads` on a small input. (Chapter 10.)
# 4. How **large** is it in each layer? Hooks, and a picture.
# 5. Only then change the learning rate.

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** *Find the line.* This entropy is nan for `certain`, and so is its
# gradient. Find the line without reading the formula. Then mend it.
#
# ```python
# def surprise(p):
#     """The entropy of the probabilities p."""
#     logs = np.log(p)
#     return -(p * logs).sum()
#
# certain = np.array([0.0, 1.0])
# ```


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
def surprise(p):
    """The entropy of the probabilities p."""
    logs = np.log(p)
    return -(p * logs).sum()


certain = np.array([0.0, 1.0])
try:
    with np.errstate(all="ignore"), lantern.debug():
        lantern.grad(surprise)(certain)
    raise AssertionError("nothing was found")
except lantern.errors.AnomalyError as error:
    print(error)  # the *forward* step of log: -inf, before any nan is there


def mended_surprise(p):
    """The entropy, in which what never happens counts for nothing."""
    return -np.where(p > 0, p * np.log(p), 0.0).sum()


with np.errstate(all="ignore"):
    assert np.array_equal(lantern.grad(mended_surprise)(certain), [0.0, -1.0])

# %% [markdown]
# **Exercise 2.** *The right scale.* Draw `flow` for `np.tanh` and for `lambda x:
# np.maximum(x, 0)`. Find a scale for each at which the cotangents of the first and the
# last layer differ by less than a factor of 1,000.

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
figure, axes = plt.subplots(figsize=(5, 2.6))
for name, activation, scale, color in [
    ("tanh, 1.1", np.tanh, 1.1, BLUE),
    ("relu, √2", lambda x: np.maximum(x, 0.0), np.sqrt(2), ORANGE),
]:
    norms = flow(scale, activation)
    axes.semilogy(norms / norms[-1], color=color, lw=2, label=name)
    assert 1e-3 < norms[0] / norms[-1] < 1e3
axes.legend(frameon=False)
# relu sets half of the numbers to zero and so halves the variance: √2 makes up for it.
plt.show()

# %% [markdown]
# **Exercise 3.** *Stop where it gets large.* Run this program at `np.array([1e-3])`.
# Let `Session.proceed` stop before the first operation whose cotangent is larger than
# 100: give it a *function*. Which factor is to blame?
#
# ```python
# def f(x):
#     for factor in (2.0, 0.5, 80.0, 30.0, 10.0):
#         x = np.tanh(x) * factor
#     return x.sum()
# ```


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
def f(x):
    """Five layers of one weight each."""
    for factor in (2.0, 0.5, 80.0, 30.0, 10.0):
        x = np.tanh(x) * factor
    return x.sum()


session = Session(f, np.array([1e-3]))
session.proceed(until=lambda op: np.abs(op.cotangent).max() > 100)
print(session)
last = session.done[-1]  # what has just made it large
assert last.name == "multiply"
assert session.cotangent / last.cotangent == 80.0

# %% [markdown]
# ## What to remember
#
# - A backward pass is a program that runs: stop it, look, change a value, go on.
# - A nan from finite numbers is often 0 · ∞. `debug` names the operation.
# - Draw the sizes of the cotangents, layer by layer.
# - Next: [14 Batching by continuations](14_batching_by_continuations.ipynb).
