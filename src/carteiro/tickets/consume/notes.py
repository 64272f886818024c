"""The notes of a commit: which records after the committed one are done, and how often the others failed.

Pure. Brokers keep `MOST_CHARACTERS` of them with each commit. Written is what is still open, as bits or as
lengths of runs, whichever is shorter. Of failures the first few are written, the counter knows them all; what
does not fit even so is left out from the far end, and those records run again.
Notes of others, or broken ones, are no notes.
"""

import base64
import binascii
import zlib
from collections.abc import Iterable, Iterator, Mapping

from carteiro.model import value

MOST_CHARACTERS = 4096
_MOST_BYTES = MOST_CHARACTERS // 4 * 3
_MARK = b"c1"  # ours, in its first form
_BITS, _RUNS = 0, 1
_MOST_COUNTS = 300  # so that some thousands of records fit whatever became of them
_LONGEST_SPAN = 1 << 24  # what broken notes may claim, at most


@value
class Noted:
    """From ``start`` to before ``end`` all is done but what stands in ``failures``, with how often it failed."""

    start: int
    end: int
    failures: Mapping[int, int]

    def covers(self, offset: int) -> bool:
        """Return True if the notes describe it."""
        return self.start <= offset < self.end

    def is_done(self, offset: int) -> bool:
        """Return True if it needs nothing any more."""
        return self.covers(offset) and offset not in self.failures


def note_down(noted: Noted) -> tuple[str, bool]:
    """The notes as a text that fits; True if they nearly fill it: then more records should wait."""
    packed = _packed(noted)
    is_nearly_full = len(packed) > _MOST_BYTES * 3 // 4
    while len(packed) > _MOST_BYTES:
        end = noted.start + (noted.end - noted.start) * 3 // 4
        left = {each: failures for each, failures in noted.failures.items() if each < end}
        noted = Noted(noted.start, end, left)
        packed = _packed(noted)
    return base64.b64encode(packed).decode(), is_nearly_full


def read_notes(text: str) -> Noted | None:
    """Parse a text that `note_down` made; None if it is something else."""
    try:
        packed = base64.b64decode(text, validate=True)
        return _unpacked(packed) if packed.startswith(_MARK) else None
    except (binascii.Error, ValueError, IndexError, zlib.error):
        return None


def _packed(noted: Noted) -> bytes:
    span = noted.end - noted.start
    still_open = [each - noted.start for each in noted.failures]
    head = _numbers((noted.start, span))
    failed = [
        (at, times) for at, times in zip(still_open, noted.failures.values(), strict=True) if times
    ]
    failed = failed[:_MOST_COUNTS]
    counts = _numbers((len(failed), *_deltas(failed)))
    shape, written = _RUNS, _as_runs(still_open, span)
    if len(written) >= (span + 7) // 8:
        shape, written = _BITS, _as_bits(still_open, span)
    body = head + counts + bytes([shape]) + written
    return _MARK + min((b"\0" + body, b"\1" + zlib.compress(body, 6)), key=len)


def _unpacked(packed: bytes) -> Noted | None:
    flag, body = packed[len(_MARK)], packed[len(_MARK) + 1 :]
    if flag == 1:
        body = zlib.decompressobj().decompress(body, _LONGEST_SPAN)
    numbers = _Numbers(body)
    start, span = numbers.one(), numbers.one()
    if span > _LONGEST_SPAN:
        return None
    failed, at = {}, 0
    for _ in range(numbers.one()):
        at += numbers.one()
        failed[at] = numbers.one()
    shape, rest = numbers.rest()
    still_open = _of_bits(rest, span) if shape == _BITS else _of_runs(rest)
    return Noted(start, start + span, {start + each: failed.get(each, 0) for each in still_open})


def _deltas(failed: Iterable[tuple[int, int]]) -> Iterator[int]:
    last = 0
    for at, times in failed:
        yield at - last
        yield times
        last = at


def _as_bits(still_open: Iterable[int], span: int) -> bytes:
    bits = bytearray((span + 7) // 8)
    for each in still_open:
        bits[each >> 3] |= 1 << (each & 7)
    return bytes(bits)


def _of_bits(bits: bytes, span: int) -> Iterator[int]:
    return (each for each in range(min(span, 8 * len(bits))) if bits[each >> 3] >> (each & 7) & 1)


def _as_runs(still_open: Iterable[int], span: int) -> bytes:
    """Write the lengths of runs: open ones, done ones, and so on; it begins with an open one."""
    lengths, begin, last = [], 0, -1
    for each in still_open:
        if each != last + 1:
            lengths += [last + 1 - begin, each - last - 1]
            begin = each
        last = each
    lengths.append(last + 1 - begin)
    return _numbers(lengths) if span else b""


def _of_runs(written: bytes) -> Iterator[int]:
    numbers, at, is_open = _Numbers(written), 0, True
    while numbers.is_left:
        length = numbers.one()
        if at + length > _LONGEST_SPAN:
            raise ValueError("no notes are as long")
        if is_open:
            yield from range(at, at + length)
        at += length
        is_open = not is_open


def _numbers(numbers: Iterable[int]) -> bytes:
    """Seven bits a byte, the least first; the last byte of each has its eighth bit clear."""
    written = bytearray()
    for number in numbers:
        left = number
        while left > 0x7F:  # noqa: PLR2004 - seven bits
            written.append(left & 0x7F | 0x80)
            left >>= 7
        written.append(left)
    return bytes(written)


class _Numbers:
    """Reads what `_numbers` wrote."""

    def __init__(self, written: bytes) -> None:
        self._written = written
        self._at = 0

    @property
    def is_left(self) -> bool:
        return self._at < len(self._written)

    def one(self) -> int:
        number, shift = 0, 0
        while True:
            byte = self._written[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the last one of a number
                return number
            shift += 7

    def rest(self) -> tuple[int, bytes]:
        return self._written[self._at], self._written[self._at + 1 :]
