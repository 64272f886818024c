"""The provider ``noop``, for measuring the path itself."""

from carteiro.config import ProviderSpec, Settings
from carteiro.ports import Backend, Features, Provider


def _make(_settings: Settings, _backend: Backend, _region: str) -> Provider:
    from carteiro.providers.noop.provider import NoopProvider  # noqa: PLC0415 - when it is used

    return NoopProvider()


SPEC = ProviderSpec(
    name="noop", title="noop", features=Features(is_remote=False), make=_make, answers=None
)
