"""The page of suppressions: one tenant's list, what is added and removed, and who may do that."""

from carteiro.app import Carteiro
from carteiro.model import AuditFilter, Role, Via
from support.builders import ACME, BRASA
from support.console import Person, a_console, a_person, a_token


async def test_addresses_are_suppressed_and_written_to_again(post: Carteiro) -> None:
    """All or none; in the list of their tenant alone; with audit rows."""
    listed = post.backend.suppressions.list
    async with a_person(post) as person:
        assert "Choose a tenant" in await person.page("suppressions")
        form = {"tenant": ACME, "emails": "ana@example.com\n bia@example.com"}
        answer = await person.sent("suppressions/add", form)
        assert "Suppressed: 2." in answer.text
        assert "ana@example.com" in answer.text
        for bad in ({"emails": "ana@example.com x"}, {"emails": ""}, {"tenant": "nobody"}):
            refused = await person.sent("suppressions/add", {**form, **bad})
            assert refused.status_code in {400, 404, 422}, bad
        assert len((await listed(ACME)).rows) == 2
        assert "bia@" not in await person.page("suppressions", tenant=ACME, email="ana@example.com")
        assert "No address" in await person.page("suppressions", tenant=BRASA)
        which = {"tenant": ACME, "email": "ana@example.com"}
        assert "Are you sure?" in (await person.sent("suppressions/remove", which)).text
        gone = await person.sent("suppressions/remove", {**which, "confirmed": "yes"})
        assert "written to again" in gone.text
        again = await person.sent("suppressions/remove", {**which, "confirmed": "yes"})
        assert again.status_code == 404

    [left] = (await listed(ACME)).rows
    assert left.address == "bia@example.com"
    rows = (await post.backend.audit.list(AuditFilter())).rows
    assert [each.tenant for each in rows if each.via is Via.CONSOLE and each.tenant] == [ACME, ACME]


async def test_token_of_a_tenant_changes_its_own_list_alone(post: Carteiro) -> None:
    """It needs not name its tenant, and finds no other one."""
    await a_token(post.backend, "acme op", role=Role.OPERATOR, tenant=ACME)
    async with a_console(post) as (address, _), Person.at(address) as own:
        await own.signed_in("ca_acme op")
        assert "No address" in await own.page("suppressions")
        assert "no such tenant" in await own.page("suppressions", 404, tenant=BRASA)
        form = {"tenant": BRASA, "emails": "ana@example.com"}
        assert (await own.sent("suppressions/add", form)).status_code == 404
        assert "Suppressed: 1." in (await own.sent("suppressions/add", {**form, "tenant": ""})).text
    assert (await post.backend.suppressions.list(BRASA)).rows == []
