"""Judging over HTTP: what the page of judgments asks of a project, and what it is answered.

    GET   /v1/{index}/judging                     the projects of an index
    POST  /v1/{index}/judging/{project}/{act}     one of ACTS; each answers what the page draws next
    POST  /v1/{index}/judging/{project}/import    topics, a run, a pool or judgments, as text
    GET   /v1/{index}/judging/{project}/export    judgments or pools, as files

Projects are files beside an index, with every click in a journal (learn/judging/). A collection that is served as of an
earlier time is not judged: what others clicked would tell of what came later.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path as File
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from sdretrieval.collection.records import Topic
from sdretrieval.collection.trec import read_qrels, read_run, read_topics, write_qrels, write_run
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.learn.judging import Judgment, Offer, Project, projects
from sdretrieval.ranking.interactive import Index, NoDocument
from sdretrieval.ranking.registry import rankers
from sdretrieval.serve.answering import Answering, IndexName
from sdretrieval.serve.answers import named_document

POINTS = 200  # of the curve of what was found
LAST = 12  # judgments listed, to go back to
WORDS = 16
KEPT = 16  # projects that are kept open
MOST_POOLED = 1000
LONGEST_IMPORT = 16 << 20  # characters; the guard lets as much through
PARTING = 20  # disagreements listed

ProjectName = Annotated[str, Path(max_length=64)]
Word = Annotated[str, Field(max_length=500)]


class TopicGiven(BaseModel):
    qid: Word = ""
    text: str = Field(max_length=4000)


class Acting(BaseModel):
    """What an act takes; which does what is told at ACTS."""

    model_config = ConfigDict(extra="forbid")

    who: Word = "me"
    qid: Word | None = None
    way: Word = "learn"
    docid: Word | None = None
    grade: int | None = Field(None, ge=0, le=100, description="null skips the document")
    note: str = Field("", max_length=4000)
    came: Word = Field("", description="the way by which the judged document was offered")
    topics: list[TopicGiven] = Field([], max_length=1000)
    models: list[Word] = Field([], max_length=20)
    depth: int = Field(100, ge=1, le=MOST_POOLED)
    target: float = Field(0.95, gt=0, lt=1)
    first: Word = ""
    second: Word = ""


class Importing(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Literal["topics", "run", "pool", "qrels"]
    name: Word = Field("", description="of a run; of the assessor whose judgments these are")
    text: str = Field(max_length=LONGEST_IMPORT)


# -- acts: from a project and what is asked to what is drawn ---------------------------------------------------------


def overview(project: Project, asked: Acting) -> dict[str, Any]:
    """The project as a whole: its topics, runs and assessors."""
    return {
        "project": project.name,
        "relevant_from": project.rel,
        "topics": project.status(),
        "runs": sorted(project.runs),
        "assessors": project.assessors,
        "models": [name for name in rankers() if not name.startswith("lucene-")],
    }


def offer_next(project: Project, asked: Acting) -> dict[str, Any]:
    """The next document this way; without a topic, and by the way ``runs``, of any topic."""
    offer = project.next(asked.qid, asked.who, asked.way)
    return _view(project, offer.qid if offer else asked.qid, asked.who, offer)


def open_document(project: Project, asked: Acting) -> dict[str, Any]:
    """A document that is named, to be judged again or at once."""
    return _reopened(project, _given(asked.qid, "qid"), asked.who, _given(asked.docid, "docid"))


def judge(project: Project, asked: Acting) -> dict[str, Any]:
    """Write a judgment down, then offer the next document."""
    qid, docid = _given(asked.qid, "qid"), _given(asked.docid, "docid")
    project.judge(qid, docid, asked.grade, asked.who, note=asked.note, way=asked.came)
    return offer_next(project, asked if asked.way != "runs" else asked.model_copy(update={"qid": None}))


def undo(project: Project, asked: Acting) -> dict[str, Any]:
    """Take back the assessor's last judgment, and offer its document again."""
    undone = project.undo(asked.who)
    if undone is None:
        return {**offer_next(project, asked), "undone": None}
    return {**_reopened(project, undone.qid, asked.who, undone.docid), "undone": _click(project, undone)}


def add_topics(project: Project, asked: Acting) -> dict[str, Any]:
    """Add topics; those without an id are numbered on."""
    used = {topic.qid for topic in project.topics} | {topic.qid for topic in asked.topics}
    free = (str(n) for n in range(1, len(used) + len(asked.topics) + 2) if str(n) not in used)
    project.add_topics([Topic(given.qid or next(free), given.text) for given in asked.topics])
    return overview(project, asked)


