"""``carteiro classify``: verdicts explained, and the effect of custom rules on past verdicts."""

import json

import pytest

from carteiro.cli.exit_codes import ExitCode
from support.command_line import CommandLine

FIELDS = ["code", "originalCode", "category", "retryable", "scope", "reason", "rule"]
MOVING = {
    "name": "moving",
    "code": "550",
    "text": "no such user",
    "category": "TRANSIENT_ERROR",
    "retryable": True,
    "scope": "destination",
}
VERDICTS = json.dumps([MOVING])


@pytest.mark.parametrize(
    ("arguments", "code", "category", "retryable", "scope", "rule"),
    [
        (["550 5.1.1 No"], "550", "PERMANENT_ERROR", False, "recipient", "smtp.enhanced.5.1.1"),
        (
            ["550 No", "--stage", "mail"],
            "550",
            "CONFIGURATION_ERROR",
            False,
            "provider",
            "smtp.code.550@mail",
        ),
        (
            [
                "550 5.4.1 Recipient address rejected: Access denied",
                "--mx",
                "x.mail.protection.outlook.com",
            ],
            "550",
            "PERMANENT_ERROR",
            False,
            "recipient",
            "smtp.microsoft.directory_block",
        ),
        (
            ["Throttling: Rate exceeded"],
            "SES_THROTTLING",
            "QUOTA_ERROR",
            True,
            "provider",
            "ses.Throttling",
        ),
        (
            ["TooManyRequestsException: slow", "--provider", "ses"],
            "SES_TOO_MANY_REQUESTS",
            "QUOTA_ERROR",
            True,
            "provider",
            "ses.TooManyRequests",
        ),
        (
            ["429 rate_limit_exceeded: Too many requests", "--provider", "resend"],
            "RESEND_RATE_LIMIT_EXCEEDED",
            "QUOTA_ERROR",
            True,
            "provider",
            "resend.rate_limit_exceeded",
        ),
        (["what?"], "UNKNOWN", "TRANSIENT_ERROR", True, "message", "unknown"),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_verdict_is_one_document_with_the_fields_of_a_failure(
    line: CommandLine,
    arguments: list[str],
    code: str,
    category: str,
    scope: str,
    rule: str,
    *,
    retryable: bool,
) -> None:
    """No store is needed, and none is created."""
    found = line.asked("classify", *arguments)

    assert list(found) == FIELDS
    assert (found["code"], found["category"], found["retryable"]) == (code, category, retryable)
    assert (found["scope"], found["rule"]) == (scope, rule)
    assert list(line.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (
            "550 5.1.1 No such user",
            ["this text means", "dead letter", "suppression: soft; hard if it answered RCPT TO"],
        ),
        ("550 5.1.1 No", ["the enhanced code decides", "suppression: soft"]),
        (
            "451 4.7.1 Greylisted",
            ["this text means the same at every provider", "retried, first after"],
        ),
        ("454 Throttling failure: too fast", ["drops, for all workers", "unchanged"]),
        (
            "421 4.7.28 too fast",
            ["provider's code  4.7.28", "whose fault      destination", "unchanged"],
        ),
        ("NetworkingError", ["the name of the error decides", "may open"]),
        ("550 no such user: does not exist - gsmtp", ["google is known for this text"]),
        ("what?", ["no rule matches"]),
        ("Connection refused", ["the connection failed", "may open"]),
        ("timed out", ["no answer in time"]),
        ("certificate verify failed", ["the server is not trusted"]),
        ("HTTP 503", ["the status decides"]),
        ("550 5.7.1 no", ["class and subject"]),
    ],
)
def test_text_output_names_the_rule_the_reason_and_the_effect(
    line: CommandLine, answer: str, says: list[str]
) -> None:
    """In sentences, not only in fields."""
    told = line.done("classify", answer)

    assert [each for each in says if each not in told] == []


@pytest.mark.parametrize(
    ("stage", "suppression"),
    [("mail", "none"), ("rcpt", "hard"), ("data", "soft"), ("dot", "soft")],
)
def test_verdict_on_the_recipient_depends_on_the_stage(
    line: CommandLine, stage: str, suppression: str
) -> None:
    """A mailbox is given up only where the recipient was named."""
    told = line.done("classify", "550 5.1.1 User unknown", "--stage", stage)

    assert f"suppression: {suppression}" in told


@pytest.mark.parametrize("answer", ["250 OK", "250 2.0.0 Ok: queued", "HTTP/1.1 200 OK", "354 go"])
def test_success_code_is_not_classified(line: CommandLine, answer: str) -> None:
    """As a failure it would be retried, and sent twice."""
    ran = line("classify", answer)

    assert ran.code == ExitCode.WRONG_USE
    assert "there is no failure to judge" in ran.err


def test_since_is_an_option_of_a_dry_run(line: CommandLine) -> None:
    """It is refused elsewhere; the help says what a dry run does not see."""
    ran = line("classify", "550 no", "--since", "7d")

    assert "--since needs --dry-run" in ran.err
    assert "last failure of each stored message" in " ".join(
        line.done("classify", "--help").split()
    )


@pytest.mark.parametrize(
    ("arguments", "is_doubt"),
    [
        (["InternalFailure: broken", "--provider", "ses"], True),
        (["HTTP 500", "--provider", "ses"], True),
        (["ServiceUnavailable", "--provider", "ses"], False),
        (["timed out"], True),
        (["timed out", "--stage", "dot"], True),
        (["timed out", "--stage", "rcpt"], False),
        (["ReadTimeout", "--provider", "resend"], True),
        (["500 application_error: broken", "--provider", "resend"], True),
        (["429 rate_limit_exceeded: slow", "--provider", "resend"], False),
        (["451 4.7.1 Greylisted", "--stage", "dot"], False),
    ],
    ids=str,
)
def test_doubt_after_the_hand_over_is_reported(
    line: CommandLine, arguments: list[str], is_doubt: bool
) -> None:
    """Such a message is not simply retried."""
    told = line.done("classify", *arguments)

    assert ("if handed over" in told) is is_doubt
    assert ("no failover" in " ".join(told.split())) is is_doubt


def test_uncharged_failure_is_retried_until_it_expires(line: CommandLine) -> None:
    """The settings in force decide."""
    told = line.done("classify", "421 Busy", CARTEIRO_RETRY_CHARGE="message")

    assert "not charged" in told


def test_retry_delay_is_shown(line: CommandLine) -> None:
    """The time until the next attempt, as configured."""
    usual = line.done("classify", "451 4.7.1 Greylisted")
    patient = line.done("classify", "451 4.7.1 Greylisted", CARTEIRO_RETRY_PATIENT="true")

    assert "first after about 1s" in usual
    assert "first after about 2m" in patient


def test_custom_rule_decides_first(line: CommandLine) -> None:
    """The output says so."""
    found = line.asked("classify", "550 5.1.1 No such user", CARTEIRO_VERDICTS=VERDICTS)
    told = line.done("classify", "550 5.1.1 No such user", CARTEIRO_VERDICTS=VERDICTS)

    assert (found["rule"], found["retryable"]) == ("own.moving", True)
    assert "one of your own rules" in told


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["550 no", "--dry-run"],
        ["550 no", "--provider", "pigeon"],
        ["550 no", "--since", "7d"],
        ["--since", "7d"],
        [""],
        ["  "],
        ["550 5.1.1 no", "--provider", "resend"],
        ["550 no", "--provider", "ses"],
        ["Throttling", "--provider", "ses", "--stage", "rcpt"],
        ["application_error", "--provider", "resend", "--mx", "mx.example.com"],
        ["--dry-run", "--stage", "rcpt"],
        ["--dry-run", "--provider", "smtp"],
        ["--dry-run", "--mx", "mx.example.com"],
    ],
)
def test_invalid_combination_of_arguments_is_refused(
    line: CommandLine, arguments: list[str]
) -> None:
    assert line("classify", *arguments).code == ExitCode.WRONG_USE


