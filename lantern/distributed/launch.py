"""The launcher: the processes of this host, and their fate.

Launchers of several hosts meet at the hub of the first one, whose ``Coordinator`` says
when all begin, when all stop, and whether they begin again.
"""

import asyncio
import contextlib
import json
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from lantern.blocks import between_turns
from lantern.distributed.hub import Hub
from lantern.distributed.shared_memory import remove_stale
from lantern.distributed.watch import LIMIT

__all__ = ["Launcher", "launch"]

# Seconds for the ranks to raise their errors, once one is lost; and to end when asked.
GRACE, STOP = 1.2, 3.0


async def _beat(send: Callable[[Any], None]) -> None:
    """Send signs of life."""
    while True:
        send({})
        await asyncio.sleep(0.5)


class Coordinator:
    """What becomes of the job, seen from its first host.

    Attributes:
        hosts: how many launchers take part.
        restarts: how often the job may begin again.
    """

    def __init__(self, hub: Hub, hosts: int, restarts: int) -> None:
        self.hub, self.hosts, self.restarts = hub, hosts, restarts
        self.attempt = 0
        self.agents: dict[int, tuple[int, Callable[[Any], None]]] = {}
        self.ended: set[int] = set()
        self.failure: int | None = None
        hub.agents = self.follow

    async def follow(self, hello: Any, reader: Any, send: Any) -> None:
        """Listen to the launcher of one host until it goes."""
        node = hello.get("node")
        if node is None:
            node = next(i for i in range(len(self.agents) + 1) if i not in self.agents)
        self.agents[node] = hello["processes"], send
        if len(self.agents) == self.hosts:
            self._begin()
        beats = asyncio.create_task(_beat(send))
        try:
            while line := await asyncio.wait_for(reader.readline(), LIMIT):
                message = json.loads(line)
                if "failed" in message:
                    self._fail(message["failed"])
                if "ended" in message:
                    self._end(node)
                if "over" in message:
                    return
        except (OSError, TimeoutError):
            pass
        finally:
            beats.cancel()
        print(f"run: the launcher of host {node} is gone.", file=sys.stderr)
        self.restarts = 0  # there is one host too few
        self._fail(1)
        self._end(node)

    def _fail(self, status: int) -> None:
        """Let all hosts stop, once."""
        if self.failure is None:
            self.failure = status
            self._tell({"stop": True})

    def _end(self, node: int) -> None:
        """Nothing runs on a host any more."""
        self.ended.add(node)
        if len(self.ended) == self.hosts:
            self._decide()

    def _tell(self, message: Any) -> None:
        for _, send in self.agents.values():
            send(message)

    def _begin(self) -> None:
        self.ended, self.failure = set(), None
        size = sum(processes for processes, _ in self.agents.values())
        job = f"job{secrets.token_hex(6)}"
        base, mapping = 0, []
        for place, node in enumerate(sorted(self.agents)):
            mapping.append(f"({place},1,{self.agents[node][0]})")
        mine = self.hub.job(job, size)
        mine.pmi.values["PMI_process_mapping"] = f"(vector,{','.join(mapping)})"
        for place, node in enumerate(sorted(self.agents)):
            processes, send = self.agents[node]
            send(
                {
                    "begin": self.attempt,
                    "job": job,
                    "base": base,
                    "size": size,
                    "node": place,
                }
            )
            base += processes

    def _decide(self) -> None:
        if self.failure is not None and self.attempt < self.restarts:
            self.attempt += 1
            self._begin()
        else:
            self._tell({"over": self.failure or 0})


