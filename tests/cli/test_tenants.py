"""Tenants, their keys and recipients, from the command line."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from carteiro.app import Carteiro
from carteiro.cli.exit_codes import ExitCode
from carteiro.model import Key, Tenant, TenantId
from carteiro.stores.sql.tenants import SqlTenants
from support.command_line import CommandLine

EVERYTHING = (
    *("--name", "Acme Ltda", "--tier", "standard", "--weight", "2.5", "--cap", "5", "--rate", "10"),
    *("--from", "shop@example.com", "--from-domain", "example.com", "--from-domain", "example.org"),
    *("--network", "10.0.0.0/8", "--per-minute", "7", "--per-day", "70"),
    *("--retry-preset", "classic", "--external-id-is-key", "--contact", "ops@example.com"),
)


# --- tenants ------------------------------------------------------------------------------------


def test_change_keeps_what_another_one_changed_meanwhile(
    line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the given fields are written; what was read before is not written back."""
    line.tenant("acme")
    find = SqlTenants.find

    async def found_before_a_change(tenants: SqlTenants, ids: Sequence[TenantId]) -> Any:
        stored = await find(tenants, ids)
        await tenants.define([Tenant(each, disabled=True) for each in ids])
        return stored

    monkeypatch.setattr(SqlTenants, "find", found_before_a_change)

    assert line.asked("tenant", "set", "acme", "--cap", "7")["disabled"] is True
    assert line.asked("tenant", "pause", "acme")["disabled"] is True


def test_tenant_has_its_given_fields(line: CommandLine) -> None:
    """Every field has a flag, and is read back."""
    line.done("tenant", "add", "acme", *EVERYTHING)

    shown = line.asked("tenant", "show", "acme")

    assert shown["companyId"] == "acme"
    assert (shown["name"], shown["tier"], shown["weight"]) == ("Acme Ltda", "standard", 2.5)
    assert (shown["cap"], shown["ratePerSecond"]) == (5, 10)
    assert shown["defaultFrom"] == "shop@example.com"
    assert shown["fromDomains"] == ["example.com", "example.org"]
    assert shown["allowedNetworks"] == ["10.0.0.0/8"]
    assert shown["limits"] == {"perMinute": 7, "perHour": 2000, "perDay": 70}
    assert (shown["retryPreset"], shown["externalIdIsKey"]) == ("classic", True)
    assert shown["contact"] == "ops@example.com"


def test_change_keeps_unnamed_fields(line: CommandLine) -> None:
    """--clear resets a field to its default."""
    line.done("tenant", "add", "acme", *EVERYTHING)
    before = line.asked("tenant", "show", "acme")

    line.done("tenant", "set", "acme", "--cap", "9", "--clear", "rate", "--clear", "limits")

    after = line.asked("tenant", "show", "acme")
    assert after == before | {"cap": 9, "ratePerSecond": None, "limits": None}


def test_tenants_are_listed_by_name(line: CommandLine) -> None:
    """For people and programs alike."""
    for name in ("cedro", "acme", "brasa"):
        line.tenant(name)

    assert [row["companyId"] for row in line.listed("tenant", "ls")] == ["acme", "brasa", "cedro"]
    assert [row.split()[0] for row in line.done("tenant", "ls").splitlines()[1:]] == [
        "acme",
        "brasa",
        "cedro",
    ]
    assert len(line.listed("tenant", "ls", "--limit", "2")) == 2


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--weight", "0"), "weight"),
        (("--cap", "0"), "cap"),
        (("--cap", "99999999999999999999"), "cap"),
        (("--weight", "1e7"), "weight"),
        (("--name", "\t"), "name"),
        (("--rate", "-1"), "--rate: "),
        (("--network", "here"), "--network: "),
        (("--retry-preset", "never"), "--retry-preset: "),
        (("--from-domain", "not a domain"), "--from-domain: "),
        (("--from", "x@example.org", "--from-domain", "example.com"), "--from: "),
        (("--per-hour", "-1"), "--per-hour"),
        (("--cap", "5", "--clear", "cap"), "cap: cannot be set and cleared"),
        ((), "nothing to change"),
    ],
)
def test_invalid_tenant_is_refused(line: CommandLine, flags: tuple[str, ...], says: str) -> None:
    """The error names the field, and nothing changes."""
    line.tenant("acme")
    before = line.asked("tenant", "show", "acme")

    ran = line("tenant", "set", "acme", *flags)

    assert (ran.code, ran.out) == (ExitCode.WRONG_USE, "")
    assert says in ran.err
    assert line.asked("tenant", "show", "acme") == before


