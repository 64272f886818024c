"""Log lines: their fields, their levels, and the data that can never be in them."""

import inspect
import io
import logging
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import orjson
import pytest

from carteiro.errors import StoreUnavailable
from carteiro.model import (
    EMAIL,
    Category,
    ClaimId,
    Dead,
    DeadReason,
    Delivery,
    End,
    Failure,
    Lease,
    LeasedJob,
    MessageId,
    NoteAnswer,
    Retry,
    Scope,
    Sent,
    State,
    TenantId,
    UnsubscribeLink,
)
from carteiro.observability import log, notice_events
from carteiro.observability.log_targets import Level
from support.alerting import a_notice
from support.feedback import a_feedback


@pytest.fixture(autouse=True)
def _silent_again() -> Iterator[None]:
    """Restore the log of this process."""
    yield
    log.configure("off")


def a_job() -> LeasedJob:
    """A leased e-mail with a body that no line may show."""
    return LeasedJob(
        lease=Lease(MessageId("message-1"), ClaimId("claim-1")),
        kind=EMAIL,
        tenant=TenantId("acme"),
        claims=1,
        content='{"html": "<p>the body</p>"}',
        ledger_tenant=TenantId("acme"),
        request_id="request-1",
        delivery=Delivery.AT_LEAST_ONCE,
        attempts=1,
        charged=0,
        in_doubt=0,
        revision=0,
        open_attempt=False,
        expires_in=timedelta(hours=1),
    )


TOOK = timedelta(milliseconds=34.5)


def a_failure(reason: str = "try later") -> Failure:
    """A greylisting."""
    return Failure(
        code="451",
        category=Category.TRANSIENT_ERROR,
        retryable=True,
        scope=Scope.RECIPIENT,
        reason=reason,
        rule="greylist",
    )


def listening(level: str = "debug") -> io.BytesIO:
    """A log of this level, and its output."""
    stream = io.BytesIO()
    log.configure(level, stream)
    return stream


def lines(stream: io.BytesIO) -> list[dict[str, Any]]:
    """The lines written so far."""
    return [orjson.loads(line) for line in stream.getvalue().splitlines()]


def finish_an_attempt() -> None:
    """The most frequent line."""
    job, sent = a_job(), Sent("sandbox", "queue-id-1")
    end = End(job.lease, sent, duration=timedelta(milliseconds=12.7))
    log.attempt_finished(job, end, attempt=2, state=State.SENT, provider="sandbox")


def test_attempt_has_one_info_line_with_its_ids() -> None:
    """Any of the ids finds the line."""
    stream = listening("info")

    finish_an_attempt()

    [line] = lines(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("timestamp"))
    assert line == {
        "level": "info",
        "message": "Attempt finished",
        "event": "attempt.finished",
        "outboxId": "message-1",
        "jobId": "message-1",
        "requestId": "request-1",
        "companyId": "acme",
        "attempt": 2,
        "state": "SENT",
        "durationMs": 12,
        "provider": "sandbox",
        "providerMessageId": "queue-id-1",
    }


def test_sent_attempts_have_the_same_lines() -> None:
    """They are logged in lists."""
    stream, took = listening("info"), timedelta(milliseconds=12.7)
    end = End(a_job().lease, Sent("sandbox", "queue-id-1"), (), took)

    finish_an_attempt()
    log.attempts_sent([a_job(), a_job()], [2, 2], [end, end])

    one, *others = [{**line, "timestamp": ""} for line in lines(stream)]
    assert others == [one, one]


def test_retry_is_a_warning_with_reason_and_time() -> None:
    """Dashboards of retries are built on this line."""
    stream = listening()
    job, retry = a_job(), Retry(timedelta(seconds=1.5), charged=True, failure=a_failure())

    log.retry_scheduled(job, retry, End(job.lease, retry), attempt=1, max_attempts=5)

    [line] = lines(stream)
    assert (line["level"], line["message"]) == ("warn", "Job failed, scheduling retry")
    assert line["state"] == "RETRY_SCHEDULED"
    assert (line["attempt"], line["maxAttempts"], line["nextRetryDelay"]) == (1, 5, 1500)
    assert (line["errorCode"], line["errorReason"]) == ("451", "try later")
    assert line["isRetryable"] is True


def test_every_line_of_an_attempt_has_its_duration() -> None:
    """In whole milliseconds; lines of a message have its id."""
    stream = listening()

    write_all()

    attempts = {
        line["event"]: line.get("durationMs") for line in lines(stream) if "attempt" in line
    }
    assert attempts == {
        "attempt.finished": 12,
        "retry.scheduled": 34,
        "message.died": 34,
        "attempt.in_doubt": 34,
        "result.late": 34,
    }


