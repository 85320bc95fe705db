"""``sdretrieval report`` as a shell sees it, on small files and on a real collection."""

from __future__ import annotations

import json
import re

import pytest

from sdretrieval.cli.main import main

QRELS = "1 0 a 1\n1 0 b 0\n2 0 b 1\n2 0 c 1\n"
QL = "1 Q0 b 1 2.0 ql\n1 Q0 a 2 1.0 ql\n2 Q0 a 1 2.0 ql\n2 Q0 b 2 1.0 ql\n"
SD = "1 Q0 a 1 2.0 sd\n1 Q0 b 2 1.0 sd\n2 Q0 b 1 2.0 sd\n2 Q0 c 2 1.0 sd\n"


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("qrels.txt", QRELS), ("ql.trec", QL), ("sd.trec", SD)):
        (tmp_path / name).write_text(text)
    (tmp_path / "topics.tsv").write_text("1\tflow over <b>wings</b>\n2\theat\n")
    (tmp_path / "docs.jsonl").write_text(
        '{"id": "a", "title": "Wing </script><script>alert(1)</script>", "date": "2011-01-01"}\n'
        '{"id": "b", "contents": "heat", "date": "2011-02-01"}\n'
    )
    (tmp_path / "sd.trec.manifest.json").write_text('{"parameters": {"lambda": 0.99}}')
    (tmp_path / "sd.expansion.jsonl").write_text('{"qid": "1", "terms": {"wing": 0.7}}\n')
    return tmp_path


def page_data(path) -> dict:
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(), re.DOTALL)[1])


def test_a_page_with_all_there_is(files, capsys):
    command = (
        "report qrels.txt ql.trec SD=sd.trec --measures AP P@1 --topics topics.tsv --documents docs.jsonl --title Trial"
    )
    command += " --collection tiny --output out/report.html --plots out/plots --plot-format svg --latex out/table.tex"
    assert main(command.split()) == 0
    written = capsys.readouterr().out.split()
    assert written[0] == "out/report.html"
    assert all((files / name).stat().st_size > 0 for name in written)
    data = page_data(files / "out/report.html")
    assert (data["title"], data["collection"], data["baseline"]) == ("Trial", "tiny", 0)
    assert [r["name"] for r in data["runs"]] == ["ql", "SD"]
    assert [r["means"][0] for r in data["runs"]] == [(0.5 + 0.25) / 2, 1.0]
    assert data["runs"][1]["manifest"] == {"parameters": {"lambda": 0.99}}
    assert data["topics"][0]["terms"][1] == [["wing", 0.7]]
    assert data["topics"][0]["text"] == "flow over <b>wings</b>"
    assert data["topics"][0]["timeline"]["relevant"] == [1293840000000]
    assert {d["id"]: d.get("title") for d in data["topics"][0]["documents"]}["b"] == "heat"
    assert r"tiny & MAP & 37.50 & \textbf{100.00} \\" in (files / "out/table.tex").read_text()


def test_another_baseline(files, capsys):
    main(["report", "qrels.txt", "ql.trec", "sd.trec", "--baseline", "sd", "--output", "r.html"])
    data = page_data(files / "r.html")
    assert data["baseline"] == 1
    assert data["comparisons"][0][0]["difference"] == pytest.approx(-0.625)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["qrels.txt", "ql.trec", "--output", "report.pdf"], ".html"),
        (["qrels.txt", "none.trec", "--output", "r.html"], "none.trec"),
        (["qrels.txt", "ql.trec", "--output", "r.html", "--topics", "none.tsv"], "none.tsv"),
    ],
)
def test_mistakes_write_nothing(files, capsys, arguments, said):
    before = sorted(p.name for p in files.iterdir())
    assert main(["report", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert sorted(p.name for p in files.iterdir()) == before


@pytest.mark.shared
def test_a_real_dated_collection(shared_data, tmp_path, capsys):
    """The supplied runs of TREC Microblog 2011; MAP .3576 and .3824 are stated in the collection's README."""
    folder = shared_data / "microblog2011"
    if not folder.is_dir():
        pytest.skip("../shared/data/microblog2011 is not on this machine")
    page = tmp_path / "report.html"
    runs = [str(folder / "runs/QL.txt.gz"), str(folder / "runs/RM3.txt.gz")]
    topics = ["--topics", str(folder / "topics.tsv"), "--topic-times", str(folder / "topics.times.tsv")]
    documents = ["--documents", str(folder / "docs.jsonl.gz")]
    assert main(["report", str(folder / "qrels.txt"), *runs, *topics, *documents, "--output", str(page)]) == 0
    data = page_data(page)
    assert [round(r["means"][0], 4) for r in data["runs"]] == [0.3576, 0.3824]
    assert [round(r["means"][1], 4) for r in data["runs"]] == [0.5633, 0.5592]
    assert {s["by"] for s in data["slices"]} == {"query", "relevant"}
    assert "[50] without judgments" in capsys.readouterr().err
    assert page.stat().st_size < 2_000_000
