"""Every metric: name, type, meaning and labels; the reference page is generated from here."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from carteiro.model import value
from carteiro.ports.table_queue import NEWEST_ROWS

PREFIX = "carteiro_"
OTHER = "other"  # the label of everything without a label of its own

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
        """The name on the page."""
        return self.prefix + self.name


def counter(name: str, told: str, *labels: str, prefix: str = PREFIX) -> Metric:
    """Define a counter."""
    return Metric(name, "counter", told, labels, prefix=prefix)


def gauge(name: str, told: str, *labels: str) -> Metric:
    """Define a gauge."""
    return Metric(name, "gauge", told, labels)


def histogram(
    name: str, told: str, *labels: str, buckets: tuple[float, ...], prefix: str = PREFIX
) -> Metric:
    """Define a histogram."""
    return Metric(name, "histogram", told, labels, buckets, prefix)


# --- attempts ---------------------------------------------------------------------------------

RETRY_ATTEMPTS = counter("retry_attempts_total", "Attempts that ended, by number.", "attempt")
ATTEMPTS_FAILED = counter("attempts_failed_total", "Attempts that ended without success.")
RETRY_BACKOFF_DELAY = histogram(
    "retry_backoff_delay_seconds", "Wait before a retry.", buckets=_WAITS
)
RETRY_SUCCESS_RATE = gauge(
    "retry_success_rate", "Share of attempts that succeeded, since the process started.", "attempt"
)
ATTEMPT_INTERVAL = histogram(
    "attempt_interval_seconds",
    "From the end of a failed attempt to the end of the next, if this process made both.",
    buckets=_WAITS,
)
ERRORS = counter("errors_total", "Failures that were retried or final.", "code", "category")
IN_DOUBT = counter("in_doubt_total", "Attempts with an unknown outcome.")
LATE_RESULTS = counter("late_results_total", "Results that came after the job was reassigned.")
LEASES_LOST = counter(
    "leases_lost_total", "Leases found to be lost, by the operation that found it.", "operation"
)

# --- the pipeline -----------------------------------------------------------------------------

PIPELINE_STATE_TRANSITIONS = counter(
    "pipeline_state_transitions_total", "State changes by this process, without redrives.", "state"
)
PIPELINE_FINAL_STATE = counter(
    "pipeline_final_state_total", "Messages that this process finished.", "state"
)
PIPELINE_VALIDATION_FAILURES = counter(
    "pipeline_validation_failures_total", "E-mails rejected, by failed validation.", "validation"
)
PIPELINE_PROCESSING_DURATION = histogram(
    "pipeline_processing_duration_seconds",
    "From the claim to the end of an attempt, or of a failed validation, by resulting state.",
    "state",
    buckets=_CALLS,
)
PIPELINE_RETRY_COUNT = counter(
    "pipeline_retry_count_total", "Retries scheduled, by failure category.", "category"
)

# --- dead letters -----------------------------------------------------------------------------

DLQ_ENTRIES = counter("dlq_entries_total", "Messages that became dead letters.", "reason")
DLQ_BY_ERROR_CODE = counter(
    "dlq_by_error_code_total",
    "Messages that became dead letters in a worker, by last failure; without expired ones.",
    "code",
)
DLQ_BY_COMPANY = counter(
    "dlq_by_company_total",
    "Messages that became dead letters in a worker, by tenant; without expired ones.",
    "tenant",
)
DLQ_SIZE = gauge("dlq_size", "Dead letters.")
DLQ_AGE = histogram(
    "dlq_age_seconds",
    "Age of dead letters when this process redrove or removed them.",
    buckets=_AGES,
)
DLQ_OLDEST_AGE = gauge("dlq_oldest_age_seconds", "Age of the oldest dead letter; 0 without any.")
DLQ_SIZE_BY_COMPANY = gauge(
    "dlq_size_by_company", "Dead letters of the tenants with most.", "tenant"
)
DLQ_SIZE_BY_COMPANY_MAX = gauge("dlq_size_by_company_max", "Dead letters of the tenant with most.")

# --- tenants ----------------------------------------------------------------------------------

TENANT_JOBS_PROCESSED = counter(
    "tenant_jobs_processed_total", "Jobs of any kind settled by this process.", "tenant"
)
TENANT_CURRENT_PRIORITY = gauge(
    "tenant_current_priority",
    "E-mail priority after aging; for `other` the most urgent.",
    "tenant",
)
TENANT_CONSECUTIVE_BATCH = gauge(
    "tenant_consecutive_batch",
    "E-mails of the last turn, at most the batch size; for `other` the maximum.",
    "tenant",
)
TENANT_ROUNDS_WITHOUT_PROCESSING = gauge(
    "tenant_rounds_without_processing",
    "Rounds without a turn while e-mails wait; for `other` the maximum.",
    "tenant",
)

# --- the queue and its store ------------------------------------------------------------------

QUEUE_DEPTH = gauge("queue_depth", "Unfinished jobs.", "kind")
QUEUE_OLDEST_AGE = gauge("queue_oldest_age_seconds", "Time since the oldest job was due.", "kind")
IN_FLIGHT = gauge("in_flight", "Jobs leased by workers.", "kind")
QUEUE_MEMORY_USED = gauge("queue_memory_used_bytes", "Memory used by a queue in Redis.")
QUEUE_MEMORY_MAX = gauge("queue_memory_max_bytes", "Memory limit of a queue in Redis; 0: no limit.")
QUEUE_REJECTED = counter(
    "queue_rejected_connections_total",
    "Connections rejected by a queue in Redis. Each process shows its server's count: take the maximum.",
)
QUEUE_OUT_OF_MEMORY = counter(
    "queue_out_of_memory_errors_total",
    "Commands refused by a queue in Redis for lack of memory. Each process shows its server's count: take the maximum.",
)
TABLE_QUEUE_PENDING = gauge(
    "table_queue_pending",
    f"Unfinished e-mails among the newest {NEWEST_ROWS} that were put in by SQL; absent without the table queue.",
)
DELIVERY_P50 = gauge(
    "delivery_p50_seconds",
    "From accept to sent: median of the last 15 minutes; absent if nothing was sent.",
)
DELIVERY_P95 = gauge(
    "delivery_p95_seconds",
    "From accept to sent: 95th percentile of the last 15 minutes; absent if nothing was sent.",
)
TEMPLATE_FAILURES = gauge(
    "template_failure_share",
    "Dead letters among the finished messages of the last hour, of the templates with the largest share.",
    *("tenant", "template"),
)
SCHEDULER_HEARTBEAT_AGE = gauge(
    "scheduler_heartbeat_age_seconds",
    "Time since any process last ran maintenance; absent if none did.",
)
STORE_UP = gauge("store_up", "1: the store answered; 0: it did not, its gauges are absent.")
ACCEPT_SECONDS = histogram("accept_seconds", "One commit of new messages.", buckets=_FAST)
CLAIM_SECONDS = histogram("claim_seconds", "One claim, of any number of jobs.", buckets=_FAST)
DECLARE_SECONDS = histogram("declare_seconds", "One commit of declared attempts.", buckets=_FAST)
SETTLE_SECONDS = histogram("settle_seconds", "One commit of settled attempts.", buckets=_FAST)

# --- feedback ---------------------------------------------------------------------------------

FEEDBACK_EVENTS = counter(
    "feedback_events_total",
    "Provider events and one-click unsubscribes, by result: noted, resolved, known, unknown or ignored.",
    *("provider", "type", "result"),
)
SUPPRESSED = counter("suppressed_total", "E-mails not sent because the address is suppressed.")

# --- providers and HTTP -----------------------------------------------------------------------

PROVIDER_LATENCY = histogram(
    "provider_latency_seconds", "One call of a provider.", "provider", buckets=_CALLS
)
PROVIDER_ERRORS = counter(
    "provider_errors_total",
    "Provider calls that failed: rejected, deferred, unknown or not made.",
    *("provider", "outcome"),
)
PROVIDER_OPEN = gauge(
    "provider_open", "1: the circuit is open or half open in this process; 0: closed.", "provider"
)
PROVIDER_OPEN_SECONDS = gauge(
    "provider_open_seconds",
    "Time since the circuit opened in this process; 0: it is closed.",
    "provider",
)
PROVIDER_TROUBLE = gauge(
    "provider_trouble_timestamp_seconds",
    "Unix time when this process last opened the circuit; absent if never.",
    "provider",
)
PROVIDER_RATE = gauge(
    "provider_rate",
    "Rate limit of all processes together, in calls a second; absent without a limit.",
    "provider",
)
PROVIDER_HELD_BACK = counter(
    "provider_held_back_total", "Calls delayed by the rate or concurrency limit.", "provider"
)
HTTP_REQUESTS = counter(
    "http_requests_total",
    "Requests answered; `route` is the path with the names of its parameters.",
    *("method", "route", "status"),
)

METRICS: Mapping[str, Metric] = {
    each.full_name: each for each in list(globals().values()) if isinstance(each, Metric)
}
