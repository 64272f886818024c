"""One message: its life, why it waits, its mail; redrive, edit and cancel."""

import asyncio
from datetime import UTC, datetime

from starlette.responses import Response

from carteiro.api.cancelling import cancel
from carteiro.api.emails import message_id
from carteiro.api.key_ring import name_of
from carteiro.api.redriving import found_letter, redrive_one, redrive_revised, revised
from carteiro.api.refusal import Refusal, found
from carteiro.config import Settings
from carteiro.console.editing import changes_in, differences, editable
from carteiro.console.mail import email_in, mail_frame, shown_mail
from carteiro.console.page import Change, Pages, Show
from carteiro.console.timeline import draw, lines, read_timeline, rule_kind
from carteiro.console.visit import Visit
from carteiro.email.message import Email
from carteiro.errors import InvalidMessage
from carteiro.model import DEAD, EMAIL, FINISHED, EventType, StoredMessage
from carteiro.ports import Backend
from carteiro.runtime.messages import explain_message, note_cancel

_SHOW = "GET /admin/v1/messages/{id}"
_CANCEL = "POST /admin/v1/messages/{id}/cancel"
_REDRIVE = "POST /admin/v1/dead-letters/{id}/redrive"
_EDIT = "POST /admin/v1/dead-letters/{id}/edit"
_PHASES = ("wait", "work", "attempt", "doubt")


class MessagePages(Pages):
    """Pages of one message."""

    def __init__(self, backend: Backend, settings: Settings) -> None:
        self._backend = backend
        self._rules = settings.sending_rules
        self._plan = settings.automatic_plan

    @Show("messages/{id}", needs=_SHOW)
    async def show(self, visit: Visit) -> Response:
        """One message with everything that is known of it."""
        message = await self._found(visit)
        now = datetime.now(UTC)
        events = await self._backend.reading.events(message.id)
        timeline = read_timeline(events, begin=message.created_at, now=now)
        email = _email_of(message)
        mail = email and shown_mail(visit, email, message=message.id, revision=message.revision)
        names = _names(visit)
        title = visit.words("message.drawn", attempts=message.attempts)
        drawn = [draw(timeline, title, names=names, is_whole=False)]
        if timeline.is_longer:
            later = visit.words("message.drawn_later")
            drawn.append(draw(timeline, later, names=names, is_whole=True))
        letter = None
        if message.state in DEAD:
            letter = await self._backend.dead_letters.show(message.id)
        return visit.page(
            "message.html",
            message=message,
            told=await explain_message(self._backend, message, plan=self._plan, now=now),
            now=now,
            drawn=drawn,
            phases=_PHASES,
            lines=lines(timeline),
            left_out=len(events) - len(lines(timeline)),
            rule_kind=rule_kind,
            letter=letter,
            mail=mail,
            is_open=message.state not in FINISHED,
            is_dead=message.state in DEAD,
        )

    @Show("messages/{id}/mail", needs=_SHOW)
    async def mail(self, visit: Visit) -> Response:
        """The HTML of its mail, for a frame."""
        message = await self._found(visit)
        return mail_frame(visit, _email_of(message), page=f"messages/{message.id}")

    # What does not exist is not asked about: so these confirm by themselves.

    @Change("messages/{id}/cancel", needs=_CANCEL)
    async def cancel(self, visit: Visit) -> Response:
        """Cancel it, or prevent a second attempt."""
        message = await self._found(visit)
        if visit.form.get("confirmed") != "yes":
            return visit.page("confirm.html", question="message.sure_cancel")
        await note_cancel(self._backend.audit, message)
        answer = await cancel(self._backend.store, message, "message")
        is_done = answer.status_code == 200  # noqa: PLR2004 - else it was in flight
        flash = "message.cancelled" if is_done else "message.cancel_requested"
        return visit.to(f"messages/{message.id}", flash=flash)

    @Change("messages/{id}/redrive", needs=_REDRIVE)
    async def redrive(self, visit: Visit) -> Response:
        """Send a dead one again."""
        identity = (await self._found(visit)).id
        if visit.form.get("confirmed") != "yes":
            return visit.page("confirm.html", question="message.sure_redrive")
        by = name_of(visit.request)
        await redrive_one(self._backend, identity, tenant=visit.within(), by=by)
        return visit.to(f"messages/{identity}", flash="message.redriven")

    @Show("messages/{id}/edit", needs=_EDIT)
    async def ask_edit(self, visit: Visit) -> Response:
        """The parts of a dead letter that can be changed."""
        message = await self._found(visit)
        await found_letter(self._backend, message.id, tenant=visit.within())
        if not message.content:
            raise Refusal(409, visit.words("message.pruned"))
        fields = editable(message)
        return visit.page("message_edit.html", message=message, fields=fields, faults=())

    @Change("messages/{id}/edit", needs=_EDIT)
    async def edit(self, visit: Visit) -> Response:
        """Show what would change; if that was confirmed, send it again with these changes."""
        message = await self._found(visit)
        letter = await found_letter(self._backend, message.id, tenant=visit.within())
        if visit.form.get("revision") != str(message.revision):
            raise Refusal(409, visit.words("message.edited_meanwhile"))
        asked = editable(message, visit.form)
        try:
            changes = changes_in(message, visit.form)
            revision = await revised(self._backend, letter, changes, self._rules)
        except InvalidMessage as error:
            faults = error.fields
            return visit.page(
                "message_edit.html", status=422, message=message, fields=asked, faults=faults
            )
        if visit.form.get("confirmed") != "yes":
            # Off the loop: the time grows with the square of the lines.
            changed = await asyncio.to_thread(differences, editable(message), asked)
            return visit.page(
                "message_difference.html", message=message, fields=asked, changed=changed
            )
        await redrive_revised(self._backend, letter, revision, by=name_of(visit.request))
        return visit.to(f"messages/{message.id}", flash="message.edited")

    async def _found(self, visit: Visit) -> StoredMessage:
        identity = message_id(visit.path["id"], "message")
        reading = self._backend.reading
        return found(await reading.message(identity, tenant=visit.within()), "message")


def _email_of(message: StoredMessage) -> Email | None:
    return email_in(message.content) if message.kind == EMAIL else None


def _names(visit: Visit) -> dict[str, str]:
    """The words for phases and events."""
    phases = {each: visit.words(f"message.phase_{each}") for each in _PHASES}
    return phases | {each: visit.words(f"message.event_{each}") for each in EventType}
