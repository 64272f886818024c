"""Hands mail to Amazon SES, by the send call of its API version 2."""

from carteiro.providers.ses.options import SesOptions
from carteiro.providers.ses.provider import SesProvider

__all__ = ["SesOptions", "SesProvider"]
