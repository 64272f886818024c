"""What the ticket lane says in the log, one function per event; no ticket's contents can reach a line."""

from carteiro.telemetry.log import Level, event
from carteiro.tickets.dead_letter import Death
from carteiro.tickets.scrubbing import scrubbed_start

_LONGEST_REASON = 1024  # bytes


# --- dead letters -----------------------------------------------------------------------------


def dlq_published(death: Death, *, topic: str, size_bytes: int) -> None:
    """Tell that a ticket was given up, and where it is now."""
    said = "Ticket is dead and in the dead letter topic: look into it, then republish it"
    fields = _of(death) | {"dlqTopic": topic, "bytes": size_bytes}
    event(Level.ERROR, said, "dlq_published", fields)


def dlq_publish_refused(death: Death, *, topic: str, size_bytes: int) -> None:
    """Tell that the topic does not take so large a record, and what happens next."""
    said = "Dead letter is larger than its topic takes: tried again with less in it"
    fields = _of(death) | {"dlqTopic": topic, "bytes": size_bytes}
    event(Level.WARN, said, "dlq_publish_refused", fields)


def dlq_publish_failed(death: Death, why: str, *, topic: str, error_type: str) -> None:
    """Tell that a dead letter is not in its topic yet, and that nothing is lost."""
    said = "Dead letter could not be published: its ticket stays where it is, and it is tried again"
    fields = _of(death) | {"dlqTopic": topic, "publishErrorType": error_type, "publishError": why}
    event(Level.ERROR, said, "dlq_publish_failed", fields)


def dlq_consumer_started(*, topic: str, group: str) -> None:
    """Tell that dead letters are read."""
    fields = {"dlqTopic": topic, "group": group}
    event(Level.INFO, "Dead letters are archived from now on", "dlq_consumer_started", fields)


def dlq_topic_created(topic: str, *, partitions: int, replicas: int) -> None:
    """Tell that there was no topic for dead letters, and that there is one now."""
    fields = {"dlqTopic": topic, "partitions": partitions, "replicas": replicas}
    event(Level.INFO, "Topic of dead letters created", "dlq_topic_created", fields)


def dlq_topic_differs(topic: str, differences: tuple[str, ...]) -> None:
    """Tell how the topic that is there is not the one that we would have made."""
    said = "Topic of dead letters is not as it should be: it is used as it stands"
    fields = {"dlqTopic": topic, "differences": [*differences]}
    event(Level.WARN, said, "dlq_topic_differs", fields)


# --- servers ----------------------------------------------------------------------------------


def redis_away(address: str, why: str) -> None:
    """Tell that failures are counted without Redis."""
    said = (
        "Redis is away: failures are counted here and in the commits, and written when it is back"
    )
    fields = {"redis": address, "errorReason": _shown(why)}
    event(Level.WARN, said, "redis_away", fields)


def redis_back(address: str) -> None:
    """Tell that Redis counts again, and has what was counted without it."""
    event(Level.INFO, "Redis is back", "redis_back", {"redis": address})


def kafka_trouble(what: str, why: str) -> None:
    """Tell what a client of Kafka complains of; it goes on trying by itself."""
    fields = {"errorType": what, "errorReason": _shown(why)}
    event(Level.WARN, "Kafka cannot be used as it should", "kafka_trouble", fields)


# --- fields -----------------------------------------------------------------------------------


def _of(death: Death) -> dict[str, object]:
    return {
        "ticketId": death.ticket.id,
        "taskType": death.ticket.type,
        "source": death.ticket.record.place,
        "reason": death.reason,
        "failures": death.failures,
        "errorType": _shown(death.error_type),
        "errorReason": _shown(death.error),
    }


def _shown(text: str) -> str:
    return scrubbed_start(text, _LONGEST_REASON)
