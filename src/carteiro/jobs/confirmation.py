"""Results of the confirm stage: an e-mail may be sent, must not be sent, or needs another step."""

from typing import TypeAlias

from carteiro.email.message import Email
from carteiro.model import Failure, value


@value
class Confirmed:
    """The e-mail may be sent; ``validations`` are those it passed, ``left_out`` the copies that are dropped."""

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
    """The e-mail names a template that is not rendered yet."""

    email: Email


@value
class NeedsCloserLook:
    """All passes except the HTML, which is long or may contain active content: see `judge_closely`."""

    email: Email


Confirmation: TypeAlias = Confirmed | Unfit | Unrendered | NeedsCloserLook
