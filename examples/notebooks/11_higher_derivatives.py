# %% [markdown]
# # 11 Higher derivatives
#
# **A derivative is a function. What can you do when it can be differentiated again?**
#
# Three things:
#
# - find a minimum in seven steps;
# - do the same with 10,000 unknowns;
# - work out how a machine moves from its energies alone.

# %%
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
# ## Derivatives of derivatives
#
# `grad(f)` takes the same arguments as f. So can `grad` be applied to it? Yes: as often
# as you like.

# %%
f = lambda x: np.sin(x)
first = lantern.grad(f)
second = lantern.grad(first)
third = lantern.grad(second)
print(f"{f(1.0):.6f} {first(1.0):.6f} {second(1.0):.6f} {third(1.0):.6f}")


# %% [markdown]
# ## Newton's method
#
# Gradient descent knows the slope. It does not know how soon the slope will change, so
# its steps are small. Can it be told?

# %% [markdown]
# The *Hessian* H is the matrix of second derivatives. With the gradient g it describes
# f nearby: a step s leads to about f(x) + g·s + ½ s·H s. That is smallest where H s =
# −g. Newton's method steps there.

# %% [markdown]
# We try it on Rosenbrock's function, a curved valley. Its minimum is at (1, 1).


# %%
def valley(x):
    """Rosenbrock's function."""
    return 100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2


gradient, hessian = lantern.grad(valley), lantern.hessian(valley)
start = np.array([-1.2, 1.0])
print("gradient", gradient(start))
print("Hessian", *hessian(start), sep="\n")

# %%
newton = [start]
while np.linalg.norm(gradient(newton[-1])) > 1e-10:
    x = newton[-1]
    newton.append(x - np.linalg.solve(hessian(x), gradient(x)))

descent = [start]
for _ in range(2000):
    descent.append(descent[-1] - 0.0015 * gradient(descent[-1]))

