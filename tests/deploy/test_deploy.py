"""The example of a production set-up: its settings load, and its units are valid."""

import json
import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import yaml  # type: ignore[import-untyped]

import generate
from carteiro.config import Settings, TicketSettings, load
from carteiro.providers.smtp.settings import SmtpSettings
from carteiro.stores.postgres.migrating import _OLDEST_SERVER
from carteiro.stores.redis.examine import _OLDEST_SERVER as _OLDEST_REDIS
from carteiro.tickets.consume.handlers import load_app
from support.commands import environment_of_a_command
from support.pages import REPOSITORY
from support.services import free_port

DEPLOY = REPOSITORY / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())[
    "services"
]
BUILT = {name: service for name, service in SERVICES.items() if "build" in service}
OURS = sorted(name for name, service in BUILT.items() if "profiles" not in service)
OF_TICKETS = sorted(set(BUILT) - set(OURS))
PROGRAM = "/opt/carteiro/bin/carteiro"
SANDBOXING = re.compile(
    r"^(?:Protect|Private|Restrict|SystemCall|NoNew|Lock|Memory|Capability)\w*="
)


def settings_of_the_example(**changes: str) -> Settings:
    """Settings of a process with the example's environment."""
    environ = variables() | {"CARTEIRO_CONFIG": str(DEPLOY / "carteiro.toml")} | changes
    return load(environ=environ)


def variables() -> dict[str, str]:
    """The example's environment, including commented-out suggestions."""
    lines = re.findall(r"^#?(\w+)=(.*)$", (DEPLOY / "carteiro.env").read_text(), re.MULTILINE)
    return dict(lines)


def unit(path: Path) -> ConfigParser:
    """A unit as systemd reads it; of a repeated key only the last counts."""
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(path)
    return parser


def test_example_settings_load() -> None:
    settings = settings_of_the_example()

    assert (settings.provider, settings.environment) == ("smtp", "production")
    assert settings.store.startswith("sqlite:////")


def test_password_is_where_the_settings_say() -> None:
    """In the environment that systemd reads, not in the settings."""
    named = settings_of_the_example().section(SmtpSettings).password

    assert named.removeprefix("env:") in variables()


def test_environment_names_the_settings() -> None:
    """Without it the process would start with the defaults."""
    assert variables()["CARTEIRO_CONFIG"] == "/etc/carteiro/carteiro.toml"


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_unit_starts_an_existing_command(path: Path) -> None:
    """With the documented environment, and a writable folder."""
    service = unit(path)["Service"]
    program, command, *_ = service["ExecStart"].split()

    assert program == PROGRAM
    assert command in {each.name.split()[1] for each in generate.leaves()}
    assert service["EnvironmentFile"] == "/etc/carteiro/carteiro.env"
    assert settings_of_the_example().store == (
        f"sqlite:////var/lib/{service['StateDirectory']}/carteiro.db"
    )


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_unit_waits_longer_than_the_grace_period(path: Path) -> None:
    """Otherwise systemd would kill jobs that would have ended."""
    patience = timedelta(seconds=int(unit(path)["Service"]["TimeoutStopSec"]))

    assert patience > settings_of_the_example().delivery.grace + timedelta(seconds=10)


def test_workers_are_as_confined_as_the_server() -> None:
    """A restriction of one unit is in all of them."""
    confined = [
        [line for line in path.read_text().splitlines() if SANDBOXING.match(line)] for path in UNITS
    ]

    assert len(confined) == 3
    assert len(confined[0]) > 20
    assert all(each == confined[0] for each in confined)


def test_timer_processes_due_messages_every_two_minutes() -> None:
    """Its unit has the same name, ends by itself, and has valid options."""
    timer = unit(DEPLOY / "systemd/carteiro-process.timer")
    service = unit(DEPLOY / "systemd/carteiro-process.service")["Service"]
    _, command, *options = service["ExecStart"].split()
    commands = {leaf.name: leaf.command for leaf in generate.leaves()}

    assert timer["Timer"]["OnUnitActiveSec"] == "2min"
    assert timer["Install"]["WantedBy"] == "timers.target"
    assert (service["Type"], command) == ("oneshot", "process")
    assert commands[f"carteiro {command}"].make_context(command, [*options]).params["limit"] == 500


