"""Make the PNG of a page small: a palette of 256 colours instead of all, and the best compression."""

import struct
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_MOST = 256
_RGB = 2
Colour = tuple[int, int, int]


def make_small(file: Path) -> None:
    """Replace the file, which a browser wrote, by a smaller one that looks the same."""
    chunks = list(_chunks(file.read_bytes()))
    width, height, _, kind = struct.unpack(">IIBB", chunks[0][1][:10])
    pixel = 3 if kind == _RGB else 4
    content = zlib.decompress(b"".join(body for name, body in chunks if name == b"IDAT"))
    lines = _lines(content, height, pixel=pixel)
    pixels = [list(zip(*(line[at::pixel] for at in range(3)), strict=True)) for line in lines]
    palette, place = _palette(Counter(each for line in pixels for each in line))
    drawn = b"".join(b"\0" + bytes([place[each] for each in line]) for line in pixels)
    file.write_bytes(
        _SIGNATURE
        + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0))
        + _chunk(b"PLTE", b"".join(bytes(each) for each in palette))
        + _chunk(b"IDAT", zlib.compress(drawn, 9))
        + _chunk(b"IEND", b"")
    )


def _chunks(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = len(_SIGNATURE)
    while at < len(content):
        size, name = struct.unpack(">I4s", content[at : at + 8])
        yield name, content[at + 8 : at + 8 + size]
        at += size + 12


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _lines(content: bytes, height: int, *, pixel: int) -> list[bytearray]:
    """The bytes of each line, without the filters of PNG."""
    size = len(content) // height
    before = bytearray(size - 1)
    found = []
    for number in range(height):
        kind, line = content[number * size], bytearray(content[number * size + 1 :][: size - 1])
        for at in range(len(line)):
            left = line[at - pixel] if at >= pixel else 0
            corner = before[at - pixel] if at >= pixel else 0
            line[at] = (line[at] + _guess(kind, left, before[at], corner)) & 255
        found.append(line)
        before = line
    return found


def _guess(kind: int, left: int, above: int, corner: int) -> int:
    nearest = left + above - corner
    likely = min((left, above, corner), key=lambda each: abs(nearest - each))
    return (0, left, above, (left + above) // 2, likely)[kind]


def _palette(known: Counter[Colour]) -> tuple[list[Colour], dict[Colour, int]]:
    """The most frequent colours, of those that look alike one; and the place of the nearest one for each."""
    alike: dict[Colour, Colour] = {}
    for red, green, blue in (each for each, _ in known.most_common()):
        alike.setdefault((red >> 3, green >> 3, blue >> 3), (red, green, blue))
    palette = list(alike.values())[:_MOST]

    def nearest(colour: Colour) -> int:
        distances = [
            sum((a - b) ** 2 for a, b in zip(colour, each, strict=True)) for each in palette
        ]
        return distances.index(min(distances))

    return palette, {each: nearest(each) for each in known}
