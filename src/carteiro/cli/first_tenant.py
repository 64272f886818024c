"""The first tenant of a new store: a first trial over HTTP or SQL needs no set-up."""

from carteiro.email.templates.rendering import sample_templates
from carteiro.model import TenantId, Via
from carteiro.ports import Backend
from carteiro.runtime.acting import acting_as, on_this_machine

FIRST_TENANT = TenantId("default")
_MARK = "first tenant"


async def add_first_tenant(backend: Backend) -> None:
    """Give a new store its first tenant, with the sample templates; once, so that deleted templates stay deleted.

    It is repeated after a crash, and keeps what exists already.
    """
    if await backend.marks.find(_MARK) is not None:
        return
    with acting_as(on_this_machine(Via.CLI)):
        await backend.tenants.ensure([FIRST_TENANT])
        has = {each.type for each in await backend.templates.list(FIRST_TENANT)}
        for sample in sample_templates(FIRST_TENANT):
            if sample.type not in has:
                await backend.templates.define(sample)
    await backend.marks.put(_MARK, FIRST_TENANT)
