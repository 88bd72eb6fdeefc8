# %% [markdown]
# # 14 Batching by continuations
#
# **Every example is a tree of another shape. How can they be computed together?**
#
# A matrix product of 20 rows costs hardly more than one of a single row. So one wants
# to compute many examples at once. For pictures of one size that is easy. But what if
# each example is a tree, and the model is a recursive function?

# %% [markdown]
# Write the model for **one** example. Let it *stop* at each costly call. When all
# examples have stopped, make one call for all of them. Then each goes on with its own
# row. A continuation can do that: it stops in the middle and goes on later.

# %%
import re
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import lantern
from lantern import viz
from lantern.cps import reset, shift

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
# ## Stop, collect, go on
#
# First without trees and derivatives. Halving is our "costly call". How does a program
# stop there? It captures its rest with `shift`. It does not run that rest: it *returns*
# it, with its question.


# %%
class Stopped:
    """A program that waits for the answer to a question, and its rest."""

    def __init__(self, question, k):
        self.question, self.k = question, k


def ask(question):
    return shift(lambda k: Stopped(question, k))


def count_halvings(x):
    """An ordinary loop, of a length that depends on x."""
    count = 0
    while x > 1:
        x, count = ask(x), count + 1
    return count


stopped = reset(lambda: count_halvings(9.0))
print("it has stopped and asks for half of", stopped.question)
stopped = stopped.k(4.5)
print("it has gone on, and asks for half of", stopped.question)

# %% [markdown]
# The `reset` is over, but `k` is still in our hand: the loop, with its variables. So
# hold many of them, and answer all at once.


# %%
def run_together(f, examples, answer_all):
    """[f(x) for x in examples], the questions answered in groups."""
    states = [reset(lambda x=x: f(x)) for x in examples]
    while waiting := [i for i, s in enumerate(states) if isinstance(s, Stopped)]:
        questions = np.stack([states[i].question for i in waiting])
        print(f"{len(waiting)} at once: {questions}")
        for i, answer in zip(waiting, answer_all(questions), strict=True):
            states[i] = states[i].k(answer)
    return states


run_together(count_halvings, [9.0, 2.0, 30.0, 0.5], lambda questions: questions / 2)

# %% [markdown]
# Four loops of different lengths took five calls instead of ten. Nothing was padded.
# Whoever is done drops out. `lantern.batch` does the same for several functions and
# shapes.

# %% [markdown]
# ## Trees of sentiments
#
# Now the trees: 24 short sentences with their grammar. Each node has a sentiment from 0
# (very negative) to 4 (very positive). Can a model learn that "not very good" is
# negative?

# %%
here = Path.cwd()
file = next(p / "trees.txt" for p in here.parents if (p / "trees.txt").exists())
words = {}


def read(tokens):
    """A tree: (score, word) or (score, left, right)."""
    score = int(next(tokens))
    first = next(tokens)
    if first != "(":
        tree = score, words.setdefault(first.lower(), len(words))
    else:
        left = read(tokens)
        next(tokens)  # the opening bracket of the right subtree
        tree = score, left, read(tokens)
    next(tokens)  # the closing bracket
    return tree


lines = file.read_text(encoding="utf-8").splitlines()
trees = [read(iter(re.findall(r"[()]|[^\s()]+", line)[1:])) for line in lines]
spelled = list(words)


def draw(tree, value):
    """A tree, coloured: blue is negative, orange is positive."""
    below = lambda node: node[1:] if len(node) == 3 else ()
    label = lambda node: "" if len(node) == 3 else spelled[node[1]]
    return viz.tree(tree, below, label, value)


draw(trees[6], lambda node: node[0] - 2)

# %% [markdown]
# ## The model, for one tree
#
# The model is called TreeLSTM. The state of a leaf comes from its word. The state of an
# inner node comes from the two below it. That is a recursive function. We mark `leaf`
# and `join`: they are called with *one* row each, and computed for many.

# %%
SIZE = 24
rng = np.random.default_rng(0)
weights = {
    "words": rng.normal(0, 0.5, (len(words), SIZE)),
    "join": rng.normal(0, 1 / np.sqrt(2 * SIZE), (2 * SIZE, 4 * SIZE)),
    "bias": np.zeros(4 * SIZE),
    "score": rng.normal(0, 1 / np.sqrt(SIZE), (SIZE, 5)),
}


@lantern.batched
def leaf(word, *, w):
    """word: (n,) numbers of words; result: (n, 2 * SIZE), h and c side by side."""
    c = w["words"][word]
    return lantern.concat([lantern.tanh(c), c], axis=1)