def pool_models(project: Project, asked: Acting) -> dict[str, Any]:
    """Search all topics with models, keep what they find as runs, and pool it."""
    if not asked.models:
        raise ParameterError("no model was named", remedy="Choose at least one.")
    project.pool_from_models(asked.models, asked.depth)
    return overview(project, asked)


def learnt(project: Project, asked: Acting) -> dict[str, Any]:
    """What the relevant documents are about, and by which words the learner goes."""
    qid = _given(asked.qid, "qid")
    return {"about": project.words(qid, WORDS), "learner": project.learner(qid).words(WORDS)}


def stopping(project: Project, asked: Acting) -> dict[str, Any]:
    """The bound of recall, what a certificate would cost, and the one that there is."""
    qid = _given(asked.qid, "qid")
    bound, price, certificate = project.recall(qid), project.price(qid, asked.target), project.certificate(qid)
    drawn: dict[str, Any] | None = None
    if isinstance(certificate, int):
        drawn = {"left": certificate}
    elif certificate is not None:
        drawn = {"left": 0, "recall": certificate.recall, "told": str(certificate)}
    return {
        "recall": bound.recall,
        "told": str(bound),
        "price": {"sample": price.sample, "unseen": price.unseen, "told": str(price)},
        "certificate": drawn,
    }


def certify(project: Project, asked: Acting) -> dict[str, Any]:
    """Draw the random sample that a certificate of recall needs."""
    project.certify(_given(asked.qid, "qid"), asked.target)
    return stopping(project, asked)


def measures(project: Project, asked: Acting) -> dict[str, Any]:
    """The project's runs by what is judged so far: bounds, estimates, and which of two is better."""
    if not project.runs:
        return {"rows": [], "better": None}
    rows = [
        {
            **{name: getattr(one, name) for name in ("run", "measure", "low", "high", "estimate", "judged", "topics")},
            "interval": list(one.interval),
        }
        for one in project.measures(("AP", "P@5", "nDCG@10"))
    ]
    told = str(project.better(asked.first, asked.second)) if asked.first and asked.second else None
    return {"rows": rows, "better": told}


def agreement(project: Project, asked: Acting) -> dict[str, Any]:
    """Two assessors: κ, and the documents on which they part."""
    found = project.agreement(asked.first, asked.second, asked.qid)
    return {
        "both": found.both,
        "share": found.share,
        "kappa": found.kappa,
        "error": found.error,
        "parting": [
            {"qid": qid, **_document(project, docid), "grades": [one, other]}
            for qid, docid, one, other in found.disagreements[:PARTING]
        ],
    }


ACTS: dict[str, Callable[[Project, Acting], dict[str, Any]]] = {
    "overview": overview,
    "next": offer_next,
    "open": open_document,
    "judge": judge,
    "undo": undo,
    "topics": add_topics,
    "pool": pool_models,
    "words": learnt,
    "stopping": stopping,
    "certify": certify,
    "measures": measures,
    "agreement": agreement,
}


ActName = Annotated[
    str,
    Path(
        max_length=20,
        json_schema_extra={"enum": list(ACTS)},
        description=" ".join(f"{name}: {act.__doc__!s}" for name, act in ACTS.items()),
    ),
]


# -- parts -----------------------------------------------------------------------------------------------------------


def _given(value: str | None, name: str) -> str:
    if not value:
        raise ParameterError(f"no {name} was given")
    return value


def _view(project: Project, qid: str | None, who: str, offer: Offer | None) -> dict[str, Any]:
    """A topic as it stands, and the document offered."""
    shown = None if offer is None else {"docid": offer.docid, "way": offer.way, "left": offer.left}
    if offer is not None and shown is not None:
        shown["words"] = [[word, weight] for word, weight in offer.words]
        shown["document"] = _text(project, offer)
    status = next((one for one in project.status() if one["qid"] == qid), None)
    last = [_click(project, click) for click in project.judgments(qid, who)[-LAST:][::-1]] if qid else []
    return {"offer": shown, "topic": status, "curve": _curve(project, qid) if qid else [], "last": last}


def _reopened(project: Project, qid: str, who: str, docid: str) -> dict[str, Any]:
    known = [click for click in project.judgments(qid, who) if click.docid == docid]
    view = _view(project, qid, who, project.offer(qid, docid))
    return {**view, "before": _click(project, known[-1]) if known else None}


def _text(project: Project, offer: Offer) -> dict[str, Any]:
    """The document with the words marked that the topic and the learner look for."""
    document, analyze = project.index.doc(offer.docid), project.index.snapshot.analyze
    wanted = {*analyze(project.state(offer.qid).topic.text), *(word for word, weight in offer.words if weight > 0)}
    return {**named_document(document), "text": project.index.marker.whole(document.body, wanted)}


