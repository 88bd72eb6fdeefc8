"""Sample calls: reductions and cumulative operations."""

from tests.cases.case import POSITIVE, Case, array_case

CASES: list[Case] = [
    array_case("cumsum", (5,), axis=0),
    array_case("cumsum", (2, 3, 2), axis=1),
    array_case("cumprod", (5,), axis=0),
    array_case("cumprod", (2, 3, 2), axis=1),
    array_case("cumprod", (1,), axis=0),
    array_case("cummax", (6,), axis=0),
    array_case("cummax", (2, 4, 2), axis=1),
    array_case("cummin", (6,), axis=0),
    array_case("cummin", (2, 4, 2), axis=1),
    array_case("linspace", (), (), num=5, endpoint=True, axis=0),
    array_case("linspace", (2, 1), (3,), num=4, endpoint=False, axis=-1),
    array_case("sum", (2, 3, 2), axis=()),
    array_case("max", (2, 3), interval=POSITIVE, axis=None, keepdims=True),
]
