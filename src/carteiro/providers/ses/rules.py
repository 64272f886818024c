"""The errors of SES: of its v2 send call, of its older API, and those that all AWS services share.

Names stand without the "Exception" that some of them carry on the wire.
"""

import re
from collections.abc import Mapping

from carteiro.model import Failure, Scope
from carteiro.policy.classify import LONGEST_READ, bare_name, failure_of, one_line, upper_snake
from carteiro.policy.rules.answers import FOUND_OUT, Answers, Parsed
from carteiro.policy.rules.phrases import Said
from carteiro.policy.rules.ruling import UNKNOWN, USED_UP, Ruling, meanings, never
from carteiro.policy.rules.words import TextRule, phrases_of, rules

# These are SES's alone and count wherever a text begins with them.
NAMES = meanings("""
    BAD_MESSAGE: MessageRejected
    OUR_SENDER: MailFromDomainNotVerified
    OUR_ACCOUNT: ConfigurationSetDoesNotExist
    CLOSED_ACCOUNT: AccountSendingPaused ConfigurationSetSendingPaused
    THROTTLED: Throttling MaxSendRateExceeded
    USED_UP: DailyQuotaExceeded
    UNAVAILABLE: ServiceUnavailable
    BROKEN_BY_TIMEOUT: RequestTimeout
    BROKEN: NetworkingError
""")

# Other systems use such names too, so that in a text they count only behind a prefix of SES.
COMMON_NAMES = meanings("""
    THROTTLED: TooManyRequests LimitExceeded RequestThrottled
    CLOSED_ACCOUNT: AccountSuspended SendingPaused
    OUR_ACCOUNT:
        NotFound TemplateDoesNotExist AccessDenied NotAuthorized OptInRequired IncompleteSignature
        InvalidSignature InvalidClientTokenId UnrecognizedClient MissingAuthenticationToken
        SignatureDoesNotMatch ExpiredToken RequestExpired
    OUR_SENDER: FromEmailAddressNotVerified
    BAD_MESSAGE:
        BadRequest Conflict AlreadyExists InvalidNextToken MalformedQueryString
        RequestEntityTooLarge MissingAction InvalidAction UnknownOperation Serialization
    INVALID_MESSAGE:
        InvalidParameterValue InvalidParameterCombination MissingParameter ValidationError
        Validation
    BROKEN: InternalServiceError InternalServerError InternalFailure InternalError
    UNAVAILABLE: ConcurrentModification
""")

# An answer without a name is a proxy's rather than SES', and has its status for a name; it may pass with the proxy.
STATUSES = meanings("""
    ACCOUNT_LATER: 401 403 407
    TIMED_OUT: 408
    BAD_MESSAGE: 413
    THROTTLED: 429
""")
STATUS_CLASSES = meanings("UNAVAILABLE: 5")

# Every other code is SES_ and the name in upper snake case.
CODES: Mapping[str, str] = {"RequestTimeout": "SES_TIMEOUT", "NetworkingError": "NETWORK_ERROR"}

# What the message adds to a name. The category of an error that the tables of codes name stays what it is there,
# as programs go by it; whose fault it is, the words tell.
_USED_UP = (TextRule("daily_quota", USED_UP, ("daily message quota",)),)
DETAILS: Mapping[str, tuple[TextRule, ...]] = {
    "MessageRejected": (TextRule("not_verified", never(Scope.SENDER), ("not verified",)),),
    "BadRequest": rules("tenant OUR_TENANT: tenant & associated | {tenant,identity} & association"),
    "SendingPaused": (TextRule("tenant", never(Scope.TENANT), ("tenant",)),),
    "Throttling": _USED_UP,
    "TooManyRequests": _USED_UP,
    "LimitExceeded": _USED_UP,
}

_ALL_NAMES: Mapping[str, Ruling] = {**NAMES, **COMMON_NAMES}
_PHRASES = {name: phrases_of(listed) for name, listed in DETAILS.items()}
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
    | {
        f"ses.{name}.{each.name}": each.ruling
        for name, listed in DETAILS.items()
        for each in listed
    },
    is_own=lambda parsed: parsed.is_http and bare_name(parsed.name) in _ALL_NAMES,
    judge=_judge,
    finds=_found,
    why="the name of the error decides",
)
