"""exeat for the benchmark: sets up a whole exeat in SCRATCH/exeat, prints the Authorization to send, and stays.

  exeat.py BUILD SCRATCH

Policy, substitution, guard and audit are on, as in any installation; only limits are raised that the modes would
meet (new names a minute, connections).
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

from peers import SECRET
from scratch import HOSTS, PLAIN_PORT, PROXY_PORT, TLS_PORT

POLICY = f"""service bench {{
    host        *.bench.test
    port        {TLS_PORT}
    range       127.0.0.0/8
    credential  bench-key {{ in header authorization scheme bearer }}
    operation   use {{ GET /**; POST /** }}
    expect      allow GET https://h0.bench.test:{TLS_PORT}/echo
    expect      deny PUT https://h0.bench.test:{TLS_PORT}/echo
}}
service plain {{
    host        plain.bench.test
    port        {PLAIN_PORT}
    range       127.0.0.0/8
    clear
    operation   use {{ GET /** }}
}}
sandbox worker {{
    grant bench use
    grant plain use
}}
"""

CONFIG = f"""state      state
policy     policy.exeat
control    control.sock
vault      key state/vault.key
trust      file ../origin-ca.pem
listen     tcp 127.0.0.1:{PROXY_PORT} {{ sandbox worker }}
limit      new-names 1000000
limit      connections 20000
limit      upstreams 20000
limit      exchanges 20000
limit      refusals 1000000
limit      pool-size 2000
"""


def set_up(directory):
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory + "/state")
    for path in (directory, directory + "/state"):
        os.chmod(path, 0o755)
    with open(directory + "/policy.exeat", "w") as f:
        f.write(POLICY)
    with open(directory + "/exeat.conf", "w") as f:
        f.write(CONFIG + "".join("host %s 127.0.0.1\n" % h for h in HOSTS))
        if os.getuid() == 0:
            f.write("uids 61800 - 61999\n")


def main():
    build, directory = os.path.abspath(sys.argv[1]), os.path.join(os.path.abspath(sys.argv[2]), "exeat")
    config = directory + "/exeat.conf"

    def exeat(*args, given=b""):
        return subprocess.run([build + "/exeat", "--config", config, *args], input=given, check=True,
                              stdout=subprocess.PIPE).stdout

    set_up(directory)
    exeat("ca", "init")
    exeat("vault", "init")
    with open(directory + "/exeatd.log", "wb") as log:
        daemon = subprocess.Popen([build + "/exeatd", "--config", config], stderr=log, stdin=subprocess.DEVNULL)
    signal.signal(signal.SIGTERM, lambda *_: daemon.terminate())
    end = time.monotonic() + 30
    while "parent: info: ready" not in open(directory + "/exeatd.log").read():
        if daemon.poll() is not None or time.monotonic() > end:
            sys.exit("exeatd does not come up, see %s/exeatd.log" % directory)
        time.sleep(0.02)
    exeat("secret", "add", "bench-key", given=SECRET.encode())
    issued = json.loads(exeat("sandbox", "add", "worker", "--format", "json"))
    print("Bearer " + issued["credentials"]["bench-key"], flush=True)
    sys.exit(daemon.wait())


if __name__ == "__main__":
    main()
