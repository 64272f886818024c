"""Histories of failure groups: messages that failed and were tried again, and whether they were sent.

A failed message remembers the group of its failure and the time, as ``group@time``: its next attempt is a retry of that
failure. The result of the retry is noted with the change that it is about, and the fold of notes adds it to the history
of the group: of the tenant, and of all tenants.

Figures of a history, by day: ``sent.2`` and ``failed.2`` count retries by the number of the attempt; ``sent_after.5``
and ``failed_after.5`` by the slot of the time since the failure. ``lost`` counts messages that became dead letters with
a retry. A round after a redrive is a try of its own: ``redriven.sent``, ``redriven.lost``.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from carteiro.model import NOTICES, Failure, History
from carteiro.model.figures import Figures
from carteiro.policy.grouping import group_of

# Of a history a week is kept, and four while that is too little to learn from.
LEAST_DAYS: Final = 7
MOST_DAYS: Final = 28
_ENOUGH = 1000  # messages
DAY_MS: Final = 86_400_000
# Time from a failure to the end of its retry, in milliseconds: the upper bounds of slots; the last slot has none.
PAUSES: Final = (
    *(50, 100, 250, 500, 1_000, 5_000, 15_000, 60_000, 120_000, 300_000, 900_000),
    *(3_600_000, 21_600_000, 86_400_000),
)
MOST_ATTEMPTS: Final = 10  # later ones are counted as the tenth
_SUCCESSES = ("sent.", "redriven.sent")
REDRIVEN: Final = 0  # in place of the number of an attempt
SENT, FAILED, LOST = "sent", "failed", "lost"
FOUND = "found"  # a lost one was sent after all

Place: TypeAlias = tuple[str, str]  # group, tenant; an empty tenant: all of them


class Result(NamedTuple):
    """Retries of one failure group, counted by their result."""

    at: int
    tenant: str
    group: str
    figures: Mapping[str, int]


def retry_of(provider: str | None, failure: Failure, at: int) -> str:
    """The failure that the next attempt is a retry of."""
    return f"{group_of(provider, failure)}@{at}"


def results(notes: Iterable[tuple[str, int, str]]) -> Iterator[Result]:
    """The results of retries in notes; none of Carteiro's own tenant."""
    for form, at, text in notes:
        if form == "sent" and "@" in text:
            for tenant, _, _, attempts, _, *failed, count, _, _ in orjson.loads(text):
                if failed and tenant != NOTICES:
                    figures = _figures(failed[0], attempts, (SENT,), count, at)
                    yield Result(at, tenant, _group(failed[0]), figures)
        elif form == "changed":
            for tenant, _, _, changes in orjson.loads(text):
                for _, time, _, *more in changes if tenant != NOTICES else ():
                    if len(more) == 2:  # noqa: PLR2004 - a failure, or nothing, and a result
                        failed, attempts, names = more[1]
                        figures = _figures(failed, attempts, names, 1, at)
                        yield Result(time, tenant, _group(failed), figures)


def _group(failed: str) -> str:
    return failed.partition("@")[0]


def _figures(failed: str, attempts: int, names: Iterable[str], count: int, now: int) -> Figures:
    figures: Figures = Counter()
    slot = slot_of(now - int(failed.partition("@")[2]))
    for name in names:
        kept, change = (LOST, -count) if name == FOUND else (name, count)
        if attempts == REDRIVEN:
            figures.update({f"redriven.{kept}": change} if kept != FAILED else {})
        elif kept == LOST:
            figures[LOST] += change
        else:
            figures[f"{kept}.{min(attempts, MOST_ATTEMPTS)}"] += change
            figures[f"{kept}_after.{slot}"] += change
    return figures


def slot_of(pause_ms: int) -> int:
    """The slot of a time since a failure."""
    return bisect_right(PAUSES, pause_ms)


# --- histories


def places(result: Result) -> tuple[Place, Place]:
    """The histories that a result belongs to: of the tenant, and of all."""
    return (result.group, result.tenant), (result.group, "")