@pytest.mark.parametrize("instance", range(10))
def test_each_worker_has_its_own_port(instance: int) -> None:
    """Two processes cannot listen on one."""
    service = unit(DEPLOY / "systemd/carteiro-worker@.service")["Service"]
    name, _, number = service["Environment"].replace("%i", str(instance)).partition("=")

    settings = settings_of_the_example(**{name: number})

    assert settings.metrics.port == 9030 + instance
    assert settings_of_the_example().metrics.port not in {settings.metrics.port, settings.api.port}


def test_systemd_accepts_the_units(tmp_path: Path) -> None:
    """Where systemd is installed; elsewhere the other tests have to do."""
    asked = shutil.which("systemd-analyze")
    paths = [*UNITS, *sorted((DEPLOY / "systemd").glob("*.timer"))]
    for path in paths:
        text = path.read_text().replace(PROGRAM, sys.executable)
        (tmp_path / path.name).write_text(text)

    said = ""
    if asked is not None:
        units = [str(tmp_path / path.name) for path in paths]
        ran = subprocess.run(
            [asked, "verify", "--man=no", *units], capture_output=True, text=True, check=False
        )
        said = ran.stderr

    assert [line for line in said.splitlines() if "carteiro" in line] == []


def composed(name: str) -> Settings:
    """Settings of a service of the compose file; the mounted file is in the same folder here."""
    environ = SERVICES[name]["environment"] | {"CARTEIRO_CONFIG": str(DEPLOY / "carteiro.toml")}
    return load(environ=environ)


@pytest.mark.parametrize("name", OURS)
def test_composed_service_starts_an_existing_command(name: str) -> None:
    """With settings that load, and the settings file where it says."""
    service = SERVICES[name]
    settings = composed(name)
    [mounted] = [each for each in service["volumes"] if each.startswith("./carteiro.toml:")]

    assert service["command"][0] in {each.name.split()[1] for each in generate.leaves()}
    assert mounted.split(":")[1] == service["environment"]["CARTEIRO_CONFIG"]
    assert settings.origin("store") != settings.origin(
        "provider"
    )  # the one by variable, the other by file
    assert settings.section(SmtpSettings).password.removeprefix("env:") in service["environment"]


@pytest.mark.parametrize("name", OURS)
def test_composed_service_finds_its_servers(name: str) -> None:
    """Store and queue are services of the same file, which it waits for."""
    store, queue = urlsplit(composed(name).store), urlsplit(composed(name).queue)

    assert {store.hostname, queue.hostname} == set(SERVICES[name]["depends_on"])
    assert store.hostname is not None
    made = SERVICES[store.hostname]["environment"]
    assert (store.username, store.path) == (made["POSTGRES_USER"], f"/{made['POSTGRES_DB']}")
    assert SERVICES[name]["environment"]["PGPASSWORD"] == made["POSTGRES_PASSWORD"]


@pytest.mark.parametrize("name", OURS)
def test_compose_waits_longer_than_the_grace_period(name: str) -> None:
    """Otherwise it would kill jobs that would have ended."""
    patience = timedelta(seconds=int(SERVICES[name]["stop_grace_period"].removesuffix("s")))

    assert patience > composed(name).delivery.grace + timedelta(seconds=10)


def test_composed_api_is_published_where_it_listens() -> None:
    """To this machine alone; its readiness is checked there."""
    api = composed("api").api
    [published] = SERVICES["api"]["ports"]

    assert api.host == "0.0.0.0"
    assert published == f"127.0.0.1:{api.port}:{api.port}"
    assert f":{api.port}/health/ready" in SERVICES["api"]["healthcheck"]["test"][-1]


