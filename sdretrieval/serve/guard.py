"""Who may ask, and how much: an ASGI middleware around everything that is served.

Host      an address, ``localhost``, or a name that was given: whoever rebinds a name of theirs to this machine
          comes with that name
Origin    the same place as Host, where a browser says it; pages of other sites get nothing
token     where there is one, in ``Authorization: Bearer …``; the page's own files hold no data and need none
size      a body, and an address with its query, of bounded length; a body that comes too slowly is given up
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from sdretrieval.core.safe_json import is_deep

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

BODY_BYTES = 64 << 10
IMPORT_BYTES = 16 << 20  # of a file of judgments or a run
QUERY_BYTES = 16 << 10
BODY_SECONDS = 10.0
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Refused(Exception):
    """Why a request is not answered, as HTTP says it."""

    def __init__(self, status: int, error: str, remedy: str = "") -> None:
        self.status, self.error, self.remedy = status, error, remedy


class Guard:
    """Checks each request before the app sees it, and adds headers to each answer."""

    def __init__(self, app: Any, *, hosts: Collection[str] = (), token: str | None = None) -> None:
        self.app, self.hosts, self.token = app, frozenset(name.lower() for name in hosts), token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return  # no websockets

        async def guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message.get("headers", [])}
                extra = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in given]
                message["headers"] = [*message.get("headers", []), *extra]
            await send(message)

        try:
            self.check(scope)
            receive = await _whole_body(scope, receive)
        except Refused as refused:
            await _refuse(refused, guarded)
            return
        await self.app(scope, receive, guarded)

    def check(self, scope: Scope) -> None:
        """Raise :class:`Refused` where a request may not be answered."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        names = [name for name, _ in scope["headers"]]
        host = headers.get("host", "")
        if names.count(b"host") != 1 or not self._is_ours(host):
            raise Refused(
                421, f"this server does not answer for the host {host[:80]!r}", "Use its address, or localhost."
            )
        origin = headers.get("origin")
        if origin is not None and not _is_same(origin, host):
            raise Refused(403, "requests from pages of other sites are refused")
        is_page = scope["path"] in ("/", "/judge") or scope["path"].startswith("/page/")
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not is_page:
            raise Refused(403, "requests from pages of other sites are refused")
        if len(scope.get("query_string", b"")) + len(scope["path"]) > QUERY_BYTES:
            raise Refused(413, f"the address is longer than {QUERY_BYTES} bytes", "Send long requests by POST.")
        if self.token is not None and not is_page:
            given = headers.get("authorization", "")
            if not hmac.compare_digest(given.encode("latin-1"), f"Bearer {self.token}".encode()):
                raise Refused(401, "a token is needed", "Send the header Authorization: Bearer TOKEN.")

    def _is_ours(self, host: str) -> bool:
        name = host_name(host)
        return name is not None and (name in self.hosts or name == "localhost" or _is_address(name))


def host_name(host: str) -> str | None:
    """The name in a Host header, without its port; None where it is not one."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    if not parts.hostname or parts.netloc != host or "@" in host or parts.path or parts.query or parts.fragment:
        return None
    return parts.hostname.lower()


def is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_same(origin: str, host: str) -> bool:
    return origin.lower() in (f"http://{host.lower()}", f"https://{host.lower()}")


async def _whole_body(scope: Scope, receive: Receive) -> Receive:
    """The body, read at once: within its bounds, before anything is done for the request."""
    body, more = b"", True
    is_import = scope["path"].endswith("/import") and "/judging/" in scope["path"]
    most = IMPORT_BYTES if is_import else BODY_BYTES
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    break
                body, more = body + message.get("body", b""), message.get("more_body", False)
                if len(body) > most:
                    raise Refused(413, f"the request is larger than {most} bytes")
    except TimeoutError:
        raise Refused(408, f"the request did not arrive within {BODY_SECONDS:g} s") from None
    if is_deep(body.decode(json.detect_encoding(body), "replace")):  # as json.loads will decode it
        raise Refused(400, "the request is nested too deeply")
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> MutableMapping[str, Any]:
        return waiting.pop() if waiting else await receive()

    return again


async def _refuse(refused: Refused, send: Send) -> None:
    body = json.dumps({"error": refused.error, "remedy": refused.remedy}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
