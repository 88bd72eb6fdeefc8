"""Sample calls: what processes compute together, in one of them."""

from lantern.distributed.alone import AloneGroup
from tests.cases.case import Case, array_case

ALONE = AloneGroup()

CASES: list[Case] = [
    array_case("all_reduce", (2, 3), group=ALONE, loss="sum"),
    array_case("all_reduce", (2, 3), group=ALONE, loss="replicated"),
    array_case("reduce", (2, 3), group=ALONE, root=0),
    array_case("broadcast", (2, 3), group=ALONE, root=0, loss="sum"),
    array_case("broadcast", (2, 3), group=ALONE, root=0, loss="replicated"),
    array_case("all_gather", (2, 3), group=ALONE, loss="sum"),
    array_case("all_gather", (2, 3), group=ALONE, loss="replicated"),
    array_case("gather_rows", (2, 3), group=ALONE, root=0),
    array_case("scatter_rows", (1, 3), group=ALONE, root=0),
    array_case("reduce_scatter", (1, 3), group=ALONE),
    array_case("all_to_all", (1, 3), group=ALONE),
    array_case("permute", (2, 3), group=ALONE, pairs=((0, 0),)),
    array_case("replicated", (2, 3), group=ALONE),
]
