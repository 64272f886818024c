"""Properties of every classification, for any answer of a server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import Scope
from carteiro.policy.classify import LONGEST_REASON, classify_smtp, classify_text
from carteiro.policy.consequences import may_open_breaker, suppression
from carteiro.policy.rules.ruling import Suppression
from carteiro.policy.stage import BEFORE_RECIPIENTS, SESSION, Stage
from carteiro.providers.answers import judge_answer, judged_again
from carteiro.providers.resend.rules import classify_resend

STAGES = st.sampled_from([None, *Stage])
HOSTS = st.sampled_from(["", "mx.google.com", "x.protection.outlook.com", "relay.test"]) | st.text()
WORDS = st.lists(
    st.sampled_from(
        [
            *("user", "unknown", "mailbox", "full", "rate", "spam", "spf", "greylisted"),
            *("quota", "blocked", "not", "exist", "try", "later"),
        ]
    ),
    max_size=8,
).map(" ".join)
CODES = st.sampled_from(["421", "450", "451", "452", "454", "550", "552", "553", "554", "571"])
ENHANCED = st.sampled_from(["", "4.2.2 ", "4.7.1 ", "5.1.1 ", "5.2.2 ", "5.7.1 ", "5.9.9 "])
REPLIES = st.builds("{} {}{}".format, CODES, ENHANCED, WORDS | st.text())


@given(st.text(), STAGES, HOSTS)
def test_every_text_has_a_verdict_at_every_stage(text: str, stage: Stage | None, mx: str) -> None:
    """Total: one printable line that says why, and a rule that decided."""
    for failure in (
        classify_smtp(text, stage=stage, mx=mx),
        classify_text(text, stage=stage, mx=mx),
        judge_answer(text, stage=stage, mx=mx),
        classify_resend(text, text, 418),
    ):
        assert failure.reason.strip()
        assert failure.reason.isprintable()
        assert len(failure.reason) <= LONGEST_REASON
        assert failure.rule


@given(CODES, ENHANCED, WORDS, STAGES)
def test_text_in_capitals_means_the_same(
    code: str, enhanced: str, words: str, stage: Stage | None
) -> None:
    """Servers shout."""
    quiet, loud = (
        classify_smtp(f"{code} {enhanced}{each}", stage=stage) for each in (words, words.upper())
    )

    assert quiet.rule == loud.rule


@given(CODES, ENHANCED, st.lists(WORDS, min_size=2, max_size=5), STAGES)
def test_reply_of_many_lines_is_classified_as_one(
    code: str, enhanced: str, lines: list[str], stage: Stage | None
) -> None:
    """Line breaks and repeated codes do not matter."""
    *first, last = [f"{enhanced}{line}" for line in lines]
    many = "\r\n".join([*(f"{code}-{line}" for line in first), f"{code} {last}"])
    one = f"{code} {enhanced}{' '.join(lines)}"

    assert classify_smtp(many, stage=stage).rule == classify_smtp(one, stage=stage).rule


@given(st.integers(400, 599), st.text(alphabet="abc xyz", min_size=1, max_size=20))
def test_digits_inside_a_text_are_not_a_code(code: int, text: str) -> None:
    """Only reply position counts, or a known prefix."""
    assert classify_text(f"took {code} {text}").rule == "unknown"
    assert classify_text(f"x{code} {text}").rule == "unknown"
    assert classify_text(f"{code}{code} {text}").rule == "unknown"
    assert classify_text(f"SMTP error {code}: {text}").code == str(code)


@given(REPLIES, STAGES, HOSTS)
def test_temporary_reply_is_always_retryable(reply: str, stage: Stage | None, mx: str) -> None:
    """A 4 at the front of either code is never hardened, except for our login."""
    failure = classify_smtp(reply, stage=stage, mx=mx)

    if "4" in {failure.code[0], (failure.original_code or failure.code)[0]}:
        assert failure.retryable


@given(REPLIES, st.sampled_from(sorted(SESSION)), HOSTS)
def test_failure_before_the_first_mail_is_never_a_messages_fault(
    reply: str, stage: Stage, mx: str
) -> None:
    """It is retryable, and the provider's."""
    failure = classify_smtp(reply, stage=stage, mx=mx)

    assert failure.scope is Scope.PROVIDER
    assert failure.retryable


@given(REPLIES, st.sampled_from(sorted(BEFORE_RECIPIENTS)), HOSTS)
def test_reply_before_any_recipient_is_about_the_relay(reply: str, stage: Stage, mx: str) -> None:
    """With any text: it says nothing of a recipient, a destination or a message."""
    failure = classify_smtp(reply, stage=stage, mx=mx)

    assert failure.scope is Scope.PROVIDER
    assert suppression(failure) is Suppression.NONE


@given(REPLIES, STAGES, HOSTS)
def test_only_a_certain_permanent_refusal_of_the_recipient_suppresses_hard(
    reply: str, stage: Stage | None, mx: str
) -> None:
    """And only a provider's fault can open a breaker."""
    failure = classify_smtp(reply, stage=stage, mx=mx)

    if suppression(failure) is Suppression.HARD:
        assert failure.scope is Scope.RECIPIENT
        assert not failure.retryable
        assert stage is Stage.RCPT
        assert failure.code in {"550", "551", "553", "552", "554", "571"}
        assert (failure.original_code or "").startswith(("5.1.", "5.0.0", failure.code))
    assert not may_open_breaker(failure) or failure.scope is Scope.PROVIDER


@pytest.mark.parametrize(
    ("reply", "retryable", "suppress"),
    [
        ("552 4.2.2 Mailbox full", True, Suppression.SOFT),
        ("450 5.1.1 User unknown", True, Suppression.NONE),
        ("451 5.5.1 No", True, Suppression.NONE),
        ("550 5.1.1 User unknown", False, Suppression.HARD),
        ("550 4.1.1 User unknown", True, Suppression.NONE),
    ],
)
def test_contradicting_codes_prove_nothing_about_a_mailbox(
    reply: str, *, retryable: bool, suppress: Suppression
) -> None:
    """A code with a temporary part is retryable; such an answer suppresses nobody for good."""
    failure = classify_smtp(reply, stage=Stage.RCPT)

    assert (failure.retryable, suppression(failure)) == (retryable, suppress)


@given(REPLIES, STAGES)
def test_stored_failure_is_classified_as_before(reply: str, stage: Stage | None) -> None:
    """The stored fields are enough to classify it again."""
    before = classify_smtp(reply, stage=stage)

    if before.reason == " ".join(reply.split()):  # nothing was cut off or replaced
        again = judged_again(before)
        assert again is not None
        assert (again.rule, again.retryable, again.scope) == (
            before.rule,
            before.retryable,
            before.scope,
        )
