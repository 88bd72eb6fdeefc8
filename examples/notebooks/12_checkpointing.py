# %% [markdown]
# # 12 Checkpointing
#
# **How much memory must a gradient take?**
#
# On the way back an operation needs what it knew on the way there. So each operation
# keeps something. A program of a thousand steps keeps a thousand intermediate results.

# %% [markdown]
# Can it keep fewer? Yes, if it computes some of them twice. We shall watch the memory,
# write a *checkpoint* in three lines, and measure its price.

# %%
import itertools
import time
import tracemalloc

import matplotlib.pyplot as plt
import numpy as np

import lantern
from lantern import viz
from lantern.op import op

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
# ## Watching the memory
#
# The program has 256 steps of y = tanh(y · y), on 20,000 numbers (160 kB). What does it
# hold at each moment? `tracemalloc` knows. We ask it in every step, there and back.

# %%
STEPS, SIZE = 256, 20_000
x0 = np.linspace(0.5, 1.5, SIZE)
history = []


def note(direction):
    """Write down how much memory is in use now, in MB."""
    history.append((direction, tracemalloc.get_traced_memory()[0] / 1e6))


def step(y):
    """One step, which tells when it runs in either direction."""
    note("there")
    return lantern.hook(lambda g: note("back"), np.tanh(y * y))


def plain_loop(x):
    """All the steps, one after another."""
    for _ in range(STEPS):
        x = step(x)
    return x.sum()


def watched(f):
    """The gradient of f at x0, and the course of the memory."""
    history.clear()
    tracemalloc.start()
    gradient = lantern.grad(f)(x0)
    tracemalloc.stop()
    return gradient, list(history)


# %% tags=["varies"]
expected, course = watched(plain_loop)


def draw_course(axes, course, title):
    """The memory in use, step by step; blue there, orange back."""
    sizes = np.array([size for _, size in course])
    turns = [i for i in range(1, len(course)) if course[i][0] != course[i - 1][0]]
    for start, end in itertools.pairwise([0, *turns, len(course) - 1]):
        color = BLUE if course[start][0] == "there" else ORANGE
        i = np.arange(start, end + 1)
        axes.fill_between(i, sizes[i], color=color, lw=0)
    peak = max(size for _, size in course)
    axes.set(xlim=(0, len(course)), ylim=(0, None), xlabel="steps run")
    axes.set_title(f"{title}: at most {peak:.0f} MB")


figure, axes = plt.subplots(figsize=(5, 2.6))
draw_course(axes, course, "Everything kept")
axes.text(90, 30, "there", color=BLUE, ha="center")
axes.text(420, 30, "back", color=ORANGE, ha="center")
axes.set_ylabel("MB in use")
plt.show()

# %% [markdown]
# The pile grows up to the turning point. Then it shrinks, because a rule that has gone
# back drops what it kept.

# %% [markdown]
# Which operation keeps what? `viz.cost` draws it for any program, and also where the
# time went.


# %% tags=["varies"]
def few_steps(x):
    for _ in range(3):
        x = np.tanh(x * x)
    y = np.sin(x) + x
    return (y * y).sum()


viz.cost(few_steps, x0)

# %% [markdown]
# ## A checkpoint is an op
#
# Take a *segment* of the program: a function f of one array. How can it keep nothing
# but its input? Make it a single operation:
#
# - there, compute f on a plain array, so that nothing inside waits;
# - back, run f again, now with its derivative.
#
# That derivative is the gradient of z̄ · f(x), where z̄ is a constant.


# %%
@op
def recomputed(x, /, f):
    """f(x), of which only x is kept."""
    z_bar = yield f(x)
    yield lantern.grad(lambda x: (z_bar * f(x)).sum())(x)


# %% [markdown]
# Here `x` is a local variable, so it is kept. What `f(x)` computed inside is not.

# %% [markdown]
# Now cut the 256 steps into 16 segments of 16. How much is held at once? The 16 inputs
# of the segments, and 16 results in *one* segment: 32 arrays instead of 256.


