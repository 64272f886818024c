"""The provider ``noop``, for measuring the path itself."""

from carteiro.config import ProviderSpec
from carteiro.providers.noop import provider

SPEC = ProviderSpec(
    name="noop",
    features=provider.NoopProvider.features,
    make=lambda *_: provider.NoopProvider(),
    answers=None,
)
