"""People who are signed in to the console."""

from datetime import timedelta
from typing import Protocol

from carteiro.model import KeyId, SignIn


class SignIns(Protocol):
    """Sign-ins, each known by the hash of its secret; the secret is only in the cookie of a browser.

    Promises, one module each in ``tests/contract/sign_ins``:

    ended    A sign-in ends at its time, on request, and with its token: expired, revoked, or of a disabled tenant.
    few      A token, and the one-time links together, have at most `MOST_SIGN_INS`: a new one ends the oldest.
    """

    async def begin(
        self, secret_hash: str, *, key: KeyId | None, who: str, lasts: timedelta
    ) -> None:
        """Sign in the holder of a token, or without one the user ``who`` of this machine; recorded."""

    async def find(self, secret_hash: str) -> SignIn | None:
        """The live sign-in with this hash."""

    async def end(self, secret_hash: str) -> None:
        """End it; one that has ended stays so."""
