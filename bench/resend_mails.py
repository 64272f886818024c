"""The mails of both sides of the resend measurement, and the twin that accepts them."""

import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from carteiro.email.message import Email, make_email
from carteiro.model import MessageId, TenantId
from carteiro.ports.provider import Parcel
from smtp_mails import HTML, SENDER, SUBJECT, TEXT, to

KEY_NAME = "RESEND_API_KEY"
_TWIN = Path(__file__).parents[1] / "tests" / "support" / "resend_twin.py"


def a_parcel(number: int) -> Parcel:
    """One of many mails."""
    email: Email = make_email({"to": to(number), "subject": SUBJECT, "text": TEXT, "html": HTML})
    message = MessageId(f"01900000-0000-7000-8000-{number:012x}")
    return Parcel(message, TenantId("acme"), email, attempt=1, revision=1, request_id="r")


@contextmanager
def a_twin() -> Iterator[tuple[int, dict[str, str]]]:
    """A running twin: its port, and the environment that holds its key."""
    environ = {KEY_NAME: f"re_{secrets.token_hex(16)}"}
    pipe = subprocess.PIPE
    command = [sys.executable, str(_TWIN)]
    started = subprocess.Popen(
        command, env=os.environ | environ, text=True, stdin=pipe, stdout=pipe
    )
    with started as twin:
        assert twin.stdin is not None
        assert twin.stdout is not None
        try:
            yield int(twin.stdout.readline()), environ
        finally:
            twin.stdin.close()


__all__ = ["KEY_NAME", "SENDER", "a_parcel", "a_twin"]
