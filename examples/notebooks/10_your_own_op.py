# %% [markdown]
# # 10 Your own op
#
# **What has to be written for an operation that the library does not have?**
#
# One generator: forward, `yield`, backward. In this chapter you write one, drive it by
# hand, have it checked, break it in six ways and see each of them found, and then use
# the same form for two things that are more than a formula: a solver, and a rule that
# lies on purpose.

# %%
import matplotlib.pyplot as plt
import numpy as np

import lantern
from lantern.testing import check_grads

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
# ## Why one would
#
# *Softplus*, log(1 + eˣ), is a smooth version of max(x, 0). Written down as it stands,
# it differentiates by itself: every piece of it is an operation that has a rule. But at
# x = 1000 the exponential overflows, and the chain rule divides infinity by infinity.


# %%
def naive(x):
    """log(1 + exp(x)), as it is in the book."""
    return np.log(1 + np.exp(x))


with np.errstate(over="ignore", invalid="ignore"):
    x = np.array([-1.0, 0.0, 1000.0])
    print(naive(x))
    print(lantern.elementwise_grad(naive)(x))

# %% [markdown]
# The true derivative at 1000 is 1. No rule is wrong here; the *formula* is unsuited to
# the machine, and a chain of right rules inherits that. What we want is one operation
# with a formula of our own in both directions:
#
# - forward: max(x, 0) + log(1 + e^(−|x|)), whose exponential is at most 1;
# - backward: the derivative, 1/(1 + e^(−x)), the *logistic* function.


