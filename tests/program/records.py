"""Intel HEX records for tests, made from the format's definition."""

END = ":00000001FF"


def record(kind, address, content=b""):
    body = bytes([len(content), address >> 8, address & 0xFF, kind, *content])
    return f":{body.hex().upper()}{-sum(body) & 0xFF:02X}"


def data(address, content):
    return record(0, address, bytes(content))


def write_hex(folder, *lines, name="firmware.hex"):
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path
