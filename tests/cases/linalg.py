"""Sample calls: linear algebra.

Matrices lie around one whose factors are far from where they are not unique.
"""

from typing import Any

import numpy as np

from tests.cases.case import SIGNED, Case, array_case


def around(center: Any, width: float = 0.4) -> Any:
    """The interval of each element of a matrix near this one."""
    center = np.asarray(center, dtype=float)
    return center - width, center + width


SPREAD = np.diag([2.0, 5.0, 9.0])
BANDED = np.array([[0.5], [5.0], [0.7]]) * np.ones(3)
TALL = np.concatenate([SPREAD, np.eye(1, 3)])


def matrix_case(
    name: str, *centers: Any, batch: tuple[int, ...] = (), **kw: Any
) -> Case:
    """A call on matrices near these; None stands for any matrix of shape (3, 2)."""
    shapes, intervals = [], []
    for center in centers:
        shape = (3, 2) if center is None else np.shape(center)
        shapes.append(batch + shape)
        intervals.append(SIGNED if center is None else around(center))
    return Case(name, tuple(intervals), kw, tuple(shapes))


PAIRS = [
    ("ij", "jk", "ik"),
    ("ij", "jk", "ki"),
    ("bij", "bjk", "bik"),
    ("bij", "bj", "ib"),
    ("i", "j", "ji"),
    ("bi", "bi", "b"),
    ("ij", "ij", ""),
    ("ij", "ji", "ij"),
    ("bik", "jkb", "jbi"),
    ("ijk", "kjl", "li"),
    ("", "ij", "ij"),
]
SIZES = {"b": 2, "i": 2, "j": 3, "k": 4, "l": 2}

SQUARE = "cholesky qr eig eigvals svd svdvals inv det slogdet cofactors"

CASES: list[Case] = [
    matrix_case("sqrtm", SPREAD),
    matrix_case("sylvester", SPREAD, SPREAD[:2, :2], None),
    matrix_case("solve_banded", BANDED, None, l_and_u=(1, 1)),
    matrix_case("solve_banded", BANDED[[1, 0, 2]], np.ones(3), l_and_u=(2, 0)),
    *(
        array_case("vecdot", *shapes)
        for shapes in (((3,), (3,)), ((2, 3), (3,)), ((2, 1, 3), (4, 3)))
    ),
    *(
        array_case("tensordot", *shapes, axes=axes)
        for shapes, axes in (
            (((2, 3), (3, 4)), 1),
            (((2, 3, 4), (3, 4, 2)), 2),
            (((2,), (3,)), 0),
            (((2, 3, 4), (4, 5, 3)), ((1, 2), (2, 0))),
            (((2, 3, 4), (5, 3)), (1, -1)),
            (((2, 3, 4), (4, 2, 3)), ((2, 0, 1), (0, 1, 2))),
        )
    ),
    array_case("cross", (3,), (3,)),
    array_case("cross", (2, 1, 3), (4, 3)),
    *(
        array_case(
            "einsum", *(tuple(SIZES[c] for c in t) for t in terms[:2]), terms=terms
        )
        for terms in PAIRS
    ),
    *(
        matrix_case(name, SPREAD, batch=batch)
        for name in SQUARE.split()
        for batch in ((), (2,))
    ),
    *(
        matrix_case(name, SPREAD + 0.7, batch=batch, UPLO=uplo)
        for name in ("eigh", "eigvalsh")
        for batch, uplo in (((), "L"), ((2,), "U"))
    ),
    *(matrix_case(name, TALL) for name in ("qr", "svd", "svdvals")),
    *(matrix_case(name, TALL.T, batch=(2,)) for name in ("svd", "svdvals")),
    *(matrix_case("pinv", center, options={}) for center in (SPREAD, TALL, TALL.T)),
    matrix_case("pinv", TALL, batch=(2,), options={"rcond": 1e-10}),
    matrix_case("solve", SPREAD, None),
    matrix_case("solve", SPREAD, None, batch=(2,)),
    matrix_case("solve", SPREAD, np.ones(3)),
    *(
        Case(
            "solve_triangular",
            (around(SPREAD), SIGNED),
            {"transposed": transposed, "lower": lower, "unit_diagonal": unit},
            ((3, 3), shape),
        )
        for transposed in (False, True)
        for lower in (False, True)
        for unit in (False, True)
        for shape in ((3,), (3, 2), (2, 3, 1))
    ),
    matrix_case("lstsq", TALL, np.ones((4, 2)), rcond=1e-10),
    matrix_case("lstsq", TALL.T, None, rcond=1e-10),
    matrix_case("expm", SPREAD / 5),
    matrix_case("expm", SPREAD / 5, batch=(2,)),
    matrix_case("frechet", SPREAD / 5, np.ones((3, 3))),
    *(
        array_case("vector_norm", (2, 3), ord=ord, axis=axis, keepdims=keepdims)
        for ord in (2, 3, 1.5, 4, -1)
        for axis, keepdims in ((0, False), (-1, True))
    ),
]
