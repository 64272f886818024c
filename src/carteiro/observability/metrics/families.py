"""Numbers as Prometheus knows them: each metric of `definitions` with its labels and values."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from prometheus_client.metrics_core import Metric as Family

from carteiro.model import FINISHED, Standing, State
from carteiro.observability.metrics import definitions as the
from carteiro.observability.metrics.definitions import Metric
from carteiro.observability.metrics.family import Labels
from carteiro.observability.metrics.family import histograms as _histograms
from carteiro.observability.metrics.family import numbers as _numbers
from carteiro.observability.metrics.gauges import Reading
from carteiro.observability.metrics.labels import TopTenants, attempt_label
from carteiro.observability.metrics.tally import Tally

_OUTCOMES = {
    "Rejected": "rejected",
    "Deferred": "deferred",
    "Unknown": "unknown",
    "NotMade": "not_made",
}


class Counted:
    """What a tally says, tenants named as `TopTenants` has it."""

    def __init__(self, tally: Tally, *, top: int) -> None:
        self._tally = tally
        self._top = TopTenants(top)
        self._processed: Counter[str] = Counter()
        self._dead: Counter[str] = Counter()

    def families(self) -> Iterator[Family]:
        """Every counter and histogram of this process."""
        yield from self._of_attempts()
        yield from self._of_pipeline()
        yield from self._of_tenants()
        yield from self._of_calls()

    def _of_attempts(self) -> Iterator[Family]:
        tally = self._tally
        made = _by_attempt(tally.attempts.items())
        sent = _by_attempt(
            (key, count) for key, count in tally.attempts.items() if key[1] is State.SENT
        )
        yield _numbers(the.RETRY_ATTEMPTS, made.items())
        yield _numbers(
            the.RETRY_SUCCESS_RATE, [(key, sent.get(key, 0) / count) for key, count in made.items()]
        )
        yield _histograms(the.RETRY_BACKOFF_DELAY, [((), tally.backoffs)])
        yield _histograms(the.ATTEMPT_INTERVAL, [((), tally.intervals)])
        yield _numbers(the.ERRORS, tally.errors.items())
        yield _numbers(the.IN_DOUBT, [((), tally.in_doubt)])
        yield _numbers(the.LATE_RESULTS, [((), tally.late)])
        yield _numbers(the.LEASES_LOST, _one_label(tally.lost.items()))

    def _of_pipeline(self) -> Iterator[Family]:
        tally = self._tally
        moves = [(state, tally.moves[state]) for state in State]
        yield _numbers(the.PIPELINE_STATE_TRANSITIONS, _one_label(moves))
        ends = [(state, count) for state, count in moves if state in FINISHED]
        yield _numbers(the.PIPELINE_FINAL_STATE, _one_label(ends))
        yield _numbers(the.PIPELINE_VALIDATION_FAILURES, _one_label(tally.unfit.items()))
        durations = [((state.value,), each) for state, each in tally.durations.items()]
        yield _histograms(the.PIPELINE_PROCESSING_DURATION, durations)
        yield _numbers(the.PIPELINE_RETRY_COUNT, _one_label(tally.retries.items()))
        yield _numbers(the.DLQ_ENTRIES, _one_label(tally.dead.items()))
        yield _histograms(the.DLQ_AGE, [((), tally.dead_ages)])
        yield _numbers(the.DLQ_BY_ERROR_CODE, _one_label(tally.dead_codes.items()))

    def _of_tenants(self) -> Iterator[Family]:
        tally = self._tally
        self._top.gather(tally.tenants)
        self._top.add(self._processed, tally.tenants)
        self._top.add(self._dead, tally.dead_tenants)
        tally.tenants.clear()
        tally.dead_tenants.clear()
        yield _numbers(the.TENANT_JOBS_PROCESSED, _one_label(self._processed.items()))
        yield _numbers(the.DLQ_BY_COMPANY, _one_label(self._dead.items()))

    def _of_calls(self) -> Iterator[Family]:
        tally = self._tally
        calls = [((provider,), each) for provider, each in tally.calls.items()]
        yield _histograms(the.PROVIDER_LATENCY, calls)
        refusals = [
            ((provider, _OUTCOMES[outcome]), count)
            for (provider, outcome), count in tally.refusals.items()
        ]
        yield _numbers(the.PROVIDER_ERRORS, refusals)
        known = tally.providers()
        yield _numbers(
            the.PROVIDER_OPEN, _one_label((each.provider, each.is_open) for each in known)
        )
        troubles = [
            ((each.provider,), each.trouble_at) for each in known if each.trouble_at is not None
        ]
        yield _numbers(the.PROVIDER_TROUBLE, troubles)
        rates = [((each.provider,), each.rate) for each in known if each.rate is not None]
        yield _numbers(the.PROVIDER_RATE, rates)
        yield _numbers(
            the.PROVIDER_HELD_BACK, _one_label((each.provider, each.held_back) for each in known)
        )
        requests = [
            ((method, route, str(status)), count)
            for (method, route, status), count in tally.requests.items()
        ]
        yield _numbers(the.HTTP_REQUESTS, requests)
        yield _numbers(the.FEEDBACK_EVENTS, tally.feedback.items())
        yield _numbers(the.SUPPRESSED, [((), tally.suppressed)])
        yield _histograms(the.ACCEPT_SECONDS, [((), tally.accept_seconds)])
        yield _histograms(the.CLAIM_SECONDS, [((), tally.claim_seconds)])
        yield _histograms(the.DECLARE_SECONDS, [((), tally.declare_seconds)])
        yield _histograms(the.SETTLE_SECONDS, [((), tally.settle_seconds)])


def shown(reading: Reading | None, *, top: int) -> Iterator[Family]:
    """The gauges of a store; of one that is away, only that it is."""
    yield _numbers(the.STORE_UP, [((), int(reading is not None))])
    if reading is not None:
        yield from _of_queue(reading)
        yield from _of_dead_letters(reading, top)
        yield from _of_standings(reading.standings)


def _of_queue(reading: Reading) -> Iterator[Family]:
    depths = reading.depths
    yield _numbers(the.QUEUE_DEPTH, [((each.kind,), each.unfinished) for each in depths])
    yield _numbers(
        the.QUEUE_OLDEST_AGE,
        [((each.kind,), _age(each.oldest_due_at, reading.at)) for each in depths],
    )
    yield _numbers(the.IN_FLIGHT, [((each.kind,), each.in_flight) for each in depths])
    seen = [] if reading.last_seen is None else [((), _age(reading.last_seen, reading.at))]
    yield _numbers(the.SCHEDULER_HEARTBEAT_AGE, seen)
    memory = [] if reading.queue_memory is None else [reading.queue_memory]
    yield _numbers(the.QUEUE_MEMORY_USED, [((), each.used_bytes) for each in memory])
    yield _numbers(the.QUEUE_MEMORY_MAX, [((), each.max_bytes) for each in memory])


def _of_dead_letters(reading: Reading, top: int) -> Iterator[Family]:
    largest = sorted(reading.dead_by_tenant.items(), key=lambda each: -each[1])
    yield _numbers(the.DLQ_SIZE, [((), reading.dead)])
    yield _numbers(the.DLQ_OLDEST_AGE, [((), _age(reading.dead_oldest, reading.at))])
    yield _numbers(the.DLQ_SIZE_BY_COMPANY, _one_label(largest[:top]))
    yield _numbers(the.DLQ_SIZE_BY_COMPANY_MAX, [((), largest[0][1] if largest else 0)])


def _of_standings(standings: list[Standing]) -> Iterator[Family]:
    for metric, figure in _STANDING.items():
        yield _numbers(metric, _one_label((each.tenant, figure(each)) for each in standings))


_STANDING: Mapping[Metric, Callable[[Standing], int]] = {
    the.TENANT_CURRENT_PRIORITY: lambda each: each.current_priority,
    the.TENANT_CONSECUTIVE_BATCH: lambda each: each.consecutive_batch_count,
    the.TENANT_ROUNDS_WITHOUT_PROCESSING: lambda each: each.rounds_without_processing,
}


def _by_attempt(counts: Iterable[tuple[tuple[int, State], int]]) -> dict[Labels, int]:
    found: Counter[Labels] = Counter()
    for (number, _), count in counts:
        found[attempt_label(number),] += count
    return dict(sorted(found.items()))


def _one_label(numbers: Iterable[tuple[str, int]]) -> list[tuple[Labels, int]]:
    return [((str(name),), number) for name, number in numbers]


def _age(since: datetime | None, now: datetime) -> float:
    """Never below 0: what is due later has no age, and clocks differ a little."""
    return 0.0 if since is None else max(0.0, (now - since).total_seconds())
