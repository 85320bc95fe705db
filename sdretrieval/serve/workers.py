"""The threads that rank. Each takes one request at a time; a few more may wait, and beyond that none is taken on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
WAITING = 32  # requests that may wait for a thread
SECONDS = 30.0  # after which an answer is given up


class Busy(Exception):
    """Too many requests at once, or one that takes too long."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(error)
        self.status = status


class Workers:
    """A few threads that live as long as the server: each is known to Java, so none may come and go."""

    def __init__(self, threads: int | None = None, *, waiting: int = WAITING, seconds: float = SECONDS) -> None:
        threads = threads or os.cpu_count() or 1
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="rank")
        self.room, self.seconds = threads + waiting, seconds

    async def do(self, work: Callable[..., T], *given: Any) -> T:
        """The work's result; :class:`Busy` where there is no room, or it takes too long."""
        if self.room <= 0:
            raise Busy(429, "too many requests at once")
        self.room -= 1
        running = asyncio.get_running_loop().run_in_executor(self.pool, work, *given)
        running.add_done_callback(self._done)  # and not before: a thread cannot be stopped
        try:
            return await asyncio.wait_for(asyncio.shield(running), self.seconds)
        except TimeoutError:
            raise Busy(503, f"no answer within {self.seconds:g} s") from None

    def _done(self, running: asyncio.Future) -> None:
        self.room += 1
        if not running.cancelled():
            running.exception()  # nobody may be waiting for it any more

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
