"""Maintenance commands: inbox, stats, doctor, migrate, prune, backup."""

import asyncio
import base64
import json
import socket
import sqlite3
import stat
import time
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from carteiro.app import Carteiro
from carteiro.cli.exit_codes import ExitCode
from carteiro.config import load
from carteiro.doctor import installation
from carteiro.model.checkup import in_size
from carteiro.stores.sqlite.opening import newest_version
from support.collector import a_collector
from support.command_line import CommandLine
from support.resend_process import running_twin
from support.services import HOST, free_port
from support.ses_servers import a_twin_process, taken_by_ses
from support.ses_twin import KEY_ID, REGION, SECRET
from support.syncing import inodes, watched_syncs

NO_RELAY = {"CARTEIRO_SMTP_HOST": "127.0.0.1", "CARTEIRO_SMTP_PORT": "1"}
WITH_SENDER = {"CARTEIRO_SMTP_DEFAULT_FROM": "post@example.com"}


def changed(line: CommandLine, statement: str, *values: object) -> None:
    """Change the file as only an accident would."""
    with closing(sqlite3.connect(line.file)) as db, db:
        db.execute(statement, values)


# --- inbox --------------------------------------------------------------------------------------


def test_inbox_lists_delivered_mail(line: CommandLine) -> None:
    """Of all tenants or one."""
    line.tenant("acme")
    mine = line.sent("ok@sandbox.test", "--tenant", "acme")
    other = line.sent("ok@sandbox.test")
    line.worked_off()

    assert {row["outboxId"] for row in line.listed("inbox", "ls")} == {mine, other}
    assert [row["outboxId"] for row in line.listed("inbox", "ls", "--tenant", "acme")] == [mine]
    assert line.asked("inbox", "show", mine)["content"]["text"] == "Olá"
    assert line("inbox", "show", other, "--tenant", "acme").code == ExitCode.NOT_FOUND


def test_mail_is_shown_with_all_its_parts(line: CommandLine) -> None:
    """Copies, Reply-To, custom headers and attachments."""
    document = {
        "to": "ok@sandbox.test",
        "subject": "S",
        "text": "Olá",
        "cc": ["c1@example.com", "c2@example.com"],
        "bcc": ["b@example.com"],
        "replyTo": "r@example.com",
        "headers": {"X-Order": "17"},
        "attachments": [
            {"filename": "a.txt", "contentType": "text/plain", "content": "YWJjZA=="},
        ],
    }
    sent = line("send", "--file", "-", "--json", stdin=json.dumps(document)).document
    line.worked_off()

    shown = line.done("inbox", "show", sent["outboxId"]).splitlines()

    assert {
        "cc c1@example.com, c2@example.com",
        "bcc b@example.com",
        "reply to r@example.com",
        "X-Order 17",
        "attachments a.txt (4 bytes)",
    } <= {" ".join(row.split()) for row in shown}


def test_mail_is_written_to_a_private_file(line: CommandLine) -> None:
    """Its HTML, or its text, readable by its owner alone; scripts do not run in it."""
    plain = line.sent("ok@sandbox.test", "--text", "1 < 2")
    rich = line.sent("ok@sandbox.test", "--html", "<p>Olá</p>")
    line.worked_off()

    for message, body in ((plain, "<pre>1 &lt; 2</pre>"), (rich, "<p>Olá</p>")):
        path = Path(line.asked("inbox", "open", message, "--no-browser")["path"])
        written = path.read_text("utf-8")
        assert body in written
        assert written.index("default-src 'none'") < written.index(body)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.unlink()
        path.parent.rmdir()


def test_undelivered_mail_is_not_in_the_inbox(line: CommandLine) -> None:
    """The error says where the message is."""
    message = line.sent("ok@sandbox.test")

    ran = line("inbox", "show", message)

    assert ran.code == ExitCode.NOT_FOUND
    assert "ENQUEUED" in ran.err


