"""Failures, and the party that is responsible."""

from enum import StrEnum

from carteiro.model.basics import value


class Category(StrEnum):
    """The kind of a failure, as dashboards group it."""

    VALIDATION_ERROR = "VALIDATION_ERROR"
    PERMANENT_ERROR = "PERMANENT_ERROR"
    CONFIGURATION_ERROR = "CONFIGURATION_ERROR"
    TRANSIENT_ERROR = "TRANSIENT_ERROR"
    QUOTA_ERROR = "QUOTA_ERROR"
    TIMEOUT_ERROR = "TIMEOUT_ERROR"


class Scope(StrEnum):
    """The party responsible for a failure."""

    RECIPIENT = "recipient"
    MESSAGE = "message"
    SENDER = "sender_identity"
    TENANT = "tenant"
    PROVIDER = "provider"
    DESTINATION = "destination"


@value
class Failure:
    """A classified failure; ``rule`` names the rule that decided."""

    code: str
    category: Category
    retryable: bool
    scope: Scope
    reason: str
    rule: str
    original_code: str | None = None


class DeadReason(StrEnum):
    """Reasons why a message became a dead letter."""

    MAX_ATTEMPTS_EXCEEDED = "max_attempts_exceeded"
    PERMANENT_ERROR = "permanent_error"
    VALIDATION_FAILED = "validation_failed"
    EXPIRED = "expired"
    IN_DOUBT = "in_doubt"
    CRASHES_WORKER = "crashes_worker"
