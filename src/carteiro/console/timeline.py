"""The timeline of a message: what it did in which span of time, drawn to scale, and the same as lines. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

from markupsafe import Markup, escape

from carteiro.model import EventType, TimelineEvent, value

Part = TypeVar("Part")

WIDTH: Final = 960
HEIGHT: Final = 92
MOST_LINES: Final = 200  # of the first and the last events each half
_LEFT, _RIGHT = 12, 12
_BAR, _AXIS = 44, 74
_LEAST_WIDTH = 3.0
_TICKS = 4
_LONGEST_DETAIL = 500

# What a message does from an event on; None: nothing, it has ended. Other events change nothing.
_PHASES: Mapping[EventType, str | None] = {
    EventType.ENQUEUED: "wait",
    EventType.RETRY_SCHEDULED: "wait",
    EventType.RECEIVED: "work",
    EventType.VALIDATED: "work",
    EventType.VALIDATION_FAILED: "work",
    EventType.SENT_ATTEMPT: "attempt",
    EventType.IN_DOUBT: "doubt",
    EventType.SENT: None,
    EventType.FAILED: None,
    EventType.EXPIRED: None,
    EventType.CANCELLED: None,
}
_HEIGHTS = {"wait": 6, "work": 12, "attempt": 24, "doubt": 24}
KINDS: Mapping[EventType, str] = {
    EventType.SENT: "ok",
    EventType.DELIVERED: "ok",
    EventType.OPENED: "ok",
    EventType.CLICKED: "ok",
    EventType.LATE_RESULT: "ok",
    EventType.FAILED: "bad",
    EventType.EXPIRED: "bad",
    EventType.VALIDATION_FAILED: "bad",
    EventType.BOUNCED: "bad",
    EventType.COMPLAINED: "bad",
    EventType.RECIPIENT_REFUSED: "bad",
    EventType.RETRY_SCHEDULED: "warn",
    EventType.IN_DOUBT: "warn",
    EventType.DELAYED: "warn",
}
_SHAPES = {
    "ok": "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0",
    "bad": "M-5,-5L5,5M5,-5L-5,5",
    "warn": "M0,-6L6,5H-6Z",
    "info": "M0,-6L5,0L0,6L-5,0Z",
}
_QUIET = {EventType.RECEIVED, EventType.VALIDATED, EventType.SENT_ATTEMPT}
_EXPLAINED = {"errorCode", "errorCategory", "scope", "rule", "willRetry", "errorMessage"}
_NAMED_RULES = {
    *("own", "login", "enhanced", "text", "policy", "subject", "code", "class", "status"),
    *("tls_error", "network", "timeout", "unknown"),
    *("lifecycle", "validation", "in_doubt", "crashes_worker", "task"),
}
RULE_KINDS: Final = _NAMED_RULES | {"system", "provider"}


@value
class Span:
    """A phase: wait, work, attempt or doubt."""

    phase: str
    begin: datetime
    end: datetime


@value
class Timeline:
    """Phases and events of a message, in the order of their times; ``end``: of the last phase."""

    begin: datetime
    end: datetime
    spans: tuple[Span, ...]
    events: tuple[TimelineEvent, ...]

    @property
    def is_longer(self) -> bool:
        """True if there is feedback after its end."""
        return bool(self.events) and self.events[-1].at > self.end


def read_timeline(events: Sequence[TimelineEvent], *, begin: datetime, now: datetime) -> Timeline:
    """The timeline; a phase that goes on goes on until now."""
    ordered = sorted(events, key=lambda each: each.at)
    spans: list[Span] = []
    phase: str | None = "wait"
    since = begin
    for each in ordered:
        if each.type in _PHASES:
            at = max(since, each.at)
            if phase is not None and at > since:
                spans.append(Span(phase, since, at))
            phase, since = _PHASES[each.type], at
    if phase is not None and now > since:
        spans.append(Span(phase, since, now))
    end = spans[-1].end if spans else begin
    return Timeline(begin, max(end, begin), tuple(spans), tuple(ordered))


def draw(timeline: Timeline, title: str, *, names: Mapping[str, str], is_whole: bool) -> Markup:
    """The timeline from its begin to its end, or as a whole with the feedback that came later."""
    last = timeline.events[-1].at if is_whole and timeline.events else timeline.end
    length = max(last - timeline.begin, timedelta(milliseconds=1))

    def x(at: datetime) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * max(0.0, min(1.0, (at - timeline.begin) / length))

    marks = [
        _mark(x(each.at), each, names)
        for each in _half(timeline.events)
        if each.type not in _QUIET and timeline.begin <= each.at <= last
    ]
    spans = [_span(x(each.begin), x(each.end), each, names) for each in _half(timeline.spans)]
    return Markup(  # noqa: S704 - numbers, and texts that are escaped
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{escape(title)}</title>'
        f"{_axis(length)}{''.join(spans)}{''.join(marks)}</svg>"
    )


def _span(left: float, right: float, span: Span, names: Mapping[str, str]) -> str:
    height = _HEIGHTS[span.phase]
    label = f"{names[span.phase]}: {in_units(span.end - span.begin)}"
    return (
        f'<rect class="span {span.phase}" x="{left:.1f}" y="{_BAR - height / 2}"'
        f' width="{max(_LEAST_WIDTH, right - left):.1f}" height="{height}"><title>{escape(label)}</title></rect>'
    )


def _mark(x: float, event: TimelineEvent, names: Mapping[str, str]) -> str:
    kind = KINDS.get(event.type, "info")
    return (
        f'<g transform="translate({x:.1f},18)"><path class="stem" d="M0,8V{_BAR - 18}"/>'
        f'<path class="mark {kind}" d="{_SHAPES[kind]}"/><title>{escape(names[event.type])}</title></g>'
    )


def _axis(length: timedelta) -> str:
    drawn = [f'<path class="axis" d="M{_LEFT},{_AXIS - 12}H{WIDTH - _RIGHT}"/>']
    for step in range(_TICKS + 1):
        at = _LEFT + (WIDTH - _LEFT - _RIGHT) * step / _TICKS
        anchor = {0: "start", _TICKS: "end"}.get(step, "middle")
        drawn.append(
            f'<path class="axis" d="M{at:.1f},{_AXIS - 16}v8"/>'
            f'<text class="tick" x="{at:.1f}" y="{_AXIS + 12}" text-anchor="{anchor}">'
            f"{in_units(length * step / _TICKS)}</text>"
        )
    return "".join(drawn)


def in_units(span: timedelta) -> str:
    """A duration for a scale: two digits or so, in one unit."""
    seconds = span.total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1000:.3g} ms"


@value
class Line:
    """An event as a row of a table; ``explained``: it says why something failed."""

    event: TimelineEvent
    since: timedelta
    kind: str
    explained: Mapping[str, str]
    details: tuple[tuple[str, str], ...]


def lines(timeline: Timeline) -> list[Line]:
    """All events, or the first and the last of very many."""
    return [_line(each, timeline.begin) for each in _half(timeline.events)]


def _half(all_: Sequence[Part]) -> Sequence[Part]:
    if len(all_) <= MOST_LINES:
        return all_
    return [*all_[: MOST_LINES // 2], *all_[-MOST_LINES // 2 :]]


def _line(event: TimelineEvent, begin: datetime) -> Line:
    told = event.metadata
    explained = {name: str(told[name]) for name in _EXPLAINED if told.get(name) is not None}
    details = tuple(
        (name, _brief(each))
        for name, each in told.items()
        if each not in (None, "", []) and not (name in _EXPLAINED and "rule" in told)
    )
    return Line(
        event,
        event.at - begin,
        KINDS.get(event.type, "info"),
        explained if "rule" in told else {},
        details,
    )


def _brief(told: Any) -> str:  # noqa: ANN401 - any JSON
    text = ", ".join(map(str, told)) if isinstance(told, list) else str(told)
    return text[:_LONGEST_DETAIL]


def rule_kind(rule: str) -> str:
    """The kind of rule that decided, as a word: see docs/reference/verdicts.md."""
    first, _, rest = rule.partition("@")[0].partition(".")
    part = rest.partition(".")[0]
    if first != "own" and part in _NAMED_RULES:
        return part
    if first in _NAMED_RULES:
        return first
    return "system" if first == "smtp" else "provider"
