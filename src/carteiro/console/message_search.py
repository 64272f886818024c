"""Searches of messages: read from the address, looked up within a bound, and counted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from carteiro.api.refusal import Refusal
from carteiro.console.listing import PAGE_ROWS, Chip
from carteiro.console.visit import Visit
from carteiro.model import (
    EMAIL,
    Cursor,
    FailureFilter,
    MessageFilter,
    MessageId,
    State,
    StoredMessage,
    TenantId,
    value,
)
from carteiro.policy.search import FIELDS, LONGEST_SEARCH, Meaning, Search, meaning_of, read_search
from carteiro.ports import Backend, Reading

MOST_COUNTED: Final = 10_000
SAMPLE: Final = 10
# A store walks past at most 3,000 messages that do not match, and then ends a page: so at most 20,000 in all.
_MOST_WALKS: Final = 6
_ROWS_AT_ONCE: Final = 200
_MOST_ROWS: Final = 20_000
_KNOWN_TENANTS: Final = 200
_NEWEST: Final = 100


@value
class Asked:
    """A search in the address: as it was written, its terms, and its meaning."""

    text: str
    search: Search
    meaning: Meaning

    def address_with(self, visit: Visit, field: str, text: str | None) -> str:
        """The address of the list with another value for a field."""
        return visit.link("messages", q=str(self.search.having(field, text or "")))

    def chips(self, visit: Visit) -> list[Chip]:
        """The terms; each can be removed."""
        return [
            Chip(each.field, each.text, self.address_with(visit, each.field, None))
            for each in self.search.terms
        ]

    @property
    def list_address(self) -> str:
        """The path of the list with this search, below the console."""
        return f"messages?{urlencode({'q': str(self.search)})}"

    @property
    def faults(self) -> Sequence[object]:
        """Faults of the search."""
        return self.meaning.faults


def asked_in(visit: Visit, given: Mapping[str, str]) -> Asked:
    """The search in an address or a form: its text ``q``, and single fields, which replace those in the text."""
    text = given.get("q", "")[: LONGEST_SEARCH + 1]
    search = read_search(text)
    for field in FIELDS:
        if field in given:
            search = replace(search.having(field, given[field]), faults=search.faults)
    meaning = meaning_of(search, zone=visit.zone, now=datetime.now(UTC))
    wanted = replace(meaning.wanted, tenant=visit.within(meaning.wanted.tenant))
    return Asked(text, search, replace(meaning, wanted=wanted))


def has_fields(given: Mapping[str, str]) -> bool:
    """True if single fields are set, as the form without a script sends them."""
    return not FIELDS.keys().isdisjoint(given)


def filter_of(asked: Asked) -> MessageFilter:
    """The filter of a search that something is done with; a `Refusal` if it has faults, or names one message."""
    if asked.faults or asked.meaning.message:
        raise Refusal(422, "The search cannot be read: correct it in the list of messages first")
    return asked.meaning.wanted


@value
class Found:
    """A page of matches; ``reached``: the time up to which was searched, if not all was."""

    rows: Sequence[StoredMessage]
    next: Cursor | None
    reached: datetime | None


async def look_up(reading: Reading, wanted: MessageFilter, *, cursor: Cursor | None) -> Found:
    """The next matches, within the bound."""
    rows: list[StoredMessage] = []
    walks = 0
    while True:
        page = await reading.messages(wanted, cursor=cursor, limit=PAGE_ROWS - len(rows))
        rows += page.rows
        cursor = page.next
        walks += page.reached is not None
        if cursor is None or len(rows) >= PAGE_ROWS or walks >= _MOST_WALKS:
            return Found(rows, cursor, page.reached)


@value
class Count:
    """The number of matches that something can be done with, some of them, and how far was searched."""

    number: int
    is_exact: bool
    sample: Sequence[StoredMessage]
    reached: datetime | None


Fits = Callable[[StoredMessage], bool]


class Matches:
    """The matches of a search, in pages, within the bound."""

    def __init__(self, reading: Reading, wanted: MessageFilter, fits: Fits) -> None:
        self._reading = reading
        self._wanted = wanted
        self._fits = fits
        self._cursor: Cursor | None = None
        self._walks = self._read = 0
        self.reached: datetime | None = None
        self.is_over = False

    async def next(self) -> list[StoredMessage]:
        """The next ones, perhaps none; `is_over` says if there may be more."""
        page = await self._reading.messages(self._wanted, cursor=self._cursor, limit=_ROWS_AT_ONCE)
        self._cursor = page.next
        self._walks += page.reached is not None
        self._read += len(page.rows)
        if page.next is None:
            self.is_over, self.reached = True, None
        elif self._walks >= _MOST_WALKS or self._read >= _MOST_ROWS:
            self.is_over = True
            self.reached = page.reached or page.rows[-1].created_at
        return [each for each in page.rows if self._fits(each)]


async def count(matches: Matches) -> Count:
    """The number of matches, exact up to 10,000."""
    number, sample = 0, list[StoredMessage]()
    while not matches.is_over and number <= MOST_COUNTED:
        some = await matches.next()
        number += len(some)
        sample += some[: SAMPLE - len(sample)]
    is_exact = number <= MOST_COUNTED
    return Count(min(number, MOST_COUNTED), is_exact, sample, matches.reached)


async def known_values(backend: Backend, visit: Visit, text: str) -> dict[str, list[str]]:
    """The values that are proposed for the field of the last word: some, and only what the viewer may see."""
    field = text.rpartition(" ")[2].partition(":")[0].lower()
    own = visit.within()
    match field:
        case "status":
            return {field: [each.lower() for each in State if each is not State.VALIDATION_FAILED]}
        case "kind":
            return {field: [EMAIL]}
        case "tenant":
            return {field: await _tenants(backend, visit, own)}
        case "code":
            groups = (await backend.failures.list(FailureFilter(own), limit=_NEWEST)).rows
            return {field: _each([each.code for each in groups])}
        case "tag":
            rows = (await backend.reading.messages(MessageFilter(own), limit=_NEWEST)).rows
            return {field: _each([tag for row in rows for tag in row.tags])}
        case _:
            return {}


async def _tenants(backend: Backend, visit: Visit, own: TenantId | None) -> list[str]:
    if own is not None or not visit.may("GET /admin/v1/tenants"):
        return [] if own is None else [own]
    return [each.id for each in (await backend.tenants.list(limit=_KNOWN_TENANTS)).rows]


def _each(texts: Sequence[str]) -> list[str]:
    """Each once; those with quotes cannot be written in the language."""
    return sorted({each for each in texts if each and '"' not in each})


def ids_of(rows: Sequence[StoredMessage]) -> list[MessageId]:
    """The ids of messages."""
    return [each.id for each in rows]
