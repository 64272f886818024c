"""How Resend is reached."""

from carteiro.model import value


@value
class ResendOptions:
    """The account's key, where its API is, and how many calls are made at once.

    Empty ``default_from``: every e-mail names its sender itself.
    """

    api_key: str
    url: str = "https://api.resend.com"
    default_from: str = ""
    connections: int = 20

    def __repr__(self) -> str:
        """Without the key, which must not get into a log by way of an error."""
        return f"ResendOptions({self.url})"
