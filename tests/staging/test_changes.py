"""What one way of a branch alone, or a turn of a loop, changes, and who reads it."""

import pytest

import lantern
from tests.staging.outcomes import outcome


@pytest.fixture(params=["interpret", "O0", "O2", "tiers"])
def mode(request, monkeypatch):
    monkeypatch.setenv("LANTERN_JIT", request.param)
    return request.param


def check(f, points):
    """Value and gradient are the plain function's to the last bit."""
    gradient = lantern.grad(f)
    exact = [
        (f, lantern.jit(f, exact=True)),
        (gradient, lantern.jit(gradient, exact=True)),
    ]
    exact.append((gradient, lantern.grad(lantern.jit(f, exact=True))))
    for plain, jitted in exact:
        for x in points:
            assert outcome(jitted, x) == outcome(plain, x)
    for plain in f, gradient:
        jitted = lantern.jit(plain)
        for x in points:
            found, right = outcome(jitted, x), outcome(plain, x)
            if found != right:
                assert float(found) == pytest.approx(float(right), rel=1e-12)
    return "runs as it is" not in lantern.explain(jitted)


def a_function_that_outlives_a_branch(x):
    def made(y):
        def get():
            return y

        if x > 0:
            y = 2 * x
            return get
        y = 3 * x
        return get

    return made(x)() * x


def test_a_variable_of_one_way_is_not_asked_for_behind_it(mode):
    assert not check(a_function_that_outlives_a_branch, (1.5, -1.5))


def an_element(x):
    values = [x, 2 * x, 3.0]
    if x > 1:
        values[1] = x * x
    return values[0] * values[1] + values[2]


def an_element_on_both_ways(x):
    values = [x, 1, 3.0]
    if x > 1:
        values[1] = x * x
        values[2] += x
    else:
        values[1] = 2
        values[0] = values[2] * x
    return values[0] * values[1] + values[2]


def an_element_within_two_branches(x):
    values = [x, 2 * x]
    if x > 0:
        values[0] = values[0] * 3
        if x > 1:
            values[1] = values[0] + x
        else:
            values[0] = values[1] * x
        values[1] += values[0]
    return values[0] * values[1]


def an_element_within_the_inner_branch_alone(x):
    values = [x, 2 * x]
    if x > 0:
        if x > 1:
            values[0] = x * x
    else:
        values[1] = values[0] * 3
    return values[0] * values[1]


def an_element_behind_a_return(x):
    values = [x, 2 * x]
    if x > 2:
        values[0] = x * x
        return values[0] + values[1]
    values[1] = values[0] * 5
    if x > 1:
        values[0] = values[1] + 1
    return values[0] * values[1]


def a_list_that_a_way_returns(x):
    def made(values):
        if x > 1:
            values[0] = x * x
            return values
        return [values[1], 7.0]

    values = [x, 2 * x]
    found = made(values)
    return found[0] * found[1] + values[0]


def a_list_that_gets_a_name_on_one_way(x):
    values = [x, 2 * x]
    if x > 1:
        values[0] = x * x
        found = values
    else:
        found = [1.0, x]
    return found[0] * found[1] + values[0] + values[1]


def a_list_that_is_changed_behind_such_a_name(x):
    values = [x, 2 * x]
    if x > 1:
        values[0] = x * x
        found = values
    else:
        found = [1.0, x]
    values[1] = 5 * x
    return found[0] * found[1] + values[0] + values[1]


def the_largest_of_each_place(x):
    best = [0.0, x, 2.0]
    for i in range(12):
        v = lantern.sin(x * i)
        if v > best[i % 3]:
            best[i % 3] = v
    return best[0] + 2 * best[1] + 3 * best[2]


def sorted_by_hand(x):
    row = [2.0, x, -x, 0.5, x * x]
    for i in range(len(row)):
        for j in range(len(row) - 1 - i):
            if row[j] > row[j + 1]:
                row[j], row[j + 1] = row[j + 1], row[j]
    return row[0] + 2 * row[1] + 3 * row[2] + 5 * row[3] + 7 * row[4]


