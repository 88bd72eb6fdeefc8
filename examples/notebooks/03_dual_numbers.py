# %% [markdown]
# # 03 Dual numbers: forward mode
#
# **What is the simplest way to differentiate a program, and why does PyTorch not use it
# for training?**
#
# Before we go there and back again, we go only there. Forward mode is the easy one: a
# derivative that travels along with each value, in the order of the program.

# %% [markdown]
# ## A value that knows how fast it changes
#
# Think of `x` as something that moves: it is at 3, and its speed is 1. Where is `x * x`,
# and how fast does *it* move? At 9, with speed `1 * 3 + 3 * 1 = 6`: that is the product
# rule. So let a number carry its speed, and teach it to add and to multiply. The pair is
# called a *dual number*; the value is the *primal*, the speed is the *tangent*.


# %%
class Dual:
    def __init__(self, primal, tangent=0.0):
        self.primal, self.tangent = primal, tangent

    def __add__(self, that):
        that = dual(that)
        return Dual(self.primal + that.primal, self.tangent + that.tangent)

    def __mul__(self, that):
        that = dual(that)
        tangent = self.tangent * that.primal + self.primal * that.tangent
        return Dual(self.primal * that.primal, tangent)

    __radd__, __rmul__ = __add__, __mul__  # 2 + x and 2 * x

    def __repr__(self):
        return f"{self.primal:g} moving at {self.tangent:g}"


def dual(x):
    return x if isinstance(x, Dual) else Dual(x)  # a constant does not move


x = Dual(3.0, 1.0)
x * x

# %% [markdown]
# Every program that only adds and multiplies can now be differentiated. It need not know:


# %%
def f(x):
    return 2 * x + x * x * x


def derivative(f, x):
    return dual(f(Dual(x, 1.0))).tangent


f(Dual(3.0, 1.0)), derivative(f, 3.0)

# %% [markdown]
# By hand: the derivative of $2x + x^3$ is $2 + 3x^2$, at 3 that is 29. It is exact. There
# is no small step as in $(f(x + h) - f(x)) / h$, and nothing to choose.
#
# Loops and branches work by themselves, because Python runs them and we only watch the
# numbers go by:


# %%
def power(x, n):
    result = 1.0
    for _ in range(n):
        result = result * x
    return result


[derivative(lambda x, n=n: power(x, n), 2.0) for n in range(6)]

# %% [markdown]
# ## A picture: speed is slope
#
# At each point the tangent is the slope of the curve. The lines below are drawn from the
# dual numbers alone.

# %%
import matplotlib.pyplot as plt
import numpy as np


def wave(x):
    return x * x * x + -3 * x


xs = np.linspace(-2.2, 2.2, 100)
figure, axes = plt.subplots(figsize=(7, 3.6))
axes.plot(xs, wave(xs), color="#0072B2", linewidth=2)
places = {-1.7: (12, -6), -1.0: (-4, 9), 0.0: (9, 4), 1.4: (12, -10)}
for at, place in places.items():
    y = wave(Dual(at, 1.0))
    step = 0.45
    ends = [y.primal - step * y.tangent, y.primal + step * y.tangent]
    axes.plot([at - step, at + step], ends, color="#D55E00", linewidth=2)
    axes.plot(at, y.primal, "o", color="#D55E00")
    label = {"xytext": place, "textcoords": "offset points", "color": "#A84A00"}
    axes.annotate(f"slope {y.tangent:.2f}", (at, y.primal), **label)
axes.set(xlabel="x", ylabel="x³ − 3x")
axes.spines[["top", "right"]].set_visible(False)

# %% [markdown]
# ## The same in Lantern
#
# `lantern.jvp` runs a function with dual numbers of its own. You give the point and the
# direction in which to move; you get the value and its speed. The name comes from
# "Jacobian-vector product": the speed of the outputs, for one velocity of the inputs.

# %%
import lantern

lantern.jvp(f, (3.0,), (1.0,))


