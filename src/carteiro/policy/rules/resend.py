"""The errors of Resend, by the names that its documents and its own clients know."""

from collections.abc import Mapping

from carteiro.model import Category, Scope
from carteiro.policy.rules.ruling import (
    BAD_MESSAGE,
    INVALID_MESSAGE,
    MESSAGE_LATER,
    OUR_ACCOUNT,
    OUR_SENDER,
    OUR_TENANT,
    THROTTLED,
    UNAVAILABLE,
    Ruling,
    later,
)

NAMES: Mapping[str, Ruling] = {
    "validation_error": INVALID_MESSAGE,
    "invalid_idempotency_key": BAD_MESSAGE,
    "missing_api_key": OUR_ACCOUNT,
    "restricted_api_key": OUR_ACCOUNT,
    "invalid_api_key": OUR_ACCOUNT,
    "suspended_api_key": OUR_ACCOUNT,
    "invalid_permission": OUR_ACCOUNT,
    "email_above_quota": BAD_MESSAGE,
    "not_found": OUR_ACCOUNT,
    "method_not_allowed": OUR_ACCOUNT,
    "concurrent_idempotent_requests": MESSAGE_LATER,
    "invalid_idempotent_request": BAD_MESSAGE,
    "resource_locked": UNAVAILABLE,
    "invalid_attachment": INVALID_MESSAGE,
    "invalid_from_address": INVALID_MESSAGE,
    "invalid_to_address": INVALID_MESSAGE,
    "invalid_parameter": INVALID_MESSAGE,
    "missing_required_field": INVALID_MESSAGE,
    "missing_required_fields": INVALID_MESSAGE,
    "missing_required_parameter": INVALID_MESSAGE,
    "invalid_access": OUR_ACCOUNT,
    "invalid_region": OUR_ACCOUNT,
    "invalid_scope": OUR_ACCOUNT,
    "rate_limit_exceeded": THROTTLED,
    "daily_quota_exceeded": THROTTLED,
    "monthly_quota_exceeded": THROTTLED,
    "security_error": OUR_TENANT,
    "application_error": UNAVAILABLE,
    "internal_server_error": UNAVAILABLE,
    "service_unavailable": UNAVAILABLE,
}

# The same name under this status says something else: the domain is not verified, or not allowed.
FORBIDDEN = 403
FORBIDDEN_NAMES: Mapping[str, Ruling] = {"validation_error": OUR_SENDER}

# A name that is not known: by its status where that says something, else by the class of it.
STATUSES: Mapping[int, Ruling] = {
    401: OUR_ACCOUNT,
    403: OUR_ACCOUNT,
    408: UNAVAILABLE,
    409: MESSAGE_LATER,
    429: THROTTLED,
}
STATUS_CLASSES: Mapping[int, Ruling] = {4: BAD_MESSAGE, 5: UNAVAILABLE}

# Without any name it is not Resend that speaks, but a proxy, or whoever is at a wrong address: it may pass with them.
_SHUT_OUT = later(Scope.PROVIDER, Category.CONFIGURATION_ERROR)
NAMELESS_STATUSES: Mapping[int, Ruling] = {
    401: _SHUT_OUT,
    403: _SHUT_OUT,
    407: _SHUT_OUT,
    408: later(Scope.PROVIDER, Category.TIMEOUT_ERROR),
    413: MESSAGE_LATER,  # too large for somebody in between: others still get through
    429: THROTTLED,
}
NAMELESS_STATUS_CLASSES: Mapping[int, Ruling] = {4: UNAVAILABLE, 5: UNAVAILABLE}
