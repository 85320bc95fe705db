"""``sdretrieval serve``: search by typing, in the browser, over REST or by MCP."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from typing import TYPE_CHECKING

from sdretrieval.cli.value_types import positive

if TYPE_CHECKING:
    from sdretrieval.ranking.interactive import Index

EXAMPLE = """\
examples:
  sdretrieval serve --index indexes/mine
  sdretrieval serve --index indexes/a --index indexes/b --as-of 2019-12-31
  sdretrieval serve --index indexes/mine --host 0.0.0.0
  sdretrieval serve --index indexes/mine --mcp

The first prints the address to open; with --host it asks for a token, which it prints; --mcp speaks on standard input
and output.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    add = parser.add_argument
    add("--index", action="append", required=True, metavar="DIR", help="Lucene index; may be repeated")
    add("--as-of", metavar="DATE", help="a ceiling: nothing of that time or later is seen by any request")
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="to listen on (default: this machine alone)")
    add("--port", type=int, default=8080, metavar="N", help="default: %(default)s; 0 takes a free one")
    add("--token", metavar="TEXT", help="that requests must carry; made up for other hosts (or set SDRETRIEVAL_TOKEN)")
    add("--allow-host", action="append", default=[], metavar="NAME", help="a name this machine is reached by")
    add("--threads", type=positive, metavar="N", help="requests ranked at once (default: one for each core)")
    add("--mcp", action="store_true", help="speak MCP on standard input and output instead of HTTP")


def run(args: argparse.Namespace) -> int:
    from sdretrieval.core.errors import ParameterError
    from sdretrieval.ranking.interactive import Index
    from sdretrieval.serve.guard import is_loopback
    from sdretrieval.serve.workers import Workers

    if not 0 <= args.port < 1 << 16:
        raise ParameterError(f"--port must be from 0 to 65535; got {args.port}")
    token = args.token or os.environ.get("SDRETRIEVAL_TOKEN")
    if token is None and not is_loopback(args.host):
        token = secrets.token_urlsafe(24)
    indexes = [Index(path, as_of=args.as_of) for path in args.index]
    for index in indexes:
        _warm_up(index)
        print(f"serving {index!r}", file=sys.stderr)
    if args.mcp:
        from sdretrieval.serve.app import named
        from sdretrieval.serve.tools import make_tools

        make_tools(named(indexes), Workers(args.threads)).run("stdio")
        return 0
    from sdretrieval.serve.app import make_app
    from sdretrieval.serve.listening import serve

    app = make_app(indexes, token=token, hosts=[args.host, *args.allow_host], workers=Workers(args.threads))
    serve(app, args.host, args.port, lambda address: _say(address, token))
    return 0


def _warm_up(index: Index) -> None:
    """Load Java and the compiled loops before the first request, which might be given up for the time they take."""
    text = index.document(0).body[:200] if len(index) else ""
    for prior in ("none", "auto", "density") if index.span else ("none",):
        index.search(text.strip() or "warm up", k=1, time_prior=prior)


def _say(address: str, token: str | None) -> None:
    told = "" if token is None else f"#token={token}"
    print(f"open {address}/{told}   (Ctrl-C ends it)", file=sys.stderr, flush=True)
