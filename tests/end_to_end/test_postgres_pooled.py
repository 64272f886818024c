"""Behind PgBouncer in transaction mode: it works with the setting, and is refused without it."""

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
    """A pooler with few connections: every client gets one used by others."""
    with a_pgbouncer(shared_postgres(), pool_size=4) as running:
        yield running


@pytest.fixture
def url(pooler: PgBouncer) -> Iterator[str]:
    """An empty database with the schema, through the pooler."""
    with shared_postgres().a_database(migrate) as made:
        yield pooler.url(made.rpartition("/")[2])


async def _sent(client: httpx.AsyncClient, to: str) -> str:
    answer = await client.post("/v1/email/send", json=EMAIL | {"to": f"{to}@sandbox.test"})
    return str(answer.raise_for_status().json()["outboxId"])


async def _ended_well(folder: Path, *arguments: str, **settings: str) -> Running:
    async with started(folder, *arguments, **settings) as command:
        assert await asyncio.wait_for(command.process.wait(), PATIENCE_S) == 0, command.log
        return command


async def test_whole_path_works_behind_a_pooler(tmp_path: Path, url: str) -> None:
    """API and worker are separate processes: a message of the one is sent by the other, without notifications."""
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


async def test_worker_without_notifications_polls(url: str) -> None:
    """LISTEN does not work behind a pooler: the bell rings regularly, long before the time is up."""
    async with open_postgres(url, PostgresOptions(prepared_statements=False)) as backend:
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(3):
                since = backend.wake.rings()
                assert await backend.wake.wait(timedelta(minutes=5), since=since)


async def test_missing_setting_is_reported(url: str) -> None:
    """At once, before statements of different clients are mixed up."""
    with pytest.raises(StoreUnavailable, match=r"set postgres\.prepared_statements = false"):
        async with open_postgres(url):
            pass


async def test_pooler_that_accepts_any_client_is_detected_by_its_mix_up(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prepared statements of one client belong to another, or are missing."""
    monkeypatch.setattr(database, "_PAUSE", "application_name")  # one that every pooler accepts
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
