"""Options of the Resend provider."""

from carteiro.model import value


@value
class ResendOptions:
    """The account's key, the URL of its API, and the number of concurrent calls.

    Empty ``default_from``: every e-mail has a sender.
    """

    api_key: str
    url: str = "https://api.resend.com"
    default_from: str = ""
    connections: int = 20

    def __repr__(self) -> str:
        """Without the key, which must not appear in a log."""
        return f"ResendOptions({self.url})"
