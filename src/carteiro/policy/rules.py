"""What the answers of providers mean, as data; `classify` looks them up.

Sources: RFC 5321 and its extensions for reply codes, RFC 3463 and the registry that grew from it
for enhanced ones, the send errors of the SES v2 API.
"""

import re
from collections.abc import Mapping

from carteiro.model import Category, Scope, value


@value
class Ruling:
    """What a rule says of a failure."""

    category: Category
    retryable: bool
    scope: Scope


@value
class TextRule:
    """A ruling that rests on the words of a reply."""

    name: str
    words: re.Pattern[str]
    ruling: Ruling


def _later(scope: Scope, category: Category = Category.TRANSIENT_ERROR) -> Ruling:
    return Ruling(category, retryable=True, scope=scope)


def _never(scope: Scope, category: Category = Category.PERMANENT_ERROR) -> Ruling:
    return Ruling(category, retryable=False, scope=scope)


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


_FULL_MAILBOX = _later(Scope.RECIPIENT, Category.QUOTA_ERROR)
_CROWDED = _later(Scope.DESTINATION, Category.QUOTA_ERROR)
_THROTTLED = _later(Scope.PROVIDER, Category.QUOTA_ERROR)
_UNAVAILABLE = _later(Scope.PROVIDER)
_OUR_ACCOUNT = _never(Scope.PROVIDER, Category.CONFIGURATION_ERROR)
_OUR_SENDER = _never(Scope.SENDER, Category.CONFIGURATION_ERROR)
_NO_MAILBOX = _never(Scope.RECIPIENT)
_BAD_MESSAGE = _never(Scope.MESSAGE)

REFUSED = _BAD_MESSAGE
UNKNOWN = _later(Scope.MESSAGE)  # the message's: a fault that nobody knows must still be charged

# --- SMTP -------------------------------------------------------------------------------------

# An enhanced code listed here is specific enough to be believed whatever the text says.
ENHANCED: Mapping[str, Ruling] = {
    "4.2.2": _FULL_MAILBOX,
    "4.3.1": _CROWDED,
    "4.4.5": _CROWDED,
    "4.7.28": _CROWDED,
    "5.1.1": _NO_MAILBOX,
    "5.1.2": _NO_MAILBOX,
    "5.1.3": _NO_MAILBOX,
    "5.1.6": _NO_MAILBOX,
    "5.1.7": _OUR_SENDER,
    "5.1.8": _OUR_SENDER,
    "5.1.10": _NO_MAILBOX,
    # RFC 3463 on x.2.2: "should be used as a persistent transient failure".
    "5.2.2": _FULL_MAILBOX,
    "5.2.3": _BAD_MESSAGE,
    "5.3.1": _CROWDED,
    "5.3.4": _BAD_MESSAGE,
    "5.4.5": _CROWDED,
    "5.5.6": _OUR_ACCOUNT,
    "5.7.8": _OUR_ACCOUNT,
    "5.7.9": _OUR_ACCOUNT,
    "5.7.11": _OUR_ACCOUNT,
    "5.7.12": _OUR_ACCOUNT,
    "5.7.13": _NO_MAILBOX,
    "5.7.14": _OUR_ACCOUNT,
    "5.7.17": _NO_MAILBOX,
    "5.7.18": _NO_MAILBOX,
    "5.7.20": _OUR_SENDER,
    "5.7.21": _OUR_SENDER,
    "5.7.22": _OUR_SENDER,
    "5.7.23": _OUR_SENDER,
    "5.7.24": _OUR_SENDER,
    "5.7.25": _OUR_SENDER,
    "5.7.26": _OUR_SENDER,
    "5.7.27": _OUR_SENDER,
    "5.7.28": _CROWDED,
}

# Class and subject: what is left when neither the whole code nor the text says more.
SUBJECTS: Mapping[str, Ruling] = {
    "4.1": _later(Scope.RECIPIENT),
    "4.2": _later(Scope.RECIPIENT),
    "4.3": _later(Scope.DESTINATION),
    "4.4": _later(Scope.DESTINATION),
    "4.5": _later(Scope.MESSAGE),
    "4.6": _later(Scope.MESSAGE),
    "4.7": _later(Scope.DESTINATION),
    "5.1": _NO_MAILBOX,
    "5.2": _NO_MAILBOX,
    "5.3": _never(Scope.DESTINATION),
    "5.4": _never(Scope.DESTINATION),
    "5.5": _BAD_MESSAGE,
    "5.6": _BAD_MESSAGE,
    "5.7": _BAD_MESSAGE,
}

