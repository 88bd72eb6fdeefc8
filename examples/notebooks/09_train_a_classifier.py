# %% [markdown]
# # 09 Train a classifier on the digits
#
# **What is left of a training program when the gradient is just a function?**
#
# In chapters 01 to 08 we built reverse mode out of "the rest of the program". Here we
# use it. We train a small network to read handwritten digits, look at what it learned,
# and then ask for a gradient that training never needs: the one with respect to the
# picture.
#
# If you have trained a model with PyTorch, watch for what is *not* here: no module, no
# `requires_grad`, no `zero_grad`, no `backward`, no `no_grad`. There is one function,
# the loss, and one call, `value_and_grad(loss)`.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

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
# ## The data
#
# 1,797 pictures of 8 × 8 pixels, and what each of them shows. We keep every fifth one
# apart and never train on it.

# %%
here = Path.cwd()
file = next(
    p / "digits.npz" for p in (here, *here.parents) if (p / "digits.npz").exists()
)
with np.load(file) as digits:
    images = digits["images"].reshape(-1, 64) / 16.0  # 0 is paper, 1 is ink
    labels = digits["labels"].astype(int)

rng = np.random.default_rng(0)
order = rng.permutation(len(images))
held_out, training = order[::5], np.delete(order, np.s_[::5])
len(training), len(held_out)


# %%
def show(axes, picture, title="", color="black", **options):
    """Draw one 8 × 8 picture without axes."""
    options = {"cmap": "Greys", "vmin": 0, "vmax": 1} | options
    axes.imshow(np.reshape(picture, (8, 8)), **options)
    axes.set_title(title, fontsize=9, color=color, loc="center", pad=3)
    axes.axis("off")


figure, grid = plt.subplots(2, 12, figsize=(7.5, 1.7))
for axes, i in zip(grid.flat, training, strict=False):
    show(axes, images[i], labels[i])
plt.show()


# %% [markdown]
# ## The model is a function
#
# Its parameters are a plain dict of plain NumPy arrays. Nothing has to be registered
# anywhere: `grad` will look into the dict by itself.


# %%
def initial(rng, hidden=64):
    """Random weights, of the size that keeps the numbers in the network near 1."""
    return {
        "w1": rng.normal(0.0, np.sqrt(2 / 64), (64, hidden)),
        "b1": np.zeros(hidden),
        "w2": rng.normal(0.0, np.sqrt(2 / hidden), (hidden, 10)),
        "b2": np.zeros(10),
    }


def scores(p, x):
    """x: (n, 64); result: (n, 10), one score for each digit."""
    hidden = np.maximum(x @ p["w1"] + p["b1"], 0.0)
    return hidden @ p["w2"] + p["b2"]


def loss(p, x, y):
    """The mean of -log(probability of the right digit)."""
    log_probability = lantern.log_softmax(scores(p, x))
    return -log_probability[np.arange(len(y)), y].mean()


# %% [markdown]
# Before any training the network can only guess. A guess among ten gives every digit
# the probability 1/10, so the loss should be somewhere near log 10 ≈ 2.3. It is worth
# looking at that number in every project: if it is 20, or 0.001, something is wrong
# *before* the first step.

# %%
p = initial(rng)
print(f"loss {loss(p, images, labels):.2f}, log 10 = {np.log(10):.2f}")

# %% [markdown]
# ## The gradient has the form of what it is the gradient of
#
# A dict of four arrays goes in, a dict of four arrays of the same shapes comes out.
# That is all there is to know about it.

# %%
value, g = lantern.value_and_grad(loss)(p, images, labels)
{name: (p[name].shape, g[name].shape) for name in p}

# %% [markdown]
# Is it right? Change one weight a little and see what the loss does.

# %%
place, eps = (20, 3), 1e-5
up, down = ({**p, "w1": p["w1"].copy()} for _ in range(2))
up["w1"][place] += eps
down["w1"][place] -= eps
by_difference = (loss(up, images, labels) - loss(down, images, labels)) / (2 * eps)
print(f"by difference {by_difference:.9f}\nby gradient   {g['w1'][place]:.9f}")
assert np.isclose(by_difference, g["w1"][place], rtol=1e-5)

# %% [markdown]
# ## There and back again
#
# Which operations waited for the rest of the program, and in which order did they go
# on? `backward_steps` takes the backward pass one operation at a time. Read the table
# from top to bottom: it is the program above, read from its last line to its first.
#
# Note where the four gradients appear. As soon as nobody who still waits can add to a
# gradient, it is complete: `b2` and `w2` long before `b1` and `w1`.

