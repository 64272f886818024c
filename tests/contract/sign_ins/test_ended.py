"""Sign ins, ended: at their time, on request, and with their token."""

from datetime import timedelta

from carteiro.model import KeyId
from carteiro.ports import Backend
from support.builders import ACME, a_tenant
from support.clock import MILLISECOND, StoreClock
from support.console import a_token

AN_HOUR = timedelta(hours=1)


async def test_sign_in_is_found_with_its_token_until_its_end(
    backend: Backend, clock: StoreClock
) -> None:
    """The last moment still counts; an unknown secret is nobody's."""
    token = await a_token(backend, "ana")
    await backend.sign_ins.begin("one", key=token.id, who="ana", lasts=AN_HOUR)
    await backend.sign_ins.begin("two", key=None, who="root", lasts=AN_HOUR)

    clock.advance(AN_HOUR - MILLISECOND)
    by_token, by_link = await backend.sign_ins.find("one"), await backend.sign_ins.find("two")
    clock.advance(MILLISECOND)

    assert by_token is not None
    assert (by_token.key, by_token.who) == (token, "ana")
    assert by_link is not None
    assert (by_link.key, by_link.who) == (None, "root")
    for secret in ("one", "two", "three"):
        assert await backend.sign_ins.find(secret) is None


async def test_sign_in_ends_on_request(backend: Backend) -> None:
    """The others go on; ending it again changes nothing."""
    token = await a_token(backend, "ana")
    for secret in ("one", "two"):
        await backend.sign_ins.begin(secret, key=token.id, who="ana", lasts=AN_HOUR)

    await backend.sign_ins.end("one")
    await backend.sign_ins.end("one")

    assert await backend.sign_ins.find("one") is None
    assert await backend.sign_ins.find("two") is not None


async def test_sign_in_ends_with_its_token(backend: Backend, clock: StoreClock) -> None:
    """Revoked, expired, or of a tenant that was disabled."""
    revoked = await a_token(backend, "revoked")
    expired = await a_token(backend, "expired", expires_in=timedelta(minutes=1))
    of_acme = await a_token(backend, "of acme", tenant=ACME)
    for token in (revoked, expired, of_acme):
        await backend.sign_ins.begin(token.name, key=token.id, who=token.name, lasts=AN_HOUR)
        assert await backend.sign_ins.find(token.name) is not None

    await backend.keys.revoke([revoked.id], tenant=None)
    clock.advance(timedelta(minutes=1))
    await backend.tenants.define([a_tenant(ACME, disabled=True)])

    for token in (revoked, expired, of_acme):
        assert await backend.sign_ins.find(token.name) is None, token.name


async def test_sign_in_of_an_unknown_token_opens_nothing(backend: Backend) -> None:
    """A token that is gone."""
    await backend.sign_ins.begin("one", key=KeyId("gone"), who="ana", lasts=AN_HOUR)

    assert await backend.sign_ins.find("one") is None
