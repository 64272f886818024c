"""The servers that an archive needs."""

from support.archive_fixtures import *  # noqa: F403 - all of its fixtures
