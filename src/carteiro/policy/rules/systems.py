"""The system that answered: its phrases are judged by its own rules, which apply nowhere else.

A system is recognized by the host that answered, else by phrases that only it uses.
"""

from collections.abc import Mapping
from functools import lru_cache

from carteiro.policy.rules.gateways import GATEWAYS
from carteiro.policy.rules.phrases import Phrases, Said
from carteiro.policy.rules.receivers import RECEIVERS
from carteiro.policy.rules.words import System, TextRule, phrases_of

SYSTEMS: tuple[System, ...] = (*RECEIVERS, *GATEWAYS)

_BY_HOST: Mapping[str, System] = {host: system for system in SYSTEMS for host in system.hosts}
_BY_SIGN = Phrases((sign, system) for system in SYSTEMS for sign in system.signs)
_RULES = {system.name: phrases_of(system.rules) for system in SYSTEMS}


def system_of(mx: str, said: Said) -> System | None:
    """The system that answered: by the name of its host, else by its phrases."""
    return _of_host(mx) or _BY_SIGN.first(said)


@lru_cache(maxsize=1024)  # few hosts answer, and often
def _of_host(mx: str) -> System | None:
    name = mx.strip().rstrip(".").lower()
    while name:
        if system := _BY_HOST.get(name):
            return system
        name = name.partition(".")[2]
    return None


def rule_of(system: System, said: Said) -> TextRule | None:
    """The rule of the system that matches the text."""
    return _RULES[system.name].first(said)
