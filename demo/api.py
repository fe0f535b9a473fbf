#!/usr/bin/env python3
"""The demo's HTTPS API: checks the secret, lists items, and echoes request heads as some APIs do.

usage: api.py CERT KEY SECRET LOG [PORT]   prints its port; writes one line a request to LOG
"""
import json
import ssl
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

cert, key, secret, log = sys.argv[1:5]
port = int(sys.argv[5]) if len(sys.argv) > 5 else 0


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, value):
        body = (json.dumps(value) + "\n").encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle_any(self):
        length = int(self.headers.get("Content-Length", "0"))
        self.rfile.read(length)
        sent = self.headers.get("Authorization", "")
        with open(log, "a") as f:
            f.write("%s %s\n" % (self.command, self.path))
        if sent != "Bearer " + secret:
            self.answer(401, {"error": "the key is not valid"})
        elif self.path == "/v1/echo":
            self.answer(200, {"you_sent": {"authorization": sent}})
        else:
            self.answer(200, {"items": ["anchor", "buoy", "compass"], "key": "accepted"})

    do_GET = do_POST = do_DELETE = do_PUT = handle_any

    def log_message(self, *ignored):
        pass


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A client that goes away, or does not like the certificate, is no news."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


server = Server(("127.0.0.1", port), Api)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