# %%
def in_segments(length):
    """The same program, with a checkpoint around every `length` steps."""

    def segment(x):
        for _ in range(length):
            x = step(x)
        return x

    def loop(x):
        for _ in range(STEPS // length):
            x = recomputed(x, f=segment)
        return x.sum()

    return loop


gradient, course = watched(in_segments(16))
assert np.array_equal(gradient, expected)

# %% tags=["varies"]
figure, axes = plt.subplots(figsize=(7.5, 2.6))
draw_course(axes, course, "16 segments of 16 steps")
axes.set_ylabel("MB in use")
plt.show()

# %% [markdown]
# Read it from left to right. First all 256 steps run, and only the inputs pile up. Then
# each segment in turn, the last one first, runs again (blue) and goes back (orange).
# Each tooth is a segment.

# %% [markdown]
# The gradient is the same to the last bit. What does it cost? Every step runs twice on
# the way there. A step back takes about as long as two steps there, so the whole is
# about a third slower.

# %% [markdown]
# ## The best length
#
# How long should a segment be? With length k there are n/k inputs, and k results in one
# segment: n/k + k arrays. That is smallest at k = √n, where it is 2√n. Let us measure.

# %% tags=["varies"]
lengths = [2, 4, 8, 16, 32, 64, 128]
peaks = []
for length in lengths:
    _, course = watched(in_segments(length))
    peaks.append(max(size for _, size in course))

one = SIZE * 8 / 1e6  # MB of one array
k = np.geomspace(2, 128, 100)
figure, axes = plt.subplots(figsize=(5, 2.6))
axes.loglog(k, one * (STEPS / k + k), color=GREY, lw=1.5)
axes.loglog(lengths, peaks, "o", color=BLUE, label="measured")
axes.set_xticks(lengths, lengths)
axes.minorticks_off()
axes.set_yticks([5, 10, 20], [5, 10, 20])
axes.text(25, 12, "n/k + k arrays", color=GREY, ha="right")
axes.set(xlabel="length of a segment", title="Most memory in use, MB")
axes.legend(frameon=False, loc="upper center")
plt.show()

# %% [markdown]
# The line is the formula, not a fit. It is right here because a step keeps *one* array.
# If yours keeps three, the best length is another one.

# %% [markdown]
# ## Segments in segments
#
# Can a segment have checkpoints, too? Yes. Halve the program, halve each half, and so
# on. Then about log₂ n arrays are kept. But each step runs up to log₂ n times more: for
# 256 steps, 1 + 8 times.

# %% [markdown]
# The library has both. `lantern.checkpoint(f)` is our `recomputed`, for any function.
# `lantern.remat_loop` runs a loop with checkpoints: on one level (`"sqrt"`) or on all
# (`"log"`).

# %% tags=["varies"]
policies = {"keep all": 0, "sqrt": "sqrt", "log": "log"}
colors = {"keep all": GREY, "sqrt": BLUE, "log": ORANGE}
sizes = [32, 64, 128, 256]
memory = {name: [] for name in policies}
seconds = {name: [] for name in policies}


def loop(x, n, policy):
    """n steps under a policy; these steps tell nothing."""
    y = lantern.remat_loop(lambda y, i: np.tanh(y * y), x, n, policy)
    return y.sum()


for n in sizes:
    for name, policy in policies.items():
        runs = []
        for _ in range(5):
            start = time.process_time()
            lantern.grad(loop)(x0, n, policy)
            runs.append(time.process_time() - start)
        seconds[name].append(min(runs))
        tracemalloc.start()
        lantern.grad(loop)(x0, n, policy)
        memory[name].append(tracemalloc.get_traced_memory()[1] / 1e6)
        tracemalloc.stop()

# %% tags=["varies"]
figure, (left, right) = plt.subplots(1, 2)
for name, color in colors.items():
    left.loglog(sizes, memory[name], "o-", color=color, lw=2, ms=4)
    left.text(280, memory[name][-1], name, color=color, va="center")
    times = np.divide(seconds[name], seconds["keep all"])
    right.semilogx(sizes, times, "o-", color=color, lw=2, ms=4)
for axes in (left, right):
    axes.set_xticks(sizes, sizes)
    axes.minorticks_off()
    axes.set(xlabel="steps")
left.set(title="Most memory in use, MB", xlim=(28, 700))
left.set_yticks([1, 3, 10, 30], [1, 3, 10, 30])
right.set(title="Time, with everything kept = 1", ylim=(0, None))
plt.show()

# %% [markdown]
# Grey keeps all: twice the steps, twice the memory. Blue is much flatter. In theory it
# takes a third more time; fresh memory is not free either, so it may take less. Orange
# hardly grows, and pays in time.

# %% [markdown]
# Which should you take? Keep all while it fits. Then take `"sqrt"`. Take `"log"` when
# nothing else fits.

# %% [markdown]
# ## What can go wrong
#
# What if the second run is not like the first? Then the derivative belongs to *another
# program*. Here the function reads an array that changes between the two runs. Who
# notices?

# %%
factor = np.full(3, 2.0)
scaled = lambda x: np.sin(x) * factor


def careless(x, checkpoint):
    """factor is written to between the two runs of `scaled`."""
    y = checkpoint(x)
    factor[:] = 5.0
    return y.sum()


x = np.zeros(3)
for name, checkpoint in [
    ("none", scaled),
    ("ours", lambda x: recomputed(x, f=scaled)),
    ("lantern.checkpoint", lantern.checkpoint(scaled)),
]:
    factor[:] = 2.0
    try:
        answer = lantern.grad(careless)(x + 0.5, checkpoint).round(3)
    except lantern.errors.MutationError as error:
        answer = f"MutationError: {str(error)[:40]}…"
    print(f"{name:<20}{answer}")

# %% [markdown]
# Ours is wrong and says nothing. `lantern.checkpoint` raises an error.

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** *Two levels.* Put checkpoints in checkpoints with `recomputed`: 4
# segments of 4 segments of 16 steps. Is the gradient the same? How often does a step
# run on the way there?
#
# **Exercise 2.** *Unequal layers.* The layers of a network keep 1, 1, 1, 8, 8, 1, 1 and
# 1 MB. You may put *one* checkpoint around neighbouring layers. It keeps 1 MB, its
# input. What is inside is held only while it runs again; the layers behind it are free
# by then. Where do you put it, so that the most memory in use is smallest? Write a
# function of (first, last) and try all.
#
# **Exercise 3.** *Dropout.* `noisy` multiplies by random numbers. Show that its
# gradient is wrong with `recomputed`, and right with `lantern.checkpoint`.
#
# ```python
# noisy = lambda x, rng: x * rng.random(3)
# ```

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
runs = []


def counted(x):
    """16 steps that count themselves."""
    for _ in range(16):
        runs.append(1)
        x = np.tanh(x * x)
    return x


def nested(x):
    """4 segments of 4 segments."""

    def outer(x):
        for _ in range(4):
            x = recomputed(x, f=counted)
        return x

    for _ in range(4):
        x = recomputed(x, f=outer)
    return x.sum()


assert np.allclose(lantern.grad(nested)(x0), expected, rtol=1e-12)
assert len(runs) == 3 * STEPS  # once, and once more for each level


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
sizes = [1, 1, 1, 8, 8, 1, 1, 1]


def most(first, last):
    """The most memory in use, with layers first to last under one checkpoint."""
    before, inside, behind = sizes[:first], sizes[first:last], sizes[last:]
    turning = sum(before) + 1 + sum(behind)
    again = sum(before) + 1 + sum(inside)
    return max(turning, again)


pairs = [(i, j) for i in range(8) for j in range(i + 1, 9)]
best = min(pairs, key=lambda pair: most(*pair))
print(best, most(*best), "MB instead of", sum(sizes))
# Half of the weight inside, half of it behind: one of the two large layers each.
assert most(*best) == 12

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
noisy = lambda x, rng: x * rng.random(3)


def slope(wrap):
    """The gradient of a sum of noisy numbers, from the same first random numbers."""
    rng = np.random.default_rng(0)
    return lantern.grad(lambda x: wrap(lambda x: noisy(x, rng))(x).sum())(np.ones(3))


right_answer = np.random.default_rng(0).random(3)
assert np.allclose(slope(lantern.checkpoint), right_answer)
assert not np.allclose(slope(lambda f: lambda x: recomputed(x, f=f)), right_answer)

# %% [markdown]
# ## What to remember
#
# - Reverse mode keeps most at the turning point.
# - A checkpoint keeps an input and runs its piece again.
# - Checkpoints at √n places: about √n of the memory, for about a third more time.
# - Next: [13 Debugging a gradient](13_debug_a_gradient.ipynb).
