"""One parser per format of topics; see the package's table. Each yields topics as the format has them."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from sdretrieval.collection.trec.trec_file import SURROGATE, Path, TrecFile, listed, squeeze
from sdretrieval.core.errors import InputError, shown
from sdretrieval.core.safe_json import parse_json

TOPIC_FORMATS = ("trec", "microblog", "tsv", "jsonl", "smart", "cacm")


class TopicFile(TrecFile):
    """A topic file, with the fields of it that make the query."""

    def __init__(self, path: Path, wanted: list[str]) -> None:
        super().__init__(path)
        self.wanted, self.numbered = wanted, list(self.lines())

    def chosen(self, line: int, qid: str, fields: Mapping[str, str]) -> str:
        """The wanted fields, joined."""
        for name in self.wanted:
            if name not in fields:
                message = f"topic {shown(qid)} has no field {shown(name)}, only {listed(fields)}"
                self.fail(line, message, "Choose among these, e.g. field='title'.")
        return " ".join(fields[name] for name in self.wanted if fields[name])


@dataclass
class RawTopic:
    """A topic as its format has it, before the checks that all formats share."""

    line: int
    qid: str
    text: str = ""
    time: object = None
    time_line: int | None = None
    fields: dict[str, str] = field(default_factory=dict)


FORMAT_REMEDY = (
    f"Pass the format, one of {', '.join(TOPIC_FORMATS)}; the plainest is one topic per line: qid, tab, text."
)

ALIASES = {"number": "num", "query": "title", "text": "title", "description": "desc", "narrative": "narr"}

# Tags of TREC-1 to the Microblog tracks, with the labels TREC writes before their texts. These are tags
# wherever they stand; others at the start of a line only, so that a <b> in a sentence is not a field.
_LABELS = {
    "top": "",
    "num": "number",
    "title": "topic title query",
    "desc": "description",
    "narr": "narrative",
    "dom": "domain",
    "smry": "summary",
    "con": "concept(s)",
    "fac": "factor(s)",
    "def": "definition(s)",
    "nat": "nationality",
    "time": "time",
    "head": "",
    "querytime": "",
    "querytweettime": "",
}
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9_.-]*)(?:\s[^<>]*)?>")
_LABEL = re.compile(r"\s*([A-Za-z]+(?:\(s\))?)\s*:")
_ENTITY = re.compile(r"&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});")
_ASIDE = re.compile(r"\s*<(?:[?!].*|/?(?:topics|xml|parameters)(?:\s[^<>]*)?)>\s*", re.IGNORECASE)


def detect_format(file: TopicFile) -> str:
    for line, text in file.numbered:
        start = text.lstrip()
        if not start or _ASIDE.fullmatch(text):
            continue
        if start.startswith("{"):
            return "jsonl"
        if re.match(r"<top[\s>]", start, re.IGNORECASE):
            return "trec"  # Microblog topics are these, with a <querytime>
        if re.match(r"<doc[\s>]", start, re.IGNORECASE):
            return "cacm"
        if re.match(r"\.I(?:\s|$)", start):
            return "smart"
        if "\t" in text:
            return "tsv"
        file.fail(line, f"cannot tell the topic format from {shown(text)}", FORMAT_REMEDY)
    raise InputError("no topics: the file is empty", file=file.path, remedy="Check the path.")


def _parse_trec(file: TopicFile) -> Iterator[RawTopic]:
    """``<top>`` topics. A field ends where the next begins: TREC's own files close their tags or do not."""
    remedy = "Each topic is <top>, its fields, </top>."
    pieces: dict[str, list[str]] = {}
    places: dict[str, int] = {}
    start = 0  # the line of the open <top>; 0 outside
    name = ""  # the open field; "" between fields

    def keep(line: int, text: str) -> None:
        if name:
            pieces[name].append(text)
        elif text.strip():
            where = "in no field of its topic" if start else "outside <top> … </top>"
            file.fail(line, f"text {shown(text.strip())} {where}", remedy)

    for line, text in file.numbered:
        if not start and _ASIDE.fullmatch(text):
            continue
        done = 0
        indent = len(text) - len(text.lstrip())
        for tag in _TAG.finditer(text):
            closing, tag_name = tag[1] == "/", ALIASES.get(tag[2].lower(), tag[2].lower())
            if not (tag_name in _LABELS or tag_name == name or tag.start() == indent):
                continue
            keep(line, text[done : tag.start()])
            done = tag.end()
            if tag_name == "top":
                if closing and start:
                    yield _tagged(file, start, pieces, places)
                elif start:
                    file.fail(line, f"<top> inside the topic that begins on line {start}", remedy)
                elif closing:
                    file.fail(line, "</top> without <top>", remedy)
                start, name, pieces, places = 0 if closing else line, "", {}, {}
            elif not start:
                file.fail(line, f"{tag[0]} outside <top> … </top>", remedy)
            elif closing:
                name = ""
            elif tag_name in pieces:
                file.fail(line, f"{tag[0]} twice in the topic that begins on line {start}", remedy)
            else:
                name = tag_name
                pieces[name], places[name] = [], line
        keep(line, text[done:])
    if start:
        file.fail(start, "<top> is never closed: the file ends inside the topic", "Fetch the file again.")


