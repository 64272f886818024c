"""The errors of SES: of its v2 send call, of its older API, and those that all AWS services share.

Names stand without the "Exception" that some of them carry on the wire.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from carteiro.model import Category, Failure, Scope
from carteiro.policy.classify import LONGEST_READ, bare_name, failure_of, one_line, upper_snake
from carteiro.policy.rules.answers import FOUND_OUT, Answers, Parsed
from carteiro.policy.rules.phrases import Said
from carteiro.policy.rules.ruling import (
    BAD_MESSAGE,
    BROKEN,
    INVALID_MESSAGE,
    OUR_ACCOUNT,
    OUR_SENDER,
    OUR_TENANT,
    THROTTLED,
    UNAVAILABLE,
    UNKNOWN,
    USED_UP,
    Ruling,
    later,
    never,
)
from carteiro.policy.rules.words import TextRule, phrases_of, rule

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
    "DailyQuotaExceeded": USED_UP,
    "ServiceUnavailable": UNAVAILABLE,
    "RequestTimeout": replace(BROKEN, category=Category.TIMEOUT_ERROR),
    "NetworkingError": BROKEN,
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
    "InternalServiceError": BROKEN,
    "InternalServerError": BROKEN,
    "InternalFailure": BROKEN,
    "InternalError": BROKEN,
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
CODES: Mapping[str, str] = {"RequestTimeout": "SES_TIMEOUT", "NetworkingError": "NETWORK_ERROR"}

# What the message adds to a name. The category of an error that the tables of codes name stays what it is there,
# as programs go by it; whose fault it is, the words tell.
_USED_UP = (rule("daily_quota", USED_UP, "daily message quota"),)
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

_ALL_NAMES: Mapping[str, Ruling] = {**NAMES, **COMMON_NAMES}
_PHRASES = {name: phrases_of(rules) for name, rules in DETAILS.items()}
_IN_TEXT = re.compile(
    rf"""(?:^\s*(?P<bare>(?:{"|".join(NAMES)})(?:Exception)?)(?=\s*(?::|$))
    |(?:\bAWS\.SimpleEmailService\.|\bAn\ error\ occurred\ \()
     (?P<prefixed>(?:{"|".join(_ALL_NAMES)})(?:Exception)?)(?!\w))""",
    re.VERBOSE,
)


def classify_ses(name: str, message: str) -> Failure:
    """Judge an error of SES by its name, with or without its prefix and its ``Exception``."""
    bare = bare_name(name)
    rule, ruling = _rule(bare)
    if phrases := _PHRASES.get(bare):
        detail = phrases.first(Said(message[:LONGEST_READ]))
        rule, ruling = (f"{rule}.{detail.name}", detail.ruling) if detail else (rule, ruling)
    return failure_of(
        ruling,
        code=CODES.get(bare) or f"SES_{upper_snake(bare) or 'UNKNOWN'}",
        original_code=one_line(name) or None,
        reason=message if one_line(message) else name,
        rule=rule,
    )


def _rule(name: str) -> tuple[str, Ruling]:
    """By the name; by the status if an answer, such as that of a proxy, has none."""
    if ruling := _ALL_NAMES.get(name):
        return f"ses.{name}", ruling
    if name.isdecimal() and (ruling := STATUSES.get(name) or STATUS_CLASSES.get(name[0])):
        return f"ses.status.{name}", ruling
    return "ses.unknown", UNKNOWN


def _judge(parsed: Parsed) -> Failure | None:
    if parsed.name:
        return classify_ses(parsed.name, parsed.message)
    found = None if parsed.is_http else _found(parsed.text)
    if found or parsed.status is None:
        return found
    return classify_ses(str(parsed.status), parsed.message)


def _found(text: str) -> Failure | None:
    found = _IN_TEXT.search(text[:LONGEST_READ])
    return classify_ses(found["bare"] or found["prefixed"], text) if found else None


_NAMED_CODES = {name: classify_ses(name, name).code for name in _ALL_NAMES}
ANSWERS = Answers(
    codes=FOUND_OUT
    | {"CREDENTIALS_MISSING", "REGION_MISSING", "SMTPUTF8_MISSING", "TLS_ERROR"}
    | frozenset(_NAMED_CODES.values()),
    names=_NAMED_CODES,
    rulings={f"ses.{name}": ruling for name, ruling in _ALL_NAMES.items()}
    | {f"ses.{name}.{each.name}": each.ruling for name, rules in DETAILS.items() for each in rules},
    is_own=lambda parsed: parsed.is_http and bare_name(parsed.name) in _ALL_NAMES,
    judge=_judge,
    finds=_found,
    why="the name of the error decides",
)
