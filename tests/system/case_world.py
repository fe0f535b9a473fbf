"""The world in which the cases of tests/system/cases are run: policy, secrets, sandboxes and names."""
import base64

from place import Place, Upstream

SECRET_A = "sk-live-0f9Qx7LmV2aBcD4eFgH6iJkL8mNoPqRs"
SECRET_OTHER = "othr-7Tz1xYw3vUt5sRq7pOn9mLk1jIh3gFe5"
SECRET_FORGE = "frgp-Vb7Nm5Qw3Er1Ty9Ui8Op6As4Df2Gh0Jk"
SECRET_BASIC = "bscp-Zq8Wx6Ce4Vr2Bt1Ny3Mu5Li7Ko9Jp0Ha"
# Bytes that no target can hold as they are.
SECRET_QUERY = "qry/Kx+9=Vb&7Nm^5?Qw#3%Er1Ty\"9Ui;8Op6As"
SECRET_COOKIE = "cky/Hd+5=Gs&8Lp:2Xw#6%Rt9Yu'3Io!1Zq4Mn"
SECRET_PATH = "pth/Jf7+Ce=3Bq?5Wn#1%Ly8Ud4Ki2Ox6Rs9Tv"
SECRET_TWICE = "twc-Rk5Mz9Qb3Hn7Wd1Xs4Yf8Lg2Pj6Cv0Ta"
# Bytes that JSON escapes.
SECRET_JSON = 'jsn"Qm4\\Wz7/Hx2+Tb9=Lc5&Pd8Vg1Rk6Yf3Sn0'
SECRET_FORM = "frm+Xq3/Nb7=Kz5&Wd2;Hg9%Tc6Ly8Mv4Pj1Rf0"
ATTACKER = "sk-live-AttackersOwnKey00000000000000000"

