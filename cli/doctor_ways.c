#include "base/base64.h"
#include "base/loop.h"
#include "base/peer.h"
#include "cli/doctor.h"
#include "cli/json_scan.h"
#include "policy/echo.h"
#include "run/probe_network.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MS = 5000, ANSWER_MAX = 64 << 10, PIECE = 4096 };

const char *way_name(enum way w) {
    static const char *const names[] = {[WAY_OF_ENVIRONMENT] = "environment",
                                        [WAY_OF_SOCKS] = "socks5",
                                        [WAY_OF_NONE] = "transparent",
                                        [WAY_OF_SOCKET] = "unix"};
    return names[w];
}

/* ---- what the environment says ---- */

/* "http://user:password@host:port/", of which only the port may be missing. */
static bool read_proxy(struct ways *w) {
    const char *names[] = {"https_proxy", "HTTPS_PROXY", "http_proxy"}, *url = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !url; i++)
        url = getenv(names[i]);
    struct view rest = view_str(url);
    size_t scheme = view_search(rest, VIEW("://"));
    if (scheme < rest.n)
        rest = view_skip(rest, scheme + 3);
    rest = view_head(rest, view_find(rest, '/'));
    if (rest.n == 0 || view_cstr(rest, w->proxy, sizeof w->proxy) != 0)
        return false;
    size_t at = view_find(rest, '@');
    if (at < rest.n && view_cstr(view_head(rest, at), w->login, sizeof w->login) != 0)
        return false;
    struct view port = at < rest.n ? view_skip(rest, at + 1) : rest;
    struct view host = view_cut(&port, ':');
    return view_cstr(host, w->host, sizeof w->host) == 0 &&
           view_cstr(port.n ? port : VIEW("80"), w->port, sizeof w->port) == 0;
}

/* ---- connections; -1 with errno ---- */

static int connect_proxy(const struct ways *w) {
    struct addrinfo *found = NULL;
    struct endpoint e = {.n = 0};
    if (getaddrinfo(w->host, w->port, &(struct addrinfo){.ai_socktype = SOCK_STREAM}, &found) !=
        0) {
        errno = EHOSTUNREACH;
        return -1;
    }
    memcpy(&e.address, found->ai_addr, found->ai_addrlen);
    e.n = found->ai_addrlen;
    freeaddrinfo(found);
    return endpoint_connect(&e, ANSWER_MS);
}

/* ---- asking ---- */

/* Appends until n bytes are there, or the end; false: neither in time. */
static bool hear(int fd, size_t n, int wait_ms, struct buf *in) {
    uint64_t end = clock_mono() + (uint64_t)wait_ms * 1000000u;
    for (uint64_t now = clock_mono(); now < end && buf_len(in) < n; now = clock_mono()) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        uint8_t *to = buf_reserve(in, PIECE);
        if (!to || poll(&one, 1, (int)((end - now) / 1000000u) + 1) != 1)
            return false;
        ssize_t got = recv(fd, to, n - buf_len(in) < PIECE ? n - buf_len(in) : PIECE, 0);
        if (got <= 0)
            return got == 0;
        buf_commit(in, (size_t)got);
    }
    return buf_len(in) >= n;
}

static bool say(int fd, struct view bytes) {
    return send(fd, bytes.p, bytes.n, MSG_NOSIGNAL) == (ssize_t)bytes.n;
}

/* What stands behind the head of the answer, when it is the echo host's. */
static bool read_echo(struct view in, char *sandbox, size_t size) {
    struct view body = view_skip(in, view_search(in, VIEW("\r\n\r\n"))), value, word;
    body = view_skip(body, view_find(body, '{'));
    return json_member(body, "echo", &value) && view_equal(value, VIEW("\"exeat\"")) &&
           json_member(body, "sandbox", &value) && json_word(value, &word) &&
           view_cstr(word, sandbox, size) == 0;
}

/* target: absolute for a proxy. Closes fd. */
static bool ask(int fd, const char *target, const char *login, int wait_ms, char *sandbox,
                size_t size) {
    struct buf out, in;
    buf_init(&out, 4096);
    buf_init(&in, ANSWER_MAX + PIECE);
    buf_printf(&out, "GET %s HTTP/1.1\r\nHost: " ECHO_HOST "\r\nConnection: close\r\n", target);
    if (*login) {
        buf_put_str(&out, "Proxy-Authorization: Basic ");
        base64_encode(view_str(login), &out);
        buf_put_str(&out, "\r\n");
    }
    buf_put_str(&out, "\r\n");
    bool ok = buf_ok(&out) && say(fd, buf_view(&out));
    if (ok)
        (void)hear(fd, ANSWER_MAX, wait_ms, &in);
    ok = ok && read_echo(buf_view(&in), sandbox, size);
    close(fd);
    buf_free(&out);
    buf_free(&in);
    return ok;
}

bool ways_ask(int fd, const char *login, int wait_ms, char *sandbox, size_t size) {
    return ask(fd, "http://" ECHO_HOST "/doctor", login, wait_ms, sandbox, size);
}

/* ---- SOCKS5 (RFC 1928, 1929) ---- */

static bool is_heard(int fd, struct view sent, struct view wanted, size_t n) {
    struct buf in;
    buf_init(&in, 2 * PIECE);
    bool ok = say(fd, sent) && hear(fd, n, ANSWER_MS, &in) && view_starts(buf_view(&in), wanted);
    buf_free(&in);
    return ok;
}