def _tagged(file: TopicFile, start: int, pieces: Mapping[str, list[str]], places: Mapping[str, int]) -> RawTopic:
    fields = {}
    for name, parts in pieces.items():
        text = " ".join(parts)
        label = _LABEL.match(text)
        if label and label[1].lower() in _LABELS.get(name, "").split():
            text = text[label.end() :]
        fields[name] = squeeze(_ENTITY.sub(lambda entity: html.unescape(entity[0]), text))
    number = fields.pop("num", "")
    if not number:
        file.fail(start, "topic without a <num>", "Each topic has its id, as in <num> Number: 51.")
    text = file.chosen(start, number, fields)
    return RawTopic(start, number, text, fields.get("querytime"), places.get("querytime"), fields)


def _parse_microblog(file: TopicFile) -> Iterator[RawTopic]:
    for raw in _parse_trec(file):
        if not raw.time:
            remedy = "Add it, or read the file as 'trec', which needs none."
            file.fail(raw.line, f"topic {shown(raw.qid)} has no <querytime>", remedy)
        yield raw


def _parse_tsv(file: TopicFile) -> Iterator[RawTopic]:
    form = "Each line is: qid, tab, text and, optionally, tab, time."
    first = True
    for line, text in file.numbered:
        if not text.strip():
            continue
        columns = [column.strip() for column in text.split("\t")]
        if not (first and is_header(columns)):
            if len(columns) not in (2, 3):
                found = f"found {len(columns)}: {shown(text)}"
                file.fail(line, f"expected 2 or 3 columns at tabs, {found}", form)
            yield RawTopic(line, columns[0], columns[1], columns[2] if len(columns) == 3 else None)
        first = False


def is_header(columns: list[str]) -> bool:
    names = [column.lower() for column in columns]
    return names[0] in ("qid", "query_id", "id") and names[1:2] in (["query"], ["text"], ["title"])