def test_worker_classifies_by_the_rules_of_its_settings(line: CommandLine) -> None:
    """A failure that would be a dead letter waits for its retry."""
    message = line.sent("bounce-550@sandbox.test")

    line.worked_off(CARTEIRO_VERDICTS=VERDICTS)

    assert line.asked("show", message)["status"] == "RETRY_SCHEDULED"


def test_dry_run_lists_changed_verdicts_and_changes_none(
    line: CommandLine,
) -> None:
    """Equal ones are one row, with an example message."""
    dead = {line.dead(), line.dead()}
    line.sent("ok@sandbox.test")
    line.worked_off()

    [change] = line.listed("classify", "--dry-run", CARTEIRO_VERDICTS=VERDICTS)
    told = line("classify", "--dry-run", CARTEIRO_VERDICTS=VERDICTS)

    assert change["was"]["retryable"] is False
    assert change["wouldBe"] == {
        "category": "TRANSIENT_ERROR",
        "retryable": True,
        "scope": "destination",
    }
    assert (change["messages"], change["code"], change["rule"]) == (2, "550", "own.moving@rcpt")
    assert change["example"] in dead
    assert "not retried, recipient" in told.out
    assert "2 failures checked, 2 would get another verdict; nothing was changed" in told.err
    assert {each["outboxId"] for each in line.listed("dead", "ls")} == dead