def test_composed_worker_is_checked_where_it_listens() -> None:
    """On its metrics address: it has no other."""
    metrics = composed("worker").metrics

    assert metrics.host == "0.0.0.0"
    assert f":{metrics.port}/health/ready" in SERVICES["worker"]["healthcheck"]["test"][-1]


def test_composed_servers_are_recent_enough() -> None:
    """And Redis is set up as `carteiro doctor` wants it."""
    postgres, redis = (SERVICES[name]["image"].split(":") for name in ("postgres", "redis"))

    assert (postgres[0], redis[0]) == ("postgres", "redis")
    assert int(postgres[1]) * 10_000 >= _OLDEST_SERVER
    assert int(redis[1]) >= _OLDEST_REDIS[0]
    assert "./redis.conf:/etc/redis.conf:ro" in SERVICES["redis"]["volumes"]
    assert SERVICES["redis"]["command"][:2] == ["redis-server", "/etc/redis.conf"]


def test_ticket_lane_and_monitoring_are_opt_in() -> None:
    """An installation for e-mail starts none of their processes and servers."""
    asked_for = sorted(name for name, service in SERVICES.items() if "profiles" in service)

    of_tickets = [name for name in asked_for if "tickets" in SERVICES[name]["profiles"]]
    assert of_tickets == ["alertmanager", "kafka", "mongo", *OF_TICKETS]
    assert set(asked_for) - {*of_tickets} == {"grafana", "prometheus"}


def composed_tickets(name: str) -> TicketSettings:
    """Settings of a process of the ticket lane: from its environment alone."""
    return load(environ=SERVICES[name]["environment"]).tickets


def test_composed_lane_has_a_worker_and_an_archiver() -> None:
    """Existing commands, with valid options."""
    commands = {leaf.name: leaf.command for leaf in generate.leaves()}
    begun = {}
    for name in OF_TICKETS:
        group, command, *options = SERVICES[name]["command"]
        context = commands[f"carteiro {group} {command}"].make_context(command, [*options])
        begun[command] = context.params.get("app")

    assert begun == {"run": "handlers:tickets", "archive": None}


