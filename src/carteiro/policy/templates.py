"""Storage limits of a tenant's templates.

Pure: gets the stored templates, returns those to delete.
"""

from collections.abc import Sequence

from carteiro.model import NewTemplate, StorageLimit, TemplateKept, TemplateLimits, value


@value
class Forgotten:
    """Deletions that make space: types with all their versions, and types that keep only the newest."""

    types: Sequence[str] = ()
    older: Sequence[str] = ()


def forgotten_for(
    new: NewTemplate, known: Sequence[TemplateKept], limits: TemplateLimits
) -> Forgotten | StorageLimit:
    """The deletions needed for this template; `StorageLimit` if something in use would have to go.

    ``known`` has all types of the tenant in the order of deletion. Deleted types go first, then older
    versions: those of this type, then of the types with most bytes.
    """
    others = [each for each in known if each.type != new.type]
    deleted = [each for each in others if each.is_deleted]
    excess = max(0, len(others) + 1 - limits.types) if len(others) == len(known) else 0
    if excess > len(deleted):
        return StorageLimit("templates", limits.types)
    gone = excess
    used = new.size + sum(each.bytes for each in known) - sum(each.bytes for each in deleted[:gone])
    while used > limits.bytes and gone < len(deleted):
        used -= deleted[gone].bytes
        gone += 1
    older: list[str] = []
    for each in _with_history(new.type, known):
        if used <= limits.bytes:
            break
        used -= each.bytes if each.type == new.type else each.bytes - each.newest_bytes
        older.append(each.type)
    if used > limits.bytes:
        return StorageLimit("bytes of templates", limits.bytes)
    return Forgotten([each.type for each in deleted[:gone]], older)


def _with_history(type: str, known: Sequence[TemplateKept]) -> list[TemplateKept]:
    """The types with older versions to delete, in order."""
    own = [each for each in known if each.type == type]
    others = [
        each
        for each in known
        if each.type != type and not each.is_deleted and each.bytes > each.newest_bytes
    ]
    others.sort(key=lambda each: (each.newest_bytes - each.bytes, each.type))
    return own + others