def with_results(history: History, results: Iterable[Result], now: int) -> History:
    """A history with more results; of its days the latest are kept, and none of a clock that ran ahead."""
    days, changed = {**history.days}, dict[int, Figures]()
    in_a_row = history.lost_in_a_row
    for each in results:
        day = each.at // DAY_MS
        if day not in changed:
            days[day] = changed[day] = Counter(days.get(day, ()))
        figures = changed[day]
        for name, count in each.figures.items():
            figures[name] += count
        if any(each.figures[name] for name in each.figures if name.startswith(_SUCCESSES)):
            in_a_row = 0
        in_a_row = max(0, in_a_row + each.figures.get(LOST, 0))
    return History(_latest(days, now // DAY_MS), in_a_row)


def together(histories: Iterable[History]) -> History:
    """The sum of histories."""
    days: dict[int, Figures] = {}
    in_a_row = 0
    for each in histories:
        in_a_row += each.lost_in_a_row
        for day, figures in each.days.items():
            days[day] = Counter(days.get(day, ()))
            for name, count in figures.items():
                days[day][name] += count
    return History(days, in_a_row)


def up_to(history: History, now: int) -> History:
    """The part of a history that is not too old."""
    return History(_latest(history.days, now // DAY_MS), history.lost_in_a_row)


def _latest(days: Mapping[int, Figures], last: int) -> dict[int, Figures]:
    kept: dict[int, Figures] = {}
    known = 0
    for day in sorted(days, reverse=True):
        age = last - day
        if -1 <= age < LEAST_DAYS or (LEAST_DAYS <= age < MOST_DAYS and known < _ENOUGH):
            kept[day] = days[day]
            known += _messages(days[day])[0]
    return kept


def total(history: History) -> Figures:
    """The figures of all days."""
    figures: Figures = Counter()
    for each in history.days.values():  # a sum of counters would leave out what is taken back
        for name, count in each.items():
            figures[name] += count
    return figures


def retried(history: History) -> int:
    """The number of results: an upper bound of every count in it."""
    starts = ("sent.", "failed.", "redriven.")
    counts = (figures.items() for figures in history.days.values())
    return sum(count for each in counts for name, count in each if name.startswith(starts))


def history_text(history: History) -> str:
    """A history as it is stored."""
    days = {str(day): figures for day, figures in sorted(history.days.items())}
    return orjson.dumps([days, history.lost_in_a_row]).decode()


def history_of(text: str) -> History:
    """A history as it was stored."""
    if not text:
        return History()
    days, in_a_row = orjson.loads(text)
    stored: dict[str, dict[str, Any]] = days
    return History({int(day): Counter(figures) for day, figures in stored.items()}, in_a_row)


# --- questions to a history


def messages(history: History) -> tuple[int, int]:
    """Messages that were tried again, and those of them that were sent."""
    return _messages(total(history))


def _messages(figures: Figures) -> tuple[int, int]:
    sent = sum(count for name, count in figures.items() if name.startswith("sent."))
    return sent + figures[LOST], sent


def span(history: History) -> int:
    """The number of days from the first one with a result to the last one."""
    return max(history.days) - min(history.days) + 1 if history.days else 0


def redriven(history: History) -> tuple[int, int]:
    """Messages that were redriven and ended, and those of them that were sent."""
    figures = total(history)
    return figures["redriven.sent"] + figures["redriven.lost"], figures["redriven.sent"]


def by_attempt(history: History) -> dict[int, tuple[int, int]]:
    """Retries, and those that sent their message, by the number of the attempt; the last one counts all later ones."""
    return _tried(total(history), "")


def by_slot(history: History) -> dict[int, tuple[int, int]]:
    """Retries, and those that sent their message, by the slot of the time since the failure."""
    return _tried(total(history), "_after")


def _tried(figures: Figures, of: str) -> dict[int, tuple[int, int]]:
    starts = f"{SENT}{of}.", f"{FAILED}{of}."
    numbers = {int(name.rpartition(".")[2]) for name in figures if name.startswith(starts)}
    counts = {
        each: (figures[f"{SENT}{of}.{each}"], figures[f"{FAILED}{of}.{each}"]) for each in numbers
    }
    return {
        each: (sent + failed, sent)
        for each, (sent, failed) in sorted(counts.items())
        if sent + failed
    }
