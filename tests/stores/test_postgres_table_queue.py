"""The table queue: SQL of an application, the work of a worker, and the same state for both."""

import asyncio
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from carteiro.api.application import create_api
from carteiro.app import Carteiro
from carteiro.dead_letters.redrive import revise
from carteiro.errors import StoreUnavailable
from carteiro.maintenance.requests import apply_all
from carteiro.model import (
    ZERO,
    DeadReason,
    EventType,
    MessageId,
    RedriveAnswer,
    Refused,
    RefusedWhy,
    State,
    TenantId,
    made_at,
)
from carteiro.policy.retry import PRESETS
from carteiro.providers.email_kind import table_queue_wait
from carteiro.stores.postgres import migrate
from carteiro.stores.postgres.database import sql
from support.builders import retry
from support.http import a_client_of, let_in
from support.library import row_of
from support.pages import blocks_of
from support.postgres_server import OWNERS
from support.shared_servers import shared_postgres
from support.steps import claimed, claimed_and_declared, declare, settled
from support.table_queue import (
    TEMPLATE,
    Application,
    a_template,
    an_application,
    an_office,
)
from support.working import TOO_LONG

pytestmark = pytest.mark.servers

SNIPPETS = {
    path.stem: path.read_text("utf-8")
    for path in sorted((Path(__file__).parent / "table_queue").glob("*.sql"))
}
PAGE = "docs/how-to/enqueue-from-sql.md"
DEFAULT = TenantId("default")
MINUTE = timedelta(minutes=1)


