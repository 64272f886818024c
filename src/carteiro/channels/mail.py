"""Notices as e-mails, through Carteiro itself, from a tenant of its own.

A notice about this tenant is a log line: otherwise a mail that fails would cause the next one. So is a notice whose
mail was not sent soon: e-mail itself may be broken. Its id is the idempotency key of its mail, which is accepted once.
The number of mails about one tenant is limited: alerts that come and go all day must not delay those of others.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from carteiro.errors import CarteiroError, HandedOver, InvalidMessage, NotAccepted, NotDelivered
from carteiro.model import (
    FINISHED,
    Accepted,
    KeyConflict,
    MessageId,
    NotStored,
    OverLimit,
    Replayed,
    State,
    Tenant,
    TenantId,
)
from carteiro.model.alerts import Notice, NoticeKind
from carteiro.observability import notice_events
from carteiro.path.accept import Accepting, SendAnswer
from carteiro.ports import Backend
from carteiro.runtime.messages import find_message
from carteiro.views import notices

SENT_WITHIN = timedelta(minutes=2)
MOST_OF_A_TENANT = 30  # in an hour, by one process; further notices are log lines
_HOUR = timedelta(hours=1)


class MailChannel:
    """See `carteiro.ports.alerts.Channel`. Without ``to``, mails go to the contact of the tenant that it is about."""

    def __init__(  # noqa: PLR0913 - a sender and a recipient
        self,
        name: str,
        accepting: Accepting,
        ports: Backend,
        *,
        tenant: TenantId,
        sender: str,
        to: str | None,
    ) -> None:
        self._name = name
        self._accepting = accepting
        self._ports = ports
        self._tenant = tenant
        self._sender = sender
        self._to = to
        self._mailed: dict[str, tuple[TenantId, datetime]] = {}  # by notice, in the last hour

    async def send(self, notice: Notice) -> None:
        """Send it, or ask whether it is sent; a mail that cannot be sent is a log line."""
        if notice.tenant == self._tenant:
            self._log(notice, "it is about the tenant that sends notices")
            return
        to = self._to or await self._contact(notice)
        if to is None:
            return
        if not self._has_room(notice):
            self._log(notice, f"there were {MOST_OF_A_TENANT} mails about this tenant in an hour")
            return
        try:
            identity = await self._accepted(notice, to)
        except NotDelivered as error:
            if _is_young(notice.at):
                raise
            self._log(notice, str(error))
            return
        mail = await find_message(self._ports.reading, identity, tenant=self._tenant)
        if mail is None or mail.state in FINISHED - {State.SENT}:
            self._log(notice, f"its mail ended as {mail.state if mail else 'erased'}")
        elif mail.state is not State.SENT:
            if _is_young(mail.created_at):
                raise HandedOver("its mail is not sent yet")
            self._log(notice, "its mail is not sent yet")

    async def repeat(self, firing: Sequence[Notice]) -> None:
        """Nothing: a mail stays."""

    def _has_room(self, notice: Notice) -> bool:
        """True if a mail may be sent, also if it is the same again."""
        now = datetime.now(UTC)
        self._mailed = {
            each: mailed for each, mailed in self._mailed.items() if abs(now - mailed[1]) < _HOUR
        }
        if not notice.tenant or notice.id in self._mailed:
            return True
        if sum(whose == notice.tenant for whose, _ in self._mailed.values()) >= MOST_OF_A_TENANT:
            return False
        self._mailed[notice.id] = notice.tenant, now
        return True

    async def _contact(self, notice: Notice) -> str | None:
        """The contact of a tenant; it gets the beginning and the end, the rest is for operators."""
        if not notice.tenant or notice.kind not in {NoticeKind.FIRING, NoticeKind.RESOLVED}:
            return None
        [found] = await self._ports.tenants.find([notice.tenant])
        return None if found is None else found.contact

    async def _accepted(self, notice: Notice, to: str) -> MessageId:
        """Accept the mail, or find it again."""
        is_admin = bool(self._to)
        title = notices.title if is_admin else notices.title_for_tenant
        text = notices.text if is_admin else notices.text_for_tenant
        try:
            await self._settle_in()
            [answer] = await self._accepting.items(
                [
                    {
                        "tenant": self._tenant,
                        "from": self._sender,
                        "to": to,
                        "subject": f"[Carteiro] {title(notice)}",
                        "text": text(notice),
                        "idempotency_key": f"{notice.id}-{self._name}",
                    }
                ]
            )
        except CarteiroError as error:
            raise NotDelivered(str(error)) from error
        return _mail_of(answer)

    async def _settle_in(self) -> None:
        """The tenant exists, and may use the sender."""
        tenants = self._ports.tenants
        [known] = await tenants.find([self._tenant])
        if known is None:
            own = Tenant(self._tenant, name="Carteiro", default_from=self._sender)
            await tenants.define([own])
        elif known.default_from != self._sender and not known.from_domains:
            await tenants.change(
                self._tenant, lambda stored: replace(stored, default_from=self._sender)
            )

    def _log(self, notice: Notice, why: str) -> None:
        notice_events.not_delivered(notice, self._name, why, notices.text(notice))


def _is_young(moment: datetime) -> bool:
    """True if people can still wait for the mail."""
    return datetime.now(UTC) - moment < SENT_WITHIN


def _mail_of(answer: SendAnswer) -> MessageId:
    match answer:
        case Accepted() | Replayed():
            return answer.id
        case KeyConflict():
            return answer.first  # it was accepted with the settings of that time
        case NotAccepted():
            why = f"{InvalidMessage(answer.fields)} (see notices.mail_from and notices.mail_tenant)"
        case NotStored():
            why = answer.reason
        case OverLimit():  # counted only over HTTP
            raise AssertionError(answer)
    raise NotDelivered(f"its mail is refused: {why}")
