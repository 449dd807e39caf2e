# SPDX-License-Identifier: Apache-2.0
#
# Run on a node of a cluster: listens to every multicast group that the node has joined, and sends
# what it hears again, as it was, with a wrong bit, cut short, and with nonsense in its place, to the
# group and to each sender. It says so when it begins; until it is killed.
import re
import selectors
import socket
import struct
from pathlib import Path
from random import Random

random = Random(1)
listeners = {}
selector = selectors.DefaultSelector()


def groups():
    """(address, port) of each UDP socket that is bound to a group."""
    for row in Path("/proc/net/udp").read_text().splitlines()[1:]:
        address, port = row.split()[1].split(":")
        address = socket.inet_ntoa(struct.pack("<I", int(address, 16)))
        if re.match(r"239\.", address):
            yield address, int(port, 16)


def listen(group):
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(group)
    here = socket.inet_aton(socket.gethostbyname(socket.gethostname()))
    listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP,
                        socket.inet_aton(group[0]) + here)
    listener.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, here)
    listeners[group] = listener
    selector.register(listener, selectors.EVENT_READ, group)


def shout(group, heard, sender):
    bit = random.randrange(8 * len(heard))
    wrong = bytearray(heard)
    wrong[bit // 8] ^= 1 << bit % 8
    for packet in (heard, bytes(wrong), heard[:random.randrange(len(heard))],
                   random.randbytes(len(heard)), b""):
        for whom in (group, sender):
            listeners[group].sendto(packet, whom)


print("ready", flush=True)
while True:
    for found in set(groups()) - set(listeners):
        listen(found)
    for key, _ in selector.select(timeout=0.05):
        heard, sender = key.fileobj.recvfrom(65536)
        if heard and random.random() < 0.2:
            shout(key.data, heard, sender)
