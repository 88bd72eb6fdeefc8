"""``python -m lantern.distributed.ray SCRIPT``: a script in Ray Train's workers.

Ray starts the workers, restarts them when one is lost, and does so on whatever cluster
it runs on; this file is the only one that imports it. Data go by MPI, as everywhere.
"""

import argparse
import os
import runpy
import secrets
import socket
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from lantern.distributed import world
from lantern.errors import MissingExtraError

__all__ = ["main", "trainer"]


def _address() -> tuple[str, int]:
    """Where the first worker is found: a port of its host's that nobody uses."""
    import ray

    host = ray.util.get_node_ip_address()
    with socket.socket() as probe:
        probe.bind((host, 0))
        return host, int(probe.getsockname()[1])


def _join(address: tuple[str, int], token: str) -> None:
    """Let a worker know where the first one is found."""
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = address[0], str(address[1])
    os.environ["TORCHELASTIC_RUN_ID"] = token


def _work(function: Callable[[], Any]) -> None:
    """What each worker does: its place, the function, and its leave of the others."""
    from ray import train

    context = train.get_context()
    place = {
        "RANK": context.get_world_rank(),
        "WORLD_SIZE": context.get_world_size(),
        "LOCAL_RANK": context.get_local_rank(),
        "LOCAL_WORLD_SIZE": context.get_local_world_size(),
    }
    os.environ.update({name: str(value) for name, value in place.items()})
    try:
        function()
    except BaseException as error:
        world.failed(error)
        raise
    world.leave()


def _run(script: str, arguments: Sequence[str], folder: str) -> None:
    """A script, as Python runs it."""
    if os.path.isdir(folder):
        os.chdir(folder)
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(script))
    runpy.run_path(script, run_name="__main__")


def trainer(
    function: Callable[[], Any], workers: int, failures: int = 0, **options: Any
) -> Any:
    """A trainer of Ray's, whose ``fit()`` runs a function in some workers.

    In it ``lantern.distributed`` and ``lantern.torch.distributed`` find the other
    workers. Where one is lost, Ray begins again with new ones, and the function goes on
    from what it has saved.

    Args:
        function: what each worker runs.
        workers: how many there are.
        failures: how often Ray may begin again; -1 for always.
        options: of ``ray.train.ScalingConfig``, such as ``resources_per_worker``.

    Raises:
        MissingExtraError: without Ray (``lantern-ad[ray]``).
    """
    try:
        from ray.train import FailureConfig, RunConfig, ScalingConfig
        from ray.train.backend import Backend, BackendConfig
        from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
    except ImportError as error:
        raise MissingExtraError(
            f'lantern.distributed.ray: {error}. Install it: pip install "lantern-ad'
            f'[ray]".'
        ) from None

    class OverMpi(Backend):
        def on_training_start(self, worker_group: Any, backend_config: Any) -> None:
            address = worker_group.execute_single(0, _address)
            worker_group.execute(_join, address, secrets.token_hex(8))

    class OverMpiConfig(BackendConfig):
        backend_cls = OverMpi

    return DataParallelTrainer(
        partial(_work, function),
        backend_config=OverMpiConfig(),
        scaling_config=ScalingConfig(num_workers=workers, **options),
        run_config=RunConfig(
            failure_config=FailureConfig(max_failures=failures),
            storage_path=tempfile.mkdtemp(prefix="lantern_ray_"),
        ),
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what the command line says."""
    made = argparse.ArgumentParser(
        prog="python -m lantern.distributed.ray",
        description="Run a script in Ray Train's workers, which know of one another.",
        epilog="What follows SCRIPT is handed on to it.",
    )
    made.add_argument("--num_workers", "--num-workers", type=int, default=1)
    made.add_argument("--max_failures", "--max-failures", type=int, default=0)
    made.add_argument("script", metavar="SCRIPT")
    made.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER)
    options = made.parse_args(arguments)
    script, folder = os.path.abspath(options.script), os.getcwd()
    run = partial(_run, script, options.arguments, folder)
    trainer(run, options.num_workers, options.max_failures).fit()


if __name__ == "__main__":
    from lantern.distributed.ray import main as run  # what is pickled has this name

    run()
