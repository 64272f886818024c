"""Results of the confirm stage: whether an e-mail may be sent, or what is missing."""

from typing import TypeAlias

from carteiro.email.message import Email
from carteiro.model import Failure, value


@value
class Confirmed:
    """The e-mail may be sent; ``validations`` are those it passed, ``left_out`` the copies that it goes without."""

    email: Email
    validations: tuple[str, ...]
    left_out: tuple[str, ...] = ()


@value
class Unfit:
    """The e-mail must not be sent; ``validation`` is the one that failed."""

    validation: str
    failure: Failure


@value
class Unrendered:
    """The e-mail names a template whose words are still to be put in."""

    email: Email


@value
class NeedsCloserLook:
    """The e-mail passes but for its HTML, which is long or spells out something active: see `judge_closely`."""

    email: Email


Confirmation: TypeAlias = Confirmed | Unfit | Unrendered | NeedsCloserLook
