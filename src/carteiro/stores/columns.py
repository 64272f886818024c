"""Conversion between columns and values for every SQL store: times, failures, entries, recipients, messages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, cast

import orjson

from carteiro import model
from carteiro.policy.lifecycle import Entry, Stamped

FAR = 2**62  # an alarm that never rings
MOST_TIMELINE = (
    8192  # characters of a timeline in its entry: once it is longer, events are rows of their own
)
_STATES: Mapping[str, model.State] = {
    state.value: state for state in model.State
}  # a look-up costs less than State(…)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)

_MOST_FAILURES = 1024  # few different values, each used often

# Columns of an accepted message; those that most messages leave empty come last.
_ACCEPTED = (
    *("id", "tenant", "kind", "declares", "delivery", "priority", "ttl_ms", "request_id"),
    *("external_id", "recipient_id", "to_address", "subject", "template_type", "tags"),
)
_TYPES = {"declares": "boolean", "priority": "integer", "ttl_ms": "bigint"}  # the others: text
_SHOWN = [each.name for each in fields(model.StoredMessage) if each.name != "content"]
_COLUMNS = {"to": "to_address", "provider_id": "provider_message_id", "duration": "duration_ms"}
_TIMES = ("due_at", "expires_at", "held_until", "cancel_requested_at", "created_at", "finished_at")


def _accepted(form: str) -> str:
    return ", ".join(form.format(name, _TYPES.get(name, "text")) for name in _ACCEPTED)


# Lists of columns, by the word that stands for them in statements and functions, as in ``{accepted}``.
LISTS = {
    "accepted": _accepted("{0}"),
    "accepted_arrays": _accepted("p_{0}"),
    "accepted_parameters": _accepted("p_{0} {1}[] DEFAULT '{{}}'"),
    "accepted_given": _accepted(":{0}::text::{1}[]"),
    "accepted_values": _accepted("?"),
    "shown": ", ".join(f"m.{_COLUMNS.get(name, name)}" for name in _SHOWN),
}


def in_ms(moment: datetime) -> int:
    """Milliseconds since 1970, rounded up: nothing is due before its time."""
    return -((_EPOCH - moment) // _MILLISECOND)


def moment(ms: int) -> datetime:
    """The moment of this number of milliseconds since 1970."""
    return _EPOCH + ms * _MILLISECOND


def maybe_moment(ms: int | None) -> datetime | None:
    """The moment, if there is one."""
    return None if ms is None else moment(ms)


@lru_cache(_MOST_FAILURES)
def failure_text(failure: model.Failure | None) -> str | None:
    """A failure as it is stored."""
    if failure is None:
        return None
    return orjson.dumps(
        {
            "code": failure.code,
            "category": failure.category,
            "retryable": failure.retryable,
            "scope": failure.scope,
            "reason": failure.reason,
            "rule": failure.rule,
            "original_code": failure.original_code,
        }
    ).decode()


@lru_cache(_MOST_FAILURES)
def failure_of(text: str | None) -> model.Failure | None:
    """A failure as it was stored."""
    if text is None:
        return None
    stored = orjson.loads(text)
    category, scope = model.Category(stored.pop("category")), model.Scope(stored.pop("scope"))
    return model.Failure(category=category, scope=scope, **stored)


def timeline_text(events: Iterable[Stamped]) -> str:
    """Events as an entry keeps them: JSON documents, each followed by a comma."""
    told = [(event.type, event.at, event.metadata) for event in events]
    return f"{orjson.dumps(told)[1:-1].decode()}," if told else ""


def entry_of(row: Sequence[Any]) -> Entry:
    """A ledger entry from its columns, in the order of `Entry`."""
    entry = Entry(*row)
    entry.state = _STATES[entry.state]
    entry.declares = bool(entry.declares)
    if entry.failure is not None:
        entry.failure = failure_of(cast("str", entry.failure))
    return entry


def entry_row(entry: Entry) -> list[object]:
    """The columns that rules change, in the order of `Entry`."""
    return [
        entry.state,
        entry.due_at,
        entry.expires_at,
        entry.attempts,
        entry.charged,
        entry.in_doubt,
        entry.round,
        entry.revision,
        entry.holder,
        entry.held_until,
        entry.cancel_requested_at,
        entry.evidence,
        entry.provider,
        entry.provider_id,
        failure_text(entry.failure),
        entry.duration_ms,
        entry.finished_at,
    ]


def recipient_of(row: Sequence[Any]) -> model.Recipient:
    """A recipient from its nine columns."""
    identity, tenant, email, external_id, document, razao_social, nome, created, deleted = row
    return model.Recipient(
        id=model.RecipientId(identity),
        tenant=model.TenantId(tenant),
        email=email,
        external_id=external_id,
        cpf_cnpj_hash=document,
        razao_social=razao_social,
        nome=nome,
        created_at=moment(created),
        deleted_at=maybe_moment(deleted),
    )


def message_of(row: Sequence[Any]) -> model.StoredMessage:
    """A message from the columns of ``{shown}``, and its content."""
    *shown, content = row
    values = dict(zip(_SHOWN, shown, strict=True))
    for name in _TIMES:
        values[name] = maybe_moment(values[name])
    values["state"] = model.State(values["state"])
    values["failure"] = failure_of(values["failure"])
    values["tags"] = tuple(orjson.loads(values["tags"] or "[]"))
    if values["duration"] is not None:
        values["duration"] *= _MILLISECOND
    return model.StoredMessage(content=content, **values)
