"""What follows from a failure: for the breaker, the send rate and the suppression list."""

from dataclasses import replace

import pytest

from carteiro.model import Failure, Scope
from carteiro.policy import classify
from carteiro.policy.classify import classify_resend, classify_ses, classify_smtp
from carteiro.policy.consequences import (
    RULINGS,
    may_open_breaker,
    rule_name,
    suppression,
    throttles,
)
from carteiro.policy.rules.ruling import Suppression
from carteiro.policy.stage import Stage
from carteiro.providers.ses import failures as ses_failures
from carteiro.providers.smtp import failures as smtp_failures

# The only codes on which an address is suppressed for good; words and systems say the same in theirs.
HARD_CODES = {
    *("5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.7.13", "5.7.17", "5.7.18", "521", "556"),
}


@pytest.mark.parametrize(
    ("failure", "slows", "opens"),
    [
        (classify_ses("Throttling", "Maximum sending rate exceeded"), True, False),
        (classify_ses("Throttling", "Daily message quota exceeded"), True, True),
        (classify_ses("AccountSuspendedException", "no"), False, True),
        (classify_ses("MessageRejected", "no"), False, False),
        (classify_resend("rate_limit_exceeded", "no", 429), True, False),
        (classify_resend("monthly_quota_exceeded", "no", 429), True, True),
        (classify_resend("invalid_api_key", "no", 403), False, True),
        (classify_smtp("454 Throttling failure: Daily message quota exceeded"), True, True),
        (classify_smtp("421 4.7.0 Too many connections", stage=Stage.GREETING), True, False),
        (classify_smtp("421 4.7.28 too fast", stage=Stage.EHLO), True, False),
        (classify_smtp("421 4.7.28 too fast", stage=Stage.RCPT), False, False),
        (classify_smtp("451 4.7.1 example.com: slow down", stage=Stage.DATA), False, False),
        (classify_smtp("552 5.2.2 Mailbox full"), False, False),
        (classify_smtp("550 5.1.1 No such user"), False, False),
        (classify_smtp("535 5.7.8 bad password"), False, True),
        (classify_smtp("550 5.7.1 blocked using zen.spamhaus.org"), False, False),
        (classify.network("refused"), False, True),
        (classify.timeout("smtp"), False, True),
    ],
    ids=lambda each: each.reason if isinstance(each, Failure) else str(each),
)
def test_what_slows_the_rate_and_what_may_open_a_breaker(
    failure: Failure, *, slows: bool, opens: bool
) -> None:
    """Too fast for the provider slows, for one destination not.

    A breaker opens on the provider's faults alone, and on a quota that is used up.
    """
    assert (throttles(failure), may_open_breaker(failure)) == (slows, opens)


def test_only_the_narrow_set_of_codes_suppresses_for_good() -> None:
    """A policy, a full mailbox or a bare 550 is no proof that nobody is there."""
    hard = {
        name.split(".", 2)[2]
        for name, ruling in RULINGS.items()
        if ruling.suppress is Suppression.HARD
        and name.startswith(("smtp.enhanced.", "smtp.code.", "smtp.subject.", "smtp.class."))
    }

    assert hard == HARD_CODES


def test_no_ruling_suppresses_but_for_a_recipient() -> None:
    """What is not the recipient's fault is not held against it."""
    assert all(
        ruling.scope is Scope.RECIPIENT
        for ruling in RULINGS.values()
        if ruling.suppress is not Suppression.NONE
    )


@pytest.mark.parametrize(
    "failure", [smtp_failures.NOT_INTERNATIONAL, ses_failures.NOT_INTERNATIONAL]
)
def test_what_we_found_out_ourselves_is_not_held_against_a_mailbox(failure: Failure) -> None:
    """It was never asked."""
    assert failure.scope is Scope.RECIPIENT
    assert suppression(failure) is Suppression.NONE


def test_a_rule_of_ones_own_suppresses_softly_at_most() -> None:
    """It is not known what the operator saw."""
    failure = replace(classify_smtp("550 5.1.1 no"), rule="own.mine@rcpt")

    assert rule_name(failure) == "own.mine"
    assert suppression(failure) is Suppression.SOFT
    assert suppression(replace(failure, retryable=True)) is Suppression.NONE
    assert suppression(replace(failure, scope=Scope.MESSAGE)) is Suppression.NONE
