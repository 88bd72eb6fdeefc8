"""Programs of many processes, and derivatives through what they tell one another.

Example:
    >>> import lantern
    >>> import lantern.distributed as dist
    >>> lantern.grad(lambda x: dist.all_reduce(x * x, "mean"))(3.0)
    6.0
"""

from lantern.distributed.collectives import *
from lantern.distributed.means import *
from lantern.distributed.world import barrier as barrier
from lantern.distributed.world import group as group
from lantern.distributed.world import init as init
from lantern.distributed.world import is_initialized as is_initialized
from lantern.distributed.world import local_rank as local_rank
from lantern.distributed.world import rank as rank
from lantern.distributed.world import world_size as world_size
