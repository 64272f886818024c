"""One trace through real processes: the API, a worker that is killed, and another worker."""

import signal
from pathlib import Path

from support.collector import CALLER, SPAN, TRACE, Collector, a_collector
from support.running import final_status_of, started, up

EMAIL = {"to": "greylist@sandbox.test", "subject": "Bom dia", "text": "Oi"}
REQUEST, ATTEMPT, CALL = "POST /v1/email/send", "process email:send", "send sandbox"


def tracing(collector: Collector, **more: str) -> dict[str, str]:
    """The variables of a process that exports to it."""
    return {
        "CARTEIRO_TRACING_ENABLED": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_BSP_SCHEDULE_DELAY": "50",
        "CARTEIRO_RETRY_PRESET": "development",
        **more,
    }


async def test_a_trace_goes_from_the_request_through_attempts_of_other_processes(
    tmp_path: Path,
) -> None:
    """The API accepts, one worker makes the first attempt and is killed, another one makes the others.

    The request's span is exported when the API ends, if not before; log lines have the same ids.
    """
    with a_collector() as collector:
        variables = tracing(collector)
        api = up(tmp_path, command="api", **(variables | {"OTEL_BSP_SCHEDULE_DELAY": "3600000"}))
        async with api as running:
            async with running.client() as client:
                answer = await client.post(
                    "/v1/email/send", json=EMAIL, headers={"traceparent": CALLER}
                )
                message = answer.json()["outboxId"]
                async with started(tmp_path, "worker", **variables) as first:
                    await collector.until(ATTEMPT)
                    await first.ended(signal.SIGKILL)
                async with started(tmp_path, "worker", **variables) as second:
                    assert await final_status_of(client, message) == "SENT"
                    assert await second.ended(signal.SIGTERM) == 0
            assert not collector.named(REQUEST)
            assert await running.ended(signal.SIGTERM) == 0

    request, attempts = collector.one(REQUEST), collector.named(ATTEMPT)
    assert (request.trace, request.parent) == (TRACE, SPAN)
    assert {each.trace for each in collector.spans} == {TRACE}
    assert {each.parent for each in attempts} == {request.id}
    assert [each.links for each in attempts] == [[], [attempts[0].id], [attempts[1].id]]
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
