"""Learning from history, in a world whose truth is known: by the rules of the path, on a clock of its own.

Two weeks of mail with five causes of failure, sent with the preset alone, and with lessons.
"""

import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import orjson
import pytest

from carteiro.model import (
    EMAIL,
    ClaimId,
    Deferred,
    Delivery,
    End,
    Failure,
    History,
    Lease,
    MessageId,
    Retry,
    Start,
    State,
    Taken,
    TenantId,
)
from carteiro.path.judge import judge
from carteiro.policy.grouping import group_of
from carteiro.policy.history import DAY_MS, places, results, up_to, with_results
from carteiro.policy.lessons import Lesson, is_spared, lesson_of
from carteiro.policy.lifecycle import Change, Entry, begin, finish
from carteiro.policy.retry import PRESETS
from carteiro.policy.rollups import changed, was
from support.builders import ACME, BRASA, a_failure

_DAYS = 12
_SECOND, _HOUR = 1000, 3_600_000
_TTL_MS = 24 * _HOUR
_POLICY = PRESETS["pipeline"]  # waits of 1, 5, 30 and 120 seconds

# True if an attempt sends the message: the time, and the time since its last failure.
Truth = Callable[[random.Random, int, int], bool]


@dataclass
class _Cause:
    """A cause of failure: how many messages a day it meets, and when an attempt goes through."""

    name: str
    tenant: TenantId
    a_day: int
    retry: Truth
    first: Truth = lambda _chance, _at, _since: False
    days: range = range(_DAYS)

    @property
    def failure(self) -> Failure:
        return a_failure(reason=f"421 {self.name}", rule=f"smtp.text.{self.name}")


def _during_outage(at: int) -> bool:
    return 5 * DAY_MS < at < 5 * DAY_MS + 6 * _HOUR


_RECOVERS_AT = 7 * DAY_MS
_CAUSES = [
    _Cause("closed", ACME, 400, lambda _chance, _at, _since: False),
    _Cause("busy", ACME, 200, lambda chance, _at, _since: chance.random() < 0.4),
    _Cause("slow", ACME, 400, lambda _chance, _at, since: since >= 20 * _SECOND),
    _Cause("moved", ACME, 400, lambda _chance, at, _since: at > _RECOVERS_AT),
    _Cause(
        "outage",
        ACME,
        600,
        lambda _chance, at, _since: not _during_outage(at),
        first=lambda _chance, at, _since: not _during_outage(at),
        days=range(5, 6),
    ),
    # Another tenant whose messages fail like those of "busy", and never succeed: it must teach only itself.
    _Cause("busy", BRASA, 400, lambda _chance, _at, _since: False),
]