@pytest.mark.parametrize("command", [("add", "new"), ("set", "acme")])
def test_unknown_tier_is_refused(line: CommandLine, command: tuple[str, ...]) -> None:
    """A typo would count as no tier. A tier of the settings stays known."""
    line.tenant("acme")

    unknown = line("tenant", *command, "--tier", "gold")
    known = line("tenant", *command, "--tier", "gold", CARTEIRO_TIERS_GOLD="4")
    later = line("tenant", "set", "acme", "--tier", "gold")

    assert (unknown.code, "no tier 'gold'" in unknown.err) == (ExitCode.WRONG_USE, True)
    assert (known.code, later.code) == (ExitCode.OK, ExitCode.OK)


@pytest.mark.parametrize(
    "asked",
    [
        ("--from-domain", "Acme.example"),
        ("--from", "post@acme.example"),
        ("--from", "a@b.acme.example"),
    ],
    ids=str,
)
def test_domain_of_another_tenant_is_refused(line: CommandLine, asked: tuple[str, ...]) -> None:
    """The error names the tenant that claimed it."""
    line.done("tenant", "add", "acme", "--from-domain", "acme.example")

    ran = line("tenant", "add", "brasa", *asked)

    assert (ran.code, ran.out) == (ExitCode.REFUSED, "")
    assert "acme.example is claimed by tenant 'acme'" in ran.err
    assert [each["companyId"] for each in line.listed("tenant", "ls")] == ["acme"]


def test_tenant_can_have_a_custom_preset(line: CommandLine) -> None:
    """Any in [retry.presets]; another name is refused with the list of valid ones."""
    own = '{"calm": {"attempts": 2, "base_ms": 1000}}'

    added = line("tenant", "add", "acme", "--retry-preset", "calm", CARTEIRO_RETRY_PRESETS=own)
    unknown = line("tenant", "set", "acme", "--retry-preset", "calmer", CARTEIRO_RETRY_PRESETS=own)

    assert added.code == ExitCode.OK
    assert line.asked("tenant", "show", "acme")["retryPreset"] == "calm"
    assert (unknown.code, "tickets, calm" in unknown.err) == (ExitCode.WRONG_USE, True)


def test_tenant_id_that_no_url_could_name_is_refused(line: CommandLine) -> None:
    """It would be unreachable over HTTP."""
    ran = line("tenant", "add", "acme/brasil")

    assert (ran.code, ran.out) == (ExitCode.WRONG_USE, "")
    assert "/" in ran.err
    assert line.listed("tenant", "ls") == []


def test_tenant_is_added_once(line: CommandLine) -> None:
    """Adding it again must not reset it."""
    line.done("tenant", "add", "acme", "--cap", "3")

    ran = line("tenant", "add", "acme")

    assert ran.code == ExitCode.REFUSED
    assert "carteiro tenant set" in ran.err
    assert line.asked("tenant", "show", "acme")["cap"] == 3


@pytest.mark.parametrize(
    ("on", "off", "field"), [("disable", "enable", "disabled"), ("pause", "resume", "paused")]
)
def test_switch_goes_on_and_off(line: CommandLine, on: str, off: str, field: str) -> None:
    """Nothing else of the tenant changes."""
    line.done("tenant", "add", "acme", *EVERYTHING)
    before = line.asked("tenant", "show", "acme")

    assert line.asked("tenant", on, "acme")[field] is True
    assert line.asked("tenant", off, "acme")[field] is False
    assert line.asked("tenant", "show", "acme") == before