def test_addresses_are_masked_in_every_text() -> None:
    """A provider's answer quotes the recipient; the log must not."""
    stream = listening()

    log.attempt_in_doubt(
        a_job(), a_failure("451 <ursula@example.com> is greylisted"), attempt=1, duration=TOOK
    )

    written = stream.getvalue()
    assert b"ursula" not in written
    assert b"example" not in written
    assert b"is greylisted" in written


def test_text_that_is_not_unicode_is_still_logged() -> None:
    """A server may answer with any bytes; a line about it must not fail a delivery."""
    stream = listening()

    log.attempt_in_doubt(a_job(), a_failure("caf\udce9 closed"), attempt=1, duration=TOOK)

    assert lines(stream)[0]["errorReason"] == "caf? closed"


def write_all() -> None:
    """One line of each event."""
    job, failure = a_job(), a_failure()
    finish_an_attempt()
    retry = Retry(timedelta(1), charged=True, failure=failure)
    log.retry_scheduled(job, retry, End(job.lease, retry, duration=TOOK), attempt=1, max_attempts=5)
    log.message_died(
        job, Dead(DeadReason.PERMANENT_ERROR, failure), attempt=1, state=State.FAILED, duration=TOOK
    )
    log.attempt_in_doubt(job, failure, attempt=1, duration=TOOK)
    log.result_late(job, attempt=1, state=None, duration=TOOK)
    log.doubt_resolved(a_feedback(job.lease.job))
    log.feedback_ignored(a_feedback(job.lease.job))
    log.unsubscribed(UnsubscribeLink(job.tenant, job.lease.job, "0a"), NoteAnswer.NOTED)
    log.subscription_confirmed("arn:aws:sns:sa-east-1:123456789012:mails")
    log.worker_started(kinds=[EMAIL], slots=5)
    log.worker_stopping(in_flight=3, grace=timedelta(seconds=40))
    log.worker_stopped(released=2)
    log.handlers_go_on(1)
    log.store_failed("settle", StoreUnavailable("locked"), wait=timedelta(seconds=1))
    log.queue_away("redis://here", "refused", wait=timedelta(seconds=1))
    log.queue_back("redis://here")
    log.provider_left_alone("smtp", "connection refused", wait=timedelta(seconds=1))
    log.provider_healed("smtp")
    log.rates_away("smtp", StoreUnavailable("locked"))
    log.request_failed("request-1", StoreUnavailable("locked"), status=503)
    log.bound_reached("connections", most=1000)
    log.upkeep_done("expire", count=3)
    log.redrive_started("redrive-2", "acme", "smtp", 8)
    log.redrive_halted("redrive-1", "stopped", "5 of 5 failed again, more than 20%.")
    log.upkeep_failed("prune", StoreUnavailable("locked"))
    log.dead_letters_filling(count=8000, most=10_000, folder="dead")
    log.dead_letters_exported(count=500, file="dead/1.jsonl")
    notice_events.announced(a_notice(), "TenantFails acme: firing")
    notice_events.put_off(a_notice(), "webhook", "it answers 500", wait=timedelta(seconds=5))
    notice_events.not_delivered(a_notice(), "mail", "its mail ended as FAILED", "firing")
    notice_events.channel_away("alertmanager", "no answer")
    log.traces_away("http://127.0.0.1:4318")
    log.traces_back("http://127.0.0.1:4318")
    log.unexpected("claim", RuntimeError("secret"))


def _functions() -> dict[str, Any]:
    """Every function of both modules of events."""
    modules = (log, notice_events)
    return {
        name: each
        for module in modules
        for name, each in inspect.getmembers(module, inspect.isfunction)
    }


def test_every_event_is_tested_here_and_shows_no_content() -> None:
    """A new log function must join `write_all`, so that this file sees its output."""
    stream = listening()

    write_all()

    others = {
        "attempts_sent",
        "configure",
        "event",
        "flush",
        "mask_text",
        "show_traces",
        "shows_traces",
        "to_logging",
        "trace_ids",
    }  # no event of their own
    public = {name for name in _functions() if not name.startswith("_") and name not in others}
    assert len(lines(stream)) == len(public)
    assert len({line["event"] for line in lines(stream)}) == len(public)
    assert b"the body" not in stream.getvalue()


@pytest.mark.parametrize("level", ["info", "warn", "error", "off"])
def test_lines_below_the_level_are_not_written(level: str) -> None:
    everything = listening("debug")
    write_all()
    wanted = [
        line["event"]
        for line in lines(everything)
        if Level[line["level"].upper()] >= Level[level.upper()]
    ]

    some = listening(level)
    write_all()

    assert [line["event"] for line in lines(some)] == wanted


def test_log_functions_take_no_free_fields() -> None:
    """So no body and no key can get into a line."""
    for function in _functions().values():
        kinds = {each.kind for each in inspect.signature(function).parameters.values()}

        assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}


