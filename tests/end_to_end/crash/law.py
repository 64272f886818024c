"""The law of delivery, checked on a store that has come to rest.

After any kill at any time:

ended      Every accepted message is there and ended, exactly once, as SENT, dead or CANCELLED.
delivered  SENT means delivered at least once.
doubted    A message that was not SENT was delivered at most as often as its outcome was in doubt, and every
           delivery beyond the first has its own IN_DOUBT event before it.
walked     States follow one another along the allowed transitions, and the last one stands.
counted    The figures of a message are those of its timeline.
buried     Exactly the dead have a dead letter, one each.
redriven   A redrive has sent each of its messages once, has counted them all, and has ended.
figured    The figures of all minutes, with the notes that are not folded yet, are those of the messages.
announced  Every alert with a notice in its row is on its way to its channel, or the channel has it.
grouped    So are the failed attempts and deaths of all failure groups, of their hours, and of tenants.
clean      No job, lease, hold or slot is left over, and the store is whole.

A kind that does not declare its attempts (a plain task) is run again without a doubt: ``doubted``
and the attempts of ``counted`` are not promised for it.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from carteiro.model import AUTOMATIC, DEAD, EMAIL, FINISHED, TRANSITIONS, MessageId, State
from carteiro.policy import failures
from carteiro.policy.rollups import added, figures_of
from end_to_end.crash.places import Place
from end_to_end.crash.post_office import TOLD
from end_to_end.crash.traffic import JOB
from support.ses_servers import taken_by_ses

_STATES = frozenset(State)
_IN_DOUBT = "IN_DOUBT"
_ALL_BY_MINUTE = ("minute", "", "", "")


@dataclass(frozen=True)
class Life:
    """One message with its whole history; times are in milliseconds."""

    id: MessageId
    state: State
    declares: bool
    delivery: str
    attempts: int
    in_doubt: int
    rounds: int
    is_held: bool
    events: Sequence[tuple[str, int]]
    deliveries: Sequence[int]
    clocks_differ_ms: int

    @property
    def doubts(self) -> list[int]:
        """The times at which its outcome was in doubt."""
        return [at for name, at in self.events if name == _IN_DOUBT]

    @property
    def walk(self) -> list[State]:
        """Its states in order; a task's first one leaves no event."""
        states = [State(name) for name, _ in self.events if name in _STATES]
        return states if states[:1] == [State.ENQUEUED] else [State.ENQUEUED, *states]


def broken(place: Place, accepted: Collection[MessageId]) -> list[str]:
    """Each sentence of the law that is broken here; empty: it holds."""
    found = {life.id: life for life in lives(place)}
    missing = [f"ended: {each} was accepted and is gone" for each in accepted if each not in found]
    of_each = [fault for life in found.values() for fault in _faults(life)]
    of_all = [
        *_unburied(place, found.values()),
        *_unfigured(place, found.values()),
        *_unannounced(place),
        *_ungrouped(place, found.values()),
        *_unredriven(place),
    ]
    return [*missing, *of_each, *of_all, *_left_over(place)]


def lives(place: Place) -> list[Life]:
    """All messages, oldest first."""
    return list(_lives(place))


def _lives(place: Place) -> Iterator[Life]:
    marks = _marks(place)
    timelines: dict[str, list[tuple[str, int]]] = {}
    for identity, *event in place.rows(place.words.events):
        timelines.setdefault(identity, []).append((event[0], event[1]))
    taken = _taken(place)
    for *figures, kind, content in place.rows(place.words.lives):
        identity, state, declares, delivery, attempts, in_doubt, rounds, is_held = figures
        yield Life(
            id=identity,
            state=State(state),
            declares=bool(declares),
            delivery=delivery,
            attempts=attempts,
            in_doubt=in_doubt,
            rounds=rounds,
            is_held=bool(is_held),
            events=timelines.get(identity, []),
            deliveries=taken.get(identity, [])
            if kind == EMAIL
            else marks.get(json.loads(content)["mark"], []),
            clocks_differ_ms=place.words.clocks_differ_ms,
        )


