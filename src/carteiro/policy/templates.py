"""How many templates a tenant keeps.

Pure: what there is comes in, what has to go comes out.
"""

from collections.abc import Mapping

from carteiro.model import MOST_TEMPLATES, TooManyTemplates


def forgotten_for(type: str, known: Mapping[str, bool]) -> list[str] | TooManyTemplates:
    """The deleted types that make room for this one.

    ``known`` has all types of the tenant, each with whether it is deleted, in the order of deletion.
    """
    excess = len(known) + 1 - MOST_TEMPLATES
    if type in known or excess <= 0:
        return []
    deleted = [each for each, is_deleted in known.items() if is_deleted]
    return deleted[:excess] if len(deleted) >= excess else TooManyTemplates()
