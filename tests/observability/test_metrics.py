"""Metrics: their names, and their values after a run through the pipeline."""

from datetime import UTC, datetime, timedelta
from typing import Any

from carteiro.app import Carteiro
from carteiro.maintenance.expire import expire_once
from carteiro.model import (
    CancelAnswer,
    ClaimId,
    DeadReason,
    End,
    EventType,
    Late,
    Lease,
    MessageId,
    NoteAnswer,
    State,
    TenantId,
)
from carteiro.observability.metrics import Metrics, Tally, measured_dead_letters, measured_store
from carteiro.observability.metrics.definitions import METRICS
from support.builders import ACME, BRASA, sent
from support.burying import buried
from support.library import work
from support.redriving import started
from support.scraping import scraped
from support.working import Office, Through, an_office

TOP = 20
LEAST = 1

NAMES = {
    "carteiro_retry_attempts_total": ("counter", {"attempt"}),
    "carteiro_attempts_failed_total": ("counter", set()),
    "carteiro_retry_backoff_delay_seconds": ("histogram", set()),
    "carteiro_retry_success_rate": ("gauge", {"attempt"}),
    "carteiro_attempt_interval_seconds": ("histogram", set()),
    "carteiro_errors_total": ("counter", {"code", "category"}),
    "carteiro_dlq_entries_total": ("counter", {"reason"}),
    "carteiro_dlq_size": ("gauge", set()),
    "carteiro_dlq_age_seconds": ("histogram", set()),
    "carteiro_dlq_oldest_age_seconds": ("gauge", set()),
    "carteiro_dlq_by_error_code_total": ("counter", {"code"}),
    "carteiro_dlq_by_company_total": ("counter", {"tenant"}),
    "carteiro_dlq_size_by_company": ("gauge", {"tenant"}),
    "carteiro_dlq_size_by_company_max": ("gauge", set()),
    "carteiro_tenant_jobs_processed_total": ("counter", {"tenant"}),
    "carteiro_tenant_current_priority": ("gauge", {"tenant"}),
    "carteiro_tenant_consecutive_batch": ("gauge", {"tenant"}),
    "carteiro_tenant_rounds_without_processing": ("gauge", {"tenant"}),
    "carteiro_pipeline_state_transitions_total": ("counter", {"state"}),
    "carteiro_pipeline_validation_failures_total": ("counter", {"validation"}),
    "carteiro_pipeline_processing_duration_seconds": ("histogram", {"state"}),
    "carteiro_pipeline_retry_count_total": ("counter", {"category"}),
    "carteiro_pipeline_final_state_total": ("counter", {"state"}),
    "carteiro_queue_depth": ("gauge", {"kind"}),
    "carteiro_queue_oldest_age_seconds": ("gauge", {"kind"}),
    "carteiro_queue_memory_used_bytes": ("gauge", set()),
    "carteiro_queue_memory_max_bytes": ("gauge", set()),
    "carteiro_queue_rejected_connections_total": ("counter", set()),
    "carteiro_queue_out_of_memory_errors_total": ("counter", set()),
    "carteiro_table_queue_pending": ("gauge", set()),
    "carteiro_delivery_p50_seconds": ("gauge", set()),
    "carteiro_delivery_p95_seconds": ("gauge", set()),
    "carteiro_template_failure_share": ("gauge", {"tenant", "template"}),
    "carteiro_in_flight": ("gauge", {"kind"}),
    "carteiro_scheduler_heartbeat_age_seconds": ("gauge", set()),
    "carteiro_leases_lost_total": ("counter", {"operation"}),
    "carteiro_in_doubt_total": ("counter", set()),
    "carteiro_feedback_events_total": ("counter", {"provider", "type", "result"}),
    "carteiro_suppressed_total": ("counter", set()),
    "carteiro_late_results_total": ("counter", set()),
    "carteiro_provider_latency_seconds": ("histogram", {"provider"}),
    "carteiro_provider_errors_total": ("counter", {"provider", "outcome"}),
    "carteiro_provider_open": ("gauge", {"provider"}),
    "carteiro_provider_open_seconds": ("gauge", {"provider"}),
    "carteiro_provider_trouble_timestamp_seconds": ("gauge", {"provider"}),
    "carteiro_provider_rate": ("gauge", {"provider"}),
    "carteiro_provider_held_back_total": ("counter", {"provider"}),
    "carteiro_http_requests_total": ("counter", {"method", "route", "status"}),
    "carteiro_accept_seconds": ("histogram", set()),
    "carteiro_claim_seconds": ("histogram", set()),
    "carteiro_declare_seconds": ("histogram", set()),
    "carteiro_settle_seconds": ("histogram", set()),
    "carteiro_store_up": ("gauge", set()),
}


async def worked(office: Office, **options: Any) -> tuple[Tally, Metrics]:
    """Let a counted worker finish everything; its figures."""
    tally = Tally()
    store = measured_store(office.backend.store, tally)
    await office.work(store=store, tally=tally, **options)
    return tally, Metrics(office.backend, tally, top=TOP, least=LEAST)


