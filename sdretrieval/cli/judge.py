"""``sdretrieval judge``: judge a collection of one's own, at the terminal or by a script."""

from __future__ import annotations

import argparse
import json
import sys
from itertools import combinations, count, pairwise
from typing import TYPE_CHECKING, Any

from sdretrieval.cli.value_types import positive
from sdretrieval.core.errors import InputError, ParameterError, few

if TYPE_CHECKING:
    from sdretrieval.learn.judging import Offer, Project

WAYS = ("learn", "pool", "runs", "random", "certificate", "second")

EXAMPLE = """\
examples:
  judge by keys what a learner finds for a topic, then measure runs by the judgments:
    sdretrieval judge topics --index indexes/mine --topics topics.tsv
    sdretrieval judge start  --index indexes/mine --topic 1 --as ann
    sdretrieval judge status --index indexes/mine
    sdretrieval judge export --index indexes/mine --output qrels.txt
    sdretrieval evaluate indexes/mine.judging/default runs/bm25.txt

  which of some runs is better, with as few judgments as possible:
    sdretrieval judge pool     --index indexes/mine --runs runs/*.txt --depth 50
    sdretrieval judge start    --index indexes/mine --way runs
    sdretrieval judge measures --index indexes/mine

  a script: a document as JSON out, a judgment as JSON in, line by line:
    sdretrieval judge start --index indexes/mine --topic 1 --json
    {"qid": "1", "docid": "d7", "way": "learn", …}          out
    {"grade": 1}                                             in; also {"skip": true}, {"undo": true}

  how much there would have been to read, on documents that are labelled:
    sdretrieval judge simulate --index indexes/mine --topics topics.tsv --qrels qrels.txt --plot curves.svg

Every judgment is on disk, beside the index, before the next document is shown; several may judge at once.
`sdretrieval serve` shows the same projects in the browser.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EXAMPLE
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    def action(name: str, text: str) -> Any:
        sub = actions.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", epilog=EXAMPLE)
        sub.formatter_class = parser.formatter_class
        sub.add_argument("--index", required=True, metavar="DIR", help="Lucene index")
        if name != "simulate":
            sub.add_argument("--project", default="default", metavar="NAME", help="default: %(default)s")
            sub.add_argument("--rel", type=positive, default=1, metavar="N", help="least relevant grade (default: 1)")
        return sub.add_argument

    add = action("topics", "add topics to a project")
    add("--topics", metavar="FILE", help="as `search` reads them")
    add("--query", metavar="TEXT", help="one topic, as typed")
    add("--topic", default="1", metavar="ID", help="its id (default: %(default)s)")

    add = action("pool", "make pools of what runs or models find, or take in a pool made elsewhere")
    add("--runs", nargs="+", default=[], metavar="RUN", help="TREC runs, or NAME=RUN; they are kept, to be measured")
    add("--models", nargs="+", default=[], metavar="NAME", help="search with these, and keep their runs")
    add("--depth", type=positive, default=100, metavar="K", help="first documents of each (default: %(default)s)")

    for name, text in (("start", "judge, document by document"), ("next", "the next document, as JSON")):
        add = action(name, text)
        add("--topic", metavar="ID", help="default: the only one, or with --way runs any")
        add("--as", dest="who", default="me", metavar="NAME", help="who judges (default: %(default)s)")
        add("--way", choices=WAYS, default="learn", help="how documents are chosen (default: %(default)s)")
        if name == "start":
            add("--json", action="store_true", help="for scripts; so it is where standard input is no terminal")

    add = action("say", "write one judgment down")
    add("--topic", required=True, metavar="ID")
    add("--docid", required=True, metavar="ID")
    add("--grade", type=int, metavar="N", help="0 is not relevant; left out, the document is skipped")
    add("--note", default="", metavar="TEXT")
    add("--as", dest="who", default="me", metavar="NAME", help="default: %(default)s")

    add = action("undo", "take the last judgment back")
    add("--topic", metavar="ID", help="the last of this topic")
    add("--as", dest="who", default="me", metavar="NAME", help="default: %(default)s")

    add = action("status", "how far each topic is, what recall is at least, and who agrees with whom")
    add("--confidence", type=float, default=0.95, metavar="C", help="default: %(default)s")
    add("--json", action="store_true", help="for scripts")

    add = action("certify", "what a certificate of recall costs; with --draw, draw its random sample")
    add("--topic", required=True, metavar="ID")
    add("--recall", type=float, default=0.95, metavar="R", help="default: %(default)s")
    add("--confidence", type=float, default=0.95, metavar="C", help="default: %(default)s")
    add("--draw", action="store_true", help="then judge it: `judge start --way certificate`")

    add = action("measures", "the runs by what is judged so far: bounds, estimates, which is better")
    add("--measures", "-m", nargs="+", default=["AP", "P@5"], metavar="M", help="AP, P@k, nDCG, nDCG@k")
    add("--json", action="store_true", help="for scripts")

    add = action("export", "write the judgments as qrels, or the pools as a run")
    add("--output", required=True, metavar="FILE", help="- is standard output")
    add("--pools", action="store_true", help="the pools instead")
    add("--as", dest="who", metavar="NAME", help="of one assessor (default: what most say)")

    add = action("import", "take in qrels")
    add("--qrels", required=True, metavar="FILE")
    add("--as", dest="who", default="imported", metavar="NAME", help="whose they are (default: %(default)s)")

    add = action("simulate", "play judging through on labelled documents")
    add("--topics", required=True, metavar="FILE")
    add("--qrels", required=True, metavar="FILE", help="documents not in it count as not relevant")
    add("--rel", type=positive, default=1, metavar="N", help="least relevant grade (default: 1)")
    add("--plot", metavar="FILE", help="recall by share judged, .svg, .png or .pdf")
    add("--json", action="store_true", help="for scripts")


def run(args: argparse.Namespace) -> int:
    if args.action == "simulate":
        return _simulate(args)
    from sdretrieval.learn.judging import Project

    project = Project(args.index, args.project, rel=args.rel)
    return ACTIONS[args.action](args, project) or 0


# -- what there is to judge ----------------------------------------------------------------------------------------


def _topics(args: argparse.Namespace, project: Project) -> None:
    from sdretrieval.collection.records import Topic
    from sdretrieval.collection.trec import read_topics

    if (args.topics is None) == (args.query is None):
        raise ParameterError("which topics?", remedy="Give either --topics FILE or --query TEXT.")
    topics = [Topic(args.topic, args.query)] if args.query is not None else read_topics(args.topics)
    print(f"{project.add_topics(topics)} topics new or changed, {len(project.topics)} in all: {project.folder}")


def _pool(args: argparse.Namespace, project: Project) -> None:
    from sdretrieval.evaluate.inputs import read_runs

    if not args.runs and not args.models:
        raise ParameterError("what to pool?", remedy="Give --runs RUN … or --models NAME …")
    if not project.topics:
        raise ParameterError(f"project {project.name!r} has no topics", remedy="First: sdretrieval judge topics …")
    named = read_runs(args.runs)
    for one in named:
        project.add_run(one.name, one.run)
    added = project.pool_from_runs([one.run for one in named], args.depth) if named else 0
    if args.models:
        added += project.pool_from_models(args.models, args.depth)
    print(f"{added} documents new in the pools, {sum(row['pool'] for row in project.status())} in all")


# -- judging -------------------------------------------------------------------------------------------------------


def _next(args: argparse.Namespace, project: Project) -> int:
    offer = project.next(_topic(args, project), args.who, args.way)
    print(json.dumps(None if offer is None else _offered(project, offer), ensure_ascii=False))
    return 0 if offer else 1


def _start(args: argparse.Namespace, project: Project) -> None:
    topic = _topic(args, project)
    if args.json or not sys.stdin.isatty():
        _by_lines(args, project, topic)
    else:
        from sdretrieval.cli.judge_keys import judge_by_keys

        judge_by_keys(project, topic, args.who, args.way)


def _by_lines(args: argparse.Namespace, project: Project, topic: str | None) -> None:
    """A document out, a judgment in, until either side has no more."""
    for number in count(1):
        if (offer := project.next(topic, args.who, args.way)) is None:
            return
        print(json.dumps(_offered(project, offer), ensure_ascii=False), flush=True)
        line = sys.stdin.readline()
        if not line.strip():
            return
        told = _answer(line, number)
        if told.get("undo"):
            project.undo(args.who, topic)
        else:
            grade = None if told.get("skip") else told["grade"]
            project.judge(offer.qid, offer.docid, grade, args.who, note=told.get("note", ""), way=offer.way)


def _answer(line: str, number: int) -> dict[str, Any]:
    from sdretrieval.core.safe_json import parse_json

    form = 'A judgment is {"grade": 1}, {"grade": 0, "note": "…"}, {"skip": true} or {"undo": true}.'
    try:
        told = parse_json(line)
    except ValueError as error:
        raise InputError(f"not JSON: {error}", file="standard input", line=number, remedy=form) from None
    known = isinstance(told, dict) and ("grade" in told or told.get("skip") or told.get("undo"))
    if not known or not isinstance(told.get("note", ""), str):
        raise InputError(f"got {line.strip()[:80]!r}", file="standard input", line=number, remedy=form)
    return told


def _offered(project: Project, offer: Offer) -> dict[str, Any]:
    document = project.index.doc(offer.docid)
    words = [[word, round(weight, 5)] for word, weight in offer.words]
    about = {"qid": offer.qid, "docid": offer.docid, "way": offer.way, "left": offer.left, "score": offer.score}
    return {**about, "words": words, "date": document.date, "title": document.title, "text": document.text}


def _say(args: argparse.Namespace, project: Project) -> None:
    click = project.judge(args.topic, args.docid, args.grade, args.who, note=args.note, way="say")
    print(json.dumps(vars(click), ensure_ascii=False))


def _undo(args: argparse.Namespace, project: Project) -> int:
    click = project.undo(args.who, args.topic)
    print(json.dumps(None if click is None else vars(click), ensure_ascii=False))
    return 0 if click else 1


def _topic(args: argparse.Namespace, project: Project) -> str | None:
    """The topic asked for, or the only one."""
    if args.topic is not None or args.way == "runs":
        return args.topic
    if len(project.topics) != 1:
        there = few(topic.qid for topic in project.topics) or "none: add some with `judge topics`"
        raise ParameterError(f"which topic? There is {there}.", remedy="Name it: --topic ID.")
    return project.topics[0].qid


# -- what is known -------------------------------------------------------------------------------------------------


def _status(args: argparse.Namespace, project: Project) -> None:
    from sdretrieval.core.tables import number, text_table

    rows = project.status()
    bounds = {row["qid"]: project.recall(row["qid"], args.confidence) for row in rows}
    for row in rows:
        row["recall_at_least"] = bounds[row["qid"]].recall
    agreed = [project.agreement(a, b) for a, b in combinations(project.assessors, 2)]
    if args.json:
        pairs = [{**vars(one), "disagreements": len(one.disagreements)} for one in agreed]
        print(json.dumps({"project": project.name, "topics": rows, "agreement": pairs}, ensure_ascii=False))
        return
    names = ["qid", "judged", "relevant", "skipped", "pool", "pool_left"]
    table = [[*(str(row[name]) for name in names), number(row["recall_at_least"], 3)] for row in rows]
    print(text_table([*names, "recall ≥"], table))
    if bounds:
        assumption = next(iter(bounds.values())).assumption
        print(f"\nrecall: with {args.confidence:.0%} confidence, if {assumption}")
    for one in agreed:
        kappa = "undefined" if one.kappa is None else f"{one.kappa:.3f} ± {one.error:.3f}"
        print(f"{one.first} and {one.second}: {one.both} judged by both, {one.share:.0%} alike, Cohen's κ {kappa}")


def _certify(args: argparse.Namespace, project: Project) -> None:
    if args.draw:
        print(project.certify(args.topic, args.recall, args.confidence))
        print("drawn: judge it by `sdretrieval judge start --way certificate`")
        return
    print(f"price: {project.price(args.topic, args.recall, args.confidence)}")
    proven = project.certificate(args.topic)
    if isinstance(proven, int):
        print(f"of the sample drawn {proven} documents are left to judge")
    elif proven is not None:
        print(f"by the sample drawn {proven}")


def _measures(args: argparse.Namespace, project: Project) -> None:
    from sdretrieval.core.tables import number, text_table

    if not project.runs:
        raise ParameterError(f"project {project.name!r} has no runs", remedy="First: sdretrieval judge pool --runs …")
    found = project.measures(args.measures)
    order = sorted((one for one in found if one.measure == found[0].measure), key=lambda one: -one.estimate)
    better = [project.better(a.run, b.run, a.measure) for a, b in pairwise(order)]
    if args.json:
        print(json.dumps({"measures": [vars(one) for one in found], "better": [vars(one) for one in better]}))
        return
    rows = [
        [one.run, one.measure, *(number(v, 4) for v in (one.low, one.high, one.estimate, *one.interval))]
        for one in found
    ]
    print(text_table(["run", "measure", "at least", "at most", "estimate", "from", "to"], rows, left=2))
    print(f"\n{found[0].judged:.0%} of the pools judged, {found[0].topics} topics")
    print("\n".join(map(str, better)))


# -- in and out ----------------------------------------------------------------------------------------------------


def _export(args: argparse.Namespace, project: Project) -> None:
    from sdretrieval.collection.trec import write_qrels, write_run

    if args.pools:
        write_run(args.output, project.pools(), tag="pool")
        return
    qrels = project.qrels(args.who)
    if not qrels:
        raise ParameterError(f"project {project.name!r} has no judgments to write", remedy="First: judge start …")
    write_qrels(args.output, qrels)


def _import(args: argparse.Namespace, project: Project) -> None:
    from sdretrieval.collection.trec import read_qrels

    print(f"{project.import_qrels(read_qrels(args.qrels), args.who)} judgments taken in as {args.who}'s")


def _simulate(args: argparse.Namespace) -> int:
    import numpy as np

    from sdretrieval.collection.trec import read_qrels, read_topics
    from sdretrieval.core.progress import progress
    from sdretrieval.core.tables import number, text_table
    from sdretrieval.index.snapshot import open_snapshot
    from sdretrieval.learn.judging.learner import Features, Learner
    from sdretrieval.learn.judging.simulation import plot_recall, simulate

    snapshot, qrels = open_snapshot(args.index), read_qrels(args.qrels)
    features, played = Features.of(snapshot), {}
    for topic in progress(read_topics(args.topics), label="judging", unit=" topics"):
        docs = [doc for docid in qrels.relevant(topic.qid, args.rel) if (doc := snapshot.docids.find(docid)) >= 0]
        if docs:
            relevant = np.zeros(snapshot.n_docs, dtype=bool)
            relevant[docs] = True
            played[topic.qid] = simulate(Learner(features, snapshot.analyze(topic.text)), relevant)
    if not played:
        raise InputError(
            "no topic has a relevant document in the index", file=args.qrels, remedy="Is it the right --index?"
        )
    rows: list[dict[str, Any]] = [
        {
            "qid": qid,
            "documents": one.documents,
            "relevant": one.total,
            "wss_95": one.wss(0.95),
            "recall_2r": one.recall_at(2 * one.total),
            "judged_95": one.judged_for(0.95),
            "ms_per_click": 1000 * one.seconds,
        }
        for qid, one in played.items()
    ]
    if args.plot:
        plot_recall(args.plot, played)
    if args.json:
        print("\n".join(json.dumps(row) for row in rows))
        return 0
    names = list(rows[0])
    table = [
        [str(row["qid"]), *(number(row[n], 3 if isinstance(row[n], float) else 0) for n in names[1:])] for row in rows
    ]
    means = [float(np.mean([row[name] for row in rows])) for name in names[1:]]
    print(text_table(names, [*table, ["all", *(number(mean, 3) for mean in means)]]))
    return 0


ACTIONS: dict[str, Any] = {
    "topics": _topics,
    "pool": _pool,
    "start": _start,
    "next": _next,
    "say": _say,
    "undo": _undo,
    "status": _status,
    "certify": _certify,
    "measures": _measures,
    "export": _export,
    "import": _import,
}
