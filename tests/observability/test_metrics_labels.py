"""Labels are bounded, counters never fall, and a scrape works without its store."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

from carteiro.app import Carteiro
from carteiro.errors import StoreUnavailable
from carteiro.model import EMAIL, End, Standing, State, TenantId
from carteiro.observability.metrics import Metrics, Tally
from carteiro.observability.metrics.definitions import OTHER
from carteiro.observability.metrics.labels import LAST_ATTEMPT, MOST_CODES, TopTenants
from carteiro.ports import Backend
from support.builders import a_failure, dead, messages, retry, sent, tenants_named
from support.redis_server import a_redis
from support.scraping import Page, scraped
from support.working import a_job, an_office

TOP = 20


def settle_for(tally: Tally, tenant: str, times: int = 1, *, number: int = 1) -> None:
    """This many e-mails of this tenant are sent."""
    job = a_job(tenant=tenant)
    for _ in range(times):
        tally.settled(job, End(job.lease, sent()), State.SENT, number)


async def page_of(tally: Tally, *, top: int = TOP) -> Page:
    """A scrape of this tally."""
    async with an_office() as office:
        return await scraped(Metrics(office.backend, tally, top=top, least=1))


async def test_largest_of_a_thousand_tenants_have_names() -> None:
    """A scrape does not grow with the number of tenants, and nothing is counted twice or left out."""
    tally = Tally()
    for index in range(1000):
        settle_for(tally, f"tenant-{index:04}", times=1 + index // 10)
        job = a_job(tenant=f"tenant-{index:04}")
        tally.died(job, dead())

    page = await page_of(tally)

    processed = page.values("tenant_jobs_processed_total", "tenant")
    assert processed.keys() == {OTHER, *(f"tenant-{index:04}" for index in range(980, 1000))}
    assert sum(processed.values()) == sum(1 + index // 10 for index in range(1000))
    died = page.values("dlq_by_company_total", "tenant")
    assert (len(died), sum(died.values())) == (TOP + 1, 1000)


async def test_few_of_a_thousand_tenants_in_the_store_are_shown() -> None:
    """Gauges name the largest tenants, and the worst value of the rest, so that starvation is visible."""
    async with an_office() as office:
        backend = _with(office.backend, tenants=_Crowd())
        page = await scraped(Metrics(backend, Tally(), top=TOP, least=1))

    rounds = page.values("tenant_rounds_without_processing", "tenant")
    assert rounds.keys() == {OTHER, *(f"tenant-{index:04}" for index in range(980, 1000))}
    assert rounds[OTHER] == 1000 - 1
    assert page("tenant_current_priority", tenant=OTHER) == 1
    assert page("tenant_consecutive_batch", tenant=OTHER) == 3


def _with(backend: Backend, **ports: Any) -> Backend:
    """The backend with some ports replaced."""
    return replace(backend, **ports)


class _Crowd:
    """A thousand tenants; the least served waits longest."""

    async def standings(self, _: str) -> list[Standing]:
        """The standing of each; one has the reserved name of the others."""
        tenants = [OTHER, *(f"tenant-{index:04}" for index in range(1, 1000))]
        return [
            Standing(TenantId(tenant), EMAIL, None, 999 - index, 1 + index % 5, index, 3, 0, 0)
            for index, tenant in enumerate(tenants)
        ]


async def test_tenant_called_other_is_one_of_the_others() -> None:
    """No series appears twice, with any tenant names."""
    async with an_office() as office:
        await office.backend.tenants.define(tenants_named([OTHER]))
        await office.backend.store.accept([*messages(1), *messages(1, tenant=OTHER)])
        tally = Tally()
        settle_for(tally, OTHER)
        text = (await Metrics(office.backend, tally, top=TOP, least=1).exposition()).decode()

    series = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series))


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 50), max_size=8), max_size=12
    )
)
def test_counters_by_tenant_never_fall_and_lose_nothing(rounds: list[dict[str, int]]) -> None:
    """Names come and go with the volume; a counter only rises, or starts anew at 0."""
    top, sums = TopTenants(3), Counter[str]()
    for fresh in rounds:
        before = sums.copy()
        counted = {TenantId(tenant): count for tenant, count in fresh.items()}

        top.gather(counted)
        top.add(sums, counted)

        assert len(sums.keys() - {OTHER}) <= 3
        assert all(sums[name] >= before[name] for name in sums)
        gone = sum(before[name] for name in before.keys() - sums.keys())
        assert sums.total() == before.total() - gone + sum(fresh.values())


async def test_codes_are_bounded() -> None:
    """Codes come from providers and tasks: any text may be one."""
    tally = Tally()
    for index in range(MOST_CODES + 50):
        tally.died(a_job(), replace(dead(), failure=a_failure(code=f"E{index}")))
        tally.retried(a_job(), replace(retry(), failure=a_failure(code=f"E{index}")))

    page = await page_of(tally)

    by_code = page.values("dlq_by_error_code_total", "code")
    assert (len(by_code), by_code[OTHER]) == (MOST_CODES + 1, 50)
    assert page("errors_total", code=OTHER, category=a_failure().category) == 100


async def test_attempts_and_methods_are_bounded() -> None:
    """Neither endless retries nor made-up methods create new series."""
    tally = Tally()
    for number in range(1, 3 * LAST_ATTEMPT):
        settle_for(tally, "acme", number=number)
    for method in ("GET", "BREW", "FROB"):
        tally.answered(method, "/health/live", 200)

    page = await page_of(tally)

    attempts = page.values("retry_attempts_total", "attempt")
    assert attempts == {**{str(number): 1 for number in range(1, 10)}, "10+": 20}
    assert page("http_requests_total", method=OTHER, route="/health/live", status="200") == 2


async def test_names_are_quoted_in_the_metrics_format() -> None:
    """A tenant's name may hold special characters of the format."""
    name = 'a "quoted" \\ name, {really}="1"'
    tally = Tally()
    settle_for(tally, name)

    page = await page_of(tally)

    assert page.values("tenant_jobs_processed_total", "tenant") == {name: 1}