class Launcher:
    """The launcher of one host.

    Attributes:
        command: what each process runs.
        processes: how many run here.
        address: host and port of the hub.
        node: the number of this host; None for any that is free.
        hosts: how many hosts there are.
        restarts: how often the job may begin again.
        token: the name of the job, which all its processes know.
    """

    def __init__(
        self,
        command: list[str],
        processes: int,
        address: tuple[str, int],
        node: int | None = 0,
        hosts: int = 1,
        restarts: int = 0,
        token: str = "",
    ) -> None:
        self.command, self.processes, self.address = command, processes, address
        self.node, self.hosts, self.restarts = node, hosts, restarts
        self.token = token or secrets.token_hex(8)
        self.children: list[asyncio.subprocess.Process] = []
        self.watching: asyncio.Task[None] | None = None
        self.writer: Any = None
        self.stopping = False
        self.last_signal = 0

    @between_turns
    async def run(self) -> int:
        """Run the job to its end: the exit status."""
        server = None
        if self.node in (0, None):
            hub = Hub(self.token)
            try:
                server = await hub.listen(*self.address)
                Coordinator(hub, self.hosts, self.restarts)
                self.address = (
                    self.address[0],
                    server.sockets[0].getsockname()[1],
                )
            except OSError as error:
                if self.node == 0 or self.hosts == 1:
                    where = f"{self.address[0]}:{self.address[1]}"
                    print(
                        f"run: cannot listen at {where}: {error}. Choose another "
                        f"port, or --standalone.",
                        file=sys.stderr,
                    )
                    return 1
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._signalled, number)
        try:
            return await self._follow()
        finally:
            await self._end_all(GRACE)
            if self.writer is not None:
                self.beats.cancel()
                self.writer.close()
                with contextlib.suppress(OSError, TimeoutError):
                    await asyncio.wait_for(self.writer.wait_closed(), 1.0)
            if server is not None:
                if self.hosts > 1:
                    await asyncio.sleep(0.1)  # the others read that it is over
                server.close()
            await asyncio.sleep(0)
            remove_stale()

    async def _follow(self) -> int:
        """Do what the coordinator says, until it says that all is over."""
        try:
            return await self._obey()
        except (OSError, TimeoutError):
            print("run: the launcher of the first host is gone.", file=sys.stderr)
            return 1

    async def _obey(self) -> int:
        """As ``_follow``, as long as the coordinator can be heard."""
        reader, self.writer = await self._connect()
        self._say(
            kind="agent", node=self.node, processes=self.processes, token=self.token
        )
        self.beats = asyncio.create_task(_beat(lambda message: self._say(**message)))
        while line := await asyncio.wait_for(reader.readline(), LIMIT):
            message = json.loads(line)
            if "refused" in message:
                print(f"run: refused: {message['refused']}.", file=sys.stderr)
                return 1
            if "begin" in message:
                await self._begin(message)
            if "stop" in message:
                self.stopping = True
            if "over" in message:
                self._say(over=True)
                return 128 + self.last_signal if self.last_signal else message["over"]
        raise ConnectionResetError

    async def _connect(self) -> Any:
        end = time.monotonic() + 600
        while True:
            try:
                return await asyncio.open_connection(*self.address)
            except OSError:
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(0.2)

    def _say(self, **message: Any) -> None:
        self.writer.write(json.dumps(message).encode() + b"\n")

    async def _begin(self, message: Any) -> None:
        """Start this host's processes, and let a task await their ends."""
        if self.watching is not None:
            await self.watching
        self.stopping = False
        self.children = [
            await asyncio.create_subprocess_exec(
                *self.command, env=self._environment(message, i)
            )
            for i in range(self.processes)
        ]
        self.watching = asyncio.create_task(self._await_ends(message["base"]))

    def _environment(self, message: Any, i: int) -> dict[str, str]:
        variables = {
            "RANK": message["base"] + i,
            "LOCAL_RANK": i,
            "WORLD_SIZE": message["size"],
            "LOCAL_WORLD_SIZE": self.processes,
            "GROUP_RANK": message["node"],
            "GROUP_WORLD_SIZE": self.hosts,
            "ROLE_RANK": message["base"] + i,
            "ROLE_WORLD_SIZE": message["size"],
            "ROLE_NAME": "default",
            "MASTER_ADDR": self.address[0],
            "MASTER_PORT": self.address[1],
            "TORCHELASTIC_RESTART_COUNT": message["begin"],
            "TORCHELASTIC_MAX_RESTARTS": self.restarts,
            "TORCHELASTIC_RUN_ID": self.token,
            "LANTERN_JOB": message["job"],
        }
        threads = {} if "OMP_NUM_THREADS" in os.environ else {"OMP_NUM_THREADS": 1}
        more = {name: str(value) for name, value in (variables | threads).items()}
        return {**os.environ, **more}

    async def _await_ends(self, base: int) -> None:
        """Wait until this host's processes have ended; end them if one has failed."""
        ends = {
            asyncio.ensure_future(child.wait()): base + i
            for i, child in enumerate(self.children)
        }
        waiting = set(ends)
        while waiting and not self.stopping:
            over, waiting = await asyncio.wait(
                waiting, timeout=0.1, return_when=asyncio.FIRST_COMPLETED
            )
            for end in over:
                if end.result() and not self.stopping:
                    self._report(ends[end], end.result())
        if waiting:
            await self._end_all(GRACE)
        for end in ends:
            await end
        self._say(ended=True)

    def _report(self, rank: int, status: int) -> None:
        """Say which rank has failed first, and let all hosts stop."""
        self.stopping = True
        if status < 0:
            name = signal.Signals(-status).name
            how, status = f"was ended by the signal {name}", 128 - status
        else:
            how = f"ended with the exit status {status}"
        if not self.last_signal:
            print(f"run: rank {rank} {how}.", file=sys.stderr, flush=True)
        self._say(failed=status)

    @between_turns
    async def _end_all(self, grace: float) -> None:
        """End the processes: of themselves, when asked, or by force."""
        for seconds, number in ((grace, signal.SIGTERM), (STOP, signal.SIGKILL)):
            alive = [child for child in self.children if child.returncode is None]
            if not alive:
                return
            waits = [asyncio.ensure_future(child.wait()) for child in alive]
            await asyncio.wait(waits, timeout=seconds)
            for child in alive:
                if child.returncode is None:
                    with contextlib.suppress(ProcessLookupError):
                        child.send_signal(number)
        for child in self.children:
            await child.wait()

    def _signalled(self, number: int) -> None:
        """Hand a signal on to the processes."""
        self.last_signal = number
        for child in self.children:
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    child.send_signal(number)


def launch(command: list[str], processes: int, **options: Any) -> int:
    """Run a command in several processes that know of one another: the exit status.

    Args:
        command: what each of them runs.
        processes: how many.
        options: as the attributes of ``Launcher``.
    """
    options.setdefault("address", ("127.0.0.1", 0))
    return asyncio.run(Launcher(command, processes, **options).run())
