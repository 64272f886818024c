"""Sums of failures by group, from notes in any order.

A failure is a part of a note: [message, group, failed attempts, deaths, [provider, rule, error, reason, code, category,
scope]]. Times are milliseconds since 1970.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from carteiro.model import NOTICES, Failure, GroupState, MessageId
from carteiro.policy.history import (
    Result,
    history_of,
    history_text,
    places,
    retried,
    with_results,
)

MOST_GROUPS: Final = 1000
MOST_TENANTS: Final = 20  # of a group, in one hour; the others are in its total
MOST_SAMPLES: Final = 5
HOUR_MS: Final = 3_600_000
SHOWN_MS: Final = 48 * HOUR_MS
_LONGEST_CODE = 60

Place: TypeAlias = tuple[str, int, str]  # group, hour, tenant; an empty tenant: all of them
ALL_HOURS: Final = 0  # the hour of sums over all hours


class Told(NamedTuple):
    """One failure of a note."""

    at: int
    tenant: str
    message: MessageId
    group: str
    attempts: int
    deaths: int
    said: tuple[str, ...]


@dataclass(slots=True)
class Group:
    """A row of groups, in the order of `model.FailureGroup`."""

    id: str
    provider: str
    rule: str
    error: str
    reason: str
    code: str
    category: str
    scope: str
    state: str
    first_seen: int
    opened_at: int
    last_seen: int
    resolved_at: int | None = None
    attempts: int = 0
    deaths: int = 0

    def add(self, told: Told) -> bool:
        """Add a failure; True if the group opens again."""
        self.attempts += told.attempts
        self.deaths += told.deaths
        self.first_seen = min(self.first_seen, told.at)
        if told.at >= self.last_seen:
            self.last_seen = told.at
            self.code, self.category, self.scope = told.said[-3:]
        if self.resolved_at is not None and told.at <= self.resolved_at:
            return False
        opens = self.state == GroupState.RESOLVED
        self.opened_at = told.at if opens else min(self.opened_at, told.at)
        self.state = GroupState.OPEN.value if opens else self.state
        return opens


@dataclass(slots=True)
class Count:
    """The failures of a group in an hour: of one tenant, with its newest messages, or of all."""

    attempts: int
    deaths: int
    first_at: int
    last_at: int
    samples: list[tuple[int, MessageId]] = field(default_factory=list)
    retried: int = 0  # of all hours, as is the history: results in it
    history: str = ""

    def add(self, other: "Count") -> None:
        """Add more of the same place; one of them has its history."""
        self.attempts += other.attempts
        self.deaths += other.deaths
        self.first_at = min(self.first_at, other.first_at)
        self.last_at = max(self.last_at, other.last_at)
        if other.samples:
            self.samples = newest([*self.samples, *other.samples])
        if other.history:
            self.retried, self.history = other.retried, other.history


def newest(samples: Iterable[tuple[int, MessageId]]) -> list[tuple[int, MessageId]]:
    """The newest messages, each once."""
    latest = {message: at for at, message in sorted(samples)}
    return sorted(((at, message) for message, at in latest.items()), reverse=True)[:MOST_SAMPLES]


def said_of(failure: Failure, alike: tuple[str, ...]) -> tuple[str, ...]:
    """The last part of a failure in a note; of a task's own code, only what looks like one."""
    return (*alike, code_of(failure), failure.category.value, failure.scope.value)


def code_of(failure: Failure) -> str:
    """The code, if it looks like one: that of a task may be any text, such as an address."""
    code = failure.code
    is_code = len(code) <= _LONGEST_CODE and code.isascii() and code.replace("_", "").isalnum()
    return code if is_code else "OTHER"


def told(notes: Iterable[tuple[str, int, str]]) -> Iterator[Told]:
    """The failures of notes; none of Carteiro's own tenant."""
    for form, _, text in notes:
        for tenant, _, _, changes in orjson.loads(text) if form == "changed" else ():
            for _, at, _, *more in changes if tenant != NOTICES else ():
                if more and more[0] is not None:
                    message, group, attempts, deaths, said = more[0]
                    yield Told(at, tenant, message, group, attempts, deaths, tuple(said))