@pytest.fixture(params=OWNERS)
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database with only the schema, with any owner."""
    with shared_postgres().a_database(migrate, owner=request.param) as made:
        yield made


@pytest.fixture
def app(url: str) -> Iterator[Application]:
    """An application with autocommit."""
    with an_application(url) as made:
        yield made


async def _events(post: Carteiro, identity: UUID) -> list[EventType]:
    return [each.type for each in await post.backend.reading.events(MessageId(str(identity)))]


async def _apply(post: Carteiro) -> None:
    """Apply requests, as a worker does after a notification."""
    assert post.backend.table_queue is not None
    await apply_all(post.backend.table_queue, table_queue_wait)


async def _try_now(post: Carteiro, app: Application, identity: UUID) -> None:
    """Make a row due now."""
    app.update(identity, "next_retry_at = now()")
    await post.work_off()


# --- the seed -----------------------------------------------------------------------------------


async def test_ids_have_their_time(url: str, app: Application) -> None:
    """As those of all messages: the Date of a mail and the age of a doubt come from them."""
    async with an_office(url):
        before = time.time()
        made = [made_at(MessageId(str(app.enqueue()))) for _ in range(20)]

    assert all(at is not None and abs(at - before) < MINUTE.total_seconds() for at in made)


@pytest.mark.parametrize("snippet", SNIPPETS.values(), ids=SNIPPETS.keys())
async def test_existing_scripts_run_unchanged(url: str, app: Application, snippet: str) -> None:
    """Over rows in every status."""
    async with an_office(url) as post:
        sent, failed, cancelled, pending = (app.enqueue() for _ in range(4))
        app.update(cancelled, "status = 'cancelled'")
        app.update(pending, "next_retry_at = now() + interval '1 hour'")
        for _ in range(4):
            assert app.value("SELECT mark_email_failed(%s, 'no')", failed)
        await post.work_off()

        script = snippet.replace("QUEUE_ID_HERE", str(pending))
        answers = [app.rows(statement) for statement in script.split(";") if statement.strip()]

    assert {app.row(each)["status"] for each in (sent, failed, cancelled, pending)} == {
        "sent",
        "failed",
        "cancelled",
        "pending",
    }
    assert any(answers)


def test_columns_are_stable(app: Application) -> None:
    """In their order, with their types."""
    columns = app.rows(
        "SELECT column_name, data_type FROM information_schema.columns"
        " WHERE table_schema = 'public' AND table_name = 'email_queue' ORDER BY ordinal_position"
    )

    assert [tuple(each.values()) for each in columns] == [
        ("id", "uuid"),
        ("user_id", "uuid"),
        ("template_type", "text"),
        ("recipient_email", "text"),
        ("payload", "jsonb"),
        ("status", "text"),
        ("retries", "integer"),
        ("max_retries", "integer"),
        ("last_attempt_at", "timestamp with time zone"),
        ("next_retry_at", "timestamp with time zone"),
        ("error_message", "text"),
        ("resend_id", "text"),
        ("created_at", "timestamp with time zone"),
    ]


# --- enqueuing, and the worker ------------------------------------------------------------------


async def test_row_is_rendered_and_sent_by_a_worker(url: str, app: Application) -> None:
    """SQL cannot render: it names the template and the variables."""
    user = uuid4()
    async with an_office(url) as post:
        identity = app.enqueue("Ana@Example.COM", user=user)
        before = app.row(identity)

        await post.work_off()

        [mail] = await post.backend.inbox.list()
    after = app.row(identity)
    assert before | {"next_retry_at": None, "created_at": None} == {
        "id": identity,
        "user_id": user,
        "template_type": TEMPLATE,
        "recipient_email": "Ana@example.com",
        "payload": {"user_data": {"full_name": "Ana"}},
        "status": "pending",
        "retries": 0,
        "max_retries": 3,
        "last_attempt_at": None,
        "next_retry_at": None,
        "error_message": None,
        "resend_id": None,
        "created_at": None,
    }
    assert before["next_retry_at"] == before["created_at"]
    assert (mail.to, mail.subject) == ("Ana@example.com", "Hello Ana")
    assert (after["status"], after["retries"], after["next_retry_at"]) == ("sent", 0, None)
    assert after["resend_id"] == mail.provider_id
    assert after["last_attempt_at"] is not None


async def test_insert_equals_the_function(url: str, app: Application) -> None:
    """With an id, a limit and a time of the application, if given."""
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    async with an_office(url):
        [plain] = app.rows(
            "INSERT INTO email_queue (template_type, recipient_email) VALUES ('a', 'b@c.de') RETURNING *"
        )
        identity = uuid4()
        [own] = app.rows(
            "INSERT INTO email_queue (id, template_type, recipient_email, payload, max_retries, next_retry_at)"
            " VALUES (%s, 'a', 'b@c.de', '{}', 7, %s) RETURNING *",
            identity,
            later,
        )

    assert (plain["status"], plain["retries"], plain["max_retries"]) == ("pending", 0, 3)
    assert app.row(plain["id"])["payload"] == {}
    assert own == app.row(identity) | {"created_at": own["created_at"]}
    assert (own["max_retries"], own["next_retry_at"]) == (7, later)


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ("template_type", "NULL, 'b@c.de'"),
        ("template_type", "'a b', 'b@c.de'"),
        ("template_type", "'a', NULL"),
        ("template_type", "'a', 'nobody'"),
        ("payload, template_type", "'[1]', 'a', 'b@c.de'"),
        ("max_retries, template_type", "-1, 'a', 'b@c.de'"),
        ("max_retries, template_type", "101, 'a', 'b@c.de'"),
        ("status, template_type", "'sent', 'a', 'b@c.de'"),
        ("retries, template_type", "1, 'a', 'b@c.de'"),
        ("resend_id, template_type", "'x', 'a', 'b@c.de'"),
        ("next_retry_at, template_type", "'2300-01-01', 'a', 'b@c.de'"),
    ],
)
async def test_invalid_row_is_refused(
    url: str, app: Application, columns: str, values: str
) -> None:
    """The application gets the error at once."""
    async with an_office(url):
        with pytest.raises(psycopg.errors.CheckViolation):
            app.rows(f"INSERT INTO email_queue ({columns}, recipient_email) VALUES ({values})")

    assert app.value("SELECT count(*) FROM carteiro.messages") == 0


@pytest.mark.parametrize(
    ("column", "inserted"),
    [
        ("status", "'sent'"),
        ("retries", "1"),
        ("last_attempt_at", "now()"),
        ("error_message", "'x'"),
        ("resend_id", "'x'"),
        ("created_at", "now()"),
    ],
)
async def test_column_that_cannot_be_inserted_is_named(
    app: Application, column: str, inserted: str
) -> None:
    """Also where another could be."""
    with pytest.raises(psycopg.errors.CheckViolation, match=f"email_queue: {column} cannot be"):
        app.rows(
            f"INSERT INTO email_queue (template_type, recipient_email, max_retries, {column})"
            f" VALUES ('a', 'b@c.de', 5, {inserted})"
        )


async def test_id_is_unique(url: str, app: Application) -> None:
    """A repeated one is an error."""
    sql = "INSERT INTO email_queue (id, template_type, recipient_email) VALUES (%s, 'a', 'b@c.de')"
    async with an_office(url):
        identity = app.enqueue()

        with pytest.raises(psycopg.errors.UniqueViolation):
            app.rows(sql, identity)


@pytest.mark.parametrize("cause", ["no such template", "a word is missing"])
async def test_template_without_a_mail_is_a_failure(url: str, app: Application, cause: str) -> None:
    """The worker finds it, and it is permanent."""
    async with an_office(url) as post:
        if cause == "a word is missing":
            await post.backend.templates.define(a_template(DEFAULT, text="{{ missing }}"))
        else:
            await post.backend.templates.delete(DEFAULT, TEMPLATE)
        identity = app.enqueue()

        await post.work_off()

        message = await row_of(post, MessageId(str(identity)))
    assert app.row(identity)["status"] == "failed"
    assert "template" in app.row(identity)["error_message"]
    assert message.failure is not None
    assert message.failure.code == "INVALID_TEMPLATE"


async def test_default_from_of_the_tenant_is_used(url: str, app: Application) -> None:
    """As for any other e-mail without one."""
    async with an_office(url) as post:
        app.rows("UPDATE carteiro.tenants SET default_from = 'us@example.com'")

        app.enqueue()
        await post.work_off()

        [mail] = await post.backend.inbox.list()
    assert '"from":"us@example.com"' in mail.content.replace(" ", "")


# --- retries ------------------------------------------------------------------------------------


async def test_row_is_tried_at_once_and_after_1_5_and_15_minutes(
    url: str, app: Application
) -> None:
    """With any preset of the tenant: three retries, and the fourth failure is final."""
    waits, retries = [], []
    async with an_office(url) as post:
        identity = app.enqueue("full-552@sandbox.test")
        for _ in range(4):
            await _try_now(post, app, identity)
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
        await _try_now(post, app, retried)

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
            await _apply(post)
            row = app.row(identity)
            waits.append(row["next_retry_at"] - row["last_attempt_at"])
            for shown in (requested, row):
                assert (shown["status"], shown["error_message"]) == ("pending", "Teste")
                assert shown["retries"] == count

        assert app.value("SELECT mark_email_failed(%s, NULL)", identity)
        again = app.value("SELECT mark_email_failed(%s, NULL)", identity)
        requested = app.row(identity)
        await _apply(post)

        [letter] = (await post.backend.dead_letters.find()).rows
        message = await row_of(post, MessageId(str(identity)))
        events = await _events(post, identity)
    assert not again
    assert tuple(waits) == PRESETS["transactional"].table
    for row in (requested, app.row(identity)):
        assert (row["status"], row["retries"]) == ("failed", 3)
    assert (letter.failed_attempts, message.state, message.attempts) == (4, State.FAILED, 4)
    assert events[-1] is EventType.FAILED
    assert _jobs(app) == 0


def _jobs(app: Application) -> int:
    """The number of jobs in the ring, once its notes are read."""
    jobs = app.value("SELECT coalesce(sum(jobs), 0)::integer FROM carteiro.seats_and_notes")
    held = app.value(
        "SELECT (SELECT count(*) FROM carteiro.ready) + (SELECT count(*) FROM carteiro.delayed)"
        " + (SELECT coalesce(sum(cardinality(numbers)), 0) FROM carteiro.leased)"
    )
    assert jobs == held
    return int(held)


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
        await _apply(post)

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


# --- changing -----------------------------------------------------------------------------------


async def test_waiting_row_is_cancelled(url: str, app: Application) -> None:
    """As by the API: the same state, the same event, no job left."""
    async with an_office(url) as post:
        ready, delayed = app.enqueue(), app.enqueue()
        app.update(delayed, "next_retry_at = now() + interval '1 hour'")

        cancelled = app.connection.execute("UPDATE email_queue SET status = 'cancelled'")
        requested = [app.row(each)["status"] for each in (ready, delayed)]
        await _apply(post)

        assert requested == ["cancelled", "cancelled"]
        for identity in (ready, delayed):
            assert app.row(identity)["status"] == "cancelled"
            assert await _events(post, identity) == [EventType.ENQUEUED, EventType.CANCELLED]
        assert cancelled.rowcount == 2
        assert await post.work_off() == {}
    assert _jobs(app) == 0


async def test_just_claimed_row_is_cancelled_too(url: str, app: Application) -> None:
    """Its worker has declared nothing yet, and its declare will be refused."""
    async with an_office(url) as post:
        identity = app.enqueue()
        [job] = await claimed(post.backend.store)

        app.update(identity, "status = 'cancelled'")

        assert app.row(identity)["status"] == "cancelled"
        await post.backend.store.release([job.lease])
        assert await post.work_off() == {}
    assert _jobs(app) == 0


async def test_cancel_committed_before_the_attempt_wins(url: str, app: Application) -> None:
    """It is not applied yet, and the worker with the claim does not know it."""
    async with an_office(url) as post:
        store = post.backend.store
        identity = app.enqueue()
        [job] = await claimed(store)
        app.update(identity, "status = 'cancelled'")

        first = await declare(store, job)
        await _apply(post)
        second = await declare(store, job)

    assert isinstance(first, Refused)
    assert first.why is RefusedWhy.NOT_DUE
    assert first.wait > ZERO
    assert isinstance(second, Refused)
    assert app.row(identity)["status"] == "cancelled"
    assert _jobs(app) == 0


async def test_row_being_sent_is_not_sent_again(url: str, app: Application) -> None:
    """It stays pending until its worker has a result."""
    async with an_office(url) as post:
        identity = app.enqueue()
        await claimed_and_declared(post.backend.store)

        app.update(identity, "status = 'cancelled'")
        requested = app.row(identity)["status"]
        await _apply(post)

        message = await row_of(post, MessageId(str(identity)))
        events = await _events(post, identity)
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
    assert _jobs(app) == 0


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
        await _apply(post)
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


# --- transactions of the application ------------------------------------------------------------


async def test_rollback_undoes_enqueued_and_changed_rows(url: str, app: Application) -> None:
    async with an_office(url) as post:
        kept = app.enqueue()
        with an_application(url, autocommit=False) as other:
            other.enqueue()
            other.update(kept, "status = 'cancelled'")
            other.connection.rollback()

        await post.work_off()

    [row] = app.rows("SELECT id, status FROM email_queue")
    assert row == {"id": kept, "status": "sent"}


async def test_workers_are_notified_by_the_commit_and_not_before(
    url: str, app: Application
) -> None:
    """An idle worker starts at once."""
    async with an_office(url):
        with (
            an_application(url) as listener,
            an_application(url, autocommit=False) as other,
        ):
            listener.listen()
            other.enqueue()
            app.rows("SELECT pg_notify(channel, 'mark') FROM carteiro.wake_channel")
            [before] = listener.connection.notifies(timeout=TOO_LONG, stop_after=1)

            other.connection.commit()

            [after] = listener.connection.notifies(timeout=TOO_LONG, stop_after=1)
    assert before.payload == "mark"
    assert after.payload == "kind email:send"


async def test_open_transaction_blocks_no_other(url: str, app: Application) -> None:
    """Neither with its inserts nor with its changes; at its commit both are done."""
    async with an_office(url) as post:
        to_cancel, to_delay, to_limit = (app.enqueue() for _ in range(3))
        with an_application(url, autocommit=False) as other:
            added = other.enqueue()
            other.update(to_cancel, "status = 'cancelled'")
            other.update(to_delay, "next_retry_at = now() + interval '1 day'")
            other.update(to_limit, "max_retries = 9")
            other.value("SELECT mark_email_failed(%s, 'no')", to_limit)

            async with asyncio.timeout(TOO_LONG):
                await post.work_off()
                await post.send(tenant="default", to="b@example.com", subject="a", text="b")
                await post.work_off()
                await post.backend.upkeep.expire(limit=100)
            meanwhile = [app.row(each)["status"] for each in (to_cancel, to_delay, to_limit)]
            other.connection.commit()

        await post.work_off()
    assert meanwhile == ["sent", "sent", "sent"]  # the worker had no other information yet
    assert app.row(added)["status"] == "sent"
    assert app.row(to_limit)["max_retries"] == 9
    assert _jobs(app) == 0


async def test_changes_of_one_transaction_are_applied_in_their_order(
    url: str, app: Application
) -> None:
    """It sees them itself at once, others from its commit on, and so it stays when they are applied."""
    shown = ("status", "retries", "max_retries", "error_message")
    async with an_office(url) as post:
        with an_application(url, autocommit=False) as other:
            identity = other.enqueue()
            other.value("SELECT mark_email_failed(%s, 'one')", identity)
            other.value("SELECT mark_email_failed(%s, 'two')", identity)
            other.update(identity, "max_retries = 5")
            inside = other.row(identity)
            other.connection.commit()
        outside = app.row(identity)

        await _apply(post)

    for row in (inside, outside, app.row(identity)):
        assert [row[each] for each in shown] == ["pending", 2, 5, "two"]
    assert app.value("SELECT count(*) FROM carteiro.queue_changes") == 0


async def test_late_change_is_dropped(url: str, app: Application) -> None:
    """The e-mail was sent before the transaction committed: so it is shown, and so it stays."""
    async with an_office(url) as post:
        identity = app.enqueue()
        with an_application(url, autocommit=False) as other:
            other.update(identity, "status = 'cancelled'")
            await post.work_off()
            other.connection.commit()
        committed = app.row(identity)["status"]

        await _apply(post)

    assert committed == "sent"
    assert app.row(identity)["status"] == "sent"
    assert app.value("SELECT count(*) FROM carteiro.queue_changes") == 0


async def test_two_processes_apply_a_change_once(url: str, app: Application) -> None:
    """The second one finds it applied, or changed meanwhile, and stores nothing."""
    async with an_office(url) as post, an_office(url) as beside:
        rows = [app.enqueue() for _ in range(20)]
        for each in rows[:10]:
            assert app.value("SELECT mark_email_failed(%s, 'no')", each)
        for each in rows[10:]:
            app.update(each, "status = 'cancelled'")

        await asyncio.gather(*(_apply(each) for each in (post, beside) * 3))

        told = [await _events(post, each) for each in rows]
    assert [app.row(each)["retries"] for each in rows[:10]] == [1] * 10
    assert all(each.count(EventType.RETRY_SCHEDULED) == 1 for each in told[:10])
    assert all(each.count(EventType.CANCELLED) == 1 for each in told[10:])
    assert _jobs(app) == 10


async def _applied_in_the_end(post: Carteiro) -> None:
    """Apply all requests, with any number of dead connections in the pool."""
    async with asyncio.timeout(TOO_LONG):
        while True:
            with suppress(StoreUnavailable):
                return await _apply(post)


async def test_process_with_lost_connections_loses_no_change(url: str, app: Application) -> None:
    """Each change is applied once in the end."""
    superuser, database = shared_postgres(), url.rpartition("/")[2]
    ours = f"datname = '{database}' AND pid <> {app.value('SELECT pg_backend_pid()')}"
    cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}"
    async with an_office(url) as post:
        rows = [app.enqueue() for _ in range(60)]
        for place, each in enumerate(rows):
            if place % 2:
                app.update(each, "status = 'cancelled'")
            else:
                assert app.value("SELECT mark_email_failed(%s, 'no')", each)
        for _ in range(5):
            applying = asyncio.create_task(_apply(post))
            await asyncio.to_thread(superuser.psql, cut)
            with suppress(StoreUnavailable):
                await applying
        await _applied_in_the_end(post)

        told = [await _events(post, each) for each in rows]
    ends = [EventType.RETRY_SCHEDULED, EventType.CANCELLED] * 30
    assert [each.count(end) for each, end in zip(told, ends, strict=True)] == [1] * 60
    assert app.value("SELECT count(*) FROM carteiro.queue_changes") == 0
    assert _jobs(app) == 30


async def test_running_worker_applies_requests(url: str, app: Application) -> None:
    """On the notification of the commit: without a call."""
    async with an_office(url) as post:
        identity = app.enqueue("full-552@sandbox.test")
        app.update(identity, "next_retry_at = now() + interval '1 day'")
        working = asyncio.create_task(post.run_worker())
        try:
            async with asyncio.timeout(TOO_LONG):
                app.update(identity, "next_retry_at = now()")
                while app.row(identity)["retries"] == 0:
                    await asyncio.sleep(0.02)
                app.update(identity, "status = 'cancelled'")
                while await _events(post, identity) and (
                    (await _events(post, identity))[-1] is not EventType.CANCELLED
                ):
                    await asyncio.sleep(0.02)
        finally:
            post.stop()
            await working

    assert app.row(identity)["status"] == "cancelled"
    assert app.value("SELECT count(*) FROM carteiro.queue_changes") == 0


async def test_reason_is_cut_to_its_limit(url: str, app: Application) -> None:
    """Before it is recorded: workers read it."""
    async with an_office(url) as post:
        identity = app.enqueue()
        assert app.value("SELECT mark_email_failed(%s, repeat('x', 100000))", identity)
        app.update(identity, "max_retries = 5")
        [recorded] = app.rows(
            "SELECT max(length(reason)) AS reason, max(length(error_message)) AS shown FROM carteiro.queue_changes"
        )
        before = app.row(identity)["error_message"]

        await _apply(post)

    assert recorded == {"reason": 500, "shown": 500}
    assert before == app.row(identity)["error_message"] == "x" * 500


async def test_pending_changes_of_a_row_are_bounded(url: str, app: Application) -> None:
    """One more is refused, until the earlier ones are applied; other rows are not affected."""
    async with an_office(url) as post:
        identity, another = app.enqueue(), app.enqueue()
        for n in range(20):
            app.update(identity, f"max_retries = {n + 10}")
        with pytest.raises(psycopg.errors.ProgramLimitExceeded, match="20 changes") as refused:
            app.update(identity, "max_retries = 50")
        app.update(another, "max_retries = 50")
        await _apply(post)
        applied = app.row(identity)["max_retries"]

        app.update(identity, "max_retries = 50")

    assert "wait" in (refused.value.diag.message_hint or "")
    assert applied == 29
    assert app.row(identity)["max_retries"] == app.row(another)["max_retries"] == 50


async def test_tenants_take_turns_when_changes_are_applied(url: str, app: Application) -> None:
    """Each gets its share of a round, with any number of requests of another."""
    async with an_office(url, "acme", "brasa") as post:
        app.rows("SET carteiro.tenant = 'acme'")
        for each in [app.enqueue() for _ in range(4)]:
            for n in range(10):
                app.update(each, f"max_retries = {n + 10}")
        app.rows("SET carteiro.tenant = 'brasa'")
        identity = app.enqueue()
        app.update(identity, "status = 'cancelled'")
        assert post.backend.table_queue is not None

        await post.backend.table_queue.apply(table_queue_wait, limit=10)

        told = await _events(post, identity)
        await _apply(post)
    assert told[-1] is EventType.CANCELLED
    app.rows("RESET carteiro.tenant")
    assert app.value("SELECT count(*) FROM carteiro.queue_changes") == 0


@pytest.mark.parametrize("analyzed", [False, True])
def test_requests_of_one_tenant_are_not_read_for_another(app: Application, analyzed: bool) -> None:
    """Of 100,000, one round reads a round's number."""
    app.rows(
        """INSERT INTO carteiro.queue_changes
            (message_no, tenant, what, role, status, retries, max_retries, is_revival)
        SELECT n, CASE n WHEN 100000 THEN 'brasa' ELSE 'acme' END, 'cancel', 'r', 'pending', 0, 3, false
        FROM generate_series(1, 100000) AS n"""
    )
    if analyzed:
        app.rows("ANALYZE carteiro.queue_changes")

    app.rows(f"PREPARE find (bigint) AS {sql('requests_find')}")
    [plan] = app.value("EXPLAIN (ANALYZE, FORMAT JSON) EXECUTE find (500)")

    read = [
        (each["Actual Rows"] + each.get("Rows Removed by Filter", 0)) * each["Actual Loops"]
        for each in _nodes(plan["Plan"])
        if each.get("Relation Name") == "queue_changes"
    ]
    assert read
    assert sum(read) < 1000


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for each in plan.get("Plans", ()):
        yield from _nodes(each)