def a_dict_and_an_object(x):
    by_name, point = {"a": x, "b": 1.0}, Point(x, 2.0)
    if x > 1:
        by_name["a"] = x * x
        point.y = by_name["b"] + x
    else:
        by_name["b"] -= x
        point.x = 3.0
    return by_name["a"] * point.x + by_name["b"] * point.y


class Point:
    def __init__(self, x, y):
        self.x = x
        self.y = y

    def moved(self, by):
        if by > 0:
            self.x = self.x + by
        else:
            self.y = self.y * by


def a_method_that_moves(x):
    p = Point(x, 2 * x)
    for k in (1.0, x, -x):
        p.moved(k * x)
    return p.x * p.y


def a_condition_that_ends_the_program(x):
    values = [x, 2.0]
    if x > 1:
        values[0] = x * x
        if x > 3:
            values[1] = 0.0
            raise ValueError("too large")
    if values[0] <= 0:
        raise ValueError
    return values[0] * values[1]


def as_many_on_both_ways(x):
    values = [x]
    if x > 1:
        values.append(x * x)
    else:
        values.insert(0, 3.0)
    values.append(x)
    return values[0] + 2 * values[1] + 3 * values[2]


def more_on_one_way(x):
    values = [x]
    if x > 1:
        values.append(x * x)
    return sum(values)


def others_on_one_way(x):
    values = [x, [1.0]]
    if x > 1:
        values[1] = [2.0]
    return values[0] * values[1][0]


def rows_of_a_table(x):
    table = [[x, 1.0], [2.0, 2 * x]]
    row = table[1]
    if x > 1:
        table[1][0] = x * x
    else:
        row[1] = 3 * x
    return table[0][0] * row[0] + table[1][1]


def a_loop_over_what_changes(x):
    values, total = [x, 1.0, 2.0], 0.0
    for i, v in enumerate(values):
        if v > 1:
            values[2] = values[2] * x + i
        total += v
    return total


def an_int_or_a_float(x):
    values = [1, x]
    if x > 1:
        values[0] = x
    return values[0] // 1 + values[1]


def a_loop_of_the_program(x):
    values, i = [x, 0.0], 0
    while values[0] < 10:
        if i > 3:
            values[0] = values[0] + x * x
        values[0] += 1.0
        i += 1
    return values[0] * i


def turns_that_change_a_list(x):
    best, i = [0.0, x], 0.0
    while i < 30 + x:
        v = lantern.sin(x * i)
        if v > best[0]:
            best[0], best[1] = v, best[0]
        best[1] += 0.01 * v
        i += 1
    return best[0] + 2 * best[1]


def turns_within_turns(x):
    sums, point, i = [0.0, x], Point(x, 0.0), 0.0
    while i < 6 + x:
        j = i
        while j > 0:
            sums[1] = sums[1] * 0.9 + point.x
            point.x += 0.1 * j
            j -= 1
        sums[0] += sums[1]
        point.y = sums[0] * x
        i += 1
    return sums[0] * point.y + point.x


def turns_that_change_rows(x):
    table, by_name, i = [[x, 1.0], [2.0, 2 * x]], {"n": 0, "y": x}, 0.0
    row = table[1]
    while row[0] < 40 + x:
        table[1][0] = row[0] * 1.5 + table[0][0]
        row[1] = by_name["y"] * 0.5
        by_name["y"] = row[1] + x
        by_name["n"] += 1
        i += 1
        if i > 20:
            break
    return row[0] * row[1] + table[1][1] * by_name["n"] + by_name["y"]


def places_that_are_computed(x):
    counts, k = [0.0, x, 1.0], 27 + int(x)
    while k != 1:
        k = k // 2 if k % 2 == 0 else 3 * k + 1
        counts[k % 3] += x
        counts[-1 - k % 2] = counts[k % 2] * 0.5
    return counts[0] + 2 * counts[1] + 3 * counts[2]


def a_place_that_there_is_not(x):
    values, k = [0.0, x], 0
    while k < 5 + x:
        if x > k:
            values[k] = x
        k += 1
    return values[0] * values[1]


def others_after_a_turn(x):
    values, i = [[x], 1.0], 0.0
    while i < 9 + x:
        values[1] += values[0][0]
        values[0] = [values[1]]
        i += 1
    return values[0][0] * values[1]


