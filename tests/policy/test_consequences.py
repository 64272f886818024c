"""Consequences of a failure: for the breaker, the send rate and the suppression list."""

from dataclasses import replace

import pytest

from carteiro.model import Failure, Scope
from carteiro.policy import classify
from carteiro.policy.classify import classify_smtp
from carteiro.policy.consequences import (
    RULINGS,
    is_providers_own,
    may_open_breaker,
    rule_name,
    suppression,
    throttles,
)
from carteiro.policy.rules.ruling import Suppression
from carteiro.policy.stage import BEFORE_RECIPIENTS, Stage
from carteiro.providers.resend.rules import classify_resend
from carteiro.providers.ses import failures as ses_failures
from carteiro.providers.ses.rules import classify_ses
from carteiro.providers.smtp import failures as smtp_failures


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
        (classify_smtp("421 4.7.28 too fast", stage=Stage.MAIL), True, False),
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
def test_scopes_that_slow_the_rate_or_open_a_breaker(
    failure: Failure, *, slows: bool, opens: bool
) -> None:
    """Too fast for the provider slows, for one destination not.

    A breaker opens on the provider's faults alone, and on a quota that is used up.
    """
    assert (throttles(failure), may_open_breaker(failure)) == (slows, opens)


def test_code_alone_never_suppresses_for_good() -> None:
    """Servers use 5.1.1 for any refusal: the text must say it, and codes agree."""
    hard = {
        name
        for name, ruling in RULINGS.items()
        if ruling.suppress is Suppression.HARD
        and name.startswith(("smtp.enhanced.", "smtp.code.", "smtp.subject.", "smtp.class."))
    }

    assert hard == set()


@pytest.mark.parametrize(
    "reply",
    [
        "550 5.1.1 No such user",
        "550 5.1.1 <ana@example.com>: Recipient address rejected: User unknown in virtual mailbox table",
        "550 5.1.1 <ana@example.com>: Recipient address rejected: User unknown in relay recipient table",
        "550 No such user here",
        "553 5.1.10 Recipient not found",
        "550 5.0.0 Mailbox does not exist",
        "550 sorry, no mailbox here by that name (#5.1.1)",
        "550 5.1.1 Usuário inexistente",
        "550 Unrouteable address",
    ],
)
def test_unknown_recipient_is_suppressed_for_good_at_rcpt_alone(reply: str) -> None:
    """At other stages, or at an unknown one, it counts as a soft bounce at most."""
    found = {stage: suppression(classify_smtp(reply, stage=stage)) for stage in [None, *Stage]}

    assert found[Stage.RCPT] is Suppression.HARD
    assert found[None] is found[Stage.DOT] is found[Stage.DATA] is Suppression.SOFT
    assert all(found[stage] is Suppression.NONE for stage in BEFORE_RECIPIENTS)