POLICY = """
service api {
    host api.allowed.test xn--bcher-kva.allowed.test
    port {port}
    range 127.0.0.0/8
    credential key-a { in header authorization scheme bearer }
    operation read   { GET HEAD /v1/items; GET HEAD /v1/items/**; GET /v1/echo; GET HEAD OPTIONS / }
    operation write  { POST /v1/items; POST /v1/messages; PUT PATCH DELETE /v1/items/*; POST /v1/files }
    operation repos  { GET /repos/me/*/** }
    operation public anonymous { GET HEAD /public/**; POST /public/form }
    operation ungranted { GET /v1/organizations }
    never { * /v1/items/*/share }
}
service other {
    host other.allowed.test
    port {port}
    range 127.0.0.0/8
    credential key-other { in header x-api-key }
    operation every { * /; * /** }
}
service basic {
    host git.allowed.test
    port {port}
    range 127.0.0.0/8
    credential key-basic { in basic password }
    operation every { * /; * /** }
}
service open {
    host open.allowed.test *.wild.test
    port {port}
    range 127.0.0.0/8
    operation every { GET HEAD POST /; GET HEAD POST /** }
}
service any {
    host any.allowed.test
    port {port}
    range 127.0.0.0/8
    accept any credential
    operation every { * /; * /** }
}
service plain {
    host clear.allowed.test
    port {clear_port}
    range 127.0.0.0/8
    clear
    operation every { GET POST /; GET POST /** }
}
service forge {
    host forge.allowed.test
    port {port}
    range 127.0.0.0/8
    credential key-forge { in basic password }
    operation fetch { GET /me/*/info/refs; POST /me/*/git-upload-pack }
    operation push { GET /me/site.git/info/refs; POST /me/site.git/git-receive-pack }
    operation read { GET /repos/me/*; GET /repos/me/*/issues }
}
service registry {
    host registry.allowed.test
    port {port}
    range 127.0.0.0/8
    operation fetch { GET HEAD /**; POST /-/npm/v1/security/audits/quick }
    never { * /-/user/** }
}
service rules {
    host rules.allowed.test
    port {port}
    range 127.0.0.0/8
    path allow encoded-slash parameters
    limit body 64
    operation fetch   { git fetch me/{repository} }
    operation list    { GET /list { query mode is read; query only }; GET /list { query mode is read; query page is number; query only } }
    operation put     { PUT /files/{name} { content-type text/plain; no header x-callback; body at most 16 } }
    operation issue   { GET /issues/{number:int} }
    operation ask     { POST /ask { body /model is small } }
    operation package { GET /@scope%2Fpkg; GET /p/{id} }
    operation send    { POST /send }
    operation resolve { POST /dns-query { content-type application/dns-message }; GET /dns-query { query dns matches * } }
    never { POST /send { query to matches *evil* }; * /p/secret/**; POST /send { body /url } }
}
service elsewhere-in-it {
    host places.allowed.test
    port {port}
    range 127.0.0.0/8
    credential key-query  { in query app[id]; for by-query }
    credential key-cookie { in cookie session; for by-cookie }
    credential key-path   { in path 2; for by-path }
    credential key-twice  { in header x-twice; at most 2; for twice }
    credential key-unfit  { in cookie unfit; for unfit }
    credential key-json   { in json /auth/secret~1word; for by-json }
    credential key-form   { in form pass[word]; for by-form by-form-or-none }
    accept cookies
    path allow parameters
    operation by-json { POST /j; POST /k { body /model is small } }
    operation by-form { POST /f }
    operation by-form-or-none anonymous { POST /g }
    operation by-none { POST /o }
    operation by-query anonymous { GET /q }
    operation by-cookie { GET /c }
    operation by-path   { GET /p/{key}/send }
    operation twice     { GET /t }
    operation unfit     { GET /u }
    operation plain     { GET /n/{id}; GET /n/{id}/more }
    operation limited   { GET /l }
    operation observed  { GET /o }
}
service bodies {
    host bodies.allowed.test
    port {port}
    range 127.0.0.0/8
    operation chat   { POST /chat { body /model in [small, "medium 2"]; no body /tools/*/url; no body /messages/*/source/url } }
    operation graph  { POST /graphql graphql query [viewer, repository]; GET /graphql graphql query [viewer] }
    operation calls  { POST /rpc jsonrpc [ping, "tools/list"] }
    operation tools  { POST /mcp mcp initialize; POST /mcp mcp tools/call [search] { body /params/arguments/q is string } }
    operation hooks  { POST /hooks }
    operation upload { PUT /files/{name} { body at most 16 } }
    never { POST /hooks { body /config/url } }
}
service blocked { host blocked.test; never all }
service elsewhere { host elsewhere.test; port {port}; operation every { * /** } }
service private { host private.test; port {port}; operation every { * /; * /** } }
sandbox a {
    grant api read write repos public
    grant other all
    grant basic all
    grant open all
    grant any all
    grant plain all
    grant private all
    grant forge fetch read
    grant registry all
    grant rules all
    grant elsewhere-in-it by-query by-cookie by-path twice unfit plain by-json by-form by-form-or-none by-none
    grant elsewhere-in-it limited uses 5
    grant elsewhere-in-it observed mode observe
    grant bodies all
}
sandbox b { grant api read; grant open all }
sandbox c { grant api read; grant open all }
sandbox d { grant api read; grant open all }
sandbox e { }
"""

HOSTS = ("api.allowed.test", "other.allowed.test", "git.allowed.test", "open.allowed.test", "any.allowed.test",
         "clear.allowed.test", "forge.allowed.test", "registry.allowed.test", "rules.allowed.test", "places.allowed.test",
         "bodies.allowed.test", "a.wild.test",
         "xn--bcher-kva.allowed.test", "a_b.wild.test")

SECRETS = {"key-a": (SECRET_A, "sk-live-"), "key-other": (SECRET_OTHER, "othr-"), "key-basic": (SECRET_BASIC, None),
           "key-forge": (SECRET_FORGE, None), "key-query": (SECRET_QUERY, "qry:"), "key-cookie": (SECRET_COOKIE, None),
           "key-path": (SECRET_PATH, "pth:"), "key-twice": (SECRET_TWICE, None), "key-unfit": (SECRET_QUERY + ";", None),
           "key-json": (SECRET_JSON, None), "key-form": (SECRET_FORM, "frm:")}


