"""The worlds of cases about what lies outside: an upstream and a resolver that lie as a case says."""
from case_scene import Scene
from place import Place, free_port

SECRET_A = "sk-live-0f9Qx7LmV2aBcD4eFgH6iJkL8mNoPqRs"

LIMITS = """limit pool-size 0
limit dns-time 2
limit connect-time 2
limit upstream-handshake-time 2
limit new-names 100000
limit head-time 8
"""

TLS_POLICY = """
service api {
    host api.allowed.test 127.0.0.1 a_b.wild.test *.wild.test
    port {port}
    range 127.0.0.0/8
    credential key-a { in header authorization scheme bearer }
    operation every { GET POST /; GET POST /** }
}
sandbox a { grant api all }
"""

DNS_POLICY = """
service api {
    host api.allowed.test *.dns.test 9.9.9.10 [2606:4700::1111]
    port {port}
    credential key-a { in header authorization scheme bearer }
    operation every { GET POST /; GET POST /** }
}
service walled { host walled.dns.test 10.66.6.6 [fd66::6]; never all }
service inside {
    host inside.allowed.test
    port {port}
    range 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 169.254.0.0/16 127.0.0.0/8 192.0.0.0/24 198.18.0.0/15
    range fc00::/7 fe80::/10 64:ff9b:1::/48
    operation every { GET /; GET /** }
}
service one {
    host metadata.allowed.test
    port {port}
    range 169.254.169.254 168.63.129.16
    operation every { GET /; GET /** }
}
service own {
    host own.allowed.test
    port {resolver} {listener} {port}
    range 127.0.0.0/8 ::1
    operation every { GET /; GET /** }
}
service clear {
    host clear.allowed.test *.clear.test
    port {clear}
    clear
    operation every { GET /; GET /** }
}
sandbox a { grant api all; grant inside all; grant one all; grant own all; grant clear all }
"""


class Outside(Place):
    def __init__(self, policy, hosts, dns, values):
        super().__init__(policy, {"a": "sandbox a"}, {"key-a": (SECRET_A, "sk-live-")}, ["a"], hosts=hosts, dns=dns,
                         values=values, config=LIMITS)
        self.scene = Scene(self, dns)
        self.ports["a"] = free_port()
        self.values.update(resolver=self.resolver.port, listener=self.ports["a"], clear=self.upstream.port)

    def launch(self):
        if "exeat" not in self.scene.server.certificates.made:
            self.scene.server.certificates.trust("exeat", self.path("state", "public", "ca.pem"),
                                                 self.path("state", "ca", "ca.key"))
        super().launch()


def values(place):
    port = str(place.values["port"])
    return {
        "PORT": port, "NAME": "api.allowed.test", "HOST": "api.allowed.test:" + port, "SECRET_A": SECRET_A,
        "RESOLVER": str(place.values["resolver"]), "LISTENER": str(place.values["listener"]),
        "PH_A": place.placeholder("a", "key-a"), "AUTH": "Authorization: Bearer %s" % place.placeholder("a", "key-a"),
        "GET": "GET /v1/items HTTP/1.1\\r\\nAuthorization: Bearer %s\\r\\nHost: " % place.placeholder("a", "key-a"),
    }


def hidden(place):
    return list(place.sandboxes["a"]["credentials"].values())


def tls_world():
    hosts = ("api.allowed.test", "127.0.0.1", "a_b.wild.test", "b.wild.test")
    place = Outside(TLS_POLICY, hosts, {h: ["127.0.0.1"] for h in hosts}, {})
    return place, values, [SECRET_A], hidden


def dns_world():
    """In a network of its own (case_scene.in_own_network): no address of it is this machine's to the daemon's eyes."""
    hosts = ("api.allowed.test", "*.dns.test", "inside.allowed.test", "metadata.allowed.test", "own.allowed.test",
             "9.9.9.10", "2606:4700::1111")
    place = Outside(DNS_POLICY, hosts, {"api.allowed.test": ["9.9.9.9"]}, {})
    place.upstream.listen_everywhere()
    return place, values, [SECRET_A], hidden
