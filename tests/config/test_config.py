"""Settings: their layers, their origins, and their errors."""

import re
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest

from carteiro import config
from carteiro.config import Settings, load
from carteiro.errors import ConfigError
from carteiro.model import ApiLimits, Fairness, SendLimit


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A carteiro.toml of the current folder must not decide a test."""
    monkeypatch.chdir(tmp_path)


def loaded(
    *,
    file: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    **overrides: object,
) -> Settings:
    """Settings of this test alone; ``delivery__lease_ms`` is a key with a dot."""
    flags = {key.replace("__", "."): raw for key, raw in overrides.items()}
    return load(file=file, environ=environ or {}, overrides=flags)


def a_file(text: str, name: str = "carteiro.toml") -> Path:
    """A settings file in the current directory."""
    path = Path(name)
    path.write_text(text, "utf-8")
    return path


def keys_of(table: Mapping[str, Any], prefix: str = "") -> list[str]:
    """The keys of a TOML table, dotted, in order."""
    return [
        key
        for name, raw in table.items()
        for key in (
            keys_of(raw, f"{name}.")
            if isinstance(raw, dict) and prefix + name not in config.setting_keys()
            else [prefix + name]
        )
    ]


def comment_of(key: str) -> str:
    """The comment above a key in the default file."""
    section, _, name = key.rpartition(".")
    text = config.default_text()
    if section:
        text = text.split(f"[{section}]\n")[1]
    found = re.search(rf"((?:^#.*\n)+){name} = ", text, re.MULTILINE)
    return found[1] if found else ""


# --- the default file -------------------------------------------------------------------------


def test_default_file_and_settings_have_the_same_keys_in_the_same_order() -> None:
    """The default file is the only source of defaults, so neither side may know a key alone."""
    in_file = [key for key in keys_of(tomllib.loads(config.default_text())) if "tiers." not in key]

    assert in_file == list(config.setting_keys())


@pytest.mark.parametrize("key", [*config.setting_keys(), "tiers.standard"])
def test_every_setting_has_a_comment(key: str) -> None:
    """The default file is the reference page: each key has a comment right above it."""
    assert comment_of(key)


@pytest.mark.parametrize(
    "section", ["provider", "environment", "retry.preset", "retry.charge", "log.level"]
)
def test_enum_setting_is_documented_with_all_its_values(section: str) -> None:
    model, name = Settings, section
    if "." in section:
        outer, name = section.split(".")
        model = Settings.model_fields[outer].annotation  # type: ignore[assignment]

    for choice in get_args(model.model_fields[name].annotation):
        assert re.search(rf"\b{choice}\b" if choice else "empty", comment_of(section))


def test_durations_lose_their_suffix_and_gain_a_type() -> None:
    """Outside, the unit is in the name; inside, it is in the type."""
    settings = loaded()

    assert settings.delivery.call_limit == timedelta(seconds=30)
    assert settings.delivery.hold_margin == timedelta(seconds=10)
    assert settings.dead_letters.ttl == timedelta(days=7)


def test_fairness_defaults_are_those_of_the_model() -> None:
    assert loaded().fairness.as_value() == Fairness()


def test_zero_retention_keeps_for_good() -> None:
    """Retention 0 means none."""
    assert loaded().retention.bodies is None
    assert loaded(retention__bodies_ms=5).retention.bodies == timedelta(milliseconds=5)


def test_api_limits_are_those_of_the_model() -> None:
    """0 means no limit."""
    assert loaded().api.limits == ApiLimits()
    assert loaded(api__per_hour=0, api__per_day=7).api.limits == ApiLimits(100, None, 7)


def test_send_limit_of_zero_is_unlimited() -> None:
    """The global limiter exists and is off by default."""
    assert loaded().send_limit.as_value() is None
    assert loaded(send_limit__count=100).send_limit.as_value() == SendLimit(
        100, timedelta(seconds=60)
    )


@pytest.mark.parametrize(
    ("environment", "preset", "chosen"),
    [
        ("production", "", "gateway"),
        ("development", "", "development"),
        ("development", "pipeline", "pipeline"),
    ],
)
def test_environment_picks_the_preset_unless_one_is_named(
    environment: str, preset: str, chosen: str
) -> None:
    """A named preset wins over the environment's."""
    assert loaded(environment=environment, retry__preset=preset).retry_preset == chosen


@pytest.mark.parametrize(
    ("slots", "network", "used"), [(0, True, 5), (0, False, 200), (7, True, 7), (7, False, 7)]
)
def test_email_slots_depend_on_the_provider_by_default(
    slots: int, network: bool, used: int
) -> None:
    """A network provider gets few slots, a local one many."""
    assert loaded(workers__email_slots=slots).workers.email_slots_for(network=network) == used


