"""Key figures over HTTP: of all for administrators, of its own for a tenant."""

from carteiro.api.kpis import KpiReportView
from carteiro.app import Carteiro
from support.http import (
    ADMIN_TOKEN,
    KEY_OF_ACME,
    KEY_OF_BRASA,
    a_client,
    answer_in,
    error_in,
    fields_in,
    sent,
)
from support.library import work

OWN, ALL = "/v1/kpis", "/admin/v1/kpis"


async def _lived(post: Carteiro) -> None:
    """ACME has sent two e-mails, one of BRASA bounced."""
    async with a_client(post, key=KEY_OF_ACME) as client:
        await sent(client, to="ok@sandbox.test")
        await sent(client, to="ok@sandbox.test")
    async with a_client(post, key=KEY_OF_BRASA) as client:
        await sent(client, to="bounce-550@sandbox.test")
    await work(post)


async def _asked(post: Carteiro, path: str, key: str) -> KpiReportView:
    async with a_client(post, key=key) as client:
        return KpiReportView.model_validate(answer_in(await client.get(path)))


def _figures(view: KpiReportView) -> dict[str, float | None]:
    return {each.name: each.figure for each in view.kpis}


async def test_administrator_sees_the_figures_of_all(post: Carteiro) -> None:
    """With goals, codes and providers."""
    await _lived(post)

    view = await _asked(post, ALL, ADMIN_TOKEN)

    assert (view.company_id, view.range) == (None, "24h")
    assert (view.counts.accepted, view.counts.sent, view.counts.failed) == (3, 2, 1)
    assert _figures(view)["final_delivery"] == 2 / 3
    assert [each.is_met for each in view.kpis if each.name == "final_delivery"] == [False]
    assert sum(view.failed_by_code.values()) == 1
    assert [(each.name, each.counts.sent) for each in view.providers] == [("sandbox", 2)]


async def test_tenant_sees_only_its_own(post: Carteiro) -> None:
    """Neither the numbers nor the codes and providers of others."""
    await _lived(post)

    acme, brasa = [await _asked(post, OWN, key) for key in (KEY_OF_ACME, KEY_OF_BRASA)]

    assert (acme.company_id, acme.counts.sent, acme.counts.failed) == ("acme", 2, 0)
    assert (brasa.company_id, brasa.counts.sent, brasa.counts.failed) == ("brasa", 0, 1)
    assert (acme.failed_by_code, acme.providers, brasa.providers) == ({}, [], [])


async def test_tenant_cannot_ask_for_another(post: Carteiro) -> None:
    """By no parameter, and not with its key at the address of administrators."""
    async with a_client(post, key=KEY_OF_BRASA) as client:
        named = await client.get(OWN, params={"companyId": "acme"})
        above = await client.get(ALL, params={"companyId": "acme"})

    assert fields_in(error_in(named, 422, "INVALID_VALUE")) == ["companyId"]
    assert above.status_code in {401, 403}


async def test_administrator_can_ask_for_one_tenant(post: Carteiro) -> None:
    """An unknown one is not found."""
    await _lived(post)

    view = await _asked(post, f"{ALL}?companyId=acme&range=1h", ADMIN_TOKEN)
    async with a_client(post, key=ADMIN_TOKEN) as client:
        unknown = await client.get(ALL, params={"companyId": "nobody"})
        wrong = await client.get(ALL, params={"range": "2h"})

    assert (view.company_id, view.range, view.counts.sent) == ("acme", "1h", 2)
    error_in(unknown, 404, "NOT_FOUND")
    assert fields_in(error_in(wrong, 422, "INVALID_VALUE")) == ["range"]


async def test_nothing_is_computed_before_anything_happened(post: Carteiro) -> None:
    """Null, and not zero."""
    for path, key in ((ALL, ADMIN_TOKEN), (OWN, KEY_OF_ACME)):
        view = await _asked(post, path, key)
        assert [each.figure for each in view.kpis] == [None] * len(view.kpis)
        assert [each.is_met for each in view.kpis] == [None] * len(view.kpis)
