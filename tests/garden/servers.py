"""The servers of the garden: how each is started, and what each says that it saw.

Each runs in a directory of its own as an unprivileged user, on two ports of loopback, one in clear and one
with its own TLS (by a HAProxy that passes bytes on where it has none). Proxies stand in front of a Witness.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "system"))
from place import free_port, wait_for  # noqa: E402
from witness import Witness  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
NOBODY = 65534
PYTHON = "/usr/bin/python3"  # Debian's own, whose packages these are


class Server:
    """
    name, clear, tls; needs: the program (and the Python module) that must be there; cannot: words in
    the names of inputs that this server is known not to do, each with the reason beside it; respells:
    its log or what it hands on has other percent-encodings.
    """
    name, needs, module, has_tls, cannot, respells = "", "", None, True, (), False

    def __init__(self, directory, certificate):
        self.directory = os.path.join(directory, self.name)
        os.mkdir(self.directory)
        self.clear, self.tls = free_port(), free_port()
        self.cert, self.key = certificate
        self.processes = []
        self.values = {}

    @classmethod
    def missing(cls):
        """What is not installed, or None."""
        if not shutil.which(cls.needs, path=os.environ["PATH"] + ":/usr/sbin"):
            return cls.needs
        if cls.module and subprocess.run([PYTHON, "-c", "import " + cls.module], stderr=subprocess.DEVNULL).returncode:
            return "python3-" + cls.module
        return None

    def path(self, name):
        return os.path.join(self.directory, name)

    def fill(self, text):
        known = dict(self.values, clear=self.clear, tls=self.tls, cert=self.cert, key=self.key, dir=self.directory,
                     here=HERE, python=PYTHON)
        return re.sub(r"\{(\w+)\}", lambda m: str(known[m.group(1)]), text)

    def write(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(self.fill(text))

    def spawn(self, command, output="output", **environment):
        """command: one text, of words."""
        as_user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        environment = dict(os.environ, PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME=self.directory, **environment)
        with open(self.path(output), "ab") as out:
            self.processes.append(subprocess.Popen(self.fill(command).split(), stdin=subprocess.DEVNULL, stdout=out,
                                                   stderr=out, cwd=self.directory, env=environment,
                                                   start_new_session=True, **as_user))

    def listens(self):
        for port in (self.clear, self.tls):
            try:
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
            except OSError:
                return False
        return True

    def start(self):
        self.configure()
        if os.getuid() == 0:
            for root, folders, files in os.walk(self.directory):
                for name in [root] + [os.path.join(root, n) for n in folders + files]:
                    os.chown(name, NOBODY, NOBODY)
        self.launch()
        if not self.has_tls:
            self.spawn("haproxy -db -f {dir}/front.cfg", "front")
        if not wait_for(self.listens, 30, 0.05):
            with open(self.path("output"), errors="replace") as f:
                raise AssertionError("%s does not come up: %s" % (self.name, f.read()[-1000:]))

    def configure(self):
        if not self.has_tls:
            with open(self.path("both.pem"), "w") as f:
                f.write(open(self.cert).read() + open(self.key).read())
            self.write("front.cfg", "defaults\n mode tcp\n timeout connect 10s\n timeout client 60s\n timeout server 60s\n"
                       "listen front\n bind 127.0.0.1:{tls} ssl crt {dir}/both.pem\n server s 127.0.0.1:{clear}\n")

    def launch(self):
        raise NotImplementedError

    def stop(self):
        """Each was started as a session of its own, so that its workers end with it."""
        for process in self.processes:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


# ---- proxies: an access log, and the witness behind ----

class ProxyServer(Server):
    marks = False  # whether the log has '#' between its parts

    def __init__(self, directory, certificate):
        super().__init__(directory, certificate)
        self.witness = Witness()
        self.values["witness"] = self.witness.port

    def seen(self):
        """(method, target, length, digest) of what was handed on, and what was not even a message."""
        with self.witness.lock:
            return list(self.witness.requests), list(self.witness.broken)

    def logged(self):
        """(method, target, status) by its own log; method None when it saw no request line."""
        with open(self.path("log"), errors="surrogateescape") as f:
            return [self.read_line(line) for line in f.read().split("\n")[:-1]]

    def read_line(self, text):
        """A request line and a status; or, since no target has a '#', method, target and status between those."""
        mark = "#" if self.marks else " "
        request, _, status = text.rpartition(mark)
        words = request.split(mark)
        status = int(status) if status.isdigit() else 0
        if len(words) < 2 or not re.fullmatch("[A-Z-]+", words[0]) or words[0] == "-":
            return None, text, status
        # A log that has URLs makes them of Host; what could be taken for a log's own is written \x22, #22 or \".
        target = re.sub(r"^https?://[^/?*]*", "", words[1])
        target = re.sub(r"(?:\\x|#)([0-9A-F]{2})", lambda m: chr(int(m.group(1), 16)), target)
        return words[0], target.replace('\\"', '"'), status

    def stop(self):
        super().stop()
        self.witness.close()


class Nginx(ProxyServer):
    name = needs = "nginx"
    cannot = ("[hints]",)  # takes 103 for the final answer

    def configure(self):
        self.write("conf", """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error;
