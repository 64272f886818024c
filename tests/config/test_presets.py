"""Custom retry presets in the settings: valid ones, and errors."""

import json
import re
from datetime import timedelta
from pathlib import Path

import pytest

from carteiro.app import Carteiro
from carteiro.config import Settings, load
from carteiro.errors import ConfigError
from carteiro.model import LeasedJob
from carteiro.policy.retry import PRESETS, RetryPolicy
from carteiro.providers.email_kind import email_policy, retry_policy
from support.builders import ACME, a_tenant
from support.http import ADMIN_TOKEN, a_client, answer_in, error_in, fields_in, opened
from support.steps import claimed_alone

CALM = {"attempts": 3, "table_ms": [60_000, 300_000], "jitter": 0}
SECOND = timedelta(seconds=1)


def settings_of(tmp_path: Path, text: str) -> Settings:
    """The settings of a file."""
    file = tmp_path / "carteiro.toml"
    file.write_text(text, "utf-8")
    return load(file=file, environ={})


def test_table_is_a_preset(tmp_path: Path) -> None:
    """Delays that double, capped or not, or a table of them; the default jitter is that of the others."""
    settings = settings_of(
        tmp_path,
        "[retry.presets.fast]\nattempts = 4\nbase_ms = 1000\ncap_ms = 2000\n"
        "[retry.presets.open]\nattempts = 9\nbase_ms = 1\njitter = 0.5\n"
        "[retry.presets.calm]\nattempts = 3\ntable_ms = [60000, 300000]\njitter = 0\n",
    )

    own = {name: each for name, each in settings.presets.items() if name not in PRESETS}

    assert own == {
        "fast": RetryPolicy(max_attempts=4, base=SECOND, cap=2 * SECOND),
        "open": RetryPolicy(max_attempts=9, base=SECOND / 1000, jitter=0.5),
        "calm": RetryPolicy(max_attempts=3, table=(60 * SECOND, 300 * SECOND), jitter=0),
    }
    assert settings.presets.items() > PRESETS.items()


def test_variable_holds_presets_as_json() -> None:
    """The preset in force may be one of them."""
    environ = {
        "CARTEIRO_RETRY_PRESETS": json.dumps({"calm": CALM}),
        "CARTEIRO_RETRY_PRESET": "calm",
    }

    policy = retry_policy(load(environ=environ))

    assert (policy.max_attempts, policy.delay(2, 0.9)) == (3, 300 * SECOND)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[retry.presets.a]\nbase_ms = 1", "retry.presets.a.attempts = {'base_ms': 1} (from"),
        ("[retry.presets.a]\nattempts = 2", "should have base_ms or table_ms, and not both"),
        (
            "[retry.presets.a]\nattempts = 2\nbase_ms = 1\ntable_ms = [1]",
            "should have base_ms or table_ms, and not both",
        ),
        ("[retry.presets.a]\nattempts = 2\ntable_ms = []", "should have base_ms or table_ms"),
        ("[retry.presets.a]\nattempts = 2\ntable_ms = [1]\ncap_ms = 1", "only with base_ms"),
        ("[retry.presets.a]\nattempts = 2\nbase_ms = 2\ncap_ms = 1", "not below base_ms"),
        (
            "[retry.presets.a]\nattempts = 0\nbase_ms = 1",
            "retry.presets.a.attempts = 0 (from carteiro.toml): should be at least 1",
        ),
        ("[retry.presets.a]\nattempts = true\nbase_ms = 1", "should be a whole number"),
        ("[retry.presets.a]\nattempts = 1001\nbase_ms = 1", "should be at most 1000"),
        (
            "[retry.presets.a]\nattempts = 2\ntable_ms = [1, -5]",
            "retry.presets.a.table_ms.1 = -5 (from carteiro.toml): should be whole milliseconds",
        ),
        ("[retry.presets.a]\nattempts = 2\nbase_ms = 0", "whole milliseconds, 1 or more"),
        (
            "[retry.presets.a]\nattempts = 2\nbase_ms = 9999999999999",
            "should be at most 2592000000 milliseconds",
        ),
        ("[retry.presets.a]\nattempts = 2\nbase_ms = 1\njitter = 1.5", "should be at most 1"),
        ("[retry.presets.a]\nattempts = 2\nbase_ms = 1\njitter = nan", "should be"),
        (
            "[retry.presets.a]\nattempts = 2\nbase_ms = 1\ncap = 5",
            "a preset has no such key: it has attempts, base_ms, cap_ms, table_ms, jitter",
        ),
        (
            "[retry.presets.gateway]\nattempts = 2\nbase_ms = 1",
            "name of a built-in preset: gateway",
        ),
        ("[retry.presets.'no name']\nattempts = 2\nbase_ms = 1", "unlike 'no name'"),
        ("[retry.presets]\na = 3", "should be [retry.presets.NAME] tables"),
        ("[retry]\npresets = 3", "should be [retry.presets.NAME] tables"),
        (
            "[retry]\npreset = 'b'\n[retry.presets.a]\nattempts = 2\nbase_ms = 1",
            "transactional, tickets, a, a name of [retry.presets], or empty",
        ),
    ],
)
def test_invalid_preset_is_reported(tmp_path: Path, text: str, says: str) -> None:
    """Which, its value, its origin, and what is allowed."""
    with pytest.raises(ConfigError) as refused:
        settings_of(tmp_path, text)

    assert says in re.sub(r"\(from \S*/", "(from ", str(refused.value))


# --- references to a preset ---------------------------------------------------------------------


async def _job(post: Carteiro, **fields: object) -> LeasedJob:
    await post.send(tenant=ACME, to="ok@sandbox.test", **fields)
    return await claimed_alone(post.backend.store)


async def test_tenant_and_template_can_name_a_preset() -> None:
    """Over HTTP, each wins over the next; an unknown one is refused."""
    async with opened(
        "memory://", retry={"presets": {"calm": CALM, "few": CALM | {"attempts": 2}}}
    ) as post:
        tenant, template = f"/admin/v1/tenants/{ACME}", "/v1/templates/hello"
        body = {"subject": "Oi", "text": "Oi"}
        async with a_client(post, key=ADMIN_TOKEN) as admin, a_client(post) as client:
            answer_in(await admin.patch(tenant, json={"retryPreset": "calm"}))
            answer_in(await client.put(template, json=body | {"retryPreset": "few"}))
            unknown = await admin.patch(tenant, json={"retryPreset": "calmer"})
            unheard = await client.put(template, json=body | {"retryPreset": "fewer"})
        policy = email_policy(post.settings)

        of_tenant = policy(await _job(post, subject="Oi", text="Oi"))
        of_template = policy(await _job(post, template={"type": "hello"}))

        assert (of_tenant.max_attempts, of_template.max_attempts) == (3, 2)
        for response in (unknown, unheard):
            assert fields_in(error_in(response, 422, "INVALID_VALUE")) == ["retryPreset"]


async def test_missing_preset_falls_back() -> None:
    """A tenant may still name a deleted preset: the preset in force applies."""
    async with opened("memory://") as post:
        await post.backend.tenants.define([a_tenant(retry_preset="calm")])

        policy = email_policy(post.settings)(await _job(post, subject="Oi", text="Oi"))

        assert policy.max_attempts == PRESETS["gateway"].max_attempts


async def test_task_can_name_a_preset() -> None:
    """As it can name a built-in one."""
    async with opened("memory://", retry={"presets": {"calm": CALM}}) as post:
        post.task("calm", retry="calm")

        with pytest.raises(ValueError, match="tickets, calm"):
            post.task("calmer", retry="calmer")
