"""The lifecycle of a message, as pure rules over its ledger entry; stores load, apply and save.

Each rule gets the entry, the request and the store's time (milliseconds). It changes the entry in place and
returns the answer with a `Change`: the events to write, and the effect on job and dead letter.
Without a change the entry is unchanged and nothing is written.
"""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple, assert_never

from carteiro import model
from carteiro.errors import TransitionRefused
from carteiro.policy.automatic_redrives import waits_for
from carteiro.policy.grouping import group_of
from carteiro.policy.history import retry_of
from carteiro.policy.tags import tag_value

MILLISECOND = model.MILLISECOND
# A longer lease or hold is the result of a clock that stepped back.
LONGEST_HOLD = timedelta(hours=1)
LONGEST_HOLD_MS = LONGEST_HOLD // MILLISECOND

MOST_GLANCES = 100  # opens and clicks on one timeline: some mail scanners open without end
_GLANCES = frozenset({model.EventType.OPENED, model.EventType.CLICKED})
_BY_FEEDBACK = model.ClaimId("feedback")  # source of the evidence
_UNSUBSCRIBED_BY, _KEY_SHOWN = "one-click-", 12

EXPIRED_UNSENT = model.Failure(
    code="EXPIRED",
    category=model.Category.TIMEOUT_ERROR,
    retryable=False,
    scope=model.Scope.MESSAGE,
    reason="Not sent within its time to live",
    rule="lifecycle.expired",
)


_MARKED_FAILED = model.Failure(
    code="MARKED_FAILED",
    category=model.Category.TRANSIENT_ERROR,
    retryable=True,
    scope=model.Scope.MESSAGE,
    reason="",
    rule="sql.mark_email_failed",
)
_NO_REASON = "No reason was given"
_LONGEST_REASON = 500


@dataclass(slots=True)
class Entry:
    """The part of a ledger row that rules read and change; times are the store's, in milliseconds."""

    id: model.MessageId
    tenant: model.TenantId
    kind: model.KindName
    declares: bool
    ttl_ms: int
    state: model.State
    due_at: int
    expires_at: int
    attempts: int
    charged: int
    in_doubt: int
    round: int
    revision: int
    holder: model.ClaimId | None
    held_until: int | None
    cancel_requested_at: int | None
    evidence: str | None
    provider: str | None
    provider_id: str | None
    failure: model.Failure | None
    duration_ms: int | None
    finished_at: int | None
    retry_of: str | None = None  # see `carteiro.policy.history`


class Stamped(NamedTuple):
    """An event with its time."""

    type: model.EventType
    metadata: model.Metadata
    at: int


class NewDeadLetter(NamedTuple):
    """Fields of a dead letter that its message does not have."""

    reason: model.DeadReason
    failure: model.Failure
    failed_attempts: int
    group: str
    waits_for: str | None = None  # the provider whose recovery redrives it


@dataclass(slots=True)
class Change:
    """The effects of a rule besides the entry."""

    events: tuple[Stamped, ...] = ()
    park_until: int | None = None  # the job waits until then, without a claim
    drop_job: bool = False
    buried: NewDeadLetter | None = None
    unburied: bool = False  # a redriven dead letter ends


def is_live(until: int | None, now: int) -> bool:
    """True if a lease or hold with this end is valid."""
    return until is not None and now < until <= now + LONGEST_HOLD_MS


def is_open(entry: Entry) -> bool:
    """True if an attempt was declared and not settled."""
    return entry.state == model.State.SENT_ATTEMPT


def filed_under(reason: model.DeadReason, *, in_doubt: int) -> model.DeadReason:
    """The reason of a dead letter: in doubt if it may have been handed over, for any end.

    Another reason would invite a redrive before anyone looks for the first delivery.
    """
    return model.DeadReason.IN_DOUBT if in_doubt else reason


