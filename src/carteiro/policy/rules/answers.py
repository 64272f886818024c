"""The interface of a provider's own rules, for the classification of its answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from carteiro.model import Failure, value
from carteiro.policy.consequences import RULINGS
from carteiro.policy.rules.ruling import Ruling

FOUND_OUT = frozenset({"INVALID_PAYLOAD", "NETWORK_ERROR", "SENDER_MISSING"})  # of any provider


@value
class Parsed:
    """A parsed answer: the name of an error and an HTTP status, if it has them."""

    text: str
    message: str
    name: str = ""
    status: int | None = None
    is_http: bool = False  # certainly: it cannot be an SMTP reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The meanings of a provider's answers, and how to recognize them.

    ``is_smtp``: they are SMTP replies, with stages, hosts and enhanced codes, judged by the common rules.
    ``codes``: all codes that its failures can have; empty: not known. ``names``: the codes of its error names.
    ``rulings``: its rules by name; a name begins with the provider's name and a dot.
    ``is_own``: recognizes an answer that is certainly the provider's. ``finds``: finds its error in any text.
    ``judge`` returns None for other answers. ``why`` is the explanation of ``carteiro classify``.
    """

    is_smtp: bool = False
    codes: frozenset[str] = frozenset()
    names: Mapping[str, str] = field(default_factory=dict)
    rulings: Mapping[str, Ruling] = field(default_factory=dict)
    is_own: Callable[[Parsed], bool] = lambda _: False
    finds: Callable[[str], Failure | None] = lambda _: None
    judge: Callable[[Parsed], Failure | None] = lambda _: None
    why: str = "a rule of the provider decides"

    def __post_init__(self) -> None:
        """Register the rulings, for all users of such a failure."""
        RULINGS.update(self.rulings)
