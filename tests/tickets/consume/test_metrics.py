"""The metrics of the lane: the names that dashboards know, labels that stay few, and figures that add up."""

import pytest
from prometheus_client.parser import text_string_to_metric_families

from carteiro.tickets.consume.metrics import ALL, HELD_KEYS, LAG, REDIS_UP, TicketMetrics


def samples(metrics: TicketMetrics) -> dict[tuple[str, tuple[str, ...]], float]:
    """All that a scrape finds, by name and the values of labels in the order of their names."""
    return {
        (each.name, tuple(each.labels[name] for name in sorted(each.labels))): each.value
        for family in text_string_to_metric_families(metrics.page().decode())
        for each in family.samples
    }


def test_dead_letters_are_counted_by_reason_and_type() -> None:
    """Under the seed's name."""
    metrics = TicketMetrics(["BUILD", "TEST"])
    metrics.died("BUILD", "max_retries_exceeded", failures=3)
    metrics.died("BUILD", "max_retries_exceeded", failures=3)
    metrics.died("TEST", "undecodable", failures=0)

    found = samples(metrics)

    name = "worker_agent_dlq_messages_total"
    assert found[name, ("max_retries_exceeded", "BUILD")] == 2
    assert found[name, ("undecodable", "TEST")] == 1
    assert sum(count for (each, _), count in found.items() if each == name) == 3


def test_the_first_failure_is_an_increase() -> None:
    """A series that begins at 1 has no rate: so all are there from the start, at 0."""
    found = samples(TicketMetrics(["BUILD"]))

    reasons = ("max_retries_exceeded", "permanent_error", "unknown_task_type", "undecodable")
    for reason in (*reasons, "oversized"):
        assert found["worker_agent_dlq_messages_total", (reason, "BUILD")] == 0
        assert found["worker_agent_dlq_messages_total", (reason, "other")] == 0
    assert found["worker_agent_dlq_publish_errors_total", ("TimeoutError",)] == 0
    assert found["carteiro_tickets_done_total", ("BUILD",)] == 0


def test_retries_are_a_histogram() -> None:
    """The number of failures of a ticket before it was done or dead."""
    metrics = TicketMetrics(["BUILD"])
    for failures in (0, 0, 1, 3, 60):
        metrics.done("BUILD", failures=failures)
    metrics.died("BUILD", "max_retries_exceeded", failures=3)

    found = samples(metrics)

    name = "worker_agent_ticket_retry_count"
    buckets = {key[1][0]: count for key, count in found.items() if key[0] == f"{name}_bucket"}
    assert (buckets["0.0"], buckets["1.0"], buckets["3.0"], buckets["+Inf"]) == (2, 3, 5, 6)
    assert (found[f"{name}_count", ()], found[f"{name}_sum", ()]) == (6, 67)


@pytest.mark.parametrize("type", ["", "x" * 200, 'DROP"\n', "build", "BUILD "])
def test_type_without_a_handler_is_other(type: str) -> None:
    """Writers of tickets choose the type; a scrape must not grow with it."""
    metrics = TicketMetrics(["BUILD"])
    before = set(samples(metrics))

    metrics.done(type, failures=0)
    metrics.failed(type)
    metrics.died(type, "unknown_task_type", failures=0)
    metrics.pauses(type, paused=True)

    found = samples(metrics)
    assert set(found) == before
    assert found["carteiro_tickets_done_total", ("other",)] == 1
    assert found["worker_agent_dlq_messages_total", ("unknown_task_type", "other")] == 1


def test_errors_of_publishing_are_counted_by_type_and_stay_few() -> None:
    """The library has some hundreds of them."""
    metrics = TicketMetrics([])
    metrics.publish_failed("TimeoutError")
    for number in range(500):
        metrics.publish_failed(f"error-{number}")

    found = samples(metrics)
    errors = {key[1]: count for key, count in found.items() if "publish_errors" in key[0]}
    assert errors["TimeoutError",] == 1
    assert len(errors) <= 100
    assert sum(errors.values()) == 501


def test_gauges_show_the_state() -> None:
    """Redis, lag, what waits, and what is paused."""
    metrics = TicketMetrics(["BUILD"])
    metrics.set(REDIS_UP, 1)
    metrics.set(LAG, 12)
    metrics.set(HELD_KEYS, 3)
    metrics.pauses("BUILD", paused=True)

    found = samples(metrics)
    assert found["carteiro_tickets_redis_up", ()] == 1
    assert (found["carteiro_tickets_lag", ()], found["carteiro_tickets_held_keys", ()]) == (12, 3)
    assert found["carteiro_tickets_paused", ("BUILD",)] == 1
    metrics.set(REDIS_UP, 0)
    metrics.pauses("BUILD", paused=False)
    found = samples(metrics)
    assert found["carteiro_tickets_redis_up", ()] == 0
    assert found["carteiro_tickets_paused", ("BUILD",)] == 0


def test_redis_that_is_off_is_not_unreachable() -> None:
    """Switched off it has no figure, and nobody is called for it."""
    assert ("carteiro_tickets_redis_up", ()) not in samples(TicketMetrics(["BUILD"]))


def test_every_metric_that_is_defined_is_scraped_and_no_other() -> None:
    """The reference page comes from the definitions."""
    page = TicketMetrics(["BUILD"]).page().decode()

    scraped = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
    assert scraped == {each.full_name for each in ALL}
