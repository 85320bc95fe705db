"""MCP, driven by the package's own client: in process, over HTTP, and on standard input and output."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from served_collection import CEILING

from sdretrieval import Index
from sdretrieval.serve.tools import make_tools
from sdretrieval.serve.workers import Workers


def converse(server: Any, talk: Callable[[Client], Awaitable[None]]) -> None:
    async def conversation() -> None:
        async with Client(server) as client:
            await talk(client)

    asyncio.run(conversation())


@pytest.fixture
def server(index):
    workers = Workers(1)
    yield make_tools({"tiny": index}, workers)
    workers.close()


def test_tools_answer_as_rest_does(server, client):
    async def talk(mcp: Client) -> None:
        named = {tool.name for tool in (await mcp.list_tools()).tools}
        assert named == {"list_indexes", "search", "document", "explain"}
        best = client.get("/v1/tiny/search?q=storm+flood&hits=1").json()["hits"][0]["docid"]
        given = {"hits": 5, "relevant": [best], "time_prior": "recency"}
        told = (await mcp.call_tool("search", {"query": "storm flood", **given})).structured_content
        rest = client.post("/v1/tiny/search", json={"q": "storm flood", **given}).json()
        assert [(hit["docid"], hit["score"]) for hit in told["hits"]] == [
            (hit["docid"], hit["score"]) for hit in rest["hits"]
        ]
        assert any("**storm**" in hit["snippet"] for hit in told["hits"])
        text = (await mcp.call_tool("document", {"docid": "doc100"})).structured_content
        assert text == client.get("/v1/tiny/documents/doc100").json()
        why = (await mcp.call_tool("explain", {"query": "storm", "docid": "doc100"})).structured_content
        assert why == client.post("/v1/tiny/explain", json={"q": "storm", "docid": "doc100"}).json()
        (facts,) = (await mcp.call_tool("list_indexes", {})).structured_content["indexes"]
        assert "blend" in facts["models"]

    converse(server, talk)


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        ("search", {"query": ""}, "no query"),
        ("search", {"query": "x", "hits": 5000}, "hits"),
        ("search", {"query": "x", "index": "other"}, "no index 'other'"),
        ("search", {"query": "x", "settings": {"fb_docs": 10**9}}, "at most 1000"),
        ("document", {"docid": "nowhere"}, "'nowhere' is not in index"),
    ],
)
def test_errors_are_told(server, tool, given, told):
    async def talk(mcp: Client) -> None:
        answer = await mcp.call_tool(tool, given)
        assert answer.is_error
        assert told in answer.content[0].text

    converse(server, talk)


def test_the_ceiling_holds(path):
    workers = Workers(1)

    async def talk(mcp: Client) -> None:
        asked = {"query": "storm flood", "hits": 100, "as_of": "2030-01-01"}
        told = (await mcp.call_tool("search", asked)).structured_content
        assert told["certificate"]["ceiling"] == "2024-07-01T00:00:00Z"
        assert all(hit["date"] < CEILING for hit in told["hits"])
        assert (await mcp.call_tool("document", {"docid": "doc200"})).is_error

    converse(make_tools({"tiny": Index(path, as_of=CEILING)}, workers), talk)
    workers.close()


def test_over_http(client):
    """As the client sends it; its own HTTP needs a real port, which test_guard has."""
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    call["params"] = {"name": "document", "arguments": {"docid": "doc100"}}
    accept = {"accept": "application/json, text/event-stream"}
    answer = client.post("/mcp", json=call, headers=accept)
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"]["structuredContent"] == client.get("/v1/tiny/documents/doc100").json()
    assert client.post("/mcp", json=call, headers={**accept, "origin": "https://evil.example"}).status_code == 403


def test_on_standard_input_and_output(path):
    words = ["-m", "sdretrieval.cli.main", "serve", "--mcp", "--index", str(path)]

    async def talk(mcp: Client) -> None:
        told = (await mcp.call_tool("search", {"query": "storm flood", "hits": 3})).structured_content
        assert len(told["hits"]) == 3

    converse(StdioServerParameters(command=sys.executable, args=words), talk)
