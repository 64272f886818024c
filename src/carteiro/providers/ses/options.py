"""Options of the SES provider."""

from datetime import timedelta

from carteiro.model import value


@value
class SesOptions:
    """One region of one account, its credentials and its time limits.

    Empty: ``region`` and the keys as AWS' own tools find them, ``endpoint_url`` the region's own,
    ``configuration_set`` none, ``default_from`` every e-mail has a sender.
    """

    region: str = ""
    endpoint_url: str = ""
    access_key_id: str = ""
    secret_access_key: str = ""
    configuration_set: str = ""
    default_from: str = ""
    connections: int = 20
    connect_limit: timedelta = timedelta(seconds=10)
    call_limit: timedelta = timedelta(seconds=30)

    def __repr__(self) -> str:
        """Without the key, which must not appear in a log."""
        return f"SesOptions({self.region or 'the usual region'})"
