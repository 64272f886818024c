"""Errors of the ticket lane that more than one of its folders knows."""

from carteiro.errors import CarteiroError


class KafkaAway(CarteiroError):
    """No broker answers, or none that may be asked this; try again."""


class CountsAway(CarteiroError):
    """Redis cannot be reached, and this time its answer is needed; says what to do."""


class ArchiveAway(CarteiroError):
    """MongoDB cannot be reached, or does not take it now; says what it waits for. Nothing is lost: ask again."""


class ArchiveUnfit(CarteiroError):
    """The collection cannot be used as it is; says what to do."""


class PublishFailed(CarteiroError):
    """A record is not known to be in its topic."""

    def __init__(self, text: str, *, error_type: str) -> None:
        self.error_type = error_type
        super().__init__(text)
