"""Libraries of the ticket lane, which an installation may lack."""

from collections.abc import Iterator
from contextlib import contextmanager

from carteiro.errors import ConfigError


@contextmanager
def needing_libraries() -> Iterator[None]:
    """Say how to have the libraries of the ticket lane, where they are missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"Tickets need {error.name}: from a clone, pip install -c constraints.txt '.[tickets]'"
        ) from error
