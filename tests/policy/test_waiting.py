"""Explanations of a waiting message: why, and until when."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carteiro.model import (
    FINISHED,
    QueuePlace,
    State,
    StoredMessage,
    Tenant,
)
from carteiro.policy.suppression import SUPPRESSED
from carteiro.policy.waiting import Waiting, Why, explain, explain_without_queue
from support.builders import ACME, a_failure, a_stored_message, a_tenant

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
SOON = NOW + timedelta(minutes=5)
BEFORE = NOW - timedelta(minutes=5)

READY = QueuePlace(None, is_claimed=False, claims=0, tenant_wakes_at=None, tenant_in_flight=0)
PARKED = replace(READY, parked_until=SOON)
CLAIMED = replace(PARKED, is_claimed=True, claims=1, tenant_in_flight=1)


def _a_message(state: State = State.ENQUEUED, **changes: Any) -> StoredMessage:
    times = {"due_at": BEFORE, "created_at": BEFORE, "expires_at": NOW + timedelta(days=1)}
    return a_stored_message(state, **(times | changes))


def _explained(
    message: StoredMessage, place: QueuePlace | None = READY, tenant: Tenant | None = None
) -> Waiting:
    return explain(message, place, tenant or a_tenant(), now=NOW)


@pytest.mark.parametrize("state", sorted(FINISHED))
def test_finished_message_waits_for_nothing(state: State) -> None:
    """Its state is shown, with any state of its tenant."""
    waiting = _explained(_a_message(state), None, a_tenant(paused=True))

    assert (waiting.why, waiting.until) == (Why.FINISHED, None)
    assert state in waiting.text


@pytest.mark.parametrize(
    ("state", "why"), [(State.SENT, Why.FINISHED), (State.RETRY_SCHEDULED, Why.QUEUE_AWAY)]
)
def test_unfinished_message_waits_for_an_unreachable_queue(state: State, why: Why) -> None:
    """The position of its job is unknown; a finished one has none."""
    assert explain_without_queue(_a_message(state)).why is why


@pytest.mark.parametrize("state", [State.FAILED, State.EXPIRED])
def test_undelivered_message_says_why_and_what_to_do(state: State) -> None:
    """Code and reason of the failure, and the command that redrives it."""
    failed = _a_message(state, failure=a_failure(), content="{}")

    text = _explained(failed, None).text

    assert f"({a_failure().code}: {a_failure().reason})" in text
    assert "carteiro dead redrive m " in text


def test_suppressed_message_says_how_to_end_the_suppression_first() -> None:
    """A redrive alone would be suppressed again."""
    failed = _a_message(State.FAILED, failure=SUPPRESSED, content="{}")

    text = _explained(failed, None).text

    remove = f"carteiro suppression rm ana@example.com --tenant {ACME}"
    assert text.index(remove) < text.index("carteiro dead redrive m ")


def test_message_without_content_is_not_called_redrivable() -> None:
    """Pruned or erased, there is nothing to send."""
    text = _explained(_a_message(State.FAILED), None).text

    assert "redrive" not in text
    assert "cannot be sent again" in text


def test_message_that_changed_during_the_query_asks_for_another_query() -> None:
    """Unfinished a moment ago, and without a job now."""
    assert _explained(_a_message(), None).why is Why.MOVING


@pytest.mark.parametrize(
    ("state", "named"), [(State.SENT_ATTEMPT, "hold"), (State.ENQUEUED, "lease")]
)
def test_message_is_in_flight_until_its_lease_or_hold_ends(state: State, named: str) -> None:
    """A pause of its tenant does not stop it."""
    waiting = _explained(_a_message(state), CLAIMED, a_tenant(paused=True))

    assert (waiting.why, waiting.until) == (Why.IN_FLIGHT, SOON)
    assert named in waiting.text


@pytest.mark.parametrize(
    ("tenant", "why"),
    [
        (a_tenant(disabled=True, paused=True), Why.TENANT_DISABLED),
        (a_tenant(paused=True), Why.TENANT_PAUSED),
    ],
)
def test_held_tenant_comes_before_every_time(tenant: Tenant, why: Why) -> None:
    """Its end is unknown, so no time is named, not even that of a schedule."""
    waiting = _explained(_a_message(due_at=SOON), PARKED, tenant)

    assert (waiting.why, waiting.until) == (why, None)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (_a_message(due_at=SOON), Why.SCHEDULED),
        (_a_message(State.RETRY_SCHEDULED, due_at=SOON, failure=a_failure()), Why.RETRY),
        (_a_message(State.RETRY_SCHEDULED, due_at=SOON), Why.RETRY),
        (_a_message(State.SENT_ATTEMPT), Why.IN_DOUBT),
        (_a_message(), Why.PUT_BACK),
        (_a_message(State.RETRY_SCHEDULED), Why.PUT_BACK),
    ],
    ids=[
        "scheduled",
        "retry",
        "retry of what was erased",
        "in doubt",
        "put back",
        "put back later",
    ],
)
def test_parked_message_waits_until_its_time(message: StoredMessage, why: Why) -> None:
    """The message has the reason."""
    waiting = _explained(message, PARKED, a_tenant(cap=1))

    assert (waiting.why, waiting.until) == (why, SOON)


def test_retry_names_its_failure() -> None:
    """The number of the attempt and its failure."""
    failed = _a_message(State.RETRY_SCHEDULED, due_at=SOON, attempts=2, failure=a_failure())

    assert "Attempt 2 failed (Service not available, try later)" in _explained(failed, PARKED).text


@pytest.mark.parametrize("state", [State.FAILED, State.EXPIRED])
def test_message_that_died_in_doubt_must_be_looked_up_before_a_redrive(state: State) -> None:
    """It may have been delivered; a certain failure is simply redriven."""
    failed = _a_message(state, content="{}", failure=a_failure())

    sure, doubtful = (_explained(replace(failed, in_doubt=count), None).text for count in (0, 1))

    assert "may have been delivered" not in sure
    assert "It may have been delivered" in doubtful
    assert "Only if it did not arrive, carteiro dead redrive m sends it again." in doubtful


def test_message_cancelled_in_doubt_may_have_been_delivered() -> None:
    """Unless it is SENT after all."""
    cancelled, sent = (
        _explained(_a_message(state, in_doubt=1), None).text
        for state in (State.CANCELLED, State.SENT)
    )

    assert "may have been delivered" in cancelled
    assert "may have been delivered" not in sent


def test_retry_in_doubt_is_not_called_failed() -> None:
    """The result is unknown: a sender who wants it at most once can still cancel it."""
    waiting = _a_message(
        State.RETRY_SCHEDULED, due_at=SOON, attempts=1, in_doubt=1, failure=a_failure()
    )

    text = _explained(waiting, PARKED).text

    assert "failed" not in text
    assert "It may have been delivered" in text
    assert "If it arrived, cancel it." in text


def test_ready_message_in_doubt_is_decided_at_its_turn() -> None:
    """No time can be named."""
    waiting = _explained(_a_message(State.SENT_ATTEMPT))

    assert (waiting.why, waiting.until) == (Why.IN_DOUBT, None)


def test_concurrency_limit_is_named_without_a_time() -> None:
    """The lease of a hanging job says nothing of the others."""
    at_cap = replace(READY, tenant_in_flight=3, tenant_wakes_at=SOON)

    waiting = _explained(_a_message(), at_cap, a_tenant(cap=2, rate_per_second=1.0))

    assert (waiting.why, waiting.until) == (Why.TENANT_AT_CAP, None)
    assert "concurrency cap: 3 in flight, cap 2" in waiting.text


@pytest.mark.parametrize(
    ("tenant", "place", "why"),
    [
        (
            a_tenant(cap=2, rate_per_second=1.0),
            replace(READY, tenant_in_flight=1, tenant_wakes_at=SOON),
            Why.TENANT_OUT_OF_TOKENS,
        ),
        (a_tenant(), replace(READY, limited_until=SOON), Why.SEND_LIMIT),
    ],
    ids=["tokens", "send limit"],
)
def test_limit_is_named_with_its_end(tenant: Tenant, place: QueuePlace, why: Why) -> None:
    """The first that applies, in the order of a claim."""
    waiting = _explained(_a_message(), place, tenant)

    assert (waiting.why, waiting.until) == (why, SOON)


@pytest.mark.parametrize(
    "tenant", [a_tenant(), a_tenant(cap=1, rate_per_second=1.0)], ids=["free", "within its limits"]
)
def test_ready_message_waits_for_its_turn(tenant: Tenant) -> None:
    """It was not claimed yet."""
    waiting = _explained(_a_message(), READY, tenant)
    assert waiting.why is Why.TURN
    assert "carteiro doctor" in waiting.text