# --- the page about it --------------------------------------------------------------------------


async def test_every_statement_of_the_page_runs(url: str, app: Application) -> None:
    """In the order of the page."""
    statements = [block.code for block in blocks_of(PAGE) if block.language == "postgresql"]
    role = f"shop_{uuid4().hex}"
    async with an_office(url):
        try:
            for each in statements:
                app.rows(re.sub(r"\bshop\b", role, each))
            put_in = app.value("SELECT count(*) FROM email_queue")
        finally:
            superuser = shared_postgres()
            superuser.psql(f"DROP OWNED BY {role}; DROP ROLE {role}", url.rpartition("/")[2])

    assert put_in == 3


def test_program_of_the_page_runs(url: str, app: Application) -> None:
    """Order and e-mail are there together."""
    [program] = [block.code for block in blocks_of(PAGE) if block.language == "python3"]

    exec(compile(program.replace("postgresql://localhost/shop", url), PAGE, "exec"), {})

    assert app.rows("SELECT id FROM orders") == [{"id": 17}]
    assert app.value("SELECT subject FROM carteiro.messages") == "Order 17"


# --- with everything else -----------------------------------------------------------------------


async def test_tenant_is_the_chosen_one(url: str, app: Application) -> None:
    """For Carteiro's own role; it sees all while it has chosen none."""
    async with an_office(url, "default", "acme"):
        app.enqueue()
        app.rows("SET carteiro.tenant = 'acme'")
        app.enqueue()
        of_acme = app.value("SELECT count(*) FROM email_queue")
        app.rows("RESET carteiro.tenant")

        assert of_acme == 1
        assert app.value("SELECT count(*) FROM email_queue") == 2
        tenants = app.rows("SELECT tenant FROM carteiro.messages ORDER BY no")
        assert [each["tenant"] for each in tenants] == ["default", "acme"]