@pytest.mark.parametrize(
    "reply",
    [
        "550 5.1.1 Rejected",
        "550 5.1.1 Mailbox is full",
        "550 5.1.1 Rate limit exceeded for this user",
        "552 5.1.1 <ana@example.com> Mailbox delivery failure policy error",
        "550 5.1.1 Message refused by recipient preferences, no such user",
        "550 5.1.1 Spam detected, user unknown",
        "550 5.1.1 Your IP 192.0.2.1 is on a blocklist, user unknown",
        "550 5.1.1 Unknown user: see our sender policy",
        "550 5.1.1 Sender unknown",
        "550 5.1.0 <shop@example.com> sender rejected. AUP#In-1310",
        "550 <ana@example.com>: Recipient address rejected: Spam detected",
        "550 <ana@example.com>: Recipient address rejected: Access denied",
        "550 <ana@example.com>: Recipient address rejected: Policy Rejection- Quota Exceeded",
        "550 <ana@example.com>: Recipient address rejected: undeliverable address: mail loops back",
        "550 Your host does not have a valid name",
        "550 This user does not have permission to receive mail from outside",
        "550 Recipient not listed among those you may write to",
        "550 5.7.1 No such user",
        "550 5.2.1 User unknown",
        "554 No such user",
        "552 mailbox not found",
        "450 5.1.1 User unknown",
        "521 192.0.2.1 is blocked",
        "521 Host does not accept mail",
        "556 5.1.10 Domain has no mail service",
        "550 Mailbox unavailable",
        "550 5.1.2 Host unknown",
        "550 5.1.90 You have reached your daily limit for message recipients",
        "550 Mailbox unavailable or access denied http://service.mail.qq.com/",
        "550 Destinataire inconnu ou boite desactivee",
        "550 5.1.1 Konto nieznany albo zablokowane",
        "550 User unknown or mailbox deactivated",
        "550 The mailbox may not exist: no such user",
        "550-Verification failed while checking <a@b.test>\n550-Called: x\n550-Sent: y\n550-Response: User unknown",
        "550 5.1.1 User unknown, authenticate first",
        "550 User unknown: database timeout",
        "550 5.1.1 Invalid recipient, greylisted",
        "550 5.1.1 User unknown, mail from you is not taken",
    ],
)
def test_possibly_existing_recipient_is_never_suppressed_for_good(reply: str) -> None:
    """Another cause is named, codes disagree, or the text says less."""
    found = [suppression(classify_smtp(reply, stage=stage)) for stage in [None, *Stage]]

    assert Suppression.HARD not in found


@pytest.mark.parametrize(
    ("reply", "stage", "opens", "is_own"),
    [
        ("421 Service not available", Stage.MAIL, True, True),
        ("450 No", Stage.MAIL, True, True),
        ("554 5.7.1 Relay access denied", Stage.MAIL, True, True),
        ("550 5.7.1 Your IP address is blocked", Stage.MAIL, True, True),
        ("550 5.7.1 Your IP address is blocked", Stage.EHLO, True, True),
        ("550 5.7.1 Your IP address is blocked", Stage.RCPT, False, False),
        ("553 5.1.8 Sender address rejected", Stage.MAIL, False, True),
        ("450 4.1.8 Sender address rejected", Stage.MAIL, False, True),
        ("550 No", Stage.MAIL, False, True),
        ("552 5.3.4 Message too big", Stage.MAIL, False, True),
        ("553 5.1.8 Sender address rejected", Stage.RCPT, False, False),
        ("451 4.7.1 Too many messages", Stage.MAIL, False, True),
    ],
)
def test_refusal_of_one_sender_at_mail_opens_no_breaker(
    reply: str, stage: Stage, *, opens: bool, is_own: bool
) -> None:
    """It is the relay's own all the same: another provider may accept the mail."""
    failure = classify_smtp(reply, stage=stage)

    assert (may_open_breaker(failure), is_providers_own(failure)) == (opens, is_own)


def test_only_a_recipients_fault_suppresses() -> None:
    assert all(
        ruling.scope is Scope.RECIPIENT
        for ruling in RULINGS.values()
        if ruling.suppress is not Suppression.NONE
    )


@pytest.mark.parametrize(
    "failure", [smtp_failures.NOT_INTERNATIONAL, ses_failures.NOT_INTERNATIONAL]
)
def test_failure_found_by_us_does_not_count_against_a_mailbox(failure: Failure) -> None:
    """It was never asked."""
    assert failure.scope is Scope.RECIPIENT
    assert suppression(failure) is Suppression.NONE


def test_custom_rule_suppresses_softly_at_most() -> None:
    """The operator's evidence is unknown."""
    failure = replace(classify_smtp("550 5.1.1 no"), rule="own.mine@rcpt")

    assert rule_name(failure) == "own.mine"
    assert suppression(failure) is Suppression.SOFT
    assert suppression(replace(failure, retryable=True)) is Suppression.NONE
    assert suppression(replace(failure, scope=Scope.MESSAGE)) is Suppression.NONE
