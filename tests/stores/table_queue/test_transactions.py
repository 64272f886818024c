"""Transactions of the application, and the changes that a worker applies after them."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest

from carteiro.app import Carteiro
from carteiro.errors import StoreUnavailable
from carteiro.model import EventType
from carteiro.providers.email_kind import table_queue_wait
from carteiro.stores.postgres.database import sql
from support.shared_servers import shared_postgres
from support.table_queue import (
    Application,
    an_application,
    an_office,
    apply_requests,
    events_of,
    jobs_in,
)
from support.working import TOO_LONG

pytestmark = pytest.mark.servers


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
    assert jobs_in(app) == 0


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

        await apply_requests(post)

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

        await apply_requests(post)

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

        await asyncio.gather(*(apply_requests(each) for each in (post, beside) * 3))

        told = [await events_of(post, each) for each in rows]
    assert [app.row(each)["retries"] for each in rows[:10]] == [1] * 10
    assert all(each.count(EventType.RETRY_SCHEDULED) == 1 for each in told[:10])
    assert all(each.count(EventType.CANCELLED) == 1 for each in told[10:])
    assert jobs_in(app) == 10


async def _applied_in_the_end(post: Carteiro) -> None:
    """Apply all requests, with any number of dead connections in the pool."""
    async with asyncio.timeout(TOO_LONG):
        while True:
            with suppress(StoreUnavailable):
                return await apply_requests(post)


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
            applying = asyncio.create_task(apply_requests(post))
            await asyncio.to_thread(superuser.psql, cut)
            with suppress(StoreUnavailable):
                await applying
        await _applied_in_the_end(post)

        told = [await events_of(post, each) for each in rows]
    ends = [EventType.RETRY_SCHEDULED, EventType.CANCELLED] * 30
    assert [each.count(end) for each, end in zip(told, ends, strict=True)] == [1] * 60
    assert app.value("SELECT count(*) FROM carteiro.queue_changes") == 0
    assert jobs_in(app) == 30


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
                while await events_of(post, identity) and (
                    (await events_of(post, identity))[-1] is not EventType.CANCELLED
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

        await apply_requests(post)

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
        await apply_requests(post)
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

        told = await events_of(post, identity)
        await apply_requests(post)
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
