"""uvicorn, with patience for slow clients that ends."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sdretrieval.core.errors import ParameterError

CONNECTIONS = 256
HEADER_SECONDS = 10.0
IDLE_SECONDS = 15


class Patient(H11Protocol):
    """Hangs up on a client that has not sent a request's headers after a while."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.loop.call_later(HEADER_SECONDS, self._check, None)

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is before and (before is None or before.response_complete):  # a request has only begun
            self.loop.call_later(HEADER_SECONDS, self._check, before)

    def _check(self, before: Any) -> None:
        if self.cycle is before:
            self.transport.close()


def serve(app: Any, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serve until interrupted; ``say`` is told the address."""
    listening = _listen(host, port)
    name = f"[{host}]" if ":" in host else host
    say(f"http://{name}:{listening.getsockname()[1]}")
    config = uvicorn.Config(
        app,
        http=Patient,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=3,
        h11_max_incomplete_event_size=64 << 10,
    )
    uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        raise ParameterError(
            f"cannot listen on {host}:{port}: {error.strerror or error}", remedy="Choose another --port (0 for any)."
        ) from None
