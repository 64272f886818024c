"""Providers: their health and figures, their order, and a box that explains an answer."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from starlette.responses import Response

from carteiro.api.intake import Office
from carteiro.config.providers import answers
from carteiro.console.page import Pages, Show
from carteiro.console.visit import Visit
from carteiro.errors import CarteiroError
from carteiro.model import History, ProviderRate, value
from carteiro.model.figures import Figures
from carteiro.policy import consequences, kpis
from carteiro.policy.history import PAUSES, by_attempt, by_slot, messages, redriven, span
from carteiro.policy.rollups import DELAYS
from carteiro.policy.stage import Stage
from carteiro.policy.wilson import bounds
from carteiro.providers.answers import is_success
from carteiro.providers.email_kind import routes_of
from carteiro.providers.explaining import Asked, explained, history_of, names_of_answers
from carteiro.views.fairness import RANGES
from carteiro.views.kpis import Range, by_code

_NEEDS: Final = "GET /admin/v1/stats"
_BACK = {Range.HOUR: timedelta(hours=1), Range.DAY: timedelta(days=1)}
_LONGEST_ANSWER = 4000
_MOST_CODES = 5


@value
class Health:
    """A provider of a route, with what is known of it; ``p95`` None: nothing was sent, or it is longer than known."""

    name: str
    rate: ProviderRate | None
    sent: int
    failed: int
    attempts_failed: int
    errors: list[tuple[str, int]]
    mean: timedelta | None
    p95: timedelta | None


@value
class Told:
    """A share of messages that were sent, with the bounds of Wilson's interval."""

    what: str
    count: int
    sent: int
    low: float
    high: float


class ProviderPages(Pages):
    """The page of providers."""

    def __init__(self, office: Office) -> None:
        self._settings = office.settings
        self._ports = office.backend

    @Show("providers", needs=_NEEDS)
    async def show(self, visit: Visit) -> Response:
        """All providers of the routes, and others with a record; and the verdict on an answer, if there is one."""
        asked = next((each for each in RANGES if each == visit.query.get("range")), Range.HOUR)
        span_, _ = RANGES[asked]
        figures = await self._ports.rollups.split("provider", span_, _BACK[asked])
        rates = {each.provider: each for each in await self._ports.rates.show()}
        routes = routes_of(self._settings)
        names = dict.fromkeys([*routes.names, *sorted(rates), *sorted(figures)])
        verdict, fault = await self._verdict(visit)
        return visit.page(
            "providers.html",
            range=asked,
            ranges=RANGES,
            providers=[_health(name, rates.get(name), figures.get(name)) for name in names],
            routes=routes,
            kinds=[(each, each) for each in names_of_answers()],
            stages=[(each.value, each.value) for each in Stage],
            verdict=verdict,
            fault=fault,
        )

    async def _verdict(self, visit: Visit) -> tuple[dict[str, object] | None, str]:
        """The verdict on the answer in the address; or a word that says why there is none."""
        text = visit.query.get("answer", "").strip()
        if not text:
            return None, ""
        asked = Asked(
            text[:_LONGEST_ANSWER],
            visit.query.get("provider", ""),
            next((each for each in Stage if each == visit.query.get("stage")), None),
        )
        if (fault := _fault_of(asked)) is not None:
            return None, fault
        told = await asyncio.to_thread(explained, asked, self._settings)  # hundreds of expressions
        try:
            failures = {told.judged, told.failure}
            history = await history_of(
                asked, failures, told.provider, self._settings, self._ports.failures
            )
        except CarteiroError:  # the verdict does not need it
            history = None
        return {
            "told": told,
            "failure": told.failure,
            "throttles": consequences.throttles(told.failure),
            "opens": consequences.may_open_breaker(told.failure),
            "most_resends": self._settings.delivery.max_in_doubt_resends,
            "learn": self._settings.retry.learn,
            "history": None if history is None or not history.days else _history(history),
        }, ""


def _fault_of(asked: Asked) -> str | None:
    if asked.provider and asked.provider not in names_of_answers():
        return "providers.unknown_provider"
    if is_success(asked.answer):
        return "providers.is_success"
    if asked.stage and asked.provider and not answers()[asked.provider].is_smtp:
        return "providers.stage_of_smtp"
    return None


def _health(name: str, rate: ProviderRate | None, figures: Figures | None) -> Health:
    known = figures or Figures()
    sent = kpis.count(known, "sent")
    codes = by_code(known, "error.")
    return Health(
        name,
        rate,
        sent,
        kpis.count(known, "failed"),
        sum(codes.values()),
        list(codes.items())[:_MOST_CODES],
        timedelta(milliseconds=known["delay_ms"] // sent) if sent else None,
        _percentile(known, sent),
    )


def _percentile(figures: Mapping[str, int], sent: int) -> timedelta | None:
    """The bound that 95 % of the sent messages stayed below."""
    left = sent * 0.95
    for slot, bound in enumerate(DELAYS):
        left -= figures.get(f"delay.{slot}", 0)
        if sent and left <= 0:
            return timedelta(milliseconds=bound)
    return None


def _history(history: History) -> dict[str, object]:
    """The results of messages that failed like this and were tried again."""
    return {
        "days": span(history),
        "again": _told("", *messages(history)),
        "redriven": _told("", *redriven(history)),
        "attempts": [_told(str(number), *each) for number, each in by_attempt(history).items()],
        "waits": [(_slot(number), _told("", *each)) for number, each in by_slot(history).items()],
    }


def _told(what: str, count: int, sent: int) -> Told:
    return Told(what, count, sent, *bounds(sent, count))


def _slot(number: int) -> tuple[timedelta | None, timedelta | None]:
    low, high = (None, *PAUSES)[number], (*PAUSES, None)[number]
    return tuple(None if each is None else timedelta(milliseconds=each) for each in (low, high))  # type: ignore[return-value]
