#!/usr/bin/env bash
# Installs what is missing of the Debian packages that building and testing need. Asks for sudo when
# not root; does nothing, quickly and offline, when everything is there.
#
# No service is started or enabled by it; one that is there already is left as it is.
#
#   dependencies.sh [test] [bench] [interop] [soak] [garden]
set -euo pipefail

# COMMAND PACKAGE ...: the packages whose command is not there.
missing_command() {
    while [ $# -gt 0 ]; do
        PATH=$PATH:/usr/sbin command -v "$1" >/dev/null || echo "$2"
        shift 2
    done
}

packages="gcc make libc6-dev pkg-config libssl-dev libevent-dev libc-ares-dev libsqlite3-dev libseccomp-dev zlib1g-dev
          libmaxminddb-dev libpsl-dev libidn2-dev libjansson-dev libcmocka-dev openssl python3 ca-certificates curl"
for extra in "$@"; do
    case $extra in
    test) packages="$packages iproute2 nftables util-linux faketime mandoc" ;;
    bench) packages="$packages haproxy squid-openssl mitmproxy" ;;
    interop) packages="$packages testssl.sh git wget ruby php-cli php-curl libwww-perl liblwp-protocol-https-perl python3-requests
                       python3-httpx python3-aiohttp python3-pip httpie aria2
                       iodine dns2tcp ptunnel-ng proxytunnel httptunnel corkscrew
                       $(missing_command node nodejs npm npm go golang-go qemu-system-x86_64 qemu-system-x86)" ;;
    interop-all) packages="$packages chromium libnss3-tools awscli gh r-base-core python3-grpcio python3-h2 python3-boto3 azure-cli skopeo
                           subversion apache2-bin libapache2-mod-svn dnf dnf-plugins-core composer ruby-bundler pipx python3-poetry
                       $(missing_command kubectl kubernetes-client javac default-jdk-headless mvn maven cargo cargo)" ;;
    soak) packages="$packages util-linux slowhttptest" ;;
    garden) packages="$packages lighttpd-mod-openssl gunicorn python3-uvicorn python3-h11 python3-httptools python3-aiohttp
                      python3-tornado python3-waitress
                      $(missing_command nginx nginx apache2 apache2-bin lighttpd lighttpd haproxy haproxy squid squid-openssl)
                      $(missing_command varnishd varnish nghttpx nghttp2-proxy node nodejs)" ;;
    *) echo "dependencies.sh: unknown set '$extra'" >&2; exit 2 ;;
    esac
done

missing=
for p in $packages; do
    dpkg-query -W -f '${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || missing="$missing $p"
done
# llhttp is a library of its own from Debian 13 on; before that its sources come with node-llhttp.
if [ ! -e /usr/include/llhttp.h ] && [ ! -e /usr/share/llhttp/llhttp.c ]; then llhttp=yes; else llhttp=; fi
if [ -z "$missing" ] && [ -z "$llhttp" ]; then exit 0; fi

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    echo "dependencies.sh: this takes root, and there is no sudo. As root:" >&2
    echo "  apt-get install --no-install-recommends$missing${llhttp:+ libllhttp-dev}" >&2
    if [ -n "$llhttp" ]; then echo "  (Debian 12: node-llhttp for libllhttp-dev)" >&2; fi
    exit 1
fi
echo "installing:$missing${llhttp:+ llhttp}"
export DEBIAN_FRONTEND=noninteractive
as_root apt-get -q update
if [ -n "$llhttp" ]; then
    if apt-cache show libllhttp-dev >/dev/null 2>&1; then missing="$missing libllhttp-dev"; else missing="$missing node-llhttp"; fi
fi
# The maintainer scripts of servers ask policy-rc.d before they start anything.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
    trap 'as_root rm -f $policy' EXIT
    printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
    as_root chmod 755 $policy
fi
# shellcheck disable=SC2086
as_root apt-get -q install -y --no-install-recommends $missing
for p in $missing; do
    case $p in
    nginx | lighttpd | haproxy | varnish) unit=$p ;;
    squid-openssl) unit=squid ;;
    nghttp2-proxy) unit=nghttpx ;;
    iodine) unit=iodined ;;
    ptunnel-ng | dns2tcp) unit=$p ;;
    *) continue ;;
    esac
    if command -v systemctl >/dev/null; then as_root systemctl --quiet disable $unit 2>/dev/null || true; fi
done
