"""The headers of an e-mail whose template offers to unsubscribe with one click."""

from collections.abc import Mapping

from carteiro.email.message import MOST_HEADERS, Email
from carteiro.errors import FieldError, InvalidMessage
from carteiro.model import MessageId, TenantId
from carteiro.policy.unsubscribe import LONGEST_TENANT, OneClick

_NAME = "list-unsubscribe"
_OURS = 2


def with_link(
    email: Email, offer: OneClick | None, *, tenant: TenantId, message: MessageId
) -> Email:
    """The e-mail with the link of its recipient, if its template offers one; `InvalidMessage` if it cannot have one."""
    if email.template is None or not email.template.one_click:
        return email
    fault = offer_fault(tenant, offer)
    if offer is None or fault is not None:
        raise InvalidMessage(
            [FieldError("template.type", f"offers one-click unsubscribe: it {fault}")]
        )
    faults = [
        FieldError(f"headers.{name}", "is set by the template, for one-click unsubscribe")
        for name in email.headers
        if _is_ours(name)
    ]
    if len(email.headers) + _OURS > MOST_HEADERS:
        most = f"must have at most {MOST_HEADERS - _OURS} items: the template sets {_OURS} more"
        faults.append(FieldError("headers", most))
    if faults:
        raise InvalidMessage(faults)
    link = {
        "List-Unsubscribe": f"<{offer.url_for(email.to, tenant=tenant, message=message)}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }
    return email.model_copy(update={"headers": {**email.headers, **link}})


def offer_fault(tenant: TenantId, offer: OneClick | None) -> str | None:
    """The reason why templates of a tenant cannot offer it; None: they can."""
    if offer is None:
        return "needs unsubscribe.url and unsubscribe.secrets in the settings"
    if len(tenant.encode()) > LONGEST_TENANT:
        return f"needs a tenant whose id has at most {LONGEST_TENANT} bytes"
    return None


def without_link(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that the sender gave."""
    return {name: text for name, text in headers.items() if not _is_ours(name)}


def _is_ours(name: str) -> bool:
    return name.lower().startswith(_NAME)