def _document(project: Project, docid: str) -> dict[str, Any]:
    try:
        return named_document(project.index.doc(docid))
    except NoDocument:  # the index has lost it since
        return {"docid": docid, "date": None, "title": ""}


def _click(project: Project, click: Judgment) -> dict[str, Any]:
    parts = {name: getattr(click, name) for name in ("qid", "grade", "note", "way")}
    return {**_document(project, click.docid), **parts}


def _curve(project: Project, qid: str) -> list[list[int]]:
    """How many relevant documents were found after so many judgments."""
    found = [(0, 0)]
    for grade in project.state(qid).grades().values():
        found.append((len(found), found[-1][1] + (grade >= project.rel)))
    step = max(1, len(found) // POINTS)
    return [list(point) for point in [*found[:-1:step], found[-1]]]


def take_in(project: Project, given: Importing) -> dict[str, Any]:
    """A file's text, read by the same strict readers as the command line's."""
    with TemporaryDirectory(prefix="sdretrieval-import-") as folder:
        file = File(folder) / ("topics.tsv" if given.kind == "topics" else f"{given.kind}.txt")
        file.write_text(given.text, encoding="utf-8")
        try:
            n = _taken_in(project, given, file)
        except InputError as error:
            raise InputError(error.message.replace(f"{folder}/", ""), remedy=error.remedy) from None
    return {"taken": n, **overview(project, Acting.model_validate({}))}


def _taken_in(project: Project, given: Importing, file: File) -> int:
    if given.kind == "topics":
        return project.add_topics(read_topics(file))
    if given.kind == "qrels":
        return project.import_qrels(read_qrels(file), given.name or "imported")
    run = read_run(file)
    if given.kind == "run":
        project.add_run(given.name or run.tag, run)
    return project.pool_from_runs([run])


def exported(project: Project, what: str, who: str | None) -> str:
    """Judgments as qrels, or pools as a run."""
    with TemporaryDirectory(prefix="sdretrieval-export-") as folder:
        file = File(folder) / what
        if what == "qrels":
            write_qrels(file, project.qrels(who))
        else:
            write_run(file, project.pools())
        return file.read_text(encoding="utf-8")


# -- routes ----------------------------------------------------------------------------------------------------------


class Projects:
    """Projects by index and name, the last few kept open: the learner's state stays between clicks."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], Project] = {}
        self._lock = Lock()

    def of(self, index: Index, name: str) -> Project:
        """A project, made when something is first written to it."""
        _judgeable(index)
        with self._lock:
            project = self._open.pop((index.name, name), None) or Project(index, name)
            self._open[index.name, name] = project
            for oldest in list(self._open)[:-KEPT]:
                del self._open[oldest]
        return project


def _judgeable(index: Index) -> File:
    if index.ceiling is not None:
        raise ParameterError(
            f"{index.name} is served as of an earlier time and is not judged here", remedy="Serve it without --as-of."
        )
    if index.snapshot.index is None:
        raise ParameterError(f"{index.name} has no folder to keep judgments beside")
    return index.snapshot.index


def judging(answering: Answering) -> APIRouter:
    """/v1/{index}/judging"""
    router, kept = APIRouter(prefix="/v1/{index}/judging"), Projects()

    @router.get("", summary="The judging projects of an index")
    async def get_projects(index: IndexName) -> Any:
        judged = answering.index(index)
        return await answering.json(lambda: {"projects": projects(_judgeable(judged))})

    @router.post("/{project}/import", summary="Topics, a run, a pool or judgments into a project")
    async def post_import(index: IndexName, project: ProjectName, given: Importing) -> Any:
        judged = answering.index(index)
        return await answering.json(lambda: take_in(kept.of(judged, project), given))

    @router.get("/{project}/export", summary="Judgments as qrels, or pools as a run")
    async def get_export(
        index: IndexName,
        project: ProjectName,
        what: Literal["qrels", "pool"] = "qrels",
        who: Annotated[str | None, Query(max_length=500)] = None,
    ) -> Any:
        judged = answering.index(index)
        text = await answering.workers.do(lambda: exported(kept.of(judged, project), what, who))
        return PlainTextResponse(text, headers={"content-disposition": f'attachment; filename="{what}.txt"'})

    @router.post("/{project}/{act}", summary="Judge, and ask what to judge next")
    async def post_act(index: IndexName, project: ProjectName, act: ActName, asked: Acting) -> Any:
        judged = answering.index(index)
        if act not in ACTS:
            raise HTTPException(404, f"nothing here does {act!r}")
        return await answering.json(lambda: ACTS[act](kept.of(judged, project), asked))

    return router
