# %% [markdown]
# # 15 Effects
#
# **A program calls `sample(...)`. Who decides what that means?**
#
# In chapter 02 an operation brought its own handler: `shift(handler)`. Now the handler
# is left open. The program only *asks*. Whoever runs it decides what the answer is, and
# also gets the rest of the program. Such a call is an *effect*.

# %% [markdown]
# What is it good for? One model can be run by many handlers: to draw from it, to score
# data, to learn from data.

# %%
import matplotlib.pyplot as plt
import numpy as np

import lantern
from lantern import stop_gradient as plain
from lantern.effects import Effect, handle

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
rng = np.random.default_rng(0)


# %% [markdown]
# ## A model that only asks
#
# A line through noisy points. The model says what is unknown (`sample`) and what was
# seen (`observe`). It does not say how to draw a number, or what to do with the data.


# %%
class Normal:
    """A normal distribution."""

    def __init__(self, mean, scale):
        self.mean, self.scale = mean, scale

    def log_density(self, x):
        z = (x - self.mean) / self.scale
        return -0.5 * z * z - np.log(self.scale) - 0.5 * np.log(2 * np.pi)


sample, observe = Effect("sample"), Effect("observe")
xs = np.array([-1.5, -0.8, 0.1, 0.4, 1.3])
ys = np.array([-1.0, -0.2, 0.9, 0.7, 2.1])


def model():
    """A line a + b x, seen with an error of 0.4."""
    a = sample("a", Normal(0.0, 1.0))
    b = sample("b", Normal(0.0, 1.0))
    observe(Normal(a + b * xs, 0.4), ys)
    return a, b


# %% [markdown]
# What happens if we just run it? It stops at the first question, for nobody is there to
# answer.

# %%
try:
    model()
except lantern.errors.LanternError as error:
    print(error)

# %% [markdown]
# A handler may be a plain function: what it returns is the answer. Here are two. One
# prints what it is asked. One draws lines.


# %%
def listen(name, distribution):
    print(f"asked for {name}: normal, mean {distribution.mean}")
    return distribution.mean


def draw(name, distribution):
    return distribution.mean + distribution.scale * rng.normal()


ignore = lambda distribution, seen: None
handle(model, {sample: listen, observe: ignore})
lines = [handle(model, {sample: draw, observe: ignore}) for _ in range(40)]

# %% [markdown]
# A third handler answers with given values. How probable are these values and the data
# together? It adds up the log densities.


# %%
def log_joint(values):
    """log p(values and data). values: a pair (a, b) of numbers or arrays."""
    given, terms = dict(zip("ab", values, strict=True)), []

    def answer(name, distribution):
        terms.append(distribution.log_density(given[name]))
        return given[name]

    def score(distribution, seen):
        terms.append(distribution.log_density(seen).sum())

    handle(model, {sample: answer, observe: score})
    return sum(terms)


print(f"{log_joint((0.5, 1.0)):.3f}  {log_joint((0.5, -1.0)):.3f}")

# %% [markdown]
# `log_joint` is an ordinary function, so it has a gradient. What for? The *posterior*
# is how probable each line is, now that we have seen the data. *Hamiltonian Monte
# Carlo* draws lines from it. It lets a point roll over the landscape −log p, pushed at
# random. Where it stops is a draw.

# %%
slope = lantern.grad(lambda values: log_joint(values))


def roll(values, steps=8, dt=0.15):
    """One draw of Hamiltonian Monte Carlo."""
    start, push = values, rng.normal(size=2)
    p = push + 0.5 * dt * np.array(slope(tuple(values)))
    for i in range(steps):
        values = values + dt * p
        p = p + (dt if i < steps - 1 else 0.5 * dt) * np.array(slope(tuple(values)))
    gain = log_joint(tuple(values)) - log_joint(tuple(start))
    accept = np.log(rng.random()) < gain - 0.5 * (p @ p - push @ push)
    return values if accept else start


point, draws = np.zeros(2), []
for _ in range(300):
    point = roll(point)
    draws.append(point)
draws = np.array(draws[20:])

