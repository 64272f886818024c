"""The metrics of one post office: each metric of `definitions` with its labels and values."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from time import time

from carteiro.model import FINISHED, State
from carteiro.observability.metrics import definitions as the
from carteiro.observability.metrics.definitions import Metric
from carteiro.observability.metrics.exposition import Figures, page
from carteiro.observability.metrics.gauges import Gauges, Reading
from carteiro.observability.metrics.labels import TopTenants, attempt_label
from carteiro.observability.metrics.tally import Tally
from carteiro.ports import Backend

_OUTCOMES = {
    "Rejected": "rejected",
    "Deferred": "deferred",
    "Unknown": "unknown",
    "NotMade": "not_made",
}


class Metrics:
    """The counts of this process, and the gauges of its store.

    ``top`` is the number of tenants with a label of their own; see `TopTenants`. ``least`` is the number of messages
    of a template from which on its share of failed ones is shown.
    """

    def __init__(self, backend: Backend, tally: Tally, *, top: int, least: int) -> None:
        self._tally = tally
        self._gauges = Gauges(backend, top=top, least=least)
        self._most = top
        self._top = TopTenants(top)
        self._processed: Counter[str] = Counter()
        self._dead: Counter[str] = Counter()

    async def exposition(self) -> bytes:
        """Render the page, whatever state the store is in."""
        reading = await self._gauges.read()
        counted = self._attempts() | self._pipeline() | self._tenants() | self._calls()
        return page(counted | shown(reading, top=self._most))

    def _attempts(self) -> dict[Metric, Figures]:
        tally = self._tally
        made = _by_attempt(tally.attempts.items())
        sent = _by_attempt(each for each in tally.attempts.items() if each[0][1] is State.SENT)
        return {
            the.RETRY_ATTEMPTS: made,
            the.ATTEMPTS_FAILED: sum(made.values()) - sum(sent.values()),
            the.RETRY_SUCCESS_RATE: {key: sent.get(key, 0) / made[key] for key in made},
            the.RETRY_BACKOFF_DELAY: tally.backoffs,
            the.ATTEMPT_INTERVAL: tally.intervals,
            the.ERRORS: tally.errors,
            the.IN_DOUBT: tally.in_doubt,
            the.LATE_RESULTS: tally.late,
            the.LEASES_LOST: tally.lost,
        }

    def _pipeline(self) -> dict[Metric, Figures]:
        tally = self._tally
        moves = {state: tally.moves[state] for state in State}
        return {
            the.PIPELINE_STATE_TRANSITIONS: moves,
            the.PIPELINE_FINAL_STATE: {state: moves[state] for state in State if state in FINISHED},
            the.PIPELINE_VALIDATION_FAILURES: tally.unfit,
            the.PIPELINE_PROCESSING_DURATION: tally.durations,
            the.PIPELINE_RETRY_COUNT: tally.retries,
            the.DLQ_ENTRIES: tally.dead,
            the.DLQ_AGE: tally.dead_ages,
            the.DLQ_BY_ERROR_CODE: tally.dead_codes,
        }

    def _tenants(self) -> dict[Metric, Figures]:
        tally = self._tally
        self._top.gather(tally.tenants)
        self._top.add(self._processed, tally.tenants)
        self._top.add(self._dead, tally.dead_tenants)
        tally.tenants.clear()
        tally.dead_tenants.clear()
        return {the.TENANT_JOBS_PROCESSED: self._processed, the.DLQ_BY_COMPANY: self._dead}

    def _calls(self) -> dict[Metric, Figures]:
        tally = self._tally
        known = {each.provider: each for each in tally.providers()}
        troubles = {name: each.trouble_at for name, each in known.items()}
        rates = {name: each.rate for name, each in known.items()}
        return {
            the.PROVIDER_LATENCY: tally.calls,
            the.PROVIDER_ERRORS: {
                (provider, _OUTCOMES[outcome]): count
                for (provider, outcome), count in tally.refusals.items()
            },
            the.PROVIDER_OPEN: {name: each.is_open for name, each in known.items()},
            the.PROVIDER_OPEN_SECONDS: {n: _since(each.open_since) for n, each in known.items()},
            the.PROVIDER_TROUBLE: {n: each for n, each in troubles.items() if each is not None},
            the.PROVIDER_RATE: {name: each for name, each in rates.items() if each is not None},
            the.PROVIDER_HELD_BACK: {name: each.held_back for name, each in known.items()},
            the.HTTP_REQUESTS: tally.requests,
            the.FEEDBACK_EVENTS: tally.feedback,
            the.SUPPRESSED: tally.suppressed,
            the.ACCEPT_SECONDS: tally.accept_seconds,
            the.CLAIM_SECONDS: tally.claim_seconds,
            the.DECLARE_SECONDS: tally.declare_seconds,
            the.SETTLE_SECONDS: tally.settle_seconds,
        }


def shown(reading: Reading | None, *, top: int) -> dict[Metric, Figures]:
    """Return the gauges of a store; only `STORE_UP` if it does not answer."""
    if reading is None:
        return {the.STORE_UP: 0}
    largest = sorted(reading.dead_by_tenant.items(), key=lambda each: -each[1])
    standings = {each.tenant: each for each in reading.standings}
    memory, seen = reading.queue_memory, reading.last_seen
    return {
        the.STORE_UP: 1,
        the.QUEUE_DEPTH: {each.kind: each.unfinished for each in reading.depths},
        the.QUEUE_OLDEST_AGE: {
            each.kind: _age(each.oldest_due_at, reading.at) for each in reading.depths
        },
        the.IN_FLIGHT: {each.kind: each.in_flight for each in reading.depths},
        the.SCHEDULER_HEARTBEAT_AGE: {} if seen is None else _age(seen, reading.at),
        the.QUEUE_MEMORY_USED: {} if memory is None else memory.used_bytes,
        the.QUEUE_MEMORY_MAX: {} if memory is None else memory.max_bytes,
        the.QUEUE_REJECTED: {} if memory is None else memory.rejected,
        the.QUEUE_OUT_OF_MEMORY: {} if memory is None else memory.out_of_memory,
        the.TABLE_QUEUE_PENDING: {} if reading.pending is None else reading.pending,
        the.DELIVERY_P50: {} if reading.delivery_p50 is None else reading.delivery_p50,
        the.DELIVERY_P95: {} if reading.delivery_p95 is None else reading.delivery_p95,
        the.TEMPLATE_FAILURES: {
            (each.tenant, each.template): each.failed / (each.sent + each.failed)
            for each in reading.templates
        },
        the.DLQ_SIZE: reading.dead,
        the.DLQ_OLDEST_AGE: _age(reading.dead_oldest, reading.at),
        the.DLQ_SIZE_BY_COMPANY: dict(largest[:top]),
        the.DLQ_SIZE_BY_COMPANY_MAX: largest[0][1] if largest else 0,
        the.TENANT_CURRENT_PRIORITY: {n: each.current_priority for n, each in standings.items()},
        the.TENANT_CONSECUTIVE_BATCH: {
            name: each.consecutive_batch_count for name, each in standings.items()
        },
        the.TENANT_ROUNDS_WITHOUT_PROCESSING: {
            name: each.rounds_without_processing for name, each in standings.items()
        },
    }


def _by_attempt(counts: Iterable[tuple[tuple[int, State], int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for (number, _), count in counts:
        found[attempt_label(number)] += count
    return dict(sorted(found.items()))


def _since(opened: float | None) -> float:
    return 0.0 if opened is None else max(0.0, time() - opened)


def _age(since: datetime | None, now: datetime) -> float:
    """Never below 0: a job due later has no age, and clocks differ a little."""
    return 0.0 if since is None else max(0.0, (now - since).total_seconds())
