"""Channels that notify people of alerts, one file each."""
