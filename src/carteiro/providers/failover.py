"""Failover between the providers of mail, each with a circuit breaker.

An attempt is declared with its provider, so that after a crash it is known which one may have the message. A message
fails over with its next attempt, which comes at once if another provider can take it.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta

import orjson

from carteiro import model
from carteiro.jobs.kind import Kind
from carteiro.observability import log
from carteiro.policy.addresses import mask_text
from carteiro.policy.breaker import Breaker, Round
from carteiro.policy.consequences import is_providers_own, may_open_breaker, throttles
from carteiro.policy.routing import ProviderHealth, Routes, choose, wait_for_another
from carteiro.providers.rate_limiter import Pacer

_MOST_REMEMBERED = 10_000  # messages; one that is forgotten may try a provider twice
# Without a wait, the message would be claimed again at once.
_NOT_AT_ONCE = timedelta(milliseconds=1)


@dataclass(eq=False)
class Link:
    """One provider of a chain, and what this process knows of its health and its pace.

    The life of a call: `take` when it is chosen, then `unused`, or `begin` before it and `heard` with what
    came of it. Without a pacer it is called as fast as there is mail.
    """

    name: str
    _pacer: Pacer | None
    _clock: Callable[[], float]
    _chance: Callable[[], float]
    _breaker: Breaker = field(default_factory=Breaker)
    _trouble_at: float | None = None
    _open_since: float | None = None

    @property
    def is_open(self) -> bool:
        """True if the circuit is open, or half open: one trial call at a time."""
        return self._breaker.is_open

    def health(self) -> ProviderHealth:
        """When it may be called, and how the last call went."""
        wait = self._breaker.wait(self._clock())
        if self._pacer is not None and not wait:
            wait = self._pacer.wait()
        return ProviderHealth(self.name, wait, self._breaker.is_suspect)

    def room(self) -> int | None:
        """The number of calls that can begin now: one trial if it is open; None: no limit."""
        if self.is_open:
            return 1
        return None if self._pacer is None else self._pacer.room()

    def standing(self) -> model.ProviderStanding:
        """Its state, for people."""
        rate, held_back = (
            (None, 0) if self._pacer is None else (self._pacer.rate, self._pacer.held_back)
        )
        return model.ProviderStanding(
            self.name, self.is_open, rate, held_back, self._trouble_at, self._open_since
        )

    def take(self) -> None:
        """It was chosen for a call; if that is a trial, nobody else has it chosen before it is made."""
        if self.is_open:
            self._breaker.begin(self._clock())
        if self._pacer is not None:
            self._pacer.take()

    def unused(self) -> None:
        """The call that it was chosen for is not made."""
        self._breaker.unused(self._clock())
        if self._pacer is not None:
            self._pacer.unused()

    def begin(self) -> Round:
        """A call is made."""
        return self._breaker.begin(self._clock())

    def heard(self, began: Round, outcome: model.Outcome) -> None:
        """Learn from a call: only the provider's own failures count against it."""
        failure = None if isinstance(outcome, model.Taken) else outcome.failure
        if self._pacer is not None:
            self._pacer.ended()
        if isinstance(outcome, model.NotMade):
            return
        if self._pacer is not None and failure is not None and throttles(failure):
            self._pacer.throttled()
        if failure is not None and _says_nothing(failure) and not self.is_open:
            return
        if failure is None or not may_open_breaker(failure):
            if self._breaker.succeeded(began):
                self._open_since = None
                log.provider_healed(self.name)
                if self._pacer is not None:
                    self._pacer.report(None)
        elif self._breaker.failed(began, self._clock(), self._chance()):
            self._is_left_alone(failure)

    def _is_left_alone(self, failure: model.Failure) -> None:
        wait = timedelta(seconds=self._breaker.wait(self._clock()))
        self._trouble_at = time.time()
        self._open_since = self._open_since or self._trouble_at
        log.provider_left_alone(self.name, failure.reason, wait=wait)
        if self._pacer is not None:
            self._pacer.report(mask_text(f"{failure.code}: {failure.reason}"), wait)