# --- stats, explain -----------------------------------------------------------------------------


def test_stats_count_messages(line: CommandLine) -> None:
    """Of all tenants, or of one."""
    line.tenant("acme")
    line.dead("--tenant", "acme")
    line.sent("ok@sandbox.test")

    whole = line.asked("stats")
    mine = line.asked("stats", "--tenant", "acme")

    assert whole["states"] == {"ENQUEUED": 1, "FAILED": 1}
    assert whole["depths"][0]["unfinished"] == 1
    assert whole["deadLetters"] == {
        "total": 1,
        "byReason": {"permanent_error": 1},
        "byCompany": [{"companyId": "acme", "count": 1}],
    }
    assert (mine["states"], mine["deadLetters"]["total"]) == ({"FAILED": 1}, 1)
    assert whole["providers"] == mine["providers"] == []


def test_stats_show_the_health_of_providers(line: CommandLine) -> None:
    """The failures that workers saw, and an open circuit."""

    async def report() -> None:
        async with Carteiro.open(f"sqlite:///{line.file}") as post:
            why = "NETWORK_ERROR: the relay is down"
            await post.backend.rates.report("smtp", why=why, wait=timedelta(minutes=1))
            stay = timedelta(seconds=5)
            rates = post.backend.rates
            await rates.draw("ses:eu-west-1", 1, process="one", stay=stay, ceiling=100 / 7)

    asyncio.run(report())
    route = "ses:eu-west-1, resend, smtp"

    resend, ses, smtp = line.asked("stats", CARTEIRO_PROVIDER=route)["providers"]
    text = line.done("stats", CARTEIRO_PROVIDER=route)
    assert (smtp["isOpen"], smtp["trouble"]) == (True, "NETWORK_ERROR: the relay is down")
    assert (ses["isOpen"], ses["trouble"], ses["troubleAt"]) == (False, None, None)
    assert (resend["provider"], resend["rate"], resend["processes"]) == ("resend", None, 0)
    assert "circuit open" in text
    assert "not in use" in text
    assert " 14.29 " in text
    assert "14.285" not in text


def test_explain_says_why_a_message_waits(line: CommandLine) -> None:
    """With a code for programs, a sentence for people."""
    line.tenant("acme")
    message = line.sent("ok@sandbox.test", "--tenant", "acme")

    ready = line.asked("explain", message)
    line.done("tenant", "pause", "acme")
    held = line.asked("explain", message)
    said = line.done("explain", message)

    assert (ready["why"], held["why"]) == ("turn", "tenant_paused")
    assert (held["outboxId"], held["status"], held["until"]) == (message, "ENQUEUED", None)
    assert "paused" in said


def test_explain_works_without_the_queue(line: CommandLine) -> None:
    """A queue that is down is an answer, not a failure."""
    done = line.dead()
    waits = line.sent("ok@sandbox.test")
    away = {"CARTEIRO_QUEUE": f"redis://{HOST}:{free_port()}/0"}

    explained = line("explain", waits, **away)
    ended = line.asked("explain", done, "--queue", away["CARTEIRO_QUEUE"])
    stats = line("stats", **away)
    figures = line.asked("stats", **away)

    assert explained.code == stats.code == ExitCode.OK
    assert "The queue is down" in explained.out
    assert line.asked("explain", waits, **away)["why"] == "queue_away"
    assert ended["why"] == "finished"
    assert "The queue is unreachable" in stats.err
    assert "messages ENQUEUED" in stats.out
    assert (figures["depths"], figures["states"]) == (None, {"ENQUEUED": 1, "FAILED": 1})


# --- doctor -------------------------------------------------------------------------------------


def levels(line: CommandLine) -> dict[str, str]:
    """The level of each check; a check with several findings has its worst."""
    found: dict[str, str] = {}
    for each in line("doctor", "--json").documents:
        found[each["check"]] = max(found.get(each["check"], "ok"), each["level"], key=_BAD.index)
    return found


