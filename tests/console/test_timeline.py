"""The timeline of a message: phases, scale, and the table that says the same."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from carteiro.console.mail import PARTS
from carteiro.console.timeline import (
    MOST_LINES,
    RULE_KINDS,
    WIDTH,
    Span,
    Timeline,
    draw,
    in_units,
    lines,
    read_timeline,
    rule_kind,
)
from carteiro.console.words import LANGUAGES, words_in
from carteiro.model import Category, DeadReason, EventType, Scope, State, TimelineEvent
from carteiro.policy.search import FIELDS, Wrong
from carteiro.policy.waiting import Why

START = datetime(2026, 11, 19, tzinfo=UTC)
NAMES = {each: each.lower() for each in EventType} | {
    each: each for each in ("wait", "work", "attempt", "doubt")
}


def at(seconds: float) -> datetime:
    """This number of seconds after the start."""
    return START + timedelta(seconds=seconds)


def events(*told: tuple[EventType, float], **metadata: Any) -> list[TimelineEvent]:
    """Events at these seconds."""
    return [TimelineEvent(each, metadata, at(seconds)) for each, seconds in told]


LIFE = events(
    (EventType.ENQUEUED, 0),
    (EventType.RECEIVED, 40),
    (EventType.SENT_ATTEMPT, 41),
    (EventType.IN_DOUBT, 50),
    (EventType.RETRY_SCHEDULED, 60),
    (EventType.RECEIVED, 90),
    (EventType.SENT_ATTEMPT, 90),
    (EventType.SENT, 100),
    (EventType.DELIVERED, 1000),
)


def test_phases_follow_the_events() -> None:
    """A wait, work, an attempt, a doubt; feedback is none of them."""
    timeline = read_timeline(LIFE, begin=START, now=at(5000))

    assert timeline.spans == (
        Span("wait", at(0), at(40)),
        Span("work", at(40), at(41)),
        Span("attempt", at(41), at(50)),
        Span("doubt", at(50), at(60)),
        Span("wait", at(60), at(90)),
        Span("attempt", at(90), at(100)),
    )
    assert timeline.end == at(100)
    assert timeline.is_longer


def test_phase_that_goes_on_goes_on_until_now() -> None:
    """Also without any event, and with a clock that is wrong."""
    assert read_timeline([], begin=START, now=at(5)).spans == (Span("wait", at(0), at(5)),)
    running = read_timeline(LIFE[:3], begin=START, now=at(60))
    assert running.spans[-1] == Span("attempt", at(41), at(60))
    assert not running.is_longer
    assert read_timeline(LIFE[:1], begin=START, now=at(-5)).spans == ()
    late = read_timeline(events((EventType.ENQUEUED, -9)), begin=START, now=at(1))
    assert late.spans == (Span("wait", at(0), at(1)),)


def test_drawing_is_to_scale_and_names_everything() -> None:
    """Widths are shares of the time; each part has a title; texts are escaped."""
    timeline = read_timeline(LIFE, begin=START, now=at(5000))
    drawn = draw(timeline, "<b>", names=NAMES, is_whole=False)

    widths = [float(each) for each in re.findall(r'<rect[^>]* width="([\d.]+)"', drawn)]
    assert [round(each / (WIDTH - 24), 2) for each in widths] == [0.4, 0.01, 0.09, 0.1, 0.3, 0.1]
    assert "<title>&lt;b&gt;</title>" in drawn
    assert "<title>wait: 40 s</title>" in drawn
    assert "<title>sent</title>" in drawn
    assert "delivered" not in drawn
    assert "1.67 min" in drawn

    whole = draw(timeline, "", names=NAMES, is_whole=True)
    assert "<title>delivered</title>" in whole
    assert "16.7 min" in whole
    empty = Timeline(START, START, (), ())
    assert "<svg" in draw(empty, "", names=NAMES, is_whole=True)


def test_table_says_why_and_by_which_rule() -> None:
    """The failure apart, the rest as it is; very many events are cut in the middle."""
    told = {
        "errorCode": "550",
        "rule": "smtp.text.user_unknown@rcpt",
        "errorMessage": "x" * 9000,
        "attempt": 1,
        "recipients": ["a@b.c", "d@e.f"],
        "detail": "y" * 9000,
        "sesMessageId": "",
    }
    timeline = read_timeline(events((EventType.FAILED, 2), **told), begin=START, now=at(9))
    [line] = lines(timeline)
    assert line.since == timedelta(seconds=2)
    assert line.kind == "bad"
    assert line.explained["rule"] == "smtp.text.user_unknown@rcpt"
    assert dict(line.details) == {"attempt": "1", "recipients": "a@b.c, d@e.f", "detail": "y" * 500}

    many = read_timeline(
        events(*((EventType.OPENED, each) for each in range(1000))), begin=START, now=at(1)
    )
    assert len(lines(many)) == MOST_LINES
    assert lines(many)[-1].since == timedelta(seconds=999)
    assert draw(many, "", names=NAMES, is_whole=True).count("<g ") == MOST_LINES
    steps = (EventType.SENT_ATTEMPT, EventType.RETRY_SCHEDULED)
    long = read_timeline(
        events(*((steps[each % 2], each) for each in range(1000))), begin=START, now=at(1000)
    )
    assert draw(long, "", names=NAMES, is_whole=True).count("<rect ") == MOST_LINES


def test_rules_are_distinguished_by_their_names() -> None:
    """As docs/reference/verdicts.md lists them."""
    assert {
        rule: rule_kind(rule)
        for rule in (
            "own.mine",
            "smtp.text.a@rcpt",
            "smtp.google.inactive",
            "smtp.code.550@mail",
            "lifecycle.expired",
            "validation.INVALID",
            "task",
            "ses.Throttling",
            "in_doubt",
        )
    } == {
        "own.mine": "own",
        "smtp.text.a@rcpt": "text",
        "smtp.google.inactive": "system",
        "smtp.code.550@mail": "code",
        "lifecycle.expired": "lifecycle",
        "validation.INVALID": "validation",
        "task": "task",
        "ses.Throttling": "provider",
        "in_doubt": "in_doubt",
    }


def test_durations_of_a_scale_have_one_unit() -> None:
    """And two or three digits."""
    spans = (0.0025, 0.5, 59, 90, 5400, 200_000)
    told = [in_units(timedelta(seconds=each)) for each in spans]
    assert told == ["2.5 ms", "500 ms", "59 s", "1.5 min", "1.5 h", "2.31 d"]


def test_every_term_has_a_word_in_every_language() -> None:
    """Events, reasons to wait, states, categories, scopes, reasons of dead letters, kinds of rules."""
    wanted = [
        *(f"message.{prefix}_{each}" for prefix in ("event", "about") for each in EventType),
        *(f"message.why_{each}" for each in Why),
        *(f"message.category_{each}" for each in Category),
        *(f"message.scope_{each}" for each in Scope),
        *(f"dead_letters.reason_{each}" for each in DeadReason),
        *(f"message.rule_{each}" for each in RULE_KINDS),
        *(f"messages.state_{each}" for each in State),
        *(f"messages.fault_{each}" for each in Wrong),
        *(f"messages.{prefix}_{each}" for prefix in ("field", "about") for each in FIELDS),
        *(f"mail.part_{each}" for each in PARTS),
    ]
    for language in LANGUAGES:
        assert [each for each in wanted if each not in words_in(language).texts] == []
