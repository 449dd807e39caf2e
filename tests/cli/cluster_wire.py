# SPDX-License-Identifier: Apache-2.0
#
# Run on two nodes of a cluster: node 0 sends a number of bytes by TCP; node 1 says how many seconds
# that took, from when it has told node 0 to begin.
import os
import socket
import sys
import time

size = int(sys.argv[1])
if os.environ["CARILLON_NODE"] == "0":
    deadline = time.monotonic() + 30
    while True:
        try:
            wire = socket.create_connection(("node1", 9000))
            break
        except ConnectionRefusedError:  # it does not listen yet
            if time.monotonic() > deadline:
                raise
    wire.recv(1)
    wire.sendall(bytes(size))
    wire.recv(1)  # until all is there
else:
    wire, _ = socket.create_server(("", 9000)).accept()
    begin = time.monotonic()
    wire.sendall(b"x")
    while size > 0:
        size -= len(wire.recv(1 << 20))
    print(time.monotonic() - begin)
    wire.sendall(b"x")
