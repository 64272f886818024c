"""Tenants: their limits, their turns and their standing."""

import re
from datetime import datetime, timedelta
from ipaddress import ip_network

from carteiro.model.basics import ZERO, KindName, TenantId, value

# Carteiro's own, which sends notices by e-mail: no part of figures, groups and redrives of all tenants.
NOTICES = TenantId("carteiro-notices")

LIGHTEST, HEAVIEST = 1e-6, 1e6  # weights
LARGEST_CAP = LARGEST_BATCH = 1_000_000  # jobs
_SLOWEST, _FASTEST = 1e-6, 1e6  # jobs a second
_MOST_SENDS, _LONGEST_WINDOW = 1_000_000_000, timedelta(days=366)
_LONGEST_DOMAIN = 253
_DOMAIN = re.compile(r"[^\W_](?:[\w-]*[^\W_])?(?:\.[^\W_](?:[\w-]*[^\W_])?)+")  # of any script


@value
class ApiLimits:
    """Maximum number of messages over HTTP in a minute, an hour, a day (UTC); None: no limit."""

    per_minute: int | None = 100
    per_hour: int | None = 2_000
    per_day: int | None = 10_000

    @property
    def has_any(self) -> bool:
        """True if at least one limit is set."""
        return (self.per_minute, self.per_hour, self.per_day) != (None, None, None)

    def check(self) -> None:
        """Raise ValueError if a limit is out of range."""
        for name in ("per_minute", "per_hour", "per_day"):
            given = getattr(self, name)
            if given is not None and not 0 <= given <= _MOST_SENDS:
                raise ValueError(f"{name} must be 0 to {_MOST_SENDS}")


@value
class StorageLimit:
    """The tenant reached a storage limit: it must delete something first."""

    what: str
    most: int


@value
class Tenant:
    """A sender, and its share of the capacity. Its own weight overrides that of its tier."""

    id: TenantId
    name: str = ""
    tier: str | None = None
    weight: float | None = None
    cap: int | None = None  # most jobs in flight
    rate_per_second: float | None = None
    paused: bool = False
    disabled: bool = False  # accepts nothing, its keys do not work, waiting jobs are held
    default_from: str | None = None
    from_domains: tuple[str, ...] = ()  # () allows any
    allowed_networks: tuple[str, ...] = ()  # () allows any
    limits: ApiLimits | None = None  # None: as configured
    retry_preset: str | None = None  # None: as configured
    external_id_is_key: bool = False
    contact: str | None = None  # address for notices about the tenant
    automatic_redrive: bool = True  # of dead letters whose provider has recovered

    @property
    def is_held(self) -> bool:
        """True if waiting jobs are not started."""
        return self.paused or self.disabled

    def check(self) -> None:
        """Raise ValueError if a field is invalid; the message begins with the field."""
        if self.weight is not None and not LIGHTEST <= self.weight <= HEAVIEST:
            raise ValueError(f"weight must be {LIGHTEST:g} to {HEAVIEST:g}")
        if self.cap is not None and not self._is_cap(self.cap):
            raise ValueError(f"cap must be a whole number from 1 to {LARGEST_CAP}")
        if self.rate_per_second is not None and not _SLOWEST <= self.rate_per_second <= _FASTEST:
            raise ValueError(f"rate_per_second must be {_SLOWEST:g} to {_FASTEST:g}")
        if self.limits is not None:
            self.limits.check()
        self._check_places()

    @staticmethod
    def _is_cap(given: object) -> bool:
        return isinstance(given, int) and 1 <= given <= LARGEST_CAP

    def _check_places(self) -> None:
        for field in ("default_from", "contact"):
            address = getattr(self, field)
            if address is not None and not _is_address(address):
                raise ValueError(f"{field} must be an e-mail address")
        for domain in self.from_domains:
            if not _is_domain(domain):
                raise ValueError(f"from_domains must be names of domains: {domain!r} is not one")
        for network in self.allowed_networks:
            try:
                ip_network(network)
            except ValueError as error:
                raise ValueError(f"allowed_networks must be IP networks: {error}") from None


def _is_address(text: str) -> bool:
    local, _, domain = text.rpartition("@")
    return bool(local) and _is_domain(domain)


def _is_domain(text: str) -> bool:
    return len(text) <= _LONGEST_DOMAIN and _DOMAIN.fullmatch(text) is not None


@value
class Fairness:
    """Settings of the tenants' turns; names and defaults are those of the settings."""

    enable_round_robin: bool = True
    max_jobs_per_tenant_batch: int = 3
    round_robin_base_priority: int = 5
    priority_increment_per_round: int = 1
    max_round_robin_priority: int = 1

    def check(self) -> None:
        """Raise ValueError if a setting is out of range."""
        if not 1 <= self.max_jobs_per_tenant_batch <= LARGEST_BATCH:
            raise ValueError(f"max_jobs_per_tenant_batch must be 1 to {LARGEST_BATCH}")
        if min(self.round_robin_base_priority, self.max_round_robin_priority) < 1:
            raise ValueError("round-robin priorities must be at least 1")
        if self.priority_increment_per_round < 0:
            raise ValueError("priority_increment_per_round must not be below 0")


@value
class SendLimit:
    """At most ``count`` jobs of a kind in any period of length ``per``, over all workers."""

    count: int
    per: timedelta

    def check(self) -> None:
        """Raise ValueError if the limit is out of range."""
        if not 1 <= self.count <= _MOST_SENDS or not ZERO < self.per <= _LONGEST_WINDOW:
            raise ValueError(f"a send limit is 1 to {_MOST_SENDS} jobs in up to {_LONGEST_WINDOW}")


@value
class Standing:
    """A tenant's standing among the others, for one kind.

    ``consecutive_batch_count`` is the number of jobs in its last turn, at most the batch size. Rounds
    count while it has jobs to claim; with none, or while it is held, it has no rounds and the base priority.
    """

    tenant: TenantId
    kind: KindName
    last_processed_at: datetime | None
    rounds_without_processing: int
    current_priority: int
    total_processed: int
    consecutive_batch_count: int
    waiting: int
    in_flight: int
