"""Fifty commands that users of Pyserini, PyTerrier, ir_measures, trec_eval and others would try in their first week.

    python -m benchmarks.first_week            (about two minutes; makes the demo's files in a scratch folder)

Each is typed as their own documentation has it, with sdretrieval's verb in front. A command may be refused; then what
it says must name the way out, and the command that takes it must work.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
import tempfile
from pathlib import Path

from sdretrieval.cli.main import main

# (what they know it from, the command; where it is refused, what it must say and what to type instead)
DEMO = "--index ix --topics topics.tsv"  # {demo} below
COMMANDS: list[tuple[str, str, tuple[str, str] | None]] = [
    ("trec_eval", "evaluate qrels.txt bm25.txt", None),
    ("trec_eval", "evaluate -m map qrels.txt bm25.txt", None),
    ("trec_eval", "evaluate -m map -m P.5 qrels.txt bm25.txt", None),
    ("trec_eval", "evaluate -m P.5,10 -m ndcg_cut.10 qrels.txt bm25.txt", None),
    ("trec_eval", "evaluate -q -m map qrels.txt bm25.txt", None),
    ("trec_eval", "evaluate -q -n -m recip_rank qrels.txt bm25.txt", None),
    ("trec_eval", "evaluate -c -m map qrels.txt bm25.txt", None),
    ("trec_eval", "evaluate -l 1 -m map qrels.txt bm25.txt", None),
    ("trec_eval", "evaluate -M 100 -m recall.100 qrels.txt bm25.txt", None),
    ("trec_eval", "evaluate -J -m map qrels.txt bm25.txt", None),
    ("trec_eval", "evaluate -m official qrels.txt bm25.txt", None),
    ("trec_eval", "evaluate -m runid qrels.txt bm25.txt", ("Known are AP", "evaluate -m AP qrels.txt bm25.txt")),
    ("ir_measures", "evaluate qrels.txt bm25.txt AP P@5", None),
    ("ir_measures", "evaluate qrels.txt bm25.txt 'AP(rel=1)' nDCG@10 RR", None),
    ("ir_measures", "evaluate qrels.txt bm25.txt AP -q", None),
    ("ir_measures", "evaluate qrels.txt bm25.txt AP -o jsonl", None),
    ("ir_measures", "evaluate qrels.txt bm25.txt AP -q -o jsonl", None),
    ("ir_measures", "evaluate qrels.txt bm25.txt 'RBP(p=0.8)'", None),
    ("ir_measures", "evaluate qrels.txt bm25.txt Judged@10", None),
    ("ir_measures", "evaluate qrels.txt bm25.txt AP -p 3", None),
    ("ir_measures", "evaluate qrels.txt bm25.txt ndcg@10", None),
    (
        "ir_measures",
        "evaluate qrels.txt bm25.txt alpha_nDCG@10",
        ("pip install", "evaluate qrels.txt bm25.txt nDCG@10"),
    ),
    ("PyTerrier", "evaluate qrels.txt bm25.txt rm3.txt map P_5 --baseline bm25.txt --correction bonferroni", None),
    ("PyTerrier", "evaluate qrels.txt bm25.txt rm3.txt map --baseline bm25 --baseline rm3 --test t", None),
    ("PyTerrier", "fuse bm25.txt rm3.txt --output fused.txt", None),
    ("PyTerrier", "tune {demo} --qrels qrels.txt --model bm25 --budget 2 --output p.json", None),
    ("Pyserini", "index --input docs.jsonl --index new", None),
    ("Pyserini", "index --input docs.jsonl --index new2 --language en --threads 2 --store-docvectors", None),
    (
        "Pyserini",
        "index --collection JsonCollection --input docs.jsonl --index new3",
        ("told by the files", "index --input docs.jsonl --index new3"),
    ),
    ("Pyserini", "search {demo} --output r1.txt --model bm25", None),
    ("Pyserini", "search {demo} --output r2.txt --model bm25 --hits 10 --threads 2", None),
    (
        "Pyserini",
        "search {demo} --output r3.txt --bm25",
        ("--model bm25", "search {demo} --output r3.txt --model bm25"),
    ),
    (
        "Pyserini",
        "search {demo} --output r4.txt --bm25 --rm3",
        ("--model rm3", "search {demo} --output r4.txt --model rm3"),
    ),
    (
        "Pyserini",
        "search {demo} --output r5.txt --model qld",
        ("lucene-qld", "search {demo} --output r5.txt --model lucene-qld"),
    ),
    ("Pyserini", "search {demo} --output r6.txt --model rm3 --set fb_docs=5 --set fb_terms=10", None),
    (
        "Pyserini",
        "search --index nowhere --topics topics.tsv --output r7.txt",
        ("sdretrieval index", "search {demo} --output r7.txt"),
    ),
    ("ranx", "compare bm25.txt rm3.txt", None),
    ("ranx", "evaluate qrels.txt bm25.txt rm3.txt --tukey --agreement -m AP nDCG@10", None),
    ("LongEval", "evaluate qrels.txt bm25.txt --by-time month --topic-times topics.times.tsv", None),
    ("repro_eval", "search {demo} --output r8.txt --model bm25 --ir-metadata", None),
    ("repro_eval", "evaluate qrels.txt r8.txt", None),
    ("repro_eval", "compare r8.txt bm25.txt", None),
    ("repro_eval", "reproduce r8.txt", None),
    ("PISA", "export --index ix --output ix.ciff", None),
    ("PISA", "index --input ix.ciff --index from-ciff", None),
    (
        "PISA",
        "index --input ix.ciff --index ix --append",
        ("Make one of its own", "index --input ix.ciff --index from-ciff2"),
    ),
    ("a shell", "completion bash", None),
    ("Pyserini", "doctor --index ix", None),
    ("Pyserini", "explain --index ix --query 'bridge collapse' --model bm25", None),
    ("Pyserini", "report qrels.txt bm25.txt rm3.txt --topics topics.tsv --output report.html", None),
]


def type_in(command: str) -> tuple[int, str, str]:
    """Exit code, output, and what was said on stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(shlex.split(command))
        except SystemExit as stop:  # argparse's
            code = int(stop.code or 0)
    return code, out.getvalue(), err.getvalue()


def prepare(folder: Path) -> None:
    """The demo's files, an index and two runs."""
    from sdretrieval.demo import write_demo

    write_demo(folder, n_docs=200, n_topics=10)
    os.chdir(folder)
    assert type_in("index --input docs.jsonl --index ix --date-field date")[0] == 0
    for model in ("bm25", "rm3"):
        assert type_in(f"search --index ix --topics topics.tsv --model {model} --output {model}.txt")[0] == 0


def first_week() -> list[str]:
    """A line for each command; those without a way out begin with FAIL."""
    lines = []
    for source, short, instead in COMMANDS:
        command = short.replace("{demo}", DEMO)
        code, out, err = type_in(command)
        told = (err.strip() or out.strip()).splitlines()
        verdict = "ok" if code == 0 else "refused"
        if code and (instead is None or instead[0] not in err or type_in(instead[1].replace("{demo}", DEMO))[0]):
            verdict = "FAIL"
        lines.append(f"{verdict:<8} {source:<12} sdretrieval {command}")
        if code:
            lines += [f"           {line.strip()}" for line in told[-2:]]
            lines.append(f"           instead: sdretrieval {instead and instead[1]}")
    return lines


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        found = first_week()
        os.chdir("/")
    print("\n".join(found))
    sys.exit(any(line.startswith("FAIL") for line in found))
