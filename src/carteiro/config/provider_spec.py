"""A provider as its folder describes it: the rest of the code reads this, and never names a provider."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

from pydantic import BaseModel

from carteiro.model import Feedback
from carteiro.model.checkup import Finding
from carteiro.policy.rules.answers import Answers
from carteiro.ports import Backend, Features, Provider

if TYPE_CHECKING:  # settings have a section of each provider
    from carteiro.config.sections import Settings


# OSError if it cannot be had, see `runtime.fetching`.
Fetch: TypeAlias = Callable[[str], Awaitable[bytes]]


class Hears(Protocol):
    """Hears one provider; `FeedbackRefused` if somebody else posts in its name."""

    def admit(self, headers: Mapping[str, str]) -> None:
        """Refuse what the headers alone give away, before the body is read."""

    async def hear(self, headers: Mapping[str, str], body: bytes) -> Feedback | str | None:
        """Return the feedback about a mail; None if it is not ours, a text if the call is not about a mail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackSpec:
    """Feedback of a provider about mails, by posting to ``/v1/feedback/NAME``.

    ``promise`` describes that endpoint and ``reads`` its body, of at most ``most_bytes``. ``opens`` gives None while
    ``setting`` is not set; then every request is refused. `ConfigError` if it leads nowhere.
    """

    reads: type[BaseModel]
    promise: str
    setting: str
    opens: "Callable[[Settings, Fetch], Hears | None]"
    most_bytes: int = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSpec:
    """Name, features and settings of a provider, how to make it, and its rules, feedback and check.

    ``title`` is what people call it, where that is not its name. ``make`` gets all settings, the store and the region
    that follows the name in a route; it alone imports the library that the provider needs. ``extra`` is the extra of
    this package that installs that library.
    ``sections`` are the settings that it adds, by their table, and ``defaults`` is their commented default as TOML.
    ``region`` is a pattern: what may follow the name and a colon. ``validate`` raises `ConfigError` on settings that
    contradict each other. ``answers`` is None where nothing that it says could be judged. ``host`` is the host that
    answers, as far as settings name it. ``check`` tells ``carteiro doctor`` what is to be said of its settings; whether
    it can be used now, the provider's own ``check`` tells. ``span`` are the attributes of a call's span in a region, as
    OpenTelemetry names them.
    """

    name: str
    features: Features
    make: "Callable[[Settings, Backend, str], Provider]"
    title: str = ""
    extra: str = ""
    sections: Mapping[str, type[BaseModel]] = field(default_factory=dict)
    defaults: str = ""
    region: str = ""
    validate: "Callable[[Settings], None] | None" = None
    host: "Callable[[Settings], str]" = lambda _: ""
    answers: Answers | None = Answers()  # noqa: RUF009 - nobody changes it
    feedback: FeedbackSpec | None = None
    check: "Callable[[Settings], Iterable[Finding]]" = lambda _: ()
    span: "Callable[[Settings, str], Mapping[str, str | int]]" = lambda _settings, _region: {}