def begin(
    entry: Entry, start: model.Start, *, owner: bool, now: int
) -> tuple[model.Begun | model.Refused, Change | None]:
    """Declare an attempt. ``owner``: the start belongs to the job's claim."""
    refusal = _why_not_begin(entry, start, owner=owner, now=now)
    if refusal is not None:
        return refusal, None
    if _has_begun(entry, start):
        return model.Begun(entry.attempts), None
    entry.state = model.State.SENT_ATTEMPT
    entry.attempts += 1
    entry.in_doubt += start.open_attempt
    entry.holder = start.lease.claim
    entry.held_until = now + start.hold // MILLISECOND
    entry.provider = start.provider
    attempt = {"attempt": entry.attempts, "provider": start.provider}
    events = (*_stamped(start.events, now), Stamped(model.EventType.SENT_ATTEMPT, attempt, now))
    return model.Begun(entry.attempts), Change(events)


def finish(
    entry: Entry, end: model.End, *, owner: bool, now: int
) -> tuple[model.Settled | model.Late, Change | None]:
    """Settle a claimed job. ``owner``: the end belongs to the job's claim."""
    if not owner:
        return _unclaimed(entry, end, now)
    if entry.state in model.FINISHED:  # a stale queue entry: acknowledged, never sent
        return model.Settled(entry.state), Change(drop_job=True)
    verdict = _current_verdict(entry, end.verdict, now)
    _refuse_undeclared(entry, verdict)
    has_attempt = is_open(entry) or end.attempted
    _close_attempt(entry, end)
    match verdict:
        case model.Sent():
            change = _sent(entry, verdict, now, late=verdict is not end.verdict)
        case model.Retry() if entry.cancel_requested_at is not None:
            change = _cancelled(entry, now)
        case model.Retry():
            change = _retried(entry, verdict, now)
        case model.Dead():
            change = _buried(entry, verdict, now)
        case _:
            assert_never(verdict)
    if not has_attempt:
        _forget_retry(entry)
    if end.events:
        is_overruled = isinstance(verdict, model.Sent) and verdict is not end.verdict
        told = _without_states(end.events) if is_overruled else end.events
        change.events = (*_stamped(told, now), *change.events)
    return model.Settled(entry.state), change


def cancel(entry: Entry, *, leased: bool, now: int) -> tuple[model.CancelAnswer, Change | None]:
    """End a waiting message; mark one in flight or in doubt. ``leased``: the job has a live claim."""
    if entry.state in model.FINISHED:
        return model.CancelAnswer.FINISHED, None
    if not is_open(entry) and not _is_running(entry, leased=leased):
        return model.CancelAnswer.CANCELLED, _cancelled(entry, now)
    if entry.cancel_requested_at is not None:
        return model.CancelAnswer.REQUESTED, None
    entry.cancel_requested_at = now
    return model.CancelAnswer.REQUESTED, Change(
        (Stamped(model.EventType.CANCEL_REQUESTED, {}, now),)
    )


def expire(entry: Entry, *, leased: bool, now: int) -> Change | None:
    """Expire a message past its time to live; one in flight or with an open attempt is not touched."""
    if entry.expires_at > now or entry.state in model.FINISHED:
        return None
    if is_open(entry) or _is_running(entry, leased=leased):
        return None
    if entry.cancel_requested_at is not None:
        return _cancelled(entry, now)
    verdict = model.Dead(model.DeadReason.EXPIRED, entry.failure or EXPIRED_UNSENT)
    change = _buried(entry, verdict, now)
    _forget_retry(entry)
    return change


def note(  # noqa: PLR0913 - the report, and what is known of the message
    entry: Entry,
    told: model.Feedback,
    *,
    known: Collection[str],
    carriers: Collection[str],
    at: int,
    now: int,
) -> tuple[model.NoteAnswer, Change | None]:
    """Record a later report; ``known`` are the event ids on the timeline, ``at`` is when it happened.

    ``carriers`` are the providers that it was attempted with; reports of others are not about it.

    Every report proves that the provider has the message: evidence of a late *sent*. Nothing else changes
    the state.
    """
    if entry.attempts == 0:  # of another store with the same ids, such as a copy
        return model.NoteAnswer.UNKNOWN, None
    if not _is_about(entry, told, carriers):
        return model.NoteAnswer.IGNORED, None
    if told.event_id in known or (told.type in _GLANCES and len(known) >= MOST_GLANCES):
        return model.NoteAnswer.KNOWN, None
    was = entry.state
    change = _by_evidence(entry, told, _reporter(entry, told, carriers), now)
    if told.type is not model.EventType.SENT:
        change = change or Change()
        change.events = (*change.events, _feedback(entry, told, min(at, now)))
    if change is None:
        return model.NoteAnswer.KNOWN, None
    return model.NoteAnswer.NOTED if entry.state is was else model.NoteAnswer.RESOLVED, change


