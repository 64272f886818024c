"""Hands mail to Amazon SES, by the send call of its API version 2."""
