"""Carteiro delivers every message or knows exactly why not."""

from carteiro.errors import NotAccepted
from carteiro.model import Accepted, Delivery, NotStored, Replayed
from carteiro.post import Carteiro

__all__ = ["Accepted", "Carteiro", "Delivery", "NotAccepted", "NotStored", "Replayed"]