def test_paused_tenant_waits(line: CommandLine) -> None:
    """Its messages are sent when it is resumed."""
    line.tenant("acme")
    line.done("tenant", "pause", "acme")
    message = line.sent("ok@sandbox.test", "--tenant", "acme")

    line.worked_off()
    held = line.asked("show", message)["status"]
    line.done("tenant", "resume", "acme")
    line.worked_off()

    assert (held, line.asked("show", message)["status"]) == ("ENQUEUED", "SENT")


def test_no_turns_are_said_to_be_none(line: CommandLine) -> None:
    """An empty answer would look like a failure; programs get an empty list."""
    line.tenant("acme")

    ran = line("tenant", "standing", "--tenant", "acme")

    assert (ran.code, ran.out, ran.err) == (ExitCode.OK, "", "No tenants with jobs found.\n")
    assert line.listed("tenant", "standing", "--tenant", "acme") == []


def test_standings_show_fairness_figures(line: CommandLine) -> None:
    """Of all tenants or one."""
    line.tenant("acme")
    line.sent("ok@sandbox.test", "--tenant", "acme")
    line.sent("ok@sandbox.test")

    [alone] = line.listed("tenant", "standing", "--tenant", "acme")

    assert (alone["companyId"], alone["waiting"], alone["inFlight"]) == ("acme", 1, 0)
    assert {"lastProcessedAt", "roundsWithoutProcessing", "currentPriority"} <= alone.keys()
    assert {row["companyId"] for row in line.listed("tenant", "standing")} == {"acme", "default"}


def test_erased_tenant_is_gone_and_others_stay(line: CommandLine) -> None:
    """Nothing of it is found any more."""
    line.tenant("acme")
    gone = line.sent("ok@sandbox.test", "--tenant", "acme")
    stays = line.sent("ok@sandbox.test")

    answer = line.asked("tenant", "erase", "acme", "--yes")

    assert answer == {"companyId": "acme", "messages": 1, "recipients": 0}
    assert line("tenant", "show", "acme").code == ExitCode.NOT_FOUND
    assert line("show", gone).code == ExitCode.NOT_FOUND
    assert line.asked("show", stays)["status"] == "ENQUEUED"


# --- keys ---------------------------------------------------------------------------------------


def test_key_is_shown_once(line: CommandLine) -> None:
    """Afterwards only its prefix is known; the key itself is nowhere in the file."""
    line.tenant("acme")

    made = line.asked("key", "add", "--tenant", "acme")
    [listed] = line.listed("key", "ls", "--tenant", "acme")

    assert made["key"].startswith("ck_")
    assert listed == {name: each for name, each in made.items() if name != "key"} | {
        "state": "live"
    }
    assert made["key"].startswith(listed["hint"])
    stored = b"".join(path.read_bytes() for path in line.folder.iterdir())
    assert made["key"].encode() not in stored


def test_key_can_expire(line: CommandLine) -> None:
    """Its expiry is listed."""
    line.tenant("acme")

    made = line.asked("key", "add", "--tenant", "acme", "--expires-in", "90d")

    ends = datetime.fromisoformat(made["expiresAt"]) - datetime.now(UTC)
    assert timedelta(days=89) < ends <= timedelta(days=90)


def test_tenant_has_at_most_two_valid_keys(line: CommandLine) -> None:
    """An old one is revoked before a third is created; the error says how."""
    line.tenant("acme")
    first = line.asked("key", "add", "--tenant", "acme")
    line.done("key", "add", "--tenant", "acme")

    third = line("key", "add", "--tenant", "acme")
    line.done("key", "revoke", first["id"], "--tenant", "acme", "--yes")
    line.done("key", "add", "--tenant", "acme")

    assert third.code == ExitCode.REFUSED
    assert "carteiro key revoke" in third.err
    states = [row["state"] for row in line.listed("key", "ls", "--tenant", "acme")]
    assert sorted(states) == ["live", "live", "revoked"]


