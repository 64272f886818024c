"""Pages of templates: the list, versions and their differences, a preview in the frame, and a test send."""

from html import escape

from carteiro.app import Carteiro
from carteiro.model import MessageFilter, NewTemplate, Role
from support.builders import ACME, BRASA
from support.console import Person, a_console, a_person, a_token

HOSTILE = '<img src=x onerror="alert(1)">'


async def _two_versions(post: Carteiro) -> None:
    for subject, html in (
        ("Hello", "<p>First {{ name }}</p>"),
        (HOSTILE, "<p>Second {{ name }}</p>"),
    ):
        await post.backend.templates.define(NewTemplate(ACME, "welcome", subject, html))


async def test_versions_and_their_differences(post: Carteiro) -> None:
    """The newest by default, against the one before; every text is shown as it is."""
    await _two_versions(post)
    async with a_person(post) as person:
        assert "Choose a tenant" in await person.page("templates")
        assert "welcome" in await person.page("templates", tenant=ACME)
        assert "There is no template" in await person.page("templates", tenant=ACME, type="bill")
        answer = await person.get("templates/acme/welcome")
        assert HOSTILE not in answer.text
        assert f"<ins>+ {escape('<p>Second')}" in answer.text
        assert f"<del>- {escape('<p>First')}" in answer.text
        older = await person.page("templates/acme/welcome", version="1")
        assert "Version 1, of acme" in older
        assert "are the same" in await person.page("templates/acme/welcome", against="2")
        for bad in ("x", "9" * 30):
            await person.page("templates/acme/welcome", 422, version=bad)
        await person.page("templates/acme/welcome", 404, version="77")
        await person.page("templates/acme/other", 404)


async def test_preview_is_shown_in_the_frame_alone(post: Carteiro) -> None:
    """With the variables of the address, escaped as in a mail; what is missing is named."""
    await _two_versions(post)
    async with a_person(post) as person:
        given = {"variables": '{"name": "<b>Ana</b>"}'}
        page = (await person.get("templates/acme/welcome", params=given)).text
        assert '<iframe class="mail-frame" sandbox' in page
        frame = await person.get("templates/acme/welcome/mail", params=given)
        assert "Second &lt;b&gt;Ana" in frame.text
        assert "sandbox" in frame.headers["content-security-policy"]
        page = await person.page("templates/acme/welcome")
        assert "variables.name" in page
        assert "<iframe" not in page
        for bad in ("[1]", "{", '"' + "x" * 4000):
            assert "JSON object" in await person.page("templates/acme/welcome", variables=bad)


async def test_test_send_is_a_message_of_the_tenant(post: Carteiro) -> None:
    """Accepted as if the tenant had sent it; refused without its variables, an address or the role."""
    await _two_versions(post)
    await a_token(post.backend, "acme op", role=Role.OPERATOR, tenant=ACME)
    async with a_console(post) as (address, _), Person.at(address) as own:
        await own.signed_in("ca_acme op")
        form = {"to": "ana@example.com", "variables": '{"name": "Ana"}'}
        assert (await own.sent("templates/acme/welcome/send", form)).status_code == 403
    async with a_person(post) as person:
        deep = f'{{"name": {"[" * 300}{"]" * 300}}}'
        for bad in (
            {"to": "nobody"},
            {"variables": ""},
            {"variables": "{"},
            {"variables": deep},
        ):
            answer = await person.sent("templates/acme/welcome/send", {**form, **bad})
            assert answer.status_code in {400, 422}, bad
        assert (await person.sent("templates/acme/gone/send", form)).status_code == 422
        answer = await person.sent("templates/acme/welcome/send", form)
        assert "Accepted: a mail to ana@example.com." in answer.text
        await person.sent("tenants/brasa/disable", {"confirmed": "yes"})
        await post.backend.templates.define(NewTemplate(BRASA, "welcome", "a", "<p>b</p>"))
        refused = await person.sent("templates/brasa/welcome/send", form)
        assert refused.status_code == 409

    [message] = (await post.backend.reading.messages(MessageFilter(tenant=ACME))).rows
    assert message.to == "ana@example.com"
