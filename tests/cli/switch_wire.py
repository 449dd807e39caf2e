# SPDX-License-Identifier: Apache-2.0
#
# Packets of the switch protocol (docs/switch-protocol.md), read from the loopback interface and made
# by hand: what a stranger, or another job, may send to a switch. To read them takes root.
import select
import socket
import struct
import time

HEADER = struct.Struct(">6BH4I3H")  # all but the tag
TAG = struct.Struct(">Q")
HEADER_BYTES = HEADER.size + TAG.size
CONTRIBUTE, REFUSE, INSTALL_JOB, FREE_GROUP, GROUP_BUILT, GROUP_FREED = 1, 3, 18, 24, 23, 25
UNKNOWN_GROUP = 2
EMPTY, LAST = 1, 4
WORD = (1 << 64) - 1


def siphash(key, data):
    """SipHash-2-4 of a key (low, high)."""
    def rotated(x, bits):
        return (x << bits | x >> (64 - bits)) & WORD

    v = [key[0] ^ 0x736f6d6570736575, key[1] ^ 0x646f72616e646f6d,
         key[0] ^ 0x6c7967656e657261, key[1] ^ 0x7465646279746573]

    def rounds(count):
        for _ in range(count):
            v[0] = (v[0] + v[1]) & WORD
            v[1] = rotated(v[1], 13) ^ v[0]
            v[0] = rotated(v[0], 32)
            v[2] = (v[2] + v[3]) & WORD
            v[3] = rotated(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & WORD
            v[3] = rotated(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & WORD
            v[1] = rotated(v[1], 17) ^ v[2]
            v[2] = rotated(v[2], 32)

    whole = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xff])
    for (word,) in struct.iter_unpack("<Q", whole):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xff
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def tag_of(key, packet):
    """Of a packet whose tag is not looked at."""
    return siphash(key, bytes(2) + packet[:HEADER.size] + packet[HEADER_BYTES:])


def read_key(path):
    text = path.read_text().strip()
    return int(text[16:], 16), int(text[:16], 16)


def job_key(administrator, job, nonce):
    return tuple(siphash(administrator, bytes([k, 0, 0, 0]) + struct.pack(">IQ", job, nonce))
                 for k in (1, 2))


class Packet:
    NAMES = ("version", "kind", "flags", "op", "type", "zero", "count", "job", "group", "sequence",
             "offset", "slot", "child", "reason")

    def __init__(self, payload=b"", **fields):
        for name in self.NAMES:
            setattr(self, name, fields.get(name, 1 if name == "version" else 0))
        self.payload = payload

    def sealed(self, key):
        packet = HEADER.pack(*(getattr(self, name) for name in self.NAMES))
        packet += bytes(TAG.size) + self.payload
        return packet[:HEADER.size] + TAG.pack(tag_of(key, packet)) + self.payload

    @staticmethod
    def read(datagram):
        """With its tag; None if it is too short."""
        if len(datagram) < HEADER_BYTES:
            return None
        packet = Packet(datagram[HEADER_BYTES:],
                        **dict(zip(Packet.NAMES, HEADER.unpack_from(datagram))))
        packet.datagram, packet.tag = datagram, TAG.unpack_from(datagram, HEADER.size)[0]
        return packet


class Ear:
    """Hears all datagrams to and from a port of the loopback interface."""

    def __init__(self, port):
        self.port = port
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind(("lo", 0x0800))

    def close(self):
        self.socket.close()

    def packets(self, seconds):
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.socket], [], [], left)[0]:
                return
            data = self.socket.recv(65536)
            head = 4 * (data[0] & 15)
            if data[9] != socket.IPPROTO_UDP or len(data) < head + 8:
                continue
            if self.port not in struct.unpack_from(">HH", data, head):
                continue
            if packet := Packet.read(data[head + 8:]):
                yield packet

    def find(self, kind, suits, seconds=20):
        """The next of this kind that suits; each packet comes twice here, as it goes and comes."""
        for packet in self.packets(seconds):
            if packet.kind == kind and suits(packet):
                return packet
        raise AssertionError(f"no packet of kind {kind} within {seconds} s")


def asked(packet, to, seconds=5):
    """What a switch answers to a datagram, from a port of its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
        port.settimeout(seconds)
        port.sendto(packet, to)
        return Packet.read(port.recv(65536))
