"""The providers of mail, each with a breaker: an attempt goes to one of them, the next one perhaps to another.

An attempt is declared with the provider that it goes to, so that whoever finds it open knows who may have the
message. So a message fails over by its next attempt, which comes at once if another provider can take it.
"""

import random
import time
from collections.abc import Callable, Mapping
from datetime import timedelta

import orjson

from carteiro.kinds import Kind
from carteiro.model import Failure, LeasedJob, NotMade, Outcome, Taken
from carteiro.policy.breaker import Breaker, Round
from carteiro.policy.consequences import may_open_breaker, throttles
from carteiro.policy.routing import Health, Routes, choose
from carteiro.telemetry import log

_NOT_AT_ONCE = timedelta(
    milliseconds=1
)  # a wait that is none would be claimed again in the same moment


class Link:
    """One provider of a chain, and what this process knows of its health.

    The life of a call: `begin` before it, `heard` with what came of it.
    """

    def __init__(self, name: str, clock: Callable[[], float], chance: Callable[[], float]) -> None:
        self.name = name
        self._clock = clock
        self._chance = chance
        self._breaker = Breaker()

    @property
    def is_open(self) -> bool:
        """Whether it is left alone, or tried with one call at a time."""
        return self._breaker.is_open

    def health(self) -> Health:
        """When it may be called, and how the last call went."""
        return Health(self.name, self._breaker.wait(self._clock()), self._breaker.is_suspect)

    def begin(self) -> Round:
        """A call is made."""
        return self._breaker.begin(self._clock())

    def heard(self, began: Round, outcome: Outcome) -> None:
        """Learn from a call: only what the provider itself is to blame for speaks against it."""
        failure = None if isinstance(outcome, Taken) else outcome.failure
        if isinstance(outcome, NotMade) or (failure and _says_nothing(failure)):
            return
        if failure is None or not may_open_breaker(failure):
            if self._breaker.succeeded(began):
                log.provider_healed(self.name)
        elif self._breaker.failed(began, self._clock(), self._chance()):
            wait = timedelta(seconds=self._breaker.wait(self._clock()))
            log.provider_left_alone(self.name, failure.reason, wait=wait)


class Chain:
    """Kinds that send the same mail through different providers, and which of them is next."""

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        routes: Routes,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._links = {name: Link(name, clock, chance) for name in kinds}
        self._kinds = {name: kind.through(self._links[name], self) for name, kind in kinds.items()}
        self._routes = routes

    def choose(self, job: LeasedJob) -> Kind | timedelta:
        """The kind whose provider the next attempt goes to, or how long none of its route can be called."""
        in_doubt = bool(job.in_doubt or job.open_attempt)
        chosen = choose(self._route(job), last=job.provider, in_doubt=in_doubt)
        if isinstance(chosen, str):
            return self._kinds[chosen]
        return max(_NOT_AT_ONCE, timedelta(seconds=chosen))

    def has_other(self, job: LeasedJob, than: str) -> bool:
        """Whether another provider of the message's route can be called now."""
        return any(each.name != than and not each.wait for each in self._route(job))

    def held_for(self) -> timedelta:
        """How long nobody at all can be called."""
        waits = [link.health().wait for link in self._links.values()]
        return timedelta(seconds=min(waits))

    @property
    def most_at_once(self) -> int | None:
        """How many calls there can be when all are open: one trial each; None: no matter how many."""
        links = self._links.values()
        return len(links) if all(link.is_open for link in links) else None

    def _route(self, job: LeasedJob) -> list[Health]:
        type_ = _template_type(job.content) if self._routes.by_type else None
        return [self._links[name].health() for name in self._routes.of(job.tenant, type_)]


def _says_nothing(failure: Failure) -> bool:
    """Told to be slower: that says neither that it is well nor that it is not."""
    return throttles(failure) and not may_open_breaker(failure)


def _template_type(content: str | None) -> str | None:
    """Of what was stored; what cannot be read is refused later, by a validation of its own."""
    try:
        template = orjson.loads(content or "{}").get("template")
        return str(template["type"]) if template else None
    except (orjson.JSONDecodeError, AttributeError, TypeError, KeyError):
        return None