def test_key_of_another_tenant_is_not_revoked(line: CommandLine) -> None:
    """It looks like an unknown one."""
    for name in ("acme", "brasa"):
        line.tenant(name)
    key = line.asked("key", "add", "--tenant", "acme")

    ran = line("key", "revoke", key["id"], "--tenant", "brasa", "--yes")

    assert ran.code == ExitCode.NOT_FOUND
    assert line.listed("key", "ls", "--tenant", "acme")[0]["state"] == "live"


def test_admin_token_is_rotated(line: CommandLine) -> None:
    """The new one is valid, the old ones are not; with --keep-old the last stays for a while."""
    line.tenant("acme")

    first = line.asked("admin-token", "rotate")
    second = line.asked("admin-token", "rotate", "--keep-old")
    third = line.asked("admin-token", "rotate", "--keep-old", "--yes")
    fourth = line.asked("admin-token", "rotate", "--yes")

    tokens = {each["token"] for each in (first, second, third, fourth)}
    assert len(tokens) == 4
    assert fourth["companyId"] is None


def test_rotated_token_has_the_role_the_tenant_and_the_life_of_the_old_one(
    line: CommandLine,
) -> None:
    """A token that was to expire does not become one that never does."""
    line.tenant("acme")
    fields = ("--role", "viewer", "--tenant", "acme", "--expires-in", "90d")
    line.done("admin-token", "add", "ana", *fields)

    rotated = line.asked("admin-token", "rotate", "ana", "--yes")

    ends, made = (datetime.fromisoformat(rotated[each]) for each in ("expiresAt", "createdAt"))
    assert ends - made == timedelta(days=90)
    assert (rotated["role"], rotated["companyId"]) == ("viewer", "acme")


def test_name_of_a_token_has_one_role_and_one_tenant(line: CommandLine) -> None:
    """So rotating it takes no rights from its holder, and gives none."""
    line.tenant("acme")
    made = line.asked("admin-token", "add", "ana", "--role", "viewer")

    ran = line("admin-token", "add", "ana", "--role", "admin")

    assert (ran.code, ran.out) == (ExitCode.REFUSED, "")
    assert f"{made['id']} of 'ana' has another role or tenant" in ran.err


def test_refusal_of_another_token_names_the_limit(line: CommandLine) -> None:
    """Two of one name; the names of all others have room."""
    line.tenant("acme")
    for _ in range(2):
        line.done("admin-token", "add", "ana", "--role", "viewer")

    ran = line("admin-token", "add", "ana", "--role", "viewer")

    assert ran.code == ExitCode.REFUSED
    assert "there are 2 live admin tokens of 'ana': " in ran.err


@pytest.mark.parametrize("flags", [(), ("--keep-old",)])
def test_rotation_without_a_terminal_is_refused(line: CommandLine, flags: tuple[str, ...]) -> None:
    """No token is created and none ends: its holder is not locked out."""
    line.tenant("acme")
    line.done("admin-token", "rotate")
    line.done("admin-token", "rotate", "--keep-old")
    before = asyncio.run(tokens_of(line))

    ran = line("admin-token", "rotate", *flags)

    assert (ran.code, ran.out) == (ExitCode.REFUSED, "")
    assert "--yes" in ran.err
    assert asyncio.run(tokens_of(line)) == before


async def tokens_of(line: CommandLine) -> Sequence[Key]:
    """The administrators' tokens in the store."""
    async with Carteiro.open(f"sqlite:///{line.file}") as post:
        return await post.backend.keys.list(None)


# --- recipients ---------------------------------------------------------------------------------


