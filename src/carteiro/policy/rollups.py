"""Figures of what happens to messages: counted where it is stored, added up by minute and by hour.

Figures are counters by name, so they can be added in any order and in any parts. Names that begin with ``max`` are
the largest value seen. ``sent.2`` counts messages sent by their second attempt, ``error.TRANSIENT_ERROR.421`` failed
attempts with this code, ``passing`` those by a failure of the provider that may pass. A dead message that is redriven,
or turns out to be sent, is subtracted again from the failed ones of the minute in which it failed.

A note is the figures of one list of messages, in one of these forms:

accepted  [tenant, template type, number], …
sent      [tenant, template type, provider, attempts, slot, number, sum of delays, sum of waits], …; before the
          number, of retries alone, the failure that they are a retry of
changed   [tenant, template type, first due at, [[provider, time, figures, failure, result], …]], …; without what
          there is not: a failure, and the result of a retry
seen      figures of the whole installation

Failures are added up to failure groups: see `carteiro.policy.failures`. So are results: see `carteiro.policy.history`.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from carteiro import model
from carteiro.model.figures import Figures, Span
from carteiro.policy.automatic_redrives import may_pass
from carteiro.policy.failures import said_of
from carteiro.policy.grouping import group_of, shown
from carteiro.policy.history import FAILED, FOUND, LOST, PAUSES, REDRIVEN, SENT
from carteiro.policy.lifecycle import Change, Entry

Note: TypeAlias = tuple[str, int, str]  # form, time in milliseconds, JSON

SPANS: Final[Mapping[Span, int]] = {"minute": 60_000, "hour": 3_600_000}
_MINUTE = SPANS["minute"]
# Time from accept to sent, in milliseconds: the upper bounds of slots; the last slot has none.
DELAYS: Final = PAUSES
MOST_ATTEMPTS: Final = 10  # later ones are counted as the tenth
MOST_CODES: Final = 30  # in one row; a provider has about a dozen that occur
MOST_TEMPLATES: Final = 50  # in an answer: a tenant may have a thousand rows in each hour
_MAX = "max"
_CODES = ("error.", "dead.")
_OTHER = "other"
_FAILED = {*model.DEAD, model.State.RETRY_SCHEDULED}
_WEIGHED = ("accepted", "sent", "retried", "failed", "cancelled")


class Key(NamedTuple):
    """The subject of a row of figures; an empty text: all of them."""

    span: Span
    tenant: str
    template: str
    provider: str
    at: int  # the start of the minute or hour


class Was(NamedTuple):
    """The part of an entry that a change may overwrite."""

    state: model.State
    attempts: int
    due_at: int
    provider: str | None
    failure: model.Failure | None
    finished_at: int | None
    retry_of: str | None


def was(entry: Entry) -> Was:
    """The entry, before a rule changes it."""
    return Was(
        *(entry.state, entry.attempts, entry.due_at),
        *(entry.provider, entry.failure),
        *(entry.finished_at, entry.retry_of),
    )


def changed(before: Was, entry: Entry, change: Change, now: int) -> list[tuple[Any, ...]]:
    """The figures of a change: the provider, the time that they belong to, and the counters; usually one, or none.

    After them the failure, if it failed, and the result, if it was a retry.
    """
    figures = _happened(before, entry, change, now)
    told = [(entry.provider, now, figures, *_more(_why(before, entry), _result(before, entry)))]
    if before.state in model.DEAD and entry.state not in model.DEAD and before.finished_at:
        undone = _failed(before.attempts, before.failure)
        undone = Counter({name: -count for name, count in undone.items()})
        told.append(
            (before.provider, before.finished_at, undone, *_more(None, _found(before, entry)))
        )
    return [each for each in told if each[2]]


def _more(failure: tuple[Any, ...] | None, result: tuple[Any, ...] | None) -> tuple[Any, ...]:
    """The parts of a note besides the figures: most changes have neither."""
    if result is None:
        return () if failure is None else (failure,)
    return failure, result


def _result(before: Was, entry: Entry) -> tuple[Any, ...] | None:
    """The end of an attempt that is a retry: the failure before it, its number, and what became of it."""
    if before.retry_of is None or not _has_ended(before, entry):
        return None
    names = [FAILED] if entry.state in _FAILED else []
    if entry.state in model.DEAD and entry.retry_of is not None:
        names.append(LOST)
    elif entry.state is model.State.SENT:
        names = [SENT]
    number = REDRIVEN if entry.round > 1 else entry.attempts
    return (before.retry_of, number, names) if names else None


def _found(before: Was, entry: Entry) -> tuple[Any, ...] | None:
    """A message that was lost with a retry, and turns out to be sent."""
    if before.retry_of is None or entry.state is not model.State.SENT:
        return None
    return before.retry_of, REDRIVEN if entry.round > 1 else before.attempts, [FOUND]


def _why(before: Was, entry: Entry) -> tuple[Any, ...] | None:
    """The failure of an attempt that ended, or of a message that died."""
    failure, has_died = entry.failure, entry.state in model.DEAD and before.state not in model.DEAD
    has_failed = _has_ended(before, entry) and entry.state in _FAILED
    if failure is not None and (has_failed or has_died):
        said = said_of(failure, shown(entry.provider, failure))
        group = group_of(entry.provider, failure)
        return entry.id, group, int(has_failed), int(has_died), said
    return None


def _has_ended(before: Was, entry: Entry) -> bool:
    """True if an attempt ended."""
    return before.state is model.State.SENT_ATTEMPT or entry.attempts > before.attempts


def _happened(before: Was, entry: Entry, change: Change, now: int) -> Figures:
    if entry.state is model.State.SENT_ATTEMPT:
        return _begun(before, entry, now)
    figures: Figures = Counter()
    has_ended = _has_ended(before, entry)
    if has_ended:
        figures[_numbered("ended", entry.attempts)] += 1
    if has_ended and entry.attempts == 1:
        figures["waits"] += 1
        figures["wait_ms"] += max(0, now - (entry.duration_ms or 0) - before.due_at)
    if any(event.type is model.EventType.RETRY_SCHEDULED for event in change.events):
        figures["retried"] += 1
        if has_ended:
            figures.update(pauses=1, pause_ms=entry.due_at - now)
    if has_ended and entry.failure is not None:
        figures[_coded("error", entry.failure)] += 1
        if may_pass(entry.failure):
            figures["passing"] += 1
    if entry.state is not before.state:
        figures.update(_moved(before, entry))
    return figures


def _begun(before: Was, entry: Entry, now: int) -> Figures:
    """A later attempt begins: the pause is over, or the result of the attempt before was lost."""
    if entry.attempts == before.attempts:
        return Counter()
    if before.state is model.State.SENT_ATTEMPT:
        return Counter([_numbered("ended", before.attempts)])
    is_again = before.state is model.State.RETRY_SCHEDULED
    return Counter(pause_ms=max(0, now - before.due_at)) if is_again else Counter()


def _moved(before: Was, entry: Entry) -> Figures:
    if entry.state in model.DEAD:
        return _failed(entry.attempts, entry.failure)
    if entry.state is model.State.SENT:
        return Counter(["sent", _numbered("sent", entry.attempts)])
    if entry.state is model.State.CANCELLED:
        return Counter(cancelled=1)
    return Counter(redriven=1) if before.state in model.DEAD else Counter()


def _failed(attempts: int, failure: model.Failure | None) -> Figures:
    return Counter(["failed", _numbered("failed", attempts), _coded("dead", failure)])


def _numbered(name: str, attempts: int) -> str:
    return f"{name}.{min(attempts, MOST_ATTEMPTS)}"


def _coded(name: str, failure: model.Failure | None) -> str:
    return f"{name}.{failure.category.value}.{failure.code}" if failure else f"{name}.{_OTHER}"


# --- notes


def added(notes: Iterable[Note], *, tenant: str = "") -> dict[Key, Figures]:
    """The figures of notes, by everything that they are kept by; of a tenant only those of its own messages.

    Most parts of a list belong together: they are added up first, and then to each row.
    """
    parts: defaultdict[tuple[str, str, str, int], Figures] = defaultdict(Counter)
    for form, at, text in notes:
        for whose, template, provider, time, figures in _FORMS[form](orjson.loads(text), at):
            if tenant in {"", whose}:
                add(parts[whose, template, provider, time - time % _MINUTE], figures)
    sums: defaultdict[Key, Figures] = defaultdict(Counter)
    for (whose, template, provider, minute), figures in parts.items():
        for span, length in SPANS.items():
            for names in _kept_by(whose, template, provider):
                add(sums[Key(span, *names, minute - minute % length)], figures)
    return dict(sums)


def _kept_by(tenant: str, template: str, provider: str) -> Iterator[tuple[str, str, str]]:
    if tenant != model.NOTICES:
        yield "", "", ""
        if provider:
            yield "", "", provider
    if tenant:
        yield tenant, "", ""
    if tenant and template:
        yield tenant, template, ""


_Told: TypeAlias = Iterator[tuple[str, str, str, int, Mapping[str, int]]]


def _accepted(told: Sequence[Any], at: int) -> _Told:
    for tenant, template, count in told:
        yield tenant, template or "", "", at, {"accepted": count}


def _sent(told: Sequence[Any], at: int) -> _Told:
    for tenant, template, provider, attempts, slot, *_, count, delays, waits in told:
        figures = {
            "sent": count,
            _numbered("sent", attempts): count,
            _numbered("ended", attempts): count,
            "delay_ms": delays,
            f"delay.{slot}": count,
        }
        if attempts == 1:
            figures |= {"waits": count, "wait_ms": waits}
        yield tenant, template or "", provider or "", at, figures


def _changed(told: Sequence[Any], at: int) -> _Told:
    for tenant, template, due_at, changes in told:
        for provider, time, figures, *_ in changes:
            if "sent" in figures:
                delay = max(0, at - due_at)
                figures |= {"delay_ms": delay, f"delay.{bisect_right(DELAYS, delay)}": 1}
            yield tenant, template or "", provider or "", time, figures


def _seen(told: Mapping[str, int], at: int) -> _Told:
    yield "", "", "", at, told


_FORMS: Mapping[str, Callable[[Any, int], _Told]] = {
    "accepted": _accepted,
    "sent": _sent,
    "changed": _changed,
    "seen": _seen,
}


# --- rows


def add(to: Figures, figures: Mapping[str, int]) -> None:
    """Add figures to others."""
    for name, count in figures.items():
        if name not in to:
            to[name] = count
        else:
            to[name] = max(to[name], count) if name.startswith(_MAX) else to[name] + count


def bounded(figures: Figures) -> Figures:
    """The same sums, with the most frequent codes by name, and the others as one.

    A code that is taken back may have been counted among the others.
    """
    if len(figures) <= MOST_CODES and all(count > 0 for count in figures.values()):
        return figures  # of a small tenant: there may be thousands in a fold
    kept: Figures = Counter({name: count for name, count in figures.items() if count})
    for kind in _CODES:
        codes = Counter({name: kept[name] for name in kept if name.startswith(kind)})
        others = f"{kind}{_OTHER}"
        for name in (-codes).keys() - {others}:
            taken = min(-codes[name], max(0, kept[others]))
            kept[others] -= taken
            kept[name] += taken
            del codes[name]
        for name, count in codes.most_common()[MOST_CODES:]:
            del kept[name]
            kept[others] += count
    return Counter({name: count for name, count in kept.items() if count})


def weight(figures: Figures) -> int:
    """The number of messages that something happened to."""
    return sum(figures.get(name, 0) for name in _WEIGHED)


def text_of(figures: Figures) -> str:
    """Figures as they are stored."""
    return orjson.dumps(figures).decode()


def figures_of(text: str) -> Figures:
    """Figures as they were stored."""
    return Counter(orjson.loads(text))
