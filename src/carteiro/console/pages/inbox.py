"""The inbox of the sandbox: its mails live, and one of them."""

from collections.abc import Awaitable, Callable

from starlette.responses import Response

from carteiro.api.inbox import MOST_DELIVERIES
from carteiro.api.refusal import bad_value, found, not_found
from carteiro.console.hub import Hub, Topic
from carteiro.console.listing import PAGE_ROWS, chips, cursor_in, text_in, time_in
from carteiro.console.mail import email_in, mail_frame, shown_mail
from carteiro.console.mail_files import mail_file
from carteiro.console.page import Change, Pages, Show
from carteiro.console.visit import Visit
from carteiro.model import InboxEntry, InboxFilter, InboxMail, MessageId, TenantId
from carteiro.ports import Inbox

_LIST = "GET /admin/v1/tenants/{tenant}/inbox"
_SHOW = "GET /admin/v1/tenants/{tenant}/inbox/{id}"
_DELETE = "DELETE /admin/v1/tenants/{tenant}/inbox/{id}"
_EMPTY = "DELETE /admin/v1/tenants/{tenant}/inbox"
_FILTERS = ("tenant", "to", "subject", "since")
_MOST_PAGES = 20  # of mails that one click deletes


class InboxPages(Pages):
    """The list of mails, and one of them."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox

    @Show("inbox", needs=_LIST)
    async def mails(self, visit: Visit) -> Response:
        """Matching mails; without filters but the tenant, the newest ones live."""
        wanted = InboxFilter(
            tenant=visit.within(text_in(visit, "tenant")),
            to=text_in(visit, "to"),
            subject=text_in(visit, "subject"),
            since=time_in(visit, "since"),
        )
        page = await self._inbox.find(wanted, cursor=cursor_in(visit), limit=PAGE_ROWS)
        is_whole = not any(each in visit.query for each in ("to", "subject", "since", "cursor"))
        may_empty = wanted.tenant is not None and visit.may(_EMPTY)
        return visit.page(
            "inbox.html",
            page=page,
            chips=chips(visit, "inbox", _FILTERS),
            topic=_topic_of(wanted.tenant, visit) if is_whole else None,
            emptied=wanted.tenant if may_empty else None,
        )

    @Change("inbox/empty", needs=_EMPTY, confirms="inbox.sure_all")
    async def empty(self, visit: Visit) -> Response:
        """Delete the mails of a tenant."""
        tenant = visit.within(visit.form.get("tenant"))
        if tenant is None:
            raise bad_value("tenant", "is needed")
        for _ in range(_MOST_PAGES):
            if not await self._inbox.empty(tenant):
                break
        return visit.to("inbox", flash="inbox.emptied")

    @Show("inbox/{id}", needs=_SHOW)
    async def show(self, visit: Visit) -> Response:
        """The newest delivery of a message."""
        mail = await self._found(visit)
        email = email_in(mail.content)
        return visit.page(
            "inbox_mail.html",
            delivered=mail,
            deliveries=await self._deliveries(mail),
            email=email,
            mail=email and shown_mail(visit, email, message=mail.message, revision=1),
            may_delete=visit.may(_DELETE),
        )

    @Show("inbox/{id}/mail", needs=_SHOW)
    async def mail(self, visit: Visit) -> Response:
        """Its HTML, for a frame."""
        mail = await self._found(visit)
        return mail_frame(visit, email_in(mail.content), page=f"inbox/{mail.message}")

    @Show("inbox/{id}/files/{number}", needs=_SHOW)
    async def file(self, visit: Visit) -> Response:
        """One of its attachments."""
        mail = await self._found(visit)
        return mail_file(email_in(mail.content), visit.path["number"])

    @Change("inbox/{id}/delete", needs=_DELETE, confirms="inbox.sure")
    async def delete(self, visit: Visit) -> Response:
        """Delete a mail, with all its deliveries."""
        mail = await self._found(visit)
        if not await self._inbox.delete(mail.message, tenant=mail.tenant):
            raise not_found("mail")
        return visit.to("inbox", flash="inbox.deleted")

    async def _found(self, visit: Visit) -> InboxMail:
        """The newest delivery alone: each has the whole content."""
        identity = MessageId(visit.path["id"])
        mails = await self._inbox.list(message=identity, tenant=visit.within(), limit=1)
        return found(next(iter(mails), None), "mail")

    async def _deliveries(self, mail: InboxMail) -> int:
        wanted = InboxFilter(mail.tenant, message=mail.message)
        return len((await self._inbox.find(wanted, limit=MOST_DELIVERIES)).rows)


def _topic_of(tenant: TenantId | None, visit: Visit) -> str:
    """The topic of the list: that of the viewer, or one of a tenant that they have chosen."""
    return "inbox" if tenant == visit.within() else f"inbox:{tenant}"


def offer_mails(hub: Hub, inbox: Inbox) -> None:
    """The newest mails, live: all that a viewer may see, or those of one tenant."""
    hub.offer(Topic("inbox", _LIST, _reader(inbox, None), _shown))
    hub.offer_each(
        "inbox",
        lambda about: Topic(f"inbox:{about}", _LIST, _reader(inbox, TenantId(about)), _shown),
    )


def _reader(
    inbox: Inbox, chosen: TenantId | None
) -> Callable[[TenantId | None], Awaitable[list[InboxEntry]]]:
    async def read(own: TenantId | None) -> list[InboxEntry]:
        if chosen is not None and own not in {None, chosen}:
            return []
        return (await inbox.find(InboxFilter(tenant=chosen or own), limit=PAGE_ROWS)).rows

    return read


def _shown(rows: list[InboxEntry], visit: Visit) -> str:
    return visit.rendered("inbox_rows.html", rows=rows, is_filtered=False)
