"""Messages: the search, and its completion."""

from starlette.responses import Response

from carteiro.console.listing import cursor_in
from carteiro.console.message_search import asked_in, has_fields, known_values, look_up
from carteiro.console.page import Pages, Show
from carteiro.console.visit import Visit
from carteiro.model import State
from carteiro.policy.search import FIELDS, completions
from carteiro.ports import Backend

_LIST = "GET /admin/v1/messages"
_STATES = [each for each in State if each is not State.VALIDATION_FAILED]


class MessageSearchPages(Pages):
    """The list of messages."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @Show("messages", needs=_LIST)
    async def list(self, visit: Visit) -> Response:
        """Matching messages, newest first. Single fields become terms of the search."""
        asked = asked_in(visit, visit.query)
        if has_fields(visit.query):
            return visit.to(asked.list_address)
        if asked.meaning.message is not None and not asked.faults:
            return visit.to(f"messages/{asked.meaning.message}")
        found = None
        if not asked.faults:
            wanted, cursor = asked.meaning.wanted, cursor_in(visit)
            found = await look_up(self._backend.reading, wanted, cursor=cursor)
        words = visit.words
        states = [(each.lower(), words.term("messages", f"state_{each}")) for each in _STATES]
        return visit.page(
            "messages.html",
            asked=asked,
            found=found,
            fields=FIELDS,
            states=[("", words("shell.any")), *states],
            proposed=completions(asked.text, {}),
        )

    @Show("messages/complete", needs=_LIST)
    async def complete(self, visit: Visit) -> Response:
        """Continuations of the search in the address: its last word completed."""
        asked = asked_in(visit, {"q": visit.query.get("q", "")})
        known = await known_values(self._backend, visit, asked.text)
        proposed = completions(asked.text, known)
        return visit.page("messages_complete.html", asked=asked, proposed=proposed, fields=FIELDS)