events { worker_connections 512; }
http {
    log_format g '$request $status'; access_log {dir}/log g;
    client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fcgi;
    uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
    client_max_body_size 64m; large_client_header_buffers 4 64k;
    server {
        listen 127.0.0.1:{clear}; listen 127.0.0.1:{tls} ssl;
        ssl_certificate {cert}; ssl_certificate_key {key};
        location / { proxy_pass http://127.0.0.1:{witness}; proxy_http_version 1.1; proxy_set_header Connection ""; }
    }
}
""")

    def launch(self):
        self.spawn("nginx -e {dir}/error -c {dir}/conf")


class Apache(ProxyServer):
    name, needs = "apache", "apache2"

    def configure(self):
        modules = ["mpm_event", "authz_core", "proxy", "proxy_http", "ssl", "socache_shmcb"]
        self.write("conf", "".join("LoadModule %s_module /usr/lib/apache2/modules/mod_%s.so\n" % (m, m) for m in modules) + """
ServerRoot {dir}
PidFile {dir}/pid
DefaultRuntimeDir {dir}
Mutex file:{dir} default
ErrorLog {dir}/error
LogFormat "%r %>s" g
CustomLog {dir}/log g
ServerName apache.garden.test
StartServers 1
LimitRequestLine 65536
LimitRequestFieldSize 65536
AllowEncodedSlashes NoDecode
ProxyPass / http://127.0.0.1:{witness}/ nocanon
Listen 127.0.0.1:{clear}
Listen 127.0.0.1:{tls} https
<VirtualHost *:{clear}>
</VirtualHost>
<VirtualHost *:{tls}>
SSLEngine on
SSLCertificateFile {cert}
SSLCertificateKeyFile {key}
</VirtualHost>
""")

    def launch(self):
        self.spawn("apache2 -f {dir}/conf -DFOREGROUND")


class Lighttpd(ProxyServer):
    name = needs = "lighttpd"
    respells = True
    cannot = ("[trailers]",)  # its proxy makes 502 of a chunked answer with trailers

    @classmethod
    def missing(cls):
        return super().missing() or (None if os.path.exists("/usr/lib/lighttpd/mod_openssl.so") else "lighttpd-mod-openssl")

    def configure(self):
        self.write("conf", """
server.modules = ("mod_openssl", "mod_accesslog", "mod_proxy")
server.document-root = "{dir}"
server.bind = "127.0.0.1"
server.port = {clear}
server.errorlog = "{dir}/error"
server.upload-dirs = ("{dir}")
accesslog.filename = "{dir}/log"
accesslog.format = "%r %s"
$SERVER["socket"] == "127.0.0.1:{tls}" {
    ssl.engine = "enable"
    ssl.pemfile = "{cert}"
    ssl.privkey = "{key}"
}
proxy.server = ("" => (("host" => "127.0.0.1", "port" => {witness})))
""")

    def launch(self):
        self.spawn("lighttpd -D -f {dir}/conf")


class Haproxy(ProxyServer):
    name = needs = "haproxy"

    def configure(self):
        with open(self.path("both.pem"), "w") as f:
            f.write(open(self.cert).read() + open(self.key).read())
        self.write("conf", """
global
    log stdout len 65000 format raw local0 info
    tune.bufsize 65536
    tune.http.maxhdr 256
    tune.http.logurilen 65535
defaults
    mode http
    option dontlognull
    timeout connect 10s
    timeout client 60s
    timeout server 60s
frontend f
    bind 127.0.0.1:{clear}
    bind 127.0.0.1:{tls} ssl crt {dir}/both.pem
    log global
    log-format "%r %ST"
    default_backend b
backend b
    server s 127.0.0.1:{witness}
""")

    def launch(self):
        self.spawn("haproxy -db -f {dir}/conf", "log")
        open(self.path("output"), "w").close()


class Squid(ProxyServer):
    name = needs = "squid"
    cannot = ("long targets [16000]",)  # its log cuts what it refuses for length
    respells = True

    def configure(self):
        self.write("conf", """
http_port 127.0.0.1:{clear} accel vhost
https_port 127.0.0.1:{tls} accel vhost tls-cert={cert} tls-key={key}
cache_peer 127.0.0.1 parent {witness} 0 no-query no-digest originserver
never_direct allow all
http_access allow all
cache deny all
strip_query_terms off
logformat g %rm %>ru HTTP %>Hs
access_log stdio:{dir}/log logformat=g
buffered_logs off
cache_log {dir}/error
pid_filename {dir}/pid
coredump_dir {dir}
netdb_filename none
pinger_enable off
shutdown_lifetime 0 seconds
visible_hostname squid.garden.test
max_filedescriptors 1024
""")

    def launch(self):
        self.spawn("squid -N -n garden%d -f {dir}/conf" % self.clear)


class Varnish(ProxyServer):
    name, needs, has_tls, marks = "varnish", "varnishd", False, True
    # From behind it takes neither chunk extensions nor trailers, 103 or an unasked 206; and it drops the body of a GET.
    cannot = ("[chunked]", "[trailers]", "[hints]", "[partial]", "seldom has one [GET] [C", "seldom has one [GET] [T")

    def configure(self):
        super().configure()
        self.write("vcl", 'vcl 4.1;\nbackend default { .host = "127.0.0.1"; .port = "{witness}"; }\n'
                   'sub vcl_recv { if (req.url == "/up") { return (synth(200)); } return (pass); }\n')
        os.mkdir(self.path("run"))

    def launch(self):
        self.spawn("varnishd -F -j none -n {dir}/run -a 127.0.0.1:{clear} -f {dir}/vcl -s malloc,32m "
                   "-p http_req_hdr_len=64k -p http_req_size=128k -p workspace_client=256k -p workspace_backend=256k "
                   "-p vsl_buffer=20k -p vsl_reclen=16300")
        wait_for(lambda: os.path.exists(self.path("run/_.vsm_child/_.index")), 30)
        self.spawn("varnishncsa -n {dir}/run -F %m#%U%q#%s", "log")
        # It attaches some time after it was started, and misses what came before.
        if not wait_for(self.is_logging, 30, 0.2):
            raise AssertionError("varnishncsa writes nothing")

    def is_logging(self):
        try:
            urllib.request.urlopen("http://127.0.0.1:%d/up" % self.clear, timeout=5).close()
        except OSError:
            return False
        return os.path.getsize(self.path("log")) > 0

    def logged(self):
        return [line for line in super().logged() if line[1] != "/up"]


class Nghttpx(ProxyServer):
    name = needs = "nghttpx"
    cannot = ("long targets [7500]", "long targets [16000]")  # lines of its log are cut at 4 KiB
    marks = True

    def configure(self):
        open(self.path("conf"), "w").close()

    def launch(self):
        self.spawn("nghttpx --conf={dir}/conf --frontend=127.0.0.1,{clear};no-tls --frontend=127.0.0.1,{tls} --workers=1 "
                   "--backend=127.0.0.1,{witness} --errorlog-file={dir}/error --accesslog-file={dir}/log "
                   "--request-header-field-buffer=128k --accesslog-format=$method#$path#$status {key} {cert}")


# ---- origins: what their handlers write down ----

class OriginServer(Server):
    def seen(self):
        try:
            with open(self.path("seen")) as f:
                return [tuple(json.loads(line)) for line in f], []
        except FileNotFoundError:
            return [], []

    def logged(self):
        return None

    def run(self, command, output="output"):
        self.spawn(command, output, GARDEN_LOG=self.path("seen"), PYTHONPATH=HERE, PYTHONDONTWRITEBYTECODE="1")


class Node(OriginServer):
    name = needs = "node"

    def launch(self):
        self.run("node {here}/origin.js {clear} {tls} {cert} {key}")


class PythonServer(OriginServer):
    needs, kind = PYTHON, ""

    def launch(self):
        self.run("{python} {here}/origin.py %s {clear} {tls} {cert} {key}" % self.kind)


class HttpServer(PythonServer):
    name, kind = "http-server", "http.server"


class Aiohttp(PythonServer):
    name = kind = module = "aiohttp"
    # 3.8 sends the last chunk behind its answer to HEAD; exeat then drops the connection, sometimes under the next request.
    cannot = tuple("[%s] [HEAD]" % k for k in ("chunked", "trailers", "close", "http10", "hints", "empty-chunked"))


class Tornado(PythonServer):
    name = kind = module = "tornado"


class Waitress(PythonServer):
    name = kind = module = "waitress"
    has_tls = False

    @classmethod
    def missing(cls):
        return super().missing() or (None if Haproxy.missing() is None else "haproxy")


class Gunicorn(OriginServer):
    name = needs = module = "gunicorn"

    def launch(self):
        common = "gunicorn -k gthread --threads 4 --limit-request-line 0 --limit-request-field_size 0 -b 127.0.0.1:"
        self.run(common + "{clear} origin:wsgi")
        self.run(common + "{tls} --certfile {cert} --keyfile {key} origin:wsgi")


class Uvicorn(OriginServer):
    name, needs, module, http = "uvicorn", PYTHON, "uvicorn", "h11"

    def launch(self):
        common = "{python} -m uvicorn --no-access-log --log-level warning --http %s --lifespan off --port " % self.http
        self.run(common + "{clear} origin:asgi")
        self.run(common + "{tls} --ssl-certfile {cert} --ssl-keyfile {key} origin:asgi")


class UvicornHttptools(Uvicorn):
    name, http = "uvicorn-httptools", "httptools"

    @classmethod
    def missing(cls):
        found = subprocess.run([PYTHON, "-c", "import httptools"], stderr=subprocess.DEVNULL).returncode
        return super().missing() or ("python3-httptools" if found else None)


class Reference(ProxyServer):
    """The witness itself: exeat's own bytes, read by a reader that forgives nothing."""
    name, needs = "reference", PYTHON

    def __init__(self, directory, certificate):
        super().__init__(directory, certificate)
        self.clear, self.tls = self.witness.port, self.witness.listen(certificate)

    def configure(self):
        pass

    def launch(self):
        pass

    def logged(self):
        return None


ALL = [Reference, Nginx, Apache, Lighttpd, Haproxy, Squid, Varnish, Nghttpx, Node, HttpServer, Gunicorn, Uvicorn,
       UvicornHttptools, Aiohttp, Tornado, Waitress]
