"""Who of the other ranks is still there: a thread that talks with the hub.

It hears within a moment that a rank has died, and says once a second that this one
lives and what it waits for. Who waits for other ranks looks at ``trouble`` in between.
"""

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from lantern.errors import DistributedError, RankLostError

__all__ = ["LIMIT", "Watch", "connect"]

# Seconds without a sign of life after which a rank counts as lost.
LIMIT = float(os.environ.get("LANTERN_HEARTBEAT_LIMIT", "8"))
# Seconds that a rank which has left gives the others to end what it took part in.
PATIENCE = 2.0


def connect(
    address: tuple[str, int], hello: dict[str, Any], seconds: float = 60.0
) -> socket.socket:
    """A connection to the hub, which may not listen yet."""
    end, pause = time.monotonic() + seconds, 0.01
    while True:
        error: Any = "the job there is over"
        try:
            if (connection := _greeted(address, hello)) is not None:
                return connection
        except OSError as refused:
            error = refused
        if time.monotonic() > end:
            raise DistributedError(
                f"init: nothing listens at {address[0]}:{address[1]} ({error}), "
                f"for {seconds:g} s. Look whether MASTER_ADDR and MASTER_PORT are "
                f"the same for every rank, and rank 0 has started."
            ) from None
        time.sleep(pause)
        pause = min(2 * pause, 0.5)


def _greeted(address: tuple[str, int], hello: dict[str, Any]) -> socket.socket | None:
    """A connection; None of a hub that is about to end. To a rank a hub says so."""
    connection = socket.create_connection(address, timeout=5.0)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(json.dumps(hello).encode() + b"\n")
    if hello["kind"] in ("pmi", "watch"):
        said = b""
        while not said.endswith(b"\n"):  # byte by byte: what follows is others'
            byte = connection.recv(1)
            if not byte:
                return None
            said += byte
        if b"refused" in said:
            raise DistributedError(f"init: {address} refuses: {said.decode().strip()}")
    connection.settimeout(None)
    return connection


class Watch:
    """What is known of the other ranks.

    Attributes:
        trouble: why nobody may wait any longer; None while all is well.
        lost: why, by the rank, a process is gone.
        leaving: the ranks whose programs are over, and since when.
        state: what this rank waits for, for the others' messages; None for nothing.
    """

    def __init__(self, connection: socket.socket | None = None) -> None:
        self.trouble: str | None = None
        self.lost: dict[int, str] = {}
        self.leaving: dict[int, float] = {}
        self.state: Callable[[], str] | None = None
        self.table: dict[int, str] | None = None
        self.ended = False
        self.process = os.getpid()
        self.connection = connection
        self.heard = time.monotonic()
        if connection is not None:
            threading.Thread(target=self._listen, daemon=True).start()
            threading.Thread(target=self._speak, daemon=True).start()

    def send(self, **message: Any) -> None:
        """Tell the hub something, if there is one."""
        if self.connection is not None and os.getpid() == self.process:
            with contextlib.suppress(OSError):
                self.connection.sendall(json.dumps(message).encode() + b"\n")

    def check(self, where: str, members: Any) -> None:
        """Raise if one of the ranks that this one waits for is gone."""
        if self.trouble is not None:
            raise RankLostError(
                f"{where}: {self.trouble}. Look at what that rank has written."
            )
        for rank, since in self.leaving.items():
            if rank in members and time.monotonic() - since > PATIENCE:
                raise RankLostError(
                    f"{where}: rank {rank} has left, its program is over. Call the "
                    f"same collectives on every rank."
                )

    def states(self, seconds: float = 1.0) -> dict[int, str]:
        """What each rank has last said that it waits for."""
        self._report()
        if self.connection is not None:
            time.sleep(0.3)  # the others' time limits end about now, and they report
            self.table = None
            self.send(ask=True)
            end = time.monotonic() + seconds
            while self.table is None and time.monotonic() < end:
                time.sleep(0.01)
        return self.table or {}

    def _report(self) -> None:
        state = self.state
        self.send(state=state() if state is not None else None)

    def _speak(self) -> None:
        while not self.ended:
            self._report()
            if time.monotonic() - self.heard > LIMIT:
                self._fail(f"nothing was heard of the launcher for {LIMIT:g} s")
            time.sleep(1.0)

    def _listen(self) -> None:
        connection: Any = self.connection
        with contextlib.suppress(OSError, ValueError):
            for line in connection.makefile("rb"):
                self.heard = time.monotonic()
                message = json.loads(line)
                if "lost" in message:
                    rank, why = message["lost"], message["why"]
                    self.lost[rank] = why
                    self._fail(f"rank {rank} is lost: {why}")
                elif "leaving" in message:
                    self.leaving[message["leaving"]] = time.monotonic()
                elif "table" in message:
                    table = message["table"].items()
                    self.table = {int(r): s for r, s in table}
        if not self.ended:
            self._fail("the connection to the launcher, or to rank 0, has ended")

    def _fail(self, why: str) -> None:
        self.trouble = self.trouble or why
