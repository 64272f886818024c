"""Redrive of dead letters: all that match a filter, or one with edits."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from carteiro import model
from carteiro.email.message import Email, make_email, restore_email, stored_content
from carteiro.email.submission import new_recipient, with_sender
from carteiro.email.templates.rendering import render_email
from carteiro.email.unsubscribe import with_link, without_link
from carteiro.engine.tasks import MAX_CONTENT_BYTES
from carteiro.errors import FieldError, InvalidMessage
from carteiro.policy.failures import MOST_GROUPS
from carteiro.policy.tenancy import SendingRules, asked_sender
from carteiro.policy.trace_context import TRACE
from carteiro.ports import Backend, Failures
from carteiro.runtime.domain_cache import DomainCache

_SAMPLE = 5
_SHOWN = 20  # groups, and tenants
_SAYS = ("subject", "html", "text")
EDITABLE = frozenset(
    {
        *(*_SAYS, "attachments", "template", "headers"),
        *("from", "to", "cc", "bcc", "replyTo", "recipient"),
    }
)


async def plan_redrive(backend: Backend, wanted: model.DeadFilter) -> model.RedrivePlan:
    """Return the dead letters that a redrive would send now: those that match and are not redriven."""
    letters, resting = backend.dead_letters, replace(_usual(wanted), is_redriven=False)
    groups = await letters.group("group", resting)
    if wanted.tenant is None:
        tenants = await letters.group("tenant", resting)
    else:  # the same dead letters: they are read once
        tenants = _together(wanted.tenant, groups)
    page = await letters.find(resting, limit=_SAMPLE, is_whole=False)
    return model.RedrivePlan(
        sum(each.count for each in tenants),
        groups[:_SHOWN],
        await causes_of(backend.failures, wanted.tenant),
        tenants[:_SHOWN],
        [each.id for each in page.rows],
    )


def _together(key: str, groups: Sequence[model.DeadGroup]) -> list[model.DeadGroup]:
    """All groups as one; none if there is none."""
    if not groups:
        return []
    count = sum(each.count for each in groups)
    oldest, newest = min(each.oldest for each in groups), max(each.newest for each in groups)
    return [model.DeadGroup(key, count, oldest, newest)]


def _usual(wanted: model.DeadFilter) -> model.DeadFilter:
    """The filter; of all tenants without Carteiro's own: a stale notice helps nobody."""
    return wanted if wanted.tenant else replace(wanted, without=model.NOTICES)


async def causes_of(failures: Failures, tenant: model.TenantId | None) -> dict[str, str]:
    """The failure groups that are kept, in words, by their ids."""
    page = await failures.list(model.FailureFilter(tenant), limit=MOST_GROUPS)
    return {each.id: each.cause for each in page.rows}


async def start_redrive(
    backend: Backend, wanted: model.DeadFilter, *, by: str, ramp: model.Ramp
) -> model.Redrive | model.TooManyRedrives:
    """Start a redrive of those that match; upkeep runs it."""
    wanted = _usual(wanted)
    tenants = await backend.dead_letters.group("tenant", replace(wanted, is_redriven=False))
    total = sum(each.count for each in tenants)
    return await backend.redrives.start(wanted, by=by, ramp=ramp, total=total)


# --- editing one ----------------------------------------------------------------------------------


async def revise(
    message: model.StoredMessage,
    changes: Mapping[str, Any],
    *,
    backend: Backend,
    rules: SendingRules = SendingRules(),  # noqa: B008 - a value, never changed
) -> model.Revision:
    """Return the message with these changes, by their JSON names; raises `InvalidMessage`.

    Every part of an e-mail that is sent can change (null removes it), and the whole e-mail is validated
    again; of a task only its existing arguments. The result is for the revision that was read: a redrive
    refuses it if the message has another revision by then.
    """
    content, of, fields = message.content, message.revision, tuple(sorted(changes))
    if not content:
        raise _wrong("body", "is past its retention: there is nothing to edit")
    if not changes:
        raise _wrong("body", "changes nothing")
    if message.kind != model.EMAIL:
        return model.Revision(_arguments(content, changes), None, None, of=of, fields=fields)
    stored = restore_email(content)
    email = _edited(stored, changes, rules)
    email = await _rendered(email, stored, message.tenant, backend)
    [tenant] = await backend.tenants.find([message.tenant])
    if tenant is not None:
        sender = asked_sender(tenant, email.from_)
        owner = await DomainCache(backend.tenants).other_owner(tenant.id, sender)
        email = with_sender(email, tenant, owner=owner, rules=rules)
    email = with_link(email, rules.one_click, tenant=message.tenant, message=message.id)
    recipient = None if email.recipient is None else new_recipient(email.recipient)
    return model.Revision(stored_content(email), email.to, email.subject, recipient, of, fields)


def _edited(stored: Email, changes: Mapping[str, Any], rules: SendingRules) -> Email:
    fixed = sorted(changes.keys() - EDITABLE)
    if fixed:
        raise InvalidMessage([FieldError(_shown(name), _FIXED) for name in fixed[:20]])
    email = make_email(_merged(stored, changes), relay_headers=rules.relay_headers)
    kept = {"max_retries": stored.max_retries, "trace_context": stored.trace_context}
    return email.model_copy(update=kept)


async def _rendered(email: Email, stored: Email, tenant: model.TenantId, backend: Backend) -> Email:
    """Render the template of the e-mail, if it has one."""
    if email.template is None and not stored.needs_words:
        email = email.model_copy(update={"template": stored.template})
    elif email.template is not None:
        email = await render_email(email, tenant=tenant, templates=backend.templates)
    return email


_FIXED = f"cannot be edited: only {', '.join(sorted(EDITABLE))} can"


def _shown(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else "(unknown)"


def _merged(stored: Email, changes: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = orjson.loads(stored_content(stored))
    for kept in ("maxRetries", TRACE):
        fields.pop(kept, None)
    if not stored.needs_words:
        fields.pop("template", None)  # it is rendered already: the text is in the fields
    if stored.template is not None and stored.template.one_click:
        fields["headers"] = without_link(stored.headers)
    if changes.get("template") is not None:
        fields = {name: each for name, each in fields.items() if name not in _SAYS}
    for name, each in changes.items():
        before = fields.get(name)
        both = isinstance(before, dict) and isinstance(each, dict)
        fields[name] = _without_nulls(before | each) if both else each
    if "to" in changes and "recipient" not in changes and fields.get("recipient"):
        fields["recipient"]["email"] = changes["to"]  # the same person at another address
    return _without_nulls(fields)


def _without_nulls(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in fields.items() if each is not None}


def _arguments(content: str, changes: Mapping[str, Any]) -> str:
    arguments = orjson.loads(content)
    other = sorted(changes.keys() - (arguments.keys() - {TRACE}))
    if other:
        fault = "is not an argument of this task, and nothing else of a task can be edited"
        raise InvalidMessage([FieldError(_shown(name), fault) for name in other[:20]])
    try:
        made = orjson.dumps(arguments | dict(changes))
    except TypeError:
        raise _wrong("body", "has values that JSON cannot hold") from None
    if len(made) > MAX_CONTENT_BYTES:
        raise _wrong("body", f"must have at most {MAX_CONTENT_BYTES} bytes")
    return made.decode()


def _wrong(field: str, fault: str) -> InvalidMessage:
    return InvalidMessage([FieldError(field, fault)])
