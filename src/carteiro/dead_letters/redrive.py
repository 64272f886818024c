"""Redrive of dead letters: all that match a filter, or one with edits."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import orjson

from carteiro import model
from carteiro.email.message import Email, make_email, restore_email, stored_content
from carteiro.email.submission import new_recipient, with_sender
from carteiro.email.templates.rendering import render_email
from carteiro.engine.tasks import MAX_CONTENT_BYTES
from carteiro.errors import FieldError, InvalidMessage
from carteiro.policy.tenancy import SendingRules, asked_sender
from carteiro.ports import Backend, DeadLetters
from carteiro.runtime.domain_cache import DomainCache

RedriveTally: TypeAlias = Counter[model.RedriveAnswer]

_PAGE = 500
_SAYS = ("subject", "html", "text")
EDITABLE = frozenset(
    {
        *(*_SAYS, "attachments", "template", "headers"),
        *("from", "to", "cc", "bcc", "replyTo", "recipient"),
    }
)


async def redrive_matching(  # noqa: PLR0913 - what to send, on whose word, and how
    dead_letters: DeadLetters,
    wanted: model.DeadFilter,
    *,
    by: str,
    rate: float | None = None,
    progress: Callable[[RedriveTally], None] = lambda _: None,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> RedriveTally:
    """Redrive all matching dead letters that are not redriven yet, each once, at most ``rate`` a second.

    If stopped half-way, it can be called again: redriven letters are skipped. Messages that die again
    meanwhile are newer than the pages read here, and wait for the next call.
    """
    size = _PAGE if rate is None else max(1, min(_PAGE, int(rate)))
    resting = replace(wanted, is_redriven=False)
    tally: RedriveTally = Counter()
    is_first = True
    cursor: model.Cursor | None = None
    if wanted.is_redriven:
        return tally
    while is_first or cursor is not None:
        page = await dead_letters.find(resting, cursor=cursor, limit=size)
        if not is_first and rate is not None:
            await sleep(len(page.rows) / rate)
        tally.update(await dead_letters.redrive([each.id for each in page.rows], by=by))
        progress(tally)
        cursor, is_first = page.next, False
    return tally


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
    recipient = None if email.recipient is None else new_recipient(email.recipient)
    return model.Revision(stored_content(email), email.to, email.subject, recipient, of, fields)


def _edited(stored: Email, changes: Mapping[str, Any], rules: SendingRules) -> Email:
    fixed = sorted(changes.keys() - EDITABLE)
    if fixed:
        raise InvalidMessage([FieldError(_shown(name), _FIXED) for name in fixed[:20]])
    email = make_email(_merged(stored, changes), relay_headers=rules.relay_headers)
    return email.model_copy(update={"max_retries": stored.max_retries})


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
    fields.pop("maxRetries", None)
    if not stored.needs_words:
        fields.pop("template", None)  # it is rendered already: the text is in the fields
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
    other = sorted(changes.keys() - arguments.keys())
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
