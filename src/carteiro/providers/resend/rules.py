"""The errors of Resend, by the names that its documents and its own clients know."""

from collections.abc import Mapping

from carteiro.model import Failure
from carteiro.policy.classify import failure_of, one_line, upper_snake
from carteiro.policy.rules import http
from carteiro.policy.rules.answers import FOUND_OUT, Answers
from carteiro.policy.rules.ruling import OUR_SENDER, UNKNOWN, Ruling, meanings

NAMES = meanings("""
    INVALID_MESSAGE:
        validation_error invalid_attachment invalid_from_address invalid_to_address
        invalid_parameter missing_required_field missing_required_fields
        missing_required_parameter
    BAD_MESSAGE: invalid_idempotency_key email_above_quota invalid_idempotent_request
    OUR_ACCOUNT:
        missing_api_key restricted_api_key invalid_api_key suspended_api_key invalid_permission
        not_found method_not_allowed invalid_access invalid_region invalid_scope
    MESSAGE_LATER: concurrent_idempotent_requests
    UNAVAILABLE: resource_locked
    THROTTLED: rate_limit_exceeded
    USED_UP: daily_quota_exceeded monthly_quota_exceeded
    OUR_TENANT: security_error
    BROKEN: application_error internal_server_error service_unavailable
""")

# The same name under this status says something else: the domain is not verified, or not allowed.
FORBIDDEN = 403
FORBIDDEN_NAMES: Mapping[str, Ruling] = {"validation_error": OUR_SENDER}

# A name that is not known: by its status where that says something, else by the class of it.
STATUSES = meanings("""
    OUR_ACCOUNT: 401 403
    UNAVAILABLE: 408
    MESSAGE_LATER: 409
    THROTTLED: 429
""")
STATUS_CLASSES = meanings("""
    BAD_MESSAGE: 4
    UNAVAILABLE: 5
""")


def classify_resend(name: str, message: str, status: int | None = None) -> Failure:
    """Judge an error of Resend by its name; where that is unknown, or there is none, by its HTTP status."""
    bare = one_line(name)
    rule, ruling = _rule(bare, status)
    return failure_of(
        ruling,
        code=f"RESEND_{upper_snake(bare) or 'UNKNOWN'}",
        original_code=bare or None,
        reason=message if one_line(message) else name,
        rule=rule,
    )


def _rule(name: str, status: int | None) -> tuple[str, Ruling]:
    if status == FORBIDDEN and (ruling := FORBIDDEN_NAMES.get(name)):
        return f"resend.{name}.forbidden", ruling
    if ruling := NAMES.get(name):
        return f"resend.{name}", ruling
    ruling = None if status is None else _of_status(status, is_named=bool(name))
    return ("resend.unknown", UNKNOWN) if ruling is None else (f"resend.status.{status}", ruling)


def _of_status(status: int, *, is_named: bool) -> Ruling | None:
    if not is_named:
        return http.ruling_of(status)
    return STATUSES.get(str(status)) or STATUS_CLASSES.get(str(status // 100))


_CODES = {name: classify_resend(name, name).code for name in NAMES}
ANSWERS = Answers(
    codes=FOUND_OUT | {"RESEND_TIMEOUT", "RESEND_UNKNOWN"} | frozenset(_CODES.values()),
    names=_CODES,
    rulings={f"resend.{name}": ruling for name, ruling in NAMES.items()},
    is_own=lambda told: "_" in told.name and (told.name in NAMES or told.is_http),
    judge=lambda told: classify_resend(told.name, told.message, told.status),
    why="the name of the error decides, else its status",
)