CODES: Mapping[str, Ruling] = {
    "421": _later(Scope.DESTINATION),
    "450": _later(Scope.RECIPIENT),
    "451": _later(Scope.DESTINATION),
    "452": _FULL_MAILBOX,
    "454": _later(Scope.PROVIDER),
    "455": _later(Scope.MESSAGE),
    "500": _BAD_MESSAGE,
    "501": _BAD_MESSAGE,
    "502": _BAD_MESSAGE,
    "503": _BAD_MESSAGE,
    "504": _BAD_MESSAGE,
    "521": _NO_MAILBOX,
    "523": _OUR_ACCOUNT,
    "524": _OUR_ACCOUNT,
    "525": _NO_MAILBOX,
    "530": _OUR_ACCOUNT,
    "534": _OUR_ACCOUNT,
    "535": _OUR_ACCOUNT,
    "538": _OUR_ACCOUNT,
    "550": _NO_MAILBOX,
    "551": _NO_MAILBOX,
    "552": _NO_MAILBOX,
    "553": _NO_MAILBOX,
    "554": _BAD_MESSAGE,
    "555": _BAD_MESSAGE,
    "556": _NO_MAILBOX,
}

# A success or a "go on" where a refusal was expected is a protocol fault of the other side.
CLASSES: Mapping[str, Ruling] = {
    "2": _later(Scope.PROVIDER),
    "3": _later(Scope.PROVIDER),
    "4": _later(Scope.DESTINATION),
    "5": _BAD_MESSAGE,
}

# Codes that are used both for good and for now: "no such user" and "too many connections" alike.
AMBIGUOUS_CODES = frozenset({"550", "552"})

# The first that matches decides. Greylisting comes before all: its replies often quote a refusal
# ("Recipient address rejected: Greylisted").
TEXT_RULES: tuple[TextRule, ...] = (
    TextRule(
        "greylisted",
        _words(r"gr[ae]y[ -]?list | postgrey"),
        _later(Scope.DESTINATION),
    ),
    TextRule(
        "user_unknown",
        _words(
            r"""(user|recipient|mailbox|address|account)\ (is\ )?(unknown|invalid|not\ (found|known))
            | (unknown|invalid|no\ such)\ (user|recipient|mailbox|address|account)
            | does(\ not|n't)\ exist | recipient\ (address\ )?rejected
            | not\ our\ customer | unrout(e)?able | utilisateur\ inconnu"""
        ),
        _NO_MAILBOX,
    ),
    TextRule(
        "mailbox_disabled",
        _words(
            r"""\b(user|recipient|mailbox|address|account)\b.{0,40}
            \b(disabled|inactive|closed|suspended|not\ activated)\b"""
        ),
        _NO_MAILBOX,
    ),
    TextRule(
        "message_too_big",
        _words(r"message\ size | size\ (limit|exceed) | (message|mail)\ (is\ )?too\ (big|large)"),
        _BAD_MESSAGE,
    ),
    TextRule(
        "mailbox_full",
        _words(
            r"box\ (is\ )?full | full\ mailbox | \b(over)?quota\b | \bstorage\b | \binode\ limit"
        ),
        _FULL_MAILBOX,
    ),
    TextRule(
        "throttled_by_provider",
        _words(r"throttling\ failure"),
        _THROTTLED,
    ),
    TextRule(
        "rate",
        _words(
            r"""\brate\b | \bfrequency\b | receivingrate | slow\ down | too\ (fast|quickly)
            | too\ many\ (\w+\ )?(connections|messages|mails|emails|errors)"""
        ),
        _CROWDED,
    ),
    TextRule(
        "come_back",
        _words(r"try\ again | \blater\b | \btemporar(y|ily)\b | come\ back"),
        _later(Scope.DESTINATION),
    ),
    TextRule(
        "sender_not_authenticated",
        _words(r"\b(spf|dkim|dmarc)\b | unauthenticated"),
        _OUR_SENDER,
    ),
    TextRule(
        "relay_denied",
        _words(r"relay(ing)?\ (access\ )?denied | to\ relay\b | authentication\ required"),
        _OUR_ACCOUNT,
    ),
    TextRule(
        "content_refused",
        _words(r"\bspam\b | \bphishing\b | \bvirus\b | \battachment\b"),
        _BAD_MESSAGE,
    ),
)

