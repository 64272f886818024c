"""Bounded labels: a scrape must not grow with the number of tenants or codes."""

from collections import Counter
from collections.abc import Mapping

from carteiro.model import TenantId
from carteiro.observability.metrics.definitions import OTHER

MOST_CODES = 100
LAST_ATTEMPT = 10  # later attempts are counted together

_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class Codes:
    """The first codes have labels of their own; later ones are `OTHER`."""

    def __init__(self, most: int = MOST_CODES) -> None:
        self._most = most
        self._named: set[str] = set()

    def label(self, code: str) -> str:
        """Return the code, or `OTHER`."""
        if code in self._named:
            return code
        if len(self._named) >= self._most:
            return OTHER
        self._named.add(code)
        return code


class TopTenants:
    """The tenants with the largest volume have labels of their own, the rest share one.

    A counter must not fall when a tenant gains or loses its label. So a count stays under the label
    that its tenant had at the time; a tenant that gets its label back starts at 0, as after a restart.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._volumes: Counter[TenantId] = Counter()
        self._named: frozenset[TenantId] = frozenset()

    def gather(self, fresh: Mapping[TenantId, int]) -> None:
        """Add the volumes since the last call, and choose the tenants with most."""
        if fresh:
            self._volumes.update(fresh)
            largest = self._volumes.most_common(self._most)
            self._named = frozenset(tenant for tenant, _ in largest)

    def add(self, sums: Counter[str], fresh: Mapping[TenantId, int]) -> None:
        """Add counts to the sums by label; drop labels no longer in use."""
        for tenant, count in fresh.items():
            sums[tenant if tenant in self._named else OTHER] += count
        for name in [each for each in sums if each not in self._named and each != OTHER]:
            del sums[name]


def attempt_label(number: int) -> str:
    """Return the label of an attempt."""
    return str(number) if number < LAST_ATTEMPT else f"{LAST_ATTEMPT}+"


def method_label(method: str) -> str:
    """Return a known method, or `OTHER`; clients may send any word."""
    return method if method in _METHODS else OTHER
