"""A server that speaks MongoDB's protocol, run by the tests: FerretDB, which keeps everything in SQLite.

Time-to-live indexes, updates by pipeline and transactions it refuses. Where it differs in silence: ``$slice`` and
``$sort`` of a ``$push`` and conditions of a ``$pull`` do nothing, and a unique index takes any number of documents that
lack the field.
"""

import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from pymongo import MongoClient
from pymongo.errors import ConnectionFailure

from support.services import HOST, Service, a_folder, is_listening, made


class MongoServer(Service):
    """The server and its databases."""

    @property
    def url(self) -> str:
        """Its address."""
        return f"mongodb://{HOST}:{self.port}/"

    def command(self) -> list[str]:
        """The server in the foreground."""
        return [str(made("mongo/mongo")), f"{HOST}:{self.port}", str(self.folder)]

    def is_ready(self) -> bool:
        """True if it answers."""
        if not is_listening(self.port):
            return False
        try:
            with self.client() as client:
                client.admin.command("ping")
        except ConnectionFailure:
            return False
        return True

    def client(self) -> MongoClient[dict[str, Any]]:
        """A client; the caller closes it."""
        return MongoClient(self.url, serverSelectionTimeoutMS=1000, tz_aware=True)

    @contextmanager
    def a_database(self) -> Iterator[str]:
        """A unique database name; the database is dropped afterwards."""
        name = f"test_{uuid4().hex}"
        try:
            yield name
        finally:
            with self.client() as client:
                client.drop_database(name)


@contextmanager
def a_mongo() -> Iterator[MongoServer]:
    """A running server; without the program the tests are skipped, in CI they fail."""
    made("mongo/made_from")
    with a_folder("mongo", ours=True) as folder:
        server = MongoServer(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()


def forget_sockets() -> None:
    """The driver forgets a socket that is closed while it connects: found here, not in some other test later."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    gc.freeze()  # the rest is in use, by caches that grow to a third of a second: not visited the next time