def test_names_and_labels_are_stable() -> None:
    """They are public: none is renamed, retyped or relabelled by accident."""
    defined = {name: (each.type, set(each.labels)) for name, each in METRICS.items()}

    assert defined == NAMES


async def test_scrape_is_well_formed_and_has_every_metric() -> None:
    """Each with its type and labels, and nothing else."""
    async with an_office() as office:
        for to in ("ok", "throttle-1", "bounce-550", "lost-reply"):
            await office.post(f"{to}@sandbox.test")
        await office.post_raw("{}")
        tally, metrics = await worked(office)
        tally.answered("GET", "/health/live", 200)
        tally.lost["extend"] += 1
        tally.heard("ses", EventType.DELIVERED, NoteAnswer.NOTED)
        page = await scraped(metrics)

    assert {_full_name(each.name, each.type): each.type for each in page.families} == {
        name: type_ for name, (type_, _) in NAMES.items()
    }
    for family in page.families:
        for sample in family.samples:
            _, labels = NAMES[_full_name(family.name, family.type)]
            assert sample.labels.keys() - {"le"} == labels


def _full_name(name: str, type_: str) -> str:
    return f"{name}_total" if type_ == "counter" else name


async def test_run_through_the_pipeline_is_counted() -> None:
    """Two that are sent at once, one at the third attempt, one rejected, one invalid, one in doubt twice."""
    async with an_office() as office:
        for to in ("ok", "ok", "throttle-2", "bounce-550", "lost-reply"):
            await office.post(f"{to}@sandbox.test")
        await office.post_raw("{}", tenant=BRASA)
        _, metrics = await worked(office)
        page = await scraped(metrics)

    assert page.values("retry_attempts_total", "attempt") == {"1": 5, "2": 2, "3": 1}
    assert page.values("retry_success_rate", "attempt") == {"1": 2 / 5, "2": 0, "3": 1}
    assert page("retry_backoff_delay_seconds_count") == 3
    assert page("attempt_interval_seconds_count") == 3
    assert page("errors_total", code="550", category="PERMANENT_ERROR") == 1
    assert page.values("dlq_entries_total", "reason") == {
        DeadReason.PERMANENT_ERROR: 1,
        DeadReason.VALIDATION_FAILED: 1,
        DeadReason.IN_DOUBT: 1,
    }
    assert page("dlq_by_error_code_total", code="550") == 1
    assert page.values("dlq_by_company_total", "tenant") == {ACME: 2, BRASA: 1}
    assert (page("dlq_size"), page("dlq_size_by_company_max")) == (3, 2)
    assert page.values("dlq_size_by_company", "tenant") == {ACME: 2, BRASA: 1}
    assert page.values("tenant_jobs_processed_total", "tenant") == {ACME: 8, BRASA: 1}
    assert page.values("pipeline_state_transitions_total", "state") == {
        State.ENQUEUED: 0,  # another process accepted them
        State.RECEIVED: 9,
        State.VALIDATED: 8,
        State.VALIDATION_FAILED: 1,
        State.SENT_ATTEMPT: 8,
        State.RETRY_SCHEDULED: 3,
        State.SENT: 3,
        State.FAILED: 3,
        State.EXPIRED: 0,
        State.CANCELLED: 0,
    }
    assert page.values("pipeline_final_state_total", "state") == {
        State.SENT: 3,
        State.FAILED: 3,
        State.EXPIRED: 0,
        State.CANCELLED: 0,
    }
    assert page.values("pipeline_validation_failures_total", "validation") == {"INTEGRITY": 1}
    durations = "pipeline_processing_duration_seconds_count"
    assert page(durations, state=State.SENT) == 3
    assert page(durations, state=State.FAILED) == 3  # the invalid one is among them
    assert page.values("pipeline_retry_count_total", "category") == {
        "QUOTA_ERROR": 2,
        "TIMEOUT_ERROR": 1,
    }
    assert (page("in_doubt_total"), page("late_results_total")) == (2, 0)
    assert page("provider_latency_seconds_count", provider="sandbox") == 8
    assert page("provider_errors_total", provider="sandbox", outcome="deferred") == 2
    assert page("provider_errors_total", provider="sandbox", outcome="rejected") == 1
    assert page("provider_errors_total", provider="sandbox", outcome="unknown") == 2
    assert (page("queue_depth", kind="email:send"), page("store_up")) == (0, 1)


async def test_library_counts_accepted_and_cancelled_messages() -> None:
    """An app counts everything by default."""
    async with Carteiro.open("memory://") as post:
        first, second = [
            await post.send(tenant=tenant, to="ok@sandbox.test", subject="s", text="t")
            for tenant in ("acme", "brasa")
        ]
        answers = await post.backend.store.cancel([first.id], tenant=TenantId("acme"))
        waiting = await scraped(post.metrics)
        await work(post)
        page = await scraped(post.metrics)

    assert answers == [CancelAnswer.CANCELLED]
    assert waiting("queue_depth", kind="email:send") == 1
    assert waiting("pipeline_state_transitions_total", state="ENQUEUED") == 2
    assert page("pipeline_final_state_total", state="CANCELLED") == 1
    assert page("pipeline_final_state_total", state="SENT") == 1
    assert page("accept_seconds_count") == 2
    assert second.id