# --- SES --------------------------------------------------------------------------------------

# Names stand without the "Exception" that some of them carry on the wire. These are SES's alone
# and count wherever a text begins with them.
SES: Mapping[str, Ruling] = {
    "MessageRejected": _BAD_MESSAGE,
    "MailFromDomainNotVerified": _OUR_SENDER,
    "ConfigurationSetDoesNotExist": _OUR_ACCOUNT,
    "AccountSendingPaused": _never(Scope.PROVIDER),
    "Throttling": _THROTTLED,
    "MaxSendRateExceeded": _THROTTLED,
    "DailyQuotaExceeded": _THROTTLED,
    "ServiceUnavailable": _UNAVAILABLE,
    "RequestTimeout": _later(Scope.PROVIDER, Category.TIMEOUT_ERROR),
    "NetworkingError": _UNAVAILABLE,
}

# Other systems use such names too, so that in a text they count only behind a prefix of SES.
SES_COMMON: Mapping[str, Ruling] = {
    "TooManyRequests": _THROTTLED,
    "LimitExceeded": _THROTTLED,
    "AccountSuspended": _never(Scope.PROVIDER),
    "SendingPaused": _never(Scope.PROVIDER),
    "NotFound": _OUR_ACCOUNT,
    "BadRequest": _BAD_MESSAGE,
    "InvalidParameterValue": _BAD_MESSAGE,
    "ValidationError": _BAD_MESSAGE,
    "MalformedQueryString": _BAD_MESSAGE,
    "RequestEntityTooLarge": _BAD_MESSAGE,
    "InternalServiceError": _UNAVAILABLE,
    "InternalFailure": _UNAVAILABLE,
    "ConcurrentModification": _UNAVAILABLE,
    "AccessDenied": _OUR_ACCOUNT,
    "NotAuthorized": _OUR_ACCOUNT,
    "OptInRequired": _OUR_ACCOUNT,
    "IncompleteSignature": _OUR_ACCOUNT,
    "InvalidClientTokenId": _OUR_ACCOUNT,
    "UnrecognizedClient": _OUR_ACCOUNT,
    "SignatureDoesNotMatch": _OUR_ACCOUNT,
    "ExpiredToken": _OUR_ACCOUNT,
    "RequestExpired": _OUR_ACCOUNT,
}

# Every other code is SES_ and the name in upper snake case.
SES_CODES: Mapping[str, str] = {
    "RequestTimeout": "SES_TIMEOUT",
    "NetworkingError": "NETWORK_ERROR",
}

# --- Resend -----------------------------------------------------------------------------------

RESEND: Mapping[str, Ruling] = {
    "validation_error": _BAD_MESSAGE,
    "invalid_idempotency_key": _BAD_MESSAGE,
    "missing_api_key": _OUR_ACCOUNT,
    "restricted_api_key": _OUR_ACCOUNT,
    "invalid_api_key": _OUR_ACCOUNT,
    "suspended_api_key": _OUR_ACCOUNT,
    "invalid_permission": _OUR_ACCOUNT,
    "not_found": _OUR_ACCOUNT,
    "method_not_allowed": _OUR_ACCOUNT,
    "concurrent_idempotent_requests": _later(Scope.MESSAGE),
    "invalid_idempotent_request": _BAD_MESSAGE,
    "resource_locked": _UNAVAILABLE,
    "invalid_attachment": _BAD_MESSAGE,
    "invalid_from_address": _OUR_SENDER,
    "invalid_parameter": _BAD_MESSAGE,
    "missing_required_field": _BAD_MESSAGE,
    "missing_required_parameter": _BAD_MESSAGE,
    "invalid_access": _OUR_ACCOUNT,
    "invalid_region": _OUR_ACCOUNT,
    "rate_limit_exceeded": _THROTTLED,
    "daily_quota_exceeded": _THROTTLED,
    "monthly_quota_exceeded": _THROTTLED,
    "security_error": _never(Scope.TENANT, Category.CONFIGURATION_ERROR),
    "application_error": _UNAVAILABLE,
    "internal_server_error": _UNAVAILABLE,
    "service_unavailable": _UNAVAILABLE,
}
