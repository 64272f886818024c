"""Alerts move: pending, firing, acknowledged, resolved; and the notices about it."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import TenantId
from carteiro.model.alerts import (
    ALL_ALERTS,
    About,
    Alert,
    AlertRules,
    AlertState,
    Finding,
    Notice,
    NoticeKind,
    Silence,
)
from carteiro.policy import alert_states
from carteiro.policy.notices import announced, is_silenced
from support.alerting import (
    FULL,
    MINUTE,
    OFTEN,
    RULES,
    SLOW,
    a_definition,
    full,
    kinds,
    often,
    rules,
    slow,
    unknown,
)

NOON = datetime(2026, 10, 1, 12, tzinfo=UTC)
ACK = "acknowledge"


def a_silence(alert: str = FULL, subject: str = "", *, minutes: int = 60) -> Silence:
    until = NOON + minutes * MINUTE
    return Silence("s-1", alert, subject, TenantId(""), "upgrade", "ana", NOON, until)


class Life:
    """Plays looks, one a minute, and keeps the alerts and the notices."""

    def __init__(self, rules: AlertRules = RULES, silences: Sequence[Silence] = ()) -> None:
        self.rules, self.silences = rules, silences
        self.now = NOON
        self.alerts: dict[tuple[str, str], Alert] = {}
        self.notices: list[Notice] = []

    def look(self, *findings: Finding, minutes: int = 1) -> list[str]:
        """The kinds of new notices after a look; the time moves on after it."""
        unsettled = [
            each
            for each in self.alerts.values()
            if each.state is not AlertState.RESOLVED or each.told not in {None, AlertState.RESOLVED}
        ]
        step = alert_states.step(unsettled, findings, self.silences, self.rules, self.now)
        self.alerts |= {each.key: each for each in step.alerts}
        for key in step.gone:
            del self.alerts[key]
        self.notices += step.notices
        self.now += minutes * MINUTE
        return kinds(step.notices)

    def acknowledge(self, name: str = FULL) -> list[str]:
        after = alert_states.acknowledged(self.alerts[name, ""], "ana", self.now)
        assert after is not None
        [told], notices = announced([after], self.silences, self.rules, self.now)
        self.alerts[told.key] = told
        self.notices += notices
        return kinds(notices)

    def states(self) -> dict[str, str]:
        return {
            f"{name} {subject}".strip(): each.state.value
            for (name, subject), each in self.alerts.items()
        }


def test_alert_fires_after_its_condition_held_for_its_duration() -> None:
    """There is no notice about a pending one."""
    life = Life()
    told = [life.look(slow()) for _ in range(7)]

    assert told == [[], [], [], [], [], ["firing"], []]
    assert life.alerts[SLOW, ""].since == NOON


def test_pending_alert_whose_condition_ends_leaves_no_trace() -> None:
    """The next one begins anew."""
    life = Life()
    life.look(slow(), minutes=4)
    life.look()

    assert life.alerts == {}
    assert [life.look(slow(), minutes=3) for _ in range(2)] == [[], []]


def test_pending_time_without_a_look_does_not_count() -> None:
    """All workers were stopped meanwhile: the condition may have ended in between."""
    life = Life()
    life.look(slow(), minutes=60)

    assert life.look(slow()) == []
    assert life.states() == {SLOW: "pending"}


def test_alert_without_a_duration_fires_at_once() -> None:
    life = Life()

    assert life.look(full()) == ["firing"]
    assert life.notices[0].value == 11
    assert life.notices[0].severity == "critical"


def test_alert_resolves_after_a_time_without_its_condition() -> None:
    """A condition that comes back sooner is the same alert: there is no second notice."""
    life = Life()
    told = [life.look(*found) for found in ([full()], [], [full()], [], [], [], [])]

    assert told == [["firing"], [], [], [], ["resolved"], [], []]
    assert life.states() == {FULL: "resolved"}


def test_acknowledged_alert_is_announced_once_and_not_reminded_of() -> None:
    life = Life()
    life.look(full())
    told = [life.acknowledge(), life.acknowledge()]
    later = [life.look(full(), minutes=300) for _ in range(3)]

    assert told == [["acknowledged"], []]
    assert later == [[], [], []]
    assert life.notices[-1].by == "ana"
    assert [life.look(), life.look()] == [["resolved"], []]


def test_only_a_firing_alert_can_be_acknowledged() -> None:
    life = Life()
    life.look(slow())
    pending = life.alerts[SLOW, ""]
    over = replace(pending, state=AlertState.RESOLVED)

    assert [alert_states.acknowledged(each, "ana", NOON) for each in (pending, over)] == [
        None,
        None,
    ]


def test_firing_alert_is_reminded_of_after_a_while() -> None:
    """Again and again, until someone acknowledges it; a setting of 0 is never."""
    life, silent = Life(), Life(rules(remind_after=timedelta(0)))
    told = [life.look(full(), minutes=60) for _ in range(9)]

    assert told == [["firing"], [], [], [], ["reminder"], [], [], [], ["reminder"]]
    assert [silent.look(full(), minutes=600) for _ in range(3)] == [["firing"], [], []]
    assert len({each.id for each in life.notices}) == 3


def test_pending_time_without_knowledge_does_not_count() -> None:
    """If it is short, it does: the condition goes on."""
    life, short = Life(), Life()
    told = [life.look(slow()), life.look(unknown(SLOW), minutes=6), life.look(slow())]
    more = [short.look(each) for each in (slow(), unknown(SLOW), *[slow()] * 4)]

    assert told == [[], [], []]
    assert more == [[], [], [], [], [], ["firing"]]


def test_clock_that_was_ahead_delays_no_end() -> None:
    """Nor the next alert: what was seen later than now was seen now."""
    life = Life()
    life.now = NOON + timedelta(days=1)
    life.look(full(), slow())
    life.now = NOON
    told = [life.look(slow()) for _ in range(7)]

    assert told == [[], [], ["resolved"], [], [], ["firing"], []]


def test_clock_that_was_ahead_delays_no_reminder() -> None:
    life = Life()
    life.now = NOON + timedelta(days=1)
    life.look(full())
    life.now = NOON
    life.look(full(), minutes=240)

    assert life.look(full()) == ["reminder"]


def test_new_condition_after_the_end_is_a_new_alert() -> None:
    """Its time begins anew, and it is announced again."""
    life = Life()
    for found in ([full()], [], [], []):
        life.look(*found)
    again = life.now

    assert life.look(full()) == ["firing"]
    assert life.alerts[FULL, ""].since == again


# --- silences ------------------------------------------------------------------------------------


def test_silence_holds_back_what_still_holds_at_its_end() -> None:
    life = Life(silences=[a_silence(minutes=5)])

    assert [life.look(full()) for _ in range(7)] == [[], [], [], [], [], ["firing"], []]


def test_alert_that_came_and_went_in_a_silence_is_never_announced() -> None:
    life = Life(silences=[a_silence(minutes=5)])
    told = [life.look(*found) for found in ([full()], [], [], [], [], [], [])]

    assert told == [[]] * 7
    assert life.states() == {FULL: "resolved"}


def test_end_in_a_silence_is_announced_after_it() -> None:
    """The notice of the beginning is followed by one of the end."""
    life = Life()
    life.look(full())
    life.silences = [a_silence(minutes=10)]

    assert [life.look(minutes=3) for _ in range(5)] == [[], [], [], ["resolved"], []]


def test_alert_that_returns_in_a_silence_is_not_announced_again() -> None:
    """By the notices it was never over; its end is announced once."""
    life = Life()
    life.look(full())
    life.silences = [a_silence(minutes=10)]
    told = [life.look(minutes=3), life.look(minutes=3), life.look(full(), minutes=3)]

    assert told == [[], [], []]
    assert [life.look(full()), life.look(minutes=3), life.look(), life.look()] == [
        [],
        [],
        ["resolved"],
        [],
    ]


def test_silence_is_for_its_alert_and_its_subject() -> None:
    silences = {
        "this": a_silence(OFTEN, "acme"),
        "any subject": a_silence(OFTEN),
        "all": a_silence(ALL_ALERTS),
        "another subject": a_silence(OFTEN, "brasa"),
        "another alert": a_silence(FULL),
        "over": a_silence(OFTEN, minutes=-1),
    }
    silenced = {name for name, each in silences.items() if is_silenced(OFTEN, "acme", [each], NOON)}

    assert silenced == {"this", "any subject", "all"}


# --- many subjects -------------------------------------------------------------------------------


def test_subjects_beyond_the_limit_are_one_alert() -> None:
    """The worst have alerts of their own; open ones stay, so that a mere change of order makes no notice."""
    life = Life()
    first = [often(f"t-{number}", number) for number in range(11, 16)]
    life.look(*first)
    worse = [often(f"u-{number}", 100) for number in range(3)]
    told = life.look(*first, *worse)

    assert set(life.states()) == {f"{OFTEN} t-13", f"{OFTEN} t-14", f"{OFTEN} t-15", OFTEN}
    assert life.alerts[OFTEN, ""].value == 5
    assert told == []


def test_tenant_with_many_subjects_leaves_room_for_others() -> None:
    """Also if its alerts were open first, and worse."""
    fails = a_definition("TemplateFails", About.TEMPLATE)
    life = Life(AlertRules({fails.name: fails}, most=3))
    many = [Finding(fails.name, f"acme/{number}", 100, 10) for number in range(4)]
    life.look(*many)
    life.look(*many, Finding(fails.name, "brasa/bill", 11, 10))

    firing = [each.subject for each in life.notices if each.kind is NoticeKind.FIRING]
    assert firing == ["", "acme/0", "acme/1", "acme/2", "brasa/bill"]


def test_unknown_findings_and_alerts_without_a_definition_are_dropped() -> None:
    """An alert of a former release ends without a word."""
    life = Life()
    life.look(full())
    life.rules = AlertRules({}, resolve_after=MINUTE)

    assert life.look(full()) == []
    assert life.alerts == {}


def test_subject_belongs_to_its_tenant() -> None:
    """Ids of tenants may have a slash, types of templates have none."""
    found = [
        alert_states.tenant_of(About.TENANT, "acme"),
        alert_states.tenant_of(About.TEMPLATE, "acme/brasil/welcome"),
        alert_states.tenant_of(About.PROVIDER, "ses"),
        alert_states.tenant_of(About.INSTALLATION, ""),
    ]

    assert found == ["acme", "acme/brasil", "", ""]


# --- any life ------------------------------------------------------------------------------------


def _after(kind: NoticeKind) -> Iterable[NoticeKind]:
    """The kinds that may follow one in the notices of an alert."""
    match kind:
        case NoticeKind.FIRING | NoticeKind.REMINDER:
            return {NoticeKind.REMINDER, NoticeKind.ACKNOWLEDGED, NoticeKind.RESOLVED}
        case NoticeKind.ACKNOWLEDGED:
            # It came back in a silence in which it also ended: that is a new alert.
            return {NoticeKind.RESOLVED, NoticeKind.FIRING}
        case _:
            return {NoticeKind.FIRING, NoticeKind.ACKNOWLEDGED}


@given(st.lists(st.sampled_from(["found", "none", ACK, "silence", "speak", "wait"]), max_size=40))
def test_any_life_is_announced_in_order(steps: list[str]) -> None:
    """Whatever happens: each notice has its own id, a beginning comes before its end, and none is announced twice."""
    life = Life()
    for step in steps:
        match step:
            case "found":
                life.look(full())
            case "none":
                life.look()
            case "wait":
                life.look(full(), minutes=300)
            case "silence":
                life.silences = [replace(a_silence(), until=life.now + 10 * MINUTE)]
            case "speak":
                life.silences = []
            case _ if FULL in life.states() and life.states()[FULL] == "firing":
                life.acknowledge()
    told = [each.kind for each in life.notices]
    life.silences = []
    for _ in range(4):
        life.look(minutes=5)

    assert len({each.id for each in life.notices}) == len(life.notices)
    assert told[:1] in ([], [NoticeKind.FIRING], [NoticeKind.ACKNOWLEDGED])
    assert all(after in _after(before) for before, after in pairwise(told))
    assert not life.notices or life.notices[-1].kind is NoticeKind.RESOLVED


# --- other notices -------------------------------------------------------------------------------
