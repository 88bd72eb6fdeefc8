"""The equations of shift and reset, in every style, driver and kind of delimiter."""

import operator

import pytest

from lantern.cps import Prompt, delimit, reset, shift


def test_reset_of_a_value_is_the_value(world):
    assert world.run(lambda: 7) == 7


def test_shift_that_only_calls_k_is_its_value(world):
    assert world.run(lambda: world.shift(7)) == 7


def test_the_rest_is_what_surrounds_shift(world):
    assert world.run(lambda: 1 + 2 * world.shift(7)) == 15


def test_what_the_handler_does_with_the_answer_is_the_value_of_reset(world):
    assert world.run(lambda: 1 + world.shift(4, lambda answer: 10 * answer)) == 50


def test_the_rest_ends_at_the_delimiter(world):
    answer = 100 + world.run(lambda: 1 + world.shift(4, lambda answer: 10 * answer))
    assert answer == 150


def test_a_handler_that_never_calls_k_replaces_the_rest(world):
    assert world.run(lambda: 1 + world.abort(7)) == 7


def test_handlers_get_the_answer_newest_first(world):
    def body():
        first = world.shift("1", lambda answer: f"a({answer})")
        second = world.shift("2", lambda answer: f"b({answer})")
        return first + second

    assert world.run(body) == "a(b(12))"


def test_forward_steps_run_in_order_and_ends_in_reverse(world):
    log = []

    def visit(name):
        world.shift(
            None,
            before=lambda: log.append(f"{name} forth"),
            after=lambda answer: log.append(f"{name} back"),
        )

    world.run(lambda: [visit(name) for name in "abc"])
    expected = "a forth,b forth,c forth,c back,b back,a back"
    assert ",".join(log) == expected


def test_the_abort_of_a_later_handler_answers_the_earlier_ones(world):
    def body():
        world.shift(0, lambda answer: answer + 1)
        world.shift(0, lambda answer: answer * 10)
        world.abort(5)
        raise AssertionError("the rest of an aborted body has run")

    assert world.run(body) == 51


def test_shift_before_the_hand_over_captures_the_rest_of_the_handler(world):
    log = []

    def before():
        log.append(world.shift("inner", lambda answer: log.append(answer) or "end"))

    def body():
        return world.shift("outer", lambda answer: answer + " back", before)

    assert world.run(body) == "end"
    assert log == ["inner", "outer back"]


def test_shift_after_the_hand_over_captures_the_end_of_the_handler(world):
    def after(answer):
        return answer + world.shift(10, lambda answer: 2 * answer)

    def body():
        world.shift(0, lambda answer: answer + 0.5)
        return world.shift(1, after)

    assert world.run(body) == 2 * (1 + 10) + 0.5


def test_abort_after_the_hand_over_replaces_the_end_of_the_handler(world):
    def body():
        world.shift(0, lambda answer: ("oldest", answer))
        return world.shift(1, lambda answer: [world.abort("aborted")])

    assert world.run(body) == ("oldest", "aborted")


def test_a_delimiter_inside_does_not_disturb_the_one_outside(world):
    def inner():
        return 1 + world.shift(2, lambda answer: 10 * answer)

    def body():
        return world.shift(3, lambda answer: -answer) + world.run(inner)

    assert world.run(body) == -(3 + 30)


def test_a_delimiter_inside_a_handler(world):
    def after(answer):
        return world.run(lambda: answer + world.shift(1, lambda answer: answer * 2))

    assert world.run(lambda: world.shift(4, after)) == (4 + 1) * 2


def test_the_same_body_runs_again(world):
    def body():
        return world.shift(1, lambda answer: answer + 1) * 3

    assert [world.run(body) for _ in range(5)] == [4] * 5


@pytest.mark.parametrize("value", [None, 0, (), StopIteration(3), NotImplemented])
def test_values_pass_through_as_they_are(world, value):
    received = []
    answer = world.run(lambda: world.shift(value, lambda a: received.append(a) or a))
    assert answer is value
    assert received[0] is value


def test_styles_mix_in_one_program():
    prompt = Prompt(driver="switching")

    def generator():
        answer = yield 2
        return answer * 10

    def body():
        return shift(lambda k: k(1) + 1, prompt=prompt) + shift(generator)

    assert reset(body, prompt=prompt) == (1 + 2) * 10 + 1
    assert delimit(body, [], prompt) == (1 + 2) * 10 + 1


def test_figure_8_of_the_lantern_paper():
    """Reverse mode with a direct-style handler, word for word.

    Wang et al. (2019), "Demystifying differentiable programming", figure 8.
    """

    class Number:
        def __init__(self, x):
            self.x, self.d = x, 0.0

        def __mul__(self, other):
            def handler(k):
                y = Number(self.x * other.x)
                k(y)
                self.d += other.x * y.d
                other.d += self.x * y.d

            return shift(handler)

        def __add__(self, other):
            def handler(k):
                y = Number(self.x + other.x)
                k(y)
                self.d += y.d
                other.d += y.d

            return shift(handler)

    def grad(f, x):
        z = Number(x)

        def body():
            f(z).d = 1.0

        reset(body)
        return z.d

    assert grad(lambda x: x * x * x + x, 3.0) == 3 * 3.0**2 + 1


def test_early_return_from_a_loop_by_an_abort():
    def find(predicate, items):
        def body():
            for item in items:
                if predicate(item):
                    shift(lambda k, item=item: item)
            return None

        return reset(body)

    assert find(lambda n: n % 7 == 0, [3, 14, 21]) == 14
    assert find(operator.not_, [3, 14, 21]) is None
