"""Wrong server addresses: every command answers with one sentence, without secrets."""

import pytest

from carteiro.cli.exit_codes import ExitCode
from support.command_line import CommandLine

SECRET = "s3cret"
STORES = (
    f"postgresql://ana:{SECRET}/x@127.0.0.1:1/mail",
    f"postgresql://ana:{SECRET}?x@127.0.0.1:1/mail",
    f"postgresql://ana:{SECRET}#x@127.0.0.1:1/mail",
    f"postgresql://ana:{SECRET}@127.0.0.1:port/mail",
    f"postgresql://ana:{SECRET}@127.0.0.1:99999/mail",
    f"postgresql://ana:{SECRET}@[::1/mail",
    f"postgresql://ana:{SECRET}@a:1,b:2:3/mail",
    f"postgresql://ana:{SECRET}@127.0.0.1:1/mail?{SECRET}",
    f"postgresql://127.0.0.1:1/mail?sslmode={SECRET}",
    f"postgresql://127.0.0.1:1/mail?target_session_attrs={SECRET}",
)
QUEUES = (
    f"redis://:{SECRET}/x@127.0.0.1:1/0",
    f"redis://:{SECRET}@127.0.0.1:port/0",
    f"redis://:{SECRET}@127.0.0.1:99999/0",
    "redis://[::1:1/0",
    f"redis://127.0.0.1:1/0?nonsense={SECRET}",
    f"redis://127.0.0.1:1/0?socket_timeout={SECRET}",
    f"redis+sentinel://:{SECRET}@127.0.0.1:1/svc?sentinel_password={SECRET}",
    f"rediss://:{SECRET}@127.0.0.1:1/0?ssl_cert_reqs=nonsense",
)
ARCHIVES = (
    f"mongodb://ana:{SECRET}/x@127.0.0.1:1",
    f"mongodb://ana:{SECRET}@127.0.0.1:port",
    "mongodb://[::1",
    f"mongodb://ana:{SECRET}@127.0.0.1:1/?tls=true&tlsCAFile=/nowhere/ca.pem",
)


def _says(line: CommandLine, *command: str, **environment: str) -> str:
    """The error message of a command."""
    ran = line(*command, **environment)
    assert ran.code in {ExitCode.FAILED, ExitCode.WRONG_USE}, ran.err
    assert SECRET not in ran.out + ran.err
    assert "Traceback" not in ran.err
    return ran.out + ran.err


@pytest.mark.parametrize("command", [("doctor",), ("stats",), ("migrate",), ("process",)], ids=str)
@pytest.mark.parametrize("url", STORES)
def test_wrong_store_is_reported_in_one_sentence(
    line: CommandLine, url: str, command: tuple[str, ...]
) -> None:
    """By every command; it names the setting or the server."""
    said = _says(line, *command, CARTEIRO_STORE=url)

    assert "store" in said


@pytest.mark.parametrize("command", [("doctor",), ("stats",), ("process",)], ids=str)
@pytest.mark.parametrize("url", QUEUES)
def test_wrong_queue_is_reported_in_one_sentence(
    line: CommandLine, url: str, command: tuple[str, ...]
) -> None:
    """The same with a store that works."""
    line.tenant("acme")

    said = _says(line, *command, CARTEIRO_QUEUE=url)

    assert "queue" in said or "Redis" in said


@pytest.mark.parametrize("url", ARCHIVES)
def test_wrong_archive_is_reported_in_one_sentence(line: CommandLine, url: str) -> None:
    """That of the ticket lane."""
    assert "tickets.mongo" in _says(line, "tickets", "dlq", "group", CARTEIRO_TICKETS_MONGO=url)


def test_settings_are_shown_without_secrets(line: CommandLine) -> None:
    """As a table and as JSON, for every setting."""
    secrets = {
        "CARTEIRO_STORE": f"postgresql://ana:{SECRET}@db/mail?sslpassword={SECRET}",
        "CARTEIRO_QUEUE": f"redis+sentinel://:{SECRET}@a:1/svc?password={SECRET}",
        "CARTEIRO_TICKETS_MONGO": f"mongodb://db/?authMechanismProperties=AWS_SESSION_TOKEN:{SECRET}",
        "CARTEIRO_TICKETS_BOOTSTRAP_SERVERS": f"ana:{SECRET}@kafka:9092",
        "CARTEIRO_TICKET_URLS_BUILD": f"https://build.example/{SECRET}?key={SECRET}",
    }

    for flags in ((), ("--json",)):
        ran = line("config", "show", *flags, **secrets)
        assert ran.code == ExitCode.OK
        assert SECRET not in ran.out
        assert "sslpassword=***" in ran.out


@pytest.mark.parametrize("command", [("config", "show"), ("doctor",), ("stats",)])
@pytest.mark.parametrize(
    "settings",
    [
        {"CARTEIRO_STORE": f"postgres:/ana:{SECRET}@db/mail"},
        {"CARTEIRO_STORE": f"{SECRET}@db/mail"},
        {"CARTEIRO_QUEUE": f"redis:/:{SECRET}@cache"},
        {"CARTEIRO_SMTP_HOST": f"ana:{SECRET}@relay"},
    ],
)
def test_mistyped_address_is_shown_without_secrets(
    line: CommandLine, settings: dict[str, str], command: tuple[str, ...]
) -> None:
    """Without its ``://`` it is not an address, and still holds a password."""
    ran = line(*command, **settings)

    assert SECRET not in ran.out + ran.err