@lantern.batched
def join(left, right, *, w):
    """left, right, result: (n, 2 * SIZE)."""
    h = lantern.concat([left[:, :SIZE], right[:, :SIZE]], axis=1)
    z = h @ w["join"] + w["bias"]
    new = lantern.tanh(z[:, :SIZE])
    gates = lantern.sigmoid(z[:, SIZE:])
    keep_left, keep_right, out = (gates[:, i * SIZE : (i + 1) * SIZE] for i in range(3))
    c = new + keep_left * left[:, SIZE:] + keep_right * right[:, SIZE:]
    return lantern.concat([out * lantern.tanh(c), c], axis=1)


def visit(tree, w, seen):
    """The state of a tree's root; all nodes and their states go to `seen`."""
    if len(tree) == 2:
        state = leaf(tree[1], w=w)
    else:
        left, right = visit(tree[1], w, seen), visit(tree[2], w, seen)
        state = join(left, right, w=w)
    seen.append((tree, state))
    return state


# %% [markdown]
# How is it run? Tree by tree, in a plain loop; or all together, by `lantern.batch`. The
# function is the same.


# %%
def loss(w, run, visit=visit):
    """The mean of -log p(sentiment) over all nodes of all trees."""

    def look(tree):
        seen = []
        visit(tree, w, seen)
        return seen

    pairs = [pair for seen in run(look, trees) for pair in seen]
    hidden = lantern.stack([state for _, state in pairs])[:, :SIZE]
    log_p = lantern.log_softmax(hidden @ w["score"])
    return -log_p[np.arange(len(pairs)), [tree[0] for tree, _ in pairs]].mean()


one_by_one = lambda f, examples: [f(x) for x in examples]
value, g = lantern.value_and_grad(loss)(weights, one_by_one)
value_together, g_together = lantern.value_and_grad(loss)(weights, lantern.batch)
print(f"loss {value:.6f} and {value_together:.6f}; log 5 = {np.log(5):.3f}")
assert all(np.allclose(g[name], g_together[name]) for name in g)

# %% [markdown]
# The derivative needed nothing new: the call for many rows is an operation like any
# other.

# %% [markdown]
# ## Who ran with whom

# %%
results = lantern.batch(lambda tree: visit(tree, weights, []), trees)
print(results.report())


# %% [markdown]
# 125 calls of `leaf` were run as 3. The largest took 78 at once. (The last column: so
# many calls more would be needed if each tree were padded to the size of the largest.)

# %% [markdown]
# Why so few? A call is *deferred*: the program goes on with a row that is not computed
# yet. `visit` never looks into a row, so it goes on through the whole tree. (Only the
# first call of each function is waited for.)

# %% [markdown]
# What if a program *looks* at a row? Then it has to wait. The next one halves a state
# whose first number is large. While it waits for its left subtree, the right one cannot
# begin. `lantern.fork` lets both begin.


# %%
def visit_careful(tree, w, seen, both):
    """As `visit`, but it looks at each state; `both` runs two parts."""
    if len(tree) == 2:
        state = leaf(tree[1], w=w)
    else:
        left, right = both(
            lambda: visit_careful(tree[1], w, seen, both),
            lambda: visit_careful(tree[2], w, seen, both),
        )
        state = join(left, right, w=w)
    if abs(state[0]) > 1.0:
        state = state / 2
    seen.append((tree, state))
    return state


in_turn = lambda *parts: [part() for part in parts]
looking = lambda tree, w, seen: visit_careful(tree, w, seen, in_turn)
forking = lambda tree, w, seen: visit_careful(tree, w, seen, lantern.fork)

waited = lantern.batch(lambda tree: looking(tree, weights, []), trees)
forked = lantern.batch(lambda tree: forking(tree, weights, []), trees)
print(waited.report(), forked.report(), sep="\n\n")

# %%
figure, axes = plt.subplots(1, 3, sharey=True)
for ax, found, title in [
    (axes[0], results, "never looks"),
    (axes[1], waited, "looks"),
    (axes[2], forked, "looks, forked"),
]:
    for name, color in [("leaf", BLUE), ("join", ORANGE)]:
        places = [i for i, run in enumerate(found.runs) if run.name == name]
        ax.bar(places, [found.runs[i].size for i in places], color=color, label=name)
    ax.set(title=f"{title}: {len(found.runs)} calls", xlabel="calls, in their order")
axes[0].set_ylabel("rows in the call")
axes[0].legend(frameon=False)
plt.show()

# %% [markdown]
# Forked, the leaves of all trees are one call. Then the trees grow from below, and each
# call of `join` takes what is ready. The last calls are small: only the deepest trees
# are left.

# %% [markdown]
# ## How much faster

