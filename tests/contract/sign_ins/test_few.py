"""Sign ins, few: those of one token are bounded, and so are those of the one-time links."""

from datetime import timedelta

from carteiro.model import MOST_SIGN_INS, AuditFilter
from carteiro.ports import Backend
from support.clock import MILLISECOND, StoreClock
from support.console import a_token

AN_HOUR = timedelta(hours=1)


async def test_new_sign_in_ends_the_oldest_of_its_token(
    backend: Backend, clock: StoreClock
) -> None:
    """Those of others stay."""
    ana, bia = await a_token(backend, "ana"), await a_token(backend, "bia")
    await backend.sign_ins.begin("of bia", key=bia.id, who="bia", lasts=AN_HOUR)
    await backend.sign_ins.begin("by link", key=None, who="root", lasts=AN_HOUR)
    for number in range(MOST_SIGN_INS + 1):
        clock.advance(MILLISECOND)
        await backend.sign_ins.begin(f"{number}", key=ana.id, who="ana", lasts=AN_HOUR)

    assert await backend.sign_ins.find("0") is None
    for secret in ("1", f"{MOST_SIGN_INS}", "of bia", "by link"):
        assert await backend.sign_ins.find(secret) is not None, secret


async def test_sign_in_leaves_an_audit_row(backend: Backend, clock: StoreClock) -> None:
    """With the token that was used, and without the secret."""
    ana = await a_token(backend, "ana")
    clock.advance(timedelta(seconds=1))
    await backend.sign_ins.begin("secret", key=ana.id, who="ana", lasts=AN_HOUR)

    [row] = (await backend.audit.list(AuditFilter(kind="console"))).rows
    assert (row.action, row.object, row.after) == ("sign-in", ana.id, {"who": "ana"})
