"""What all routes share: an index by its name, and an answer made in a thread that ranks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from fastapi import Path
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from sdretrieval.ranking.interactive import Index
from sdretrieval.serve.workers import Workers

IndexName = Annotated[str, Path(max_length=200, description="as /v1/indexes lists it")]


class Answering:
    """The indexes served, and the threads that rank."""

    def __init__(self, indexes: Mapping[str, Index], workers: Workers) -> None:
        self.indexes, self.workers = indexes, workers

    def index(self, name: str) -> Index:
        if name not in self.indexes:
            raise HTTPException(404, f"no index {name!r}")
        return self.indexes[name]

    async def json(self, work: Callable[[], Any]) -> JSONResponse:
        """The work's result as JSON; how long it took is in a header."""
        began = time.perf_counter()
        answer = await self.workers.do(lambda: JSONResponse(work()))
        answer.headers["server-timing"] = f"total;dur={1000 * (time.perf_counter() - began):.1f}"
        return answer