# %% [markdown]
# Is it right? For this model the posterior is known, so we can compare.

# %%
X = np.stack([np.ones_like(xs), xs], axis=1)
precision = X.T @ X / 0.4**2 + np.eye(2)
covariance = np.linalg.inv(precision)
mean = covariance @ X.T @ ys / 0.4**2

figure, (left, right) = plt.subplots(1, 2)
angle = np.linspace(0, 2 * np.pi, 100)
circle = np.linalg.cholesky(covariance) @ np.array([np.cos(angle), np.sin(angle)])
for size in (1, 2):
    left.plot(*(mean[:, None] + size * circle), color=GREY, lw=1)
left.plot(*draws.T, ".", color=BLUE, ms=3, alpha=0.6)
left.set(xlabel="a", ylabel="b", title="Draws, and the exact posterior")
ends = np.array([-2.0, 2.0])
for a, b in lines:
    right.plot(ends, a + b * ends, color=GREY, lw=0.6, alpha=0.4)
for a, b in draws[::8]:
    right.plot(ends, a + b * ends, color=BLUE, lw=0.6, alpha=0.6)
right.plot(xs, ys, "o", color=ORANGE, zorder=3)
right.set(ylim=(-4, 4), title="Lines: before and after the data")
plt.show()

# %%
assert np.allclose(draws.mean(axis=0), mean, atol=0.1)
assert np.allclose(np.cov(draws.T), covariance, atol=0.04)

# %% [markdown]
# ## A handler that sees what came of its answer
#
# A handler may also be a generator, like a rule. It yields its answer, and the rest of
# the program runs. Then it gets **the result of that rest**. So a handler can decide
# how a derivative is estimated.

# %% [markdown]
# The task: draw z from Normal(m, 1). How does the mean of z² change with m? (By 2m.)
# There are two ways to estimate it from draws.
#
# - *Through the draw*: z = m + noise moves with m. The derivative passes through it.
# - *By the score*: the draw is fixed. But with a larger m, large draws are more
#   probable. So use loss · d log p(draw)/dm.


# %%
def square(m):
    """The program, the same for both."""
    return sample("z", Normal(m, 1.0)) ** 2


def through_the_draw(name, distribution):
    loss = yield distribution.mean + distribution.scale * rng.normal()
    return loss


def by_the_score(name, distribution):
    drawn = plain(distribution.mean) + plain(distribution.scale) * rng.normal()
    loss = yield drawn
    log_p = distribution.log_density(drawn)
    return loss + plain(loss) * (log_p - plain(log_p))


def estimates(handler, m=1.5, count=2000):
    """Many estimates of the derivative, one draw for each."""
    loss = lambda m: handle(lambda: square(m), {sample: handler})
    return np.array([lantern.grad(loss)(m) for _ in range(count)])


figure, axes = plt.subplots(figsize=(5.5, 2.6))
bins = np.linspace(-12, 30, 85)
for handler, color, label in [
    (by_the_score, ORANGE, "by the score"),
    (through_the_draw, BLUE, "through the draw"),
]:
    found = estimates(handler)
    axes.hist(
        found, bins, color=color, alpha=0.7, label=f"{label}: mean {found.mean():.1f}"
    )
    assert abs(found.mean() - 3.0) < 0.6
axes.axvline(3.0, color="black", lw=1)
axes.set(yticks=[], title="2,000 estimates of the derivative (truth: 3)")
axes.legend(frameon=False)
plt.show()

# %% [markdown]
# Both are right on average. The score is noisier, but it also works where a draw cannot
# move: for counts, choices and branches. And the program is the same for both.

# %% [markdown]
# ## A program that waits
#
# What if a handler has no answer yet? `lantern.pause(request)` stops a program where it
# is. A `lantern.Program` holds it. Here a training step waits for data, in the middle
# of its forward pass.


# %%
def step_loss(w):
    """The loss over three batches, each of which has to come from somewhere."""
    total = 0.0
    for batch in range(3):
        x, y = lantern.pause(f"batch {batch}")
        total = total + ((x @ w - y) ** 2).mean()
    return total


