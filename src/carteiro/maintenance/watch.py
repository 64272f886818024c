"""The conditions of alerts that hold now, by what the store has: figures by minute, dead letters, leads and reports.

The number of statements is constant. Figures are read as folded, which upkeep does every few seconds. Only dead letters
are counted, whose number is bounded. A past minute keeps the most active templates (`rollups.max_tenants`): one below
them is not found to fail, while the totals, and the dead letters of its tenant, are complete.
"""

from datetime import UTC, datetime

from carteiro.model.alerts import Finding
from carteiro.policy.alert_values import DAY, HOUR, Seen, Thresholds, added
from carteiro.policy.alerts import MOST_SUBJECTS, holding
from carteiro.ports import Backend

# The leads under which alerts are evaluated, and notices are sent; `Upkeep.last_seen` leaves them out.
EVALUATION, SENDING = "alerts", "notices"


async def findings(
    backend: Backend, thresholds: Thresholds, *, now: datetime | None = None
) -> list[Finding]:
    """The conditions that hold now."""
    return holding(await look(backend, thresholds, now=now), thresholds)


async def look(backend: Backend, thresholds: Thresholds, *, now: datetime | None = None) -> Seen:
    """Read everything that conditions depend on."""
    dead, most = await backend.dead_letters.sizes(top=MOST_SUBJECTS)
    yesterday = (await backend.rollups.minutes(DAY + HOUR, until=DAY)).values()
    requests = backend.table_queue
    return Seen(
        now=now or datetime.now(UTC),
        minutes=await backend.rollups.minutes(HOUR),
        yesterday=added(yesterday),
        templates=await backend.rollups.worst(
            HOUR, least=thresholds.min_messages, limit=MOST_SUBJECTS
        ),
        dead=dead,
        dead_by_tenant=most,
        last_upkeep=await backend.upkeep.last_seen(),
        reports=await backend.reports.show(),
        has_queue=backend.queue is not None,
        table_queue_pending=None if requests is None else await requests.pending(),
    )
