# %% [markdown]
# # 02 shift and reset
#
# **Who would write programs as a tower of `lambda`s? Can Python hand us the rest of an
# ordinary program, without our writing it down?**
#
# In [notebook 01](01_the_rest_of_the_program.ipynb) every operation was called with `k`,
# the rest of the program. That was useful, and tiresome. Here are two functions that
# make it unnecessary: one says where "the rest" ends, one takes it.

# %%
from lantern.cps import reset, shift

# %% [markdown]
# ## The same program twice
#
# On top: the rest of the program is written out as `lambda`s. Below: plain Python.
# `reset` marks where the rest of the program ends; `shift` stops the program where it
# stands, and calls a function of ours, the *handler*, with the rest.


# %%
def ask(question, k):
    print(question)
    return k(20)


ask("how many?", lambda n: 2 * n + 2)


# %%
def ask_handler(k):
    print("how many?")
    return k(20)


def program():
    n = shift(ask_handler)  # the rest of program, from here on, is k
    return 2 * n + 2


reset(program)

# %% [markdown]
# Read the last cell slowly, it is all there is:
#
# 1. `reset(program)` runs the program.
# 2. The program reaches `shift(ask_handler)` and stops there.
# 3. What is left to do, "take a value, call it `n`, return `2 * n + 2`", becomes a
#    function `k`, and `ask_handler(k)` is called.
# 4. The handler calls `k(20)`. The program goes on, with 20 as the value of `shift(...)`.
#    It returns 42, and that is what `k(20)` returns to the handler.
# 5. What the handler returns is the value of `reset`: here 42, too.
#
# Because `reset` marks an end, `k` is a *delimited* continuation: the rest of the program
# **up to there**, and not up to the end of the world. That is why `k(20)` returns.

# %% [markdown]
# ## Code behind the rest
#
# As in notebook 01, whoever calls `k` may do something afterwards. Two operations, and
# the order in which they speak:


# %%
def speak(name, value):
    def handler(k):
        print("there:     ", name)
        answer = k(value)
        print("back again:", name)
        return answer

    return shift(handler)


def program():
    a = speak("first", 3)
    b = speak("second", a * a)
    print("           the program is over, with", a + b)
    return a + b


reset(program)

# %% [markdown]
# Note what has *not* been written: `program` does not mention `k`, and it may use loops,
# branches and functions as it likes. `speak` could be called ten levels deep.

# %% [markdown]
# ## The shortest notation: `yield`
#
# A Python generator can stop in the middle, hand out a value, and be continued later with
# another. That is what a handler does: it hands a value to the rest of the program, and
# goes on with the answer. So a handler may also be written as a generator, and then it
# gets no `k`. Where it said `answer = k(value)`, it says `answer = yield value`:


# %%
def speak(name, value):
    def handler():
        print("there:     ", name)
        answer = yield value
        print("back again:", name)
        return answer

    return shift(handler)


reset(program)

# %% [markdown]
# Above the `yield`: the way there. Below it: the way back. Between the two: the whole
# rest of the program. Every operation in Lantern has this form. You can read one:

# %%
import inspect

from lantern.op import registry

source = inspect.getsource(registry["sin"].rule)
code = source.split('"""')[::2]  # without its documentation
print("".join(code).replace("    \n", ""))

# %% [markdown]
# Never mind the details: one `yield` gives the value away, the others say what the
# operand receives on the way back. We shall get there in notebook 04.

# %% [markdown]
# ## Who waits where
#
# While the rest of the program runs, the handlers wait. Here is a picture of two
# operations that wait for the rest: each frame *is* a continuation, the rest of the
# program as the operation above it sees it. (This picture is of a derivative; for now
# look only at the frames.)

# %%
from lantern import viz

viz.trace(lambda x: (x * x) * 10.0, 3.0)

# %% [markdown]
# ## The handler is in charge
#
# **It may not call `k`.** Then the rest of the program never happens. `finally` blocks
# run as they should, just as if an exception had passed.


# %%
def leave_with(value):
    return shift(lambda k: value)


def search(numbers):
    try:
        for number in numbers:
            if number > 10:
                leave_with(f"found {number}")
        return "nothing there"
    finally:
        print("cleaning up")


