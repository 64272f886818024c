"""Behind PgBouncer in transaction mode: whoever says so in the settings is served, whoever does not is told to."""

import asyncio
import signal
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from carteiro.errors import StoreUnavailable
from carteiro.ports import Store
from carteiro.stores.postgres import PostgresOptions, database, migrate, open_postgres
from support.builders import ACME, a_message, tenants_named
from support.pgbouncer import PgBouncer, a_pgbouncer
from support.running import PATIENCE_S, UNLIMITED, Running, final_status_of, started, up
from support.shared_servers import shared_postgres
from support.steps import accepted, claimed

EMAIL = {"subject": "Bom dia", "text": "Olá"}
SAYS_SO = UNLIMITED | {"CARTEIRO_POSTGRES_PREPARED_STATEMENTS": "false"}


@pytest.fixture(scope="module")
def pooler() -> Iterator[PgBouncer]:
    """A pooler with few connections: everybody gets somebody else's."""
    with a_pgbouncer(shared_postgres(), pool_size=4) as running:
        yield running


@pytest.fixture
def url(pooler: PgBouncer) -> Iterator[str]:
    """An empty database with the schema, by way of the pooler."""
    with shared_postgres().a_database(migrate) as made:
        yield pooler.url(made.rpartition("/")[2])


async def _sent(client: httpx.AsyncClient, to: str) -> str:
    answer = await client.post("/v1/email/send", json=EMAIL | {"to": f"{to}@sandbox.test"})
    return str(answer.raise_for_status().json()["outboxId"])


async def _ended_well(folder: Path, *arguments: str, **settings: str) -> Running:
    async with started(folder, *arguments, **settings) as command:
        assert await asyncio.wait_for(command.process.wait(), PATIENCE_S) == 0, command.log
        return command


async def test_the_whole_path_works_behind_a_pooler(tmp_path: Path, url: str) -> None:
    """API and worker are processes of their own: what the one accepts, the other sends, though it hears nothing."""
    settings = SAYS_SO | {"CARTEIRO_STORE": url}
    async with (
        up(tmp_path, command="api", **settings) as api,
        started(tmp_path, "worker", **settings) as worker,
        api.client() as client,
    ):
        await asyncio.wait_for(worker.logged("worker.started"), PATIENCE_S)
        good, bad = await _sent(client, "ok"), await _sent(client, "reject")
        ends = [await final_status_of(client, each) for each in (good, bad)]
        listed = (await client.get("/v1/emails")).raise_for_status().json()
        await _ended_well(tmp_path, "dead", "redrive", bad, "--yes", **settings)
        again = await final_status_of(client, bad)
        codes = [await each.ended(signal.SIGTERM) for each in (api, worker)]

    assert ends == ["SENT", "FAILED"]
    assert again == "FAILED"
    assert {each["outboxId"] for each in listed["items"]} == {good, bad}
    assert codes == [0, 0]
    assert [line for line in worker.log if line["event"] == "store.failed"] == []


async def test_a_worker_that_cannot_hear_looks_by_itself(url: str) -> None:
    """LISTEN is of no use behind a pooler: the bell rings now and then, long before the time is up."""
    async with open_postgres(url, PostgresOptions(prepared_statements=False)) as backend:
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(3):
                since = backend.wake.rings()
                assert await backend.wake.wait(timedelta(minutes=5), since=since)


async def test_who_forgot_the_setting_is_told_which_one(url: str) -> None:
    """At once, before one is given statements that another prepared."""
    with pytest.raises(StoreUnavailable, match=r"set postgres\.prepared_statements = false"):
        async with open_postgres(url):
            pass


async def test_a_pooler_that_takes_any_client_is_told_by_what_it_mixes_up(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Statements that one prepared are another's, or nobody's."""
    monkeypatch.setattr(database, "_PAUSE", "application_name")  # one that every pooler takes
    async with (
        open_postgres(url, PostgresOptions(prepared_statements=False)) as right,
        open_postgres(url) as first,
        open_postgres(url) as second,
    ):
        await right.tenants.define(tenants_named([ACME]))
        with pytest.raises(StoreUnavailable, match=r"set postgres\.prepared_statements = false"):
            await _worked_on(first.store, second.store)


async def _worked_on(*stores: Store) -> None:
    """Both use the same few connections of the server, one after the other and at once."""
    for store in stores * 5:
        await asyncio.gather(*(accepted(store, a_message()) for _ in range(4)))
        await claimed(store)