def test_dry_run_without_custom_rules_finds_no_change(line: CommandLine) -> None:
    """With ``--since`` it reads less."""
    line.dead()

    ran = line("classify", "--dry-run")
    later = line("classify", "--dry-run", "--since", "2099-01-01T00:00:00Z")

    assert ran.out == ""
    assert "1 failures checked, 0 would" in ran.err
    assert "0 failures checked" in later.err


TIMED_OUT = {
    "name": "late",
    "provider": "sandbox",
    "code": "SANDBOX_TIMEOUT",
    "category": "PERMANENT_ERROR",
    "retryable": False,
    "scope": "destination",
}
SHORT = {"CARTEIRO_DELIVERY_CALL_LIMIT_MS": "50"}


@pytest.mark.parametrize(
    ("to", "conditions"),
    [
        ("bounce-550@sandbox.test", {"code": "550"}),
        ("reject@sandbox.test", {"code": "SES_MESSAGE_REJECTED"}),
        ("timeout@sandbox.test", {"code": "SANDBOX_TIMEOUT"}),
    ],
)
@pytest.mark.parametrize("provider", ["sandbox", "smtp"])
def test_dry_run_and_worker_agree(
    line: CommandLine, to: str, conditions: dict[str, str], provider: str
) -> None:
    """A rule is about the recipient's provider, for any form of the answer."""
    turned = {"category": "QUOTA_ERROR", "retryable": "timeout" not in to, "scope": "tenant"}
    rule = {"name": "turned", "provider": provider, **conditions, **turned}
    if provider != "sandbox":
        del rule["code"]
    rules = {"CARTEIRO_VERDICTS": json.dumps([rule])}
    line.sent(to)
    line.worked_off(**SHORT)

    would_change = line.listed("classify", "--dry-run", **rules)
    again = line.sent(to)
    line.worked_off(**SHORT, **rules)

    by_worker = line.asked("show", again)["errorCategory"] == "QUOTA_ERROR"
    names = [each["rule"].partition("@")[0] for each in would_change]
    assert names == (["own.turned"] if by_worker else [])
    assert by_worker is (provider == "sandbox")


def test_dry_run_skips_doubts(line: CommandLine) -> None:
    """A worker applies no rule to silence after the hand-over."""
    line.sent("lost-reply@sandbox.test")
    line.worked_off(**SHORT)

    changes = line.listed("classify", "--dry-run", CARTEIRO_VERDICTS=json.dumps([TIMED_OUT]))

    assert changes == []


def test_dry_run_covers_failures_without_an_answer(line: CommandLine) -> None:
    """There is no provider text to classify again; a rule may still match."""
    relay = {"CARTEIRO_PROVIDER": "smtp"}
    rule = MOVING | {"code": "SENDER_MISSING", "text": ""}
    line.sent("ana@example.com")
    line.worked_off(**relay)

    as_it_was = line.listed("classify", "--dry-run", **relay)
    [ruled] = line.listed("classify", "--dry-run", **relay, CARTEIRO_VERDICTS=json.dumps([rule]))

    assert as_it_was == []
    assert (ruled["code"], ruled["rule"]) == ("SENDER_MISSING", "own.moving")
