"""The log of a settled attempt: the state in the ledger, and no more than happened."""

from datetime import timedelta
from typing import Any

import pytest

from carteiro.model import DeadReason, End, Late, LeasedJob, Settled, State, Verdict
from carteiro.observability.metrics import Tally
from carteiro.path.track import Attempt, track
from support.builders import a_failure, dead, retry, sent
from support.working import a_job, logged

SECOND = timedelta(seconds=1)
MADE = Attempt(2, "sandbox", 5)
NOT_MADE = Attempt(None, "sandbox", 5)


def told(
    verdict: Verdict,
    answer: Settled | Late,
    attempt: Attempt = MADE,
    *,
    in_doubt: int = 0,
    tally: Tally | None = None,
    job: LeasedJob | None = None,
) -> list[dict[str, Any]]:
    """The lines about one end."""
    job = job or a_job(attempts=1)
    with logged() as lines:
        end = End(job.lease, verdict, (), SECOND, in_doubt=in_doubt)
        track(job, end, answer, attempt, tally or Tally())
    return lines


def events(lines: list[dict[str, Any]]) -> list[str]:
    """The event names of the lines."""
    return [line["event"] for line in lines]


@pytest.mark.parametrize(
    ("verdict", "state", "second"),
    [
        (sent(), State.SENT, []),
        (retry(SECOND), State.RETRY_SCHEDULED, ["retry.scheduled"]),
        (dead(), State.FAILED, ["message.died"]),
        (dead(DeadReason.MAX_ATTEMPTS_EXCEEDED), State.FAILED, ["message.died"]),
        (dead(DeadReason.EXPIRED), State.EXPIRED, ["message.died"]),
        (retry(SECOND), State.EXPIRED, ["message.died"]),  # by the ledger's clock
        (retry(SECOND), State.CANCELLED, []),
        (retry(SECOND), State.SENT, []),  # evidence of a late success came first
        (dead(), State.SENT, []),
    ],
)
def test_attempt_has_one_line_and_its_consequence(
    verdict: Verdict, state: State, second: list[str]
) -> None:
    """One INFO line with the state in the ledger; a retry or a death has its own line."""
    lines = told(verdict, Settled(state))

    assert events(lines) == ["attempt.finished", *second]
    assert lines[0]["level"] == "info"
    assert lines[0]["state"] == state
    assert (lines[0]["attempt"], lines[0]["durationMs"], lines[0]["provider"]) == (
        2,
        1000,
        "sandbox",
    )


@pytest.mark.parametrize(
    ("verdict", "state", "expected"),
    [
        (dead(DeadReason.VALIDATION_FAILED), State.FAILED, ["message.died"]),
        (dead(DeadReason.CRASHES_WORKER), State.FAILED, ["message.died"]),
        (dead(DeadReason.EXPIRED), State.EXPIRED, ["message.died"]),
        (retry(), State.CANCELLED, []),
    ],
)
def test_job_that_was_not_run_has_no_attempt_line(
    verdict: Verdict, state: State, expected: list[str]
) -> None:
    """There was no call; the number is that of the last attempt."""
    lines = told(verdict, Settled(state), NOT_MADE)

    assert events(lines) == expected
    assert [line["attempt"] for line in lines] == [1] * len(expected)


@pytest.mark.parametrize(
    ("verdict", "state", "last"),
    [
        (retry(charged=False), State.RETRY_SCHEDULED, "retry.scheduled"),
        (dead(DeadReason.IN_DOUBT), State.FAILED, "message.died"),
    ],
)
def test_doubt_is_logged_before_its_consequence(verdict: Verdict, state: State, last: str) -> None:
    """The attempt was made, so its line is there too."""
    lines = told(verdict, Settled(state), in_doubt=1)

    assert events(lines) == ["attempt.in_doubt", "attempt.finished", last]


def test_old_doubt_is_not_logged_when_the_message_was_sent() -> None:
    """The doubt is resolved."""
    assert events(told(sent(), Settled(State.SENT), in_doubt=1)) == ["attempt.finished"]


@pytest.mark.parametrize("state", [State.SENT_ATTEMPT, State.SENT, None])
def test_late_result_is_only_logged_as_late(state: State | None) -> None:
    """The message belongs to another worker, which logs its retry or its death."""
    lines = told(dead(), Late(state))

    assert events(lines) == ["result.late"]
    assert lines[0]["state"] == state


def test_retry_line_has_everything_needed() -> None:
    """The failure, the remaining attempts, and the time of the next."""
    [_, line] = told(retry(SECOND), Settled(State.RETRY_SCHEDULED))

    assert line["level"] == "warn"
    assert line["message"] == "Job failed, scheduling retry"
    assert {
        name: line[name]
        for name in (
            "attempt",
            "maxAttempts",
            "errorCode",
            "errorReason",
            "nextRetryDelay",
            "isRetryable",
        )
    } == {
        "attempt": 2,
        "maxAttempts": 5,
        "errorCode": "421",
        "errorReason": a_failure().reason,
        "nextRetryDelay": 1000,
        "isRetryable": True,
    }


@pytest.mark.parametrize(
    ("job", "in_doubt"),
    [(a_job(in_doubt=1), 0), (a_job(open_attempt=True), 0), (a_job(), 1)],
    ids=["a doubt before", "an attempt found open", "this attempt"],
)
def test_message_that_died_in_doubt_is_not_logged_as_undelivered(
    job: LeasedJob, in_doubt: int
) -> None:
    """For any cause: it must be looked up before a redrive, and counts as a doubt."""
    tally = Tally()
    verdict = dead(DeadReason.PERMANENT_ERROR)

    lines = told(verdict, Settled(State.FAILED), in_doubt=in_doubt, tally=tally, job=job)

    died = lines[-1]
    assert (died["event"], died["reason"]) == ("message.died", "in_doubt")
    assert "may have been delivered" in died["message"]
    assert "redrive it only if it did not arrive" in died["message"]
    assert tally.dead == {"in_doubt": 1}


def test_retry_in_doubt_is_not_logged_as_failed() -> None:
    """The result is unknown; a failure is not."""
    unknown = told(retry(SECOND), Settled(State.RETRY_SCHEDULED), in_doubt=1)[-1]
    failed = told(retry(SECOND), Settled(State.RETRY_SCHEDULED))[-1]

    assert "may have been delivered" in unknown["message"]
    assert "failed" not in unknown["message"]
    assert failed["message"] == "Job failed, scheduling retry"