@dataclass
class _World:
    """Messages one after the other; histories by group and tenant, read anew each hour."""

    learns: bool
    histories: dict[tuple[str, str], History] = field(default_factory=dict)
    lessons: dict[tuple[str, str], Lesson] = field(default_factory=dict)
    attempts: Counter[tuple[str, str]] = field(default_factory=Counter)
    sent: Counter[tuple[str, str]] = field(default_factory=Counter)
    sent_by_day: Counter[tuple[str, int]] = field(default_factory=Counter)
    evidence: set[tuple[str, int]] = field(default_factory=set)

    def run(self) -> "_World":
        chance = random.Random(7)
        arrivals = [
            (int((day + chance.random()) * DAY_MS), number)
            for number, cause in enumerate(_CAUSES)
            for day in cause.days
            for _ in range(cause.a_day)
        ]
        hour = 0
        for count, (at, number) in enumerate(sorted(arrivals)):
            if self.learns and at // _HOUR > hour:
                hour = at // _HOUR
                self._refresh(at)
            self._send(MessageId(f"message-{count}"), _CAUSES[number], at, chance)
        return self

    def _refresh(self, at: int) -> None:
        found = {
            place: lesson_of(place[0], up_to(each, at)) for place, each in self.histories.items()
        }
        self.lessons = {place: each for place, each in found.items() if each is not None}

    def _send(self, message: MessageId, cause: _Cause, at: int, chance: random.Random) -> None:
        entry, failed_at = _an_entry(message, cause.tenant, at), at
        due_at = at
        name = (cause.name, cause.tenant)
        while entry.state in {State.ENQUEUED, State.RETRY_SCHEDULED}:
            now = entry.due_at
            claim = ClaimId(f"claim-{entry.attempts}")
            lease = Lease(message, claim)
            start = Start(lease, "smtp", timedelta(seconds=40))
            _, change = begin(entry, start, owner=True, now=now)
            assert change is not None
            truth = cause.retry if entry.attempts > 1 else cause.first
            goes_through = truth(chance, now, now - failed_at)
            verdict = judge(
                Taken("id") if goes_through else Deferred(cause.failure),
                provider="smtp",
                charged_before=entry.charged,
                in_doubt_before=0,
                delivery=Delivery.AT_LEAST_ONCE,
                policy=_POLICY,
                expires_in=timedelta(milliseconds=entry.expires_at - now),
                chance=chance.random(),
                lesson=self._lesson(message, cause),
            )
            before = was(entry)
            _, change = finish(entry, End(lease, verdict), owner=True, now=now)
            assert change is not None
            self._note(before, entry, change, now, due_at)
            self.attempts[name] += 1
            failed_at = now
            if isinstance(verdict, Retry):
                self.evidence.update((name[0], _count(each.metadata)) for each in change.events)
        self.sent[name] += entry.state is State.SENT
        self.sent_by_day[cause.name, at // DAY_MS] += entry.state is State.SENT

    def _lesson(self, message: MessageId, cause: _Cause) -> Lesson | None:
        if is_spared(message):
            return None
        return self.lessons.get((group_of("smtp", cause.failure), cause.tenant))

    def _note(self, before: object, entry: Entry, change: Change, now: int, due_at: int) -> None:
        figures = changed(before, entry, change, now)  # type: ignore[arg-type]
        text = orjson.dumps([(entry.tenant, None, due_at, figures)]).decode()
        for each in results([("changed", now, text)]):
            for place in places(each):
                known = self.histories.get(place, History())
                self.histories[place] = with_results(known, [each], now)


def _count(metadata: object) -> int:
    return int(metadata.get("learned", {}).get("count", 0))  # type: ignore[attr-defined]


def _an_entry(message: MessageId, tenant: TenantId, at: int) -> Entry:
    nothing = dict.fromkeys(
        (
            *("holder", "held_until", "cancel_requested_at", "evidence", "provider"),
            *("provider_id", "failure", "duration_ms", "finished_at"),
        )
    )
    counts = {"attempts": 0, "charged": 0, "in_doubt": 0, "round": 1, "revision": 1}
    times = {"ttl_ms": _TTL_MS, "due_at": at, "expires_at": at + _TTL_MS}
    kinds = {"kind": EMAIL, "declares": True, "state": State.ENQUEUED}
    return Entry(id=message, tenant=tenant, **(nothing | counts | times | kinds))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def worlds() -> tuple[_World, _World]:
    """Two weeks with the preset alone, and with lessons."""
    usual, learning = _World(learns=False).run(), _World(learns=True).run()
    names = [(each.name, each.tenant) for each in _CAUSES]
    sys.stdout.write(
        f"\n{'cause':20} {'messages':>8} {'attempts':>9} {'learning':>9} {'sent':>7} {'learning':>9}\n"
    )
    for cause, name in zip(_CAUSES, names, strict=True):
        number = cause.a_day * len(cause.days)
        sys.stdout.write(
            f"{'/'.join(name):20} {number:8} {usual.attempts[name]:9} {learning.attempts[name]:9} "
            f"{usual.sent[name]:7} {learning.sent[name]:9}\n"
        )
    return usual, learning


def test_attempts_are_saved_and_mail_is_not_lost(worlds: tuple[_World, _World]) -> None:
    """Vain retries end, wasted ones are left out; what can be sent is sent."""
    usual, learning = worlds

    closed, busy, slow = [(each, ACME) for each in ("closed", "busy", "slow")]
    assert learning.attempts[closed] < usual.attempts[closed] * 0.45
    assert learning.attempts[slow] < usual.attempts[slow] * 0.8
    assert learning.sent[slow] == usual.sent[slow]
    assert learning.sent[busy] == pytest.approx(usual.sent[busy], rel=0.02)
    assert learning.attempts[busy] == pytest.approx(usual.attempts[busy], rel=0.02)


def test_group_that_recovers_is_not_buried(worlds: tuple[_World, _World]) -> None:
    """The messages that keep the preset show it within hours; from the next day on nothing is lost any more."""
    usual, learning = worlds
    first = _RECOVERS_AT // DAY_MS

    assert learning.attempts["moved", ACME] < usual.attempts["moved", ACME]
    for day in range(first + 1, _DAYS):
        assert learning.sent_by_day["moved", day] == usual.sent_by_day["moved", day] == 400
    lost = usual.sent_by_day["moved", first] - learning.sent_by_day["moved", first]
    assert lost < 100


def test_outage_teaches_nothing(worlds: tuple[_World, _World]) -> None:
    """However many messages it takes: as many are sent as without lessons."""
    usual, learning = worlds

    assert usual.attempts["outage", ACME] == pytest.approx(
        learning.attempts["outage", ACME], rel=0.02
    )
    assert learning.sent["outage", ACME] >= usual.sent["outage", ACME] * 0.99


def test_tenant_teaches_only_itself(worlds: tuple[_World, _World]) -> None:
    """Thousands of failures of one tenant end its own retries, and none of another one in the same group."""
    usual, learning = worlds
    group = group_of("smtp", _CAUSES[1].failure)

    assert learning.attempts["busy", BRASA] < usual.attempts["busy", BRASA] * 0.5
    assert (group, BRASA) in learning.lessons
    assert (group, ACME) not in learning.lessons