def unsubscribed(
    key: str, address: str | None, *, known: Collection[str], now: int
) -> Change | None:
    """Record that a recipient used the link of the message; None: it did before.

    It proves nothing about the delivery: the tenant knows the link, too. ``key`` is that of the suppression.
    """
    event_id = f"{_UNSUBSCRIBED_BY}{key[:_KEY_SHOWN]}"
    if event_id in known:
        return None
    told = {"eventId": event_id} | ({} if address is None else {"recipients": [address]})
    return Change((Stamped(model.EventType.UNSUBSCRIBED, told, now),))


def reschedule(entry: Entry, *, at: int) -> Change | None:
    """Move the next attempt to another time, with the whole ttl from then on; None: finished or in flight."""
    if entry.state in model.FINISHED or is_open(entry):
        return None
    entry.due_at = at
    entry.expires_at = max(entry.expires_at, entry.due_at + entry.ttl_ms)
    return Change(park_until=entry.due_at)


def mark_failed(
    entry: Entry, reason: str | None, *, wait: timedelta | None, now: int
) -> Change | None:
    """Charge a failed attempt that the application made itself; None: finished or in flight.

    ``wait``: time until the next attempt; None: this was the last failure allowed.
    """
    if entry.state in model.FINISHED or is_open(entry):
        return None
    failure = replace(_MARKED_FAILED, reason=reason[:_LONGEST_REASON] if reason else _NO_REASON)
    verdict: model.Verdict
    if wait is None:
        verdict = model.Dead(model.DeadReason.MAX_ATTEMPTS_EXCEEDED, failure, charged=True)
    else:
        verdict = model.Retry(wait, charged=True, failure=failure)
    verdict = _current_verdict(entry, verdict, now)
    entry.attempts += not isinstance(verdict, model.Sent)
    attempt = {"attempt": entry.attempts, "provider": "application"}
    made = (
        Stamped(model.EventType.RECEIVED, {}, now),
        Stamped(model.EventType.SENT_ATTEMPT, attempt, now),
    )
    match verdict:
        case model.Dead():
            change = _buried(entry, verdict, now)
        case model.Retry():
            change = _retried(entry, verdict, now)
        case model.Sent():
            return _sent(entry, verdict, now, late=True)
        case _:
            assert_never(verdict)
    change.events = (*made, *change.events)
    return change


def is_redriven(entry: Entry) -> bool:
    """True if a dead message was redriven and is not finished."""
    return entry.round > 1 and entry.state not in model.FINISHED


def redrive(  # noqa: PLR0913 - what is known, and what is asked
    entry: Entry,
    *,
    by: str,
    has_content: bool,
    now: int,
    revision: model.Revision | None = None,
    is_automatic: bool = False,
) -> tuple[model.RedriveAnswer, Change | None]:
    """Start a new round of attempts and a new ttl; with a ``revision``, as the next revision.

    ``has_content``: its content was not pruned. ``is_automatic``: nobody asked for it, so it keeps its end of life, and
    what may have been delivered is not sent again.
    """
    if is_redriven(entry):
        return model.RedriveAnswer.ALREADY, None
    if entry.state not in model.DEAD or (is_automatic and not _may_redrive_itself(entry, now)):
        return model.RedriveAnswer.NOT_FOUND, None
    if revision is not None and revision.of not in {None, entry.revision}:
        return model.RedriveAnswer.CHANGED, None
    if revision is None and not has_content:
        return model.RedriveAnswer.NO_CONTENT, None
    if entry.failure is not None and entry.finished_at is not None:
        entry.retry_of = retry_of(entry.provider, entry.failure, entry.finished_at)
    entry.state = model.State.ENQUEUED
    entry.round += 1
    entry.charged = 0
    entry.in_doubt = 0
    entry.due_at = now
    entry.expires_at = entry.expires_at if is_automatic else now + entry.ttl_ms
    entry.cancel_requested_at = None
    entry.evidence = None
    entry.finished_at = None
    told: dict[str, object] = {"round": entry.round, "redrivenBy": by}
    if revision is not None:
        entry.revision += 1
        told["revision"] = entry.revision
    return model.RedriveAnswer.REDRIVEN, Change((Stamped(model.EventType.ENQUEUED, told, now),))


