"""What is measured beside exeat, each configured for the same job: allow *.bench.test only, replace the placeholder in
Authorization by the real secret, verify the origin. Only squid and mitmproxy mint leaves as exeat does; the relay only
passes bytes on.
"""
import os
import shutil
import subprocess
import sys

from scratch import PROXY_PORT, TLS_PORT

HERE = os.path.dirname(os.path.abspath(__file__))
SENT = "Bearer placeholder-0123456789abcdef0123456789"
SECRET = "real-secret-0123456789abcdef0123456789"
REAL = "Bearer " + SECRET


class Peer:
    """How to start one proxy, and how the load generator is to use it.

    sent: the Authorization to send, or None when the command prints it; seen: what the origin must see; echoed: what
    must come back of it, when that differs; hosts: it resolves names by the hosts file; refuses: it answers CONNECT to a
    host that is not allowed with 403; plain: it forwards plain HTTP; most: connections that it can
    hold with the descriptors that one process usually may open.
    """

    def __init__(self, cmd, port=PROXY_PORT, via="connect", ca="origin-ca.pem", sent=SENT, seen=REAL, echoed=None,
                 env=None, hosts=False, refuses=False, plain=False, most=20000):
        self.cmd, self.port, self.via, self.ca, self.hosts = cmd, port, via, ca, hosts
        self.refuses, self.plain, self.most = refuses, plain, most
        self.sent, self.seen, self.echoed, self.env = sent, seen, echoed or seen, env or {}


def direct(w):
    return Peer(None, port=TLS_PORT, via="direct", seen=SENT)


def relay(w, build):
    return Peer([os.path.join(build, "relay"), "-l", str(PROXY_PORT), "-o", str(TLS_PORT), "-c", w.file("wild.pem"), "-k",
                 w.file("wild.key"), "-C", w.file("origin-ca.pem")], ca="proxy-ca.pem", seen=SENT, most=9000)


def exeat(w, build):
    # The guard masks the secret in answers, keeping the length: that a run of * comes back says that the
    # origin had it. (The origin counts what it saw as well.)
    return Peer([sys.executable, os.path.join(HERE, "exeat.py"), os.path.dirname(build), w.dir], sent=None,
                ca=w.file("exeat/state/public/ca.pem"), echoed="Bearer " + "*" * len(SECRET), refuses=True, plain=True)


def haproxy(w, build):
    conf = w.write("haproxy.cfg", f"""global
  nbthread 1
  maxconn 9900
  ssl-server-verify required
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  timeout http-keep-alive 300s
frontend in
  bind 127.0.0.1:{PROXY_PORT} ssl crt {w.file('wild.bundle')}
  acl host_ok hdr(host),field(1,:) -m end .bench.test
  acl method_ok method GET POST
  http-request deny unless host_ok method_ok
  acl swap req.hdr(authorization) -m str "{SENT}"
  http-request set-header Authorization "{REAL}" if swap
  default_backend out
backend out
  http-reuse always
  server origin 127.0.0.1:{TLS_PORT} ssl verify required ca-file {w.file('origin-ca.pem')} sni str(h0.bench.test)
""")
    return Peer(["haproxy", "-db", "-f", conf], via="direct", ca="proxy-ca.pem", most=9000)


