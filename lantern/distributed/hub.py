"""The one process that all ranks of a job know: addresses, values, who is still there.

Data never passes through it: that is MPI's business. MPI asks here how its processes
find one another, in the PMI-1 protocol of MPICH, a dozen commands in lines of text. On
connections of other kinds a line is a JSON object: of a watch, on which a rank says
that it lives, and hears who does not; of the store of keys; of launchers.
"""

import asyncio
import json
import os
import secrets
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from lantern.distributed.shared_memory import remove_stale
from lantern.distributed.watch import LIMIT

__all__ = ["Hub", "serve"]

PATIENCE = 2.0  # seconds until a port that is taken is an error
LINE = 1 << 26  # the longest line: a value of the store


class Pmi:
    """What the MPI processes of one job tell one another before they are connected."""

    def __init__(self, name: str, size: int) -> None:
        self.name, self.size = name, size
        self.values: dict[str, str] = {}
        self.waiting: list[asyncio.Future[None]] = []

    async def answer(self, line: str) -> str:
        """The answer to one command."""
        words = dict(word.split("=", 1) for word in line.split() if "=" in word)
        command = words.get("cmd", "")
        if command == "put":
            self.values[words["key"]] = words["value"]
            return "cmd=put_result rc=0 msg=success"
        if command == "get":
            value = self.values.get(words["key"])
            if value is None:
                return "cmd=get_result rc=-1 msg=key_not_found value=unknown"
            return f"cmd=get_result rc=0 msg=success value={value}"
        if command == "barrier_in":
            await self._barrier()
        return {
            "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
            "get_maxes": "cmd=maxes kvsname_max=256 keylen_max=256 vallen_max=1024",
            "get_appnum": "cmd=appnum appnum=0",
            "get_my_kvsname": f"cmd=my_kvsname kvsname={self.name}",
            "get_universe_size": f"cmd=universe_size size={self.size}",
            "barrier_in": "cmd=barrier_out",
            "finalize": "cmd=finalize_ack",
        }.get(command, f"cmd={command}_result rc=-1 msg=unknown_command")

    async def _barrier(self) -> None:
        mine = asyncio.get_running_loop().create_future()
        self.waiting.append(mine)
        if len(self.waiting) == self.size:
            waiting, self.waiting = self.waiting, []
            for other in waiting:
                if not other.done():
                    other.set_result(None)
        await mine


class Member:
    """A rank, as its watch shows it."""

    def __init__(self, rank: int, send: Callable[[Any], None]) -> None:
        self.rank, self.send = rank, send
        self.heard = time.monotonic()
        self.state: Any = None
        self.leaving = False


class Job:
    """The ranks of one start of a program."""

    def __init__(self, name: str, size: int) -> None:
        # Of this name MPI calls its shared memory, which a killed job has left behind.
        self.pmi = Pmi(f"{name}{secrets.token_hex(6)}", size)
        self.members: dict[int, Member] = {}
        self.lost: dict[int, str] = {}
        self.left: set[int] = set()

    def lose(self, rank: int, why: str) -> None:
        """Let all others know that a rank is gone."""
        if rank not in self.lost and rank not in self.left:
            self.lost[rank] = why
            self.tell({"lost": rank, "why": why})

    def tell(self, message: Any) -> None:
        """Send something to every rank that is there."""
        for member in self.members.values():
            member.send(message)