truth = np.array([1.0, -2.0])


def fetch():
    """A batch of data."""
    x = rng.normal(size=(10, 2))
    return x, x @ truth


program = lantern.Program(lantern.grad(step_loss), np.zeros(2))
print(program)
program.resume(fetch())
print(program)

# %% [markdown]
# What waits there? The loop, and *everything it has done so far*: the rules of the
# first batch, each at its `yield`. They go back when the last batch has come. Give it
# the other two.

# %%
program.resume(fetch())
program.resume(fetch())
print("done:", program.done, " gradient:", program.result.round(2))

# %% [markdown]
# How many programs can wait at once? Any number. Four sites run the same step, and data
# arrive in random order. Orange: the last batch is there, and the backward pass runs.

# %%
sites = ["Oslo", "Lima", "Rome", "Pune"]
programs = {
    site: lantern.Program(lantern.grad(step_loss), np.zeros(2)) for site in sites
}
events = []
while waiting := [site for site, p in programs.items() if not p.done]:
    site = waiting[rng.integers(len(waiting))]
    programs[site].resume(fetch())
    events.append((site, programs[site].done))

figure, axes = plt.subplots(figsize=(7.5, 2))
for row, site in enumerate(sites):
    times = [i for i, (name, _) in enumerate(events) if name == site]
    axes.plot([-0.5, times[-1]], [row, row], color=GREY, lw=1, ls=":")
    axes.plot(times[:-1], [row, row], "o", color=BLUE, ms=9)
    axes.plot(times[-1], row, "D", color=ORANGE, ms=9)
axes.set_yticks(range(len(sites)), sites)
axes.set(
    xticks=[],
    ylim=(-0.5, 3.5),
    xlabel="time: a batch arrives (● it goes on, ◆ it ends)",
)
axes.spines[["left", "bottom"]].set_visible(False)
plt.show()

# %%
mean_gradient = sum(program.result for program in programs.values()) / len(programs)
print("a step of gradient descent goes to", (-0.1 * mean_gradient).round(2))
print("on the way to", truth)

# %% [markdown]
# Elsewhere `step_loss` would have to become a generator, a coroutine or a thread, and
# so would its callers. Here it stays a function.

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** *The most probable line.* Climb `log_joint` by its gradient. For this
# model you must arrive at the mean of the posterior.
#
# **Exercise 2.** *Leaving.* A generator that returns without a yield ends the program
# with its answer. Use that to end `model` as soon as it asks for "b", with the answer
# "no b, please".
#
# **Exercise 3.** *A mean of futures.* Run `square` for each of the 5 points of
# `np.polynomial.hermite_e.hermegauss(5)`, with a handler that takes the point as its
# noise. Add the results up with the weights. That is the mean of z², exactly. Is its
# derivative exact, too?

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
values = np.zeros(2)
for _ in range(200):
    values = values + 0.02 * np.array(slope(tuple(values)))
assert np.allclose(values, mean, atol=1e-4)


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
def refuse_b(name, distribution):
    if name == "b":
        return "no b, please"
    rest = yield distribution.mean
    return rest


assert handle(model, {sample: refuse_b, observe: ignore}) == "no b, please"


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
def expectation(m):
    """E[z²], by a quadrature rule: a finite number of futures, weighed."""
    noises, weights = np.polynomial.hermite_e.hermegauss(5)
    total = 0.0
    for noise, weight in zip(noises, weights / weights.sum(), strict=True):
        fixed = lambda name, d, noise=noise: d.mean + d.scale * noise
        total = total + weight * handle(lambda: square(m), {sample: fixed})
    return total


value, derivative = lantern.value_and_grad(expectation)(1.5)
assert np.isclose(value, 1.5**2 + 1)
assert np.isclose(derivative, 3.0)

# %% [markdown]
# ## What to remember
#
# - An effect is a call whose meaning is left open. A handler decides it, from outside.
# - A handler may answer, look at what came of its answer, end the program, or let it
#   wait.
# - One model, many handlers. None of them edits the model.
# - Next: [16 How the others do it](16_how_the_others_do_it.ipynb).