def _taken(place: Place) -> dict[str, list[int]]:
    """The times at which the provider accepted each e-mail, in order: a stopped process records its own later."""
    rows: Iterable[tuple[str, int]] = (
        taken_by_ses(place.ses_folder)
        if place.ses
        else place.rows("SELECT message_id, created_at FROM inbox ORDER BY id")
    )
    taken: dict[str, list[int]] = {}
    for identity, at in rows:
        taken.setdefault(identity, []).append(at)
    return {identity: sorted(times) for identity, times in taken.items()}


def _marks(place: Place) -> dict[str, list[int]]:
    marks: dict[str, list[int]] = {}
    for line in place.marks.read_text().splitlines() if place.marks.exists() else ():
        mark, at = line.split()
        marks.setdefault(mark, []).append(int(at))
    return marks


def _faults(life: Life) -> Iterator[str]:
    rules = (_unended, _undelivered, _undoubted, _unwalked, _uncounted)
    for rule in rules:
        for fault in rule(life):
            yield f"{rule.__name__.removeprefix('_un')}: {life.id} {fault}; {life}"


def _unended(life: Life) -> Iterator[str]:
    if life.state not in FINISHED:
        yield f"rests in {life.state}"
    if life.is_held:
        yield "is still held"


def _undelivered(life: Life) -> Iterator[str]:
    if life.state is State.SENT and not life.deliveries:
        yield "is SENT and was never delivered"


def _undoubted(life: Life) -> Iterator[str]:
    if not life.declares:
        return
    if life.state is not State.SENT and len(life.deliveries) > len(life.doubts):
        yield f"is {life.state} and was delivered more often than it was in doubt"
    for before, at in enumerate(life.deliveries):
        if sum(doubt <= at + life.clocks_differ_ms for doubt in life.doubts) < before:
            yield f"was delivered for the {before + 1}. time without a doubt of its own before"
    if life.delivery == "at_most_once" and len(life.deliveries) > life.rounds:
        yield "was to be delivered at most once a round"


def _unwalked(life: Life) -> Iterator[str]:
    for before, after in pairwise(life.walk):
        allowed = TRANSITIONS[before]
        if not life.declares and State.RECEIVED in allowed:  # it walks on inside its settle
            allowed |= TRANSITIONS[State.SENT_ATTEMPT]
        if after not in allowed:
            yield f"went from {before} to {after}"
    if life.walk[-1] is not life.state:
        yield f"is {life.state}, its timeline ends in {life.walk[-1]}"


def _uncounted(life: Life) -> Iterator[str]:
    names = [name for name, _ in life.events]
    this_round = (
        names[len(names) - names[::-1].index("ENQUEUED") :] if "ENQUEUED" in names else names
    )
    if life.in_doubt != this_round.count(_IN_DOUBT):
        yield f"counts {life.in_doubt} doubts, its timeline {this_round.count(_IN_DOUBT)}"
    if life.declares and life.attempts != names.count("SENT_ATTEMPT"):
        yield f"counts {life.attempts} attempts, its timeline {names.count('SENT_ATTEMPT')}"


def _unburied(place: Place, lives: Collection[Life]) -> Iterator[str]:
    dead = {life.id for life in lives if life.state in DEAD}
    letters = {row[0] for row in place.rows("SELECT message_id FROM dead_letters")}
    for each in sorted(dead ^ letters):
        yield f"buried: {each} is dead without a letter, or has a letter and is not dead"
    for (each,) in place.rows("SELECT message_id FROM dead_letters WHERE redriven_at IS NOT NULL"):
        yield f"buried: {each} has ended again and its letter is still on its way"


def _unredriven(place: Place) -> Iterator[str]:
    found = place.rows("SELECT message_id, metadata FROM timelines WHERE type = 'ENQUEUED'")
    told = [
        (each, metadata if isinstance(metadata, dict) else json.loads(metadata))
        for each, metadata in found
    ]
    requesters = [(each, metadata.get("redrivenBy", "")) for each, metadata in told]
    rounds = Counter(each for each in requesters if each[1].startswith((JOB, AUTOMATIC)))
    for (identity, by), count in rounds.items():
        if count > 1 and by != AUTOMATIC:
            yield f"redriven: {identity} was sent {count} times by {by}"
    counted: Counter[str] = Counter()
    for by, state, course in place.rows("SELECT requester, state, course FROM redrives"):
        counted[by] += json.loads(course)["redriven"]
        if state == "running":
            yield f"redriven: {by} has not ended: {course}"
    for by, number in counted.items():
        sent = sum(count for (_, who), count in rounds.items() if who == by)
        if number != sent:
            yield f"redriven: {by} counts {number}, its messages have {sent} rounds"


