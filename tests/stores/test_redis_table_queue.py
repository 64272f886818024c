"""Changes by SQL with a queue in Redis: the ledger applies them, and the queue follows."""

from collections.abc import AsyncIterator, Iterator

import pytest
from redis import Redis

from carteiro.app import Carteiro
from carteiro.maintenance.requests import apply_all
from carteiro.model import DeadReason, Refused, TenantId
from carteiro.providers.email_kind import table_queue_wait
from support.postgres_server import OWNERS
from support.shared_servers import (
    a_migrated_database,
    redis_databases,
    shared_redis,
)
from support.steps import claimed_alone, declare
from support.table_queue import Application, a_template, an_application

pytestmark = pytest.mark.servers

DEFAULT = TenantId("default")


@pytest.fixture
def url() -> Iterator[str]:
    """A database with only the schema."""
    with a_migrated_database(OWNERS[-1]) as made:
        yield made


@pytest.fixture
def app(url: str) -> Iterator[Application]:
    """An application with autocommit."""
    with an_application(url) as made:
        yield made


@pytest.fixture
async def post(url: str) -> AsyncIterator[Carteiro]:
    """An app on both servers."""
    number = redis_databases.pop()
    queue = f"{shared_redis().url.removesuffix('0')}{number}"
    try:
        async with Carteiro.open(url, queue=queue) as opened:
            await opened.backend.tenants.ensure([DEFAULT])
            await opened.backend.templates.define(a_template(DEFAULT))
            yield opened
    finally:
        with Redis.from_url(queue) as client:
            client.flushdb()
        redis_databases.append(number)


async def _apply(post: Carteiro) -> None:
    assert post.backend.table_queue is not None
    await apply_all(post.backend.table_queue, table_queue_wait)


async def test_queue_follows_the_requests(post: Carteiro, app: Application) -> None:
    """Each row ends as requested, and nothing is left in the queue."""
    sooner, cancelled, failed, again = (app.enqueue() for _ in range(4))
    app.update(sooner, "next_retry_at = now() + interval '1 hour'")
    app.update(failed, "max_retries = 0")
    app.update(again, "max_retries = 0")
    await _apply(post)
    assert post.backend.queue is not None
    await post.backend.queue.complete()

    app.update(sooner, "next_retry_at = now()")
    app.update(cancelled, "status = 'cancelled'")
    for each in (failed, again):
        assert app.value("SELECT mark_email_failed(%s, 'no')", each)
    await _apply(post)
    buried = (await post.backend.dead_letters.find()).rows
    app.update(again, "status = 'pending'")
    await post.work_off()

    found = [app.row(each)["status"] for each in (sooner, cancelled, failed, again)]
    assert found == ["sent", "cancelled", "failed", "sent"]
    assert {each.reason for each in buried} == {DeadReason.MAX_ATTEMPTS_EXCEEDED}
    assert sum(each.unfinished for each in await post.backend.reading.depths()) == 0


async def test_cancel_committed_before_the_attempt_wins(post: Carteiro, app: Application) -> None:
    """The ledger refuses the attempt, with any answer of the queue."""
    identity = app.enqueue()
    assert post.backend.queue is not None
    await post.backend.queue.complete()
    job = await claimed_alone(post.backend.store)
    app.update(identity, "status = 'cancelled'")

    answer = await declare(post.backend.store, job)
    await _apply(post)

    assert isinstance(answer, Refused)
    assert app.row(identity)["status"] == "cancelled"
