"""The language in which messages are searched: ``status:failed tenant:acme tag:"big invoice" after:2026-11-01``.

Terms are joined by *and*; each names a field once. A word without a field is an address or a message's id. Pure:
the time and the zone come from the caller.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

from carteiro.model import (
    MessageFilter,
    MessageId,
    State,
    parse_message_id,
    value,
)
from carteiro.policy.addresses import judge_address

LONGEST_SEARCH: Final = 1000
_LONGEST_VALUE: Final = 998

# Each field, and the field of `MessageFilter` that it stands for.
FIELDS: Final[Mapping[str, str]] = {
    "status": "state",
    "tenant": "tenant",
    "to": "to",
    "tag": "tag",
    "code": "code",
    "after": "created_after",
    "before": "created_before",
    "provider-id": "provider_id",
    "external-id": "external_id",
    "recipient": "recipient_external_id",
    "kind": "kind",
    "id": "",  # opens the message
}
_TERM = re.compile(r'\s*(?:([A-Za-z][A-Za-z_-]*):)?(?:"([^"]*)"|([^\s"]+))(?=\s|$)')
_NEEDS_QUOTES = re.compile(r"\s|^$")
_AGO = re.compile(r"(\d{1,4})(min|h|d)")
_UNITS = {"min": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


class Wrong(StrEnum):
    """The kinds of faults."""

    UNREADABLE = "unreadable"
    UNKNOWN_FIELD = "unknown_field"
    NO_FIELD = "no_field"
    TWICE = "twice"
    EMPTY = "empty"
    STATUS = "status"
    TIME = "time"
    ID = "id"
    TOO_LONG = "too_long"
    BACKWARDS = "backwards"


@value
class Fault:
    """A fault of a search: the part at fault, and what may be meant, if that can be guessed."""

    wrong: Wrong
    text: str = ""
    hint: str = ""


@value
class Term:
    """A part of a search."""

    field: str
    text: str

    def __str__(self) -> str:
        """As it is written in the language."""
        return (
            f'{self.field}:"{self.text}"'
            if _NEEDS_QUOTES.search(self.text)
            else f"{self.field}:{self.text}"
        )


@value
class Search:
    """The terms of a search, in their order, and its faults: one with faults has no meaning."""

    terms: tuple[Term, ...] = ()
    faults: tuple[Fault, ...] = ()

    def __str__(self) -> str:
        """As it is written in the language."""
        return " ".join(map(str, self.terms))

    def given(self, field: str) -> str:
        """The text of a field; empty: it is not restricted."""
        return next((each.text for each in self.terms if each.field == field), "")

    def having(self, field: str, text: str) -> "Search":
        """The same with another text for a field; empty: without it."""
        kept = [each for each in self.terms if each.field != field]
        return Search((*kept, Term(field, text)) if text else tuple(kept))


def read_search(given: str) -> Search:
    """The terms of a search. Their texts are judged by `meaning_of`."""
    if len(given) > LONGEST_SEARCH:
        return Search(faults=(Fault(Wrong.TOO_LONG, str(LONGEST_SEARCH)),))
    terms: list[Term] = []
    faults: list[Fault] = []
    at = 0
    while at < len(given.rstrip()):
        found = _TERM.match(given, at)
        if found is None:
            faults.append(Fault(Wrong.UNREADABLE, given[at:].strip()[:50]))
            break
        at = found.end()
        term = _term(found[1], found[3] if found[2] is None else found[2])
        if isinstance(term, Fault):
            faults.append(term)
        elif any(each.field == term.field for each in terms):
            faults.append(Fault(Wrong.TWICE, term.field))
        else:
            terms.append(term)
    return Search(tuple(terms), tuple(faults))


def _term(name: str | None, text: str) -> Term | Fault:
    if name is None:
        if parse_message_id(text) is not None:
            return Term("id", text)
        return Term("to", text) if "@" in text.strip("@") else Fault(Wrong.NO_FIELD, text)
    field = name.lower().replace("_", "-")
    if field not in FIELDS:
        return Fault(Wrong.UNKNOWN_FIELD, name, _nearest(field, FIELDS))
    return Term(field, text) if text.strip() else Fault(Wrong.EMPTY, field)


@value
class Meaning:
    """The meaning of a search: one message, or a filter."""

    wanted: MessageFilter = MessageFilter()
    message: MessageId | None = None
    faults: tuple[Fault, ...] = ()


def meaning_of(search: Search, *, zone: tzinfo, now: datetime) -> Meaning:
    """The meaning of the search; times without an offset are in ``zone``."""
    faults = list(search.faults)
    fields: dict[str, object] = {}
    message: MessageId | None = None
    for term in search.terms:
        read = _read(term, zone, now)
        if isinstance(read, Fault):
            faults.append(read)
        elif term.field == "id":
            message = MessageId(str(read))
        else:
            fields[FIELDS[term.field]] = read
    after, before = fields.get("created_after"), fields.get("created_before")
    if isinstance(after, datetime) and isinstance(before, datetime) and after >= before:
        faults.append(Fault(Wrong.BACKWARDS))
    if faults:
        return Meaning(faults=tuple(faults))
    return Meaning(MessageFilter(**fields), message)  # type: ignore[arg-type]  # as `FIELDS` says


def _read(term: Term, zone: tzinfo, now: datetime) -> object:
    if len(term.text) > _LONGEST_VALUE:
        return Fault(Wrong.TOO_LONG, str(_LONGEST_VALUE))
    match term.field:
        case "status":
            return _state(term.text)
        case "after" | "before":
            return _moment(term.text, zone, now) or Fault(Wrong.TIME, term.text)
        case "id":
            return parse_message_id(term.text) or Fault(Wrong.ID, term.text)
        case _:
            return judge_address(term.text) or term.text if term.field == "to" else term.text


def _state(text: str) -> State | Fault:
    name = text.upper().replace("-", "_")
    if name in State.__members__:
        return State[name]
    return Fault(Wrong.STATUS, text, _nearest(name, State.__members__).lower())


def _moment(text: str, zone: tzinfo, now: datetime) -> datetime | None:
    """A day, a time, or a time ago such as ``24h``."""
    try:
        if ago := _AGO.fullmatch(text):
            return now - int(ago[1]) * _UNITS[ago[2]]
        read = datetime.fromisoformat(text)
        return (read if read.tzinfo else read.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _nearest(name: str, known: Iterable[str]) -> str:
    return next(iter(get_close_matches(name[:50], list(known), n=1, cutoff=0.6)), "")


def completions(given: str, known: Mapping[str, Sequence[str]], *, most: int = 12) -> list[str]:
    """The search with its last word completed: by the fields, or by the known values of its field."""
    before, word = _last_word(given)
    field, colon, begun = word.partition(":")
    if colon:
        begun = begun.lstrip('"').lower()
        values = [each for each in known.get(field.lower(), ()) if each.lower().startswith(begun)]
        found = [str(Term(field.lower(), each)) for each in values]
    else:
        used = {each.field for each in read_search(before).terms}
        found = [
            f"{each}:" for each in FIELDS if each.startswith(word.lower()) and each not in used
        ]
    return [before + each for each in found[:most]]


def _last_word(given: str) -> tuple[str, str]:
    """The text before the last word, and that word; one in quotes that are still open is whole."""
    given = given[:LONGEST_SEARCH]
    if given.count('"') % 2:
        start = given.rindex('"')
        start = given.rfind(" ", 0, start) + 1
    else:
        start = max(given.rfind(" "), given.rfind("\t")) + 1
    return given[:start], given[start:]
