"""The errors of SES: of its v2 send call, of its older API, and those that all AWS services share.

Names stand without the "Exception" that some of them carry on the wire.
"""

from collections.abc import Mapping

from carteiro.model import Category, Scope
from carteiro.policy.rules.ruling import (
    BAD_MESSAGE,
    INVALID_MESSAGE,
    OUR_ACCOUNT,
    OUR_SENDER,
    OUR_TENANT,
    THROTTLED,
    UNAVAILABLE,
    Ruling,
    later,
    never,
)
from carteiro.policy.rules.words import TextRule, rule

_CLOSED_ACCOUNT = never(Scope.PROVIDER)

# These are SES's alone and count wherever a text begins with them.
NAMES: dict[str, Ruling] = {
    "MessageRejected": BAD_MESSAGE,
    "MailFromDomainNotVerified": OUR_SENDER,
    "ConfigurationSetDoesNotExist": OUR_ACCOUNT,
    "AccountSendingPaused": _CLOSED_ACCOUNT,
    "ConfigurationSetSendingPaused": _CLOSED_ACCOUNT,
    "Throttling": THROTTLED,
    "MaxSendRateExceeded": THROTTLED,
    "DailyQuotaExceeded": THROTTLED,
    "ServiceUnavailable": UNAVAILABLE,
    "RequestTimeout": later(Scope.PROVIDER, Category.TIMEOUT_ERROR),
    "NetworkingError": UNAVAILABLE,
}

# Other systems use such names too, so that in a text they count only behind a prefix of SES.
COMMON_NAMES: dict[str, Ruling] = {
    "TooManyRequests": THROTTLED,
    "LimitExceeded": THROTTLED,
    "RequestThrottled": THROTTLED,
    "AccountSuspended": _CLOSED_ACCOUNT,
    "SendingPaused": _CLOSED_ACCOUNT,
    "NotFound": OUR_ACCOUNT,
    "TemplateDoesNotExist": OUR_ACCOUNT,
    "FromEmailAddressNotVerified": OUR_SENDER,
    "BadRequest": BAD_MESSAGE,
    "Conflict": BAD_MESSAGE,
    "AlreadyExists": BAD_MESSAGE,
    "InvalidNextToken": BAD_MESSAGE,
    "InvalidParameterValue": INVALID_MESSAGE,
    "InvalidParameterCombination": INVALID_MESSAGE,
    "MissingParameter": INVALID_MESSAGE,
    "ValidationError": INVALID_MESSAGE,
    "Validation": INVALID_MESSAGE,
    "MalformedQueryString": BAD_MESSAGE,
    "RequestEntityTooLarge": BAD_MESSAGE,
    "MissingAction": BAD_MESSAGE,
    "InvalidAction": BAD_MESSAGE,
    "UnknownOperation": BAD_MESSAGE,
    "Serialization": BAD_MESSAGE,
    "InternalServiceError": UNAVAILABLE,
    "InternalServerError": UNAVAILABLE,
    "InternalFailure": UNAVAILABLE,
    "InternalError": UNAVAILABLE,
    "ConcurrentModification": UNAVAILABLE,
    "AccessDenied": OUR_ACCOUNT,
    "NotAuthorized": OUR_ACCOUNT,
    "OptInRequired": OUR_ACCOUNT,
    "IncompleteSignature": OUR_ACCOUNT,
    "InvalidSignature": OUR_ACCOUNT,
    "InvalidClientTokenId": OUR_ACCOUNT,
    "UnrecognizedClient": OUR_ACCOUNT,
    "MissingAuthenticationToken": OUR_ACCOUNT,
    "SignatureDoesNotMatch": OUR_ACCOUNT,
    "ExpiredToken": OUR_ACCOUNT,
    "RequestExpired": OUR_ACCOUNT,
}

# An answer without a name is a proxy's rather than SES', and has its status for a name; it may pass with the proxy.
_SHUT_OUT = later(Scope.PROVIDER, Category.CONFIGURATION_ERROR)
STATUSES: dict[str, Ruling] = {
    "401": _SHUT_OUT,
    "403": _SHUT_OUT,
    "407": _SHUT_OUT,
    "408": later(Scope.PROVIDER, Category.TIMEOUT_ERROR),
    "413": BAD_MESSAGE,
    "429": THROTTLED,
}
STATUS_CLASSES: dict[str, Ruling] = {"5": UNAVAILABLE}

# Every other code is SES_ and the name in upper snake case.
CODES: Mapping[str, str] = {
    "RequestTimeout": "SES_TIMEOUT",
    "NetworkingError": "NETWORK_ERROR",
}

# What the message adds to a name. The category of an error that the tables of codes name stays what it is there,
# as programs go by it; whose fault it is, the words tell.
_USED_UP = (rule("daily_quota", THROTTLED, "daily message quota"),)
DETAILS: Mapping[str, tuple[TextRule, ...]] = {
    "MessageRejected": (rule("not_verified", never(Scope.SENDER), "not verified"),),
    "BadRequest": (
        rule("tenant", OUR_TENANT, "tenant & associated | {tenant,identity} & association"),
    ),
    "SendingPaused": (rule("tenant", never(Scope.TENANT), "tenant"),),
    "Throttling": _USED_UP,
    "TooManyRequests": _USED_UP,
    "LimitExceeded": _USED_UP,
}
