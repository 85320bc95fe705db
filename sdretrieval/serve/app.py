"""The server: REST under /v1 in the form that Anserini's users know, the page, and MCP at /mcp.

Ranking runs in a few threads of its own. Each takes one request at a time; a few more may wait, and beyond that the
answer is 429. Reading requests and sending answers is asynchronous: a slow client holds up nobody but itself.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib import resources
from math import inf
from typing import Annotated, Any, Literal, TypeVar

from fastapi import FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from sdretrieval import __version__
from sdretrieval.core.errors import InputError, ParameterError, SdretrievalError
from sdretrieval.core.parameters import setting_pairs
from sdretrieval.ranking.interactive import Index
from sdretrieval.ranking.interactive import Request as Asked
from sdretrieval.serve import answers
from sdretrieval.serve.guard import Guard

T = TypeVar("T")
MOST_HITS = 1000
MOST_SETTING = 1000  # of whole-number parameters: feedback documents and words
MOST_JUDGED = 200
WAITING = 32  # requests that may wait for a thread
SECONDS = 30.0  # after which an answer is given up
PAGE_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
Texts = Annotated[list[Annotated[str, Field(max_length=500)]], Field(max_length=MOST_JUDGED)]
IndexName = Annotated[str, Path(max_length=200, description="as /v1/indexes lists it")]


class Asking(BaseModel):
    """What GET and POST have in common."""

    model_config = ConfigDict(extra="forbid")

    q: str = Field("", max_length=4000, description="the query")
    query: str = Field("", max_length=4000, description="another name of q")
    hits: int = Field(10, ge=1, le=MOST_HITS)
    model: str = Field("blend", max_length=100)
    as_of: str | None = Field(None, max_length=40, description="the collection as it was before this time")
    since: str | None = Field(None, max_length=40)
    until: str | None = Field(None, max_length=40)
    time_prior: Literal["none", "auto", "recency", "density"] = "none"
    time_weight: float | None = Field(None, ge=0, le=100, allow_inf_nan=False)
    bandwidth: str = Field("auto", max_length=20, description="days, or with a unit: 12h, 7d, 2w")
    relevant: Texts = []
    nonrelevant: Texts = []
    drop: Texts = []
    snippets: bool = True
    docid: str | None = Field(None, max_length=500, description="whose score is explained")
    format: Literal["run", "expansion"] = "run"

    def request(self, settings: Mapping[str, Any], weights: Mapping[str, float]) -> Asked:
        query = self.q or self.query
        if not query.strip():
            raise ParameterError("no query was given", remedy="Give it as q.")
        names = ("model", "as_of", "since", "until", "time_prior", "time_weight", "bandwidth")
        lists = ("relevant", "nonrelevant", "drop")
        given = {name: getattr(self, name) for name in (*names, *lists)}
        asked = Asked.of(query, k=self.hits, settings=_bounded(settings), weights=weights, **given)
        if asked.bandwidth != "auto" and not 0 < float(asked.bandwidth) < inf:
            raise ParameterError(f"bandwidth must be positive; got {self.bandwidth!r}", remedy="As in 7d, or auto.")
        return asked


class AskingByAddress(Asking):
    set: Texts = Field([], description="parameters of the model: name=value")
    weights: Texts = Field([], description="weights of words: term=value")

    def asked(self) -> Asked:
        return self.request(dict(setting_pairs(self.set)), {k: _weight(k, v) for k, v in setting_pairs(self.weights)})


class AskingByBody(Asking):
    set: dict[str, int | float | bool | str | None] = Field({}, max_length=50)
    weights: dict[str, Annotated[float, Field(allow_inf_nan=False)]] = Field({}, max_length=MOST_JUDGED)

    def asked(self) -> Asked:
        return self.request(self.set, self.weights)


ByAddress = Annotated[AskingByAddress, Query()]


class Problem(BaseModel):
    """Every error."""

    error: str
    remedy: str = ""


class Workers:
    """The threads that rank, and how many requests may wait for them."""

    def __init__(self, threads: int, waiting: int = WAITING, seconds: float = SECONDS) -> None:
        self.pool = ThreadPoolExecutor(threads, thread_name_prefix="rank")
        self.room, self.seconds = threads + waiting, seconds

    async def do(self, work: Callable[..., T], *given: Any) -> T:
        if self.room <= 0:
            raise HTTPException(429, "too many requests at once")
        self.room -= 1
        running = asyncio.get_running_loop().run_in_executor(self.pool, lambda: work(*given))
        running.add_done_callback(self._done)  # and not before: a thread cannot be stopped
        try:
            return await asyncio.wait_for(asyncio.shield(running), self.seconds)
        except TimeoutError:
            raise HTTPException(503, f"no answer within {self.seconds:g} s") from None

    def _done(self, running: asyncio.Future) -> None:
        self.room += 1
        if not running.cancelled():
            running.exception()  # told to whoever still waits


def make_app(
    indexes: Sequence[Index],
    *,
    token: str | None = None,
    hosts: Sequence[str] = (),
    threads: int | None = None,
    waiting: int = WAITING,
    seconds: float = SECONDS,
) -> Guard:
    """The app, guarded.

    Parameters
    ----------
    indexes : sequence of Index
        What is served; an index opened with ``as_of`` has a ceiling that no request lifts.
    token : str, optional
        What every request for data must carry.
    hosts : sequence of str
        Names that the server answers for, besides ``localhost`` and addresses.
    threads, waiting, seconds
        How many requests are ranked at once, how many more may wait, and how long an answer may take.
    """
    names = [index.name for index in indexes]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ParameterError(f"two indexes are named {twice[0]!r}", remedy="Rename the folder of one.")
    by_name, workers = dict(zip(names, indexes, strict=True)), Workers(threads or os.cpu_count() or 1, waiting, seconds)

    @asynccontextmanager
    async def lifespan(app: FastAPI):
        yield
        workers.pool.shutdown(wait=False, cancel_futures=True)

    problems: dict[int | str, dict[str, Any]] = {
        status: {"model": Problem} for status in (400, 401, 403, 404, 413, 421, 429, 503)
    }
    app = FastAPI(
        title="sdretrieval",
        version=__version__,
        description="Search with feedback, time and explanations.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=problems,
    )

    def opened(name: str) -> Index:
        if name not in by_name:
            raise HTTPException(404, f"no index {name!r}")
        return by_name[name]

    async def answered(work: Callable[..., Any], *given: Any) -> JSONResponse:
        began = time.perf_counter()
        body = await workers.do(lambda: JSONResponse(work(*given)))
        body.headers["server-timing"] = f"total;dur={1000 * (time.perf_counter() - began):.1f}"
        return body

    def search(index: Index, asking: AskingByAddress | AskingByBody) -> dict[str, Any]:
        return answers.search_answer(index, asking.asked(), snippets=asking.snippets)

    def explain(index: Index, asking: AskingByAddress | AskingByBody) -> dict[str, Any]:
        if asking.docid is None:
            raise ParameterError("no docid was given", remedy="Give that of the document to explain.")
        return answers.explain_answer(index, asking.asked(), asking.docid)

    def download(index: Index, asking: AskingByAddress | AskingByBody) -> str:
        text = answers.run_text if asking.format == "run" else answers.expansion_text
        return text(index, asking.asked())

    @app.get("/v1/indexes", summary="The indexes served, their models and parameters")
    async def get_indexes() -> Any:
        return await answered(lambda: [answers.index_facts(index) for index in indexes])

    @app.get("/v1/{index}/search", summary="Search")
    async def get_search(index: IndexName, asking: ByAddress) -> Any:
        return await answered(search, opened(index), asking)

    @app.post("/v1/{index}/search", summary="Search, with feedback and edited words")
    async def post_search(index: IndexName, asking: AskingByBody) -> Any:
        return await answered(search, opened(index), asking)

    @app.get("/v1/{index}/explain", summary="A document's score, word by word")
    async def get_explain(index: IndexName, asking: ByAddress) -> Any:
        return await answered(explain, opened(index), asking)

    @app.post("/v1/{index}/explain", summary="A document's score, word by word")
    async def post_explain(index: IndexName, asking: AskingByBody) -> Any:
        return await answered(explain, opened(index), asking)

    @app.post("/v1/{index}/run", summary="The hits as a TREC run, or the query as an expansion file")
    async def post_run(index: IndexName, asking: AskingByBody) -> Any:
        text = await workers.do(download, opened(index), asking)
        name = "run.txt" if asking.format == "run" else "expansion.jsonl"
        return PlainTextResponse(text, headers={"content-disposition": f'attachment; filename="{name}"'})

    @app.get("/v1/{index}/documents/{docid:path}", summary="A document's text")
    async def get_document(index: IndexName, docid: Annotated[str, Path(max_length=500)]) -> Any:
        return await answered(answers.document_answer, opened(index), docid)

    @app.get("/", include_in_schema=False)
    async def get_page() -> Response:
        return page_file("index.html")

    @app.get("/page/{file}", include_in_schema=False)
    async def get_page_file(file: str) -> Response:
        return page_file(file)

    app.add_exception_handler(SdretrievalError, _told)
    app.add_exception_handler(RequestValidationError, _told)
    app.add_exception_handler(HTTPException, _told)
    return Guard(app, hosts=hosts, token=token)


def page_file(name: str) -> Response:
    """A file of the page; those that are there, and no other."""
    folder = resources.files("sdretrieval.serve") / "page"
    kind = PAGE_TYPES.get(name.rpartition(".")[2])
    if kind is None or name not in {file.name for file in folder.iterdir()}:
        raise HTTPException(404, f"no page {name[:80]!r}")
    return Response((folder / name).read_bytes(), media_type=f"{kind}; charset=utf-8")


async def _told(request: Request, error: Exception) -> Response:
    """Any error as {"error": …, "remedy": …}."""
    status, text, remedy = 400, str(error), ""
    if isinstance(error, HTTPException):
        status, text = error.status_code, str(error.detail)
        remedy = "Try again in a moment." if status in (429, 503) else ""
    elif isinstance(error, RequestValidationError):
        first = error.errors()[0]
        text = f"{'.'.join(map(str, first['loc'][1:])) or 'the request'}: {first['msg']}"
    elif isinstance(error, SdretrievalError):
        status = 404 if isinstance(error, InputError) and "docid" in error.message else 400
        text, remedy = error.message, error.remedy or ""
    headers = {"retry-after": "1"} if status in (429, 503) else {}
    return JSONResponse({"error": text, "remedy": remedy}, status_code=status, headers=headers)


def _bounded(settings: Mapping[str, Any]) -> dict[str, Any]:
    for name, value in settings.items():
        try:
            number = float(value)
        except (TypeError, ValueError):
            continue
        if name.startswith("fb_") and number > MOST_SETTING:
            raise ParameterError(f"{name} is at most {MOST_SETTING} here; got {value}")
    return dict(settings)


def _weight(word: str, text: Any) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(f"the weight of {word!r} must be a number; got {text!r}") from None
