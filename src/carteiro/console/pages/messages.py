"""Messages: one of them."""

from starlette.responses import Response

from carteiro.api.emails import message_id
from carteiro.api.refusal import found
from carteiro.console.mail import email_in, mail_frame, shown_mail
from carteiro.console.page import Pages, Show
from carteiro.console.visit import Visit
from carteiro.model import StoredMessage
from carteiro.ports import Backend

_SHOW = "GET /admin/v1/messages/{id}"


class MessagePages(Pages):
    """Pages of messages."""

    def __init__(self, backend: Backend) -> None:
        self._reading = backend.reading

    @Show("messages/{id}", needs=_SHOW)
    async def show(self, visit: Visit) -> Response:
        """One message, and its mail."""
        message = await self._found(visit)
        email = email_in(message.content)
        mail = email and shown_mail(visit, email, message=message.id, revision=message.revision)
        return visit.page("message.html", message=message, mail=mail)

    @Show("messages/{id}/mail", needs=_SHOW)
    async def mail(self, visit: Visit) -> Response:
        """The HTML of its mail, for a frame."""
        message = await self._found(visit)
        return mail_frame(visit, email_in(message.content), page=f"messages/{message.id}")

    async def _found(self, visit: Visit) -> StoredMessage:
        identity = message_id(visit.path["id"], "message")
        return found(await self._reading.message(identity, tenant=visit.within()), "message")