# %%
def logistic(x):
    """1 / (1 + exp(-x)), without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * x))


@lantern.custom_rule
def softplus(x, /):
    """log(1 + exp(x)) for any x."""
    z = np.maximum(x, 0.0) + np.log1p(np.exp(-abs(x)))
    z_bar = yield z  # forward; then the rest of the program runs
    yield z_bar * logistic(x)  # backward


print(softplus(x))
print(lantern.elementwise_grad(softplus)(x))

# %%
grid = np.linspace(-6, 6, 200)
figure, axes = plt.subplots(figsize=(5, 2.6))
axes.plot(grid, softplus(grid), color=BLUE, lw=2)
axes.plot(grid, lantern.elementwise_grad(softplus)(grid), color=ORANGE, lw=2)
axes.text(2.2, 3.6, "softplus", color=BLUE, ha="right")
axes.text(6, 1.15, "its derivative", color=ORANGE, ha="right")
axes.set(xlabel="x")
plt.show()

# %% [markdown]
# ## A rule is an ordinary generator
#
# Nothing is hidden in the decorator. Here is a rule of two operands without any
# decorator, and here are you, in the role of the rest of the program. The `yield` is
# the point where you take over; whatever the generator knew before is still there when
# you come back.


# %%
def times(x, y, /):
    """The product of x and y."""
    print("  there: x and y are", x, y)
    z_bar = yield x * y
    print("  back:  the cotangent of the product is", z_bar)
    yield z_bar * y
    yield z_bar * x


rule = times(2.0, 5.0)
z = next(rule)
print("the rest of the program has z =", z, "and computes the loss 3 z")
x_bar = rule.send(3.0)  # d(3z)/dz
y_bar = next(rule)
print("what x receives:", x_bar, " what y receives:", y_bar)
assert (z, x_bar, y_bar) == (10.0, 15.0, 6.0)

# %% [markdown]
# That is the whole protocol:
#
# 1. the first `yield` gives the value away, and is the only hand-over;
# 2. it comes back with the value's cotangent `z_bar`;
# 3. then one `yield` for each operand in front of the `/`, in their order. (What stands
#    behind the `/`, an axis or a size, is not differentiated.)
#
# In PyTorch the same op is a class of two static methods, and `ctx.save_for_backward`
# to carry x and y from one to the other. Here they are local variables.

# %% [markdown]
# ## Check it
#
# `check_grads` compares with finite differences, in a random direction, forwards and
# backwards. `order=3` also checks the derivative of the derivative of the derivative.
# We wrote none of these: the backward step is made of operations, and operations can be
# differentiated. Forward mode too was read off the same generator.

# %%
check_grads(softplus, (np.array([-3.0, 0.5, 2.0]),), order=3)
slope = lantern.grad(softplus)
third = lantern.grad(lantern.grad(slope))
_, forwards = lantern.jvp(softplus, (1.0,), (1.0,))
print(f"{slope(1.0):.6f}, forwards {forwards:.6f}, third derivative {third(1.0):.6f}")


# %% [markdown]
# ## Wrong rules are found
#
# A checker that never complains is worth nothing. Here is a matrix product, z = x y,
# and six ways to get it wrong. The right rule is z̄ yᵀ for x and xᵀ z̄ for y.


# %%
def product(x_part, y_part):
    """An op that computes x @ y, with these backward steps."""

    @lantern.custom_rule
    def op(x, y, /):
        z_bar = yield x @ y
        yield x_part(z_bar, x, y)
        if y_part is not None:
            yield y_part(z_bar, x, y)

    return op


right = (lambda z_bar, x, y: z_bar @ y.T, lambda z_bar, x, y: x.T @ z_bar)
plain = lantern.stop_gradient
attempts = {
    "right": right,
    "a factor": (lambda *a: 1.001 * right[0](*a), right[1]),
    "a sign": (right[0], lambda *a: -right[1](*a)),
    "x and y exchanged": (right[1], right[0]),
    "a transpose forgotten": (lambda z_bar, x, y: z_bar @ y, right[1]),
    "one contribution missing": (right[0], None),
    "a constant in the backward step": (
        lambda z_bar, x, y: z_bar @ plain(y).T,
        lambda z_bar, x, y: plain(x).T @ z_bar,
    ),
}

# %%
rng = np.random.default_rng(0)
matrices = rng.normal(size=(3, 4)), rng.normal(size=(4, 4))
verdicts = {}
for name, parts in attempts.items():
    verdicts[name] = "passes"
    for order in (1, 2):
        try:
            check_grads(product(*parts), matrices, order=order)
        except (lantern.errors.LanternError, ValueError) as error:
            message = str(error).splitlines()[0]
            verdicts[name] = f"order {order}: {type(error).__name__}: {message}"
            break
    print(f"{name:<32}{verdicts[name].partition('. ')[0]}")

# %% [markdown]
# The last one deserves a second look. It passes the first-order check: the gradient
# *is* right. But it treats x and y as constants on the way back, so the derivative *of
# the gradient* has lost something. This happens in practice whenever a backward step
# leaves the library (a call into C, a cached array). If your rule will be
# differentiated twice, check it twice.

# %%
assert verdicts["right"] == "passes"
assert all(v != "passes" for name, v in verdicts.items() if name != "right")
assert verdicts["a constant in the backward step"].startswith("order 2")


# %% [markdown]
# ## An op with a loop inside: Kepler's equation
#
# Where is a planet, some time after it was closest to the sun? The answer, the angle E,
# solves E − e·sin E = M, where M grows evenly with time and e says how long-drawn the
# orbit is. There is no formula for E; one runs Newton's method.
#
# One *could* differentiate through the iterations. But the solution is determined by
# the equation, not by the way in which it was found. Let M change by dM: then dE −
# e·cos E·dE = dM, and from that follows the backward step. The loop runs on plain
# numbers and keeps nothing.


# %%
@lantern.custom_rule
def anomaly(M, e, /):
    """The solution E of E - e sin E = M. M: any shape; e: a number below 1."""
    E = M + e * np.sin(M)
    for _ in range(20):
        E = E - (E - e * np.sin(E) - M) / (1 - e * np.cos(E))
    E_bar = yield E
    share = E_bar / (1 - e * np.cos(E))
    yield share
    yield np.sum(share * np.sin(E))


check_grads(anomaly, (np.array([0.3, 1.0, 2.5]), 0.5))

# %%
M = np.linspace(0, 2 * np.pi, 200)
figure, (left, right_) = plt.subplots(1, 2)
for e, color in [(0.0, GREY), (0.5, BLUE), (0.85, ORANGE)]:
    left.plot(M, anomaly(M, e), color=color, lw=2, label=f"e = {e}")
    right_.plot(M, lantern.elementwise_grad(anomaly)(M, e), color=color, lw=2)
left.set(xlabel="time M", title="The angle E")
left.legend(frameon=False)
right_.set(xlabel="time M", title="Its speed dE/dM, by the rule")
for axes in (left, right_):
    axes.set_xticks([0, np.pi, 2 * np.pi], ["0", "half an orbit", "a whole one"])
plt.show()

# %% [markdown]
# A long-drawn orbit is fast near the sun and slow elsewhere; and the rule that says so
# is two lines. (`lantern.root` and `lantern.fixed_point` do this for any equation.)
#
# **A caution.** `np.sin(E)` in the backward step is differentiated again in a second
# derivative, but E itself came out of a loop on plain numbers. Is the second derivative
# right? Ask.

# %%
try:
    check_grads(anomaly, (np.array([0.3, 1.0, 2.5]), 0.5), order=2)
    print("order 2 is right, too")
except lantern.testing.GradientError as error:
    print(error)

# %% [markdown]
# It is. Inside of an outer derivative the operands are that derivative's values, so the
# loop itself is differentiated there. Newton's method happens to converge together with
# its derivative. "Happens to" is why one checks.

# %% [markdown]
# ## A rule that lies on purpose
#
# Rounding has the derivative zero almost everywhere: true and useless. Whoever trains a
# network whose values must be whole numbers in the end uses the *straight-through* rule
# instead: there, round; back, pretend that nothing was rounded.


# %%
@lantern.custom_rule
def rounded(x, /):
    """x rounded to a whole number; its cotangent passes straight through."""
    z_bar = yield np.round(x)
    yield z_bar


target = np.sin(np.linspace(0, 2 * np.pi, 60)) * 2.4


def distance(x):
    """How far the smoothed whole numbers are from the target."""
    kernel = np.ones(7) / 7
    return ((np.convolve(rounded(x), kernel, mode="same") - target) ** 2).mean()


x = np.zeros(60)
for _ in range(400):
    x = x - 2.0 * lantern.grad(distance)(x)
print(f"from {distance(np.zeros(60)):.2f} to {distance(x):.3f}")

# %%
figure, axes = plt.subplots()
axes.plot(target, color=GREY, lw=5, alpha=0.4, label="target")
axes.plot(np.round(x), color=BLUE, drawstyle="steps-mid", lw=1, label="whole numbers")
smooth = np.convolve(np.round(x), np.ones(7) / 7, mode="same")
axes.plot(smooth, color=ORANGE, lw=2, label="their moving average")
axes.legend(frameon=False, loc="upper right")
plt.show()
# %% [markdown]
# `check_grads` rejects this rule, as it should: it is not the derivative of what it
# computes. A rule may lie, but say so in its docstring.

# %%
try:
    check_grads(rounded, (np.array([0.2, 1.7]),), modes=("rev",))
    raise AssertionError("the checker has believed a lie")
except lantern.testing.GradientError as error:
    print(error)

# %% [markdown]
# ## `custom_rule` or `lantern.op`?
#
# `custom_rule` looks at everything that you hand back (number, shapes, structure) and
# takes dicts and lists as operands. The library's own operations use the decorators of
# `lantern.op`, which check nothing and cost a tenth: `elementwise`, `linear`,
# `bilinear` and `op`. Their names also tell forward mode how the rule may be read.

# %%
from lantern.op import elementwise


@elementwise
def cube(x, /):
    """The cube of x."""
    z_bar = yield x * x * x
    yield z_bar * 3 * x * x


assert lantern.grad(cube)(2.0) == 12.0
assert lantern.jvp(cube, (2.0,), (1.0,)) == (8.0, 12.0)

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** *Cube root.* Write `cbrt` with `np.cbrt` forward and a rule backward.
# Check it to the second order, at negative numbers too. What does it say at 0, and
# should it?


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
@elementwise
def cbrt(x, /):
    """The cube root of x."""
    z = np.cbrt(x)
    z_bar = yield z
    yield z_bar / (3 * z * z)  # z³ = x, so 3 z² dz = dx: no power of a negative number


check_grads(cbrt, (np.array([-8.0, -0.5, 27.0]),), order=2)
with np.errstate(divide="ignore"):
    # The graph is upright at 0. Infinity is the truth; a large number would not be.
    assert lantern.grad(lambda x: cbrt(x).sum())(np.zeros(1)) == np.inf


# %% [markdown]
# **Exercise 2.** *Two operands.* `dot3(x, y)` is the sum of x³·y over the elements of
# two arrays. Write it as *one* op, with one backward step each, and check it.


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
@lantern.custom_rule
def dot3(x, y, /):
    """The sum of x³ y."""
    z_bar = yield (x**3 * y).sum()
    yield z_bar * 3 * x**2 * y
    yield z_bar * x**3


check_grads(dot3, (np.array([1.0, -2.0]), np.array([0.5, 3.0])), order=2)
assert lantern.grad(dot3, argnums=1)(np.array([1.0, -2.0]), np.ones(2))[1] == -8.0


# %% [markdown]
# **Exercise 3.** *Find the bug.* The author of this rule tested it at one point and was
# content. What is wrong, and which check finds it?
#
# ```python
# @lantern.custom_rule
# def norm(x, /):
#     z = np.sqrt((x * x).sum())
#     z_bar = yield z
#     yield z_bar * x
# ```


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
@lantern.custom_rule
def norm(x, /):
    """The length of x; the rule is wrong."""
    z = np.sqrt((x * x).sum())
    z_bar = yield z
    yield z_bar * x


# The derivative is x/|x|. At the point (0.6, 0.8), of length 1, nothing is to be seen,
# and not at the second order either: there, the gradient *as it was found* is compared
# with its own differences.
check_grads(norm, (np.array([0.6, 0.8]),), order=2)
try:
    check_grads(norm, (np.array([3.0, 4.0]),))
    found = None
except lantern.testing.GradientError as error:
    found = error
print(found)
assert found is not None
# Check at points without special values.

# %% [markdown]
# ## What to remember
#
# - An op is one generator; what is needed on the way back is simply a local variable.
# - One rule serves reverse mode, forward mode and every higher order, if its backward
#   step is made of differentiable operations.
# - Check at points without special values; check twice what will be differentiated
#   twice.
# - Next: [11 Higher derivatives](11_higher_derivatives.ipynb).
