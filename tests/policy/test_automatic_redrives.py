"""Automatic redrives: when a provider has recovered, and what a dead letter is said to wait for."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carteiro.model import (
    EMAIL,
    NOTICES,
    AutomaticPlan,
    Category,
    DeadReason,
    KindName,
    Scope,
    State,
    Tenant,
    TenantId,
)
from carteiro.policy.automatic_redrives import (
    AwaitedRecovery,
    Circumstances,
    Standing,
    awaited_recovery,
    may_try,
    standing_of,
    waits_for,
)
from support.builders import ACME, a_failure, a_stored_message
from support.burying import a_letter
from support.recovering import outage

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PLAN = AutomaticPlan()
AROUND = Circumstances(
    PLAN, Tenant(TenantId(ACME)), is_on_for_type=True, standing=Standing.SENDING, now=NOW
)


def _told(
    around: Circumstances = AROUND, expires_in: timedelta = 60 * MINUTE, **letter: Any
) -> AwaitedRecovery:
    fields = {"failure": outage(), "waits_for": "smtp", "waits_since": NOW - MINUTE} | letter
    message = a_stored_message(State.FAILED, expires_at=NOW + expires_in)
    return awaited_recovery(a_letter(**fields), message, around)


@pytest.mark.parametrize(
    ("figures", "is_open", "standing"),
    [
        ({}, False, Standing.QUIET),
        ({"sent": 3, "retried": 2}, True, Standing.OPEN),
        ({"sent": 1}, False, Standing.SENDING),
        ({"sent": 2, "passing": 2}, False, Standing.SENDING),
        ({"sent": 2, "passing": 3}, False, Standing.FAILING),
        ({"passing": 1}, False, Standing.FAILING),
        # Of destinations, or as a tenant reports them itself.
        ({"sent": 2, "error.TRANSIENT_ERROR.450": 9}, False, Standing.SENDING),
        ({"error.PERMANENT_ERROR.550": 9, "error.other": 1}, False, Standing.QUIET),
    ],
)
def test_provider_that_sends_or_is_quiet_may_be_tried(
    figures: Mapping[str, int], is_open: bool, standing: Standing
) -> None:
    """Passing failures, of more messages than it sends, or an open circuit: it has not recovered."""
    assert standing_of(figures, is_open=is_open) is standing
    assert may_try(standing) is (standing in {Standing.SENDING, Standing.QUIET})


@pytest.mark.parametrize(
    ("kind", "reason", "changes"),
    [
        (KindName("report"), DeadReason.MAX_ATTEMPTS_EXCEEDED, {}),
        *(
            (EMAIL, reason, {})
            for reason in DeadReason
            if reason is not DeadReason.MAX_ATTEMPTS_EXCEEDED
        ),
        (EMAIL, DeadReason.MAX_ATTEMPTS_EXCEEDED, {"retryable": False}),
        (EMAIL, DeadReason.MAX_ATTEMPTS_EXCEEDED, {"scope": Scope.MESSAGE}),
        (EMAIL, DeadReason.MAX_ATTEMPTS_EXCEEDED, {"category": Category.VALIDATION_ERROR}),
        # A destination that blocks the provider: it sends to all others.
        (EMAIL, DeadReason.MAX_ATTEMPTS_EXCEEDED, {"rule": "smtp.microsoft.blocked@rcpt"}),
    ],
)
def test_other_ends_wait_for_no_provider(
    kind: KindName, reason: DeadReason, changes: dict[str, Any]
) -> None:
    """Only e-mails whose provider failed for a time."""
    assert waits_for(ACME, EMAIL, "smtp", DeadReason.MAX_ATTEMPTS_EXCEEDED, outage()) == "smtp"
    assert waits_for(ACME, kind, "smtp", reason, outage(**changes)) is None
    assert waits_for(NOTICES, EMAIL, "smtp", DeadReason.MAX_ATTEMPTS_EXCEEDED, outage()) is None
    assert waits_for(ACME, EMAIL, None, DeadReason.MAX_ATTEMPTS_EXCEEDED, outage()) is None


def test_waiting_letter_names_provider_round_and_time() -> None:
    """With the standing of the provider, and if its tenant is held."""
    told = _told()
    held = replace(AROUND, tenant=Tenant(TenantId(ACME), paused=True), standing=Standing.OPEN)

    assert (told.provider, told.round, told.rounds) == ("smtp", 1, 3)
    assert told.not_before == NOW + 4 * MINUTE
    assert (
        told.text
        == "It waits for provider smtp: automatic redrive 1 of 3. The provider sends again."
    )
    later = _told(automatic_rounds=1)
    assert (later.round, later.not_before) == (2, NOW + 19 * MINUTE)
    assert _told(held).text == (
        "It waits for provider smtp: automatic redrive 1 of 3. The provider's circuit is open."
        " It also waits while its tenant is paused or disabled."
    )


@pytest.mark.parametrize(
    ("letter", "around", "text"),
    [
        ({"redriven_at": NOW}, {}, "It was redriven"),
        ({"kind": KindName("report")}, {}, "Only e-mails"),
        ({"reason": DeadReason.IN_DOUBT}, {}, "It may have been delivered"),
        ({"reason": DeadReason.EXPIRED}, {}, "time to live is over"),
        ({"failure": a_failure()}, {}, "not a temporary one of its provider"),
        ({}, {"plan": replace(PLAN, is_on=False)}, "automatic_redrive.enabled"),
        ({}, {"tenant": Tenant(TenantId(ACME), automatic_redrive=False)}, "for its tenant"),
        ({}, {"is_on_for_type": False}, "for its template type"),
        ({"automatic_rounds": 3}, {}, "3 rounds did not send it"),
        ({}, {"now": NOW + 61 * MINUTE}, "Its time to live is over"),
        ({"waits_for": None}, {}, "it was imported"),
        ({"automatic_rounds": 2}, {}, "it expires before its next round"),
    ],
)
def test_other_letter_says_why_it_is_not_redriven(
    letter: dict[str, Any], around: dict[str, Any], text: str
) -> None:
    """A person can then decide at once."""
    told = _told(replace(AROUND, **around), **letter)

    assert text in told.text
    assert (told.provider, told.not_before, told.round) == (None, None, None)


def test_cool_downs_grow_and_are_bounded() -> None:
    """Four times as long each; those without a round left are found as over."""
    assert [PLAN.cool_down_after(done) for done in range(3)] == [
        5 * MINUTE,
        20 * MINUTE,
        80 * MINUTE,
    ]
    starts = PLAN.starts_of_all(10_000_000)
    assert starts[:3] == [(0, 9_700_000), (1, 8_800_000), (2, 5_200_000)]
    assert [done for done, start in starts if start > 10_000_000] == list(range(3, 11))
    assert (PLAN.gathering, AutomaticPlan(cool_down=MINUTE).gathering) == (MINUTE, MINUTE / 5)
