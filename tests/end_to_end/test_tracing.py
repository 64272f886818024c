"""One trace through real processes: one that is killed, and the one that goes on."""

import asyncio
import signal
from pathlib import Path

from carteiro.app import Carteiro
from carteiro.policy.trace_context import span_id_of
from support.collector import CALLER, SPAN, TRACE, Collector, a_collector
from support.running import PATIENCE_S, final_status_of, started, up

EMAIL = {"to": "greylist@sandbox.test", "subject": "Bom dia", "text": "Oi"}
REQUEST, ATTEMPT, CALL = "POST /v1/email/send", "process email:send", "send sandbox"


def tracing(collector: Collector) -> dict[str, str]:
    """The variables of a process that exports to it."""
    return {
        "CARTEIRO_TRACING_ENABLED": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "50",
        "CARTEIRO_RETRY_PRESET": "development",
        # A message that the killed worker had claimed or begun comes back soon.
        "CARTEIRO_DELIVERY_LEASE_MS": "1000",
        "CARTEIRO_DELIVERY_CALL_LIMIT_MS": "1000",
        "CARTEIRO_DELIVERY_HOLD_MARGIN_MS": "1000",
    }


async def test_a_trace_goes_through_a_process_that_is_killed_and_the_next_one(
    tmp_path: Path,
) -> None:
    """The first accepts and makes an attempt; the second makes the others, and exports them when it is stopped.

    Log lines have the same ids.
    """
    with a_collector() as collector:
        variables = tracing(collector)
        async with up(tmp_path, **variables) as first:
            async with first.client() as client:
                headers = {"traceparent": CALLER}
                answer = await client.post("/v1/email/send", json=EMAIL, headers=headers)
                message = answer.json()["outboxId"]
            await collector.until(REQUEST)
            await collector.until(ATTEMPT)
            await first.ended(signal.SIGKILL)
        at_the_end = {**variables, "OTEL_BSP_SCHEDULE_DELAY": "3600000"}
        async with (
            Carteiro.open(f"sqlite:///{tmp_path}/carteiro.db") as post,
            started(tmp_path, "worker", **at_the_end) as second,
        ):
            async with asyncio.timeout(PATIENCE_S):
                while await post.backend.reading.unsettled([message]):
                    await asyncio.sleep(0.01)
            assert len(collector.named(ATTEMPT)) < 3
            assert await second.ended(signal.SIGTERM) == 0

    request, attempts = collector.one(REQUEST), collector.named(ATTEMPT)
    assert (request.trace, request.parent) == (TRACE, SPAN)
    assert {each.trace for each in collector.spans} == {TRACE}
    assert {each.parent for each in attempts} == {request.id}
    numbers = [each.attributes["carteiro.attempt"] for each in attempts]
    assert (numbers[0], numbers[-1]) == (1, 3)  # the killed worker may have made the second, too
    assert [each.id for each in attempts] == [span_id_of(message, each) for each in numbers]
    assert [each.links for each in attempts] == [
        [span_id_of(message, each - 1)] if each > 1 else [] for each in numbers
    ]
    assert [each.parent for each in collector.named(CALL)] == [each.id for each in attempts]
    told = [each for each in second.log if each["event"] == "attempt.finished"]
    assert [(each["traceId"], each["spanId"]) for each in told[-1:]] == [(TRACE, attempts[-1].id)]


async def test_a_process_ends_though_its_collector_hangs(tmp_path: Path) -> None:
    """Mail is sent, SIGTERM ends it with code 0, and every line of its log is JSON."""
    with a_collector(answers=False) as collector:
        async with up(tmp_path, **tracing(collector)) as running:
            async with running.client() as client:
                answer = await client.post("/v1/email/send", json=EMAIL | {"to": "ok@sandbox.test"})
                assert await final_status_of(client, answer.json()["outboxId"]) == "SENT"
            assert await running.ended(signal.SIGTERM) == 0
        assert collector.requests
        assert not collector.spans
