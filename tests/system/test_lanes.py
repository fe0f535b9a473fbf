#!/usr/bin/env python3
"""Lanes come and go by a reload, while the others' connections go on."""
import json
import os
import socket

from helpers import POLICY, Answer, ask, ask_quietly, descriptors, exists, head, is_served, open_tls, small_place
from place import Report, free_port, read_all, wait_for


def reload(place, listeners, works=True):
    """Another configuration with these listeners, reloaded; what the command said on standard error."""
    place.listeners = listeners
    place.configure()
    place.exeat("reload", check=False)
    said = place.last.stderr.decode()
    assert (place.last.returncode == 0) == works, (place.last.returncode, said)
    return said


def lanes(place):
    """number to sandboxes, of the lanes there are."""
    return {lane["lane"]: lane["sandboxes"] for lane in json.loads(place.exeat("status", "--json", check=False))["lanes"]}


def lane_of(place, sandboxes):
    return next(number for number, names in lanes(place).items() if names == sandboxes)


def events(place, name):
    return [r for r in place.records() if r["kind"] == "event" and r["event"] == name]


BOTH = {"a": "sandbox a", "b": "sandbox b"}


def a_reload_adds_a_listener_and_the_others_go_on(place):
    before = place.pids()
    stream = open_tls(place, "a")
    reload(place, {**BOTH, "c": "sandbox c"})
    place.add_sandbox("c")
    assert is_served(place, "c")
    stream.sendall(head(place, "GET /v1/items", placeholder=place.placeholder("a", "demo-key")))
    assert Answer(read_all(stream)).status == 200
    after = place.pids()
    assert all(after[key] == pid for key, pid in before.items()), "a process was started anew"
    assert [r["sandbox"] for r in events(place, "lane_added")] == ["c"]


def a_reload_removes_a_listener_with_its_processes_and_connections(place):
    number = lane_of(place, "c")
    pids = [pid for (role, lane), pid in place.pids().items() if lane == number]
    stream, other = open_tls(place, "c"), open_tls(place, "a")
    reload(place, BOTH)
    assert read_all(stream) == b"", "the connection of the removed lane goes on"
    assert wait_for(lambda: not any(exists(pid) for pid in pids)), "its processes go on"
    assert wait_for(lambda: ask_quietly(place, sandbox="c").status is None), "its listener goes on"
    other.sendall(head(place, "GET /v1/items", placeholder=place.placeholder("a", "demo-key")))
    assert Answer(read_all(other)).status == 200
    ended = events(place, "lane_ended")[-1]
    assert ended["sandbox"] == "c" and ended["lane"] == number and ended["detail"], ended


def a_renamed_listener_is_another_lane_at_once(place):
    """Whoever is connected, or waits to be accepted, is never served as the other sandbox."""
    stream = open_tls(place, "b")
    place.ports["d"] = place.ports["b"]
    reload(place, {"a": "sandbox a", "d": "sandbox d"})
    place.add_sandbox("d")
    assert read_all(stream) == b""
    assert is_served(place, "d")
    answer = ask(place, "GET /v1/items", "d", placeholder=place.placeholder("b", "demo-key"))
    assert answer.status == 403 and answer.reason, answer
    reload(place, BOTH)
    assert is_served(place, "b")


def the_order_of_the_lines_means_nothing(place):
    before = place.pids()
    reload(place, {"b": "sandbox b", "a": "sandbox a"})
    assert place.pids() == before
    answer = ask(place, "GET /v1/items/order", "a")
    assert answer.status == 200, answer
    record = wait_for(lambda: next((r for r in place.records() if r.get("path") == "/v1/items/order"), None))
    assert record and record["sandbox"] == "a", record


def a_listener_that_cannot_be_opened_refuses_the_reload_whole(place):
    taken = socket.create_server(("127.0.0.1", free_port()))
    place.ports["c"] = taken.getsockname()[1]
    before, numbers = place.pids(), lanes(place)
    said = reload(place, {"a": "sandbox a", "c": "sandbox c"}, works=False)
    assert "cannot listen on 127.0.0.1:%d" % place.ports["c"] in said and "exeat.conf" in said, said
    assert place.pids() == before and lanes(place) == numbers
    assert ask(place, sandbox="b").status == 200
    taken.close()
    del place.ports["c"]
    reload(place, BOTH)


def another_mode_for_an_open_socket_takes_a_restart(place):
    reload(place, {**BOTH, "unix": "sandbox c"})
    said = reload(place, {**BOTH, "unix": "sandbox c; mode 0600"}, works=False)
    assert "takes a restart" in said, said
    reload(place, BOTH)
    assert not os.path.exists(place.path("unix.sock")), "the file of a removed socket stays"


def who_shares_a_listener_may_change_and_the_lane_stays(place):
    reload(place, {**BOTH, "shared": "shared c"})
    number = lane_of(place, "c")
    pid = place.pids()[("proxy", number)]
    reload(place, {**BOTH, "shared": "shared c d"})
    assert lanes(place)[number] == "c d" and place.pids()[("proxy", number)] == pid
    reload(place, BOTH)


def lanes_that_come_and_go_leave_nothing_behind(place):
    """Numbers and uids are used again; no descriptor and no memory of a shared process stays."""
    there = set(place.pids())
    shared = {key: pid for key, pid in place.pids().items() if key[1] == 0}

    def come_and_go(times):
        for i in range(times):
            reload(place, {**BOTH, "c": "sandbox c", "unix": "sandbox d"})
            reload(place, BOTH)
            assert wait_for(lambda: set(place.pids()) == there), place.pids()

    def settled():
        wait_for(lambda: False, 0.5)
        return {key: descriptors(pid) for key, pid in list(shared.items()) + [("parent", place.daemon.pid)]}

    come_and_go(2)
    before = settled()
    come_and_go(8)
    after = settled()
    assert before == after, (before, after)
    numbers = {r["lane"] for r in events(place, "lane_added")}
    assert max(numbers) < 12, numbers  # of 22 lanes


def main():
    report = Report()
    report.run_in(lambda: small_place(POLICY, BOTH),
                  [f for name, f in globals().items() if getattr(f, "__module__", None) == "__main__" and
                   name.split("_")[0] in ("a", "the", "another", "who", "lanes") and name != "lanes"])
    report.end()


if __name__ == "__main__":
    main()