def test_settings_are_immutable() -> None:
    with pytest.raises(ValueError, match="frozen"):
        loaded().api.port = 1  # type: ignore[misc]


# --- layers and origins -----------------------------------------------------------------------


def test_each_layer_wins_over_the_one_below_and_is_the_origin() -> None:
    """Default < file < environment < flag."""
    a_file("[api]\nhost = 'file'\nport = 1\n[log]\nlevel = 'warn'")
    environ = {"CARTEIRO_API_HOST": "env", "CARTEIRO_API_PORT": "2"}

    settings = loaded(environ=environ, api__port="3")

    assert (settings.api.host, settings.api.port, settings.log.level) == ("env", 3, "warn")
    assert settings.origin("api.port") == "flag"
    assert settings.origin("api.host") == "environment variable CARTEIRO_API_HOST"
    assert settings.origin("log.level") == "carteiro.toml"
    assert settings.origin("store") == "default"


def test_all_values_are_listed_in_the_order_of_the_default_file() -> None:
    """The output of `config show`: each key once, its effective value, its origin."""
    given = loaded(store="memory://").given()

    assert [each.key for each in given if each.key != "tiers.standard"] == list(
        config.setting_keys()
    )
    assert (given[0].key, given[0].raw, given[0].origin) == ("store", "memory://", "flag")


def test_named_file_is_read_instead_of_the_local_one(tmp_path: Path) -> None:
    """A path given by flag wins over CARTEIRO_CONFIG, which wins over ./carteiro.toml."""
    a_file("api.host = 'lying-about'")
    by_env = a_file("api.host = 'by-env'", "env.toml")
    by_flag = a_file("api.host = 'by-flag'", "flag.toml")
    environ = {"CARTEIRO_CONFIG": str(tmp_path / by_env)}

    assert loaded().api.host == "lying-about"
    assert loaded(environ=environ).api.host == "by-env"
    assert loaded(environ=environ, file=by_flag).api.host == "by-flag"


@pytest.mark.parametrize("names", ["ConnectionError,TimeoutError", "A, B", "A;B", "A B,"])
def test_names_of_errors_are_separated_by_spaces(names: str) -> None:
    """With a comma they would be one name that no error has, and nothing would pause."""
    with pytest.raises(ConfigError, match=r"tickets\.pause_errors = .* separated by spaces"):
        loaded(tickets__pause_errors=names)

    assert loaded(tickets__pause_errors=" A  HTTP_503 ").tickets.pause_errors == " A  HTTP_503 "


def test_missing_flag_changes_nothing() -> None:
    """The command line passes None for an option that was not typed."""
    assert loaded(store=None).origin("store") == "default"


def test_top_level_settings_have_short_variables() -> None:
    """The three most used ones are named without a section."""
    environ = {
        "CARTEIRO_STORE": "memory://",
        "CARTEIRO_PROVIDER": "noop",
        "CARTEIRO_ENVIRONMENT": "development",
    }

    settings = loaded(environ=environ)

    assert (settings.store, settings.provider) == ("memory://", "noop")
    assert settings.environment == "development"


def test_tiers_table_accepts_any_name() -> None:
    """Files and variables add to it."""
    a_file("[tiers]\ngold = 4")

    settings = loaded(environ={"CARTEIRO_TIERS_SILVER": "2.5"})

    assert settings.tiers == {"standard": 1.0, "gold": 4.0, "silver": 2.5}


def test_unrelated_variables_are_ignored() -> None:
    """Kubernetes sets CARTEIRO_... for a service's address; it is not a typo."""
    environ = {
        "PATH": "/bin",
        "CARTEIRO_PORT": "tcp://10.0.0.1:8025",
        "CARTEIRO_SERVICE_HOST": "10.0.0.1",
        "CARTEIRO_PORT_8025_TCP_ADDR": "10.0.0.1",
    }

    assert loaded(environ=environ).api.port == 8025


