"""The numbered migration files of a store, and a digest of the texts that made a schema.

A database whose digest is not ours was made from other texts, by a version that was never released. It is refused:
no migration can upgrade it.
"""

import re
from functools import cache
from hashlib import sha256
from importlib import resources

from carteiro.errors import SchemaMismatch
from carteiro.model import value

_NAME = re.compile(r"(\d{4})_\w+\.sql")
_DIGEST_BYTES = 4  # SQLite keeps it in the 31 bits of PRAGMA application_id
_LARGEST_DIGEST = 0x7FFF_FFFF


@value
class Migration:
    """One file; ``digest`` covers its text and those of all files before it."""

    number: int
    name: str
    script: str
    digest: int


@cache
def migrations_of(package: str) -> tuple[Migration, ...]:
    """The migrations of a store's package, oldest first."""
    found = []
    texts = ""
    for file in sorted((resources.files(package) / "migrations").iterdir(), key=lambda f: f.name):
        if match := _NAME.fullmatch(file.name):
            script = file.read_text(encoding="utf-8")
            texts += script
            found.append(Migration(int(match.group(1)), file.name, script, digest_of(texts)))
    return tuple(found)


def digest_of(text: str) -> int:
    """A number that differs for different texts."""
    return int.from_bytes(sha256(text.encode()).digest()[:_DIGEST_BYTES]) & _LARGEST_DIGEST


def pending(package: str, found: int, digest: int | None, database: str) -> list[Migration]:
    """The migrations that a database at version ``found`` lacks; refuses a database that they cannot upgrade."""
    known = migrations_of(package)
    newest = known[-1].number
    if found > newest:
        text = (
            f"{database} was written by a newer Carteiro (schema {found}, this one knows {newest}), "
            "or by an unreleased one: upgrade this program or name another database"
        )
        raise SchemaMismatch(text)
    if found and all((each.number, each.digest) != (found, digest) for each in known):
        text = (
            f"{database} was made by an unreleased version of Carteiro, and cannot be upgraded: "
            "name another database, or delete this one"
        )
        raise SchemaMismatch(text)
    return [each for each in known if each.number > found]
