"""Counts of one post office: plain numbers, made into metrics on a scrape."""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from time import monotonic

from carteiro import model
from carteiro.observability.metrics import definitions
from carteiro.observability.metrics.histogram import Histogram
from carteiro.observability.metrics.labels import Codes, method_label
from carteiro.policy.suppression import SUPPRESSED

_MOST_REMEMBERED = 10_000  # retries remembered to measure the interval to the next attempt


class Tally:
    """All counts; each is increased where it happens, on the thread of the event loop.

    The size is bounded by the number of tenants and routes; `Metrics` bounds the labels.
    """

    def __init__(self) -> None:
        self.attempts: Counter[tuple[int, model.State]] = Counter()
        self.intervals = Histogram(definitions.ATTEMPT_INTERVAL.buckets)
        self.backoffs = Histogram(definitions.RETRY_BACKOFF_DELAY.buckets)
        self.errors: Counter[tuple[str, str]] = Counter()
        self.retries: Counter[str] = Counter()
        self.durations: defaultdict[model.State, Histogram] = defaultdict(
            lambda: Histogram(definitions.PIPELINE_PROCESSING_DURATION.buckets)
        )
        self.moves: Counter[str] = Counter()  # into states, and other events
        self.unfit: Counter[str] = Counter()
        self.dead: Counter[str] = Counter()
        self.dead_ages = Histogram(definitions.DLQ_AGE.buckets)
        self.dead_codes: Counter[str] = Counter()
        self.dead_tenants: Counter[model.TenantId] = Counter()  # since the last scrape
        self.tenants: Counter[model.TenantId] = Counter()  # since the last scrape
        self.in_doubt = 0
        self.suppressed = 0
        self.feedback: Counter[tuple[str, str, str]] = Counter()
        self.late = 0
        self.lost: Counter[str] = Counter()
        self.calls: defaultdict[str, Histogram] = defaultdict(
            lambda: Histogram(definitions.PROVIDER_LATENCY.buckets)
        )
        self.refusals: Counter[tuple[str, str]] = Counter()
        self.providers: Callable[[], list[model.ProviderStanding]] = list  # those of a chain
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.accept_seconds = Histogram(definitions.ACCEPT_SECONDS.buckets)
        self.claim_seconds = Histogram(definitions.CLAIM_SECONDS.buckets)
        self.declare_seconds = Histogram(definitions.DECLARE_SECONDS.buckets)
        self.settle_seconds = Histogram(definitions.SETTLE_SECONDS.buckets)
        self._codes = Codes()
        self._retried: OrderedDict[model.MessageId, float] = OrderedDict()

    def called(self, provider: str, seconds: list[float]) -> None:
        """Count calls of a provider, by the time that each took."""
        self.calls[provider].observe_all(seconds)

    def answered_by(self, provider: str, outcome: model.Outcome) -> None:
        """Count an outcome of a provider, unless it took the message."""
        if not isinstance(outcome, model.Taken):
            self.refusals[provider, type(outcome).__name__] += 1

    def sent(
        self, jobs: Sequence[model.LeasedJob], numbers: Sequence[int], seconds: list[float]
    ) -> None:
        """Count sent messages, by the number of their attempt and the time since their claim."""
        self.tenants.update([job.tenant for job in jobs])
        for number, count in Counter(numbers).items():
            self.attempts[number, model.State.SENT] += count
        if self._retried:
            for job in jobs:
                self._measure_interval(job.lease.job)
        self.durations[model.State.SENT].observe_all(seconds)

    def settled(
        self, job: model.LeasedJob, end: model.End, state: model.State, number: int | None
    ) -> None:
        """Count a settled job; ``number`` is that of the attempt, None if none was made."""
        self.tenants[job.tenant] += 1
        if number is not None:
            self.attempts[number, state] += 1
            self.durations[state].observe(end.duration.total_seconds())
            if self._retried:
                self._measure_interval(job.lease.job)
        elif (
            isinstance(end.verdict, model.Dead)
            and end.verdict.reason is model.DeadReason.VALIDATION_FAILED
        ):
            self.durations[state].observe(end.duration.total_seconds())

    def retried(self, job: model.LeasedJob, retry: model.Retry) -> None:
        """Count a retry."""
        self._failed(retry.failure)
        self.retries[retry.failure.category] += 1
        self.backoffs.observe(retry.after.total_seconds())
        self._retried[job.lease.job] = monotonic()
        if len(self._retried) > _MOST_REMEMBERED:
            self._retried.popitem(last=False)

    def died(self, job: model.LeasedJob, dead: model.Dead) -> None:
        """Count a dead letter."""
        self._failed(dead.failure)
        self.dead[dead.reason] += 1
        self.dead_codes[self._codes.label(dead.failure.code)] += 1
        self.dead_tenants[job.tenant] += 1
        if dead.reason is model.DeadReason.VALIDATION_FAILED:
            self.suppressed += dead.failure.code == SUPPRESSED.code
            self.unfit[dead.failure.rule.rpartition(".")[2].upper()] += 1

    def heard(self, provider: str, type: model.EventType | None, answer: model.NoteAnswer) -> None:
        """Count a provider event; ``type`` None: it names no message of this installation."""
        label = definitions.OTHER if type is None else type.value
        self.feedback[provider, label, answer.value] += 1

    def expired(self, count: int) -> None:
        """Count messages that expired in the queue."""
        self.moves[model.State.EXPIRED] += count
        self.dead[model.DeadReason.EXPIRED] += count

    def answered(self, method: str, route: str, status: int) -> None:
        """Count an answered request; ``route`` is the path with the names of its parameters."""
        self.requests[method_label(method), route, status] += 1

    def _failed(self, failure: model.Failure) -> None:
        self.errors[self._codes.label(failure.code), failure.category] += 1

    def _measure_interval(self, message: model.MessageId) -> None:
        before = self._retried.pop(message, None)
        if before is not None:
            self.intervals.observe(monotonic() - before)
