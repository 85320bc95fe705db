"""The same answers as tools of the Model Context Protocol, for programs that converse."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import ValidationError

from sdretrieval import __version__
from sdretrieval.core.errors import ParameterError, SdretrievalError
from sdretrieval.ranking.interactive import Index
from sdretrieval.serve import answers
from sdretrieval.serve.asking import AskingByBody
from sdretrieval.serve.workers import Busy, Workers

INSTRUCTIONS = """\
Search dated document collections. `search` returns hits with marked snippets and the words the ranking learnt; pass
ids of good and bad hits as `relevant` and `nonrelevant` to search again with what they teach. `document` gives a text,
`explain` says why a document ranks where it does. Where a certificate is in an answer, the answer depends on nothing
of its ceiling's time or later."""
TOLD = ("query", "model", "words", "note", "candidates", "certificate")


def make_tools(indexes: Mapping[str, Index], workers: Workers) -> MCPServer:
    """The MCP server of some indexes."""
    server = MCPServer("sdretrieval", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")

    def opened(name: str | None) -> Index:
        name = next(iter(indexes)) if name is None and len(indexes) == 1 else name
        if name is None or name not in indexes:
            raise ParameterError(f"no index {name!r}", remedy=f"One of: {', '.join(indexes)}.")
        return indexes[name]

    async def answered(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        try:
            return await workers.do(work)
        except (SdretrievalError, Busy) as error:
            raise ToolError(str(error)) from None
        except ValidationError as error:
            first = error.errors()[0]
            raise ToolError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None

    @server.tool()
    async def list_indexes() -> dict[str, Any]:
        """The indexes: size, dates, ceiling, and the models that can rank them."""
        return await answered(lambda: {"indexes": [_brief(answers.index_facts(index)) for index in indexes.values()]})

    @server.tool()
    async def search(
        query: str,
        index: str | None = None,
        hits: int = 10,
        model: str = "blend",
        settings: dict[str, Any] | None = None,
        as_of: str | None = None,
        since: str | None = None,
        until: str | None = None,
        time_prior: str = "none",
        relevant: list[str] | None = None,
        nonrelevant: list[str] | None = None,
        drop: list[str] | None = None,
    ) -> dict[str, Any]:
        """The best documents for a query. Dates are ISO; as_of searches the collection as it was before a date.

        time_prior is none, auto, recency or density. relevant and nonrelevant are ids of documents to learn from.
        """
        given = {"q": query, "hits": hits, "model": model, "set": settings or {}, "time_prior": time_prior}
        given |= {"as_of": as_of, "since": since, "until": until, "drop": drop or []}
        given |= {"relevant": relevant or [], "nonrelevant": nonrelevant or []}

        def work() -> dict[str, Any]:
            answer = answers.search_answer(opened(index), AskingByBody.model_validate(given).asked())
            return {"hits": [_plain(hit) for hit in answer["hits"]], **{name: answer[name] for name in TOLD}}

        return await answered(work)

    @server.tool()
    async def document(docid: str, index: str | None = None) -> dict[str, Any]:
        """A document's text, date and fields."""
        return await answered(lambda: answers.document_answer(opened(index), docid))

    @server.tool()
    async def explain(
        query: str, docid: str, index: str | None = None, model: str = "blend", as_of: str | None = None
    ) -> dict[str, Any]:
        """Why a document ranks where it does for a query: its score word by word, and what taught the words."""
        given = {"q": query, "model": model, "as_of": as_of}
        return await answered(
            lambda: answers.explain_answer(opened(index), AskingByBody.model_validate(given).asked(), docid)
        )

    return server


def _brief(facts: dict[str, Any]) -> dict[str, Any]:
    models = {model["name"]: model["description"] for model in facts["models"]}
    return {**facts, "models": models}


def _plain(hit: dict[str, Any]) -> dict[str, Any]:
    """A hit with its snippet as one text, words of the query between asterisks."""
    text = "".join(f"**{piece}**" if marked else piece for piece, marked in hit["snippet"])
    return {**hit, "snippet": text}