def _parse_jsonl(file: TopicFile) -> Iterator[RawTopic]:
    form = 'Each line is an object such as {"qid": "1", "text": "the query"}.'
    usual = {"qid": ("qid", "id", "query_id"), "text": ("text", "query", "title"), "time": ("time", "querytime")}

    def name_of(role: str, record: Mapping[str, object], line: int) -> str:
        name = next((name for name in usual[role] if name in record), "")
        if not name and role != "time":
            file.fail(line, f"no {' or '.join(map(repr, usual[role]))} in the topic, only {listed(record)}", form)
        return name

    for line, text in file.numbered:
        if not text.strip():
            continue
        try:
            record = parse_json(text)
        except ValueError as error:
            file.fail(line, f"not JSON ({str(error)[:80]}): {shown(text)}", form)
        if not isinstance(record, dict):
            file.fail(line, f"a JSON {type(record).__name__} instead of an object: {shown(text)}", form)
        qid = record.pop(name_of("qid", record, line))
        if isinstance(qid, bool) or not isinstance(qid, str | int):
            file.fail(line, f"topic id {shown(qid)} is neither text nor a whole number", form)
        time = record.pop(name_of("time", record, line), None)
        text_name = name_of("text", record, line) if "title" in file.wanted else ""
        query = record.pop(text_name, None) if file.wanted == ["title"] else record.get(text_name, "")
        if not isinstance(query, str):
            file.fail(line, f"{text_name!r} of topic {shown(qid)} is not text but {shown(query)}", form)
        nested = record.get("fields")
        if isinstance(nested, dict):
            del record["fields"]
            record |= nested
        fields = {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in record.items()
            if value is not None
        }
        if file.wanted != ["title"]:
            named = {ALIASES.get(name.lower(), name.lower()): value for name, value in fields.items()}
            query = file.chosen(line, str(qid), named | ({"title": query} if text_name else {}))
        if SURROGATE.search("".join([query, *fields, *fields.values()])):
            file.fail(line, f"topic {shown(qid)} has half a surrogate pair", "Write the text as UTF-8.")
        yield RawTopic(line, str(qid).strip(), query.strip(), time, line, fields)


def _parse_smart(file: TopicFile) -> Iterator[RawTopic]:
    raw: RawTopic | None = None
    name = ""
    parts: dict[str, list[str]] = {}

    def finished(raw: RawTopic) -> RawTopic:
        raw.fields = {key: squeeze(" ".join(texts)) for key, texts in parts.items()}
        raw.text = raw.fields.get("w") or raw.fields.get("t", "")
        return raw

    for line, text in file.numbered:
        # Only a letter alone opens a section: ".NET" and ".W3C" are words of a query.
        marker = re.match(r"\.([A-Z])(?:\s+(.*))?$", text)
        if marker and marker[1] == "I":
            if raw is not None:
                yield finished(raw)
            raw, name, parts = RawTopic(line, (marker[2] or "").strip()), "", {}
        elif marker and not marker[2] and raw is not None:
            name = marker[1].lower()
            parts.setdefault(name, [])
        elif name:
            parts[name].append(text)
        elif text.strip():
            remedy = "Each topic is a line .I with its id, a line .W, and its text."
            file.fail(line, f"{shown(text)} before {'.W' if raw else 'the first .I'}", remedy)
    if raw is not None:
        yield finished(raw)


def _parse_cacm(file: TopicFile) -> Iterator[RawTopic]:
    form = "Each topic is <DOC> <DOCNO> its id </DOCNO> its text </DOC>."
    start = 0
    parts: list[str] = []
    for line, text in file.numbered:
        for piece in re.split(r"(</?DOC>)", text, flags=re.IGNORECASE):
            tag = piece.upper()
            if tag == "<DOC>":
                if start:
                    file.fail(line, f"<DOC> inside the topic that begins on line {start}", form)
                start, parts = line, []
            elif tag == "</DOC>":
                body = re.fullmatch(r"(?is)\s*<DOCNO>([^<]*)</DOCNO>(.*)", "\n".join(parts))
                if not start or body is None:
                    file.fail(start or line, "topic without its <DOCNO>" if start else "</DOC> alone", form)
                yield RawTopic(start, body[1].strip(), squeeze(body[2]))
                start = 0
            elif start:
                parts.append(piece)
            elif piece.strip():
                file.fail(line, f"text {shown(piece)} outside <DOC> … </DOC>", form)
    if start:
        file.fail(start, "<DOC> is never closed: the file ends inside the topic", "Fetch the file again.")


PARSERS: dict[str, Callable[[TopicFile], Iterator[RawTopic]]] = {
    "trec": _parse_trec,
    "microblog": _parse_microblog,
    "tsv": _parse_tsv,
    "jsonl": _parse_jsonl,
    "smart": _parse_smart,
    "cacm": _parse_cacm,
}
