"""Accept e-mails: check them, make messages of them, commit them.

In: e-mails of the library or of the HTTP API, one or many. Out: an answer for each, in order. A crash
before the commit leaves nothing, and the caller has no answer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from uuid_utils import uuid7

from carteiro import model
from carteiro.email.message import Email, make_email
from carteiro.email.plain import PlainEmail, plain_email
from carteiro.email.submission import (
    Submission,
    accept_each,
    in_places,
    new_message,
    with_sender,
)
from carteiro.email.templates.rendering import render_email
from carteiro.email.templates.work import Allowance
from carteiro.email.unsubscribe import with_link
from carteiro.errors import (
    CannotJoin,
    FieldError,
    InvalidMessage,
    NotAccepted,
    StoreError,
    TenantMissing,
)
from carteiro.policy.names import KEY_RULE, NAME_RULE, is_key, is_name
from carteiro.policy.tenancy import SendingRules, asked_sender
from carteiro.policy.trace_context import TraceContext, read_trace
from carteiro.ports import Backend
from carteiro.runtime.batcher import Gatherer
from carteiro.runtime.domain_cache import DomainCache
from carteiro.runtime.fair_thread import Slice
from carteiro.runtime.tenant_cache import TenantCache

_MOST_WAITING = 10_000  # uncommitted messages; beyond it a sender is asked to retry later
_BYTES_OF_RECIPIENT = 32 * 1024  # storing one takes as long as so much content: it is looked up
_BYTES_OF_MESSAGE = 1024  # the same of one without content
_LIKELY_BYTES = 4 * 1024  # estimate of an e-mail's size; counting would cost more
_MOST_AT_ONCE, _MOST_BYTES_AT_ONCE = 1000, 4 * 1024 * 1024

SendAnswer: TypeAlias = model.StoreAnswer | NotAccepted
PostAnswer: TypeAlias = model.Accepted | model.Replayed | model.KeyConflict | model.OverLimit
_Lists: TypeAlias = Gatherer[list[model.NewMessage], list[model.AcceptAnswer]]
_Owners: TypeAlias = Mapping[str | None, model.TenantId | None]  # by sender

_NOBODY: _Owners = {None: None}


class Accepting:
    """Accepts messages, in all ways that lead into the store."""

    def __init__(self, backend: Backend, rules: SendingRules) -> None:
        self._store = backend.store
        self._joining = backend.joining
        self._templates = backend.templates
        self._reading = backend.reading
        self._rules = rules
        self._tenants = TenantCache(backend.tenants)
        self._domains = DomainCache(backend.tenants)
        self._gathered: Gatherer[model.NewMessage, model.AcceptAnswer] = Gatherer(
            self._store.accept, size=_weight, whose=attrgetter("tenant"), bound=_MOST_WAITING
        )
        self._lists: WeakValueDictionary[model.TenantId, _Lists] = WeakValueDictionary()

    async def items(
        self,
        items: Sequence[Mapping[str, Any]],
        *,
        connection: object = None,
        trace: TraceContext | None = None,
    ) -> list[SendAnswer]:
        """Accept the items of the library: unknown tenants are created, no rate limit applies.

        With a ``connection``, in its transaction. ``trace`` is for those that bring none.
        """
        given = [
            dict(each) if type(each) is dict or isinstance(each, Mapping) else None
            for each in items
        ]
        named = {
            model.TenantId(name)
            for each in given
            if each is not None and isinstance(name := each.get("tenant"), str)
        }
        tenants = await self._tenants.settings({each for each in named if is_name(each)})
        submissions: list[Submission | NotAccepted] = []
        request_id = str(uuid7())  # a list is one request
        turn = Slice()
        for fields in given:
            submissions.append(self._read(fields, tenants, request_id, trace))
            if turn.spend(_LIKELY_BYTES):
                await turn.pause()
        commit = self.commit if connection is None else partial(self._join, connection)
        return await accept_each(await self._messages(submissions), commit)

    async def one(self, submission: Submission) -> PostAnswer:
        """Accept one e-mail, in a batch with concurrent submissions.

        Raises `InvalidMessage` if its template cannot be rendered or it may not use its From,
        `TenantMissing` if its tenant may not send. It is accepted even if the caller is cancelled.
        """
        email = submission.email
        is_usual = email.from_ is None and submission.tenant.default_from is None
        owners = _NOBODY if is_usual else await self._owners([submission])
        try:
            if not isinstance(email, PlainEmail) and email.template is not None:
                email = await self._rendered(submission, email)
            made = self._message(submission, email, owners)
        except InvalidMessage:
            first = await self._first(submission)
            if first is None:
                raise
            return first
        return _known(await self._gathered(made))

    async def many(
        self, submissions: Sequence[Submission], made: Callable[[], None] = lambda: None
    ) -> list[PostAnswer | NotAccepted]:
        """Accept e-mails of a tenant in one commit, together with its concurrent lists; return an answer for each.

        ``made`` is called when they only wait to be stored.
        """
        messages = await self._messages(submissions, Allowance())
        made()
        new = [each for each in messages if isinstance(each, model.NewMessage)]
        stored = await self._lists_of(new[0].tenant)(new) if new else []
        answers = [each if type(each) is model.Accepted else _known(each) for each in stored]
        return in_places(answers, messages, model.NewMessage)

    def _lists_of(self, tenant: model.TenantId) -> _Lists:
        """Of each tenant by itself: they may wait for its locks, and others must not wait for them."""
        lists = self._lists.get(tenant) or Gatherer(self._accept_lists, size=_weight_of_list)
        self._lists[tenant] = lists
        return lists

    async def _accept_lists(
        self, lists: list[list[model.NewMessage]]
    ) -> list[list[model.AcceptAnswer]]:
        answers = iter(await self._store.accept([each for some in lists for each in some]))
        return [list(islice(answers, len(some))) for some in lists]

    async def commit(self, messages: Sequence[model.NewMessage]) -> list[SendAnswer]:
        """Commit in lists of limited size; unknown tenants are created first."""
        await self._tenants.ensure({message.tenant for message in messages})
        answers: list[SendAnswer] = []
        try:
            for some in _in_batches(messages):
                answers += [
                    each if type(each) is model.Accepted else self._send_answer(each)
                    for each in await self._store.accept(some)
                ]
        except StoreError as error:
            if not answers:
                raise
            answers += [model.NotStored(str(error))] * (len(messages) - len(answers))
        return answers

    async def _join(
        self, connection: object, messages: Sequence[model.NewMessage]
    ) -> list[SendAnswer]:
        """Accept in the caller's transaction: all messages, or the transaction is lost."""
        if self._joining is None:
            text = "connection= needs a store in the caller's own database: postgresql://"
            raise CannotJoin(text)
        await self._tenants.ensure({message.tenant for message in messages})
        return [
            self._send_answer(answer)
            for some in _in_batches(messages)
            for answer in await self._joining.accept(connection, some)
        ]

    def _read(
        self,
        fields: dict[str, Any] | None,
        tenants: Mapping[model.TenantId, model.Tenant],
        request_id: str,
        trace: TraceContext | None,
    ) -> Submission | NotAccepted:
        if fields is None:
            return NotAccepted((FieldError("item", "must be a mapping of an e-mail's fields"),))
        name, key = fields.pop("tenant", None), fields.pop("idempotency_key", None)
        is_text = isinstance(name, str)
        tenant = tenants.get(name) if is_text else None
        if tenant is None:
            return NotAccepted((FieldError("tenant", NAME_RULE, missing=name is None),))
        if key is not None and not is_key(key):
            return NotAccepted((FieldError("idempotency_key", KEY_RULE),))
        if "traceparent" in fields or "tracestate" in fields:
            parent, state = fields.pop("traceparent", None), fields.pop("tracestate", None)
            trace = read_trace(parent, state) or trace
        try:
            plain = plain_email(fields)
            email = plain or make_email(fields, relay_headers=self._rules.relay_headers)
        except InvalidMessage as error:
            return NotAccepted(tuple(error.fields))
        return Submission(email, tenant, request_id, key, trace=trace)

    async def _messages(
        self,
        submissions: Sequence[Submission | NotAccepted],
        allowance: Allowance | None = None,
    ) -> list[model.NewMessage | model.Replayed | NotAccepted]:
        """Make the message of each, or the reason why not; yields to other tasks in between."""
        owners = await self._owners([each for each in submissions if isinstance(each, Submission)])
        made: list[model.NewMessage | model.Replayed | NotAccepted] = []
        turn = Slice()
        for each in submissions:
            if isinstance(each, NotAccepted):
                made.append(each)
                continue
            email = each.email
            try:
                if not isinstance(email, PlainEmail) and email.template is not None:
                    email = await self._rendered(each, email, allowance)
                made.append(self._message(each, email, owners))
            except InvalidMessage as error:
                made.append(await self._first(each) or NotAccepted(tuple(error.fields)))
            if turn.spend():
                await turn.pause()
        return made

    async def _owners(self, submissions: Sequence[Submission]) -> _Owners:
        """The tenants that claim the domains of their senders."""
        senders = {asked_sender(each.tenant, each.email.from_) for each in submissions}
        return _NOBODY if senders == {None} else await self._domains.owners(senders)

    async def _rendered(
        self, submission: Submission, email: Email, allowance: Allowance | None = None
    ) -> Email:
        tenant = submission.tenant.id
        return await render_email(
            email, tenant=tenant, templates=self._templates, allowance=allowance
        )

    def _message(
        self, submission: Submission, email: Email | PlainEmail, owners: _Owners
    ) -> model.NewMessage:
        """Make the message of a rendered e-mail; raises `InvalidMessage` if its From or its headers are not allowed."""
        tenant = submission.tenant
        if email.from_ is not None or tenant.default_from is not None:
            owner = owners[asked_sender(tenant, email.from_)]
            email = with_sender(email, tenant, owner=owner, rules=self._rules)
        message = None
        if email.template is not None and email.template.one_click:
            message = model.MessageId(str(uuid7()))
            email = with_link(email, self._rules.one_click, tenant=tenant.id, message=message)
        default_ttl = self._rules.default_ttl
        return new_message(submission, email, default_ttl=default_ttl, message=message)

    async def _first(self, submission: Submission) -> model.Replayed | None:
        """The first answer to a request that is refused now and was accepted before.

        A caller that lost the answer and repeats the request gets it, even if the template or the tenant's
        domains have changed since.
        """
        key = submission.idempotency_key
        tenant = submission.tenant.id
        return None if key is None else await self._reading.first(key, tenant=tenant)

    def _send_answer(self, answer: model.AcceptAnswer) -> SendAnswer:
        """The answer to one of many: an error of one tenant must not hide the answers of the others."""
        match answer:
            case model.TenantDisabled():
                return NotAccepted((FieldError("tenant", "is disabled"),))
            case model.TenantUnknown(tenant):
                self._tenants.forget(tenant)
                return NotAccepted((FieldError("tenant", "was erased just now"),))
        return answer


def _weight(new: model.NewMessage) -> int:
    return len(new.content) + (0 if new.recipient is None else _BYTES_OF_RECIPIENT)


def _weight_of_list(new: list[model.NewMessage]) -> int:
    met = [each for each in new if each.recipient is not None]
    content = sum([len(each.content) for each in new])
    return content + _BYTES_OF_RECIPIENT * len(met) + _BYTES_OF_MESSAGE * len(new)


def _in_batches(messages: Sequence[model.NewMessage]) -> Iterator[list[model.NewMessage]]:
    """The messages in lists that fit into one transaction."""
    some: list[model.NewMessage] = []
    weight = 0
    for message in messages:
        weight += len(message.content)
        if some and (len(some) == _MOST_AT_ONCE or weight > _MOST_BYTES_AT_ONCE):
            yield some
            some, weight = [], len(message.content)
        some.append(message)
    if some:
        yield some


def _known(answer: model.AcceptAnswer) -> PostAnswer:
    match answer:
        case model.TenantUnknown(tenant):
            raise TenantMissing(f"there is no tenant {tenant!r}")
        case model.TenantDisabled(tenant):
            raise TenantMissing(f"tenant {tenant!r} is disabled")
    return answer
