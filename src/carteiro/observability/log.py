"""JSON log lines on stderr, or records of the standard library's `logging`: one function per event.

Silent until `configure` or `to_logging` is called, so that an embedding program decides. The functions take no free
fields: no body and no key can reach a line, and addresses in any text are masked.
"""

import io
import traceback
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from carteiro import model
from carteiro.errors import CarteiroError
from carteiro.observability.log_targets import (
    JsonLines,
    Level,
    LoggingRecords,
    Stream,
    Target,
)
from carteiro.policy import trace_context

_ANSWER_UNKNOWN = "Answer unknown, scheduling retry: it may have been delivered; cancel it if it must not come twice"
_NOT_DELIVERED = "Message not delivered, kept as a dead letter: look into it, then redrive it"
_MAY_BE_DELIVERED = (
    "Message may have been delivered, kept as a dead letter: look for it at the provider or ask the recipient, "
    "and redrive it only if it did not arrive"
)


def configure(level: str, stream: Stream | None = None) -> None:
    """Write lines of this level (a name of `Level`, in any case) and above to stderr, or to ``stream``."""
    _become(JsonLines(stream or io.FileIO(2, "w", closefd=False)), level)


def to_logging(level: str = "info") -> None:
    """Give events of this level and above to the standard library's `logging`, instead of writing lines.

    The logger of ``attempt.finished`` is ``carteiro.attempt``; of an event without a dot, ``carteiro``. A record has
    the fields of the line as attributes, and all of them as ``fields``. Handlers run in the event loop.
    """
    _become(LoggingRecords(), level)


def _become(target: Target, level: str) -> None:
    global _log, _level  # noqa: PLW0603 - the log of a process is one
    _level = Level[level.upper()]
    _log.drain()
    _log = target


def show_traces(*, is_on: bool) -> None:
    """Put the ids of its trace into each line of a message, until all that turned it on have turned it off."""
    global _tracing  # noqa: PLW0603 - as the log itself
    _tracing += 1 if is_on else -1


def shows_traces() -> bool:
    """True if the lines of messages have the ids of their traces."""
    return _tracing > 0


def flush() -> None:
    """Write the waiting lines now: there will be no further turn of the loop."""
    _log.drain()


def event(level: Level, message: str, name: str, fields: Mapping[str, Any]) -> None:
    """Write a line if its level is on; for the functions here and in other modules of events."""
    if _level <= level:
        _log.write_all(level, message, name, [fields])


# --- messages ----------------------------------------------------------------


def attempts_sent(
    jobs: Sequence[model.LeasedJob], attempts: Sequence[int], ends: Sequence[model.End]
) -> None:
    """Write the lines of `attempt_finished` for sent messages."""
    if _level > Level.INFO:
        return
    lines = []
    for job, attempt, end in zip(jobs, attempts, ends, strict=True):
        line = _of(job, attempt, model.State.SENT, end.duration)
        if isinstance(end.verdict, model.Sent):
            line["provider"] = end.verdict.provider
            if end.verdict.provider_id:
                line["providerMessageId"] = end.verdict.provider_id
        lines.append(line)
    _log.write_all(Level.INFO, "Attempt finished", "attempt.finished", lines)


def attempt_finished(
    job: model.LeasedJob, end: model.End, *, attempt: int, state: model.State, provider: str
) -> None:
    """Write the INFO line of each attempt; if it was sent, with the message id at the provider."""
    provider_id = end.verdict.provider_id if isinstance(end.verdict, model.Sent) else None
    fields = _of(job, attempt, state, end.duration) | _through(provider, provider_id)
    event(Level.INFO, "Attempt finished", "attempt.finished", fields)


