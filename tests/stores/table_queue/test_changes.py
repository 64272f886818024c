"""Changes of rows by SQL: those that are possible, and refusals of the others."""

import psycopg
import pytest

from carteiro.model import ZERO, EventType, MessageId, Refused, RefusedWhy
from support.library import row_of
from support.steps import claimed, claimed_and_declared, declare
from support.table_queue import (
    Application,
    an_application,
    an_office,
    apply_requests,
    events_of,
    jobs_in,
)

pytestmark = pytest.mark.servers


async def test_waiting_row_is_cancelled(url: str, app: Application) -> None:
    """As by the API: the same state, the same event, no job left."""
    async with an_office(url) as post:
        ready, delayed = app.enqueue(), app.enqueue()
        app.update(delayed, "next_retry_at = now() + interval '1 hour'")

        cancelled = app.connection.execute("UPDATE email_queue SET status = 'cancelled'")
        requested = [app.row(each)["status"] for each in (ready, delayed)]
        await apply_requests(post)

        assert requested == ["cancelled", "cancelled"]
        for identity in (ready, delayed):
            assert app.row(identity)["status"] == "cancelled"
            assert await events_of(post, identity) == [EventType.ENQUEUED, EventType.CANCELLED]
        assert cancelled.rowcount == 2
        assert await post.work_off() == {}
    assert jobs_in(app) == 0


async def test_just_claimed_row_is_cancelled_too(url: str, app: Application) -> None:
    """Its worker has declared nothing yet, and its declare will be refused."""
    async with an_office(url) as post:
        identity = app.enqueue()
        [job] = await claimed(post.backend.store)

        app.update(identity, "status = 'cancelled'")

        assert app.row(identity)["status"] == "cancelled"
        await post.backend.store.release([job.lease])
        assert await post.work_off() == {}
    assert jobs_in(app) == 0


async def test_cancel_committed_before_the_attempt_wins(url: str, app: Application) -> None:
    """It is not applied yet, and the worker with the claim does not know it."""
    async with an_office(url) as post:
        store = post.backend.store
        identity = app.enqueue()
        [job] = await claimed(store)
        app.update(identity, "status = 'cancelled'")

        first = await declare(store, job)
        await apply_requests(post)
        second = await declare(store, job)

    assert isinstance(first, Refused)
    assert first.why is RefusedWhy.NOT_DUE
    assert first.wait > ZERO
    assert isinstance(second, Refused)
    assert app.row(identity)["status"] == "cancelled"
    assert jobs_in(app) == 0


async def test_row_being_sent_is_not_sent_again(url: str, app: Application) -> None:
    """It stays pending until its worker has a result."""
    async with an_office(url) as post:
        identity = app.enqueue()
        await claimed_and_declared(post.backend.store)

        app.update(identity, "status = 'cancelled'")
        requested = app.row(identity)["status"]
        await apply_requests(post)

        message = await row_of(post, MessageId(str(identity)))
        events = await events_of(post, identity)
    assert (requested, app.row(identity)["status"]) == ("pending", "pending")
    assert message.cancel_requested_at is not None
    assert events[-1] is EventType.CANCEL_REQUESTED


async def test_failed_row_is_redriven(url: str, app: Application) -> None:
    """Once it is sent it is not a dead letter any more."""
    async with an_office(url) as post:
        identity = app.enqueue()
        app.update(identity, "max_retries = 0")
        app.value("SELECT mark_email_failed(%s, 'no')", identity)

        assert app.update(identity, "status = 'pending'") == 1
        waiting = app.row(identity)
        await post.work_off()

        letters = await post.backend.dead_letters.find()
    assert (waiting["status"], waiting["retries"]) == ("pending", 0)
    assert app.row(identity)["status"] == "sent"
    assert letters.rows == []
    assert jobs_in(app) == 0