async def test_tenant_that_cannot_send_is_reported(url: str, app: Application) -> None:
    """A missing one, and a disabled one."""
    async with an_office(url):
        app.rows("SET carteiro.tenant = 'nobody'")
        with pytest.raises(psycopg.errors.ForeignKeyViolation, match="nobody"):
            app.enqueue()
        app.rows("RESET carteiro.tenant")
        app.rows("UPDATE carteiro.tenants SET disabled = true")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="disabled"):
            app.enqueue()


async def test_deleted_message_is_gone_here_too(url: str, app: Application) -> None:
    """With its message goes its row; with its content go the variables."""
    async with an_office(url) as post:
        identity = app.enqueue()
        await post.work_off()
        app.rows("UPDATE carteiro.messages SET content = NULL")
        without_words = app.row(identity)

        erased = await post.backend.tenants.erase(DEFAULT)

    assert erased is not None
    assert not erased.has_more
    assert (without_words["payload"], without_words["status"]) == (None, "sent")
    assert app.value("SELECT count(*) FROM carteiro.queue_rows") == 0


async def test_dead_row_can_be_edited(url: str, app: Application) -> None:
    """Its template is rendered then, and its limit is still its own."""
    async with an_office(url) as post:
        identity = MessageId(str(app.enqueue("nobody@sandbox")))
        app.update(UUID(identity), "max_retries = 2")
        await post.work_off()
        dead = await row_of(post, identity)

        changes = {
            "to": "ana@example.com",
            "template": {"variables": {"user_data": {"full_name": "Bea"}}},
        }
        revision = await revise(dead, changes, backend=post.backend)
        [answer] = await post.backend.dead_letters.redrive([identity], by="test", revision=revision)
        await post.work_off()

        [mail] = await post.backend.inbox.list()
    assert dead.failure is not None
    assert dead.failure.code == "INVALID_EMAIL"
    assert answer is RedriveAnswer.REDRIVEN
    assert mail.subject == "Hello Bea"
    row = app.row(UUID(identity))
    assert (row["status"], row["recipient_email"], row["max_retries"]) == (
        "sent",
        "ana@example.com",
        2,
    )