class World(Place):
    """The place, with a second upstream that speaks in clear and shares the first one's memory."""

    def __init__(self):
        dns = {h: ["127.0.0.1"] for h in HOSTS}
        dns["private.test"] = ["10.1.2.3"]
        super().__init__(POLICY, {"a": "sandbox a", "b": "sandbox b", "e": "sandbox e", "shared": "shared c d"},
                         SECRETS, ["a", "b", "c", "d"], hosts=HOSTS, dns=dns, values={"clear_port": 0},
                         config="limit body-stall-time 5\nlimit head-time 8\nlimit new-names 100000\n"
                                "limit auth-failures 100000\n")
        self.clear = Upstream()
        self.values["clear_port"] = self.clear.port
        up = self.upstream
        self.clear.requests, self.clear.broken, self.clear.lock = up.requests, up.broken, up.lock
        self.clear.script = lambda request, stream: up.script(request, stream)

    def tunnel(self, sandbox, authority, fields=b""):
        """c and d prove who they are at the listener that they share."""
        if sandbox in ("c", "d"):
            fields += self.identity(sandbox)
            sandbox = "shared"
        return super().tunnel(sandbox, authority, fields)

    def __exit__(self, *ignored):
        self.clear.close()
        super().__exit__()


def python_text(value):
    """As the strings of a case spell it."""
    return "".join("\\x%02x" % ord(c) if c in '\\"${}(),' else c for c in value)


def values(place):
    port = str(place.values["port"])
    return {
        "PORT": port, "CLEARPORT": str(place.values["clear_port"]),
        "NAME": "api.allowed.test", "HOST": "api.allowed.test:" + port, "OTHER": "other.allowed.test:" + port,
        "GIT": "git.allowed.test:" + port, "OPEN": "open.allowed.test:" + port, "ANY": "any.allowed.test:" + port,
        "CLEAR": "clear.allowed.test:%d" % place.values["clear_port"],
        "PH_A": place.placeholder("a", "key-a"), "PH_B": place.placeholder("b", "key-a"),
        "PH_OTHER": place.placeholder("a", "key-other"), "PH_BASIC": place.placeholder("a", "key-basic"),
        "FORGE": "Authorization: Basic %s\\r\\n" % base64.b64encode(
            ("me:" + place.placeholder("a", "key-forge")).encode()).decode(),
        "PH_C": place.placeholder("c", "key-a"),
        "PH_QUERY": place.placeholder("a", "key-query"), "PH_COOKIE": place.placeholder("a", "key-cookie"),
        "PH_PATH": place.placeholder("a", "key-path"), "PH_TWICE": place.placeholder("a", "key-twice"),
        "PH_UNFIT": place.placeholder("a", "key-unfit"), "PLACES": "places.allowed.test:" + port,
        "SECRET_QUERY": python_text(SECRET_QUERY), "SECRET_COOKIE": python_text(SECRET_COOKIE),
        "PH_JSON": place.placeholder("a", "key-json"), "PH_FORM": place.placeholder("a", "key-form"),
        "SECRET_JSON": python_text(SECRET_JSON), "SECRET_FORM": python_text(SECRET_FORM),
        "SECRET_PATH": python_text(SECRET_PATH), "SECRET_TWICE": SECRET_TWICE,
        "TOKEN_C": place.token("c"), "TOKEN_D": place.token("d"),
        "SECRET_A": SECRET_A, "SECRET_OTHER": SECRET_OTHER, "SECRET_BASIC": SECRET_BASIC, "ATTACKER": ATTACKER,
        "AUTH": "Authorization: Bearer %s" % place.placeholder("a", "key-a"),
        "HEAD": "Host: api.allowed.test:%s\\r\\nAuthorization: Bearer %s\\r\\n" % (port, place.placeholder("a", "key-a")),
    }


def hidden(place):
    return [p for s in place.sandboxes.values() for p in s["credentials"].values()]


def world():
    return World(), values, [secret for secret, like in SECRETS.values()], hidden