@pytest.mark.parametrize(
    "assignment",
    [
        "recipient_email = 'x@y.zz'",
        "payload = '{}'",
        "retries = 0",
        "user_id = gen_random_uuid()",
        "id = gen_random_uuid()",
        "resend_id = 'x'",
        "status = 'sent'",
        "status = 'failed'",
        "status = 'nonsense'",
        "status = NULL",
        "max_retries = -1",
        "max_retries = NULL",
        "next_retry_at = NULL",
        "next_retry_at = '2300-01-01'",
    ],
)
async def test_other_changes_are_refused(url: str, app: Application, assignment: str) -> None:
    """With an error."""
    async with an_office(url) as post:
        identity = app.enqueue()
        app.value("SELECT mark_email_failed(%s, 'no')", identity)
        await apply_requests(post)
        before = app.row(identity)

        with pytest.raises(psycopg.errors.CheckViolation):
            app.update(identity, assignment)

    assert app.row(identity) == before


@pytest.mark.parametrize("status", ["sent", "cancelled"])
async def test_sent_row_is_not_changed(url: str, app: Application, status: str) -> None:
    """It is neither sent again nor undone."""
    async with an_office(url) as post:
        identity = app.enqueue()
        if status == "cancelled":
            app.update(identity, "status = 'cancelled'")
        await post.work_off()

        for other in {"pending", "cancelled"} - {status}:
            with pytest.raises(psycopg.errors.CheckViolation, match=status):
                app.update(identity, f"status = '{other}'")

    assert app.row(identity)["status"] == status


@pytest.mark.parametrize(
    "statement", ["DELETE FROM email_queue", "DELETE FROM email_queue RETURNING id"]
)
async def test_rows_cannot_be_deleted(url: str, app: Application, statement: str) -> None:
    """They are the record; the error says what to do instead."""
    async with an_office(url):
        identity = app.enqueue()

        with pytest.raises(psycopg.errors.CheckViolation, match="cannot be deleted") as refused:
            app.rows(statement)

    assert "status = 'cancelled'" in (refused.value.diag.message_hint or "")
    assert app.row(identity)["status"] == "pending"


async def test_rows_cannot_be_locked(url: str, app: Application) -> None:
    """The old manual way is refused: a lock on the ledger would stop all mail.

    Policies do not bind a superuser: an application of its database gets the error of Postgres.
    """
    is_superuser = app.value("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
    says = "outer join" if is_superuser else "email_queue: rows cannot be locked"
    async with an_office(url):
        app.enqueue()

        for strength in ("UPDATE", "KEY SHARE"):
            with pytest.raises(psycopg.errors.FeatureNotSupported, match=says):
                app.rows(f"SELECT * FROM email_queue FOR {strength} SKIP LOCKED")
        assert "row_locks" not in str(app.rows("EXPLAIN SELECT * FROM email_queue"))


@pytest.mark.parametrize(
    ("status", "assignment", "says", "hint"),
    [
        ("cancelled", "next_retry_at = now()", "is cancelled: next_retry_at", "WHERE status"),
        ("pending", "next_retry_at = NULL", "next_retry_at must be a time", "now()"),
    ],
)
async def test_invalid_time_is_refused_in_a_sentence(
    url: str, app: Application, status: str, assignment: str, says: str, hint: str
) -> None:
    """Which row, why, and what to write instead."""
    async with an_office(url):
        identity = app.enqueue()
        if status == "cancelled":
            app.update(identity, "status = 'cancelled'")

        with pytest.raises(psycopg.errors.CheckViolation, match=says) as refused:
            app.update(identity, assignment)

    assert hint in (refused.value.diag.message_hint or "")


async def test_transaction_of_any_isolation_can_enqueue_and_change(
    url: str, app: Application
) -> None:
    """Its requests are applied to the state of the row by then."""
    async with an_office(url) as post:
        identity = app.enqueue()
        with an_application(url, autocommit=False) as frozen:
            frozen.connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
            other = frozen.enqueue()
            frozen.update(identity, "status = 'cancelled'")
            frozen.connection.commit()

        await post.work_off()

    assert app.row(identity)["status"] == "cancelled"
    assert app.row(other)["status"] == "sent"