def _unfigured(place: Place, lives: Collection[Life]) -> Iterator[str]:
    notes = place.rows("SELECT what, at, figures FROM rollup_notes")
    found: Counter[str] = Counter()
    for key, figures in added((what, at, text) for what, at, text in notes).items():
        found.update(figures if key[:4] == _ALL_BY_MINUTE else {})
    query = (
        "SELECT figures FROM rollups WHERE span = 'minute' AND tenant || template || provider = ''"
    )
    for (text,) in place.rows(query):
        found.update(figures_of(text))
    states = Counter(life.state for life in lives)
    names = Counter(name for life in lives for name, _ in life.events)
    expected = {
        "accepted": len(lives),
        "sent": states[State.SENT],
        "failed": sum(states[each] for each in DEAD),
        "cancelled": states[State.CANCELLED],
        "retried": names["RETRY_SCHEDULED"],
        "redriven": sum(life.rounds - 1 for life in lives),
    }
    for name, number in expected.items():
        if found[name] != number:
            yield f"figured: {name} is {found[name]}, and should be {number}"
    by_attempt = sum(found[name] for name in found if name.startswith("sent."))
    delays = sum(found[name] for name in found if name.startswith("delay."))
    if not found["sent"] == by_attempt == delays:
        yield f"figured: {found['sent']} are sent, {by_attempt} by attempt, {delays} by delay"


def _unannounced(place: Place) -> Iterator[str]:
    marks, waiting = _marks(place), place.rows("SELECT document FROM notices")
    names = {json.loads(text)["alert"] for (text,) in waiting}
    rows = place.rows("SELECT name FROM alerts WHERE told_at IS NOT NULL")
    announced = {name for (name,) in rows}
    for each in sorted(announced):
        if each not in names and f"{TOLD}{each}" not in marks:
            yield f"announced: the notice about {each} is lost"
    for each in sorted(
        {*names, *(mark.removeprefix(TOLD) for mark in marks if TOLD in mark)} - announced
    ):
        yield f"announced: there is a notice about {each}, which has not fired"


def _ungrouped(place: Place, lives: Collection[Life]) -> Iterator[str]:
    notes = place.rows("SELECT what, at, figures FROM rollup_notes")
    new = [*failures.told((what, at, text) for what, at, text in notes)]
    names = Counter(name for life in lives for name, _ in life.events)
    retried, died = names["RETRY_SCHEDULED"], names["FAILED"] + names["EXPIRED"]
    for table in (
        "failure_groups",
        "failure_counts WHERE tenant = '' AND at > 0",
        "failure_counts WHERE tenant = '' AND at = 0",
        "failure_counts WHERE tenant > '' AND at > 0",
        "failure_counts WHERE tenant > '' AND at = 0",
    ):
        query = f"SELECT coalesce(sum(attempts), 0), coalesce(sum(deaths), 0) FROM {table}"
        [(attempts, deaths)] = place.rows(query)
        attempts += sum(each.attempts for each in new)
        deaths += sum(each.deaths for each in new)
        if deaths != died or not retried <= attempts <= retried + died:
            yield f"grouped: {attempts} failed and {deaths} died, not {retried} and {died}: {table}"


def _left_over(place: Place) -> Iterator[str]:
    for job in place.jobs():
        yield f"clean: a job is left over: {job}"
    for each in place.places_of_jobs():
        yield f"clean: the queue has jobs lie that are none: {each}"
    for row in place.rows(place.words.counted):
        yield f"clean: a seat counts jobs that are not there: {row}"
    for row in place.rows(place.words.damage):
        yield f"clean: the store is damaged: {row}"
