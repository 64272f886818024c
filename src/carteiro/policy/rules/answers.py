"""What a provider's own rules offer to whoever judges its answers."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from carteiro.model import Failure, value
from carteiro.policy.consequences import RULINGS
from carteiro.policy.rules.ruling import Ruling

FOUND_OUT = frozenset({"INVALID_PAYLOAD", "NETWORK_ERROR", "SENDER_MISSING"})  # with any provider


@value
class Told:
    """An answer taken apart: the name of an error and a status of HTTP, as far as it has them."""

    text: str
    message: str
    name: str = ""
    status: int | None = None
    is_http: bool = False  # beyond doubt: no reply of SMTP looks like it


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What the answers of a provider mean, and how they are told from those of others.

    ``is_smtp``: they are replies of SMTP, with stages, hosts and enhanced codes; all know what these mean.
    ``codes``: all that its failures can have; none: nobody knows them. ``names``: the codes of its own names of errors.
    ``rulings``: what its rules say, by their names; a rule begins with the provider's name and a dot.
    ``is_own``: whether an answer is the provider's beyond doubt; ``finds``: an error of it within any text.
    ``judge`` gives None for what has none of its names. ``why`` says what decides, for ``carteiro classify``.
    """

    is_smtp: bool = False
    codes: frozenset[str] = frozenset()
    names: Mapping[str, str] = field(default_factory=dict)
    rulings: Mapping[str, Ruling] = field(default_factory=dict)
    is_own: Callable[[Told], bool] = lambda _: False
    finds: Callable[[str], Failure | None] = lambda _: None
    judge: Callable[[Told], Failure | None] = lambda _: None
    why: str = "a rule of the provider decides"

    def __post_init__(self) -> None:
        """Make the rulings known: whoever can have such a failure has this."""
        RULINGS.update(self.rulings)
