"""Dead letters: a list with filters, and its export."""

from starlette.responses import Response, StreamingResponse

from carteiro.api.body import JSON_LINES
from carteiro.api.refusal import bad_value
from carteiro.console.listing import (
    PAGE_ROWS,
    chips,
    choice_in,
    cursor_in,
    options,
    text_in,
    time_in,
)
from carteiro.console.page import Pages, Show
from carteiro.console.visit import Visit
from carteiro.model import Category, DeadFilter, DeadReason, KindName
from carteiro.ports import Backend
from carteiro.views.dead_letters import exported

_API = "/admin/v1/dead-letters"
FILTERS = (
    *("tenant", "kind", "reason", "code", "category", "group", "text"),
    *("after", "before", "redriven"),
)
_YES_NO = {None: None, "yes": True, "no": False}


class DeadLetterPages(Pages):
    """The list of dead letters."""

    def __init__(self, backend: Backend) -> None:
        self._letters = backend.dead_letters
        self._reading = backend.reading

    @Show("dead-letters/list", needs=f"GET {_API}")
    async def list(self, visit: Visit) -> Response:
        """Matching dead letters, newest first."""
        wanted = wanted_in(visit)
        page = await self._letters.find(
            wanted, cursor=cursor_in(visit), limit=PAGE_ROWS, is_whole=False
        )
        return visit.page(
            "dead_letters.html",
            page=page,
            chips=chips(visit, "dead_letters", FILTERS),
            reasons=options(visit, "dead_letters.reason", DeadReason),
            categories=options(visit, "dead_letters.category", Category),
            asked=asked_in(visit),
        )

    @Show("dead-letters/export", needs=f"GET {_API}/export")
    async def export(self, visit: Visit) -> Response:
        """Matching dead letters with content and history, as a file with one JSON document a line."""
        lines = await exported(self._letters, self._reading, wanted_in(visit))
        headers = {"Content-Disposition": 'attachment; filename="dead-letters.jsonl"'}
        return StreamingResponse(lines, headers=headers, media_type=JSON_LINES)


def asked_in(visit: Visit) -> dict[str, str]:
    """The filters of dead letters in the address, for another page about the same ones."""
    return {name: text for name, text in visit.query.items() if name in FILTERS}


def wanted_in(visit: Visit) -> DeadFilter:
    """The dead letters that the filters in the address are about, within the tenant of the viewer's token."""
    redriven = text_in(visit, "redriven")
    if redriven not in _YES_NO:
        raise bad_value("redriven", "should be yes or no")
    kind = text_in(visit, "kind")
    return DeadFilter(
        tenant=visit.within(text_in(visit, "tenant")),
        kind=None if kind is None else KindName(kind),
        reason=choice_in(visit, "reason", DeadReason),
        code=text_in(visit, "code"),
        category=choice_in(visit, "category", Category),
        group=text_in(visit, "group"),
        text=text_in(visit, "text"),
        moved_after=time_in(visit, "after"),
        moved_before=time_in(visit, "before"),
        is_redriven=_YES_NO[redriven],
    )
