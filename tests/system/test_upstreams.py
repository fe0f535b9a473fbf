"""What a service asks of its upstream: an authority or a key of its own, a country, an autonomous system."""
import base64
import hashlib
import os
import ssl
import subprocess

import mmdb
from helpers import ask, head, open_tls, small_place
from place import Listener, Upstream, UpstreamCa, read_head, run_all, wait_for

POLICY = """
service plain { host plain.test; port {port} {other_port}; range 127.0.0.0/8; operation r { GET /** } }
service own { host own.test; port {port} {other_port}; range 127.0.0.0/8; upstream ca {ca_file}; operation r { GET /** } }
service leaf { host leaf.test; port {port}; range 127.0.0.0/8; upstream pin sha256:{leaf_pin}; operation r { GET /** } }
service root { host root.test; port {port}; range 127.0.0.0/8; upstream pin sha256:{root_pin}; operation r { GET /** } }
service stale { host stale.test; port {port}; range 127.0.0.0/8; upstream pin sha256:{stale_pin}; operation r { GET /** } }
service there { host there.test; port {port}; range 127.0.0.0/8; country AT CH; operation r { GET /** } }
service elsewhere { host elsewhere.test; port {port}; range 127.0.0.0/8; country not AT; operation r { GET /** } }
service network { host network.test; port {port}; range 127.0.0.0/8; asn 64500; operation r { GET /** } }
service networks { host networks.test; port {port}; range 127.0.0.0/8; asn not 64500; operation r { GET /** } }
sandbox a {
    grant plain all; grant own all; grant leaf all; grant root all; grant stale all
    grant there all; grant elsewhere all; grant network all; grant networks all
}
"""
HERE, ABROAD, NOWHERE = "127.0.0.2", "127.0.0.3", "127.0.0.4"
UNPOOLED = "limit pool-size 0\n"  # each request is dialled
WORDS = ("there", "elsewhere", "network", "networks")
NAMES = {"plain.test": ["127.0.0.1"], "own.test": ["127.0.0.1"], "leaf.test": ["127.0.0.1"], "root.test": ["127.0.0.1"],
         "stale.test": ["127.0.0.1"]}


def pin_of(pem):
    """The SHA-256 of the SubjectPublicKeyInfo, by openssl and not by us."""
    key = subprocess.run(["openssl", "x509", "-in", pem, "-noout", "-pubkey"], stdout=subprocess.PIPE, check=True).stdout
    return hashlib.sha256(base64.b64decode(b"".join(key.split(b"\n")[1:-2]))).hexdigest()


class World:
    """A place with a second upstream, whose authority only `own` trusts, and databases of a geography of our own."""

    def __enter__(self):
        self.place = small_place(POLICY, {"a": "sandbox a"}, ["a"], {}, tuple(NAMES) + tuple(w + ".test" for w in WORDS),
                                 dns=dict(NAMES), config=UNPOOLED + "geo country {country_file}\ngeo asn {asn_file}\n")
        place = self.place
        os.mkdir(place.path("other"))
        other = UpstreamCa(place.path("other"))
        self.other = Upstream(*other.leaf("other", ["own.test", "plain.test"]))
        self.doors = [Listener(place.upstream._serve, place.upstream.port, a) for a in (HERE, ABROAD, NOWHERE)]
        mmdb.write(place.path("country.mmdb"), {HERE + "/32": {"country": {"iso_code": "AT"}},
                                                ABROAD + "/32": {"country": {"iso_code": "US"}}})
        mmdb.write(place.path("asn.mmdb"), {HERE + "/32": {"autonomous_system_number": 64500},
                                            ABROAD + "/32": {"autonomous_system_number": 64501}})
        place.values.update(
            other_port=self.other.port, ca_file="other/up-ca.pem", leaf_pin=pin_of(place.path("upstream.pem")),
            root_pin=pin_of(place.ca.pem), stale_pin=pin_of(other.pem), country_file=place.path("country.mmdb"),
            asn_file=place.path("asn.mmdb"))
        place.__enter__()
        return self.place

    def __exit__(self, *ignored):
        self.place.__exit__()
        for listener in [self.other] + self.doors:
            listener.close()


def get(place, name, port="port"):
    """(the answer, the decision's record when it is a refusal)"""
    keep = place.values["port"]
    place.values["port"] = place.values[port]
    try:
        answer = ask(place, "GET /x", host=name, placeholder=None)
    finally:
        place.values["port"] = keep
    return answer, answer.record and place.record(answer.record)


def is_refused(place, name, reason, says, port="port"):
    before = len(place.upstream.requests)
    answer, record = get(place, name, port)
    assert answer.reason == reason, answer
    assert says in record["detail"], record
    assert len(place.upstream.requests) == before


