"""The page about the table queue: its statements and its program run."""

import re
from uuid import uuid4

import pytest

from support.pages import blocks_of
from support.shared_servers import shared_postgres
from support.table_queue import Application, an_office

pytestmark = pytest.mark.servers

PAGE = "docs/how-to/enqueue-from-sql.md"


async def test_every_statement_of_the_page_runs(url: str, app: Application) -> None:
    """In the order of the page."""
    statements = [block.code for block in blocks_of(PAGE) if block.language == "postgresql"]
    role = f"shop_{uuid4().hex}"
    async with an_office(url):
        try:
            for each in statements:
                app.rows(re.sub(r"\bshop\b", role, each))
            put_in = app.value("SELECT count(*) FROM email_queue")
        finally:
            superuser = shared_postgres()
            superuser.psql(f"DROP OWNED BY {role}; DROP ROLE {role}", url.rpartition("/")[2])

    assert put_in == 3


def test_program_of_the_page_runs(url: str, app: Application) -> None:
    """Order and e-mail are there together."""
    [program] = [block.code for block in blocks_of(PAGE) if block.language == "python3"]

    exec(compile(program.replace("postgresql://localhost/shop", url), PAGE, "exec"), {})

    assert app.rows("SELECT id FROM orders") == [{"id": 17}]
    assert app.value("SELECT subject FROM carteiro.messages") == "Order 17"
