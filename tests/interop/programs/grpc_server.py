import sys
from concurrent.futures import ThreadPoolExecutor

import grpc


class Echo(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)


address, cert, key = sys.argv[1:]
server = grpc.server(ThreadPoolExecutor(4), [Echo()])
pair = [open(name, "rb").read() for name in (key, cert)]
server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
server.start()
server.wait_for_termination()
