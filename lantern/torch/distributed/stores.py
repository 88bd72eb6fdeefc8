"""Stores of keys, which the processes share: at the hub, in a file, in this process."""

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from lantern.blocks import between_turns, mutex
from lantern.distributed.watch import connect
from lantern.errors import DistributedError, EagerError
from lantern.files import write_file

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]


class Store:
    """Values by keys: what every store can do, by three calls of its own.

    Attributes:
        timeout: how long ``get`` and ``wait`` wait for keys.

    Example:
        >>> import lantern.torch.distributed as dist
        >>> store = dist.HashStore()
        >>> isinstance(store, dist.Store)
        True
        >>> store.add("n", 2), store.add("n", 3)
        (2, 5)
        >>> store.get("n")
        b'5'
    """

    timeout = timedelta(seconds=300)

    def _call(self, **call: Any) -> Any:
        raise NotImplementedError

    def set_timeout(self, timeout: timedelta) -> None:
        """Say how long to wait for keys."""
        self.timeout = timeout

    def set(self, key: str, value: Any) -> None:
        """Keep a value."""
        self._call(do="set", key=key, value=_text(value))

    def get(self, key: str) -> bytes:
        """A value, as soon as there is one."""
        return self._waited([key], self.timeout)[0]

    def add(self, key: str, amount: int) -> int:
        """Add to a number, which begins at 0: the sum."""
        return int(self._call(do="add", key=key, value=amount))

    def append(self, key: str, value: Any) -> None:
        """Let a value be longer."""
        self._call(do="append", key=key, value=_text(value))

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Keep a value in place of an expected one: what is kept now."""
        expected, value = _text(expected_value), _text(desired_value)
        call = self._call(do="compare", key=key, expected=expected, value=value)
        return _bytes(call or "")

    def check(self, keys: Sequence[str]) -> bool:
        """Whether there are values for all of these keys."""
        return bool(self._call(do="has", keys=list(keys)))

    def delete_key(self, key: str) -> bool:
        """Forget a value: whether there was one."""
        return bool(self._call(do="delete", key=key))

    def num_keys(self) -> int:
        """How many values there are."""
        return int(self._call(do="count"))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """Several values."""
        return self._waited(list(keys), self.timeout)

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        """Keep several values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until there are values for all of these keys."""
        self._waited(list(keys), timeout or self.timeout)

    def has_extended_api(self) -> bool:
        """Whether there are ``append``, ``multi_get`` and ``multi_set``: yes."""
        return True

    def _waited(self, keys: list[str], limit: timedelta) -> list[bytes]:
        seconds = limit.total_seconds()
        found = self._call(do="wait", keys=keys, seconds=seconds)
        if isinstance(found, dict):
            raise DistributedError(
                f"wait timeout after {int(1000 * seconds)}ms, keys: "
                f"{', '.join(found['missing'])}"
            )
        return [_bytes(value) for value in found]


def _text(value: Any) -> str:
    data = value.encode() if isinstance(value, str) else bytes(value)
    return data.decode("latin-1")


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")


class TCPStore(Store):
    """A store at one of the processes, which the others reach by its address.

    Args:
        host_name: where it is.
        port: 0 for any that is free.
        world_size: how many processes there are.
        is_master: whether it is here.
        timeout: how long ``get`` and ``wait`` wait for keys.
        wait_for_workers: whether to wait until all processes are here.

    Example:
        >>> import lantern.torch as torch
        >>> store = torch.distributed.TCPStore("127.0.0.1", 0, 1, True)
        >>> store.set("a", "1")
        >>> store.get("a")
        b'1'
        >>> store.close()
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300),
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: Any = None,
        use_libuv: bool = True,
        token: str | None = None,
    ) -> None:
        self.host, self.port, self.timeout = host_name, port, timeout
        self.token, self.lock, self.closed = token or "", mutex(), False
        self.loop: Any = None
        if is_master:
            self._serve()
        seconds = timeout.total_seconds()
        self._connect(seconds)
        if wait_for_workers and world_size:
            self._call(do="add", key="lantern/workers", value=1)
            end = time.monotonic() + seconds
            while self.add("lantern/workers", 0) < world_size:
                if time.monotonic() > end:
                    raise DistributedError(
                        f"TCPStore: {world_size} processes were to come here, and "
                        f"{self.add('lantern/workers', 0)} have within {seconds:g} s."
                    )
                time.sleep(0.01)

    def _serve(self) -> None:
        """Let a thread be the hub."""
        import asyncio  # a rank that keeps no store starts sooner without

        from lantern.distributed.hub import Hub

        ready, failed = threading.Event(), list[Exception]()
        self.loop = loop = asyncio.new_event_loop()

        async def begin() -> None:
            try:
                self.server = await Hub().listen(self.host, self.port)
                self.port = self.server.sockets[0].getsockname()[1]
            except OSError as error:
                failed.append(error)
            ready.set()

        def run() -> None:
            self.beginning = loop.create_task(begin())
            loop.run_forever()
            loop.close()

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()
        ready.wait()
        if failed:
            raise EagerError(
                f"The server socket has failed to listen on any local network address. "
                f"port: {self.port}: {failed[0]}. Choose another port."
            )

    def _connect(self, seconds: float) -> None:
        hello = {"kind": "store", "token": self.token}
        self.connection: socket.socket = connect((self.host, self.port), hello, seconds)
        self.lines = self.connection.makefile("rb")
        self.in_step = True

    def _call(self, **call: Any) -> Any:
        """Send a call, and read its answer.

        An interrupt between the two leaves an answer on its way, which the next call
        would take for its own: so that has a new connection.
        """
        with self.lock:
            if self.closed:
                raise DistributedError("TCPStore: it has been closed. Make another.")
            try:
                if not self.in_step:
                    with self.connection, self.lines:
                        self._connect(0)
                self.in_step = False
                self.connection.sendall(json.dumps(call).encode() + b"\n")
                line = self.lines.readline()
            except (ConnectionError, DistributedError):
                line = b""
            self.in_step = True
        if not line:
            raise DistributedError("TCPStore: the process that keeps it has ended.")
        answer = json.loads(line)
        if "refused" in answer:
            raise DistributedError(f"TCPStore: refused: {answer['refused']}.")
        return (
            answer if "missing" in answer else answer.get("values", answer.get("value"))
        )

    def close(self) -> None:
        """End the connection, and the store, if it is here."""
        self.closed = True
        self.lines.close()
        self.connection.close()
        loop: Any = self.loop
        if loop is not None:
            import asyncio

            asyncio.run_coroutine_threadsafe(self._end(), loop).result(5)
            loop.call_soon_threadsafe(loop.stop)
            self.thread.join(5)

    async def _end(self) -> None:
        """End what runs in the hub's thread."""
        import asyncio

        self.server.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class HashStore(Store):
    """A store in this process, for its threads.

    Example:
        >>> import lantern.torch as torch
        >>> store = torch.distributed.HashStore()
        >>> store.add("a", 2)
        2
    """

    def __init__(self) -> None:
        self.values: dict[str, str] = {}
        self.changed = threading.Condition()

    def _call(self, **call: Any) -> Any:
        with self.changed:
            if call["do"] == "wait":
                keys = call["keys"]
                self.changed.wait_for(
                    lambda: self.values.keys() >= set(keys), call["seconds"]
                )
                missing = [key for key in keys if key not in self.values]
                return (
                    {"missing": missing} if missing else [self.values[k] for k in keys]
                )
            answer = changed(self.values, call)
            self.changed.notify_all()
            return answer


