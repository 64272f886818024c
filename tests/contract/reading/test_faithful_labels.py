"""Reading, faithful: tags and the template type are read as they were written."""

import pytest

from carteiro.ports import Backend
from support.builders import a_message
from support.steps import accepted


@pytest.mark.parametrize("tags", [(), ("news",), ("b", "a", "ção", '"', "a")], ids=str)
@pytest.mark.parametrize("template_type", [None, "welcome"])
async def test_tags_and_type_are_read_back(
    backend: Backend, tags: tuple[str, ...], template_type: str | None
) -> None:
    """As the sender gave them, in its order."""
    new = a_message(tags=tags, template_type=template_type)
    await accepted(backend.store, a_message(), new, a_message(tags=("other",)))

    row = await backend.reading.message(new.id)

    assert row is not None
    assert (row.tags, row.template_type) == (tags, template_type)
