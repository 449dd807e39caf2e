# SPDX-License-Identifier: Apache-2.0
#
# Run on two nodes of a cluster: node 0 sends so many datagrams; both end when all have been sent.
import os
import socket
import sys
import time

PORT = 9000

if os.environ["CARILLON_NODE"] == "0":
    wire = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for _ in range(int(sys.argv[1])):
        wire.sendto(b"x", ("node1", PORT))
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("node1", PORT)).recv(1)
            break
        except ConnectionRefusedError:  # it does not listen yet
            if time.monotonic() > deadline:
                raise
else:
    ended = socket.create_server(("", PORT))
    nobody_answers = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    nobody_answers.bind(("", PORT))
    ended.accept()[0].sendall(b"x")
