import sys

import grpc

target, *roots = sys.argv[1:]
credentials = grpc.ssl_channel_credentials(open(roots[0], "rb").read() if roots else None)
with grpc.secure_channel(target, credentials) as channel:
    print("heard:", channel.unary_unary("/demo.Demo/Ask")(b"hello", timeout=20).decode())
