"""Every metric by its name, with its type, its labels and what it tells; the reference page comes from here."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from carteiro.model import value

PREFIX = "carteiro_"
OTHER = "other"  # the label of all that have none of their own

Type: TypeAlias = Literal["counter", "gauge", "histogram"]

_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_CALLS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_AGES = (60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0, 172800.0, 345600.0, 604800.0)
_WAITS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 14400.0, 86400.0)


@value
class Metric:
    """One metric; ``buckets`` are the upper bounds of a histogram, without infinity."""

    name: str
    type: Type
    told: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    prefix: str = PREFIX

    @property
    def full_name(self) -> str:
        """As it is scraped."""
        return self.prefix + self.name


def _counter(name: str, told: str, *labels: str) -> Metric:
    return Metric(name, "counter", told, labels)


def _gauge(name: str, told: str, *labels: str) -> Metric:
    return Metric(name, "gauge", told, labels)


def _histogram(name: str, told: str, *labels: str, buckets: tuple[float, ...]) -> Metric:
    return Metric(name, "histogram", told, labels, buckets)


# --- attempts ---------------------------------------------------------------------------------

RETRY_ATTEMPTS = _counter(
    "retry_attempts_total", "Attempts that ended, by their number.", "attempt"
)
RETRY_BACKOFF_DELAY = _histogram(
    "retry_backoff_delay_seconds", "How long a retry was put off.", buckets=_WAITS
)
RETRY_SUCCESS_RATE = _gauge(
    "retry_success_rate",
    "Share of the attempts with this number that succeeded, since the process started.",
    "attempt",
)
ATTEMPT_INTERVAL = _histogram(
    "attempt_interval_seconds",
    "From the end of a failed attempt to the end of the next, where this process made both.",
    buckets=_WAITS,
)
ERRORS = _counter(
    "errors_total", "Failures that were retried or ended a message.", "code", "category"
)
IN_DOUBT = _counter("in_doubt_total", "Attempts whose outcome is unknown.")
LATE_RESULTS = _counter("late_results_total", "Results that came after another had the job.")
LEASES_LOST = _counter(
    "leases_lost_total",
    "Claims that were found to be another's, by the operation that found it.",
    "operation",
)

# --- the pipeline -----------------------------------------------------------------------------

PIPELINE_STATE_TRANSITIONS = _counter(
    "pipeline_state_transitions_total",
    "Moves into a state that this process made; redrives are not among them.",
    "state",
)
PIPELINE_FINAL_STATE = _counter(
    "pipeline_final_state_total", "Messages that this process brought to an end.", "state"
)
PIPELINE_VALIDATION_FAILURES = _counter(
    "pipeline_validation_failures_total",
    "E-mails that must not be sent, by the validation that failed.",
    "validation",
)
PIPELINE_PROCESSING_DURATION = _histogram(
    "pipeline_processing_duration_seconds",
    "From the claim to the end of an attempt, or of a validation that failed, by the state that it led to.",
    "state",
    buckets=_CALLS,
)
PIPELINE_RETRY_COUNT = _counter(
    "pipeline_retry_count_total",
    "Retries that were scheduled, by the category of the failure.",
    "category",
)

# --- dead letters -----------------------------------------------------------------------------

DLQ_ENTRIES = _counter("dlq_entries_total", "Messages that became dead letters.", "reason")
DLQ_BY_ERROR_CODE = _counter(
    "dlq_by_error_code_total",
    "Messages that died at a worker's hands, by their last failure: without those that expired in the queue.",
    "code",
)
DLQ_BY_COMPANY = _counter(
    "dlq_by_company_total",
    "Messages that died at a worker's hands, by tenant: without those that expired in the queue.",
    "tenant",
)
DLQ_SIZE = _gauge("dlq_size", "Dead letters.")
DLQ_AGE = _histogram(
    "dlq_age_seconds",
    "How old dead letters were when this process redrove them or took them out of the index.",
    buckets=_AGES,
)
DLQ_OLDEST_AGE = _gauge("dlq_oldest_age_seconds", "Age of the oldest dead letter; 0 without any.")
DLQ_SIZE_BY_COMPANY = _gauge(
    "dlq_size_by_company", "Dead letters of the tenants that have most.", "tenant"
)
DLQ_SIZE_BY_COMPANY_MAX = _gauge(
    "dlq_size_by_company_max", "Dead letters of the tenant that has most."
)

# --- tenants ----------------------------------------------------------------------------------

TENANT_JOBS_PROCESSED = _counter(
    "tenant_jobs_processed_total", "Jobs that this process settled, of any kind.", "tenant"
)
TENANT_CURRENT_PRIORITY = _gauge(
    "tenant_current_priority",
    "Priority that waiting for a turn led to, for e-mail; of the others the most urgent.",
    "tenant",
)
TENANT_CONSECUTIVE_BATCH = _gauge(
    "tenant_consecutive_batch",
    "E-mails of the last turn, at most the batch size; of the others the most.",
    "tenant",
)
TENANT_ROUNDS_WITHOUT_PROCESSING = _gauge(
    "tenant_rounds_without_processing",
    "Rounds without a turn while e-mails wait, 0 without any; of the others the most.",
    "tenant",
)

# --- the queue and its store ------------------------------------------------------------------

QUEUE_DEPTH = _gauge("queue_depth", "Jobs that are not finished.", "kind")
QUEUE_OLDEST_AGE = _gauge(
    "queue_oldest_age_seconds", "How long the job that waits longest is due.", "kind"
)
IN_FLIGHT = _gauge("in_flight", "Jobs in the hands of workers.", "kind")
QUEUE_MEMORY_USED = _gauge(
    "queue_memory_used_bytes",
    "Memory that a queue in Redis has in use; nothing without such a queue.",
)
QUEUE_MEMORY_MAX = _gauge(
    "queue_memory_max_bytes",
    "Memory that a queue in Redis may use, 0: no limit is set; nothing without such a queue.",
)
SCHEDULER_HEARTBEAT_AGE = _gauge(
    "scheduler_heartbeat_age_seconds",
    "How long ago a worker, or a run of carteiro process, last did upkeep; nothing if none ever did.",
)
STORE_UP = _gauge("store_up", "1: the store answered; 0: it did not, and its gauges are left out.")
ACCEPT_SECONDS = _histogram("accept_seconds", "One commit of new messages.", buckets=_FAST)
CLAIM_SECONDS = _histogram("claim_seconds", "One claim, of any number of jobs.", buckets=_FAST)
DECLARE_SECONDS = _histogram("declare_seconds", "One commit of declared attempts.", buckets=_FAST)
SETTLE_SECONDS = _histogram("settle_seconds", "One commit of settled attempts.", buckets=_FAST)

# --- feedback ---------------------------------------------------------------------------------

FEEDBACK_EVENTS = _counter(
    "feedback_events_total",
    "What providers told later, by what it did: noted, resolved, known, unknown or ignored.",
    "provider",
    "type",
    "result",
)
SUPPRESSED = _counter(
    "suppressed_total", "E-mails that were not sent because their address is suppressed."
)

# --- providers and HTTP -----------------------------------------------------------------------

PROVIDER_LATENCY = _histogram(
    "provider_latency_seconds", "One call of a provider.", "provider", buckets=_CALLS
)
PROVIDER_ERRORS = _counter(
    "provider_errors_total",
    "Calls that ended otherwise than taken over: rejected, deferred, unknown or not made.",
    "provider",
    "outcome",
)
PROVIDER_OPEN = _gauge(
    "provider_open",
    "1: it kept failing, so this process leaves it alone or tries it with one call at a time; 0: it is well.",
    "provider",
)
PROVIDER_TROUBLE = _gauge(
    "provider_trouble_timestamp_seconds",
    "When this process began to leave it alone last, in seconds since 1970; nothing if it never did.",
    "provider",
)
PROVIDER_RATE = _gauge(
    "provider_rate",
    "Calls a second that all processes together may make, as this one last heard; nothing without a limit.",
    "provider",
)
PROVIDER_HELD_BACK = _counter(
    "provider_held_back_total",
    "How often calls were held back, as the rate or the concurrency of the provider was used up.",
    "provider",
)
HTTP_REQUESTS = _counter(
    "http_requests_total",
    "Requests that were answered; a route is an address with its parameters' names.",
    "method",
    "route",
    "status",
)

METRICS: Mapping[str, Metric] = {
    each.full_name: each for each in list(globals().values()) if isinstance(each, Metric)
}
