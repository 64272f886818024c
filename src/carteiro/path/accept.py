"""Accept e-mails: check them, make messages of them, commit them.

In: e-mails of the library or of the HTTP API, one or many. Out: an answer for each, in order. Until the store has
answered, nothing exists: a crash before the commit leaves nothing behind, and the caller was promised nothing.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from uuid_utils import uuid7

from carteiro.email.message import Email, make_email
from carteiro.email.submission import Posting, Senders, accept_each, key_for, key_of, posted
from carteiro.email.templates.rendering import render_email
from carteiro.email.templates.work import Allowance
from carteiro.errors import (
    CannotJoin,
    FieldError,
    InvalidMessage,
    NotAccepted,
    StoreError,
    TenantMissing,
)
from carteiro.model import (
    AcceptAnswer,
    Accepted,
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
from carteiro.policy.names import KEY_RULE, NAME_RULE, is_key, is_name
from carteiro.policy.tenancy import asked_sender
from carteiro.ports import Backend
from carteiro.runtime.batcher import Gatherer
from carteiro.runtime.domain_cache import DomainBook
from carteiro.runtime.fair_thread import MOST_ITEMS, Slice
from carteiro.runtime.tenant_cache import TenantBook

_MOST_WAITING = 10_000  # messages not yet committed: beyond it a sender is told to come again
_LIKELY_BYTES = 4 * 1024  # of an e-mail, where it costs more to count them
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

    def __init__(
        self,
        backend: Backend,
        *,
        default_ttl: timedelta,
        relay_headers: Collection[str] = (),
        default_from_only: bool = False,
    ) -> None:
        self._relay_headers = relay_headers
        self._store = backend.store
        self._joining = backend.joining
        self._templates = backend.templates
        self._reading = backend.reading
        self._default_ttl = default_ttl
        self._default_from_only = default_from_only
        self._tenants = TenantBook(backend.tenants)
        self._domains = DomainBook(backend.tenants)
        self._accept: Gatherer[NewMessage, AcceptAnswer] = Gatherer(
            self._store.accept, size=lambda new: len(new.content), bound=_MOST_WAITING
        )

    async def many(
        self, items: Sequence[Mapping[str, Any]], *, connection: object = None
    ) -> list[SendAnswer]:
        """Accept what the library is given: unknown tenants are created, no limit counts it.

        With a ``connection`` in the transaction that this is in.
        """
        wanted = await self._read(items)
        names = {each.tenant for each in wanted if isinstance(each, _Wanted)}
        tenants = await self._tenants.settings(names)
        asked = [
            each if isinstance(each, NotAccepted) else _posting(each, tenants[each.tenant])
            for each in wanted
        ]
        await self._look_up([each for each in asked if isinstance(each, Posting)])
        made = [
            each if isinstance(each, NotAccepted) else await self._made_or_not(each)
            for each in asked
        ]
        commit = self.commit if connection is None else partial(self._join, connection)
        return await accept_each(made, commit)

    async def _read(self, items: Sequence[Mapping[str, Any]]) -> list[_Wanted | NotAccepted]:
        """What each item asks for; others have turns in between."""
        wanted: list[_Wanted | NotAccepted] = []
        some = Slice()
        for item in items:
            wanted.append(_read(item, self._relay_headers))
            if some.is_over(_LIKELY_BYTES):
                await asyncio.sleep(0)
        return wanted

    async def one_posting(self, posting: Posting) -> PostAnswer:
        """Accept one e-mail, gathered with what others send at the same time."""
        made = await self._made(posting)
        return made if isinstance(made, Replayed) else _known(await self._accept(made))

    async def postings(self, postings: Sequence[Posting]) -> list[PostAnswer | NotAccepted]:
        """Accept many e-mails in one commit; an answer for each, in order."""
        allowance = Allowance()
        await self._look_up(postings)
        made: list[NewMessage | Replayed | NotAccepted] = []
        for start in range(0, len(postings), MOST_ITEMS):
            some = postings[start : start + MOST_ITEMS]
            made += [await self._made_or_not(each, allowance) for each in some]
            await asyncio.sleep(0)
        new = [each for each in made if isinstance(each, NewMessage)]
        answers = iter([_known(each) for each in await self._store.accept(new)] if new else ())
        return [next(answers) if isinstance(each, NewMessage) else each for each in made]

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

    async def _join(self, connection: object, messages: Sequence[NewMessage]) -> list[SendAnswer]:
        """Accept in the caller's transaction: all of it, or the transaction is lost."""
        if self._joining is None:
            text = "connection= needs a store in the caller's own database: postgresql://"
            raise CannotJoin(text)
        await self._tenants.ensure({message.tenant for message in messages})
        return [
            self._told(answer)
            for some in _bearable(messages)
            for answer in await self._joining.accept(connection, some)
        ]

    async def _made_or_not(
        self, posting: Posting, allowance: Allowance | None = None
    ) -> NewMessage | Replayed | NotAccepted:
        try:
            return await self._made(posting, allowance)
        except InvalidMessage as error:
            return NotAccepted(tuple(error.fields))

    async def _made(
        self, posting: Posting, allowance: Allowance | None = None
    ) -> NewMessage | Replayed:
        """The message that a posting becomes.

        What would not be accepted now may have been: whoever asks again, because the answer was
        lost, must hear of it although the template or the tenant's domains are others by now.
        """
        try:
            rendered = await self._rendered(posting, allowance)
            senders = await self._senders(posting)
            return posted(
                posting, rendered=rendered, default_ttl=self._default_ttl, senders=senders
            )
        except InvalidMessage:
            first = await self._first(posting)
            if first is None:
                raise
            return first

    async def _senders(self, posting: Posting) -> Senders:
        sender = asked_sender(posting.tenant, posting.email.from_)
        owner = None if sender is None else await self._domains.owner(sender)
        return Senders(owner, self._default_from_only)

    async def _look_up(self, postings: Sequence[Posting]) -> None:
        """Ask once who has claimed the domains of all of them."""
        senders = {asked_sender(each.tenant, each.email.from_) for each in postings}
        await self._domains.look_up([each for each in senders if each is not None])

    async def _rendered(self, posting: Posting, allowance: Allowance | None) -> Email | None:
        if posting.email.template is None:
            return None
        return await render_email(
            posting.email,
            tenant=posting.tenant.id,
            templates=self._templates,
            allowance=allowance,
        )

    async def _first(self, posting: Posting) -> Replayed | None:
        key = key_of(posting)
        return None if key is None else await self._reading.first(key, tenant=posting.tenant.id)

    def _told(self, answer: AcceptAnswer) -> SendAnswer:
        """The answer to one of many: what is wrong with its tenant must not hide what became of the others."""
        match answer:
            case TenantDisabled():
                return NotAccepted((FieldError("tenant", "is disabled"),))
            case TenantUnknown(tenant):
                self._tenants.forget(tenant)
                return NotAccepted((FieldError("tenant", "was erased just now"),))
        return answer


def _read(item: Mapping[str, Any], relay_headers: Collection[str]) -> _Wanted | NotAccepted:
    if not isinstance(item, Mapping):
        return NotAccepted((FieldError("item", "must be a mapping of an e-mail's fields"),))
    fields = dict(item)
    tenant, key = fields.pop("tenant", None), fields.pop("idempotency_key", None)
    if not is_name(tenant):
        return NotAccepted((FieldError("tenant", NAME_RULE, missing=tenant is None),))
    if key is not None and not is_key(key):
        return NotAccepted((FieldError("idempotency_key", KEY_RULE),))
    try:
        return _Wanted(TenantId(tenant), make_email(fields, relay_headers=relay_headers), key)
    except InvalidMessage as error:
        return NotAccepted(tuple(error.fields))


def _posting(wanted: _Wanted, tenant: Tenant) -> Posting:
    key = None if wanted.key is None else key_for(wanted.key, wanted.email)
    return Posting(wanted.email, tenant, str(uuid7()), key)


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