def add_groups(groups: MutableMapping[str, Group], failures: Iterable[Told]) -> list[Group]:
    """Add failures to their groups, new ones included; return those that open again."""
    reopened = []
    for each in failures:
        if each.group not in groups:
            state = GroupState.OPEN.value
            row: Any = (each.group, *each.said, state, each.at, each.at, each.at)
            groups[each.group] = Group(*row)
        if groups[each.group].add(each):
            reopened.append(groups[each.group])
    return reopened


def add_counts(
    counts: MutableMapping[Place, Count], failures: Iterable[Told], tenants: Container[str]
) -> None:
    """Add failures to their hours: of all, and of each of these tenants."""
    for each in failures:
        hour = each.at - each.at % HOUR_MS
        one = (each.attempts, each.deaths, each.at, each.at)
        add_count(counts, (each.group, hour, ""), Count(*one))
        if each.tenant in tenants:
            sample = [(each.at, each.message)]
            add_count(counts, (each.group, hour, each.tenant), Count(*one, sample))


def add_totals(
    counts: MutableMapping[Place, Count], failures: Iterable[Told], tenants: Container[str]
) -> None:
    """Add failures to the sums of each of these tenants."""
    for each in failures:
        if each.tenant in tenants:
            one = Count(each.attempts, each.deaths, each.at, each.at)
            add_count(counts, (each.group, ALL_HOURS, each.tenant), one)


def add_results(
    counts: MutableMapping[Place, Count], results: Iterable[Result], now: int
) -> set[Place]:
    """Add results of retries to the sums that are known; return those that changed."""
    parts: defaultdict[Place, list[Result]] = defaultdict(list)
    for each in results:
        for group, tenant in places(each):
            parts[group, ALL_HOURS, tenant].append(each)
    changed = parts.keys() & counts.keys()
    for place in changed:
        count = counts[place]
        history = with_results(history_of(count.history), parts[place], now)
        count.retried, count.history = retried(history), history_text(history)
    return changed


def beyond(counts: Mapping[Place, Count], most: int) -> set[Place]:
    """The tenants beyond those with the most failures, of each hour."""
    hours: defaultdict[tuple[str, int], list[tuple[int, int, str]]] = defaultdict(list)
    for (group, at, tenant), each in counts.items():
        if tenant and at != ALL_HOURS:
            hours[group, at].append((-each.deaths, -each.attempts, tenant))
    return {
        (*hour, tenant) for hour, those in hours.items() for _, _, tenant in sorted(those)[most:]
    }


def add_count(counts: MutableMapping[Place, Count], place: Place, count: Count) -> None:
    """Add failures to those of a place."""
    if place in counts:
        counts[place].add(count)
    else:
        counts[place] = count


def samples_of(text: str) -> list[tuple[int, MessageId]]:
    """Samples as they were stored."""
    return [(at, message) for at, message in orjson.loads(text)]


def samples_text(samples: list[tuple[int, MessageId]]) -> str:
    """Samples as they are stored."""
    return orjson.dumps(samples).decode()


def counted(row: Iterable[Any]) -> tuple[Place, Count]:
    """A row of counts: group, hour, tenant, attempts, deaths, first and last time, samples, perhaps the history."""
    group, at, tenant, attempts, deaths, first_at, last_at, samples, *history = row
    return (group, at, tenant), Count(
        attempts, deaths, first_at, last_at, samples_of(samples), *history
    )


def row_of(place: Place, count: Count) -> tuple[Any, ...]:
    """A row as it is stored: see `counted`."""
    counts = count.attempts, count.deaths, count.first_at, count.last_at
    return (*place, *counts, samples_text(count.samples), count.retried, count.history)