async def test_messages_that_expire_in_the_queue_are_counted() -> None:
    """No worker had claimed them: maintenance made them dead letters."""
    async with an_office() as office:
        await office.post(ttl=60_000)
        office.clock.advance(timedelta(minutes=2))
        tally = Tally()
        await expire_once(office.backend.upkeep, tally)
        page = await scraped(Metrics(office.backend, tally, top=TOP, least=LEAST))

    assert page("pipeline_final_state_total", state="EXPIRED") == 1
    assert page.values("dlq_entries_total", "reason") == {DeadReason.EXPIRED: 1}
    assert page("dlq_size") == 1


async def test_age_of_dead_letters_is_measured_when_they_leave() -> None:
    """Redriven or dropped, each once; those that stay, or are in flight already, are not measured."""
    now, tally = datetime(2026, 5, 4, tzinfo=UTC), Tally()
    async with an_office() as office:
        ports = office.backend.dead_letters, office.backend.redrives
        letters, _ = measured_dead_letters(*ports, tally, now=lambda: now)
        ids = [await buried(office.backend) for _ in range(3)]
        moved = await letters.moved(ids)
        now = max(moved.values()) + timedelta(hours=2)

        await letters.redrive([ids[0], MessageId("unknown")], by="ana")
        await letters.redrive([ids[0]], by="ana")
        dropped = await letters.drop(ids[:2])
        page = await scraped(Metrics(office.backend, tally, top=TOP, least=LEAST))

    assert (dropped, page("dlq_age_seconds_count"), page("dlq_size")) == (1, 2, 2)
    assert page("dlq_age_seconds_bucket", le="3600.0") == 0
    assert page("dlq_age_seconds_bucket", le="14400.0") == 2


async def test_age_of_dead_letters_is_measured_when_a_job_redrives_them() -> None:
    """Each once, and none that the job had to skip."""
    tally = Tally()
    async with an_office() as office:
        ports = office.backend.dead_letters, office.backend.redrives
        _, redrives = measured_dead_letters(*ports, tally)
        ids = [await buried(office.backend) for _ in range(3)]
        office.clock.advance(timedelta(hours=1))
        await office.backend.dead_letters.redrive(ids[:1], by="ana")
        redrive = await started(office.backend)
        after = await redrives.send(redrive, ids[:2], redrive.course)
        assert after is not None
        office.clock.advance(timedelta(seconds=1))
        await redrives.send(after, ids[1:], after.course)
        page = await scraped(Metrics(office.backend, tally, top=TOP, least=LEAST))

    assert page("dlq_age_seconds_count") == 2


async def test_scrape_has_the_time_of_the_last_maintenance() -> None:
    """By a worker or from cron; nothing before the first one."""
    async with Carteiro.open("memory://") as post:
        before = await scraped(post.metrics)
        await post.work_off()
        after = await scraped(Metrics(post.backend, post.tally, top=TOP, least=LEAST))

    assert before("scheduler_heartbeat_age_seconds") is None
    assert (after("scheduler_heartbeat_age_seconds") or 0) < timedelta(minutes=10).total_seconds()
    assert after("scheduler_heartbeat_age_seconds") is not None


async def test_two_apps_of_a_process_do_not_share_figures() -> None:
    """Figures belong to an app, not to the interpreter."""
    async with Carteiro.open("memory://") as busy, Carteiro.open("memory://") as idle:
        await busy.send(tenant="acme", to="ok@sandbox.test", subject="s", text="t")
        await work(busy)

        assert (await scraped(busy.metrics))("pipeline_final_state_total", state="SENT") == 1
        assert (await scraped(idle.metrics))("pipeline_final_state_total", state="SENT") == 0


# --- leases and late results ----------------------------------------------------------------------


class Overtaken(Through):
    """A store whose jobs were reassigned to another worker."""

    async def settle(self, ends: Any) -> Any:
        """Too late, each of them."""
        return [Late(State.SENT_ATTEMPT) for _ in ends]

    async def extend(self, leases: Any, **_: Any) -> list[bool]:
        """All leases are lost."""
        return [False for _ in leases]


async def test_reassigned_jobs_are_counted_where_they_were_noticed() -> None:
    """A late result does not count as an attempt; lost leases cause an alarm."""
    async with an_office() as office:
        tally = Tally()
        store = measured_store(Overtaken(office.backend.store), tally)
        lease = Lease(MessageId("m"), ClaimId("c"))

        await store.settle([End(lease, sent()) for _ in range(3)])
        await store.extend([lease, lease], lease=timedelta(seconds=1))

        page = await scraped(Metrics(office.backend, tally, top=TOP, least=LEAST))

    assert page("late_results_total") == 3
    assert page.values("leases_lost_total", "operation") == {"settle": 3, "extend": 2}
    assert page("pipeline_final_state_total", state="SENT") == 0