_BAD = ("ok", "warn", "fail")


def test_working_installation_is_all_ok(line: CommandLine) -> None:
    """Every check is named, and the exit code is 0."""
    line.sent("ok@sandbox.test")
    line.worked_off()

    ran = line("doctor")

    assert ran.code == ExitCode.OK
    assert set(levels(line).values()) == {"ok"}
    assert {"store", "schema", "integrity", "durability", "disk", "clock"} <= levels(line).keys()
    assert {"templates", "senders", "provider", "feedback", "routes"} <= levels(line).keys()
    assert "worker" in levels(line)


def test_missing_store_fails_and_is_not_created(line: CommandLine) -> None:
    """The finding says what to do."""
    ran = line("doctor")

    assert (ran.code, "carteiro migrate" in ran.out) == (ExitCode.FAILED, True)
    assert not line.file.exists()


@pytest.mark.parametrize("version", [0, 999])
def test_other_schema_version_fails_and_stays(line: CommandLine, version: int) -> None:
    """Older or newer: doctor changes nothing."""
    line.sent()
    changed(line, f"PRAGMA user_version = {version}")

    assert line("doctor").code == ExitCode.FAILED
    assert levels(line)["schema"] == "fail"
    with closing(sqlite3.connect(line.file)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (version,)


def test_missing_source_of_a_move_names_its_own_option(line: CommandLine) -> None:
    said = line(
        "move", "--from", "sqlite:///missing.db", "--to", "postgresql://127.0.0.1:1/nowhere"
    )

    assert said.code == ExitCode.NOT_FOUND
    assert "there is no store at sqlite:///missing.db (from --from)" in said.err
    assert "--from names another" in said.err


def test_missing_worker_is_a_warning(line: CommandLine) -> None:
    """It does not fail."""
    line.sent()

    assert levels(line)["worker"] == "warn"
    assert line("doctor").code == ExitCode.OK


def test_unset_provider_fails_where_workers_send_through_another(line: CommandLine) -> None:
    """A worker with these settings would refuse to start."""
    line.sent()
    changed(line, "INSERT INTO overrides VALUES ('provider', 'smtp')")

    findings = line("doctor", "--json").documents

    [found] = [each for each in findings if (each["check"], each["level"]) == ("provider", "fail")]
    assert "sends through smtp" in found["told"]


def test_collector_is_asked_whether_it_takes_spans(
    line: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not costs spans, and no mail; what keeps processes from starting is a failure."""
    line.sent()
    assert levels(line)["tracing"] == "ok"

    with a_collector() as collector:
        monkeypatch.setenv("CARTEIRO_TRACING_ENABLED", "true")
        monkeypatch.setenv("CARTEIRO_TRACING_ENDPOINT", collector.url)
        assert levels(line)["tracing"] == "ok"
        collector.status = 404
        assert levels(line)["tracing"] == "warn"
        assert line("doctor").code == ExitCode.OK

    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    assert levels(line)["tracing"] == "fail"


def test_template_that_does_not_render_is_a_warning(line: CommandLine) -> None:
    """It names the template and its tenant."""
    line.tenant("acme")
    line.done("template", "samples", "--tenant", "acme")
    changed(line, "UPDATE templates SET html = '{{ oops' WHERE type = 'welcome_user'")

    findings = line("doctor", "--json").documents

    [told] = [each["told"] for each in findings if each["check"] == "templates"]
    assert told.startswith("'welcome_user' of tenant 'acme': html ")


def test_template_that_can_never_be_sent_is_a_warning(line: CommandLine) -> None:
    """It is older than the check that refuses it."""
    line.tenant("acme")
    line.done("template", "samples", "--tenant", "acme")
    changed(line, "UPDATE templates SET html = '<p onclick=x>' WHERE type = 'welcome_user'")

    findings = line("doctor", "--json").documents

    [found] = [each for each in findings if each["check"] == "templates"]
    assert found["level"] == "warn"
    assert found["told"] == (
        "'welcome_user' of tenant 'acme': html can never be sent, as it has active content in onclick of p"
    )


def test_unreachable_queue_is_not_reported_as_a_store_failure(line: CommandLine) -> None:
    """The ledger is checked all the same; only the queue fails."""
    line.tenant("acme")
    line.done("template", "samples", "--tenant", "acme")
    changed(line, "UPDATE templates SET html = '{{ oops' WHERE type = 'welcome_user'")

    ran = line("doctor", "--json", CARTEIRO_QUEUE="redis://127.0.0.1:1/0")

    found = {each["check"]: each["level"] for each in ran.documents}
    assert ran.code == ExitCode.FAILED
    assert [check for check, level in found.items() if level == "fail"] == ["queue"]
    assert (found["store"], found["templates"], found["senders"]) == ("ok", "warn", "ok")


def test_invalid_queue_is_not_reported_as_a_store_failure(line: CommandLine) -> None:
    """Then tenants cannot be checked, and the finding says why."""
    line.tenant("acme")

    ran = line("doctor", "--json", CARTEIRO_QUEUE="redis://127.0.0.1:1/0?nonsense=1")

    found = {each["check"]: each for each in ran.documents}
    assert [name for name, each in found.items() if each["level"] == "fail"] == ["queue"]
    assert "no parameter nonsense" in found["queue"]["told"]
    assert found["tenants"]["told"].endswith("without the queue")


def test_default_from_claimed_by_another_tenant_is_a_warning(line: CommandLine) -> None:
    """It is older than the claim, and the tenant can send nothing now."""
    line.done("tenant", "add", "acme", "--from", "post@brasa.example")
    line.done("tenant", "add", "brasa", "--from-domain", "brasa.example")

    findings = line("doctor", "--json").documents

    [told] = [each["told"] for each in findings if each["check"] == "senders"]
    assert "'acme' cannot send: 'brasa' has claimed" in told


def test_tenant_that_may_send_from_any_domain_is_a_warning(line: CommandLine) -> None:
    """Only where it is configured so, and mail leaves this machine."""
    line.tenant("acme")
    levels_of = []
    for provider, rule in (("smtp", "any"), ("smtp", "default_from"), ("sandbox", "any")):
        asked = {"CARTEIRO_PROVIDER": provider, "CARTEIRO_SENDERS_WITHOUT_DOMAINS": rule}
        findings = line("doctor", "--json", **NO_RELAY, **WITH_SENDER, **asked)
        levels_of += [each["level"] for each in findings.documents if each["check"] == "senders"]

    assert levels_of == ["warn", "ok", "ok"]


@pytest.mark.parametrize(
    ("settings", "tenant", "level"),
    [
        ({}, (), "warn"),
        (WITH_SENDER, (), "ok"),
        ({}, ("--from", "post@acme.example"), "ok"),
        ({}, ("--from-domain", "acme.example"), "ok"),
        ({"CARTEIRO_PROVIDER": "sandbox"}, (), "ok"),
    ],
    ids=str,
)
def test_tenant_without_any_sender_is_a_warning(
    line: CommandLine, settings: dict[str, str], tenant: tuple[str, ...], level: str
) -> None:
    """It may name no sender itself, so that all of its mail would fail."""
    line.done("tenant", "add", "acme", *tenant)

    findings = line("doctor", "--json", **{"CARTEIRO_PROVIDER": "smtp", **NO_RELAY, **settings})

    [found] = [each for each in findings.documents if each["check"] == "senders"]
    assert found["level"] == level
    assert ("smtp.default_from" in found["advice"]) is (level == "warn")


def test_missing_preset_is_a_warning(line: CommandLine) -> None:
    """Its tenant is retried as if it named none."""
    own = '{"calm": {"attempts": 2, "base_ms": 1000}}'
    line.done("tenant", "add", "acme", "--retry-preset", "calm", CARTEIRO_RETRY_PRESETS=own)

    assert levels(line)["presets"] == "warn"
    kept = line("doctor", "--json", CARTEIRO_RETRY_PRESETS=own).documents
    assert [each["level"] for each in kept if each["check"] == "presets"] == ["ok"]


def test_message_from_the_future_fails(line: CommandLine) -> None:
    """Leases and schedules would be wrong."""
    line.sent()
    changed(line, "UPDATE messages SET created_at = ?", (int(time.time()) + 3600) * 1000)

    assert levels(line)["clock"] == "fail"


def test_full_disk_and_unusable_provider_fail(line: CommandLine) -> None:
    line.sent()

    full = line("doctor", "--json", CARTEIRO_SQLITE_MIN_FREE_BYTES=str(2**62))
    relay = {"CARTEIRO_PROVIDER": "smtp", "CARTEIRO_SMTP_PASSWORD": "env:NOBODY_SET_THIS"}
    wrong = line("doctor", "--json", **relay)

    assert {each["check"] for each in full.documents if each["level"] == "fail"} == {"disk"}
    assert "provider" in {each["check"] for each in full.documents}
    assert {each["check"] for each in wrong.documents if each["level"] == "fail"} == {"provider"}
    assert (full.code, wrong.code) == (ExitCode.FAILED, ExitCode.FAILED)


def test_sizes_are_short_for_people_and_exact_for_programs(line: CommandLine) -> None:
    """A row of digits is hard to read, and a rounded size hard to compare."""
    line.sent()
    kept = {"CARTEIRO_SQLITE_MIN_FREE_BYTES": "1234567"}

    people = line("doctor", **kept).out
    programs = line("doctor", "--json", **kept).documents

    [disk] = [each for each in programs if each["check"] == "disk"]
    assert "1.2 MB are kept" in people
    assert disk["figures"]["minFreeBytes"] == 1_234_567


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (2**30, "1.1 GB"),
        (10**16, "10000.0 TB"),
    ],
)
def test_size_has_the_largest_unit_that_fits(count: int, said: str) -> None:
    """Units are decimal, as those of disks."""
    assert in_size(count) == said


def test_unreachable_relay_is_a_warning(line: CommandLine) -> None:
    """Mail waits for it: nothing is lost, but an operator should look."""
    line.sent()
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
    relay = {"CARTEIRO_SMTP_HOST": "127.0.0.1", "CARTEIRO_SMTP_PORT": str(port)}

    ran = line("doctor", "--json", CARTEIRO_PROVIDER="smtp", CARTEIRO_SMTP_TLS="none", **relay)

    levels = {each["check"]: each["level"] for each in ran.documents}
    assert (ran.code, levels["provider"]) == (ExitCode.OK, "warn")


@pytest.mark.servers
def test_ses_account_is_checked(line: CommandLine, tmp_path: Path) -> None:
    """Valid keys pass; an account that would refuse each mail fails, with advice."""
    line.sent()
    with a_twin_process(tmp_path / "twin") as twin:
        account = {
            "CARTEIRO_PROVIDER": "ses",
            "CARTEIRO_SES_REGION": REGION,
            "CARTEIRO_SES_ENDPOINT_URL": twin.url,
            "CARTEIRO_SES_SECRET_ACCESS_KEY": "env:SES_SECRET",
            "SES_SECRET": SECRET,
        }
        sound = line("doctor", "--json", CARTEIRO_SES_ACCESS_KEY_ID=KEY_ID, **account)
        wrong = line("doctor", "--json", CARTEIRO_SES_ACCESS_KEY_ID="AKIAOTHER", **account)
        account["CARTEIRO_SES_CONFIGURATION_SET"] = "nowhere"
        unset = line("doctor", "--json", CARTEIRO_SES_ACCESS_KEY_ID=KEY_ID, **account)

    runs = (sound, wrong, unset)
    found = [{each["check"]: each for each in ran.documents}["provider"] for ran in runs]
    assert [each["level"] for each in found] == ["ok", "fail", "fail"]
    assert [ran.code for ran in runs] == [ExitCode.OK, ExitCode.FAILED, ExitCode.FAILED]
    assert "UnrecognizedClient" in found[1]["told"]
    assert "correct ses.configuration_set" in found[2]["advice"]
    assert taken_by_ses(twin.folder) == []


def test_key_unknown_to_resend_fails(line: CommandLine) -> None:
    """All mail would fail; neither the finding nor the settings show the key."""
    line.sent()
    with running_twin() as (url, _):
        account = {"CARTEIRO_PROVIDER": "resend", "CARTEIRO_RESEND_URL": url}
        ran = line("doctor", "--json", RESEND_API_KEY="re_wrong_4f1c", **account)
        shown = line("config", "show", RESEND_API_KEY="re_wrong_4f1c", **account)

    [found] = [each for each in ran.documents if each["check"] == "provider"]
    assert (ran.code, found["level"]) == (ExitCode.FAILED, "fail")
    assert found["told"] == "resend: API key is invalid."
    assert "resend.api_key" in found["advice"]
    assert "4f1c" not in ran.out + shown.out
    assert "env:RESEND_API_KEY" in shown.out


def test_links_to_unsubscribe_are_checked(line: CommandLine) -> None:
    """Without a secret the API would not start; a template that offers them without a URL cannot be sent."""
    line.tenant("acme")
    line.done("template", "samples", "--tenant", "acme")
    usual = levels(line)["unsubscribe"]
    changed(line, "UPDATE templates SET one_click_unsubscribe = 1 WHERE type = 'welcome_user'")
    settings = {
        "CARTEIRO_UNSUBSCRIBE_URL": "https://mail.example.com",
        "CARTEIRO_UNSUBSCRIBE_SECRETS": "env:NOT_SET_ANYWHERE",
    }

    findings = line("doctor", "--json").documents
    without = line("doctor", "--json", **settings)

    assert usual == "ok"
    [told] = [each["told"] for each in findings if each["check"] == "templates"]
    assert "oneClickUnsubscribe needs unsubscribe.url" in told
    [found] = [each for each in without.documents if each["check"] == "unsubscribe"]
    assert (without.code, found["level"]) == (ExitCode.FAILED, "fail")
    assert "NOT_SET_ANYWHERE" in found["told"]


def test_missing_password_is_reported_with_its_setting(line: CommandLine) -> None:
    """The finding has the reference and the setting that holds it."""
    line.sent()

    ran = line(
        "doctor",
        CARTEIRO_PROVIDER="smtp",
        CARTEIRO_SMTP_HOST="relay.test",
        CARTEIRO_SMTP_USERNAME="ana",
        CARTEIRO_SMTP_PASSWORD="env:NOT_SET_ANYWHERE",
    )

    assert ran.code == ExitCode.FAILED
    assert "smtp.password" in ran.out
    assert "NOT_SET_ANYWHERE" in ran.out


@pytest.mark.parametrize("store", ["sqlite:///missing.db", "postgresql://127.0.0.1:1/nowhere"])
def test_other_checks_run_without_the_store(line: CommandLine, store: str) -> None:
    """Providers, feedback, and a list of skipped checks."""
    relay = {"CARTEIRO_PROVIDER": "smtp", "CARTEIRO_SMTP_PORT": str(free_port())}

    ran = line("doctor", "--json", "--store", store, CARTEIRO_SMTP_HOST=HOST, **relay)

    found = {each["check"]: each for each in ran.documents}
    assert (ran.code, found["store"]["level"]) == (ExitCode.FAILED, "fail")
    assert (found["provider"]["level"], found["feedback"]["level"]) == ("warn", "ok")
    assert "templates cannot be checked" in found["tenants"]["told"]


def test_unusable_provider_does_not_hide_the_others(line: CommandLine) -> None:
    """Each of a chain has its row."""
    line.sent()

    ran = line("doctor", "--json", CARTEIRO_PROVIDER="resend, smtp", CARTEIRO_SMTP_HOST=HOST)

    told = [each["told"] for each in ran.documents if each["check"] == "provider"]
    assert [each.partition(":")[0] for each in told] == ["resend", "smtp"]
    assert "RESEND_API_KEY" in told[0]


TOPIC = "arn:aws:sns:eu-west-1:123456789012:mails"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"provider": "ses"}, [("warn", "ses_topics is not set")]),
        (
            {"provider": "ses", "feedback_ses_topics": TOPIC},
            [("warn", "ses.configuration_set is not set")],
        ),
        (
            {
                "provider": "ses:eu-west-1",
                "feedback_ses_topics": TOPIC,
                "ses_configuration_set": "a",
            },
            [("ok", "ses: received")],
        ),
        ({"provider": "resend"}, [("warn", "resend_secret is not set")]),
        (
            {"provider": "resend", "feedback_resend_secret": "env:NOT_SET_ANYWHERE"},
            [("fail", "NOT_SET_ANYWHERE")],
        ),
        (
            {"tenant_routes_acme": "resend, ses"},
            [("warn", "complaints of ses"), ("warn", "complaints of resend")],
        ),
        ({"provider": "smtp"}, [("ok", "no configured provider reports")]),
    ],
)
def test_bounce_feedback_is_checked(
    settings: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    """For each provider that reports bounces; a missing secret keeps the API from starting."""
    environ = {f"CARTEIRO_{name.upper()}": each for name, each in settings.items()}

    found = list(installation.of_feedback(load(environ=environ)))

    assert [each.level for each in found] == [level for level, _ in expected]
    assert all(text in each.told for each, (_, text) in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("told", "level", "text"),
    [
        (f"whsec_{base64.b64encode(b'made here').decode()}\n", "ok", "resend: received"),
        *(
            (nothing, "fail", "feedback.resend_secret does not lead to a secret")
            for nothing in ("", "  \n", "whsec_", "whsec_?", "not base64!!")
        ),
    ],
)
def test_secret_that_stops_the_api_fails(tmp_path: Path, told: str, level: str, text: str) -> None:
    """An empty file or half a secret is not reported as working feedback."""
    (tmp_path / "secret").write_text(told, "utf-8")
    place = f"file:{tmp_path}/secret"
    environ = {"CARTEIRO_PROVIDER": "resend", "CARTEIRO_FEEDBACK_RESEND_SECRET": place}

    [found] = installation.of_feedback(load(environ=environ))

    assert found.level == level
    assert text in found.told


def test_route_of_an_unknown_tenant_is_a_warning(line: CommandLine) -> None:
    """A typo in a name would silently send mail another way."""
    line.tenant("acme")
    line.done("template", "samples", "--tenant", "acme")
    routes = {
        "CARTEIRO_PROVIDER": "sandbox",
        "CARTEIRO_TENANT_ROUTES_ACME": "noop",
        "CARTEIRO_TENANT_ROUTES_ACMEE": "noop",
        "CARTEIRO_TYPE_ROUTES_WELCOME_USER": "noop",
        "CARTEIRO_TYPE_ROUTES_INVOICE": "noop",
    }

    ran = line("doctor", "--json", **routes)

    found = [each for each in ran.documents if each["check"] == "routes"]
    assert [(each["level"], each["told"].partition(":")[0]) for each in found] == [
        ("warn", "tenant_routes.acmee"),
        ("warn", "type_routes.invoice"),
    ]
    assert [each["advice"] for each in found] == [
        "did you mean acme?",
        "correct the name, or remove the route",
    ]
    assert ran.code == ExitCode.OK


def test_file_that_is_not_a_database_fails(line: CommandLine) -> None:
    """In one line, with advice."""
    line.file.write_bytes(b"not a database, and long enough to be taken for one" * 100)

    ran = line("doctor")

    assert (ran.code, "backup" in ran.out) == (ExitCode.FAILED, True)


# --- migrate ------------------------------------------------------------------------------------


def test_store_is_created_and_then_up_to_date(line: CommandLine) -> None:
    """The output has the old and the new version."""
    first = line.asked("migrate")
    again = line.asked("migrate")

    assert first == {"from": 0, "to": newest_version()}
    assert again == {"from": newest_version(), "to": newest_version()}


def test_new_store_has_a_first_tenant_with_the_samples(line: CommandLine) -> None:
    """SQL and HTTP find a template at once; a deleted one stays deleted."""
    line.done("migrate")
    types = {each["type"] for each in line.listed("template", "ls", "--tenant", "default")}
    line.done("template", "delete", "welcome_user", "--tenant", "default", "--yes")
    line.done("migrate")
    left = {each["type"] for each in line.listed("template", "ls", "--tenant", "default")}

    assert types == {"welcome_user", "signup_confirmation"}
    assert left == {"signup_confirmation"}


def test_newer_store_is_refused(line: CommandLine) -> None:
    """One line of advice, and the file is not changed."""
    line.done("migrate")
    changed(line, "PRAGMA user_version = 999")

    ran = line("migrate")

    assert (ran.code, ran.out) == (ExitCode.FAILED, "")
    assert "newer Carteiro" in ran.err


# --- prune, backup ------------------------------------------------------------------------------


def test_prune_deletes_messages_past_their_retention(line: CommandLine) -> None:
    """Unfinished ones always stay."""
    finished = line.sent("ok@sandbox.test")
    line.worked_off()
    waiting = line.sent("ok@sandbox.test")

    kept = line.asked("prune")
    dropped = line.asked("prune", "--history", "0s", "--yes")

    assert (kept["messages"], dropped["messages"]) == (0, 1)
    assert line("show", finished).code == ExitCode.NOT_FOUND
    assert line.asked("show", waiting)["status"] == "ENQUEUED"


def test_compacted_file_is_smaller(line: CommandLine) -> None:
    """Space freed by a prune goes back to the disk at once."""
    for _ in range(5):
        line.sent("ok@sandbox.test", "--text", "x" * 100_000)
    line.worked_off()
    before = line.file.stat().st_size

    dropped = line.asked("prune", "--history", "0s", "--compact", "--yes")

    assert dropped["messages"] == 5
    assert dropped["freedBytes"] > 0
    assert line.file.stat().st_size < before


def test_prune_with_its_own_age_asks_first(line: CommandLine) -> None:
    """Without a terminal it is refused."""
    finished = line.sent("ok@sandbox.test")
    line.worked_off()

    ran = line("prune", "--bodies", "0s")

    assert (ran.code, "--yes" in ran.err) == (ExitCode.REFUSED, True)
    assert line.asked("inbox", "show", finished)["content"]


def test_name_of_a_backup_is_synced_before_the_report(line: CommandLine, tmp_path: Path) -> None:
    """SQLite has synced the content; the folder entry is synced too."""
    line.done("tenant", "add", "acme")
    file = tmp_path / "kept" / "copy.db"
    file.parent.mkdir()

    with watched_syncs() as synced:
        line.done("backup", str(file))

    assert synced == inodes(file.parent)


def test_backup_opens_as_a_whole_store(line: CommandLine, tmp_path: Path) -> None:
    """With everything in it, and nothing overwritten."""
    message = line.sent("ok@sandbox.test")
    copy = CommandLine(tmp_path / "copy")
    copy.folder.mkdir()

    line.done("backup", str(copy.file))
    again = line("backup", str(copy.file))
    nowhere = line("backup", str(tmp_path / "no" / "such.db"))

    assert copy.asked("show", message)["status"] == "ENQUEUED"
    assert (again.code, nowhere.code) == (ExitCode.REFUSED, ExitCode.NOT_FOUND)