reset(lambda: search([4, 8, 15, 16])), reset(lambda: search([1, 2]))

# %% [markdown]
# **It may keep `k` for later.** Then the program is paused. It is a value in a list, and
# it goes on when somebody calls it.

# %%
paused = []


def wait():
    return shift(lambda k: paused.append(k) or "waiting")


def report():
    name = wait()
    place = wait()
    return f"{name} was seen in {place}"


print(reset(report))
print(paused.pop()("A heron"))
print(paused.pop()("Lisbon"))

# %% [markdown]
# **It may not call `k` twice.** In notebook 01 we could, because `k` was a plain function.
# Here `k` is a running Python program that stands still, and Python cannot copy a running
# program. Continuations in Lantern are *one-shot*, and say so:

# %%
from lantern import AlreadyResumedError

try:
    reset(lambda: 1 + shift(lambda k: k(1) + k(2)))
except AlreadyResumedError as error:
    print(error)

# %% [markdown]
# A derivative needs each rest once. So nothing is lost.

# %% [markdown]
# ## Which end?
#
# There may be several `reset`s around an operation. `shift` takes the rest up to the
# nearest one. To take it up to one further out, give that one a name, a `Prompt`, and
# say the name to both `reset` and `shift`:

# %%
from lantern.cps import Prompt

outer = Prompt("outer")


def around(name, prompt=None):
    return shift(lambda k: f"{name}({k('x')})", prompt=prompt)


print(reset(lambda: "a" + reset(lambda: "b" + around("near")), prompt=outer))
print(reset(lambda: "a" + reset(lambda: "b" + around("far", outer)), prompt=outer))

# %% [markdown]
# *near* was put around what the inner body made, *far* around everything. A derivative
# inside a derivative will need that (notebook 06).

# %% [markdown]
# ## Exercises
#
# **Exercise 1.** `reset(lambda: 1 + shift(lambda k: 10 * k(4)))` gives 50. Work out on
# paper what each of these gives, then try: `reset(lambda: 3 * shift(lambda k: 7))`,
# `reset(lambda: shift(lambda k: k("a") + "!") + "b")`, and
# `1 + reset(lambda: 10 * shift(lambda k: k(2) + 1))`.
#
# **Exercise 2.** Write `indented(name)`, an operation that hands `name` to the rest and,
# on the way back, puts it around the answer: `reset(lambda: ...)` with the names "a" and
# "b" and the answer "end" is to give `"a(b(end))"`. Write its handler as a generator.
#
# **Exercise 3.** Write `default(value, body)`, which runs `body` and returns `value` if,
# however deep inside, somebody calls `give_up()`.

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 1. A rest that nobody calls does not happen; what comes behind k(...) happens
# last; and what stands outside of reset is no part of the rest.

assert reset(lambda: 3 * shift(lambda k: 7)) == 7
assert reset(lambda: shift(lambda k: k("a") + "!") + "b") == "ab!"
assert 1 + reset(lambda: 10 * shift(lambda k: k(2) + 1)) == 22

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 2


def indented(name):
    def handler():
        answer = yield name
        return f"{name}({answer})"

    return shift(handler)


def two_names():
    indented("a")
    indented("b")
    return "end"


assert reset(two_names) == "a(b(end))"

# %% jupyter={"source_hidden": true} tags=["hide-input", "solution"]
# Solution 3. A prompt of its own tells this reset from others inside the body.

giving_up = Prompt("giving up")


class Failed:
    pass


def give_up():
    return shift(lambda k: Failed(), prompt=giving_up)


def default(value, body):
    answer = reset(body, prompt=giving_up)
    return value if isinstance(answer, Failed) else answer


def risky(x):
    return 1 / (x or give_up())


assert default(0.0, lambda: risky(4)) == 0.25
assert default(0.0, lambda: reset(lambda: 1 + risky(0))) == 0.0

# %% [markdown]
# ## What to remember
#
# - `reset(body)` marks an end. `shift(handler)` stops, and gives the handler the rest of
#   the body, up to that end, as `k`.
# - `answer = yield value` in a handler means `answer = k(value)`: above it the way there,
#   below it the way back.
# - A `Prompt` names an end, where there are several.
# - Next: [03 Dual numbers](03_dual_numbers.ipynb), derivatives for which nobody has to
#   wait.
