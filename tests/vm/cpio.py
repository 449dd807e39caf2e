# SPDX-License-Identifier: Apache-2.0
#
# The archive that Linux takes as its first file system ("newc").
import stat


def folder(name):
    return (name, stat.S_IFDIR | 0o755, b"")


def file(name, data, mode=0o644):
    return (name, stat.S_IFREG | mode, data)


def link(name, target):
    return (name, stat.S_IFLNK | 0o777, target.encode())


def archive(entries):
    out = bytearray()

    def put(number, name, mode, data):
        raw = name.encode() + b"\0"
        head = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(raw), 0]
        out.extend(b"070701" + b"".join(b"%08X" % field for field in head) + raw)
        out.extend(b"\0" * (-len(out) % 4))
        out.extend(data)
        out.extend(b"\0" * (-len(out) % 4))

    for number, (name, mode, data) in enumerate(entries, 1):
        put(number, name, mode, data)
    put(0, "TRAILER!!!", 0, b"")
    out.extend(b"\0" * (-len(out) % 512))  # another archive may follow
    return bytes(out)
