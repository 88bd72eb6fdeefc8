# %% [markdown]
# # 06 Perturbation confusion
#
# **A derivative inside a derivative: why does a simple program get it wrong, in silence,
# and what is the cure?**
#
# Derivatives of derivatives are not exotic. How does the validation loss change with the
# learning rate of a training step? How does the force change that is itself the slope of
# an energy? Both take a derivative of something in which a derivative is taken.

# %% [markdown]
# ## Two wrong, one right
#
# Take the dual numbers of [notebook 03](03_dual_numbers.ipynb), the parts that we need:


# %%
class Dual:
    def __init__(self, primal, tangent=0.0):
        self.primal, self.tangent = primal, tangent

    def __add__(self, that):
        that = that if isinstance(that, Dual) else Dual(that)
        return Dual(self.primal + that.primal, self.tangent + that.tangent)

    def __mul__(self, that):
        that = that if isinstance(that, Dual) else Dual(that)
        tangent = self.tangent * that.primal + self.primal * that.tangent
        return Dual(self.primal * that.primal, tangent)

    __radd__, __rmul__ = __add__, __mul__


def derivative(f, x):
    y = f(Dual(x, 1.0))
    return y.tangent if isinstance(y, Dual) else 0.0


# %% [markdown]
# And this question:
#
# $$\frac{d}{dx}\left( x \cdot \frac{d}{dy} (x + y) \right)$$
#
# The inner derivative is with respect to $y$. There $x$ is a constant, so it is 1,
# whatever $x$ may be. What is left is $\frac{d}{dx}(x \cdot 1) = 1$.

# %%
derivative(lambda x: x * derivative(lambda y: x + y, 1.0), 1.0)

# %% [markdown]
# It says 2. No error, no warning; just wrong.

# %% [markdown]
# ## What happened
#
# Follow the speeds. The outer derivative sets `x` in motion: its tangent is 1. The inner
# derivative sets `y` in motion: its tangent is 1. Then `x + y` adds the tangents and gets
# 2. But these are two different motions! One says "when the *outer* variable moves", the
# other "when the *inner* variable moves". A tangent that does not say whose it is cannot
# be told from another.
#
# | | motion of the outer derivative | motion of the inner derivative |
# |---|---|---|
# | `x` | 1 | 0 |
# | `y` | 0 | 1 |
# | `x + y` | 1 | **1**, which is the answer |
# | what `Dual` noted | 2, the sum of both | |

# %% [markdown]
# ## The cure: say whose it is
#
# Give each derivative that is being taken a number of its own, a *level*; one that starts
# later has a higher level. A dual number belongs to one level. In an operation the
# highest level among the operands wins, and everything of a lower level is a constant to
# it.

# %%
from itertools import count

levels = count(1)


class Tagged:
    def __init__(self, primal, tangent, level):
        self.primal, self.tangent, self.level = primal, tangent, level

    def parts(self, x):
        """The primal and the tangent of x, as this number's level sees them."""
        if isinstance(x, Tagged) and x.level == self.level:
            return x.primal, x.tangent
        return x, 0.0  # a constant, or of an outer derivative: here it does not move

    def __add__(self, that):
        if isinstance(that, Tagged) and that.level > self.level:
            return that + self
        primal, tangent = self.parts(that)
        return Tagged(self.primal + primal, self.tangent + tangent, self.level)

    def __mul__(self, that):
        if isinstance(that, Tagged) and that.level > self.level:
            return that * self
        a, da = self.primal, self.tangent
        b, db = self.parts(that)
        return Tagged(a * b, da * b + a * db, self.level)

    __radd__, __rmul__ = __add__, __mul__


# %%
def derivative(f, x):
    level = next(levels)
    y = f(Tagged(x, 1.0, level))
    return y.tangent if isinstance(y, Tagged) and y.level == level else 0.0


derivative(lambda x: x * derivative(lambda y: x + y, 1.0), 1.0)

# %% [markdown]
# Right. And it is the whole cure: note that primal and tangent of the inner level may
# themselves be numbers of the outer level, and nothing special has to be done for that.

# %% [markdown]
# ## Reverse mode can be confused as well
#
# In reverse mode the thing that is easily mixed up is the *list of those who wait*. With
# one global tape, the inner derivative would find the outer operations on it, and play
# them too. In terms of [notebook 02](02_shift_and_reset.ipynb): an operation on `x` inside
# the inner `reset` must capture the rest up to the **outer** one. That is what prompts
# are for. In Lantern every derivative that is being taken has its own prompt with its own
# level, every tracked value knows its prompt, and there is no global list at all.

# %%
import lantern


def forward(f):
    return lambda x: lantern.jvp(f, (x,), (1.0,))[1]