static bool log_in(int fd, const char *login) {
    struct view password = view_str(login), user = view_cut(&password, ':');
    struct buf b;
    buf_init(&b, 1024);
    buf_put_u8(&b, 1);
    buf_put_u8(&b, (uint8_t)user.n);
    buf_put(&b, user);
    buf_put_u8(&b, (uint8_t)password.n);
    buf_put(&b, password);
    bool ok = is_heard(fd, buf_view(&b), VIEW("\1\0"), 2);
    buf_free(&b);
    return ok;
}

static bool open_socks(int fd, const char *login) {
    static const char request[] = "\5\1\0\3\x13" ECHO_HOST "\0\x50";
    bool ok = *login ? is_heard(fd, VIEW("\5\1\2"), VIEW("\5\2"), 2) && log_in(fd, login)
                     : is_heard(fd, VIEW("\5\1\0"), VIEW("\5\0"), 2);
    return ok && is_heard(fd, view_of(request, sizeof request - 1), VIEW("\5\0"), 10);
}

/* ---- each way ---- */

static bool by_way(enum way way, int fd, struct ways *w) {
    bool proxy = way == WAY_OF_ENVIRONMENT || way == WAY_OF_SOCKET;
    if (way == WAY_OF_SOCKS && !open_socks(fd, w->login)) {
        close(fd);
        return false;
    }
    return proxy ? ways_ask(fd, w->login, ANSWER_MS, w->sandbox, sizeof w->sandbox)
                 : ask(fd, "/doctor", "", ANSWER_MS, w->sandbox, sizeof w->sandbox);
}

static const char *fix_of(enum way way) {
    static const char *const fixes[] = {
        [WAY_OF_ENVIRONMENT] =
            "set what `exeat env` prints for this sandbox, and leave it its listener",
        [WAY_OF_SOCKS] = "set what `exeat env` prints for this sandbox, and leave it its listener",
        [WAY_OF_NONE] =
            ("run it by `exeat run`, or redirect its ports 80, 443 and 53 to `listen transparent` "
             "and `listen dns` (docs/ways-in.md)"),
        [WAY_OF_SOCKET] = "mount the sandbox's `listen unix` socket at the path of EXEAT_SOCKET"};
    return fixes[way];
}

/* An address of nobody's, which only something that captures connections answers for. */
static int connect_way(enum way way, const struct ways *w, char *what, size_t size) {
    struct endpoint e;
    switch (way) {
    case WAY_OF_SOCKET:
        snprintf(what, size, "%s", w->socket);
        return peer_connect(w->socket, SOCK_STREAM);
    case WAY_OF_NONE:
        endpoint_of("192.0.2.1", 80, &e);
        snprintf(what, size, "%s", e.text);
        return endpoint_connect(&e, ANSWER_MS);
    default:
        snprintf(what, size, "%s:%s", w->host, w->port);
        return connect_proxy(w);
    }
}

static void try_way(struct doctor *d, struct ways *w, enum way way) {
    char what[sizeof w->host + sizeof w->port + 1];
    int fd = connect_way(way, w, what, sizeof what);
    const char *why = fd < 0 ? strerror(errno) : "what answers is not exeat";
    w->works[way] = fd >= 0 && by_way(way, fd, w);
    if (w->works[way])
        doctor_add(d, &(struct doctor_row){"way", way_name(way), what, "works", w->sandbox, NULL});
    else
        doctor_add(d, &(struct doctor_row){"way", way_name(way), what, "fails", why, fix_of(way)});
}

static void tell_absent(struct doctor *d, enum way way, const char *variable) {
    doctor_add(d, &(struct doctor_row){"way", way_name(way), variable, "absent", "not set", NULL});
}

static void try_name(struct doctor *d) {
    struct addrinfo *found = NULL;
    char address[64] = "";
    int failure =
        getaddrinfo(ECHO_HOST, NULL, &(struct addrinfo){.ai_socktype = SOCK_STREAM}, &found);
    if (failure != 0) {
        doctor_add(d, &(struct doctor_row){"way", "dns", ECHO_HOST, "fails", gai_strerror(failure),
                                           fix_of(WAY_OF_NONE)});
        return;
    }
    getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof address, NULL, 0,
                NI_NUMERICHOST);
    freeaddrinfo(found);
    doctor_add(d, &(struct doctor_row){"way", "dns", ECHO_HOST, "works", address, NULL});
}

void ways_try(struct doctor *d, struct ways *w) {
    *w = (struct ways){.socket = getenv("EXEAT_SOCKET")};
    if (read_proxy(w)) {
        try_way(d, w, WAY_OF_ENVIRONMENT);
        try_way(d, w, WAY_OF_SOCKS);
    } else {
        tell_absent(d, WAY_OF_ENVIRONMENT, "https_proxy");
        tell_absent(d, WAY_OF_SOCKS, "https_proxy");
    }
    try_way(d, w, WAY_OF_NONE);
    try_name(d);
    if (w->socket)
        try_way(d, w, WAY_OF_SOCKET);
    else
        tell_absent(d, WAY_OF_SOCKET, "EXEAT_SOCKET");
}
