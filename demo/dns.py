#!/usr/bin/env python3
"""A name server that knows nothing and notes who asked: usage: dns.py LOG   prints its port."""
import socket
import sys

server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    query, peer = server.recvfrom(4096)
    with open(sys.argv[1], "a") as log:
        log.write("%r\n" % query[12:])
    server.sendto(query[:2] + b"\x81\x83" + query[4:], peer)
