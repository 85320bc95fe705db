"""The server: REST under /v1 in the form that Anserini's users know, the page, and MCP at /mcp.

Ranking runs in threads of its own (workers.py). Reading requests and sending answers is asynchronous: a slow client
holds up nobody but itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import resources
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from sdretrieval import __version__
from sdretrieval.core.errors import ParameterError, SdretrievalError
from sdretrieval.ranking.interactive import Index, NoDocument
from sdretrieval.serve import answers
from sdretrieval.serve.answering import Answering, IndexName
from sdretrieval.serve.asking import AskingByAddress, AskingByBody
from sdretrieval.serve.guard import Guard
from sdretrieval.serve.judging import judging
from sdretrieval.serve.tools import make_tools
from sdretrieval.serve.workers import Busy, Workers

PAGE_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
ByAddress = Annotated[AskingByAddress, Query()]
AnyAsking = AskingByAddress | AskingByBody


class Problem(BaseModel):
    """Every error."""

    error: str
    remedy: str = ""


def make_app(
    indexes: Sequence[Index], *, token: str | None = None, hosts: Sequence[str] = (), workers: Workers | None = None
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
    workers : Workers, optional
        The threads that rank.
    """
    by_name, workers = named(indexes), workers or Workers()
    tools = make_tools(by_name, workers)
    over_http = tools.streamable_http_app(stateless_http=True, json_response=True, host="")  # the guard checks hosts

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with tools.session_manager.run():
            yield
        workers.close()

    app = FastAPI(
        title="sdretrieval",
        version=__version__,
        description="Search with feedback, time and explanations. Errors are `{error, remedy}`.",
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        responses={status: {"model": Problem} for status in (400, 401, 403, 404, 413, 421, 429, 503)},
    )
    answering = Answering(by_name, workers)
    app.include_router(rest(answering))
    app.include_router(judging(answering))
    app.include_router(page())
    app.router.routes.extend(over_http.routes)
    for kind in (SdretrievalError, RequestValidationError, HTTPException, Busy, Exception):
        app.add_exception_handler(kind, _told)
    return Guard(app, hosts=hosts, token=token)


def named(indexes: Sequence[Index]) -> dict[str, Index]:
    """Indexes by their names."""
    by_name: dict[str, Index] = {}
    for index in indexes:
        if index.name in by_name:
            raise ParameterError(f"two indexes are named {index.name!r}", remedy="Rename the folder of one.")
        by_name[index.name] = index
    return by_name


def rest(answering: Answering) -> APIRouter:
    """/v1"""
    router = APIRouter(prefix="/v1")
    opened, answered = answering.index, answering.json

    async def search(name: str, asking: AnyAsking) -> JSONResponse:
        index = opened(name)
        return await answered(lambda: answers.search_answer(index, asking.asked(), snippets=asking.snippets))

    async def explain(name: str, asking: AnyAsking) -> JSONResponse:
        index = opened(name)
        return await answered(lambda: answers.explain_answer(index, asking.asked(), asking.document))

    @router.get("/indexes", summary="The indexes served, their models and parameters")
    async def get_indexes() -> Any:
        return await answered(lambda: [answers.index_facts(index) for index in answering.indexes.values()])

    @router.get("/{index}/search", summary="Search")
    async def get_search(index: IndexName, asking: ByAddress) -> Any:
        return await search(index, asking)

    @router.post("/{index}/search", summary="Search, with feedback and edited words")
    async def post_search(index: IndexName, asking: AskingByBody) -> Any:
        return await search(index, asking)

    @router.get("/{index}/explain", summary="A document's score, word by word")
    async def get_explain(index: IndexName, asking: ByAddress) -> Any:
        return await explain(index, asking)

    @router.post("/{index}/explain", summary="A document's score, word by word")
    async def post_explain(index: IndexName, asking: AskingByBody) -> Any:
        return await explain(index, asking)

    @router.post("/{index}/run", summary="The hits as a TREC run, or the query as an expansion file")
    async def post_run(index: IndexName, asking: AskingByBody) -> Any:
        searched, text = opened(index), answers.run_text if asking.format == "run" else answers.expansion_text
        written = await answering.workers.do(lambda: text(searched, asking.asked()))
        name = "run.txt" if asking.format == "run" else "expansion.jsonl"
        return PlainTextResponse(written, headers={"content-disposition": f'attachment; filename="{name}"'})

    @router.get("/{index}/documents/{docid:path}", summary="A document's text")
    async def get_document(index: IndexName, docid: Annotated[str, Path(max_length=500)]) -> Any:
        searched = opened(index)
        return await answered(lambda: answers.document_answer(searched, docid))

    return router


def page() -> APIRouter:
    """The page's own files and the one it shares with the report: those that are there, and no other."""
    router = APIRouter(include_in_schema=False)
    package = resources.files("sdretrieval")
    shared = package / "evaluate" / "report" / "assets" / "elements.js"
    files = {file.name: file for file in (*(package / "serve" / "page").iterdir(), shared)}

    @router.get("/page/{name}")
    async def get_file(name: str) -> Response:
        kind = PAGE_TYPES.get(name.rpartition(".")[2])
        if kind is None or name not in files:
            raise HTTPException(404, f"no page {name[:80]!r}")
        return Response(files[name].read_bytes(), media_type=f"{kind}; charset=utf-8")

    @router.get("/")
    async def get_page() -> Response:
        return await get_file("index.html")

    @router.get("/judge")
    async def get_judge() -> Response:
        return await get_file("judge.html")

    return router


async def _told(request: Request, error: Exception) -> Response:
    """Any error as {"error": …, "remedy": …}."""
    status, text, remedy = 500, "something went wrong here", "The server's own output says what."
    if isinstance(error, HTTPException):
        status, text, remedy = error.status_code, str(error.detail), ""
    elif isinstance(error, Busy):
        status, text, remedy = error.status, str(error), "Try again in a moment."
    elif isinstance(error, RequestValidationError):
        first = error.errors()[0]
        status, text, remedy = 400, f"{'.'.join(map(str, first['loc'][1:])) or 'the request'}: {first['msg']}", ""
    elif isinstance(error, SdretrievalError):
        status = 404 if isinstance(error, NoDocument) else 400
        text, remedy = error.message, error.remedy or ""
    headers = {"retry-after": "1"} if status in (429, 503) else {}
    return JSONResponse({"error": text, "remedy": remedy}, status_code=status, headers=headers)
