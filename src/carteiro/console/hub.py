"""One reader feeds all open pages: a snapshot a second, and only while somebody watches."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from carteiro.errors import CarteiroError
from carteiro.model import TenantId, value
from carteiro.observability import log

if TYPE_CHECKING:
    from carteiro.console.visit import Visit

MOST_VIEWERS: Final = 500
MOST_READERS: Final = 200  # each asks the store once a second
MOST_VIEWERS_OF_ONE: Final = 50  # with tokens of one tenant: the others have room, too
MOST_READERS_OF_ONE: Final = 20
EVERY_S: Final = 1.0
_MOST_UNREAD: Final = 20  # ticks that a slow viewer may be behind

Snapshot: TypeAlias = Any  # whatever a topic reads, and shows


@value
class Topic:
    """A live part of pages.

    ``read`` takes a snapshot for all tenants, or one. ``show`` renders it for a viewer, as HTML without I/O; viewers
    with the same language and zone share the result. ``needs`` is as that of a page. ``every``: ticks from one
    read to the next.
    """

    name: str
    needs: str
    read: Callable[[TenantId | None], Awaitable[Snapshot]]
    show: Callable[[Snapshot, "Visit"], str]
    every: int = 1


class _Channel:
    """The viewers of one topic and tenant, and their reader."""

    def __init__(self, topic: Topic, tenant: TenantId | None) -> None:
        self.topic = topic
        self.tenant = tenant
        self.viewers: set[_Viewer] = set()
        self.number = 0
        self.snapshot: Snapshot = None
        self.shown: dict[object, str] = {}
        self.reader: asyncio.Task[None] | None = None

    def shown_to(self, visit: "Visit") -> str:
        """The snapshot as this viewer sees it; rendered once for all that see the same."""
        key = visit.appearance
        if key not in self.shown:
            self.shown[key] = self.topic.show(self.snapshot, visit)
        return self.shown[key]


class _Viewer:
    def __init__(self, tenant: TenantId | None) -> None:
        self.tenant = tenant
        self.news = asyncio.Event()
        self.seen: dict[_Channel, int] = {}
        self.unread = 0
        self.is_dropped = False


class Hub:
    """Readers and their viewers, in one process."""

    def __init__(self, *, most_viewers: int = MOST_VIEWERS, every_s: float | None = None) -> None:
        self._topics: dict[str, Topic] = {}
        self._families: dict[str, Callable[[str], Topic | None]] = {}
        self._channels: dict[tuple[str, TenantId | None], _Channel] = {}
        self._most_viewers = most_viewers
        self._every_s = EVERY_S if every_s is None else every_s
        self._viewers: set[_Viewer] = set()
        self._is_closed = False

    @property
    def topics(self) -> Mapping[str, Topic]:
        """All topics, by their name."""
        return self._topics

    def offer(self, topic: Topic) -> None:
        """Add a topic."""
        self._topics[topic.name] = topic

    def offer_each(self, name: str, make: Callable[[str], Topic | None]) -> None:
        """Add a topic for each thing of a kind: ``NAME:ID``, for which ``make`` gets the part after the colon."""
        self._families[name] = make

    def topic(self, name: str) -> Topic | None:
        """The topic with this name."""
        family, _, about = name.partition(":")
        if about and family in self._families:
            return self._families[family](about)
        return self._topics.get(name)

    def is_full(self, topics: Sequence[Topic], tenant: TenantId | None) -> bool:
        """True if nobody else may watch, or nothing else may be watched: at all, or by viewers of this tenant."""
        new = sum((each.name, tenant) not in self._channels for each in topics)
        is_too_much = new > 0 and len(self._channels) + new > MOST_READERS
        is_full = self._is_closed or len(self._viewers) >= self._most_viewers or is_too_much
        return is_full or (tenant is not None and self._is_full_for(tenant, new))

    def _is_full_for(self, tenant: TenantId, new: int) -> bool:
        viewers = sum(each.tenant == tenant for each in self._viewers)
        readers = sum(of == tenant for _, of in self._channels)
        is_too_much = new > 0 and readers + new > MOST_READERS_OF_ONE
        return viewers >= MOST_VIEWERS_OF_ONE or is_too_much

    @property
    def readers(self) -> int:
        """Number of readers at work."""
        return len(self._channels)

    async def watch(
        self, topics: list[Topic], tenant: TenantId | None, visit: "Visit"
    ) -> AsyncGenerator[tuple[str, str], None]:
        """Each change of the topics, as name and HTML; ("", "") each time the reader looked and nothing is new.

        Ends when the hub is closed, or the viewer takes too long to read.
        """
        viewer = _Viewer(tenant)
        self._viewers.add(viewer)
        channels = [self._channel(each, tenant) for each in topics]
        for channel in channels:
            channel.viewers.add(viewer)
            viewer.seen[channel] = 0
        try:
            while not (self._is_closed or viewer.is_dropped):
                is_new = False
                for channel in channels:
                    if channel.number > viewer.seen[channel]:
                        viewer.seen[channel] = channel.number
                        is_new = True
                        yield channel.topic.name, channel.shown_to(visit)
                if not is_new:
                    yield "", ""
                viewer.unread = 0
                await viewer.news.wait()
                viewer.news.clear()
        finally:
            self._viewers.discard(viewer)
            for channel in channels:
                self._left(channel, viewer)

    def close(self) -> None:
        """End all streams: a process that stops does not wait for them."""
        self._is_closed = True
        for viewer in self._viewers:
            viewer.news.set()

    def _channel(self, topic: Topic, tenant: TenantId | None) -> _Channel:
        key = topic.name, tenant
        if key not in self._channels:
            channel = self._channels[key] = _Channel(topic, tenant)
            channel.reader = asyncio.create_task(self._read(channel))
        return self._channels[key]

    def _left(self, channel: _Channel, viewer: _Viewer) -> None:
        channel.viewers.discard(viewer)
        if not channel.viewers and channel.reader is not None:
            channel.reader.cancel()
            self._channels.pop((channel.topic.name, channel.tenant), None)

    async def _read(self, channel: _Channel) -> None:
        for tick in count():
            if not tick % channel.topic.every:
                await self._look(channel)
            for viewer in channel.viewers:
                viewer.unread += 1
                viewer.is_dropped = viewer.unread > _MOST_UNREAD * len(viewer.seen)
                viewer.news.set()
            await asyncio.sleep(self._every_s)

    @staticmethod
    async def _look(channel: _Channel) -> None:
        # A store that is down ends nothing: pages keep what they show, and go on when it is back.
        with suppress(CarteiroError):
            try:
                snapshot = await channel.topic.read(channel.tenant)
            except CarteiroError:
                raise
            except Exception as error:  # noqa: BLE001 - of one topic: the others go on
                log.unexpected(f"console.{channel.topic.name}", error)
            else:
                if not channel.number or snapshot != channel.snapshot:
                    channel.snapshot, channel.shown = snapshot, {}
                    channel.number += 1
