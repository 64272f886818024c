"""Reading, isolated: another tenant's message is not found."""

from carteiro.model import MessageId
from carteiro.ports import Backend
from support.builders import ACME, BRASA, a_message
from support.steps import accepted


async def test_message_is_found_by_its_own_tenant_alone(backend: Backend) -> None:
    """Another tenant's id is answered like an unknown one; without a tenant everything is found."""
    [message] = await accepted(backend.store, a_message(ACME))
    read = backend.reading.message

    own, unrestricted = await read(message, tenant=ACME), await read(message)
    others, unknown = await read(message, tenant=BRASA), await read(MessageId("unknown"))

    assert own is not None
    assert own == unrestricted
    assert others is None
    assert unknown is None
