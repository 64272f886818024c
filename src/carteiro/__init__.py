"""Carteiro delivers every message or knows exactly why not."""

from carteiro.app import Carteiro
from carteiro.errors import NotAccepted
from carteiro.model import Accepted, Delivery, NotStored, Replayed

__all__ = ["Accepted", "Carteiro", "Delivery", "NotAccepted", "NotStored", "Replayed"]