def retry_scheduled(
    job: model.LeasedJob, retry: model.Retry, end: model.End, *, attempt: int, max_attempts: int
) -> None:
    """Report an attempt that failed or has an unknown outcome, and the time of the next one."""
    fields = _of(job, attempt, model.State.RETRY_SCHEDULED, end.duration) | _why(retry.failure)
    more = {"maxAttempts": max_attempts, "nextRetryDelay": retry.after // model.MILLISECOND}
    said = _ANSWER_UNKNOWN if end.in_doubt else "Job failed, scheduling retry"
    event(Level.WARN, said, "retry.scheduled", fields | more)


def message_died(
    job: model.LeasedJob, dead: model.Dead, *, attempt: int, state: model.State, duration: timedelta
) -> None:
    """Report a message that became a dead letter."""
    fields = _of(job, attempt, state, duration) | _why(dead.failure) | {"reason": dead.reason}
    is_in_doubt = dead.reason is model.DeadReason.IN_DOUBT
    said = _MAY_BE_DELIVERED if is_in_doubt else _NOT_DELIVERED
    event(Level.ERROR, said, "message.died", fields)


def attempt_in_doubt(
    job: model.LeasedJob, failure: model.Failure, *, attempt: int, duration: timedelta
) -> None:
    """Report an attempt with an unknown outcome."""
    fields = _of(job, attempt, model.State.SENT_ATTEMPT, duration) | _why(failure)
    said = "Handed over, but the answer is unknown: the recipient may or may not have it"
    event(Level.WARN, said, "attempt.in_doubt", fields)


def result_late(
    job: model.LeasedJob, *, attempt: int, state: model.State | None, duration: timedelta
) -> None:
    """Report a result after the lease was lost; ``state`` is the current state, if known."""
    said = "Result came after the job went to another worker: kept as evidence"
    event(Level.WARN, said, "result.late", _of(job, attempt, state, duration))


def doubt_resolved(told: model.Feedback) -> None:
    """Report that a provider event resolved an unknown outcome: the message is not sent again."""
    fields = {"outboxId": told.message, "provider": told.provider, "feedback": told.type}
    said = "Provider confirms a message that was in doubt: sent"
    event(Level.INFO, said, "doubt.resolved", fields)


def unsubscribed(link: model.UnsubscribeLink, answer: model.NoteAnswer) -> None:
    """Report that a recipient unsubscribed; the address is not logged."""
    fields = {"outboxId": link.message, "companyId": link.tenant, "result": answer}
    said = "A recipient unsubscribed: nothing more is sent to this address for the tenant"
    event(Level.INFO, said, "recipient.unsubscribed", fields)


def feedback_ignored(told: model.Feedback) -> None:
    """Report an event about a message of another tenant, or one never given to this provider."""
    fields = {
        "outboxId": told.message,
        "provider": told.provider,
        "feedback": told.type,
        "tenantTag": told.tenant_tag,
    }
    said = (
        "Feedback ignored: its tenant is not the message's, or its provider never had it; "
        "check whether two installations share a topic or a webhook"
    )
    event(Level.WARN, said, "feedback.ignored", fields)


# --- processes ----------------------------------------------------------------


def worker_started(*, kinds: Sequence[model.KindName], slots: int) -> None:
    """Report the kinds and slots of a worker."""
    event(Level.INFO, "Worker started", "worker.started", {"kinds": [*kinds], "slots": slots})


def worker_stopping(*, in_flight: int, grace: timedelta) -> None:
    """Report that claiming stopped, and the time left for jobs in flight."""
    said = "Worker stops claiming and finishes jobs in flight; a second signal stops it at once"
    fields = {"inFlight": in_flight, "graceMs": grace // model.MILLISECOND}
    event(Level.INFO, said, "worker.stopping", fields)


def worker_stopped(*, released: int) -> None:
    """Report the end of a worker, and the jobs that it released."""
    event(Level.INFO, "Worker stopped", "worker.stopped", {"released": released})


def handlers_go_on(calls: int) -> None:
    """Report calls that ignore their cancel: the worker ends without them."""
    said = "Calls ignore that they were cancelled: they end with the process, and are in doubt or run again"
    event(Level.WARN, said, "worker.calls_go_on", {"calls": calls})


def store_failed(operation: str, error: BaseException, *, wait: timedelta) -> None:
    """Report a failed operation of the store, and the time of the next try."""
    fields = {"operation": operation, "nextRetryDelay": wait // model.MILLISECOND}
    event(Level.ERROR, "Store failed, trying again", "store.failed", fields | _of_error(error))


def queue_away(address: str, why: str, *, wait: timedelta) -> None:
    """Report an unreachable queue, and the time of the next try."""
    said = "Queue unreachable: messages are accepted and settled without it, and are put when it is back"
    fields = {"queue": address, "errorReason": why, "nextRetryDelay": wait // model.MILLISECOND}
    event(Level.WARN, said, "queue.away", fields)


def queue_back(address: str) -> None:
    """Report that the queue is reachable again."""
    event(Level.INFO, "Queue is back", "queue.back", {"queue": address})


def provider_left_alone(provider: str, why: str, *, wait: timedelta) -> None:
    """Report an opened circuit, and the time of the next try."""
    fields = {"provider": provider, "errorReason": why, "nextRetryDelay": wait // model.MILLISECOND}
    event(Level.WARN, "Circuit opened", "provider.left_alone", fields)


def provider_healed(provider: str) -> None:
    """Report a closed circuit."""
    event(Level.INFO, "Circuit closed", "provider.healed", {"provider": provider})


def subscription_confirmed(topic: str) -> None:
    """Report a confirmed subscription to a topic of provider events."""
    event(Level.INFO, "Subscription confirmed", "subscription.confirmed", {"topic": topic})


def rates_away(provider: str, error: BaseException) -> None:
    """Report that the shared rate limit of a provider cannot be read."""
    said = "Shared rate limit cannot be read: this process continues with its share of the last one"
    event(Level.WARN, said, "rates.away", {"provider": provider} | _of_error(error))


def request_failed(
    request_id: str, error: BaseException, *, status: int, trace_id: str = ""
) -> None:
    """Report a request that failed with a server error; the client has the same id."""
    fields = {"requestId": request_id, "status": status} | _of_error(error)
    if trace_id:
        fields["traceId"] = trace_id
    event(Level.ERROR, "Request failed", "request.failed", fields)


def bound_reached(what: str, *, most: int) -> None:
    """Report once that clients are refused, until there is room again."""
    said = "Limit reached, refusing more until some end: check which clients hold them, then the settings of [api]"
    event(Level.WARN, said, "bound.reached", {"what": what, "most": most})


def upkeep_done(task: str, *, count: int) -> None:
    """Report the changes of one round of a maintenance task."""
    event(Level.INFO, "Upkeep done", "upkeep.done", {"task": task, "count": count})


def redrive_started(redrive: str, tenant: str, provider: str, total: int) -> None:
    """Report that dead letters of a tenant are redriven, as their provider has recovered."""
    fields = {"redrive": redrive, "tenant": tenant, "provider": provider, "total": total}
    event(Level.INFO, "Automatic redrive started", "redrive.started", fields)


def redrive_halted(redrive: str, state: str, reason: str | None) -> None:
    """Report that a redrive has finished, or why it does not go on."""
    level = Level.INFO if reason is None else Level.WARN
    fields = {"redrive": redrive, "state": state, "reason": reason}
    event(level, f"Redrive {state}", "redrive.halted", fields)


def upkeep_failed(task: str, error: BaseException) -> None:
    """Report a failed round of a maintenance task; the next one follows by itself."""
    said = "Upkeep failed, the next round will try again"
    event(Level.ERROR, said, "upkeep.failed", {"task": task} | _of_error(error))


def dead_letters_filling(*, count: int, most: int, folder: str) -> None:
    """Report that the index of dead letters is nearly full."""
    said = (
        "Dead letters near their limit: redrive or purge them, or raise dead_letters.max_entries; "
        "beyond it the oldest are written to a file and leave the index"
    )
    fields = {"count": count, "maxEntries": most, "exportFolder": folder}
    event(Level.WARN, said, "dead_letters.filling", fields)


def dead_letters_exported(*, count: int, file: str) -> None:
    """Report that dead letters beyond the limit were exported."""
    said = (
        "Too many dead letters: the oldest of the largest tenants were written to a file; "
        "carteiro dead import reads it back, and their messages can still be redriven"
    )
    event(Level.WARN, said, "dead_letters.exported", {"count": count, "file": file})


def traces_away(url: str) -> None:
    """Report once that spans cannot be exported; nothing waits for them."""
    said = "Traces are not accepted by the collector: spans are dropped until it is back, and nothing waits for them"
    event(Level.WARN, said, "traces.away", {"collector": url})


def traces_back(url: str) -> None:
    """Report that spans are exported again."""
    event(Level.INFO, "Traces are accepted again", "traces.back", {"collector": url})


def unexpected(where: str, error: BaseException) -> None:
    """Report an unexpected error."""
    said = "Unexpected error, please report it"
    event(Level.ERROR, said, "unexpected", {"where": where} | _of_error(error))


# --- fields -----------------------------------------------------------------------------------


def _of(
    job: model.LeasedJob, attempt: int, state: model.State | None, duration: timedelta
) -> dict[str, Any]:
    """Return the ids in every line of a message, and the duration of its attempt so far."""
    line = {
        "outboxId": job.lease.job,
        "jobId": job.lease.job,
        "requestId": job.request_id,
        "companyId": job.tenant,
        "attempt": attempt,
        "state": state,
        "durationMs": duration // model.MILLISECOND,
    }
    if _tracing:
        line |= trace_ids(trace_context.trace_in(job.content), job.lease.job, attempt)
    return line


def trace_ids(
    given: trace_context.TraceContext | None, identity: str, attempt: int
) -> dict[str, Any]:
    """Return the ids of the trace, the given one or its own, and of the attempt's span; 0: there was no attempt."""
    trace_id = trace_context.trace_id_of(identity) if given is None else given.trace_id
    if not attempt:
        return {"traceId": trace_id}
    return {"traceId": trace_id, "spanId": trace_context.span_id_of(identity, attempt)}


def _through(provider: str, provider_id: str | None) -> dict[str, Any]:
    told = {"provider": provider}
    return told | {"providerMessageId": provider_id} if provider_id else told


def _why(failure: model.Failure) -> dict[str, Any]:
    return {
        "errorCode": failure.code,
        "errorReason": failure.reason,
        "isRetryable": failure.retryable,
    }


def _of_error(error: BaseException) -> dict[str, Any]:
    """Return type and place; the text only of errors that never quote content."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].name}:{frames[-1].lineno}" if frames else ""
    reason = str(error) if isinstance(error, CarteiroError | OSError) else ""
    return {"errorType": type(error).__name__, "errorReason": reason, "errorPlace": place}


_level = Level.OFF
_tracing = 0  # how many apps of this process trace
_log: Target = JsonLines(io.BytesIO())