newton, descent = np.array(newton), np.array(descent)
print(f"Newton: {len(newton) - 1} steps to {newton[-1]}")
print(f"descent: {len(descent) - 1} steps to {descent[-1].round(3)}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3.2))
u, v = np.meshgrid(np.linspace(-1.6, 1.6, 200), np.linspace(-3.6, 2.2, 200))
levels = np.logspace(-1, 3.5, 12)
left.contour(
    u, v, valley(np.array([u, v])), levels=levels, colors="0.8", linewidths=0.8
)
left.plot(*descent.T, color=ORANGE, lw=2, label="gradient descent")
left.plot(*newton.T, "o-", color=BLUE, ms=4, lw=1, label="Newton")
left.plot(1, 1, "*", color="black", ms=11)
left.set_title("The way to the minimum (★)")
left.legend(loc="lower left", edgecolor="none", framealpha=0.9)
for path, color in [(descent, ORANGE), (newton, BLUE)]:
    right.loglog(
        range(1, len(path) + 1), [valley(x) + 1e-32 for x in path], color=color
    )
right.set(xlabel="step", title="Value of the function")
plt.show()

# %% [markdown]
# The first step goes to the bottom of the valley. The second jumps *uphill*, across it.
# Five steps later it is done, to the last digit.

# %% [markdown]
# ## The Hessian without the Hessian
#
# With n unknowns H has n² entries. For n = 10,000 that is 800 MB. Do we need them all?

# %% [markdown]
# We need only products: H times a vector v. And that is the derivative of the gradient
# in the direction v:
#
# > H v = d/dt ∇f(x + t v) at t = 0
#
# Forward mode gives the direction, reverse mode the gradient. Together they cost three
# to six gradients, whatever n is.


# %%
def hvp(f, x, v):
    """The Hessian of f at x, times v."""
    return lantern.jvp(lantern.grad(f), (x,), (v,))[1]


v = np.array([1.0, -1.0])
assert np.allclose(hvp(valley, start, v), hessian(start) @ v)
assert np.allclose(lantern.hvp(valley, start, v), hessian(start) @ v)


# %% [markdown]
# In the library this line is called `lantern.hvp`.

# %% [markdown]
# Now a problem with 10,000 unknowns. A soap film hangs in a frame. Its height is
# unknown at 100 × 100 points. What shape has the smallest area?

# %%
n = 100
side = np.linspace(0, 1, n + 2)
frame = np.zeros((n + 2, n + 2))
frame[0], frame[-1] = 0.4 * np.sin(np.pi * side), 0.4 * np.sin(np.pi * side)
frame[:, 0] = frame[:, -1] = -0.4 * np.sin(2 * np.pi * side) ** 2


def area(inside):
    """The area of the film. inside: (n, n) heights."""
    height = (frame + np.pad(inside, 1)) * (n + 1)
    across = height[1:, :-1] - height[:-1, :-1]
    along = height[:-1, 1:] - height[:-1, :-1]
    return np.sqrt(1.0 + across**2 + along**2).mean()


flat = np.zeros((n, n))
print(f"unknowns: {flat.size:,}; area of the flat start {area(flat):.4f}")

# %% [markdown]
# How do you solve H s = −g when you can only multiply by H? The method of *conjugate
# gradients* needs nothing else.


# %%
def conjugate_gradients(product, b, steps):
    """An s with product(s) close to b; product is linear, symmetric, positive."""
    s, r = np.zeros_like(b), b
    d, rr = r, (r * r).sum()
    for _ in range(steps):
        q = product(d)
        a = rr / (d * q).sum()
        s, r = s + a * d, r - a * q
        rr, old = (r * r).sum(), rr
        d = r + rr / old * d
    return s


# %% [markdown]
# Far from the minimum a whole step may be too long. Then we halve it until the area
# falls.

# %% tags=["varies"]
film = flat
for _ in range(10):
    value, g = lantern.value_and_grad(area)(film)
    product = lambda v, film=film: lantern.hvp(area, film, v)
    step, share = conjugate_gradients(product, -g, steps=60), 1.0
    while area(film + share * step) > value:
        share /= 2
    film = film + share * step
    print(f"area {value:.6f}   gradient {np.linalg.norm(g):.0e}   step {share}")

# %%
whole = frame.copy()
whole[1:-1, 1:-1] = film
figure = plt.figure(figsize=(5, 3.6))
axes = figure.add_subplot(projection="3d")
u, v = np.meshgrid(side, side, indexing="ij")
axes.plot_surface(u, v, whole, cmap="cividis", rcount=50, ccount=50, lw=0)
axes.set(zlim=(-0.5, 0.5), zticks=[], xticks=[], yticks=[], box_aspect=(2, 2, 1))
axes.set_title("The smallest film in this frame", loc="center")
plt.show()

# %% [markdown]
# ## A pendulum from its energies
#
# How does a mechanical system move? Lagrange's answer needs no forces. Let q be the
# coordinates and q̇ the velocities. Write down L = kinetic energy − potential energy.
# Then
#
# > d/dt (∂L/∂q̇) = ∂L/∂q

# %% [markdown]
# The left side is a derivative of a derivative. By the chain rule it becomes
#
# > (∂²L/∂q̇²) q̈ + (∂²L/∂q ∂q̇) q̇ = ∂L/∂q
#
# These are linear equations for the acceleration q̈. Four lines solve them, for *every*
# system. Here the system is two pendulums, one hanging from the other.


# %%
def acceleration(L, q, v):
    """What Lagrange's equation says about a system: q'' of q and v = q'."""
    momentum = lambda q, v: lantern.grad(L, argnums=1)(q, v)
    mass = lantern.jacobian(momentum, argnums=1)(q, v)
    drift = lantern.jvp(lambda q: momentum(q, v), (q,), (v,))[1]
    return np.linalg.solve(mass, lantern.grad(L)(q, v) - drift)


def double_pendulum(q, v):
    """The Lagrangian of two equal pendulums, one below the other; q: two angles."""
    c, s = np.cos(q), np.sin(q)
    vx, vy = c * v, s * v  # of each rod's end, relative to its beginning
    kinetic = 0.5 * (vx[0] ** 2 + vy[0] ** 2)
    kinetic = kinetic + 0.5 * ((vx[0] + vx[1]) ** 2 + (vy[0] + vy[1]) ** 2)
    return kinetic + 9.81 * (2 * c[0] + c[1])


q, v = np.array([2.0, 2.5]), np.zeros(2)
acceleration(double_pendulum, q, v)


# %% [markdown]
# Is it right? For a *single* pendulum of length 1 the textbook says q̈ = −g sin q.


# %%
def pendulum(q, v):
    """The Lagrangian of one pendulum."""
    return (0.5 * v**2 + 9.81 * np.cos(q)).sum()


one = np.array([0.7])
assert np.allclose(acceleration(pendulum, one, np.array([0.3])), -9.81 * np.sin(one))


# %% [markdown]
# Now let it swing. The Runge-Kutta method takes steps in time.


# %%
def swing(L, q, v, seconds, dt=0.02):
    """The coordinates and velocities in every step."""

    def slope(state):
        return np.stack([state[1], acceleration(L, state[0], state[1])])

    state = np.stack([q, v])
    states = [state]
    for _ in range(round(seconds / dt)):
        a = slope(state)
        b = slope(state + 0.5 * dt * a)
        c = slope(state + 0.5 * dt * b)
        d = slope(state + dt * c)
        state = state + dt / 6 * (a + 2 * b + 2 * c + d)
        states.append(state)
    return states


states = np.array(swing(double_pendulum, q, v, seconds=5.0))
angles = states[:, 0]
x = np.cumsum(np.sin(angles), axis=1)
y = -np.cumsum(np.cos(angles), axis=1)

# %%
figure, (left, right) = plt.subplots(1, 2, width_ratios=(1, 1.4), figsize=(7.5, 3.2))
times = np.linspace(0, 5, len(states))
left.scatter(x[:, 1], y[:, 1], c=times, cmap="cividis", s=3)
for i in (0, 20, 40):
    left.plot(
        [0, x[i, 0], x[i, 1]], [0, y[i, 0], y[i, 1]], "o-", color=GREY, lw=1.5, ms=4
    )
    left.text(x[i, 1] + 0.12, y[i, 1] - 0.1, f"{times[i]:.1f} s", fontsize=8, va="top")
left.plot(0, 0, "ks", ms=6)
left.margins(0.1)
left.set(aspect="equal", xticks=[], yticks=[], title="Where the lower end goes")
right.plot(times, angles[:, 0], color=BLUE, lw=2, label="upper angle")
right.plot(times, angles[:, 1], color=ORANGE, lw=2, label="lower angle")
right.set(xlabel="seconds")
right.legend(frameon=False)
plt.show()


# %% [markdown]
# Is the whole simulation right? The energy must stay the same. It is v·∂L/∂q̇ − L: one
# more derivative.


# %%
def energy(L, q, v):
    """What is conserved."""
    return v @ lantern.grad(L, argnums=1)(q, v) - L(q, v)


energies = np.array([energy(double_pendulum, q, v) for q, v in states[::10]])
print(
    f"energy {energies[0]:.3f}, changed by at most {abs(energies - energies[0]).max():.1e}"
)

# %% [markdown]
# ## A derivative through all that
#
# The double pendulum is chaotic: a small difference at the start grows. How fast? That
# is the derivative of the *whole simulation* with respect to the first angle.


# %%
def lower_angle(first_angle):
    """The lower angle in every step, as a function of the upper one at the start."""
    q = np.array([1.0, 0.0]) * first_angle + np.array([0.0, 2.5])
    states = swing(double_pendulum, q, v, seconds=3.0, dt=0.05)
    return np.stack([state[0][1] for state in states])


path, growth = lantern.jvp(lower_angle, (2.0,), (1.0,))
eps = 1e-6
seen = (lower_angle(2.0 + eps) - lower_angle(2.0 - eps)) / (2 * eps)

# %%
figure, axes = plt.subplots(figsize=(5.5, 2.8))
times = np.linspace(0, 3, len(path))
axes.semilogy(times, abs(seen), color=GREY, lw=6, alpha=0.4, label="two simulations")
axes.semilogy(times, abs(growth), color=BLUE, lw=1.5, label="the derivative")
axes.set(xlabel="seconds", ylim=(1e-3, None))
axes.set_title("How many times larger a small error has become")
axes.legend(frameon=False)
plt.show()

# %%
assert np.allclose(growth, seen, rtol=1e-4, atol=1e-5)

# %% [markdown]
# ## What it costs
#
# | | costs about | good for |
# |---|---|---|
# | `grad(f)` | a few times f | all first derivatives of one number |
# | `hvp` | three to six times `grad` | H v |
# | `hessian(f)` | n times `grad`, all at once | n up to some hundreds |
# | `grad` nested k times | grows like 2ᵏ or faster | k up to 3 or so |
# | `taylor(f, x, k)` | grows like k² | one variable, high order |

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** *A bead on a spring.* A mass of 1 hangs on a spring of natural length
# 1 and stiffness 40. It may also swing. Write its Lagrangian L in the coordinates (r,
# φ), length and angle. Check that the energy stays the same for 3 seconds.
#
# **Exercise 2.** *Newton at the wrong place.* Start Newton's method for f(x, y) = x⁴ −
# 2x² + y² at (0.1, 1). Where does it end? What do the eigenvalues of the Hessian say
# about that point?
#
# **Exercise 3.** *The Laplacian* is the sum of the second derivatives with respect to
# each coordinate. Compute it for f(x) = exp(−|x|²/2) in 5 dimensions, without H. Check
# it with the formula (|x|² − 5) f(x).


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
def spring(q, v):
    """r̈ and φ̈ follow from: the speed along r is v[0], across it is r · v[1]."""
    kinetic = 0.5 * (v[0] ** 2 + (q[0] * v[1]) ** 2)
    potential = 0.5 * 40.0 * (q[0] - 1.0) ** 2 - 9.81 * q[0] * np.cos(q[1])
    return kinetic - potential


track = swing(spring, np.array([1.2, 0.8]), np.zeros(2), seconds=3.0, dt=0.03)
found = [energy(spring, q, v) for q, v in track]
assert np.ptp(found) < 1e-3


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
def saddle(p):
    """A function with two minima, at x = ±1, and a saddle between them."""
    return p[0] ** 4 - 2 * p[0] ** 2 + p[1] ** 2


p = np.array([0.1, 1.0])
for _ in range(10):
    p = p - np.linalg.solve(lantern.hessian(saddle)(p), lantern.grad(saddle)(p))
eigenvalues = np.linalg.eigvalsh(lantern.hessian(saddle)(p))
print(p.round(6), eigenvalues)
# Newton looks for a point where the gradient vanishes, of whatever kind: here the saddle.
assert np.allclose(p, 0.0)
assert eigenvalues[0] < 0 < eigenvalues[1]


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
def laplacian(f, x):
    """The sum of the second derivatives: e · H e for each unit vector e."""
    return sum(lantern.hvp(f, x, e) @ e for e in np.eye(len(x)))


bell = lambda x: np.exp(-0.5 * (x * x).sum())
x = np.array([0.3, -1.0, 0.5, 0.0, 2.0])
assert np.isclose(laplacian(bell, x), (x @ x - 5) * bell(x))
assert np.isclose(laplacian(bell, x), lantern.diag_hessian(bell)(x).sum())

# %% [markdown]
# ## What to remember
#
# - A derivative is a function, and can be differentiated again.
# - H times a vector is a forward derivative of a gradient. The matrix is rarely needed.
# - Write down the energies; derivatives give the motion.
# - Next: [12 Checkpointing](12_checkpointing.ipynb).
