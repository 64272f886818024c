"""Retries of the table queue: a worker's, and those that the application asks for."""

from datetime import timedelta
from uuid import uuid4

import pytest

from carteiro.model import ZERO, DeadReason, EventType, MessageId, State
from carteiro.policy.retry import PRESETS
from support.builders import retry
from support.library import row_of
from support.steps import claimed, claimed_and_declared, settled
from support.table_queue import (
    Application,
    an_application,
    an_office,
    apply_requests,
    events_of,
    jobs_in,
    try_now,
)
from support.working import TOO_LONG

pytestmark = pytest.mark.servers

MINUTE = timedelta(minutes=1)


async def test_row_is_tried_at_once_and_after_1_5_and_15_minutes(
    url: str, app: Application
) -> None:
    """With any preset of the tenant: three retries, and the fourth failure is final."""
    waits, retries = [], []
    async with an_office(url) as post:
        identity = app.enqueue("full-552@sandbox.test")
        for _ in range(4):
            await try_now(post, app, identity)
            row = app.row(identity)
            retries.append(row["retries"])
            if row["next_retry_at"] is not None:
                waits.append(row["next_retry_at"] - row["last_attempt_at"])

        [letter] = (await post.backend.dead_letters.find()).rows
    assert retries == [1, 2, 3, 3]
    assert row["status"] == "failed"
    assert row["error_message"]
    assert (letter.reason, letter.failed_attempts) == (DeadReason.MAX_ATTEMPTS_EXCEEDED, 4)
    assert [round(wait / MINUTE) for wait in waits] == [1, 5, 15]


async def test_permanent_failure_schedules_no_retry(url: str, app: Application) -> None:
    async with an_office(url) as post:
        identity = app.enqueue("bounce-550@sandbox.test")
        await post.work_off()

    assert (app.row(identity)["status"], app.row(identity)["retries"]) == ("failed", 0)


async def test_limit_can_be_changed_while_it_waits(url: str, app: Application) -> None:
    """The worker reads it with the e-mail; without any retry the first failure is final."""
    async with an_office(url) as post:
        identity = app.enqueue("full-552@sandbox.test")

        assert app.update(identity, "max_retries = 0") == 1
        await post.work_off()

    assert app.row(identity)["max_retries"] == 0
    assert (app.row(identity)["status"], app.row(identity)["retries"]) == ("failed", 0)


async def test_last_error_of_a_retried_and_sent_mail_is_kept(url: str, app: Application) -> None:
    """A mail without one shows none."""
    async with an_office(url) as post:
        retried, plain = app.enqueue(), app.enqueue()
        for reason in ("first", "second"):
            assert app.value("SELECT mark_email_failed(%s, %s)", retried, reason)
        await try_now(post, app, retried)

    rows = [app.row(each) for each in (retried, plain)]
    assert [each["status"] for each in rows] == ["sent", "sent"]
    assert [(each["retries"], each["error_message"]) for each in rows] == [(2, "second"), (0, None)]


async def test_failure_reported_by_the_application_is_charged(url: str, app: Application) -> None:
    """It is delayed, and ends, like a failure of a worker."""
    waits = []
    async with an_office(url) as post:
        identity = app.enqueue()
        for count in range(1, 4):
            assert app.value("SELECT mark_email_failed(%s, 'Teste')", identity)
            requested = app.row(identity)
            await apply_requests(post)
            row = app.row(identity)
            waits.append(row["next_retry_at"] - row["last_attempt_at"])
            for shown in (requested, row):
                assert (shown["status"], shown["error_message"]) == ("pending", "Teste")
                assert shown["retries"] == count

        assert app.value("SELECT mark_email_failed(%s, NULL)", identity)
        again = app.value("SELECT mark_email_failed(%s, NULL)", identity)
        requested = app.row(identity)
        await apply_requests(post)

        [letter] = (await post.backend.dead_letters.find()).rows
        message = await row_of(post, MessageId(str(identity)))
        events = await events_of(post, identity)
    assert not again
    assert tuple(waits) == PRESETS["transactional"].table
    for row in (requested, app.row(identity)):
        assert (row["status"], row["retries"]) == ("failed", 3)
    assert (letter.failed_attempts, message.state, message.attempts) == (4, State.FAILED, 4)
    assert events[-1] is EventType.FAILED
    assert jobs_in(app) == 0


@pytest.mark.parametrize(
    ("most", "wait", "ended_by"),
    [(0, ZERO, "max_attempts_exceeded"), (3, timedelta(days=1), "expired")],
)
async def test_failure_reported_by_the_application_does_not_hide_a_doubt(
    url: str, app: Application, most: int, wait: timedelta, ended_by: str
) -> None:
    """A worker may have delivered it before."""
    async with an_office(url) as post:
        identity = app.enqueue()
        app.update(identity, f"max_retries = {most}")
        job = await claimed_and_declared(post.backend.store)
        await settled(post.backend.store, job, retry(ZERO, charged=False), in_doubt=1)
        app.rows(
            "UPDATE carteiro.entries SET expires_at = expires_at - %s WHERE in_doubt = 1",
            int(wait.total_seconds() * 1000),
        )

        assert app.value("SELECT mark_email_failed(%s, 'Teste')", identity)
        await apply_requests(post)

        [letter] = (await post.backend.dead_letters.find()).rows
        [*_, last] = await post.backend.reading.events(MessageId(str(identity)))
    assert letter.reason is DeadReason.IN_DOUBT
    assert (last.metadata["reason"], last.metadata["endedBy"]) == ("in_doubt", ended_by)


async def test_send_in_flight_cannot_be_marked_as_failed(url: str, app: Application) -> None:
    """Nor a row that does not exist."""
    async with an_office(url) as post:
        identity = app.enqueue()
        await claimed(post.backend.store)

        assert not app.value("SELECT mark_email_failed(%s, 'no')", identity)
        assert not app.value("SELECT mark_email_failed(%s, 'no')", uuid4())
        assert app.update(identity, "next_retry_at = now() + interval '1 day'") == 0

    assert app.row(identity)["retries"] == 0


async def test_due_rows_are_returned_and_workers_notified(url: str, app: Application) -> None:
    """Without scheduled and finished ones."""
    async with an_office(url):
        first, second, later, over = (app.enqueue() for _ in range(4))
        app.update(later, "next_retry_at = now() + interval '1 hour'")
        app.update(over, "status = 'cancelled'")
        app.update(second, "next_retry_at = now() - interval '1 hour'")
        with an_application(url) as listener:
            listener.listen()

            due = app.rows("SELECT * FROM process_pending_emails_for_retry(10)")

            told = list(listener.connection.notifies(timeout=TOO_LONG, stop_after=1))
    assert [each["id"] for each in due] == [first, second]
    assert due[0] == app.row(first)
    assert app.rows("SELECT * FROM process_pending_emails_for_retry(1)") == due[:1]
    assert app.rows("SELECT * FROM process_pending_emails_for_retry(-1)") == []
    assert told
