"""The page of alerts: what is open, acknowledging, silences and a test of the channels."""

from carteiro.app import Carteiro
from carteiro.model import AuditFilter, Via
from carteiro.model.alerts import AlertState, Finding
from support.builders import ACME
from support.console import Person, a_console, a_person, a_token

ALERT = "ManyDeadLetters"
HOSTILE = '<img src=x onerror="alert(1)">'


async def _firing(post: Carteiro) -> None:
    rules = post.settings.alert_rules()
    await post.backend.alerts.move([Finding(ALERT, "", 101, 100)], rules)


async def test_alert_is_acknowledged_once(post: Carteiro) -> None:
    """As the person who is signed in; one that does not fire is refused."""
    await _firing(post)
    async with a_person(post) as person:
        assert "<strong>ManyDeadLetters</strong>" in await person.page("alerts")
        answer = await person.sent("alerts/acknowledge", {"name": ALERT, "subject": ""})
        assert "acknowledged: it sends no reminders" in answer.text
        [alert] = (await post.backend.alerts.list()).rows
        assert alert.state is AlertState.ACKNOWLEDGED
        assert (await person.sent("alerts/acknowledge", {"name": "None"})).status_code == 404
        assert "No alert here" in await person.page("alerts", state="resolved")
        assert "No alert here" in await person.page("alerts", name="TooManyRetries")

    [row] = (await post.backend.audit.list(AuditFilter(action="acknowledge"))).rows
    assert row.via is Via.CONSOLE


async def test_alert_is_silenced_for_a_time(post: Carteiro) -> None:
    """With a reason, which is shown as it is; and the silence can be ended."""
    async with a_person(post) as person:
        whole = {"alert": ALERT, "subject": "", "hours": "4", "reason": HOSTILE}
        for bad in (
            {"alert": "x"},
            {"hours": "0"},
            {"hours": "99999"},
            {"hours": ""},
            {"reason": " "},
        ):
            assert (await person.sent("alerts/silence", {**whole, **bad})).status_code == 422, bad
        answer = await person.sent("alerts/silence", whole)
        assert "Silenced: ManyDeadLetters" in answer.text
        assert HOSTILE not in answer.text
        [silence] = await post.backend.alerts.silences()
        assert silence.reason == HOSTILE
        answer = await person.sent("alerts/unsilence", {"id": silence.id})
        assert "The silence is over" in answer.text
        assert await post.backend.alerts.silences() == []
        assert (await person.sent("alerts/unsilence", {"id": silence.id})).status_code == 404
        assert "within seconds" in (await person.sent("alerts/test", {"confirmed": "yes"})).text
        assert "Test of the channels" in await person.page("alerts")


async def test_tenant_sees_its_own_alerts_alone(post: Carteiro) -> None:
    """Neither those of the installation, nor silences; and acknowledges nothing."""
    await _firing(post)
    await a_token(post.backend, "of acme", tenant=ACME)
    async with a_console(post) as (address, _), Person.at(address) as own:
        await own.signed_in("ca_of acme")
        page = await own.page("alerts")
        assert "No alert here" in page
        assert "Silences" not in page
        assert (await own.sent("alerts/acknowledge", {"name": ALERT})).status_code == 403
