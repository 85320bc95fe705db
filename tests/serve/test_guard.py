"""Who may ask, and how much."""

from __future__ import annotations

import json
import socket
import threading
import time

import pytest
import uvicorn
from served_collection import HOSTILE

from sdretrieval.serve import guard, listening
from sdretrieval.serve.app import make_app
from sdretrieval.serve.guard import host_name, is_loopback

FACTS = "/v1/indexes"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "", "a@127.0.0.1", "[::1"]
)
def test_a_rebound_name_gets_nothing(client, host):
    answer = client.get(FACTS, headers={"host": host})
    assert answer.status_code == 421
    assert "documents" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:1", "LOCALHOST", "[::1]:8080", "10.0.0.7:8080"])
def test_addresses_and_localhost_are_ours(client, host):
    assert client.get(FACTS, headers={"host": host}).status_code == 200


def test_a_name_that_was_given_is_ours(index, serving):
    with serving(index, hosts=["Search.example"]) as client:
        assert client.get(FACTS, headers={"host": "search.example:80"}).status_code == 200
        assert client.get(FACTS, headers={"host": "www.example:80"}).status_code == 421


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"origin": "http://127.0.0.1:8080"}, 200),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "none"}, 200),
    ],
)
def test_pages_of_other_sites_get_nothing(client, headers, status):
    assert client.get(FACTS, headers=headers).status_code == status


def test_a_link_from_elsewhere_opens_the_page_alone(client):
    assert client.get("/", headers={"sec-fetch-site": "cross-site"}).status_code == 200


def test_a_token_is_asked_for(index, serving):
    with serving(index, token="sésame") as client:
        for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": "sésame".encode()}):
            for path in (FACTS, "/openapi.json", "/mcp", "/v1/tiny/documents/doc100"):
                answer = client.get(path, headers=given)
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert client.get(FACTS, headers={"authorization": "Bearer sésame".encode()}).status_code == 200
        assert client.get("/").status_code == 200


def test_every_answer_is_inert(client):
    for path in (FACTS, "/", "/v1/tiny/documents/hostile", "/nowhere", "/v1/tiny/search?q="):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert "access-control-allow-origin" not in headers
    assert client.get(FACTS, headers={"host": "evil.example"}).headers["x-content-type-options"] == "nosniff"


def test_hostile_text_stays_text(client):
    answer = client.get("/v1/tiny/documents/hostile")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["fields"]["title"] == HOSTILE
    (hit,) = [
        h for h in client.get("/v1/tiny/search?q=harbour+quoted&hits=50").json()["hits"] if h["docid"] == "hostile"
    ]
    assert "\x1b" not in hit["title"]
    query = "</script><script>alert(1)</script>\u0000"
    told = client.post("/v1/tiny/search", json={"q": query})
    assert (told.headers["content-type"], told.json()["query"]) == ("application/json", query)
    run = client.post("/v1/tiny/run", json={"q": "harbour"})
    assert run.headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize("name", ["..%2fapp.py", "%2e%2e/guard.py", "app.py", "../../etc/passwd", "__init__.py"])
def test_only_files_of_the_page(client, name):
    assert client.get(f"/page/{name}").status_code == 404


def test_large_requests_are_refused(client):
    body = json.dumps({"q": "x", "drop": ["y" * 400] * 200})
    assert client.post("/v1/tiny/search", content=body).status_code == 413
    assert client.get("/v1/tiny/search", params={"q": "x" * 20000}).status_code == 413
    deep = client.post("/v1/tiny/search", content=b"[" * 60000)
    assert (deep.status_code, deep.json()["error"]) == (400, "the request is nested too deeply")
    assert client.post("/v1/tiny/search", content=b"\xff\xfe").status_code == 400


@pytest.mark.parametrize(
    ("host", "name"),
    [("a.b:80", "a.b"), ("[::1]:80", "::1"), ("a/b", None), ("a:b", None), ("u@h", None), ("a?b", None), ("", None)],
)
def test_names_of_hosts(host, name):
    assert host_name(host) == name


@pytest.mark.parametrize(
    ("host", "so"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("example.org", False)],
)
def test_what_is_this_machine(host, so):
    assert is_loopback(host) == so


# -- over a real connection --------------------------------------------------------------------------------------


HASTE = 0.3  # seconds; by default the server waits for as long as a busy machine needs


@pytest.fixture
def connected(monkeypatch) -> list[object]:
    """What the server has accepted."""
    accept, seen = listening.Patient.connection_made, []
    monkeypatch.setattr(
        listening.Patient, "connection_made", lambda self, line: (accept(self, line), seen.append(line))
    )
    return seen


@pytest.fixture
def address(index, monkeypatch, connected):
    monkeypatch.setattr(listening, "HEADER_SECONDS", 300)
    monkeypatch.setattr(guard, "BODY_SECONDS", HASTE)
    started: list[uvicorn.Server] = []
    monkeypatch.setattr(uvicorn.Server, "install_signal_handlers", lambda self: None, raising=False)
    run = uvicorn.Server.run
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, **given: (started.append(self), run(self, **given)))
    told: list[str] = []
    thread = threading.Thread(target=listening.serve, args=(make_app([index]), "127.0.0.1", 0, told.append))
    thread.start()
    while not (started and started[0].started):
        time.sleep(0.01)
    host, port = told[0].removeprefix("http://").split(":")
    yield host, int(port)
    started[0].should_exit = True
    thread.join()


def quick(address) -> bytes:
    with socket.create_connection(address, timeout=300) as line:
        line.sendall(b"GET /v1/tiny/documents/doc100 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        return b"".join(iter(lambda: line.recv(1 << 16), b""))


def test_slow_clients_hold_nobody_up_and_are_left(address, connected, monkeypatch):
    with monkeypatch.context() as hasty:
        hasty.setattr(listening, "HEADER_SECONDS", HASTE)
        silent = [socket.create_connection(address, timeout=300) for _ in range(20)]
        while len(connected) < 20:
            time.sleep(0.01)
    dribbling = socket.create_connection(address, timeout=300)
    dribbling.sendall(b"POST /v1/tiny/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9999\r\n\r\n{")
    assert b"200 OK" in quick(address)
    assert b" 408 " in dribbling.recv(1 << 16).splitlines()[0] + b" "
    assert [line.recv(1) for line in silent] == [b""] * 20  # hung up on
    for line in (*silent, dribbling):
        line.close()


def test_a_kept_connection_is_not_kept_for_half_a_request(address, monkeypatch):
    with socket.create_connection(address, timeout=300) as line:
        line.sendall(b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += line.recv(1 << 16) or pytest.fail(f"hung up after {answer!r}")
        assert b" 404 " in answer
        monkeypatch.setattr(listening, "HEADER_SECONDS", HASTE)
        line.sendall(b"GET /v1/ind")
        assert line.recv(1 << 16) == b""
