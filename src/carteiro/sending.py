"""What is handed in, by the library or over HTTP: judged, made into messages, committed, answered item by item."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeAlias

from uuid_utils import uuid7

from carteiro.email import Email, make_email
from carteiro.errors import FieldError, InvalidMessage, NotAccepted, StoreError, TenantMissing
from carteiro.gather import Gatherer
from carteiro.model import (
    AcceptAnswer,
    Accepted,
    IdempotencyKey,
    KeyConflict,
    NewMessage,
    NotStored,
    OverLimit,
    Replayed,
    StoreAnswer,
    Tenant,
    TenantDisabled,
    TenantId,
    TenantUnknown,
)
from carteiro.path.accept import Posting, accept_each, key_for, posted
from carteiro.policy.names import KEY_RULE, NAME_RULE, is_key, is_name
from carteiro.ports import Backend
from carteiro.rendering import render_email
from carteiro.tenant_book import TenantBook

_MOST_WAITING = 10_000  # messages not yet committed: beyond it a sender is told to come again
_MOST_AT_ONCE, _MOST_BYTES_AT_ONCE = 1000, 4 * 1024 * 1024

SendAnswer: TypeAlias = StoreAnswer | NotAccepted
PostAnswer: TypeAlias = Accepted | Replayed | KeyConflict | OverLimit


class _Wanted(NamedTuple):
    """An e-mail that the library is asked to send."""

    tenant: TenantId
    email: Email
    key: str | None


class Sending:
    """Every way into the store."""

    def __init__(self, backend: Backend, *, default_ttl: timedelta) -> None:
        self._store = backend.store
        self._templates = backend.templates
        self._default_ttl = default_ttl
        self._tenants = TenantBook(backend.tenants)
        self._accept: Gatherer[NewMessage, AcceptAnswer] = Gatherer(
            self._store.accept, size=lambda new: len(new.content), bound=_MOST_WAITING
        )

    async def many(self, items: Sequence[Mapping[str, Any]]) -> list[SendAnswer]:
        """Accept what the library is given: unknown tenants are created, no limit counts it."""
        wanted = [_read(item) for item in items]
        names = {each.tenant for each in wanted if isinstance(each, _Wanted)}
        tenants = await self._tenants.settings(names)
        postings = [
            each
            if isinstance(each, NotAccepted)
            else await self._posting(each, tenants[each.tenant])
            for each in wanted
        ]
        return await accept_each([self._made(each) for each in postings], self.commit)

    async def one_posting(self, posting: Posting) -> PostAnswer:
        """Accept one e-mail, gathered with what others send at the same time."""
        message = posted(posting, default_ttl=self._default_ttl)
        return _known(await self._accept(message))

    async def postings(self, postings: Sequence[Posting]) -> list[PostAnswer | NotAccepted]:
        """Accept many e-mails in one commit; an answer for each, in order."""
        made = [self._made(each) for each in postings]
        new = [each for each in made if isinstance(each, NewMessage)]
        answers = iter([_known(each) for each in await self._store.accept(new)])
        return [each if isinstance(each, NotAccepted) else next(answers) for each in made]

    async def commit(self, messages: Sequence[NewMessage]) -> list[SendAnswer]:
        """Commit in lists of a bearable size; tenants that are new here are created first."""
        await self._tenants.ensure({message.tenant for message in messages})
        answers: list[SendAnswer] = []
        try:
            for some in _bearable(messages):
                answers += [self._told(answer) for answer in await self._store.accept(some)]
        except StoreError as error:
            if not answers:
                raise
            answers += [NotStored(str(error))] * (len(messages) - len(answers))
        return answers

    async def _posting(self, wanted: _Wanted, tenant: Tenant) -> Posting | NotAccepted:
        # The key is of what was asked, not of what a template made of it: that may change meanwhile.
        request_id, key = str(uuid7()), _key(wanted)
        if wanted.email.template is None:
            return Posting(wanted.email, tenant, request_id, key)
        try:
            email = await render_email(wanted.email, tenant=tenant.id, templates=self._templates)
        except InvalidMessage as error:
            return NotAccepted(tuple(error.fields))
        type = wanted.email.template.type
        return Posting(email, tenant, request_id, key, template_type=type)

    def _made(self, posting: Posting | NotAccepted) -> NewMessage | NotAccepted:
        if isinstance(posting, NotAccepted):
            return posting
        try:
            return posted(posting, default_ttl=self._default_ttl)
        except InvalidMessage as error:
            return NotAccepted(tuple(error.fields))

    def _told(self, answer: AcceptAnswer) -> SendAnswer:
        """The answer to one of many: what is wrong with its tenant must not hide what became of the others."""
        match answer:
            case TenantDisabled():
                return NotAccepted((FieldError("tenant", "is disabled"),))
            case TenantUnknown(tenant):
                self._tenants.forget(tenant)
                return NotAccepted((FieldError("tenant", "was erased just now"),))
        return answer


def _read(item: Mapping[str, Any]) -> _Wanted | NotAccepted:
    if not isinstance(item, Mapping):
        return NotAccepted((FieldError("item", "must be a mapping of an e-mail's fields"),))
    fields = dict(item)
    tenant, key = fields.pop("tenant", None), fields.pop("idempotency_key", None)
    if not is_name(tenant):
        return NotAccepted((FieldError("tenant", NAME_RULE, missing=tenant is None),))
    if key is not None and not is_key(key):
        return NotAccepted((FieldError("idempotency_key", KEY_RULE),))
    try:
        return _Wanted(TenantId(tenant), make_email(fields), key)
    except InvalidMessage as error:
        return NotAccepted(tuple(error.fields))


def _key(wanted: _Wanted) -> IdempotencyKey | None:
    return None if wanted.key is None else key_for(wanted.key, wanted.email)


def _bearable(messages: Sequence[NewMessage]) -> Iterator[list[NewMessage]]:
    """The messages in lists that one transaction can bear."""
    some: list[NewMessage] = []
    weight = 0
    for message in messages:
        weight += len(message.content)
        if some and (len(some) == _MOST_AT_ONCE or weight > _MOST_BYTES_AT_ONCE):
            yield some
            some, weight = [], len(message.content)
        some.append(message)
    if some:
        yield some


def _known(answer: AcceptAnswer) -> PostAnswer:
    match answer:
        case TenantUnknown(tenant):
            text = f"there is no tenant {tenant!r}"
            raise TenantMissing(text)
        case TenantDisabled(tenant):
            text = f"tenant {tenant!r} is disabled"
            raise TenantMissing(text)
    return answer
