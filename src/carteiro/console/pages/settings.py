"""Settings: the effective value of each, and where it came from."""

from starlette.responses import Response

from carteiro.config import Settings
from carteiro.config.effective import effective, lines
from carteiro.console.listing import text_in
from carteiro.console.page import Pages, Show
from carteiro.console.visit import Visit
from carteiro.ports import Tenants

_LONGEST = 300  # characters of a value


class SettingPages(Pages):
    """The page of settings of this process; secrets are masked."""

    def __init__(self, settings: Settings, tenants: Tenants) -> None:
        self._settings = settings
        self._tenants = tenants

    @Show("settings", needs="GET /admin/v1/fairness")
    async def show(self, visit: Visit) -> Response:
        """Those whose key has a text in it, all, or only those that are not the default."""
        fairness, is_override = await self._tenants.fairness()
        given = effective(self._settings, fairness if is_override else None)
        part, is_all = text_in(visit, "key"), "all" in visit.query
        rows = [
            (key, value[:_LONGEST], row.origin)
            for row in given
            if is_all or part is not None or row.origin != "default"
            for key, value in lines(row)
            if part is None or part.lower() in key
        ]
        return visit.page("settings.html", rows=rows, is_all=is_all, part=part, total=len(given))