class Chain:
    """Kinds that send the same mail through different providers, and which of them is next."""

    def __init__(
        self,
        kinds: Mapping[str, Kind],
        routes: Routes,
        *,
        pacers: Mapping[str, Pacer] | None = None,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        paced = pacers or {}
        self._links = {name: Link(name, paced.get(name), clock, chance) for name in kinds}
        self._kinds = {
            name: replace(kind, link=self._links[name], chain=self) for name, kind in kinds.items()
        }
        links = list(self._links.values())
        self._sole = links[0] if len(links) == 1 and not paced else None  # as fast as there is mail
        self._routes = routes
        self._tried: dict[model.MessageId, tuple[str, ...]] = {}  # since the message last waited

    def choose(self, job: model.LeasedJob) -> Kind | timedelta:
        """The kind of the provider for the next attempt; or the wait until one of its route can be called.

        It takes a call of the chosen one: its link must learn the outcome, or that it was `unused`.
        """
        sole = self._sole
        if sole is not None and not sole.is_open:  # as usual: there is nothing to choose
            return self._kinds[sole.name]
        tried = self._tried.get(job.lease.job, ())
        chosen = choose(self._route(job), last=job.provider, tried=tried)
        if isinstance(chosen, str):
            self._links[chosen].take()
            return self._kinds[chosen]
        return max(_NOT_AT_ONCE, timedelta(seconds=chosen))

    def sent(self, job: model.LeasedJob) -> None:
        """A provider has taken the message."""
        if self._tried:
            self._tried.pop(job.lease.job, None)

    def elsewhere(self, job: model.LeasedJob, outcome: model.Outcome, by: str) -> timedelta | None:
        """The wait until another provider can take the message after this outcome; None: it stays.

        Each is tried once before the message waits by its retry policy. After a permanent refusal by the provider's own
        fault it waits for another provider, whatever that takes; otherwise it fails over at once or not at all.
        """
        tried = (*self._tried.pop(job.lease.job, ()), by)
        if not _leaves_it_to_others(outcome) or _is_in_doubt(job):
            return None
        wait = wait_for_another(self._route(job), tried)
        if wait is None or (wait and not isinstance(outcome, model.Rejected)):
            return None
        self._tried[job.lease.job] = tried
        if len(self._tried) > _MOST_REMEMBERED:
            self._tried.pop(next(iter(self._tried)))
        return timedelta(seconds=wait)

    def held_for(self) -> timedelta:
        """The wait until any provider can be called."""
        waits = []
        for link in self._links.values():
            waits.append(link.health().wait)
            if not waits[-1]:  # the others need not look for calls to be made
                break
        return timedelta(seconds=min(waits))

    @property
    def most_at_once(self) -> int | None:
        """The number of calls that can begin now, at least one; None: no limit."""
        rooms = [link.room() for link in self._links.values()]
        known = [room for room in rooms if room is not None]
        return max(1, sum(known)) if len(known) == len(rooms) else None

    def standings(self) -> list[model.ProviderStanding]:
        """The state of each provider, for people."""
        return [link.standing() for link in self._links.values()]

    def _route(self, job: model.LeasedJob) -> Iterator[ProviderHealth]:
        """The providers of a message in order; of one in doubt, the one that may have it, whatever its route is now."""
        if _is_in_doubt(job) and job.provider in self._links:
            return iter([self._links[job.provider].health()])
        type_ = _template_type(job.content) if self._routes.by_type else None
        return (self._links[name].health() for name in self._routes.of(job.tenant, type_))


def _is_in_doubt(job: model.LeasedJob) -> bool:
    """True if a provider may have it: then it goes to no other one, whatever that one answers later."""
    return bool(job.in_doubt or job.open_attempt)


def _leaves_it_to_others(outcome: model.Outcome) -> bool:
    """True if nothing was handed over for certain, and the message is not the cause."""
    if isinstance(outcome, model.NotMade):
        return True
    if not isinstance(outcome, model.Rejected | model.Deferred) or not is_providers_own(
        outcome.failure
    ):
        return False
    return not _says_nothing(outcome.failure)


def _says_nothing(failure: model.Failure) -> bool:
    """Throttling: the provider is reachable, and its health is otherwise unknown."""
    return throttles(failure) and not may_open_breaker(failure)


def _template_type(content: str | None) -> str | None:
    """Of what was stored; what cannot be read is refused later, by a validation of its own."""
    try:
        template = orjson.loads(content or "{}").get("template")
        return str(template["type"]) if template else None
    except (orjson.JSONDecodeError, AttributeError, TypeError, KeyError):
        return None