def _may_redrive_itself(entry: Entry, now: int) -> bool:
    is_whole = entry.state is model.State.FAILED and not entry.in_doubt and _proof(entry) is None
    return is_whole and entry.cancel_requested_at is None and now < entry.expires_at


def restored_ttl(moved_at: int, ttl_ms: int, now: int) -> int:
    """The ttl of a restored dead letter; one that expired meanwhile gets its full ttl again from now."""
    return ttl_ms if moved_at + ttl_ms > now else now - moved_at + ttl_ms


def _why_not_begin(  # noqa: PLR0911 - a list of reasons; the first is returned
    entry: Entry, start: model.Start, *, owner: bool, now: int
) -> model.Refused | None:
    if entry.state in model.FINISHED:
        return model.Refused(model.RefusedWhy.FINISHED)
    if not owner:
        return model.Refused(model.RefusedWhy.LOST)
    if _has_begun(entry, start):
        return None
    if is_open(entry) and is_live(entry.held_until, now):
        return model.Refused(model.RefusedWhy.HELD, ((entry.held_until or now) - now) * MILLISECOND)
    if is_open(entry) != start.open_attempt:
        return model.Refused(model.RefusedWhy.LOST)
    if _proof(entry) is not None:
        return model.Refused(model.RefusedWhy.DELIVERED)
    if entry.cancel_requested_at is not None:
        return model.Refused(model.RefusedWhy.CANCELLED)
    if entry.expires_at <= now:
        return model.Refused(model.RefusedWhy.EXPIRED)
    if entry.due_at > now:
        return model.Refused(model.RefusedWhy.NOT_DUE, (entry.due_at - now) * MILLISECOND)
    return None


def _has_begun(entry: Entry, start: model.Start) -> bool:
    return is_open(entry) and entry.holder == start.lease.claim and entry.held_until is not None


def _is_running(entry: Entry, *, leased: bool) -> bool:
    return leased and not entry.declares


def _current_verdict(entry: Entry, verdict: model.Verdict, now: int) -> model.Verdict:
    """The verdict, unless a late success or the end of its life came first."""
    if isinstance(verdict, model.Sent):
        return verdict
    if (proof := _proof(entry)) is not None:
        return proof
    if entry.cancel_requested_at is not None:
        return verdict
    if isinstance(verdict, model.Retry) and now + verdict.after // MILLISECOND >= entry.expires_at:
        return model.Dead(model.DeadReason.EXPIRED, verdict.failure, charged=verdict.charged)
    return verdict


def _refuse_undeclared(entry: Entry, verdict: model.Verdict) -> None:
    """Raise if a message of a declaring kind would be sent or retried without an attempt."""
    if not entry.declares or is_open(entry) or isinstance(verdict, model.Dead):
        return
    if isinstance(verdict, model.Retry) and entry.cancel_requested_at is not None:
        return
    text = f"{entry.id} is {entry.state}: no declared attempt can end in {type(verdict).__name__}"
    raise TransitionRefused(text)


def _close_attempt(entry: Entry, end: model.End) -> None:
    entry.holder = end.lease.claim
    entry.held_until = None
    entry.attempts += end.attempted
    entry.in_doubt += end.in_doubt
    entry.duration_ms = end.duration // MILLISECOND


