"""Classification: the documented tables, the ambiguous codes, and texts of any kind."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carteiro.model import Category, Failure, Scope
from carteiro.policy import classify
from carteiro.policy.classify import LONGEST_REASON, classify_smtp, classify_text
from carteiro.policy.consequences import suppression
from carteiro.policy.rules import codes
from carteiro.policy.rules.ruling import Ruling, Suppression
from carteiro.policy.stage import Stage

LATER, NEVER = True, False

PERMANENT = Category.PERMANENT_ERROR
TRANSIENT = Category.TRANSIENT_ERROR
QUOTA = Category.QUOTA_ERROR
CONFIGURATION = Category.CONFIGURATION_ERROR
TIMEOUT = Category.TIMEOUT_ERROR


def is_well_formed(failure: Failure) -> bool:
    """True if every store, log and terminal can show it, with a readable reason."""
    words = [failure.code, failure.reason, failure.rule, failure.original_code or "-"]
    return (
        all(word.strip() and word.isprintable() for word in words)
        and len(failure.reason) <= LONGEST_REASON
    )


# --- SMTP -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "retryable"),
    [
        ("421", LATER),
        ("450", LATER),
        ("451", LATER),
        ("452", LATER),
        ("454", LATER),
        ("498", LATER),
        ("500", NEVER),
        ("501", NEVER),
        ("502", NEVER),
        ("503", NEVER),
        ("535", NEVER),
        ("550", NEVER),
        ("551", NEVER),
        ("552", NEVER),
        ("553", NEVER),
        ("554", NEVER),
        ("585", NEVER),
        ("250", LATER),
        ("354", LATER),
    ],
)
def test_bare_code_decides_by_its_table_or_class(code: str, *, retryable: bool) -> None:
    """4xx is temporary, 5xx is not; a success in place of an error is a temporary fault."""
    failure = classify_smtp(code)

    assert (failure.code, failure.original_code) == (code, code)
    assert (failure.retryable, failure.reason) == (retryable, code)


@pytest.mark.parametrize(
    ("reply", "retryable", "category", "scope", "rule"),
    [
        (
            "451 4.7.1 Greylisted, try later",
            LATER,
            TRANSIENT,
            Scope.DESTINATION,
            "smtp.text.greylisted",
        ),
        (
            "421 Service not available",
            LATER,
            TRANSIENT,
            Scope.DESTINATION,
            "smtp.text.service_unavailable",
        ),
        (
            "421-4.7.28 unusual rate of mail",
            LATER,
            QUOTA,
            Scope.DESTINATION,
            "smtp.text.rate",
        ),
        (
            "454 Throttling failure: Maximum sending rate exceeded",
            LATER,
            QUOTA,
            Scope.PROVIDER,
            "smtp.text.throttled_by_provider",
        ),
        ("452 4.3.9 no room", LATER, TRANSIENT, Scope.DESTINATION, "smtp.subject.4.3"),
        ("550 5.1.1 User unknown", NEVER, PERMANENT, Scope.RECIPIENT, "smtp.text.user_unknown"),
        ("550 #5.1.1 rejected", NEVER, PERMANENT, Scope.RECIPIENT, "smtp.enhanced.5.1.1"),
        (
            "550 5.2.2 not this sender",
            NEVER,
            CONFIGURATION,
            Scope.SENDER,
            "smtp.text.sender_disliked",
        ),
        ("552 5.2.2 no more mail", LATER, QUOTA, Scope.RECIPIENT, "smtp.enhanced.5.2.2"),
        ("554 5.7.1 no", NEVER, PERMANENT, Scope.MESSAGE, "smtp.subject.5.7"),
        ("550 5.7.26 no SPF", NEVER, CONFIGURATION, Scope.SENDER, "smtp.enhanced.5.7.26"),
        ("535 5.7.8 bad password", NEVER, CONFIGURATION, Scope.PROVIDER, "smtp.login.5"),
        ("550 5.0.0 no", NEVER, PERMANENT, Scope.RECIPIENT, "smtp.code.550"),
    ],
)
def test_reply_is_classified_by_its_most_specific_part(
    reply: str, category: Category, scope: Scope, rule: str, *, retryable: bool
) -> None:
    """Text that names a cause first, then a specific enhanced code, hints, subject, code and class."""
    failure = classify_smtp(reply)

    assert failure.rule == rule
    assert (failure.retryable, failure.category, failure.scope) == (retryable, category, scope)


@pytest.mark.parametrize(
    ("reply", "retryable", "rule"),
    [
        ("552 4.2.2 no", LATER, "smtp.enhanced.4.2.2"),
        ("550 4.7.1 no such user", LATER, "smtp.text.user_unknown"),
        ("450 5.1.1 User unknown", LATER, "smtp.text.user_unknown"),
        ("451 5.5.1 no", LATER, "smtp.subject.5.5"),
        ("450 5.0.0 no", LATER, "smtp.code.450"),
        ("550 4.0.0 no", LATER, "smtp.class.4"),
    ],
)
def test_code_with_a_temporary_part_is_temporary(reply: str, rule: str, *, retryable: bool) -> None:
    """Where the classes of both codes differ, nothing is given up."""
    failure = classify_smtp(reply)

    assert (failure.retryable, failure.rule) == (retryable, rule)
    assert (failure.code, failure.original_code) == (reply[:3], reply[4:9])


@pytest.mark.parametrize(
    ("reply", "retryable", "rule"),
    [
        ("550 Mailbox unavailable", NEVER, "smtp.text.user_refused"),
        ("552 Requested action aborted", NEVER, "smtp.code.552"),
        ("550 No such user here, try again later", NEVER, "smtp.text.user_unknown_perhaps"),
        ("550 5.2.1 This account has been disabled", NEVER, "smtp.text.mailbox_disabled"),
        ("552 Message size exceeds maximum", NEVER, "smtp.text.message_too_big"),
        ("552 5.3.4 Message too big, try later", NEVER, "smtp.text.message_too_big"),
        ("552 5.3.4 Try later", NEVER, "smtp.enhanced.5.3.4"),
        ("550 5.7.1 Unauthenticated email refused", NEVER, "smtp.text.sender_not_authenticated"),
        ("550 Relaying denied", NEVER, "smtp.text.relay_denied"),
        ("550 5.7.1 This looks like spam", NEVER, "smtp.text.content_refused"),
        ("550 5.7.1 Recipient address rejected: Greylisted", LATER, "smtp.text.greylisted"),
        ("552 5.2.2 Over quota", LATER, "smtp.text.mailbox_full"),
        ("554 5.2.2 No", LATER, "smtp.enhanced.5.2.2"),
        ("554 Mail service here is currently unavailable", LATER, "smtp.text.server_trouble"),
        ("554 The virus scanner failed", LATER, "smtp.text.scanner_trouble"),
        ("554 Something went wrong with our server", LATER, "smtp.text.server_trouble"),
        ("550 5.2.0 No folders during the ongoing migration", LATER, "smtp.text.server_trouble"),
        ("554 Your mail is too old", NEVER, "smtp.text.message_expired"),
        ("550 5.7.0 A host in the headers is blacklisted", NEVER, "smtp.text.content_listed"),
        ("550 No such alias", NEVER, "smtp.text.user_unknown"),
        ("521 Mailbox is full", LATER, "smtp.text.mailbox_full"),
        ("556 Too many connections", LATER, "smtp.text.rate"),
        ("552 Mailbox is full", LATER, "smtp.text.mailbox_full"),
        ("552 Sorry, this mailbox", LATER, "smtp.text.mailbox_full_by_code"),
        ("550 5.6.0 Depth of parts exceeded", NEVER, "smtp.text.message_too_big"),
        ("550 Domain not liked: user complaints", NEVER, "smtp.text.user_refused"),
        ("552 exceeded storage allocation", LATER, "smtp.text.mailbox_full"),
        ("550 Connection frequency limited", LATER, "smtp.text.rate"),
        ("550 too many concurrent connections", LATER, "smtp.text.rate"),
        ("550 5.2.1 receiving mail too quickly", LATER, "smtp.text.recipient_rate"),
        ("550 Temporarily refused", LATER, "smtp.text.come_back"),
        ("554 Temporarily refused", LATER, "smtp.text.come_back"),
        ("450 user unknown", LATER, "smtp.text.user_unknown"),
    ],
)
def test_ambiguous_codes_are_permanent_unless_code_or_text_says_otherwise(
    reply: str, rule: str, *, retryable: bool
) -> None:
    """550 and 552 are both "never" and "not now": greylisting, a full mailbox and rates are temporary."""
    failure = classify_smtp(reply)

    assert (failure.retryable, failure.rule) == (retryable, rule)


@pytest.mark.parametrize(
    ("reply", "retryable", "rule"),
    [
        ("550 5.7.1 Temporary DMARC DNS failure", LATER, "smtp.text.sender_not_authenticated"),
        ("554 5.1.1 Directory temporarily closed", LATER, "smtp.enhanced.5.1.1"),
        ("550 SPF temperror", LATER, "smtp.text.sender_disliked"),
        ("535 5.7.0 Temporary authentication failure", LATER, "smtp.login.4"),
        ("550 SPF failure: not a temporary error", NEVER, "smtp.text.sender_not_authenticated"),
        ("550 No temporary mailbox: address disabled", NEVER, "smtp.text.mailbox_disabled"),
        ("550 We accept no temporary e-mail addresses", NEVER, "smtp.text.user_refused"),
    ],
)
def test_temporary_failure_is_retried_whatever_its_code(
    reply: str, rule: str, *, retryable: bool
) -> None:
    """Its code and its other words still decide the category."""
    failure = classify_smtp(reply)

    assert (failure.retryable, failure.rule) == (retryable, rule)


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        ("550 See ?p=ReceivingRatePerm", "smtp.text.recipient_rate"),
        ("554 TooManyRecipientsError", "smtp.text.too_many_recipients"),
        ("554 StoreException: MapiQuotaExceededException", "smtp.text.mailbox_full"),
        ("550 AccountDisabledException", "smtp.text.mailbox_disabled"),
        ("550 收件人邮箱空间已满", "smtp.text.mailbox_full"),
        ("550 发送频率超过限制", "smtp.text.limit"),
        ("550 迷惑メールと判定されました", "smtp.text.content_refused"),
    ],
)
def test_words_without_spaces_between_them_are_found(reply: str, rule: str) -> None:
    """Names written as one word have parts; Chinese and Japanese have no spaces."""
    assert classify_smtp(reply).rule == rule


@pytest.mark.parametrize(
    "reply",
    [
        "550 Your request could not be processed: no such user",
        "550 No such user in our directory",
        "550 Recipient verify from LDAP failed",
        "550 Blocked by local policy, ask the system administrator",
        "550 Spam from store.example.com is refused by this server",
        "550 5.7.1 Message rejected by the content filter, queue id 1234",
        "550 You cannot access this mailbox: it is private",
        "550 Cannot read your header",
        "550 Do not reply to this address",
        "554 5.6.0 The message could not be processed, it contains a virus",
        "552 5.2.3 Over the limit of this system: exceeded",
        "550 Kota Kembang: pengguna unknown",
    ],
)
def test_refusal_may_name_a_part_of_the_server(reply: str) -> None:
    """A directory, a store or a queue in the text is not yet a fault of it."""
    assert not classify_smtp(reply).retryable


@pytest.mark.parametrize(
    "reply",
    [
        "550-Callout verification failed: 550 5.1.1 User unknown",
        "550 Verification failed: no such user here",
        "550 Invalid recipient syntax",
    ],
)
def test_callout_and_syntax_answers_suppress_softly(reply: str) -> None:
    """A callout asks for the sender as often as for the recipient; bad syntax may be ours."""
    assert suppression(classify_smtp(reply, stage=Stage.RCPT)) is Suppression.SOFT


@pytest.mark.parametrize(
    "text",
    [
        "Conta inexistente. Tente novamente em alguns minutos.",
        "usuario inexistente ou em manutencao, tente novamente mais tarde",
        "Utilisateur inconnu, veuillez réessayer plus tard",
        "Benutzer unbekannt, bitte versuchen Sie es später erneut",
        "User unknown, please try again in a few moments",
        "Recipient not found; LDAP lookup error",
        "user unknown: account on hold",
        "User not found: pending activation",
        "Email address lookup failed",
        "Invalid recipient domain",
        "User unknown, on vacation until Monday",
        "Unknown user: use port 587",
        "No such user on this machine, ask the helpdesk",
        "Recipient not found while we move to new hardware",
        "User does not exist for guests",
        "Invalid recipient: office hours only",
        "No such user; subscribe to the list first",
        "User unknown until the contract is signed",
        "Unknown user or wrong certificate",
        "Mailbox does not exist outside the campus",
        "No such user for mail without a subject",
        "Usuario desconocido, cambie de puerto",
        "Benutzer unbekannt wegen Umzug",
    ],
)
def test_missing_mailbox_that_may_come_back_is_suppressed_softly(text: str) -> None:
    """In any language: whatever else is said may be the cause, and a suppressed address is never sent to again."""
    assert suppression(classify_smtp(f"550 5.1.1 {text}", stage=Stage.RCPT)) is Suppression.SOFT


@pytest.mark.parametrize(
    "text",
    [
        "The email account that you tried to reach does not exist. Please try double-checking the address.",
        "No such user. Please try double-checking the address for typos or unnecessary spaces.",
        "Conta inexistente",
        "Utilisateur inconnu",
        "Benutzer unbekannt",
        "<ana@example.com>: Recipient address rejected: User unknown in virtual mailbox table",
        "Unknown local part ana in <ana@example.com> [mx1.example.com]",
        "Mailbox ana@example.com is unavailable: user not found, see https://help.example.com/unknown",
    ],
)
def test_missing_mailbox_alone_is_suppressed_for_good(text: str) -> None:
    """Advice to check the address does not say that the mailbox may come back."""
    assert suppression(classify_smtp(f"550 5.1.1 {text}", stage=Stage.RCPT)) is Suppression.HARD


def test_lines_of_a_reply_are_read_as_one() -> None:
    """Codes repeated on each line are not text, and the enhanced one may come late."""
    failure = classify_smtp("550-Sorry, this mailbox\r\n550-is\r\n550 5.2.2 full\r\nSee 421\r\n")

    assert (failure.code, failure.original_code) == ("550", "5.2.2")
    assert failure.reason == "550-Sorry, this mailbox 550-is 550 5.2.2 full See 421"


def test_text_across_lines_is_found() -> None:
    """A server breaks its lines anywhere."""
    assert classify_smtp("550-the mailbox is\r\n550 full").rule == "smtp.text.mailbox_full"


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        ("550 We cannot open the file", "smtp.text.delivery_trouble"),
        ("550 We can not open the file", "smtp.text.delivery_trouble"),
        ("550 We can't open the file", "smtp.text.delivery_trouble"),
        ("550 We can\u2019t open the file", "smtp.text.delivery_trouble"),
        ("550 This user does not exist", "smtp.text.user_unknown"),
        ("550 This user doesn't exist", "smtp.text.user_unknown"),
        ("550 This user does\u2019nt exist", "smtp.text.user_unknown"),
        ("550 Not authorized to send mail from it", "smtp.text.sender_not_authenticated"),
        ("550 Not authorised to send mail from it", "smtp.text.sender_not_authenticated"),
    ],
)
def test_negation_is_found_in_any_spelling(reply: str, rule: str) -> None:
    """Shortened, in two words or with the apostrophe elsewhere."""
    assert classify_smtp(reply).rule == rule


def test_ip_address_is_not_an_enhanced_code() -> None:
    """Four numbers with dots between are a host."""
    failure = classify_smtp("550 5.61.2.14 is blocked")

    assert failure.original_code == "550"


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        ("550 User spam@example.com unknown", "smtp.text.user_unknown"),
        ("550 <quota@rate.example>: rejected", "smtp.code.550"),
        ("550 Mail from 192.0.2.9 refused", "smtp.text.blocklisted"),
        ("550 Seen by 192.0.2.9 at noon", "smtp.code.550"),
        ("550 HELO was mx.example.com", "smtp.code.550"),
        ("554 5.7.1 Failed antispam checks: see HELO, PTR", "smtp.text.content_refused"),
        (
            "550 Blacklisted URL in message, HELO=mx.example.com [192.0.2.9]",
            "smtp.text.content_listed",
        ),
        ("550 Sender domain example.org is blacklisted here", "smtp.text.sender_listed"),
        ("550 Mail refused", "smtp.text.message_refused"),
    ],
)
def test_names_in_a_reply_are_not_read_as_text(reply: str, rule: str) -> None:
    """A mailbox name says nothing; an IP address shows that the sender is meant."""
    assert classify_smtp(reply).rule == rule


@pytest.mark.parametrize(
    ("stage", "scope"),
    [
        (Stage.MAIL, Scope.PROVIDER),
        (Stage.RCPT, Scope.RECIPIENT),
        (Stage.DOT, Scope.MESSAGE),
        (None, Scope.MESSAGE),
    ],
)
def test_policy_refusal_is_classified_by_its_stage(stage: Stage | None, scope: Scope) -> None:
    """As with a bare code: without known text, there is only the stage."""
    failure = classify_smtp("550 5.7.1 No", stage=stage)

    assert (failure.scope, failure.retryable) == (scope, NEVER)


def test_mailbox_error_after_the_content_is_about_the_content() -> None:
    """Some use 5.2.0 for spam: that must not count against the mailbox."""
    after, before = (classify_smtp("550 5.2.0 No", stage=at) for at in (Stage.DOT, Stage.RCPT))

    assert (after.scope, before.scope) == (Scope.MESSAGE, Scope.RECIPIENT)


@pytest.mark.parametrize(
    ("reply", "stage", "rule", "retryable"),
    [
        ("552 Requested action aborted", Stage.RCPT, "smtp.code.552.rcpt@rcpt", LATER),
        ("552 Requested action aborted", Stage.DOT, "smtp.code.552@dot", NEVER),
        ("552 Requested action aborted", Stage.MAIL, "smtp.code.552@mail", NEVER),
        ("552 Message too big", Stage.RCPT, "smtp.text.message_too_big@rcpt", NEVER),
    ],
)
def test_bare_552_at_rcpt_is_a_full_mailbox(
    reply: str, stage: Stage, rule: str, *, retryable: bool
) -> None:
    """RFC 5321: storage exceeded; there is no message yet that could be too large."""
    failure = classify_smtp(reply, stage=stage)

    assert (failure.rule, failure.retryable) == (rule, retryable)


def test_enhanced_code_in_brackets_counts() -> None:
    """As qmail and its relatives write it, behind the text."""
    failure = classify_smtp("554 sorry (#5.7.26)")

    assert (failure.original_code, failure.rule) == ("5.7.26", "smtp.enhanced.5.7.26")


@pytest.mark.parametrize(
    ("reply", "mx", "rule"),
    [
        (
            "550 Mailbox unavailable or access denied",
            "mx3.qq.com",
            "smtp.tencent_netease.recipient_rate",
        ),
        ("550 5.1.90 No", "x.mail.protection.outlook.com", "smtp.microsoft.recipients_a_day"),
        ("550 5.1.0 <a@example.com> sender rejected. AUP#In-1310", "", "smtp.spectrum.rate"),
        ("554 5.7.1 rejected AUP#CXMXRT", "", "smtp.cox.rate"),
        ("554 (RLY:B1)", "", "smtp.yahoo.source_blocked"),
    ],
)
def test_limits_of_large_receivers_are_temporary(reply: str, mx: str, rule: str) -> None:
    """As their own pages say."""
    failure = classify_smtp(reply, mx=mx)

    assert (failure.rule, failure.retryable) == (rule, LATER)


@pytest.mark.parametrize("reply", ["", "  \r\n", "hello", "5500 no", "42 1", "4210", "999 what"])
def test_reply_without_a_code_is_unknown(reply: str) -> None:
    """Garbage is retryable."""
    failure = classify_smtp(reply)

    assert (failure.code, failure.category, failure.retryable) == ("UNKNOWN", TRANSIENT, True)
    assert failure.reason.strip()


# --- any text ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code", "retryable"),
    [
        ("421 Service not available", "421", LATER),
        ("  450 mailbox busy", "450", LATER),
        ("550", "550", NEVER),
        ("550-5.1.1 gone", "550", NEVER),
        ("SMTP Error 421: try later", "421", LATER),
        ("SMTP error: 451 4.7.1 Greylisted", "451", LATER),
        ("smtp reply code 554", "554", NEVER),
        ("SMTP 550: Mailbox not found", "550", NEVER),
        ("SMTP Error 552: 5.2.2 over quota", "552", LATER),
        ("host mx.example.test said: 550 5.1.1 <x>: no", "550", NEVER),
    ],
)
def test_code_counts_at_the_start_and_behind_a_known_prefix(
    text: str, code: str, *, retryable: bool
) -> None:
    """The code is found, and the whole text is the reason."""
    failure = classify_text(text)

    assert (failure.code, failure.retryable) == (code, retryable)
    assert failure.reason == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "connection lost in 421 ms",
        "421 ms passed",
        "550 bytes read",
        "550KB read",
        "SMTP error 4210",
        "SMTP error 421.5",
        "SMTP took 550 ms",
        "ticket 550 refused",
        "room 5.1.1",
        "503 Service Unavailable",
        "500 Internal Server Error",
        "200 OK",
    ],
)
def test_numbers_elsewhere_mean_nothing(text: str) -> None:
    """Three digits are not a code, and an unknown text is retryable."""
    failure = classify_text(text)

    assert (failure.code, failure.category, failure.retryable) == ("UNKNOWN", TRANSIENT, True)
    assert (failure.rule, failure.reason) == ("unknown", text)


@given(st.text())
def test_every_text_has_a_verdict_with_a_reason(text: str) -> None:
    """No answer of a server breaks us, or leaves people without a reason."""
    for failure in (classify_text(text), classify_smtp(text), classify.network(text)):
        assert is_well_formed(failure)


@given(
    st.from_regex(
        r"[2-5][0-9]{2}[ -]([245]\.[0-9]{1,3}\.[0-9]{1,3} )?(\w|\s){0,40}", fullmatch=True
    )
)
def test_every_reply_is_classified_by_a_named_rule(reply: str) -> None:
    """A reply with a code is never unknown, and keeps its code."""
    failure = classify_smtp(reply)

    assert is_well_formed(failure)
    assert failure.code == reply[:3]
    assert failure.rule.startswith("smtp.")


@given(st.integers(400, 499), st.text())
def test_temporary_code_never_becomes_permanent_by_its_text(code: int, text: str) -> None:
    """Without an enhanced code a 4xx is temporary."""
    assert classify_smtp(f"{code} text {text}").retryable


def test_reason_is_short_and_safe_to_show() -> None:
    """Foreign text is cut, and stripped of characters that break a terminal or a store."""
    failure = classify.network("a\x00b\x1b[31m\ud800\n" + "c" * 5_000)

    assert failure.reason.startswith("a b [31m ccc")
    assert len(failure.reason) == LONGEST_REASON
    assert failure.reason.endswith("…")


# --- failures of our own ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "code"),
    [("ses", "SES_TIMEOUT"), ("smtp", "SMTP_TIMEOUT"), ("my-relay", "MY_RELAY_TIMEOUT")],
)
def test_timeout_is_a_fault_of_the_provider(provider: str, code: str) -> None:
    """Each provider has its own code, and the call may be made again."""
    failure = classify.timeout(provider)

    assert (failure.code, failure.category, failure.retryable) == (code, TIMEOUT, True)
    assert failure.scope is Scope.PROVIDER


def test_unreachable_provider_is_a_network_error() -> None:
    """It is retryable."""
    failure = classify.network("connection refused")

    assert (failure.code, failure.category) == ("NETWORK_ERROR", TRANSIENT)
    assert (failure.retryable, failure.reason) == (True, "connection refused")


def test_failed_validation_is_never_retried() -> None:
    failure = classify.validation("INVALID_EMAIL", "no @ in it")

    assert (failure.code, failure.category) == ("INVALID_EMAIL", Category.VALIDATION_ERROR)
    assert (failure.retryable, failure.reason) == (False, "no @ in it")
    assert failure.rule == "validation.INVALID_EMAIL"


@pytest.mark.parametrize(
    ("exception", "reason"),
    [
        (ValueError("bad\nthing"), "ValueError: bad thing"),
        (KeyError(), "KeyError"),
        (ZeroDivisionError("421 ms"), "ZeroDivisionError: 421 ms"),
    ],
)
def test_error_of_a_task_is_retryable(exception: Exception, reason: str) -> None:
    """An unclassified one is named by its class."""
    failure = classify.task_error(exception)

    assert (failure.code, failure.category, failure.retryable) == ("TASK_ERROR", TRANSIENT, True)
    assert (failure.original_code, failure.reason) == (type(exception).__name__, reason)


def test_error_that_cannot_be_printed_still_has_a_reason() -> None:
    """A broken exception of a task must not break the worker that reports it."""

    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    failure = classify.task_error(Broken())

    assert failure.reason == "Broken"


def test_long_error_of_a_task_is_cut() -> None:
    """Five hundred characters say enough."""
    assert len(classify.task_error(ValueError("x" * 10_000)).reason) == 500


def test_open_attempt_and_deadly_message_have_their_own_reasons() -> None:
    """Both are known by their codes."""
    in_doubt, deadly = classify.in_doubt(), classify.crashes_worker(5)

    assert (in_doubt.code, in_doubt.retryable) == ("IN_DOUBT", True)
    assert (deadly.code, deadly.category) == ("CRASHES_WORKER", PERMANENT)
    assert is_well_formed(in_doubt)
    assert is_well_formed(deadly)


@pytest.mark.parametrize(
    "table",
    [codes.ENHANCED, codes.OPEN_ENHANCED, codes.SUBJECTS, codes.CODES, codes.CLASSES],
    ids=len,
)
def test_table_never_makes_a_temporary_code_permanent(table: dict[str, Ruling]) -> None:
    """Every code that begins with a 4 is temporary."""
    assert all(ruling.retryable for code, ruling in table.items() if code[0] == "4")