class _Away:
    """A port of an unreachable store; counts its callers."""

    def __init__(self) -> None:
        self.asked = 0

    async def depths(self) -> NoReturn:
        self.asked += 1
        raise StoreUnavailable("the disk is gone")


async def test_unreachable_store_does_not_fail_the_scrape() -> None:
    """The process's counters are shown, the store's gauges are left out, and one gauge says why."""
    tally = Tally()
    settle_for(tally, "acme")
    async with an_office() as office:
        backend = _with(office.backend, reading=_Away())
        page = await scraped(Metrics(backend, tally, top=TOP, least=1))

    assert page("store_up") == 0
    assert page("queue_depth", kind=EMAIL) is None
    assert page("dlq_size") is None
    assert page("tenant_jobs_processed_total", tenant="acme") == 1


async def test_consecutive_scrapes_query_the_store_once() -> None:
    """With any number of scrapers, and also while the store is down."""
    reading = _Away()
    async with an_office() as office:
        backend = _with(office.backend, reading=reading)
        metrics = Metrics(backend, Tally(), top=TOP, least=1)

        for _ in range(3):
            await metrics.exposition()

    assert reading.asked == 1


@pytest.mark.servers
async def test_memory_of_a_redis_queue_is_shown(tmp_path: Path) -> None:
    """As reported by the server, all keys included; omitted while the server is down."""
    most = 64 * 1024 * 1024
    with a_redis(settings={"maxmemory": str(most)}) as server:
        with Redis.from_url(server.url) as client:
            client.set("ballast", b"x" * 4_000_000)
        async with Carteiro.open(f"sqlite:///{tmp_path}/carteiro.db", queue=server.url) as post:
            page = await scraped(post.metrics)
            server.stop()
            without = await scraped(Metrics(post.backend, Tally(), top=TOP, least=1))

    used = page("queue_memory_used_bytes")
    assert used is not None
    assert 4_000_000 < used < most
    assert page("queue_memory_max_bytes") == most
    assert (without("store_up"), without("queue_memory_used_bytes")) == (0, None)


async def test_store_without_a_separate_queue_shows_no_queue_memory() -> None:
    async with an_office() as office:
        page = await scraped(Metrics(office.backend, Tally(), top=TOP, least=1))

    assert page("store_up") == 1
    assert page("queue_memory_used_bytes") is page("queue_memory_max_bytes") is None
