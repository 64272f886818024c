"""Failures of calls to SES, and what they prove.

A mail is handed over with the last bytes of its request, and not before. A refusal proves that it was
not accepted; an internal error of SES, or no answer, proves nothing.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from botocore import exceptions

from carteiro import model
from carteiro.policy import classify
from carteiro.policy.masking import masked_text
from carteiro.providers.ses.rules import classify_ses

NAME = "ses"
NOT_PERMITTED = frozenset({"AccessDenied", "AccessDeniedException", "NotAuthorized"})

_SERVER_ERROR, _REQUEST_TIMEOUT = 500, 408
# Answers of the 500s in which SES itself says that it did not do what it was asked.
_REFUSALS = frozenset(
    {
        *("ConcurrentModificationException", "ServiceUnavailable", "ServiceUnavailableException"),
        *("SlowDown", "Throttling", "ThrottlingException", "TooManyRequestsException"),
    }
)
_LONGEST_WAIT = timedelta(days=1)  # a header that asks for more is not believed


def said(error: exceptions.ClientError, *, begun: bool) -> model.Outcome:
    """The outcome of an answer of SES, before or after the hand-over has begun."""
    answer: Mapping[str, Any] = error.response
    name = name_of(error)
    failure = classify_ses(name, answer.get("Error", {}).get("Message") or name)
    told = answer.get("ResponseMetadata", {})
    if begun and not _is_refusal(int(told.get("HTTPStatusCode", 0)), name):
        return model.Unknown(failure)
    if not failure.retryable:
        return model.Rejected(failure)
    return model.Deferred(failure, _retry_after(told.get("HTTPHeaders", {})))


def name_of(error: exceptions.ClientError) -> str:
    """The error name of SES; the status of an answer without a name."""
    return str(error.response.get("Error", {}).get("Code", ""))


def _is_refusal(status: int, name: str) -> bool:
    is_broken = status >= _SERVER_ERROR or status == _REQUEST_TIMEOUT
    return not is_broken or name in _REFUSALS


def _retry_after(headers: Mapping[str, str]) -> timedelta:
    """The wait that SES asks for, in whole seconds; other values are ignored."""
    asked = headers.get("retry-after", "")
    if not (asked.isascii() and asked.isdigit() and len(asked) <= len("86400")):
        return model.ZERO
    return min(timedelta(seconds=int(asked)), _LONGEST_WAIT)


def broke(error: exceptions.BotoCoreError) -> model.Failure:
    """The failure of a call without an answer."""
    said = masked_text(str(error))  # may name a proxy
    match error:
        case exceptions.ConnectTimeoutError() | exceptions.ReadTimeoutError():
            failure = classify.timeout(NAME)
            return replace(failure, reason=f"{failure.reason}: {classify.one_line(said)}")
        case exceptions.SSLError():
            return classify.unfit(NAME, "TLS_ERROR", said)
        case (
            exceptions.NoCredentialsError()
            | exceptions.PartialCredentialsError()
            | exceptions.CredentialRetrievalError()
            | exceptions.TokenRetrievalError()
        ):
            return classify.unfit(NAME, "CREDENTIALS_MISSING", said)
        case exceptions.NoRegionError():
            return classify.unfit(NAME, "REGION_MISSING", said)
    return classify.network(said)


NOT_INTERNATIONAL = classify.not_international(NAME, "SES does not take such addresses")

NO_MESSAGE_ID = classify.network("SES answered without a MessageId")
