"""The time that jobs which may kill their worker get of it: at most a twentieth, tenants taking turns.

Pure: seconds of any clock come from the caller. A suspect runs when nothing else of its process does, so its time
is taken from all tenants. After each, others have fifty times as long, which leaves room in the twentieth for the
claims of postponed suspects. A new worker begins with a debt, for its predecessor may have died of a suspect.
"""

from carteiro.model import TenantId

OTHERS = 50  # times as long as a suspect took
LONGEST_WAIT_S = 3600.0
_LEAST_GAP_S = 0.1  # between two suspects: each costs a claim, too


class Ration:
    """Schedules suspects: each may run now, or gets the time to wait.

    Each tenant has its own line, so that a thousand suspects of one do not delay the single one of another,
    and none of them is claimed much more often than it can be run.
    """

    def __init__(self, now: float, *, debt: float = 0.0) -> None:
        self._next_at = now + debt
        self._period = _LEAST_GAP_S  # from one to the next
        self._turn_at: dict[TenantId, float] = {}  # of tenants that had a suspect run
        self._last_at: dict[TenantId, float] = {}  # when the last of a tenant's line is to come

    def wait(self, tenant: TenantId, now: float, *, is_taken: bool = False) -> float:
        """Seconds until a suspect of the tenant may run; 0: now, unless another one runs."""
        first_at = max(self._next_at, self._turn_at.get(tenant, 0.0))
        if now >= first_at and not is_taken:
            return 0.0
        self._last_at = {each: at for each, at in self._last_at.items() if at > now}
        behind = self._last_at.get(tenant)
        soonest = max(first_at, now + self._period) if is_taken else first_at
        if behind is None:  # after the first suspect of each tenant that is in line
            at = soonest + self._period * len(self._last_at)
        else:
            at = max(soonest, behind + self._spacing(tenant))
        self._last_at[tenant] = min(at, now + LONGEST_WAIT_S)
        return self._last_at[tenant] - now

    def spent(self, tenant: TenantId, now: float, *, seconds: float) -> None:
        """Charge the time that a suspect of the tenant took."""
        gap = max(_LEAST_GAP_S, seconds * OTHERS)
        self._period = seconds + gap
        self._next_at = now + gap
        self._turn_at = {each: at for each, at in self._turn_at.items() if at > now}
        self._turn_at[tenant] = now - seconds + self._spacing(tenant)

    def _spacing(self, tenant: TenantId) -> float:
        """One period for each tenant in line, so that each has its turn."""
        return self._period * len({*self._last_at, tenant})
