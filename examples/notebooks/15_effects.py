# %% [markdown]
# # 15 Effects
#
# **A program calls `sample(...)`. Who decides what that means?**
#
# In chapter 02 an operation brought its own handler along: `shift(handler)`. Now we
# leave the handler open. The program only *asks*; whoever runs it decides what an
# answer is, and gets the rest of the program to do with it as they please. Such a call
# is an *effect*.
#
# The classic use are probabilistic programs: one model, and one handler each for
# drawing from it, for its density, for inference. At the end a program asks for data
# that is not there yet, and waits.

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
# A straight line through noisy points. The model says what is unknown (`sample`) and
# what was seen (`observe`). It does not say how anything is drawn, nor from which
# random numbers, nor what to do with the data.


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
# Run as it stands, it stops at the first question: nobody is there to answer.

# %%
try:
    model()
except lantern.errors.LanternError as error:
    print(error)

# %% [markdown]
# A handler may be a plain function. What it returns, the call returns. Here are two
# people who run the same model: one wants to know what it would ask, one wants lines
# drawn from it.


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
# A third one asks: *if* a and b had these values, how probable would all of it be? The
# handler answers with the values it was given, and adds up log densities.


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
# `log_joint` is an ordinary function, so it has a gradient. *Hamiltonian Monte Carlo*
# needs just that: it lets a point roll over the landscape −log p, pushed at random, and
# the places where it comes to rest are draws from the posterior.

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
# The model has a known posterior, as every line with normal errors has. So we can look
# whether this is right.

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
# A handler may be a generator, as a rule is: it yields the answer, the rest of the
# program runs, and it gets back **what the rest came to**. So a handler can decide how
# a gradient is estimated, and that is a question with two well-known answers.
#
# The task: E[z²] for z drawn from Normal(m, 1). How does it change with m? (The truth
# is 2m.)
#
# - *Through the draw*: z = m + noise. The draw moves with m; let the derivative pass.
# - *By the score*: the draw is a fixed number. But were m larger, large draws would be
#   more probable. So weigh: loss · d log p(draw)/dm.


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
# Both are right on average; the score is much noisier, but it also works where the draw
# cannot move: for counts, choices and branches. The program did not change by a letter.

# %% [markdown]
# ## A program that waits
#
# An effect whose handler says "not yet". `lantern.pause(request)` stops a program where
# it is, however deep inside, and `lantern.Program` is what you then hold: a training
# step, say, in the middle of its forward pass.


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
# Note what waits there: not only our loop, but *everything it has done so far*. The
# rules of the first batch are suspended behind their `yield`, ready to go back when the
# last batch will have come. Give it the other two.

# %%
program.resume(fetch())
program.resume(fetch())
print("done:", program.done, " gradient:", program.result.round(2))

# %% [markdown]
# Any number may wait at once. Four sites run the same training step; their data arrive
# in an order that nobody has planned. Orange: the moment when the last batch is there,
# and the whole backward pass runs.

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
# How would you write this elsewhere? Where a forward pass is an ordinary call,
# `step_loss` would have to become a generator, a coroutine or a thread, and everything
# between it and the one who feeds it as well. Here it stays a function.
#
# ## Exercises
#
# **Exercise 1.** *Another question to the same model.* Write a handler that finds what
# the model considers the most probable line: climb `log_joint` by its gradient. For
# this model it must be the mean of the posterior.
#
# **Exercise 2.** *Leaving.* A handler that is a generator and returns without ever
# yielding ends the program with its answer. Use that to let `model` end as soon as it
# asks for something called "b", with the answer "no b, please".
#
# **Exercise 3.** *A mean of futures.* Write `expectation`, a handler that is given the
# value of a draw from outside; run `square` under it for the 5 points and weights of
# `np.polynomial.hermite_e.hermegauss(5)`, and so compute E[z²] and its derivative
# exactly.

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
# - An effect is a call whose meaning is left open; a handler closes it, from outside.
# - A handler has the rest of the program in its hand: it may answer, look at what came
#   of the answer, end the program, or let it wait.
# - One model, many handlers: drawing, scoring, inference. None of them edits the model.
# - Next: [16 How the others do it](16_how_the_others_do_it.ipynb).
