"""The author of changes, for the audit rows. Each task, and so each request, has an actor of its own."""

import getpass
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache

from carteiro.model import Actor, Via

_ACTOR: ContextVar[Actor] = ContextVar("actor")


def act_as(actor: Actor) -> None:
    """Make this the actor, until the task ends."""
    _ACTOR.set(actor)


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    """Make this the actor, until the block ends."""
    before = _ACTOR.set(actor)
    try:
        yield
    finally:
        _ACTOR.reset(before)


def actor() -> Actor:
    """The actor of this task; by default the program that uses the library."""
    return _ACTOR.get(None) or on_this_machine(Via.LIBRARY)


@cache
def on_this_machine(via: Via, name: str | None = None) -> Actor:
    """An actor without a key: the user of the process, or a part of Carteiro by its name, on this host."""
    return Actor(via, name or user(), socket.gethostname())


def user() -> str:
    """Name of the user that the process runs as."""
    try:
        import pwd  # noqa: PLC0415 - not on Windows

        return pwd.getpwuid(os.getuid()).pw_name  # not by getpass: variables can be set to anything
    except ImportError:
        return getpass.getuser()
    except KeyError:  # a user without a name
        return f"uid {os.getuid()}"
