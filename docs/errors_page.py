"""The reference page of what goes wrong: every code of an answer, of a failure and of a dead letter."""

from collections.abc import Mapping
from typing import Any

from carteiro.api.refusal import _CODES as CODES
from carteiro.api.refusal import STORAGE_LIMIT
from carteiro.model import Category, DeadReason

_STATUSES: Mapping[int, str] = {
    400: "The body or the query is malformed or incomplete; `details` names the fields.",
    401: "No key, or a key that is unknown, revoked, expired, or of a disabled tenant.",
    403: "The key is valid, but not from this address: the tenant has a list of networks; the token's "
    "[role](roles.md) or tenant does not allow it; or feedback is not enabled.",
    404: "It does not exist, or belongs to another tenant: both get the same answer.",
    405: "The path exists, but not with this method.",
    408: "The request did not arrive in time, and is dropped.",
    409: "Not possible in the current state: finished, redriven already, or the `Idempotency-Key` of another e-mail.",
    413: "The request is too large.",
    415: "The body must be sent as the type that the endpoint names, without `Content-Encoding`.",
    422: "Well-formed, with a value that is not allowed; `details` names the fields.",
    429: "The tenant reached a limit: messages (see `X-RateLimit-…`), requests or bytes in flight, changes, previews; "
    "retry after `Retry-After`.",
    500: "An internal error; the log has it under the `requestId`.",
    503: "The store is down or full: nothing was stored; retry after `Retry-After`.",
}

_STORAGE = (
    "The tenant keeps as many templates or suppressions as `[storage]` allows: delete some first."
)

OWN_CODES: Mapping[str, str] = {
    "AUTH_ERROR": "the relay offers no supported login method",
    "CREDENTIALS_MISSING": "no credentials for the provider were found, or they could not be fetched",
    "CRASHES_WORKER": "its workers crashed before an attempt",
    "EXPIRED": "not sent within its time to live",
    "IN_DOUBT": "an attempt was started, and its worker never reported a result",
    "INVALID_EMAIL": "an address is not valid",
    "INVALID_PAYLOAD": "the stored content cannot be read",
    "INVALID_TEMPLATE": "subject or HTML must not be sent: see [HTML that is sent](html.md)",
    "MARKED_FAILED": "an application reported by SQL that its own attempt failed",
    "NETWORK_ERROR": "the provider was unreachable, or disconnected",
    "NOT_MADE": "the attempt was not made",
    "OUTBOX_NOT_FOUND": "the ledger has no such message of this tenant",
    "RECIPIENT_NOT_FOUND": "the recipient was deleted, or has another address",
    "REGION_MISSING": "no region is set, and none was found",
    "SENDER_MISSING": "no `from`, and no default for it; correct it with `carteiro dead edit ID --from ADDRESS`",
    "SMTPUTF8_MISSING": "an address is not ASCII, and the relay or provider cannot take that",
    "SUPPRESSED": "the address is on the tenant's suppression list",
    "TASK_ERROR": "a task raised an exception",
    "TLS_ERROR": "the relay offers no encryption, or its certificate is not trusted",
    "UNKNOWN": "no rule matches: retried",
}

_CATEGORIES: Mapping[Category, str] = {
    Category.VALIDATION_ERROR: "the submitted content must not be sent",
    Category.PERMANENT_ERROR: "the recipient's side rejects it permanently",
    Category.CONFIGURATION_ERROR: "our account, sender or certificate",
    Category.TRANSIENT_ERROR: "may be temporary",
    Category.QUOTA_ERROR: "too fast, too many, or a full mailbox",
    Category.TIMEOUT_ERROR: "no answer in time",
}

_REASONS: Mapping[DeadReason, str] = {
    DeadReason.MAX_ATTEMPTS_EXCEEDED: "every attempt of its preset failed",
    DeadReason.PERMANENT_ERROR: "another attempt would fail the same way",
    DeadReason.VALIDATION_FAILED: "it must not be sent as it is",
    DeadReason.EXPIRED: "it was not sent within its time to live",
    DeadReason.IN_DOUBT: (
        "it may have been delivered, whatever its code says: look for it before you redrive it"
    ),
    DeadReason.CRASHES_WORKER: "its workers died before they could attempt it",
}


def errors_page(note: str) -> str:
    """Every code of an answer, of a failure and of a dead letter."""
    statuses = "".join(
        f"| {status} | `{code}` | {_STATUSES[status]} |\n"
        for status, code in sorted((*CODES.items(), (422, STORAGE_LIMIT)))
    ).replace(f"`{STORAGE_LIMIT}` | {_STATUSES[422]}", f"`{STORAGE_LIMIT}` | {_STORAGE}")
    return (
        f"# Errors\n\n{note}\n"
        "## Answers of the API\n\n"
        "A request that fails leaves nothing behind. It is answered in one shape:\n\n"
        "```json\n"
        '{"error": {"code": "INVALID_VALUE", "message": "The request has values that are not allowed",\n'
        '  "requestId": "01a1e1b4-8825-7113-835f-50ec000b76d6", "timestamp": "2027-01-15T08:00:00.000Z",\n'
        '  "details": [{"field": "to", "message": "is not an e-mail address"}]}}\n'
        "```\n\n"
        f"| status | `code` | meaning |\n| --- | --- | --- |\n{statuses}\n"
        "Retry after 408, 429, 500 and 503, with the same `Idempotency-Key`; after the others only with a changed\n"
        "request.\n\n"
        "## Exit codes of the command line\n\n"
        "See [the command line](cli.md).\n\n"
        "## Failures of messages\n\n"
        "`errorCode` and `errorCategory` of a message, `lastFailureCode` and `category` of a dead letter.\n"
        "The code of an SMTP reply is its number, that of an error of SES or Resend its name; what the provider\n"
        "itself said is `originalCode`.\n\n"
        f"| category | |\n| --- | --- |\n{_told({each: _CATEGORIES[each] for each in Category})}\n"
        f"| our own codes | |\n| --- | --- |\n{_told(OWN_CODES)}"
        "| `PROVIDER_TIMEOUT` | `PROVIDER` did not answer in time: `SMTP_TIMEOUT`, `SANDBOX_TIMEOUT` |\n\n"
        "For the meaning of each provider answer see [error and verdict](verdicts.md).\n\n"
        "## Reasons of dead letters\n\n"
        f"| `reason` | |\n| --- | --- |\n{_told({each: _REASONS[each] for each in DeadReason})}"
    )


def _told(meanings: Mapping[Any, str]) -> str:
    return "".join(f"| `{name}` | {meaning} |\n" for name, meaning in meanings.items())
