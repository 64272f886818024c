"""The start page: charts, key figures, alerts, providers and failures, live; on a new installation the first steps."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from carteiro.api.intake import Office, refused
from carteiro.api.refusal import Refusal
from carteiro.config import spec_of
from carteiro.config.values import provider_names
from carteiro.console import charts, moments
from carteiro.console.charts import Series
from carteiro.console.hub import Hub, Topic
from carteiro.console.listing import choice_in, text_in
from carteiro.console.overview import Overview, Overviews, Point
from carteiro.console.page import Change, Pages, Show
from carteiro.console.visit import Visit
from carteiro.model import Accepted, MessageFilter, NotStored, Replayed, TenantId
from carteiro.views.kpis import Range

_NEEDS = "GET /admin/v1/kpis"
_FIRST_TENANT = TenantId("default")
_EVERY = 5  # ticks: figures are added up every ten seconds
_UNITS = ((2.0, "ms", 1000.0), (600.0, "s", 1.0), (float("inf"), "min", 1 / 60))


class OverviewPages(Pages):
    """The start page."""

    def __init__(self, office: Office, overviews: Overviews) -> None:
        self._office = office
        self._overviews = overviews
        self._reading = office.backend.reading
        self._tenants = office.backend.tenants

    @Show("", needs=_NEEDS)
    async def show(self, visit: Visit) -> Response:
        """The figures of a range: of all tenants, or of one."""
        asked = choice_in(visit, "range", Range) or Range.HOUR
        tenant = visit.within(text_in(visit, "tenant"))
        seen = await self._overviews.of(asked, tenant)
        is_new = (
            seen.is_quiet
            and not (await self._reading.messages(MessageFilter(tenant=tenant), limit=1)).rows
        )
        # A stream is of the tenant of the token: one that was chosen here is not live.
        is_live = tenant == visit.within()
        return visit.page(
            "overview.html",
            ranges=[*Range],
            is_new=is_new,
            is_live=is_live,
            keeps_mail=self._keeps_mail,
            provider=self._office.settings.provider,
            **_values(seen, visit),
        )

    @Change("first-mail", needs="PUT /admin/v1/tenants/{tenant}")
    async def send_first(self, visit: Visit) -> Response:
        """Send a first mail to the sandbox, which keeps it; refused where mail leaves the machine."""
        if not self._keeps_mail:
            raise Refusal(409, visit.words("overview.first_is_real"))
        known = (await self._tenants.list(limit=1)).rows
        mail = {
            "tenant": known[0].id if known else _FIRST_TENANT,
            "to": "ana@example.com",
            "subject": visit.words("overview.first_subject"),
            "text": visit.words("overview.first_text"),
        }
        [answer] = await self._office.accepting.items([mail])
        if isinstance(answer, NotStored):
            raise Refusal(503, answer.reason)
        if not isinstance(answer, Accepted | Replayed):
            raise refused(answer)
        return visit.to("", flash="overview.first_sent")

    @property
    def _keeps_mail(self) -> bool:
        settings = self._office.settings
        keeps = [spec_of(name).features.keeps_mail for name in provider_names(settings.provider)]
        return all(keeps) and not settings.has_network_provider


def offer_overviews(hub: Hub, overviews: Overviews) -> None:
    """The start page of each range, live."""

    def topic(about: str) -> Topic | None:
        if about not in set(Range):
            return None

        async def read(tenant: TenantId | None) -> Overview:
            return await overviews.of(Range(about), tenant)

        return Topic(f"overview:{about}", _NEEDS, read, _shown, every=_EVERY)

    hub.offer_each("overview", topic)


def _shown(seen: Overview, visit: Visit) -> str:
    return visit.rendered("overview_now.html", **_values(seen, visit))


def _values(seen: Overview, visit: Visit) -> dict[str, Any]:
    """The values of the live part."""
    points, words = seen.points, visit.words
    labels = _labels(seen, visit)
    unit, delays = _delays(points, visit)
    drawn = [
        _chart(words("overview.chart_in"), labels, points, visit, "accepted", "sent"),
        _chart(words("overview.chart_wrong"), labels, points, visit, "retried", "failed"),
        charts.line(words("overview.chart_delay", unit=unit), labels, delays),
    ]
    if seen.tenant is None:
        ages = Series(words("overview.queue_age"), tuple(each.queue_age_s for each in points), 5)
        drawn += [
            charts.line(words("overview.chart_age"), labels, [ages], filled=True),
            _chart(words("overview.chart_in_flight"), labels, points, visit, "in_flight"),
        ]
    return {"seen": seen, "drawn": drawn, "totals": _totals(points)}


_COLOURS = {"accepted": 1, "sent": 2, "retried": 3, "failed": 4, "in_flight": 6}


def _chart(
    title: str, labels: Sequence[str], points: Sequence[Point], visit: Visit, *names: str
) -> Markup:
    lines = [
        Series(
            visit.words.texts[f"overview.{name}"],
            tuple(getattr(each, name) for each in points),
            _COLOURS[name],
        )
        for name in names
    ]
    return charts.line(title, labels, lines, filled=len(names) == 1)


def _delays(points: Sequence[Point], visit: Visit) -> tuple[str, list[Series]]:
    """The unit in which they are easy to read, and the lines."""
    longest = max((each.p95 for each in points if each.p95 is not None), default=0.0)
    unit, factor = next((unit, factor) for below, unit, factor in _UNITS if longest < below)

    def line(name: str, values: Sequence[float | None], colour: int) -> Series:
        return Series(name, tuple(None if v is None else v * factor for v in values), colour)

    return unit, [
        line(visit.words("overview.p50", unit=unit), [each.p50 for each in points], 2),
        line(visit.words("overview.p95", unit=unit), [each.p95 for each in points], 3),
    ]


def _labels(seen: Overview, visit: Visit) -> list[str]:
    def label(local: datetime) -> str:
        day = moments.day(local, visit.words.language)
        by_day = {Range.WEEK: f"{day} {local:%H:%M}", Range.MONTH: day}
        return by_day.get(seen.range, f"{local:%H:%M}")

    return [label(each.at.astimezone(visit.zone)) for each in seen.points]


def _totals(points: Sequence[Point]) -> dict[str, int]:
    return {
        name: sum(getattr(each, name) for each in points)
        for name in ("accepted", "sent", "retried", "failed")
    }
