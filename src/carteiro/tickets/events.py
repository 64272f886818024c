"""Log events of the ticket lane, one function per event; no ticket's contents can reach a line."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from carteiro.observability.log import event, shows_traces, trace_ids
from carteiro.observability.log_targets import Level
from carteiro.policy.trace_context import read_headers
from carteiro.tickets.deaths import Death, advice
from carteiro.tickets.scrubbing import scrubbed_start
from carteiro.tickets.ticket import Record, TaskType, Ticket, TicketId, Unreadable

_LONGEST_REASON = 1024  # bytes
# The text of the Kafka library for a topic that does not exist.
_NO_TOPIC = "Subscribed topic not available"


# --- dead letters -----------------------------------------------------------------------------


def dlq_published(death: Death, *, topic: str, size_bytes: int, is_whole: bool = True) -> None:
    """Tell that a ticket was given up, where it is now, and whether more than its place is kept."""
    said = f"Ticket is dead and in the dead letter topic: {advice(death.reason, is_whole=is_whole)}"
    fields = _of(death) | {"dlqTopic": topic, "bytes": size_bytes}
    if not is_whole:
        fields["oversized"] = True
    event(Level.ERROR, said, "dlq_published", fields)


def dlq_publish_refused(death: Death, *, topic: str, size_bytes: int) -> None:
    """Tell that the topic does not take so large a record, and what happens next."""
    said = "Dead letter is larger than its topic allows: publishing it again with less content"
    fields = _of(death) | {"dlqTopic": topic, "bytes": size_bytes}
    event(Level.WARN, said, "dlq_publish_refused", fields)


def dlq_publish_failed(death: Death, why: str, *, topic: str, error_type: str) -> None:
    """Tell that a dead letter is not in its topic yet, and that nothing is lost."""
    said = (
        "Dead letter could not be published: its ticket is not committed, and publishing is retried"
    )
    fields = _of(death) | {"dlqTopic": topic, "publishErrorType": error_type, "publishError": why}
    event(Level.ERROR, said, "dlq_publish_failed", fields)


def dlq_done_not_told(ticket: Ticket | Unreadable) -> None:
    """Tell that the archive will not know of the good end of a ticket."""
    said = (
        "Republished ticket is done, but the archive could not be informed: it stays redriven there"
    )
    event(Level.WARN, said, "dlq_done_not_told", _named(ticket))


def dlq_consumer_started(*, topic: str, group: str) -> None:
    """Tell that dead letters are read."""
    fields = {"dlqTopic": topic, "group": group}
    event(Level.INFO, "Archive started", "dlq_consumer_started", fields)


def dlq_consumer_stopped() -> None:
    """Tell that dead letters are not read any more, by this process."""
    event(Level.INFO, "Archive stopped", "dlq_consumer_stopped", {})


def dlq_consumer_waiting(what: str, *, records: int = 0, wait: timedelta = timedelta(0)) -> None:
    """Tell what the archive cannot go on without; it goes on by itself."""
    said = "Archive waits: dead letters stay in their topic, and it continues by itself"
    fields = {
        "waitsFor": _shown(what),
        "inHand": records,
        "nextRetryDelay": wait // timedelta(milliseconds=1),
    }
    event(Level.WARN, said, "dlq_consumer_waiting", fields)


def dlq_consumer_going_on(waited_for: str) -> None:
    """Tell that a wait of the archive is over."""
    fields = {"waitedFor": waited_for}
    event(Level.INFO, "Archive continues", "dlq_consumer_going_on", fields)


def dlq_archived(records: int, *, new: int, done: int = 0) -> None:
    """Tell how many dead letters are in the archive now, how many of them were not before, and how many are done."""
    fields = {"records": records, "new": new, "done": done}
    event(Level.INFO, "Dead letters archived", "dlq_archived", fields)


def dlq_not_understood(record: Record, error_type: str) -> None:
    """Tell that a dead letter is not archived as a ticket, and where it is."""
    said = "Dead letter cannot be decoded: its bytes are archived, or only its place if it is too large"
    fields = {"dlqPlace": record.place, "errorType": error_type}
    event(Level.ERROR, said, "dlq_not_understood", fields)


def dlq_purged(
    records: int, *, by: str, why: str, chosen: Mapping[str, str], ids: Sequence[TicketId]
) -> None:
    """Tell who took dead letters out of the archive, which, and why: the documents are gone, so this is the record."""
    fields = {"records": records, "by": by, "why": why, "chosen": {**chosen}, "ticketIds": [*ids]}
    event(Level.INFO, "Dead letters purged from the archive", "dlq_purged", fields)


def alertmanager_away(url: str, why: str) -> None:
    """Tell that alerts do not arrive; nothing waits for them."""
    said = "Alertmanager does not accept alerts: active ones are sent again, and nothing waits for them"
    fields = {"alertmanager": url, "errorReason": _shown(why)}
    event(Level.WARN, said, "alertmanager_away", fields)


def alertmanager_back(url: str) -> None:
    """Tell that alerts arrive again."""
    said = "Alertmanager accepts alerts again"
    event(Level.INFO, said, "alertmanager_back", {"alertmanager": url})


def dlq_topic_created(topic: str, *, partitions: int, replicas: int) -> None:
    """Tell that there was no topic for dead letters, and that there is one now."""
    fields = {"dlqTopic": topic, "partitions": partitions, "replicas": replicas}
    event(Level.INFO, "Topic of dead letters created", "dlq_topic_created", fields)


def dlq_topic_differs(topic: str, differences: tuple[str, ...]) -> None:
    """Tell how the topic that is there is not the one that we would have made."""
    said = "Topic of dead letters has other settings than recommended: it is used unchanged"
    fields = {"dlqTopic": topic, "differences": [*differences]}
    event(Level.WARN, said, "dlq_topic_differs", fields)


# --- servers ----------------------------------------------------------------------------------


def redis_away(address: str, why: str) -> None:
    """Tell that failures are counted without Redis."""
    said = (
        "Redis is down: failures are counted here and in the commits, and written when it is back"
    )
    fields = {"redis": address, "errorReason": _shown(why)}
    event(Level.WARN, said, "redis_away", fields)


def tickets_started(*, topic: str, group: str, types: Sequence[TaskType], dlq_topic: str) -> None:
    """Tell that a worker has begun, and with what."""
    fields = {"topic": topic, "group": group, "taskTypes": [*types], "dlqTopic": dlq_topic}
    event(Level.INFO, "Ticket worker started", "tickets_started", fields)


def handlers_go_on(said: str) -> None:
    """Tell that the process ends though handlers are in flight, and why that is so."""
    event(Level.ERROR, said, "handlers_go_on", {})


def kafka_hangs(seconds: float) -> None:
    """Tell that the group was left without a word: no broker answered for this time."""
    said = "Kafka does not answer: exiting without a last commit, uncommitted tickets run again"
    event(Level.WARN, said, "kafka_hangs", {"waitedSeconds": seconds})


def redis_back(address: str) -> None:
    """Tell that Redis counts again, and has what was counted without it."""
    event(Level.INFO, "Redis is back", "redis_back", {"redis": address})


def kafka_trouble(what: str, why: str) -> None:
    """Tell what a client of Kafka complains of; it goes on trying by itself."""
    fields = {"errorType": what, "errorReason": _shown(why)}
    event(Level.WARN, "Kafka reports an error", "kafka_trouble", fields)


def tickets_waiting(what: str) -> None:
    """Tell what the worker cannot go on without; it goes on by itself, though nobody may make a mistyped topic."""
    said = "Ticket worker waits, and continues by itself"
    if _NO_TOPIC in what:
        said = "Ticket worker waits for its topic: create it, or correct tickets.topic"
    event(Level.WARN, said, "tickets_waiting", {"waitsFor": _shown(what)})


def tickets_going_on(waited_for: str) -> None:
    """Tell that a wait is over."""
    fields = {"waitedFor": _shown(waited_for)}
    event(Level.INFO, "Ticket worker continues", "tickets_going_on", fields)


# --- tickets and partitions -------------------------------------------------------------------


def ticket_failed(
    ticket: Ticket | Unreadable, *, failures: int, after: timedelta, type: str, why: str
) -> None:
    """Tell that a ticket failed, and when it is tried again."""
    fields = _named(ticket) | {
        "failures": failures,
        "nextRetryDelay": after // timedelta(milliseconds=1),
        "errorType": _shown(type),
        "errorReason": _shown(why),
    }
    event(Level.WARN, "Ticket failed, and will be retried", "ticket_failed", fields)


def ticket_held(death: Death) -> None:
    """Tell that a dead ticket has nowhere to go, and what to do."""
    said = (
        "Ticket is dead and held with all tickets of its key, because dead letters are disabled: "
        "set tickets.dlq_enabled = true and restart, and it becomes a dead letter that can be republished"
    )
    event(Level.ERROR, said, "ticket_held", _of(death))


def ticket_pause_began(type: TaskType, *, error_type: str, why: str) -> None:
    """Tell that what a type needs seems to be down."""
    said = "Type paused: most of its tickets cannot reach what they need; one is tried at least once a minute"
    fields = {"taskType": type, "errorType": _shown(error_type), "errorReason": _shown(why)}
    event(Level.ERROR, said, "ticket_pause_began", fields)


def ticket_pause_ended(type: TaskType) -> None:
    """Tell that a type goes on."""
    said = "Pause ended: a ticket of the type succeeded"
    event(Level.INFO, said, "ticket_pause_ended", {"taskType": type})


def ticket_pause_given_up(type: TaskType) -> None:
    """Tell that a type goes on though none of its tickets has succeeded."""
    said = (
        "Pause reached tickets.pause_at_most_ms: tickets of the type are started again, "
        "and those that keep failing become dead letters"
    )
    event(Level.ERROR, said, "ticket_pause_given_up", {"taskType": type})


def partitions_assigned(parts: Sequence[tuple[str, int]]) -> None:
    """Tell which partitions are ours."""
    event(Level.INFO, "Partitions assigned", "partitions_assigned", _of_parts(parts))


def partitions_revoked(parts: Sequence[tuple[str, int]]) -> None:
    """Tell which ones we gave back."""
    event(Level.INFO, "Partitions revoked", "partitions_revoked", _of_parts(parts))


def partitions_lost(parts: Sequence[tuple[str, int]]) -> None:
    """Tell which ones others have already."""
    said = "Partitions were lost: what was in flight leaves no trace, others read it again"
    event(Level.WARN, said, "partitions_lost", _of_parts(parts))


def partition_began_again(parts: Sequence[tuple[str, int]]) -> None:
    """Tell that a partition's offsets went back, and that all of it is run."""
    said = "Offsets went back: the topic was made anew, or its end was lost; all that comes is run"
    event(Level.ERROR, said, "partition_began_again", _of_parts(parts))


# --- fields -----------------------------------------------------------------------------------


def _of_parts(parts: Sequence[tuple[str, int]]) -> dict[str, object]:
    return {"partitions": [f"{topic}|{number}" for topic, number in parts]}


def _named(ticket: Ticket | Unreadable) -> dict[str, object]:
    record = ticket.record
    named: dict[str, object] = {
        "ticketId": ticket.id,
        "taskType": ticket.type,
        "source": record.place,
    }
    if shows_traces() and isinstance(ticket, Ticket):
        named |= trace_ids(read_headers(record.headers), record.place, ticket.attempt)
    return named


def _of(death: Death) -> dict[str, object]:
    return _named(death.ticket) | {
        "reason": death.reason,
        "failures": death.failures,
        "errorType": _shown(death.error_type),
        "errorReason": _shown(death.error),
    }


def _shown(text: str) -> str:
    return scrubbed_start(text, _LONGEST_REASON)
