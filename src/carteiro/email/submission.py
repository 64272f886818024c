"""A submitted e-mail, and the message that a store commits for it."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Any, TypeAlias, TypeVar

from uuid_utils import uuid7

from carteiro import model
from carteiro.email.message import Email, EmailRecipient
from carteiro.email.plain import PlainEmail, content_of
from carteiro.errors import FieldError, InvalidMessage, NotAccepted
from carteiro.policy.tenancy import DEFAULT_TTL, SendingRules, sender_fault
from carteiro.policy.trace_context import TraceContext, with_trace

Given = TypeVar("Given", bound=Email | PlainEmail)
Commit: TypeAlias = Callable[
    [Sequence[model.NewMessage]], Awaitable[list[model.StoreAnswer | NotAccepted]]
]


@model.value
class Submission:
    """A checked e-mail and its tenant; its template is not rendered yet.

    ``key``: the Idempotency-Key. ``limits``: the API limits that it counts against. ``row``: its row
    of the table queue. ``trace``: the span that its attempts belong to.
    """

    email: Email | PlainEmail
    tenant: model.Tenant
    request_id: str
    key: str | None = None
    limits: model.ApiLimits | None = None
    row: model.QueueRow | None = None
    trace: TraceContext | None = None

    @property
    def idempotency_key(self) -> model.IdempotencyKey | None:
        """The key under which it is accepted once: the given one, else its external id.

        Its digest is that of the submitted e-mail: a template or a default From may change later.
        """
        key = self.key
        if key is None and self.tenant.external_id_is_key and self.email.external_id is not None:
            key = f"\x1f{self.email.external_id}"  # no given key can begin like this
        if key is None:
            return None
        return model.IdempotencyKey(key, sha256(content_of(self.email).encode()).hexdigest())


def new_message(
    submission: Submission,
    email: Email | PlainEmail | None = None,
    *,
    default_ttl: timedelta = DEFAULT_TTL,
    message: model.MessageId | None = None,
) -> model.NewMessage:
    """The message of a submission, with a new id or this one; ``email`` is the rendered form to send."""
    email = email or submission.email
    request_id, row, template = submission.request_id, submission.row, submission.email.template
    trace = submission.trace
    if isinstance(email, PlainEmail) and template is None:
        return model.NewMessage(
            model.MessageId(str(uuid7())),
            submission.tenant.id,
            model.EMAIL,
            email.content if trace is None else with_trace(email.content, trace),
            request_id,
            default_ttl,
            to=email.to,
            subject=email.subject,
            key=None if submission.key is None else submission.idempotency_key,
            limits=submission.limits,
            row=row,
        )
    return model.NewMessage(
        id=message or model.MessageId(str(uuid7())),
        tenant=submission.tenant.id,
        kind=model.EMAIL,
        content=content_of(email) if trace is None else with_trace(content_of(email), trace),
        request_id=request_id,
        ttl=default_ttl if email.ttl is None else timedelta(milliseconds=email.ttl),
        priority=email.priority,
        due=email.scheduled_at,
        delivery=email.delivery,
        to=email.to,
        subject=email.subject,
        external_id=email.external_id,
        recipient=None if email.recipient is None or row else new_recipient(email.recipient),
        tags=email.tags,
        template_type=None if template is None else template.type,
        key=submission.idempotency_key,
        limits=submission.limits,
        row=row,
    )


def with_sender(
    email: Given, tenant: model.Tenant, *, owner: model.TenantId | None, rules: SendingRules
) -> Given:
    """The e-mail with the tenant's default From if it names none; `InvalidMessage` if it may not use its From.

    ``owner``: the tenant that claims the domain of its `asked_sender`.
    """
    sender = email.from_ or tenant.default_from
    if sender is None:
        return email
    only = rules.default_from_only and email.from_ is not None
    fault = sender_fault(tenant, sender, owner=owner, default_only=only)
    if fault is not None:
        raise InvalidMessage([FieldError("from", fault)])
    if email.from_ is not None:
        return email
    return email.sent_by(sender)  # type: ignore[return-value] # each returns its own type


def new_recipient(recipient: EmailRecipient) -> model.NewRecipient:
    """The recipient of an e-mail, as stores match it."""
    given = recipient.recipient_id
    return model.NewRecipient(
        email=recipient.email,
        recipient_id=None if given is None else model.RecipientId(given),
        external_id=recipient.external_id,
        cpf_cnpj_hash=recipient.cpf_cnpj_hash,
        razao_social=recipient.razao_social,
        nome=recipient.nome,
    )


async def accept_each(
    made: Sequence[model.NewMessage | model.Replayed | NotAccepted], commit: Commit
) -> list[model.StoreAnswer | NotAccepted]:
    """Commit the well-formed ones together; return an answer for each item, in order."""
    new = [each for each in made if isinstance(each, model.NewMessage)]
    return in_places(await commit(new), made, model.NewMessage)


def in_places(answers: list[Any], items: Sequence[Any], asked: type) -> list[Any]:
    """The items, those of the type that was ``asked`` for replaced by their answers."""
    if len(answers) == len(items):
        return answers
    rest = iter(answers)
    return [next(rest) if isinstance(each, asked) else each for each in items]