for outer in (forward, lantern.grad):
    for inner in (forward, lantern.grad):
        print(outer(lambda x, inner=inner: x * inner(lambda y: x + y)(1.0))(1.0))

# %% [markdown]
# All four mixtures: 1. What the outer derivative sees of the inner one is simply a
# program with `+` and `*` in it, also on the inner way back. Here is such a program, as
# the outer derivative sees it. The inner derivative, $\frac{d}{dy}(x y^2)$ at $y = 2$,
# runs there and back, and each of its steps that involves `x` is an operation of the
# outer program:

# %%
from lantern import viz

viz.trace(lambda x: x * lantern.grad(lambda y: x * y * y)(2.0), 3.0)

# %% [markdown]
# By hand: the inner derivative is $2 x y = 4x$, so the whole is $4x^2$ with slope $8x$,
# at 3 that is 24.

# %% [markdown]
# ## A use: tune the learning rate by its gradient
#
# One training step uses the gradient of the loss. How good the step was depends on the
# learning rate. So the loss *after* the step is a function of the rate, and has a slope:

# %%
import numpy as np

rng = np.random.default_rng(0)
inputs = rng.normal(size=(20, 3))
targets = inputs @ np.array([1.0, -2.0, 0.5])


def loss(w):
    error = inputs @ w - targets
    return (error * error).mean()


def loss_after_step(rate):
    w = np.zeros(3)
    return loss(w - rate * lantern.grad(loss)(w))


rate = 0.01
for _ in range(25):
    rate = rate - 0.01 * lantern.grad(loss_after_step)(rate)
print(f"rate {rate:.3f}: the loss falls from {loss(np.zeros(3)):.2f} to", end=" ")
print(f"{loss_after_step(rate):.2f}")

# %%
import matplotlib.pyplot as plt

rates = np.linspace(0, 0.8, 60)
figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
axes.plot(rates, [loss_after_step(r) for r in rates], color="#0072B2", linewidth=2)
axes.plot(rate, loss_after_step(rate), "o", color="#D55E00")
axes.annotate("found by gradient descent", (rate, loss_after_step(rate)), (0, 12),
              textcoords="offset points", ha="center", color="#A84A00")  # fmt: skip
axes.set(xlabel="learning rate of one step", ylabel="loss after it")
axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** What is
# $\frac{d}{dx}\left( x \cdot \frac{d}{dy} (x y) \right)$ at $x = 3, y = 1$? Work it out by hand
# first; then ask the wrong `Dual` (you will have to define `derivative` for it again),
# `Tagged`, and Lantern.
#
# **Exercise 2.** Nest three deep: $\frac{d}{dx}\, x \frac{d}{dy}\, y \frac{d}{dz}\, x y z$
# at $x = 2, y = 3, z = 5$. Does `Tagged` need anything new?
#
# **Exercise 3.** A value that escapes from its derivative is another source of confusion:
# store `x` in a list inside of `lantern.grad`, and use it afterwards. What does Lantern
# do, and why is that better than a number?

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 1. The inner derivative is x, so the whole is x², with slope 2x = 6. The wrong
# one adds both motions of x * y, 1 * y + x * 1 = 4, and multiplies x by that constant.


def confused(f, x):
    return f(Dual(x, 1.0)).tangent


def question(d):
    return d(lambda x: x * d(lambda y: x * y, 1.0), 3.0)


assert question(derivative) == 6.0
assert question(lambda f, x: lantern.grad(f)(x)) == 6.0
assert question(confused) == 4.0

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 2. d/dz gives xy; times y gives x y², whose d/dy is 2xy; times x gives 2 x² y,
# whose d/dx is 4xy = 24. Nothing new is needed.


def three_deep(d):
    inner = lambda x, y: d(lambda z: x * y * z, 5.0)
    middle = lambda x: d(lambda y: y * inner(x, y), 3.0)
    return d(lambda x: x * middle(x), 2.0)


assert three_deep(derivative) == 24.0
assert three_deep(lambda f, x: lantern.grad(f)(x)) == 24.0

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 3. It raises: the derivative is over, and nobody would resume what you compute.
# A number would be a constant by accident, or a wrong gradient of something else.

kept = []
lantern.grad(lambda x: kept.append(x) or x * x)(3.0)
try:
    outcome = kept[0] * 2.0
except lantern.EscapedError as error:
    outcome = str(error)

assert "after the derivative" in outcome

# %% [markdown]
# ## What to remember
#
# - Two derivatives at once need two kinds of tangents, or two lists of those who wait.
# - A level for each derivative tells them apart; what belongs to an outer one is a
#   constant to the inner one.
# - Next: [07 Loops, branches, recursion, trees](07_control_flow.ipynb).