# --- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stroe = 'x'", "stroe (from carteiro.toml): no such setting; did you mean store?"),
        ("[delivery]\ncall_limit = 3", "did you mean delivery.call_limit_ms?"),
        ("[deliveri]\nlease_ms = 3", "did you mean delivery.lease_ms?"),
        ("delivery = 3", "delivery (from carteiro.toml): no such setting"),
        ("tiers = 3", "tiers (from carteiro.toml): no such setting"),
        ("[tiers.gold]\nweight = 3", "tiers.gold.weight (from carteiro.toml): no such setting"),
        ("qqqqqq = 3", "qqqqqq (from carteiro.toml): no such setting"),
    ],
)
def test_unknown_key_is_refused_with_the_nearest_known_one(text: str, said: str) -> None:
    """A typo must not be a setting that silently does nothing."""
    a_file(text)

    with pytest.raises(ConfigError, match=re.escape(said)):
        loaded()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("CARTEIRO_STOER", "did you mean CARTEIRO_STORE?"),
        ("CARTEIRO_DELIVERY_LEASE", "did you mean CARTEIRO_DELIVERY_LEASE_MS?"),
        ("CARTEIRO_TIERS_", "no such setting"),
    ],
)
def test_unknown_variable_is_refused_with_the_nearest_known_one(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        loaded(environ={name: "1"})


def test_unknown_flag_is_refused() -> None:
    """Overrides have the same keys."""
    with pytest.raises(ConfigError, match=r"api\.prt \(from flag\).*did you mean api\.port\?"):
        loaded(api__prt=1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[api]\nport = 'http'",
            "api.port = 'http' (from carteiro.toml): should be a whole number",
        ),
        ("[api]\nport = 70000", "should be at most 65535"),
        ("[api]\nport = true", "api.port = True (from carteiro.toml): should be a whole number"),
        ("[tiers]\ngold = true", "tiers.gold = True (from carteiro.toml): should be a number"),
        (
            "[retry]\ncharge = 'some'",
            "retry.charge = 'some' (from carteiro.toml): should be 'all' or",
        ),
        ("[retry]\npreset = 'fast'", "should be one of gateway, classic"),
        ("[retention]\naudit_ms = 1", "should be at least 86400000 milliseconds, 1 day; or 0"),
        ("[delivery]\nlease_ms = 0", "delivery.lease_ms = 0 (from carteiro.toml): should be whole"),
        ("[delivery]\nlease_ms = 1.5", "whole milliseconds, 0 or more"),
        ("[delivery]\ngrace_ms = -1", "whole milliseconds, 0 or more"),
        ("[delivery]\ngrace_ms = 1000000000000000000000", "whole milliseconds"),
        ("[delivery]\ngrace_ms = true", "whole milliseconds"),
        # No date is so far away: a dead letter that waits for it could not be shown.
        ("[automatic_redrive]\ncool_down_ms = 80000000000000", "at most 2592000000 milliseconds"),
        ("[fairness]\nmax_jobs_per_tenant_batch = 0", "should be at least 1"),
        ("[fairness]\nmax_jobs_per_tenant_batch = 2147483647", "should be at most 1000000"),
        (
            "[tiers]\ngold = 0",
            "tiers.gold = 0 (from carteiro.toml): should be at least",
        ),
        ("[tiers]\ngold = 1e7", "should be at most 1000000"),
        ("store = 5", "store = 5 (from carteiro.toml): should be a text"),
        ("[tiers]\ngold = inf", "should be a finite number"),
        (
            "store = ''",
            "store = '' (from carteiro.toml): should be sqlite:///FILE, postgresql://HOST/DATABASE or memory://",
        ),
        (
            "store = 'sqlite:///'",
            "should be sqlite:///FILE, postgresql://HOST/DATABASE or memory://",
        ),
        (
            "store = 'redis://here'",
            "should be sqlite:///FILE, postgresql://HOST/DATABASE or memory://",
        ),
        ("queue = 'here:6379'", "should be redis://HOST:PORT/NUMBER"),
        ("queue = 'redis://here:6379/abc'", "NUMBER, a database, is 0 or more"),
        ("queue = 'redis://here:6379/-1'", "NUMBER, a database, is 0 or more"),
        ("queue = 'redis://here:port/0'", "should be redis://HOST:PORT/NUMBER"),
        ("queue = 'redis+sentinel://here:26379'", "/SERVICE/NUMBER"),
        ("queue = 'redis+sentinel://here:port/main'", "/SERVICE/NUMBER"),
        ("queue = 'redis+sentinel://here,/main'", "/SERVICE/NUMBER"),
        ("queue = 'redis+sentinel://here/main/abc'", "/SERVICE/NUMBER"),
        (
            "provider = 'pigeon'",
            "provider = 'pigeon' (from carteiro.toml): should be sandbox, smtp, ses, resend, noop or ses:REGION",
        ),
        ("provider = 'smtp, ses:moon'", "ses:REGION"),
        ("provider = 'smtp, noop'", "should not have sandbox or noop in a chain"),
        ("provider = 'smtp, smtp'", "should not name a provider twice"),
        ("[tenant_routes]\nacme = 'pigeon'", "tenant_routes.acme = 'pigeon' (from carteiro.toml)"),
        ("[type_routes]\ninvoice = ''", "type_routes.invoice = '' (from carteiro.toml)"),
        ("environment = 'staging'", "should be 'development' or 'production'"),
    ],
)
def test_wrong_value_is_reported_with_origin_and_allowed_values(text: str, said: str) -> None:
    """A reader can fix it without opening the docs."""
    a_file(text)

    with pytest.raises(ConfigError, match=re.escape(said)):
        loaded()


