"""The page of settings: effective values with their origins, and no secret."""

from dataclasses import replace

from carteiro.app import Carteiro
from carteiro.config.effective import lines
from carteiro.config.sections import Given
from carteiro.model import Fairness
from support.builders import ACME
from support.console import Person, a_console, a_person, a_token


async def test_settings_are_shown_with_their_origin(post: Carteiro) -> None:
    """Those that are not the default first; all on request; and what was changed at run time."""
    await post.backend.tenants.tune(replace(Fairness(), max_jobs_per_tenant_batch=9))
    async with a_person(post) as person:
        page = await person.page("settings")
        assert "<code>store</code>" in page
        assert "run time, overrides 3 (default)" in page
        assert "<code>api.changes_per_minute</code>" not in page
        assert "<code>api.changes_per_minute</code>" in await person.page("settings", all="1")
        found = await person.page("settings", key="API.changes")
        assert found.count("<tr data-row>") == 1
        assert "No setting matches" in await person.page("settings", key="nothing.like.it")


def test_addresses_in_tables_are_shown_without_their_secrets() -> None:
    """A token may be in their query."""
    table = {"audit": "https://hooks.example.com/carteiro?token=tell-nobody"}
    row = Given("ticket_urls", table, "file")
    [(key, text)] = lines(row)
    assert key == "ticket_urls.audit"
    assert "hooks.example.com" in text
    assert "tell-nobody" not in text


async def test_tenants_see_no_settings(post: Carteiro) -> None:
    """They are of the installation."""
    await a_token(post.backend, "of acme", tenant=ACME)
    async with a_console(post) as (address, _), Person.at(address) as own:
        await own.signed_in("ca_of acme")
        await own.page("settings", 403)