# %%
for op, _ in lantern.backward_steps(loss, p, images, labels):
    note = f"   <- the gradient of {op.path[0]} is complete" if op.is_input else ""
    if not op.is_input:
        print(f"{op.name:<14}{np.shape(op.cotangent)!s:<12}")
    else:
        print(note)


# %% [markdown]
# ## The training loop
#
# Gradient descent with momentum, on batches of 32. An update is ordinary arithmetic on
# ordinary arrays, outside of any derivative: there is nothing to switch off.


# %% tags=["varies"]
def accuracy(p, chosen):
    """The share of these pictures that is read correctly."""
    return (scores(p, images[chosen]).argmax(axis=1) == labels[chosen]).mean()


def train(p, epochs=15, lr=0.1, loss=loss, batch=32, seed=1):
    """Return trained parameters, the losses, and the accuracy after each epoch."""
    rng = np.random.default_rng(seed)
    velocity = {name: np.zeros_like(w) for name, w in p.items()}
    losses, accuracies = [], []
    for epoch in range(epochs):
        shuffled = rng.permutation(training)
        for chosen in np.array_split(shuffled, len(shuffled) // batch):
            value, g = lantern.value_and_grad(loss)(p, images[chosen], labels[chosen])
            rate = lr * (1 - epoch / epochs)
            velocity = {name: 0.9 * velocity[name] - rate * g[name] for name in g}
            p = p | {name: p[name] + velocity[name] for name in g}
            losses.append(float(value))
        accuracies.append((accuracy(p, training), accuracy(p, held_out)))
    return p, np.array(losses), np.array(accuracies)


trained, losses, accuracies = train(p)
print(f"held-out accuracy {accuracies[-1, 1]:.1%}")

# %%
figure, (left, right) = plt.subplots(1, 2)
epochs = np.arange(1, len(accuracies) + 1)
progress = np.arange(len(losses)) * len(epochs) / len(losses)
left.plot(progress, losses, color=BLUE, alpha=0.25)
left.plot(epochs, losses.reshape(len(epochs), -1).mean(axis=1), color=BLUE, lw=2)
left.set(yscale="log", xlabel="epoch", title="Loss: each batch, and the mean")
right.plot(epochs, 100 * accuracies[:, 0], color=GREY, lw=2)
right.plot(epochs, 100 * accuracies[:, 1], color=ORANGE, lw=2)
right.text(epochs[-1], 100.3, "training", color=GREY, ha="right")
right.text(epochs[-1], 95.5, "held out", color=ORANGE, ha="right")
right.set(xlabel="epoch", title="Read correctly, %", ylim=(88, 101.5))
for axes in (left, right):
    axes.set_xticks([1, 5, 10, 15])
plt.show()

# %% [markdown]
# What does it get wrong? Usually what you would hesitate over too.

# %%
read = scores(trained, images[held_out]).argmax(axis=1)
wrong = held_out[read != labels[held_out]]
figure, grid = plt.subplots(1, 10, figsize=(7.5, 1.1))
for axes in grid:
    axes.axis("off")
for axes, i in zip(grid, wrong, strict=False):
    said = scores(trained, images[i : i + 1]).argmax()
    show(axes, images[i], f"{labels[i]}, read {said}", ORANGE)
plt.show()

# %% [markdown]
# ## The same function, another argument
#
# The loss is a function of the parameters *and of the picture*. Nothing singles the
# parameters out but that we asked for their gradient. Ask for the picture's instead:
# where would more ink make the network less sure that this is a 3?
#
# Purple: ink here speaks for the digit. Orange: ink here speaks against it.

# %%
slope = lantern.grad(loss, argnums=1)
figure, grid = plt.subplots(2, 10, figsize=(7.5, 1.9))
for digit, (above, below) in enumerate(grid.T):
    i = held_out[labels[held_out] == digit][0]
    pixel = slope(trained, images[i : i + 1], labels[i : i + 1])
    limit = abs(pixel).max()
    show(above, images[i], digit)
    show(below, -pixel, cmap="PuOr", vmin=-limit, vmax=limit)
plt.show()

# %% [markdown]
# Following that gradient uphill changes the picture so that it is misread, though to us
# it looks much the same. This is an *adversarial example*, and all it takes is a
# different `argnums`. In the middle is the change: purple where ink came, orange where
# ink went.

# %% tags=["varies"]
i = held_out[labels[held_out] == 3][0]
picture, said = images[i : i + 1], 3
while said == 3:
    step = 0.02 * np.sign(slope(trained, picture, labels[i : i + 1]))
    picture = np.clip(picture + step, 0.0, 1.0)
    said = scores(trained, picture).argmax()
figure, grid = plt.subplots(1, 3, figsize=(4.5, 1.6))
show(grid[0], images[i], "read as 3")
show(grid[1], picture - images[i], "the change", cmap="PuOr", vmin=-0.3, vmax=0.3)
show(grid[2], picture, f"read as {said}", ORANGE)
print(f"no pixel changed by more than {abs(picture - images[i]).max():.2f}")
plt.show()

# %% [markdown]
# ## Where PyTorch's calls went
#
# | PyTorch | here | why |
# |---|---|---|
# | `requires_grad=True` | the argument of `grad` | what to differentiate by is said at the call |
# | `optimizer.zero_grad()` | nothing | every call returns new gradients; none add up behind your back |
# | `loss.backward()` | `value_and_grad(loss)(...)` | the delimiter: the program between here and the end of `loss` |
# | `with torch.no_grad():` | nothing | outside of `grad` nothing is tracked |
# | `x.detach()` | `lantern.stop_gradient(x)` | the same, and rarely needed |
# | `model.parameters()` | any dict, list or dataclass | a gradient has its argument's structure |
#
# If you prefer PyTorch's way of writing, `import lantern.torch as torch` has it, on the
# same rules.

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** *Weight decay.* Add `rate` times the sum of all squared weights to the
# loss. By how much does the gradient of `w1` change? Predict it, then check.


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
def decayed(p, x, y, rate=1e-3):
    """The loss, and a price on large weights."""
    return loss(p, x, y) + rate * sum((p[name] ** 2).sum() for name in ("w1", "w2"))


g = lantern.grad(loss)(p, images, labels)
g_decayed = lantern.grad(decayed)(p, images, labels)
# d(rate · w²)/dw = 2 · rate · w: every step pulls a weight towards zero, hence the name.
assert np.allclose(g_decayed["w1"] - g["w1"], 2e-3 * p["w1"])
assert np.allclose(g_decayed["b1"], g["b1"])

# %% [markdown]
# **Exercise 2.** *Freeze a layer.* Train only `w2` and `b2`, and leave `w1` and `b1`
# random. How good does that get? (Hint: what is not an argument is a constant.)


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution", "varies"]
def top(q, x, y):
    """The loss as a function of the second layer alone."""
    return loss({"w1": p["w1"], "b1": p["b1"]} | q, x, y)


frozen = {name: p[name] for name in ("w1", "b1")}
q = {name: p[name] for name in ("w2", "b2")}
assert set(lantern.grad(top)(q, images, labels)) == {"w2", "b2"}
rng = np.random.default_rng(1)
for _ in range(300):
    chosen = rng.choice(training, 32)
    g = lantern.grad(top)(q, images[chosen], labels[chosen])
    q = {name: q[name] - 0.5 * g[name] for name in q}
print(f"with a random first layer: {accuracy(frozen | q, held_out):.1%}")
assert accuracy(frozen | q, held_out) > 0.85

# %% [markdown]
# **Exercise 3.** *Whom does it learn from?* The gradient of a batch is the mean of the
# gradients of its pictures. Compute the gradient of `b2` for *each* training picture by
# itself, with `lantern.vmap`, and show the pictures with the largest ones.

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
of_one = lambda x, y: lantern.grad(loss)(trained, x[None], y[None])["b2"]
each = lantern.vmap(of_one)(images[training], labels[training])
together = lantern.grad(loss)(trained, images[training], labels[training])["b2"]
assert np.allclose(each.mean(axis=0), together)

largest = training[np.argsort(-np.linalg.norm(each, axis=1))]
figure, grid = plt.subplots(1, 10, figsize=(7.5, 1.1))
for axes, i in zip(grid, largest, strict=False):
    show(axes, images[i], labels[i])
plt.show()

# %% [markdown]
# ## What to remember
#
# - A model is a function, a gradient is a function's result; training is a loop that
#   calls it.
# - Look at the first loss (log 10), at one number against a difference, at the
#   mistakes.
# - Any argument can be the one that is differentiated.
# - Next: [10 Your own op](10_your_own_op.ipynb).
