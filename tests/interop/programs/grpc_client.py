import sys

import grpc

with grpc.secure_channel(sys.argv[1], grpc.ssl_channel_credentials()) as channel:
    channel.unary_unary("/demo.Demo/Ask")(b"", timeout=10)
