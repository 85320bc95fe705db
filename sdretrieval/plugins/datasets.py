"""Collections by their ``ir_datasets`` id (``vaswani``, ``cranfield``, ``beir/nfcorpus/test`` …).

``ir_datasets`` is an extra: ``pip install 'sdretrieval[datasets]'``. It downloads a collection at first use
into ``$IR_DATASETS_HOME`` (by default ``~/.ir_datasets``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sdretrieval.collection.corpus.reading import Reader
from sdretrieval.collection.corpus.record import Document, FieldMap, Place
from sdretrieval.collection.records import Qrels, Topic
from sdretrieval.core.errors import InputError, ParameterError
from sdretrieval.core.times import parse_time

# The fields ir_datasets gives topics' texts under, best first.
_QUERY_FIELDS = ("title", "query", "text", "question")


def load(dataset_id: str) -> Any:
    """The dataset, or an error that says what to install or to correct."""
    try:
        import ir_datasets  # an extra, and slow to import
    except ImportError:
        raise ParameterError(
            f"--dataset {dataset_id} needs the package ir_datasets, which is not installed.",
            remedy="Run `pip install ir_datasets`.",
        ) from None
    try:
        return ir_datasets.load(dataset_id)
    except KeyError:
        raise ParameterError(
            f"ir_datasets knows no dataset {dataset_id!r}.", remedy="Ids are listed by `ir_datasets list`."
        ) from None


def documents(
    dataset_id: str,
    *,
    contents: tuple[str, ...] = (),
    date: str | None = None,
    date_format: str | Sequence[str] | None = None,
    **noted: Any,
) -> Iterator[Document]:
    """The dataset's documents; their text is ir_datasets' own choice unless ``contents`` names fields.

    ``noted``: ``undated``, ``problems`` and ``dates``, as of :class:`Reader`.
    """
    reader = Reader(date=date, **noted)
    dataset = load(dataset_id)
    if not dataset.has_docs():
        raise InputError(f"the dataset {dataset_id!r} has no documents", remedy=_relatives(dataset_id, "docs"))
    mapping = FieldMap(docid="doc_id", contents=contents or ("\0text",), date=date, date_format=date_format)
    for number, doc in enumerate(dataset.docs_iter(), 1):
        record = {name: _plain(value) for name, value in doc._asdict().items() if value is not None}
        if not contents:
            record["\0text"] = whole = doc.default_text()
            if record.get("text") and record["text"] in whole:  # the bulk of it: not kept twice
                del record["text"]
        try:
            made = reader.document(mapping, record, Place(f"ir_datasets:{dataset_id}", number))
        except InputError as error:
            reader.problems.report(error)
            continue
        if made is not None:
            yield made


def topics(dataset_id: str, *, field: str | None = None) -> list[Topic]:
    """The dataset's topics. ``field`` names the text (``title``, ``description`` …)."""
    dataset = load(dataset_id)
    if not dataset.has_queries():
        raise InputError(f"the dataset {dataset_id!r} has no topics", remedy=_relatives(dataset_id, "queries"))
    result = []
    for query in dataset.queries_iter():
        fields = {name: _plain(value) for name, value in query._asdict().items() if value is not None}
        qid = fields.pop("query_id")
        names = [name for name in ((field,) if field else _QUERY_FIELDS) if name in fields]
        if names:
            text = fields[names[0]]
        elif field is None:
            text = query.default_text()
        else:
            raise ParameterError(
                f"topics of {dataset_id!r} have no field {field!r}.", remedy=f"One of: {', '.join(fields)}."
            )
        result.append(Topic(qid, text, _query_time(fields), {name: str(value) for name, value in fields.items()}))
    return result


def qrels(dataset_id: str) -> Qrels:
    """The dataset's judgments."""
    dataset = load(dataset_id)
    if not dataset.has_qrels():
        raise InputError(f"the dataset {dataset_id!r} has no qrels", remedy=_relatives(dataset_id, "qrels"))
    judgments: dict[str, dict[str, int]] = {}
    for row in dataset.qrels_iter():
        judgments.setdefault(row.query_id, {})[row.doc_id] = int(row.relevance)
    return Qrels(judgments)


def _query_time(fields: dict[str, Any]) -> int | None:
    """TREC Microblog's topics have a time; others have none."""
    value = fields.get("time") or fields.get("querytime")
    try:
        return None if value is None else parse_time(value)
    except ValueError:
        return None


def _relatives(dataset_id: str, part: str) -> str:
    """Most ids are families: documents belong to the root, topics and qrels to a member."""
    import ir_datasets  # an extra, and slow to import

    root = dataset_id.split("/", maxsplit=1)[0]
    family = [name for name in ir_datasets.registry if name == root or name.startswith(root + "/")]
    having = [name for name in family if name != dataset_id and getattr(ir_datasets.load(name), f"has_{part}")()]
    return f"It is part of: {', '.join(having[:6])}." if having else "Choose another dataset."


def _plain(value: Any) -> Any:
    """Values as JSON can hold them: ir_datasets nests named tuples."""
    if hasattr(value, "_asdict"):
        return {name: _plain(inner) for name, inner in value._asdict().items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return value
