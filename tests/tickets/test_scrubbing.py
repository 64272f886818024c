"""Secrets do not leave with an error text."""

import base64
import secrets

import pytest

from carteiro.tickets.scrubbing import cut, scrub, scrubbed_start


def a_secret(count: int = 24) -> str:
    """Letters and digits that stand nowhere else; made now, so that no scanner finds one here."""
    return "Zq" + secrets.token_hex(count // 2 - 1)


def a_key_of_aws() -> str:
    """Forty characters as AWS gives out: all kinds, and no mark."""
    return "wJ4+" + secrets.token_hex(16) + "/K7z"


SECRET = a_secret()
TOKEN = f"eyJ{a_secret()}.eyJ{a_secret()}.{a_secret()}"


@pytest.mark.parametrize(
    "form",
    [
        "cannot connect to postgres://app:SECRET@db.example:5432/tickets",
        "cannot connect to postgres://app:a/b@SECRET@db.example/tickets",
        "cannot connect to postgres://app:a/SECRET@db.example/tickets",
        "GET https://SECRET@github.example/repo failed",
        "redis://:SECRET@cache:6379/0 refused",
        "Authorization: Bearer SECRET",
        "authorization:SECRET",
        "> Authorization: Basic BASE64",
        'Authorization: Digest username="me", response="SECRET"',
        "Proxy-Authorization: Negotiate SECRET",
        "{'Authorization': 'Bearer SECRET', 'Accept': '*/*'}",
        '{"headers": {"authorization": "Token SECRET"}}',
        '"{\\"Authorization\\": \\"Bearer SECRET\\"}"',
        "[(b'Authorization', b'Bearer SECRET'), (b'Accept', b'*/*')]",
        "[('authorization', 'SECRET')]",
        "Cookie: session=SECRET; other=SECRET",
        "Set-Cookie: sid=SECRET; HttpOnly",
        "X-Api-Key: SECRET",
        "sent with bearer SECRET and refused",
        "password=SECRET",
        "PGPASSWORD=SECRET psql",
        "db_password: SECRET,",
        '{"password": "with space SECRET"}',
        '{"password": "with \\" quote SECRET"}',
        "{'client_secret': 'SECRET'}",
        "https://api.example/v1?api_key=SECRET&page=2",
        "https://files.example/a?sv=1&sig=SECRET&se=2",
        "https://bucket.example/?X-Amz-Credential=me&X-Amz-Signature=SECRET",
        "Server=db;User Id=me;Pwd=SECRET;Timeout=3",
        "AccountName=me;AccountKey=SECRET;EndpointSuffix=x",
        "mysql --password SECRET -h db",
        "curl --api-token SECRET",
        'sasl.jaas.config=Plain required password="SECRET";',
        "aws_secret_access_key = SECRET",
        "the token eyJSECRET.SECRET.SECRET has expired",
        "key AKIAUPPER is unknown",
        "ghp_SECRET has no scope",
        "xoxb-SECRET was revoked",
        "sk_live_SECRET",
        "https://hooks.slack.com/services/T0/B0/SECRET",
        "-----BEGIN RSA PRIVATE KEY-----\nMIISECRET\nSECRET\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMIISECRET",
    ],
)
def test_a_secret_is_taken_out(form: str) -> None:
    """Whatever form it has in an error text."""
    encoded = base64.b64encode(SECRET.encode()).decode()
    text = form.replace("SECRET", SECRET).replace("BASE64", encoded)

    scrubbed = scrub(text.replace("UPPER", SECRET.upper()))

    assert SECRET.lower() not in scrubbed.lower()
    assert encoded not in scrubbed
    assert "***" in scrubbed


def test_keys_without_a_mark_are_taken_out() -> None:
    """Those of AWS are known by their length and their letters alone."""
    key, token = a_key_of_aws(), f"ck_{secrets.token_urlsafe(24)}"

    assert scrub(f"signed with {key}, refused") == "signed with ***, refused"
    assert scrub(f"{token} is disabled") == "*** is disabled"
    assert scrub(f"expired: {TOKEN}") == "expired: ***"


@pytest.mark.parametrize(
    "text",
    [
        "connection to https://api.example:8443/v1/tickets?page=2 refused",
        "basic authentication failed for user app",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b is missing",
        "/usr/lib/python3.11/site-packages/carteiro/tickets/runner.py, line 12, in run",
        "KeyError: 'ticket_id'",
        "no secret here, and no password either",
        "user a@b.example is unknown",
        "é, 🚚 and \x00 stay",
    ],
)
def test_text_without_secrets_stays(text: str) -> None:
    """Somebody has to find the cause with it."""
    assert scrub(text) == text


def test_the_rest_of_the_text_stays() -> None:
    """Only the secret goes."""
    text = "GET https://me:pw@api.example/v1?token=abc&page=2 → 403, password=x; try again"

    assert (
        scrub(text)
        == "GET https://***@api.example/v1?token=***&page=2 → 403, password=***; try again"
    )


def test_half_a_surrogate_pair_becomes_something_that_can_be_written() -> None:
    """JSON cannot hold one."""
    assert scrub("a\ud800b") == "a?b"


@pytest.mark.parametrize(
    "piece",
    ["://a:", "a" * 50, "password", "--", "eyJ", "-----BEGIN PRIVATE KEY-----", "authorization: ",
     "password='", "AKIA", "aB3/", "bearer ", "=", "'\"\\", "://", "@", ".", "xoxb-"],
)  # fmt: skip
def test_no_text_takes_long(piece: str) -> None:
    """A text that is made to be slow would stop every ticket of the worker; it takes part of a second."""
    scrub(piece * (100_000 // len(piece)))


@pytest.mark.parametrize("before", range(1_950, 2_250, 10))
def test_the_start_of_a_long_text_has_no_half_of_a_secret(before: int) -> None:
    """The part that is cut off might show that it is one, here the @; and what was scrubbed before makes room."""
    words = "word " * 150
    text = f"{words}password={'x' * before} https://me:{SECRET * 10}@host/ and so on"

    shown = scrubbed_start(text, 1024)

    assert SECRET[:8] not in shown


def test_a_megabyte_is_cut_to_its_start() -> None:
    """In bytes, and in whole characters."""
    assert scrubbed_start("é" * 1_000_000, 4096) == "é" * 2048
    assert scrubbed_start("é" * 10, 5) == "éé"
    assert cut("short", 100) == "short"