def test_text_of_an_unknown_error_is_hidden_but_its_place_is_shown() -> None:
    """Foreign errors may quote the content that they failed on."""
    stream = listening()
    try:
        orjson.loads("the body of a message")
    except ValueError as error:
        log.unexpected("claim", error)

    [line] = lines(stream)
    assert (line["errorType"], line["errorReason"]) == ("JSONDecodeError", "")
    assert line["errorPlace"].startswith(
        "test_text_of_an_unknown_error_is_hidden_but_its_place_is_shown:"
    )


def test_text_of_our_own_errors_is_shown() -> None:
    """They are written for the operator."""
    stream = listening()

    log.upkeep_failed("prune", StoreUnavailable("the file is locked"))

    assert lines(stream)[0]["errorReason"] == "the file is locked"


def test_closed_stream_causes_no_error() -> None:
    """A delivery is worth more than its line."""
    stream = listening()
    stream.close()

    finish_an_attempt()


def test_lines_go_to_stderr_only_once_configured() -> None:
    """A program that embeds us hears nothing until it asks."""
    program = (
        "from carteiro.observability import log\n"
        "log.upkeep_done('before', count=1)\n"
        "log.configure('info')\n"
        "log.upkeep_done('after', count=1)\n"
    )

    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)

    assert ran.stdout == b""
    assert [orjson.loads(line)["task"] for line in ran.stderr.splitlines()] == ["after"]


# --- the standard library's logging -------------------------------------------------------------


def test_every_event_is_a_record_with_the_fields_of_its_line(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """With the same level and text, and no line besides."""
    stream = listening()
    write_all()
    wanted = lines(stream)
    levels = {"debug": "DEBUG", "info": "INFO", "warn": "WARNING", "error": "ERROR"}

    log.to_logging("debug")
    with caplog.at_level("DEBUG", "carteiro"):
        write_all()

    for line, record in zip(wanted, caplog.records, strict=True):
        assert record.levelname == levels[line.pop("level")]
        assert record.getMessage() == line.pop("message")
        subject, dot, _ = line["event"].partition(".")
        assert record.name == (f"carteiro.{subject}" if dot else "carteiro")
        del line["timestamp"]
        told = vars(record)["fields"]
        assert orjson.loads(orjson.dumps(told)) == line
        assert {name: vars(record)[name] for name in told} == told
    assert len(stream.getvalue().splitlines()) == len(wanted)
    assert capfd.readouterr() == ("", "")


def test_records_mask_addresses_and_keep_their_own_attributes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A field with the name of an attribute of each record is among ``fields`` alone."""
    log.to_logging()
    log.event(
        Level.WARN, "100 % of u@x.example", "a.b", {"name": "u@x.example", "why": "caf\udce9"}
    )

    [record] = caplog.records
    assert "x.example" not in record.getMessage() + str(vars(record)["fields"])
    assert record.getMessage().startswith("100 % of ")
    assert (record.name, vars(record)["why"]) == ("carteiro.a", "caf?")


def test_disabled_logger_makes_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does an event below the level."""
    made: list[object] = []
    monkeypatch.setattr(logging, "_logRecordFactory", lambda *_, **__: made.append(1))
    logger = logging.getLogger("carteiro.attempt")

    log.to_logging("warn")
    finish_an_attempt()
    log.to_logging("info")
    monkeypatch.setattr(logger, "level", logging.CRITICAL)
    logger.manager._clear_cache()  # type: ignore[attr-defined]
    finish_an_attempt()
    logger.manager._clear_cache()  # type: ignore[attr-defined]

    assert made == []


def test_failing_handler_causes_no_error() -> None:
    """A delivery is worth more than its record."""
    logger = logging.getLogger("carteiro.attempt")
    logger.addFilter(_fail)
    try:
        log.to_logging("info")
        logger.setLevel("INFO")
        finish_an_attempt()
    finally:
        logger.setLevel("NOTSET")
        logger.removeFilter(_fail)


def _fail(record: logging.LogRecord) -> bool:
    raise RuntimeError(record.name)


def test_records_of_a_program_go_where_its_handlers_send_them() -> None:
    """Once, and no line of our own; `configure` goes back to lines."""
    program = (
        "import logging\n"
        "from carteiro.observability import log\n"
        "logging.basicConfig(level='INFO', format='%(levelname)s %(name)s %(message)s %(task)s')\n"
        "log.configure('info')\n"
        "log.to_logging()\n"
        "log.upkeep_done('one', count=1)\n"
        "log.configure('off')\n"
        "log.upkeep_done('two', count=1)\n"
    )

    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    )

    assert (ran.stdout, ran.stderr) == ("", "INFO carteiro.upkeep Upkeep done one\n")
