"""Which of how many processes this is: the only file that reads launchers' variables.

A launcher says so in the environment: torchrun and ours under PyTorch's names,
``mpiexec`` and ``srun`` under their own, which are filled in under PyTorch's.
"""

import os
from collections.abc import MutableMapping
from typing import Any, NamedTuple

from lantern.errors import OptionError

__all__ = ["Place", "find_place"]

# By the launcher: rank, number of processes, and both on this host. MPICH and its kin
# (hydra, MVAPICH), Open MPI, Slurm.
_MPI = (
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"),
)
# What an MPI launcher leaves for the library that connects the processes.
_CONNECTED = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")


class Place(NamedTuple):
    """Where a process stands among those that were started with it.

    Attributes:
        rank: its number, from 0.
        size: how many there are.
        local_rank: its number among those of this host.
        local_size: how many those are.
        mpi: whether an MPI launcher has started them, which connects them as well.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    mpi: bool = False


def find_place(environ: MutableMapping[str, str] | None = None) -> Place:
    """Where this process stands; alone, where no launcher says anything else.

    What another launcher than ours says is filled in under PyTorch's names.

    Example:
        >>> variables = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}
        >>> find_place(variables)
        Place(rank=1, size=4, local_rank=1, local_size=4, mpi=True)
        >>> variables["RANK"], variables["WORLD_SIZE"]
        ('1', '4')
    """
    variables: Any = os.environ if environ is None else environ
    for names in (NAMES, *_MPI):
        if names[0] not in variables or names[1] not in variables:
            continue
        # Slurm's variables stand in a batch script, too, where nothing was started.
        if names[0] == "SLURM_PROCID" and "SLURM_STEP_ID" not in variables:
            continue
        rank, size = (_number(variables, name) for name in names[:2])
        local_rank = _number(variables, names[2], rank)
        local_size = _number(variables, names[3], size)
        if not 0 <= rank < size:
            raise OptionError(
                f"init: {names[0]} is {rank}, and {names[1]} is {size}. Ranks count "
                f"from 0 up to the number of processes less 1."
            )
        mpi = any(name in variables for name in _CONNECTED)
        place = Place(rank, size, local_rank, local_size, mpi)
        for name, value in zip(NAMES, place, strict=False):
            variables.setdefault(name, str(value))
        return place
    return Place()


def _number(variables: Any, name: str, default: int | None = None) -> int:
    if default is not None and name not in variables:
        return default
    try:
        return int(variables[name])
    except ValueError:
        raise OptionError(
            f"init: the variable {name} is {variables[name]!r}. Give a whole number."
        ) from None
