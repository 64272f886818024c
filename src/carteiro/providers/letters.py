"""The mail as a provider hands it over, or the reason why it cannot be handed over."""

from collections.abc import Callable
from typing import TypeVar

from carteiro.email.message import Email
from carteiro.model import Rejected
from carteiro.policy import classify
from carteiro.ports.provider import Parcel

Letter = TypeVar("Letter")


def written(
    parcel: Parcel, provider: str, default_from: str, write: Callable[[Parcel, str], Letter]
) -> Letter | Rejected:
    """The mail as ``write`` makes it for a sender; `Rejected` without a sender, or on its ValueError."""
    email: Email = parcel.content
    sender = email.from_ or default_from
    if not sender:
        return Rejected(classify.no_sender(provider))
    try:
        return write(parcel, sender)
    except ValueError as error:
        return Rejected(classify.validation("INVALID_PAYLOAD", str(error)))