class Hub:
    """The server; see the module."""

    def __init__(self, token: str = "") -> None:
        self.token = token
        self.jobs: dict[str, Job] = {}
        self.values: dict[str, str] = {}
        self.changed = asyncio.Condition()
        self.agents: Callable[..., Awaitable[None]] | None = None
        self.everyone_left = asyncio.Event()
        self.closing = False

    async def listen(self, host: str, port: int) -> asyncio.Server:
        """Begin to listen."""
        self.beat = asyncio.create_task(self._watch())
        return await asyncio.start_server(self._connected, host, port, limit=LINE)

    def job(self, name: str, size: int) -> Job:
        """The job of a name, new if nobody has named it yet."""
        if name not in self.jobs:
            self.jobs[name] = Job(name, size)
        return self.jobs[name]

    async def _connected(self, reader: Any, writer: Any) -> None:
        """Serve one connection to its end."""

        def send(message: Any) -> None:
            if not writer.is_closing():
                writer.write(json.dumps(message).encode() + b"\n")

        try:
            hello = json.loads(await reader.readline() or b"{}")
            if hello.get("token", "") != self.token:
                send({"refused": "the job has another name"})
                return
            kind = hello.get("kind")
            if kind == "agent" and self.agents is not None:
                await self.agents(hello, reader, send)
            elif kind in ("pmi", "watch"):
                if self.closing:
                    return  # a new job at the same address, whose hub comes after
                job = self.job(hello["job"], hello["size"])
                send({"welcome": True})
                if kind == "watch":
                    await self._follow(job, hello["rank"], reader, send)
                else:
                    await _speak_pmi(job.pmi, reader, writer)
            elif kind == "store":
                while line := await reader.readline():
                    send(await self._store(json.loads(line)))
        except (OSError, ValueError, KeyError, asyncio.CancelledError):
            pass  # who breaks off, or speaks another language, is not served
        finally:
            writer.close()

    async def _follow(
        self, job: Job, rank: int, reader: Any, send: Callable[[Any], None]
    ) -> None:
        """Listen to a rank's signs of life until it leaves, or is lost."""
        member = job.members[rank] = Member(rank, send)
        for other, why in job.lost.items():
            send({"lost": other, "why": why})
        why = "its connection closed: it was killed, or it crashed"
        try:
            while line := await reader.readline():
                member.heard = time.monotonic()
                message = json.loads(line)
                if "state" in message:
                    member.state = message["state"]
                if "ask" in message:
                    send({"table": {r: m.state for r, m in job.members.items()}})
                if "failed" in message:
                    why = message["failed"]
                    job.lose(rank, why)
                if "leaving" in message and not member.leaving:
                    member.leaving = True
                    job.tell({"leaving": rank})
                if "left" in message:
                    job.left.add(rank)
        finally:
            job.lose(rank, why)
            del job.members[rank]
            if not any(job.members for job in self.jobs.values()):
                self.everyone_left.set()

    async def _watch(self) -> None:
        """Send signs of life, and find who has sent none."""
        while True:
            await asyncio.sleep(0.5)
            now = time.monotonic()
            for job in self.jobs.values():
                job.tell({})
                for rank, member in list(job.members.items()):
                    if now - member.heard > LIMIT:
                        why = (
                            f"nothing was heard of it for {LIMIT:g} s: it hangs, or is"
                        )
                        job.lose(rank, f"{why} cut off")

    async def _store(self, call: Any) -> Any:
        """One call of the store of keys."""
        what, key = call["do"], call.get("key", "")
        async with self.changed:
            if what == "wait":
                keys = call["keys"]
                try:
                    await asyncio.wait_for(
                        self.changed.wait_for(lambda: self.values.keys() >= set(keys)),
                        call["seconds"],
                    )
                except TimeoutError:
                    return {"missing": [k for k in keys if k not in self.values]}
                return {"values": [self.values[k] for k in keys]}
            if what == "count":
                return {"value": len(self.values)}
            if what == "has":
                return {"value": self.values.keys() >= set(call["keys"])}
            if what == "delete":
                return {"value": self.values.pop(key, None) is not None}
            old = self.values.get(key)
            if what == "add":
                self.values[key] = str(int(old or 0) + call["value"])
            elif what == "append":
                self.values[key] = (old or "") + call["value"]
            elif what == "set" or (
                what == "compare" and (old or "") == call["expected"]
            ):
                self.values[key] = call["value"]
            self.changed.notify_all()
            return {"value": self.values.get(key, call.get("expected"))}


async def _speak_pmi(pmi: Pmi, reader: Any, writer: Any) -> None:
    while line := await reader.readline():
        text = line.decode()
        writer.write((await pmi.answer(text)).encode() + b"\n")
        if "cmd=finalize" in text:
            break


async def serve(host: str, port: int, token: str) -> None:
    """Be the hub of processes that nobody's launcher watches, until all have left."""
    hub = Hub(token)
    parent = os.getppid()
    end = time.monotonic() + PATIENCE
    while True:
        try:
            server = await hub.listen(host, port)
            break
        except OSError:  # it may be the hub of the job before, which is about to end
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.05)
    async with server:
        print("listening", flush=True)
        while not hub.everyone_left.is_set() and os.getppid() == parent:
            await asyncio.sleep(0.05)
        hub.closing = True
        server.close()
        await asyncio.sleep(0.2)  # the last ones read what they were told
    remove_stale()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2]), sys.argv[3]))