def nginx(w, build):
    temporary = "".join(f"  {kind}_temp_path {w.file('nginx-' + kind)};\n"
                        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    conf = w.write("nginx.conf", f"""daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid {w.file('nginx.pid')};
error_log stderr crit;
events {{ worker_connections 20000; }}
http {{
  access_log off;
  keepalive_timeout 300s;
  keepalive_requests 100000000;
  client_max_body_size 0;
{temporary}  map $http_authorization $auth {{ default $http_authorization; "{SENT}" "{REAL}"; }}
  upstream origin {{ server 127.0.0.1:{TLS_PORT}; keepalive 256; keepalive_requests 100000000; }}
  ssl_certificate {w.file('wild.pem')};
  ssl_certificate_key {w.file('wild.key')};
  ssl_session_cache shared:bench:10m;
  ssl_protocols TLSv1.2 TLSv1.3;
  server {{ listen 127.0.0.1:{PROXY_PORT} ssl default_server backlog=4096; return 403; }}
  server {{
    listen 127.0.0.1:{PROXY_PORT} ssl;
    server_name *.bench.test;
    location / {{
      proxy_pass https://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header Authorization $auth;
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_ssl_server_name on;
      proxy_ssl_name h0.bench.test;
      proxy_ssl_verify on;
      proxy_ssl_trusted_certificate {w.file('origin-ca.pem')};
    }}
  }}
}}
""")
    return Peer(["nginx", "-p", w.dir, "-c", conf], via="direct", ca="proxy-ca.pem", most=9000)


def squid(w, build):
    helper, db = "/usr/lib/squid/security_file_certgen", w.file("squid-db")
    conf = w.write("squid.conf", f"""http_port 127.0.0.1:{PROXY_PORT} ssl-bump cert={w.file('proxy-ca.bundle')} generate-host-certificates=on dynamic_cert_mem_cache_size=64MB
sslcrtd_program {helper} -s {db} -M 64MB
sslcrtd_children 2 startup=1 idle=1
ssl_bump bump all
tls_outgoing_options cafile={w.file('origin-ca.pem')}
request_header_access Authorization deny all
request_header_replace Authorization {REAL}
acl hosts dstdomain .bench.test
acl methods method GET POST CONNECT
http_access deny !hosts
http_access deny !methods
http_access allow all
cache deny all
cache_mem 8 MB
access_log none
cache_log {w.file('squid.log')}
cache_store_log none
pinger_enable off
pid_filename none
coredump_dir none
workers 1
via off
forwarded_for delete
max_filedescriptors 20000
client_persistent_connections on
server_persistent_connections on
client_idle_pconn_timeout 600 seconds
server_idle_pconn_timeout 600 seconds
""")
    shutil.rmtree(db, ignore_errors=True)
    subprocess.run([helper, "-c", "-s", db, "-M", "64MB"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["chown", "-R", "proxy", db], check=True)
    w.write("squid.log", "")
    shutil.chown(w.file("squid.log"), "proxy")
    return Peer(["squid", "-N", "-f", conf], ca="proxy-ca.pem", hosts=True, plain=True)


def mitmproxy(w, build):
    conf = w.file("mitmproxy")
    shutil.rmtree(conf, ignore_errors=True)
    os.mkdir(conf)
    shutil.copy(w.file("proxy-rsa.bundle"), conf + "/mitmproxy-ca.pem")
    return Peer(["mitmdump", "-q", "--listen-host", "127.0.0.1", "-p", str(PROXY_PORT), "-s",
                 os.path.join(HERE, "mitm_addon.py"), "--set", f"confdir={conf}", "--set", "http2=false", "--set",
                 "flow_detail=0", "--set", f"ssl_verify_upstream_trusted_ca={w.file('origin-ca.pem')}"],
                ca="proxy-rsa.pem", env={"BENCH_SENT": SENT, "BENCH_REAL": REAL}, hosts=True, plain=True,
                most=1000)  # each costs it more than ten milliseconds and 100 KB


# target: how it is set up, the program it needs, whether it needs root (a hosts file of its own, a user to drop to)
PEERS = {
    "direct": (lambda w, build: direct(w), None, False),
    "relay": (relay, None, False),
    "haproxy": (haproxy, "haproxy", False),
    "nginx": (nginx, "nginx", False),
    "squid": (squid, "/usr/lib/squid/security_file_certgen", True),
    "mitmproxy": (mitmproxy, "mitmdump", True),
    "exeat": (exeat, None, False),
}


def missing(name):
    """Why this target cannot be measured here, or None."""
    _, program, root = PEERS[name]
    if program and not shutil.which(program):
        return "%s is not installed" % program
    if root and os.getuid() != 0:
        return "root is needed"
    return None