def a_recipient_of(line: CommandLine, tenant: str) -> str:
    """The id of a recipient that a tenant has sent to."""
    document = (
        '{"to":"ana@example.com","subject":"S","text":"T",'
        '"recipient":{"externalId":"r-1","email":"ana@example.com","nome":"Ana"}}'
    )
    assert line("send", "--tenant", tenant, "--file", "-", stdin=document).code == ExitCode.OK
    [row] = line.listed("recipient", "ls", "--tenant", tenant)
    return str(row["recipientId"])


def test_recipients_are_listed_and_shown(line: CommandLine) -> None:
    """By address and by the tenant's own id."""
    recipient = a_recipient_of(line, line.tenant("acme"))

    shown = line.asked("recipient", "show", recipient, "--tenant", "acme")

    assert (shown["email"], shown["externalId"], shown["nome"]) == ("ana@example.com", "r-1", "Ana")
    for flags, count in [
        (("--email", "ana@example.com"), 1),
        (("--email", "ana@EXAMPLE.com"), 1),
        (("--external-id", "r-1"), 1),
        (("--external-id", "r-2"), 0),
    ]:
        assert len(line.listed("recipient", "ls", "--tenant", "acme", *flags)) == count, flags


def test_recipient_is_deleted_once(line: CommandLine) -> None:
    """It is still shown, with its time."""
    recipient = a_recipient_of(line, line.tenant("acme"))

    line.done("recipient", "delete", recipient, "--tenant", "acme", "--yes")
    again = line("recipient", "delete", recipient, "--tenant", "acme", "--yes")

    assert again.code == ExitCode.REFUSED
    assert line.asked("recipient", "show", recipient, "--tenant", "acme")["deletedAt"]


def test_deleted_recipient_is_refused_by_its_id_alone(line: CommandLine) -> None:
    """Deletion does not suppress: the same address without the id is sent to."""
    recipient = a_recipient_of(line, line.tenant("acme"))
    line.worked_off()
    line.done("recipient", "delete", recipient, "--tenant", "acme", "--yes")
    document = (
        '{"to":"ana@example.com","subject":"S","text":"T",'
        f'"recipient":{{"recipientId":"{recipient}","email":"ana@example.com"}}}}'
    )
    named = line("send", "--tenant", "acme", "--file", "-", "--json", stdin=document).document
    unnamed = line.sent("ana@example.com", "--tenant", "acme")
    line.worked_off()

    refused = line.asked("show", named["outboxId"])
    assert (refused["status"], refused["errorCode"]) == ("FAILED", "RECIPIENT_NOT_FOUND")
    assert line.asked("show", unnamed)["status"] == "SENT"


@pytest.mark.parametrize("command", [("recipient", "erase"), ("erase", "--recipient")])
def test_erased_recipient_leaves_no_personal_data(
    line: CommandLine, command: tuple[str, ...]
) -> None:
    """Its messages keep their ids and states alone."""
    recipient = a_recipient_of(line, line.tenant("acme"))
    [message] = line.listed("ls", "--tenant", "acme")

    answer = line.asked(*command, recipient, "--tenant", "acme", "--yes")

    assert answer["messages"] == 1
    shown = line.asked("show", message["outboxId"])
    assert shown["status"] == "CANCELLED"
    assert "ana" not in str(shown).lower()


def test_recipient_of_another_tenant_is_not_found(line: CommandLine) -> None:
    """Nothing leaks, nothing changes."""
    recipient = a_recipient_of(line, line.tenant("acme"))
    line.tenant("brasa")

    for command in (("show",), ("delete", "--yes"), ("erase", "--yes")):
        ran = line("recipient", command[0], recipient, "--tenant", "brasa", *command[1:])
        assert (ran.code, ran.out) == (ExitCode.NOT_FOUND, "")
    assert line.listed("recipient", "ls", "--tenant", "brasa") == []
    assert line.asked("recipient", "show", recipient, "--tenant", "acme")["deletedAt"] is None