def changed(values: dict[str, str], call: Any) -> Any:
    """What a call of a store answers, once it has changed the values."""
    what, key = call["do"], call.get("key", "")
    if what == "count":
        return len(values)
    if what == "has":
        return values.keys() >= set(call["keys"])
    if what == "delete":
        return values.pop(key, None) is not None
    old = values.get(key)
    if what == "add":
        values[key] = str(int(old or 0) + call["value"])
    elif what == "append":
        values[key] = (old or "") + call["value"]
    elif what == "set" or (old or "") == call["expected"]:
        values[key] = call["value"]
    return values.get(key, call.get("expected"))


class FileStore(Store):
    """A store in a file, which is written whole or not at all.

    Args:
        file_name: the file.
        world_size: how many processes there are.

    Example:
        >>> import os, tempfile
        >>> import lantern.torch as torch
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = torch.distributed.FileStore(os.path.join(folder, "a"), 1)
        ...     store.set("key", "value")
        ...     store.get("key")
        b'value'
    """

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self.path = Path(file_name)

    @between_turns
    def _call(self, **call: Any) -> Any:
        if call["do"] == "wait":
            end = time.monotonic() + call["seconds"]
            while True:
                values = self._values()
                missing = [key for key in call["keys"] if key not in values]
                if not missing:
                    return [values[key] for key in call["keys"]]
                if time.monotonic() > end:
                    return {"missing": missing}
                time.sleep(0.01)
        with self._alone():
            values = self._values()
            answer = changed(values, call)
            if call["do"] not in ("count", "has"):
                write_file("FileStore", self.path, json.dumps(values).encode())
            return answer

    def _values(self) -> Any:
        return json.loads(self.path.read_bytes() or b"{}") if self.path.exists() else {}

    @contextlib.contextmanager
    def _alone(self) -> Any:
        import fcntl

        with open(f"{self.path}.lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class PrefixStore(Store):
    """A store whose keys all begin with the same word, in another store.

    Args:
        prefix: the word.
        store: the other store.

    Example:
        >>> import lantern.torch as torch
        >>> store = torch.distributed.HashStore()
        >>> torch.distributed.PrefixStore("a", store).set("b", "1")
        >>> store.get("a/b")
        b'1'
    """

    def __init__(self, prefix: str, store: Store) -> None:
        self.prefix, self.underlying_store = prefix, store
        self.timeout = store.timeout

    def _call(self, **call: Any) -> Any:
        if "key" in call:
            call["key"] = f"{self.prefix}/{call['key']}"
        if "keys" in call:
            call["keys"] = [f"{self.prefix}/{key}" for key in call["keys"]]
        return self.underlying_store._call(**call)


_default: list[Store] = []


def default_store() -> Store:
    """The store of the job, at its hub; in one process, of the process."""
    if not _default:
        if os.environ.get("WORLD_SIZE", "1") == "1" or "MASTER_PORT" not in os.environ:
            _default.append(HashStore())
        else:
            host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
            token = os.environ.get("TORCHELASTIC_RUN_ID", "")
            store = TCPStore(host, port, token=token)
            _default.append(PrefixStore(os.environ.get("LANTERN_JOB", "job"), store))
    return _default[0]
