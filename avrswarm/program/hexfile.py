"""Intel HEX text to bytes by address, with errors that name the line and say what is wrong there.

And back: `write_hex`.

The intelhex library decodes the records and finds what is wrong; here its findings get words and
details, and what it lets pass (no end-of-file record, records after it, no data) is caught.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import intelhex

from avrswarm.errors import ProgramError

_DATA, _END, _SEGMENT, _LINEAR = 0, 1, 2, 4  # record types; 3 and 5 hold a start address


@dataclass(frozen=True)
class HexFile:
    """Bytes by address, and the lines of the file, to say where an address was given."""

    content: dict[int, int]
    lines: list[str]

    def line_of(self, address: int) -> int:
        """Return the number of the first line whose record gives ``address``."""
        return _line_of(self.lines, address)


def read_hex(content: bytes, name: str) -> HexFile:
    """Decode an Intel HEX file; ``name`` is the file as the user gave it."""
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise ProgramError(
            f"{name}, line {line}: byte {byte:#04x} is not text; the file is damaged"
        ) from None
    # intelhex takes only bare records, so blanks around them go first; line numbers stay.
    lines = [line.strip() for line in text.splitlines()]
    reader = intelhex.IntelHex()
    try:
        reader.loadhex(io.StringIO("\n".join(lines)))
    except intelhex.AddressOverlapError as error:
        first = _line_of(lines, error.address)
        raise ProgramError(
            f"{name}, line {error.line}: overlapping records: address {error.address:#06x} was "
            f"already given on line {first}; the file was probably joined from two"
        ) from None
    except intelhex.HexReaderError as error:
        raise ProgramError(_explain(error, lines, name)) from None
    _check_end(lines, name)
    found = {address: reader[address] for address in reader.addresses()}
    if not found:
        raise ProgramError(f"{name}: no data records; there is no firmware in it")
    return HexFile(found, lines)


def write_hex(path: Path, content: bytes) -> None:
    """Write bytes, from address 0 on, as an Intel HEX file."""
    writer = intelhex.IntelHex()
    writer.puts(0, content)
    try:
        with path.open("w", encoding="ascii", newline="\n") as file:
            writer.write_hex_file(file)
    except OSError as error:
        raise ProgramError(f"{path}: cannot be written: {error.strerror}") from None


def _check_end(lines: list[str], name: str) -> None:
    """Refuse a file without an end-of-file record, or with records after it, which nobody reads."""
    numbered = enumerate(lines, start=1)
    end = next((number for number, line in numbered if _type(line) == _END), None)
    if end is None:
        raise ProgramError(
            f"{name}: no end-of-file record (:00000001FF) up to its last line, {len(lines)}; "
            "the file is truncated"
        )
    for number, line in numbered:
        if line.startswith(":"):
            raise ProgramError(
                f"{name}, line {number}: a record after the end-of-file record of line {end}; "
                "the file was joined from two, merge them with a tool such as srec_cat"
            )


def _line_of(lines: list[str], address: int) -> int:
    records = _data_records(lines)
    return next(number for number, start, count in records if start <= address < start + count)


def _data_records(lines: list[str]) -> Iterator[tuple[int, int, int]]:
    """Yield line number, start address and byte count of each data record."""
    base = 0
    for number, line in enumerate(lines, start=1):
        kind = _type(line)
        if kind == _DATA:
            yield number, base + int(line[3:7], 16), int(line[1:3], 16)
        elif kind == _SEGMENT:
            base = int(line[9:13], 16) << 4
        elif kind == _LINEAR:
            base = int(line[9:13], 16) << 16
        elif kind == _END:
            return


def _type(line: str) -> int | None:
    return int(line[7:9], 16) if line else None


def _explain(error: intelhex.HexReaderError, lines: list[str], name: str) -> str:
    number = error.line
    line = lines[number - 1]
    is_last = not any(lines[number:])
    place = f"{name}, line {number}"
    if not line.startswith(":"):
        return f"{place}: '{line[:20]}' is not a record; each starts with ':'"
    digits = line[1:]
    if any(c not in "0123456789abcdefABCDEF" for c in digits):
        return f"{place}: '{line[:20]}...' has characters that are not hexadecimal digits"
    if is_last and (len(digits) < 10 or len(digits) < 10 + 2 * int(digits[:2], 16)):
        return f"{place}: the file ends in the middle of a record; it is truncated"
    if isinstance(error, intelhex.RecordChecksumError):
        content = bytes.fromhex(digits)
        right = -sum(content[:-1]) & 0xFF
        return (
            f"{place}: bad checksum: the record says {content[-1]:#04x}, its content gives "
            f"{right:#04x}; the file is damaged, build or copy it again"
        )
    if isinstance(error, intelhex.RecordTypeError):
        return f"{place}: record type {digits[6:8]} is unknown; Intel HEX has 00 to 05"
    if isinstance(error, intelhex.RecordLengthError):
        return (
            f"{place}: truncated record or wrong length: it announces {int(digits[:2], 16)} data "
            f"bytes and holds {len(digits) / 2 - 5:g}"
        )
    if isinstance(error, intelhex.DuplicateStartAddressRecordError):
        return f"{place}: a second start address record; the file was probably joined from two"
    if len(digits) < 10 or len(digits) % 2:
        return f"{place}: truncated record: {len(digits)} hexadecimal digits are no whole record"
    return f"{place}: record type {digits[6:8]} with a length or address that it cannot have"
