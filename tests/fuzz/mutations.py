"""Ways in which a file is damaged on its way, or forged."""

from __future__ import annotations

import io
import random
import re
import zipfile
from collections.abc import Callable

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_NUMBERS = [
    b"0", b"1", b"-1", b"7", b"1000000", b"2147483648", b"9223372036854775808", b"1e999", b"-1e999",
    b"nan", b"0.5", b"9" * 400, b"", b"null", b"[]", b'"x"',
]  # fmt: skip
_SIZES = [0, 1, 2, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1]


def flip_bits(rng: random.Random, data: bytearray, other: bytes) -> None:
    for _ in range(rng.choice([1, 1, 1, 2, 8])):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def set_bytes(rng: random.Random, data: bytearray, other: bytes) -> None:
    at = rng.randrange(len(data))
    size = rng.choice([1, 2, 4, 16, 512])
    data[at : at + size] = rng.choice([b"\0", b"\xff", rng.randbytes(1)]) * len(
        data[at : at + size]
    )


def set_byte(rng: random.Random, data: bytearray, other: bytes) -> None:
    data[rng.randrange(len(data))] = rng.randrange(256)


def cut(rng: random.Random, data: bytearray, other: bytes) -> None:
    del data[rng.randrange(len(data)) :]


def take_out(rng: random.Random, data: bytearray, other: bytes) -> None:
    at = rng.randrange(len(data))
    del data[at : at + rng.choice([1, 4, 64, 4096])]


def put_in(rng: random.Random, data: bytearray, other: bytes) -> None:
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.choice([1, 4, 64]))


def splice(rng: random.Random, data: bytearray, other: bytes) -> None:
    """A piece of another file of the kind, or of this one, over what was there."""
    source = rng.choice([other, bytes(data)])
    size = min(rng.choice([4, 32, 256, 2048]), len(source))
    begin, at = rng.randrange(len(source) - size + 1), rng.randrange(len(data))
    data[at : at + size] = source[begin : begin + size]


def edit_size(rng: random.Random, data: bytearray, other: bytes) -> None:
    """A small whole number, which may be a size or an offset, is another one."""
    for _ in range(200):
        width = rng.choice([2, 4, 8])
        at = rng.randrange(0, max(1, len(data) - width), 1)
        order = rng.choice(["little", "little", "big"])
        value = int.from_bytes(data[at : at + width], order)
        if 0 < value < 2**24:
            new = rng.choice([value + 1, value - 1, 2 * value, 1000 * value, *_SIZES])
            data[at : at + width] = (new % 256**width).to_bytes(width, order)
            return


def edit_number(rng: random.Random, data: bytearray, other: bytes) -> None:
    """A number that is written in digits is another one, or none."""
    found = list(_NUMBER.finditer(bytes(data[: 2**16])))
    if found:
        match = rng.choice(found)
        data[match.start() : match.end()] = rng.choice(_NUMBERS)


MUTATIONS: list[Callable[[random.Random, bytearray, bytes], None]] = [
    flip_bits, flip_bits, set_byte, set_byte, set_bytes, cut, take_out, put_in, splice, edit_size,
    edit_size, edit_number,
]  # fmt: skip


def damaged(rng: random.Random, content: bytes, other: bytes) -> bytes:
    """The content after one to four mutations."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        if data:
            rng.choice(MUTATIONS)(rng, data, other)
    return bytes(data)


def forged(rng: random.Random, content: bytes, other: bytes) -> bytes:
    """A zip archive one of whose members is damaged, with checksums that are right again."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(info, archive.read(info)) for info in archive.infolist()]
    chosen = rng.randrange(len(members))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for i, (info, member) in enumerate(members):
            if i == chosen:
                member = damaged(rng, member, rng.choice(members)[1] or b"\0")
            archive.writestr(info, member, compress_type=info.compress_type)
    return made.getvalue()
