"""``python -m lantern.distributed.run SCRIPT``: one script in many processes.

The options are those of PyTorch's ``torchrun``.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from lantern.distributed.launch import launch

__all__ = ["main", "parser"]

PORT = 29400  # where launchers meet if nobody names a port, as PyTorch's


def parser(program: str) -> argparse.ArgumentParser:
    """What the command line may say."""
    made = argparse.ArgumentParser(
        prog=f"python -m {program}",
        description="Run a script in several processes that know of one another.",
        epilog="What follows SCRIPT is handed on to it.",
    )

    def option(name: str, **how: object) -> None:
        made.add_argument(f"--{name}", f"--{name.replace('_', '-')}", **how)  # type: ignore[arg-type]

    option("nproc_per_node", default="1", help="a number, or auto: the processors")
    option("nnodes", default="1", help="the number of hosts")
    option("node_rank", type=int, help="this host's number; 0 is where they meet")
    option("rdzv_endpoint", default="", help="HOST:PORT of the first host")
    option("rdzv_id", default="", help="the job's name, the same on all hosts")
    option("max_restarts", type=int, default=0, help="how often it may begin again")
    option("master_addr", default="127.0.0.1", help="as the host of rdzv_endpoint")
    option("master_port", type=int, default=PORT, help="as its port")
    option("rdzv_backend", default="static", help="has no effect")
    option("rdzv_conf", default="", help="has no effect")
    option("monitor_interval", default="", help="has no effect")
    option("start_method", default="", help="has no effect")
    option("role", default="", help="has no effect")
    option("local_addr", default="", help="has no effect")
    made.add_argument("--standalone", action="store_true", help="on this host alone")
    made.add_argument("-m", "--module", action="store_true", help="SCRIPT is a module")
    made.add_argument("--no_python", "--no-python", action="store_true")
    made.add_argument("script", metavar="SCRIPT")
    made.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER)
    return made


def main(
    arguments: Sequence[str] | None = None,
    program: str = "lantern.distributed.run",
    runner: Sequence[str] = (),
) -> int:
    """Run what the command line says: the exit status.

    Args:
        arguments: the command line; by default this program's.
        program: the name in messages.
        runner: what Python runs a script by, before the script's name.
    """
    options = parser(program).parse_args(arguments)
    if options.no_python:
        command = [options.script]
    elif options.module:
        command = [sys.executable, "-m", options.script]
    else:
        command = [sys.executable, *runner, options.script]
    processes = _processes(options.nproc_per_node)
    hosts = int(str(options.nnodes).partition(":")[0])
    host, _, port = options.rdzv_endpoint.rpartition(":")
    if not host:
        host, port = options.rdzv_endpoint or options.master_addr, options.master_port
    alone = hosts == 1 and (options.standalone or not options.rdzv_endpoint)
    if alone and options.master_port == PORT:
        host, port = "127.0.0.1", 0
    return launch(
        [*command, *options.arguments],
        processes,
        address=(host, int(port)),
        node=0 if hosts == 1 else options.node_rank,
        hosts=hosts,
        restarts=options.max_restarts,
        token=options.rdzv_id or ("" if hosts == 1 else "lantern"),
    )


def _processes(text: str) -> int:
    """How many processes run on this host."""
    if text in ("auto", "cpu"):
        return len(os.sched_getaffinity(0))
    return int(text) if text != "gpu" else 1


if __name__ == "__main__":
    sys.exit(main())
