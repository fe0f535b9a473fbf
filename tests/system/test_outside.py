"""Names and addresses outside, where a case of one request does not do: floods of names, databases of countries."""
import subprocess
import time

from helpers import HOSTS, POLICY, small_place
from place import Report, wait_for

WIDE = POLICY.replace("host open.allowed.test", "host open.allowed.test *.wide.test")
NAMES = 60
LIMIT = 40


def dn_05_a_flood_of_names_under_a_wildcard_is_limited_and_recorded(_):
    """Each name's label could carry what the sandbox knows: they are few a minute, and all are in the trail."""
    names = ["label-%03d-736b2d6c697665.wide.test" % i for i in range(NAMES)]
    with small_place(WIDE, sandboxes=("a",), hosts=HOSTS, dns={n: ["127.0.0.1"] for n in names},
                     config="limit new-names %d\n" % LIMIT) as place:
        served, begun = 0, time.monotonic()
        for name in names:
            try:
                place.tls("a", "%s:%d" % (name, place.values["port"])).close()
                served += 1
            except OSError:
                pass
        grown = LIMIT * (time.monotonic() - begun) / 60
        assert LIMIT <= served <= LIMIT + grown < NAMES, "%d names got a certificate" % served
        told = wait_for(lambda: len({r.get("host") for r in place.records()} & set(names)) == NAMES)
        assert told, "names are missing in the trail"
        rated = [r for r in place.records() if r["kind"] == "decision" and r.get("reason") == "rate"]
        assert len(rated) == NAMES - served, "%d records of rate" % len(rated)
        assert not place.resolver.asked, "without a request DNS was asked for %r" % place.resolver.asked


def ip_14_a_broken_country_database_is_no_start(_):
    for content in (b"", b"not a database", b"\xab\xcd\xefMaxMind.com" + bytes(64)):
        place = small_place(sandboxes=(), secrets={}, config="geo country country.mmdb\n")
        try:
            with open(place.path("country.mmdb"), "wb") as f:
                f.write(content)
            try:
                place.start()
            except (AssertionError, subprocess.SubprocessError) as failure:
                assert "country.mmdb" in str(failure), failure
            else:
                raise AssertionError("the daemon runs with a broken database")
        finally:
            place.__exit__()


def main():
    report = Report()
    report.run_all([dn_05_a_flood_of_names_under_a_wildcard_is_limited_and_recorded, ip_14_a_broken_country_database_is_no_start])
    report.end()


if __name__ == "__main__":
    main()
