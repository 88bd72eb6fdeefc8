"""Optimisers whose state is shared out among processes."""

from lantern.torch.distributed.optim.zero_redundancy_optimizer import (
    ZeroRedundancyOptimizer as ZeroRedundancyOptimizer,
)