def _sent(entry: Entry, verdict: model.Sent, now: int, *, late: bool = False) -> Change:
    was_buried = entry.round > 1 or entry.state in model.DEAD
    entry.state = model.State.SENT
    entry.provider = verdict.provider
    entry.provider_id = verdict.provider_id
    entry.failure = None
    entry.finished_at = now
    metadata = {
        "sesMessageId": verdict.provider_id,
        "provider": verdict.provider,
        "durationMs": entry.duration_ms,
        "attempt": entry.attempts,
    }
    if late:
        metadata["late"] = True
    event = Stamped(model.EventType.SENT, metadata, now)
    return Change((event,), drop_job=True, unburied=was_buried)


def _retried(entry: Entry, verdict: model.Retry, now: int) -> Change:
    entry.state = model.State.RETRY_SCHEDULED
    entry.charged += verdict.charged
    entry.failure = verdict.failure
    entry.retry_of = retry_of(entry.provider, verdict.failure, now)
    wait_ms = verdict.after // MILLISECOND
    entry.due_at = now + wait_ms
    metadata = {
        **_failure_fields(verdict.failure),
        "willRetry": True,
        "nextAttemptNumber": entry.attempts + 1,
        "backoffDelay": wait_ms,
        **_learned_fields(verdict),
    }
    event = Stamped(model.EventType.RETRY_SCHEDULED, metadata, now)
    return Change((event,), park_until=entry.due_at)


def _buried(entry: Entry, verdict: model.Dead, now: int) -> Change:
    is_expiry = verdict.reason is model.DeadReason.EXPIRED
    entry.state = model.State.EXPIRED if is_expiry else model.State.FAILED
    entry.charged += verdict.charged
    entry.failure = verdict.failure
    entry.finished_at = now
    reason = filed_under(verdict.reason, in_doubt=entry.in_doubt)
    metadata = {
        **_failure_fields(verdict.failure),
        "willRetry": False,
        "reason": reason.value,
        **_learned_fields(verdict),
    }
    if reason is not verdict.reason:
        metadata["endedBy"] = verdict.reason.value
    if verdict.learned is not None:
        _forget_retry(entry)
    event = Stamped(model.EventType.EXPIRED if is_expiry else model.EventType.FAILED, metadata, now)
    group = group_of(entry.provider, verdict.failure)
    waiting = waits_for(entry.tenant, entry.kind, entry.provider, reason, verdict.failure)
    buried = NewDeadLetter(reason, verdict.failure, entry.charged, group, waiting)
    return Change((event,), drop_job=True, buried=buried)


def _forget_retry(entry: Entry) -> None:
    """Let a death not count as that of a retry: none was made, or the policy would have made more."""
    if entry.state in model.DEAD:
        entry.retry_of = None


def _learned_fields(verdict: model.Retry | model.Dead) -> dict[str, object]:
    """The evidence for a verdict that the retry policy alone would not give."""
    if (learned := verdict.learned) is None:
        return {}
    told: dict[str, object] = {
        "group": learned.group,
        "count": learned.count,
        "sent": learned.sent,
        "upperBound": learned.at_most,
    }
    if learned.policy_wait is not None:
        told["policyDelay"] = learned.policy_wait // MILLISECOND
    return {"learned": told}


def _cancelled(entry: Entry, now: int) -> Change:
    entry.state = model.State.CANCELLED
    entry.finished_at = now
    event = Stamped(model.EventType.CANCELLED, {}, now)
    return Change((event,), drop_job=True, unburied=entry.round > 1)