def turns_within_that_change_another(x):
    sums, i = [0.0, x], 0.0
    while i < 4 + x:
        mine, j = [x, i], 0.0
        while j < 3 + x:
            mine[0] = mine[0] * 0.5 + mine[1]
            j += 1
        sums[0] += mine[0]
        i += 1
    return sums[0] * sums[1]


def turns_on_one_way(x):
    values, i = [x, 1.0], 0.0
    if x > 1:
        while i < 9 + x:
            values[0] = values[0] * 0.8 + values[1]
            i += 1
    else:
        values[1] = 5.0
    return values[0] * values[1]


def turns_of_a_helper(x):
    def filled(values, n):
        i = 0.0
        while i < n:
            values[0] += x * i
            i += 1
        return i

    values = [x, 1.0]
    n = filled(values, 7 + x) + filled(values, x)
    return values[0] * n


def longer_by_each_turn(x):
    values, i = [x], 0.0
    while i < 9 + x:
        values.append(x * i)
        i += 1
    return sum(values)


def another_type_in_a_later_turn(x):
    values, i = [0, x], 0.0
    while i < 9 + x:
        values[0] = values[0] + x if i > 4 else values[0] + 1
        i += 1
    return values[0] * x


def one_by_one_for_few_turns(x):
    values = [0.0] * 6
    for i in range(6):
        values[i] = x * i + values[i - 1]
    return values[5] * values[2]


def a_list_of_many_places(x):
    values, i = [x] * 40, 0
    while i < 40:
        if x < i:
            values[i] = 1.0
        i += 1
    return sum(values)


def a_turn_with_a_list_of_its_own(x):
    total = x
    for i in range(20):
        pair = [total, x * i]
        if pair[1] > 2:
            pair[0] = pair[1] * 0.5
        total = pair[0] * 0.9 + x
    return total


def a_function_that_reads_later(x):
    values = [x, 2.0]
    read = lambda: values[0] * x  # noqa: E731  # what people write
    if x > 1:
        values[0] = x * x
    before = read()
    if x > 2:
        values[0] = 1.0
    return before + read()


def chosen_by_an_expression(x):
    values = [x, 2.0]

    def put(v):
        values[0] = v
        return v

    y = put(3 * x) if x > 1 else put(2.0) + 1
    z = x > 2 and put(x) > 0
    return y * values[0] + (1.0 if z else 2.0)


def an_aliased_number(x):
    y = x * x
    values = [y, y, x]
    if x > 1:
        values[1] = values[0] * 2
    return values[0] * values[1] + y * values[2] + values[1] * y


COMPILED = [
    an_element,
    an_element_on_both_ways,
    an_element_within_two_branches,
    an_element_within_the_inner_branch_alone,
    an_element_behind_a_return,
    a_list_that_a_way_returns,
    a_list_that_gets_a_name_on_one_way,
    the_largest_of_each_place,
    sorted_by_hand,
    a_dict_and_an_object,
    a_method_that_moves,
    a_condition_that_ends_the_program,
    as_many_on_both_ways,
    rows_of_a_table,
    a_loop_over_what_changes,
    a_turn_with_a_list_of_its_own,
    a_function_that_reads_later,
    chosen_by_an_expression,
    an_aliased_number,
    a_loop_of_the_program,
    turns_that_change_a_list,
    turns_within_turns,
    turns_within_that_change_another,
    turns_that_change_rows,
    places_that_are_computed,
    a_place_that_there_is_not,
    turns_on_one_way,
    turns_of_a_helper,
    another_type_in_a_later_turn,
    one_by_one_for_few_turns,
    a_list_of_many_places,
    an_int_or_a_float,
]
AS_THEY_ARE = [
    a_list_that_is_changed_behind_such_a_name,
    more_on_one_way,
    others_on_one_way,
    longer_by_each_turn,
    others_after_a_turn,
]
POINTS = (0.3, 1.0, 1.5, 2.5, 3.5, -1.25)


@pytest.mark.parametrize("f", COMPILED + AS_THEY_ARE)
def test_changes_on_one_way(f, mode):
    assert check(f, POINTS) is (f in COMPILED)
