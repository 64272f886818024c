"""Hands mail to Resend over its REST API."""

from carteiro.providers.resend.options import ResendOptions
from carteiro.providers.resend.provider import ResendProvider

__all__ = ["ResendOptions", "ResendProvider"]