# %% tags=["varies"]
ways = {
    "one by one": lambda: lantern.grad(loss)(weights, one_by_one),
    "batch": lambda: lantern.grad(loss)(weights, lantern.batch),
    "looks": lambda: lantern.grad(loss)(weights, lantern.batch, looking),
    "looks, forked": lambda: lantern.grad(loss)(weights, lantern.batch, forking),
}
milliseconds = {name: [] for name in ways}
for _ in range(20):  # in turns, so that other load meets all of them
    for name, way in ways.items():
        start = time.process_time()
        way()
        milliseconds[name].append(1e3 * (time.process_time() - start))

figure, axes = plt.subplots(figsize=(6, 2.1))
for name, times in milliseconds.items():
    axes.barh(name, min(times), color=BLUE, height=0.6)
    axes.text(min(times), name, f"  {min(times):.1f} ms", va="center")
axes.invert_yaxis()
axes.set(xticks=[], title="One gradient over all 24 trees, processor time")
axes.spines["bottom"].set_visible(False)
plt.show()

# %% [markdown]
# The first two bars are the same program. Looking costs time: each look is an operation
# of its own. So look only where you must.

# %% [markdown]
# ## What it learns

# %% tags=["varies"]
w, squares, losses = weights, dict.fromkeys(weights, 0.0), []
for _ in range(60):
    value, g = lantern.value_and_grad(loss)(w, lantern.batch)
    squares = {name: squares[name] + g[name] ** 2 for name in g}
    w = {name: w[name] - 0.1 * g[name] / np.sqrt(squares[name] + 1e-8) for name in g}
    losses.append(float(value))
print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")


def feeling(w, tree):
    """For each node of a tree the mean sentiment that the model sees, minus 2."""
    seen, means = [], {}
    visit(tree, w, seen)
    for node, state in seen:
        p = np.exp(state[:SIZE] @ w["score"])
        means[id(node)] = round(p @ np.arange(5) / p.sum() - 2, 1) + 0.0
    return means


after = feeling(w, trees[6])
draw(trees[6], lambda node: after[id(node)])

# %% [markdown]
# "very good" is positive, and "not" turns it around, at the node where they meet. (24
# sentences teach nobody English. The example `treelstm.py` reads the Stanford Sentiment
# Treebank.)

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** *How few calls?* A node cannot be computed before those below it. How
# many calls of `join` does the deepest tree alone need? How many did `forked` take?
#
# **Exercise 2.** *A loop that ends by itself.* Newton's method finds the square root of
# a. Make one step of it a batched function. Run it until the error is below 1e-9 · a,
# for a = 2, 10⁶ and 1 together. Is its gradient right?
#
# **Exercise 3.** *Two kinds of questions.* Let `ask((kind, value))` say which of two
# functions it wants, "halve" or "triple". Write a `run_together` that answers questions
# of one kind at a time, the more frequent kind first.


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
def height(tree):
    return 0 if len(tree) == 2 else 1 + max(height(tree[1]), height(tree[2]))


joins = [run for run in forked.runs if run.name == "join"]
print("at least", max(map(height, trees)), "calls; it took", len(joins))
assert len(joins) == max(map(height, trees))


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
@lantern.batched
def newton(x, a):
    return (x + a / x) / 2


def root(a):
    x = a
    while abs(lantern.stop_gradient(x * x - a)) > 1e-9 * lantern.stop_gradient(a):
        x = newton(x, a)
    return x


numbers = np.array([2.0, 1e6, 1.0])
assert np.allclose(lantern.batch(root, numbers), np.sqrt(numbers))
slope = lantern.grad(lambda a: sum(lantern.batch(root, [a[0], a[1]])))(numbers[:2])
assert np.allclose(slope, 0.5 / np.sqrt(numbers[:2]))


# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
def run_kinds(f, examples, functions):
    states = [reset(lambda x=x: f(x)) for x in examples]
    while waiting := [i for i, s in enumerate(states) if isinstance(s, Stopped)]:
        kinds = [states[i].question[0] for i in waiting]
        kind = max(set(kinds), key=lambda kind: (kinds.count(kind), kind))
        chosen = [i for i in waiting if states[i].question[0] == kind]
        answers = functions[kind](np.stack([states[i].question[1] for i in chosen]))
        for i, answer in zip(chosen, answers, strict=True):
            states[i] = states[i].k(answer)
    return states


def collatz(n):
    """How many steps it takes to come to 1."""
    count = 0
    while n != 1:
        n, count = ask(("triple" if n % 2 else "halve", n)), count + 1
    return count


functions = {"halve": lambda n: n // 2, "triple": lambda n: 3 * n + 1}
assert run_kinds(collatz, [1, 6, 7, 27], functions) == [0, 8, 16, 111]

# %% [markdown]
# ## What to remember
#
# - Write the model for one example, with Python's own loops and recursion.
# - A program that can stop anywhere can wait for others.
# - The derivative comes along by itself: the call for many rows is an operation.
# - Next: [15 Effects](15_effects.ipynb).