def test_wrong_variable_is_named() -> None:
    """The origin of a wrong value is the place to fix it."""
    with pytest.raises(ConfigError, match="environment variable CARTEIRO_LOG_LEVEL"):
        loaded(environ={"CARTEIRO_LOG_LEVEL": "loud"})


def test_all_wrong_values_are_reported_at_once() -> None:
    """Nobody has to fix a file line by line, start by start."""
    a_file("[api]\nport = -1\n[log]\nlevel = 'loud'")

    with pytest.raises(ConfigError) as raised:
        loaded()

    assert len(str(raised.value).splitlines()) == 2


@pytest.mark.parametrize("environ", [{}, {"CARTEIRO_CONFIG": "missing.toml"}])
def test_named_file_must_exist(environ: Mapping[str, str]) -> None:
    """Asking for a file and running without it would be a surprise."""
    with pytest.raises(ConfigError, match=r"missing\.toml: cannot be read"):
        loaded(file=None if environ else "missing.toml", environ=environ)


@pytest.mark.parametrize("written", [b"store = ", b"store = '\xff'"])
def test_file_that_is_not_toml_is_named(written: bytes) -> None:
    """With its line, and without a traceback."""
    Path("carteiro.toml").write_bytes(written)

    with pytest.raises(ConfigError, match=r"carteiro\.toml: is not a TOML file"):
        loaded()


def test_password_in_an_address_is_not_shown() -> None:
    """Neither in the settings nor in an error about them."""
    with pytest.raises(ConfigError) as raised:
        load(environ={"CARTEIRO_STORE": "mysql://ana:s3cret@db/mail"})
    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "redis://here",
        "redis://here:6379/",
        "rediss://ana:s3cret@here:6379/15?ssl_cert_reqs=none",
        "valkey://[::1]:6379/0",
        "unix:///run/redis.sock?db=1",
        "redis+sentinel://here/main",
        "redis+sentinel://:s3cret@one:26379,two:26380/main/3?password=s3cret",
    ],
)
def test_queue_address_is_kept_as_written(url: str) -> None:
    """With and without its optional parts."""
    assert load(environ={"CARTEIRO_QUEUE": url}).queue == url


def test_dead_tickets_need_a_separate_topic() -> None:
    """Otherwise they would be read again, and die again, for ever."""
    with pytest.raises(
        ConfigError, match=r"tickets\.dlq_topic.*should not be the topic of the tickets"
    ):
        load(environ={"KAFKA_DLQ_TOPIC": "execution.tickets"})


def test_ticket_types_keep_their_case_and_their_dots(tmp_path: Path) -> None:
    """Other systems name them."""
    file = tmp_path / "carteiro.toml"
    file.write_text('[ticket_urls]\n"DEPLOY.v2" = "http://127.0.0.1/deploy"\n', "utf-8")

    settings = load(file=file, environ={"CARTEIRO_TICKET_URLS_BUILD": "http://127.0.0.1/build"})

    assert settings.ticket_urls == {
        "DEPLOY.v2": "http://127.0.0.1/deploy",
        "BUILD": "http://127.0.0.1/build",
    }


@pytest.mark.parametrize(
    ("key", "wrong", "told"),
    [
        ("tickets.bootstrap_servers", "", "HOST:PORT, or several separated by commas"),
        ("tickets.group", "", "a text that is not empty"),
        ("tickets.topic", "two words", "the name of a topic"),
        ("tickets.dlq_topic", "", "the name of a topic"),
        ("tickets.mongo", "localhost:27017", "mongodb://HOST:PORT"),
        ("tickets.alertmanager", "alertmanager:9093", "http://HOST:PORT"),
        ("ticket_urls.BUILD", "deployer/tickets", "http://HOST:PORT/PATH"),
        ("tickets.drain_ms", 240_001, "at most 240000: .* max.poll.interval.ms"),
    ],
)
def test_ticket_setting_error_describes_the_format(key: str, wrong: object, told: str) -> None:
    """In text, not as a pattern."""
    with pytest.raises(ConfigError, match=rf"{key} = .*: should be {told}"):
        load(environ={}, overrides={key: wrong})


def test_longest_drain_is_valid() -> None:
    """The bound is inclusive."""
    settings = load(environ={}, overrides={"tickets.drain_ms": 240_000})

    assert settings.tickets.drain == timedelta(minutes=4)