# %%
def distance(x, y):
    return lantern.sqrt(x * x + y * y)


print(lantern.jvp(distance, (3.0, 4.0), (1.0, 0.0)))  # x moves
print(lantern.jvp(distance, (3.0, 4.0), (0.0, 1.0)))  # y moves
print(lantern.jvp(distance, (3.0, 4.0), (3.0, 4.0)))  # straight away from the origin

# %% [markdown]
# ## What it costs, and why there is another way
#
# One run answers one question: *what happens if the input moves in this direction?* With
# two inputs we ran twice to get both slopes. Training a network with a million weights
# asks for a million slopes of **one** number, the loss. Forward mode would run the
# network a million times.
#
# Count the runs:

# %%
runs = 0


def loss(*weights):
    global runs
    runs += 1
    return sum(w * w for w in weights)


def gradient_by_forward_mode(f, *weights):
    slopes = []
    for i in range(len(weights)):
        moving = [Dual(w, float(i == j)) for j, w in enumerate(weights)]
        slopes.append(f(*moving).tangent)
    return slopes


gradient = gradient_by_forward_mode(loss, *range(100))
print(f"{len(gradient)} slopes took {runs} runs")

# %% [markdown]
# Turn the question around. Do not ask "if this input moves, how does the result move?",
# once for each input. Ask "how much does **the result** care about this value?", once for
# each value in the program, starting at the result. Then all inputs are answered in a
# single pass. But this pass begins at the end: each operation has to *wait* until the
# rest of the program has been asked. We know how to wait.
#
# | | forward mode | reverse mode |
# |---|---|---|
# | asks | how does this value move when the input moves? | how does the result move when this value moves? |
# | the answer is called | tangent | cotangent |
# | travels | with the program | against it |
# | one pass gives | the slope of all outputs, for one direction | the slope of one output, in all directions |
# | keeps | nothing | what each operation needs on the way back |
# | in Lantern | `jvp` | `grad`, `vjp` |

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** Teach `Dual` to subtract and to divide: $(a/b)' = (a'b - ab') / b^2$.
# Check it with the derivative of $1/x$.
#
# **Exercise 2.** Newton's method finds a zero of $f$ by repeating
# $x \leftarrow x - f(x)/f'(x)$. One run with a dual number gives both. Write
# `newton(f, x, steps)`, and find the cube root of 2.
#
# **Exercise 3.** Let `tangent` be a list with one speed for each input, so that one run
# gives all slopes. What does each multiplication cost then?

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 1


class Dual(Dual):
    def __sub__(self, that):
        return Dual(self.primal, self.tangent) + dual(that) * -1

    def __truediv__(self, that):
        that = dual(that)
        above = self.tangent * that.primal - self.primal * that.tangent
        return Dual(self.primal / that.primal, above / that.primal**2)


assert derivative(lambda x: dual(1.0) / x, 2.0) == -0.25
assert derivative(lambda x: (x * x - x) / x, 5.0) == 1.0

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 2


def newton(f, x, steps=8):
    for _ in range(steps):
        y = f(Dual(x, 1.0))
        x = x - y.primal / y.tangent
    return x


assert abs(newton(lambda x: x * x * x + -2, 1.0) - 2 ** (1 / 3)) < 1e-15

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 3. NumPy arrays do it: nothing in Dual has to change. One run gives all slopes,
# but each operation now works on arrays of n speeds: the n runs are inside of it.

point = [3.0, 4.0, 5.0]
moving = [Dual(x, np.eye(3)[i]) for i, x in enumerate(point)]
product = moving[0] * moving[1] * moving[2]
assert product.primal == 60.0
assert product.tangent.tolist() == [20.0, 15.0, 12.0]

# %% [markdown]
# ## What to remember
#
# - A dual number is a value and its speed; operators compute both. That is forward mode.
# - One run gives the slope along one direction. With many inputs and one output, that is
#   the wrong way round.
# - Next: [04 Reverse mode in one page](04_reverse_mode.ipynb).