def test_composed_worker_finds_its_handlers(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are mounted in the working folder of the image, and can be loaded."""
    [mounted] = SERVICES["tickets-worker"]["volumes"]
    source, target, _ = mounted.split(":")
    workdir = re.findall(r"^WORKDIR (.*)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)[-1]
    monkeypatch.syspath_prepend(DEPLOY)
    monkeypatch.chdir(DEPLOY)

    assert target == f"{workdir}/handlers.py"
    assert (DEPLOY / source).name == "handlers.py"
    assert [each.type for each in load_app("handlers:tickets")] == ["BUILD"]


@pytest.mark.parametrize("name", OF_TICKETS)
def test_composed_lane_finds_its_servers(name: str) -> None:
    """All are services of the same file, which it waits for; it has its own Redis database."""
    settings = composed_tickets(name)
    urls = (settings.redis, settings.mongo, settings.alertmanager)
    hosts = {urlsplit(each).hostname for each in (*urls, f"//{settings.bootstrap_servers}")}

    assert hosts == set(SERVICES[name]["depends_on"])
    assert (
        f"//{settings.bootstrap_servers}"
        in (SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"])
    )
    assert urlsplit(settings.redis).path != urlsplit(composed("worker").queue).path


@pytest.mark.parametrize("name", OF_TICKETS)
def test_composed_lane_is_checked_where_it_listens_and_has_time_to_stop(name: str) -> None:
    """On its metrics port; and no job is killed that would have ended."""
    settings, service = composed_tickets(name), SERVICES[name]
    patience = timedelta(seconds=int(service["stop_grace_period"].removesuffix("s")))

    assert f":{settings.metrics_port}/health/ready" in service["healthcheck"]["test"][-1]
    assert patience > settings.drain + timedelta(seconds=10)


def test_composed_broker_is_the_tested_one() -> None:
    """Same version and same settings, except those of the machine and of speed."""
    [version] = re.findall(
        r">kafka_2.13<.*\s*<version>(.*)</version>",
        (REPOSITORY / "tools/kafka/pom.xml").read_text(),
    )
    tested = dict(
        line.split("=")
        for line in (REPOSITORY / "tools/kafka/server.properties").read_text().splitlines()
        if line and not line.startswith("#")
    )
    composed_settings = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): str(value)
        for name, value in SERVICES["kafka"]["environment"].items()
    }
    both = tested.keys() & composed_settings.keys()

    assert SERVICES["kafka"]["image"] == f"apache/kafka:{version}"
    assert both
    assert {name: composed_settings[name] for name in both} == {name: tested[name] for name in both}


def test_image_has_everything_it_needs() -> None:
    """Every copied file exists, and it can talk to all servers."""
    text = (DEPLOY / "Dockerfile").read_text()
    copied = [
        name for line in re.findall(r"^COPY (.*) \S+$", text, re.MULTILINE) for name in line.split()
    ]

    assert [name for name in copied if not (REPOSITORY / name).exists()] == []
    assert {"constraints.txt", "src"} <= set(copied)
    assert ".[feedback,otel,postgres,redis,resend,ses,tickets]" in text
    for service in BUILT.values():
        context = (DEPLOY / service["build"]["context"]).resolve()
        assert context / service["build"]["dockerfile"] == DEPLOY / "Dockerfile"


# --- the image --------------------------------------------------------------------------------


def image() -> tuple[dict[str, str], list[str], list[str]]:
    """Environment, command and health check of the image, adapted to run here."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    [variables] = re.findall(r"^ENV (.*)$", text, re.MULTILINE)
    [entry] = re.findall(r"^ENTRYPOINT (\[.*\])$", text, re.MULTILINE)
    [command] = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)
    [check] = re.findall(r"^HEALTHCHECK .* CMD (\[.*\])$", text, re.MULTILINE)
    assert json.loads(entry) == ["carteiro"]
    assert "COPY deploy/health.py ./" in text
    program, file = json.loads(check)
    assert (program, file) == ("python", "/app/health.py")
    environ = dict(each.split("=") for each in variables.split())
    ours = [sys.executable, "-m", "carteiro.cli", *json.loads(command)]
    return environ, ours, [sys.executable, str(DEPLOY / Path(file).name)]


def test_image_is_reachable_from_outside_and_reports_its_health(tmp_path: Path) -> None:
    """127.0.0.2 is this machine, too, but answers only a listener on all addresses."""
    environ, command, check = image()
    ports = {name: str(free_port()) for name in ("API", "METRICS", "TICKETS_METRICS")}
    environ |= {f"CARTEIRO_{name}_PORT": port for name, port in ports.items()}
    given = environment_of_a_command(**environ)

    def is_healthy() -> bool:
        return subprocess.run(check, cwd=tmp_path, env=given, check=False).returncode == 0

    assert not is_healthy()
    quiet = subprocess.DEVNULL
    with subprocess.Popen(
        command, cwd=tmp_path, env=given, stdout=quiet, stderr=quiet
    ) as container:
        try:
            waiting = 0
            while not is_healthy():
                waiting += 1
                assert waiting < 100
                assert container.poll() is None
            for name, path in (("API", "health/live"), ("METRICS", "metrics")):
                answer = httpx.get(f"http://127.0.0.2:{ports[name]}/{path}", trust_env=False)
                assert answer.is_success
        finally:
            container.terminate()
    assert not is_healthy()


def test_image_exposes_its_ports() -> None:
    """Those of API, metrics and ticket lane."""
    [ports] = re.findall(r"^EXPOSE (.*)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    settings = load(environ={})

    named = (settings.api.port, settings.metrics.port, settings.tickets.metrics_port)
    assert ports.split() == [str(each) for each in named]