def tu_a_service_trusts_only_the_authority_of_its_own(place):
    assert get(place, "own.test", "other_port")[0].status == 200
    is_refused(place, "own.test", "upstream_tls", "no chain to a trust anchor")
    is_refused(place, "plain.test", "upstream_tls", "no chain to a trust anchor", "other_port")
    assert get(place, "plain.test")[0].status == 200


def tu_a_pin_is_met_by_the_leaf_or_by_one_above_it(place):
    assert get(place, "leaf.test")[0].status == 200
    assert get(place, "root.test")[0].status == 200
    is_refused(place, "stale.test", "upstream_tls", "`upstream pin`")


def tu_a_new_pin_cuts_what_runs_and_is_asked_of_the_next_connection(place):
    """A session from before is of no use to a newer pin, either."""
    place.upstream.script = lambda request, stream: stream.sendall(
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf") or b""
    good = place.values["leaf_pin"]
    with open_tls(place, host="leaf.test") as running:
        running.sendall(head(place, "GET /slow", "leaf.test"))
        read_head(running)
        place.values["leaf_pin"] = place.values["stale_pin"]
        place.write_policy(POLICY)
        place.exeat("reload")
        data = b"?"
        while data:
            try:
                data = running.recv(65536)
            except (ssl.SSLError, ConnectionError):
                break
    place.upstream.script = lambda request, stream: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    cut = wait_for(lambda: [r for r in place.records() if r["kind"] == "outcome" and r.get("reason") == "cut"], 5)
    assert cut and "its upstream has shown" in cut[-1]["detail"], cut
    is_refused(place, "leaf.test", "upstream_tls", "`upstream pin`")
    place.values["leaf_pin"] = good
    place.write_policy(POLICY)
    place.exeat("reload")
    assert get(place, "leaf.test")[0].status == 200


def tu_a_file_of_an_authority_that_is_not_there_keeps_the_policy(place):
    place.write_policy(POLICY.replace("{ca_file}", "absent.pem"))
    place.exeat("reload", check=False)
    said = place.last.stderr.decode()
    assert "absent.pem: No such file" in said and "`upstream ca` of service own names it" in said, said
    assert get(place, "own.test", "other_port")[0].status == 200
    place.write_policy(POLICY)
    place.exeat("reload")


def at(place, *addresses):
    for word in WORDS:
        place.resolver.answers[word + ".test"] = list(addresses)


def verdicts(place):
    return {word: get(place, word + ".test")[0].reason or "allowed" for word in WORDS}


def ip_14_an_address_is_dialled_only_in_the_countries_and_networks_of_the_service(place):
    at(place, HERE)
    assert verdicts(place) == {"there": "allowed", "elsewhere": "address_not_allowed", "network": "allowed",
                               "networks": "address_not_allowed"}
    at(place, ABROAD)
    assert verdicts(place) == {"there": "address_not_allowed", "elsewhere": "allowed", "network": "address_not_allowed",
                               "networks": "allowed"}


def ip_14_what_no_database_knows_matches_nothing(place):
    at(place, NOWHERE)
    assert set(verdicts(place).values()) == {"address_not_allowed"}
    is_refused(place, "there.test", "address_not_allowed", "country not known")


def ip_14_one_address_elsewhere_refuses_the_name(place):
    for addresses in ((HERE, ABROAD), (ABROAD, HERE), (HERE, NOWHERE)):
        at(place, *addresses)
        before = place.upstream.connections
        assert verdicts(place)["there"] == "address_not_allowed"
        assert place.upstream.connections == before
    refused = [r for r in place.records() if r.get("verdict") == "deny" and "not permitted by service there" in r.get("detail", "")]
    assert refused and any(r.get("country") == "US" and r.get("asn") == "64501" for r in refused), refused


def ip_14_without_a_database_the_load_warns_and_nothing_matches(place):
    said = place.config_text
    place.config_text = UNPOOLED
    place.configure()
    place.stop()
    place.launch()
    try:
        assert "nothing matches its 'country', the configuration has no 'geo country'" in place.log()
        assert "nothing matches its 'asn', the configuration has no 'geo asn'" in place.log()
        at(place, HERE)
        assert set(verdicts(place).values()) == {"address_not_allowed"}
    finally:
        place.config_text = said
        place.configure()


if __name__ == "__main__":
    with World() as world:
        report = run_all([
            tu_a_service_trusts_only_the_authority_of_its_own,
            tu_a_pin_is_met_by_the_leaf_or_by_one_above_it,
            tu_a_new_pin_cuts_what_runs_and_is_asked_of_the_next_connection,
            tu_a_file_of_an_authority_that_is_not_there_keeps_the_policy,
            ip_14_an_address_is_dialled_only_in_the_countries_and_networks_of_the_service,
            ip_14_what_no_database_knows_matches_nothing,
            ip_14_one_address_elsewhere_refuses_the_name,
            ip_14_without_a_database_the_load_warns_and_nothing_matches,
        ], world)
    report.end()
