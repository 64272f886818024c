"""The provider ``sandbox``: a local inbox."""

from importlib.resources import files

from carteiro.config import ProviderSpec, Section, Settings
from carteiro.policy.rules.answers import Answers
from carteiro.ports import Backend, Provider
from carteiro.providers.sandbox.provider import SandboxProvider


class SandboxSettings(Section):
    """Settings of the sandbox provider."""

    seed: int


def _make(settings: Settings, backend: Backend, _region: str) -> Provider:
    return SandboxProvider(backend.inbox, seed=settings.section(SandboxSettings).seed)


SPEC = ProviderSpec(
    name="sandbox",
    features=SandboxProvider.features,
    make=_make,
    sections={"sandbox": SandboxSettings},
    defaults=files(__package__).joinpath("settings.toml").read_text("utf-8"),
    answers=Answers(
        is_smtp=True,
        codes=frozenset({"SANDBOX_TIMEOUT", "SES_MESSAGE_REJECTED", "SES_THROTTLING", "UNKNOWN"}),
    ),
)