async def test_email_queue_of_the_application_is_not_changed() -> None:
    """Carteiro works alongside; ours appears once the name is free."""
    with shared_postgres().a_database() as url, an_application(url) as app:
        app.rows("CREATE TABLE public.email_queue (id uuid)")
        await migrate(url)
        app.rows("SELECT * FROM carteiro.email_queue")

        app.rows("DROP TABLE public.email_queue")
        app.rows("SELECT carteiro.show_table_queue()")
        async with an_office(url):
            identity = app.enqueue()

        assert app.row(identity)["status"] == "pending"


async def test_http_message_is_a_row_too(url: str, app: Application) -> None:
    """With its user, its variables and its limit."""
    user = uuid4()
    asked: dict[str, Any] = {
        "p_user_id": str(user),
        "p_template_type": TEMPLATE,
        "p_recipient_email": "ana@example.com",
        "p_payload": {"user_data": {"full_name": "Ana"}},
    }
    async with an_office(url) as post:
        await let_in(post, DEFAULT, "ck_default")
        async with a_client_of(create_api(post), key="ck_default") as client:
            response = await client.post("/rest/v1/rpc/enqueue_email", json=asked)
            row = app.row(UUID(response.json()))
            await post.work_off()

    assert (row["user_id"], row["payload"], row["max_retries"]) == (user, asked["p_payload"], 3)
    assert app.row(row["id"])["status"] == "sent"
