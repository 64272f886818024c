"""A real PgBouncer, run by the tests before a PostgreSQL server: it lends a connection for one transaction."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

from support.postgres_server import SUPERUSER, PostgresServer
from support.services import HOST, Service, a_folder, program

_CONFIGURATION = """
[databases]
* = host={host} port={server_port}

[pgbouncer]
listen_addr = {host}
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {folder}/users
admin_users = {superuser}
pool_mode = transaction
default_pool_size = {pool_size}
max_client_conn = 200
"""


class PgBouncer(Service):
    """The pooler; all users of the server that it may know are named."""

    def __init__(
        self,
        folder: Path,
        server: PostgresServer,
        *,
        pool_size: int = 10,
        users: Sequence[str] = (SUPERUSER,),
    ) -> None:
        super().__init__(folder)
        configuration = _CONFIGURATION.format(
            folder=folder,
            host=HOST,
            port=self.port,
            server_port=server.port,
            superuser=SUPERUSER,
            pool_size=pool_size,
        )
        self._file.write_text(configuration, "utf-8")
        (folder / "users").write_text("".join(f'"{user}" ""\n' for user in users), "utf-8")

    def url(self, database: str = SUPERUSER, *, user: str = SUPERUSER) -> str:
        """The address of a database, for a client that goes through the pooler."""
        return f"postgresql://{user}@{HOST}:{self.port}/{database}"

    def command(self) -> list[str]:
        """The pooler in the foreground."""
        return [program("pgbouncer"), "--quiet", str(self._file)]

    def is_ready(self) -> bool:
        """True if it answers itself, with or without the server."""
        try:
            psycopg.connect(self.url("pgbouncer"), autocommit=True).close()
        except psycopg.OperationalError:
            return False
        return True

    @property
    def _file(self) -> Path:
        return self.folder / "pgbouncer.ini"


@contextmanager
def a_pgbouncer(
    server: PostgresServer, *, pool_size: int = 10, users: Sequence[str] = (SUPERUSER,)
) -> Iterator[PgBouncer]:
    """A running pooler before a server without passwords; a missing program is handled as for the server."""
    program("pgbouncer")
    with a_folder("pgbouncer") as folder:
        pooler = PgBouncer(folder, server, pool_size=pool_size, users=users)
        pooler.start()
        try:
            yield pooler
        finally:
            pooler.stop()
