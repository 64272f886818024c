"""Carteiro delivers every message or knows exactly why not."""

from carteiro.model import Accepted, Delivery, NotStored, Replayed
from carteiro.post import Carteiro, NotAccepted

__all__ = ["Accepted", "Carteiro", "Delivery", "NotAccepted", "NotStored", "Replayed"]