def _unclaimed(
    entry: Entry, end: model.End, now: int
) -> tuple[model.Settled | model.Late, Change | None]:
    """An end without the claim: a repetition whose answer was lost, or a late result.

    Only a late *sent* is new, and it never changes an attempt that is live now. A late *sent* of an old
    revision is recorded but proves nothing: the new content has not been sent.
    """
    if entry.holder == end.lease.claim and entry.held_until is None:
        return model.Settled(entry.state), None
    verdict = end.verdict
    if not isinstance(verdict, model.Sent) or _is_known(entry, end):
        return model.Late(entry.state), None
    revision = entry.revision if end.revision is None else end.revision
    is_stale = revision != entry.revision
    told = {"outcome": "SENT", "sesMessageId": verdict.provider_id, "provider": verdict.provider}
    event = Stamped(
        model.EventType.LATE_RESULT, told | ({"revision": revision} if is_stale else {}), now
    )
    if not is_stale or _proof(entry) is None:
        evidence = [end.lease.claim, verdict.provider, verdict.provider_id, revision]
        entry.evidence = json.dumps(evidence)
    has_ended = is_stale or entry.state in {model.State.SENT, model.State.CANCELLED}
    if has_ended or (is_open(entry) and is_live(entry.held_until, now)):
        return model.Late(entry.state), Change((event,))
    entry.held_until = None
    change = _sent(entry, verdict, now, late=True)
    change.events = (event, *change.events)
    return model.Late(entry.state), change


def _is_about(entry: Entry, told: model.Feedback, carriers: Collection[str]) -> bool:
    """True if the report can be about this message; behind a relay there may be any provider."""
    if told.tenant_tag not in {None, tag_value(entry.tenant)}:
        return False
    types = {each.partition(":")[0] for each in carriers}
    return not types.isdisjoint({told.provider, *told.relays})


def _reporter(entry: Entry, told: model.Feedback, carriers: Collection[str]) -> str:
    """The carrier that reported: the last one if possible, else one of that type, or the relay.

    Reports do not name a region.
    """
    last = entry.provider or told.provider
    fitting = [each for each in carriers if each.partition(":")[0] == told.provider]
    if not fitting or last in fitting:
        return last
    return fitting[0] if len(fitting) == 1 else told.provider


def _by_evidence(entry: Entry, told: model.Feedback, reporter: str, now: int) -> Change | None:
    """Effects of knowing that the provider has it; None: nothing new."""
    is_stale = told.revision not in {None, entry.revision}
    if is_stale or entry.state is model.State.SENT or _proof(entry) is not None:
        return None
    sent = model.Sent(reporter, told.provider_id)
    end = model.End(model.Lease(entry.id, _BY_FEEDBACK), sent, revision=told.revision)
    _, change = _unclaimed(entry, end, now)
    return change


def _feedback(entry: Entry, told: model.Feedback, at: int) -> Stamped:
    metadata: dict[str, object] = {"provider": told.provider, "eventId": told.event_id}
    if told.recipients:
        metadata["recipients"] = list(told.recipients)
    if told.bounce is not None:
        metadata["bounce"] = told.bounce.value
    if told.detail:
        metadata["detail"] = told.detail
    if told.revision not in {None, entry.revision}:
        metadata["revision"] = told.revision
    return Stamped(told.type, metadata, at)


def _proof(entry: Entry) -> model.Sent | None:
    """The late success of the current revision, if one is known."""
    if entry.evidence is None:
        return None
    _, provider, provider_id, *revision = json.loads(entry.evidence)
    return model.Sent(provider, provider_id) if revision in ([], [entry.revision]) else None


def _is_known(entry: Entry, end: model.End) -> bool:
    return entry.evidence is not None and json.loads(entry.evidence)[0] == end.lease.claim


def _without_states(events: Iterable[model.Event]) -> list[model.Event]:
    """The events without the states that led to an overruled verdict: the message never was in them."""
    return [event for event in events if event.type.value not in model.State.__members__]


def _failure_fields(failure: model.Failure) -> dict[str, object]:
    return {
        "errorCode": failure.code,
        "errorCategory": failure.category.value,
        "originalCode": failure.original_code,
        "errorMessage": failure.reason,
        "scope": failure.scope.value,
        "rule": failure.rule,
    }


def _stamped(events: Iterable[model.Event], now: int) -> tuple[Stamped, ...]:
    return tuple(
        Stamped(each.type, each.metadata, now - each.ago // MILLISECOND) for each in events
    )
