#include "run/probe_network.h"

#include "base/bytes.h"
#include "base/digest.h"
#include "base/loop.h"
#include "policy/echo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char fix_network[] =
    "give the sandbox a network with no way out but exeat's listener: `exeat run`, or a firewall "
    "that rejects all else";
static const char fix_target[] = "a firewall that rejects instead of dropping makes this plain; so "
                                 "does naming ADDRESS:PORT of a "
                                 "server of yours outside that answers";

/* ---- addresses ---- */

const char *const probe_nowhere[PROBE_NOWHERE] = {"192.0.2.1", "198.51.100.1", "2001:db8::1"};

bool probe_is_nowhere(struct view end) {
    struct authority a;
    char text[ADDRESS_TEXT_SIZE];
    if (authority_parse(end, 0, &a, NULL) != 0 || a.kind != HOST_ADDRESS)
        return false;
    address_format(&a.address, text);
    for (size_t i = 0; i < PROBE_NOWHERE; i++)
        if (strcmp(text, probe_nowhere[i]) == 0)
            return true;
    return false;
}

bool endpoint_of(const char *address, uint16_t port, struct endpoint *out) {
    struct sockaddr_in *four = (struct sockaddr_in *)&out->address;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&out->address;
    memset(out, 0, sizeof *out);
    bool is_six = inet_pton(AF_INET6, address, &six->sin6_addr) == 1;
    if (is_six) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
        out->n = sizeof *six;
    } else if (inet_pton(AF_INET, address, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        out->n = sizeof *four;
    }
    snprintf(out->text, sizeof out->text, is_six ? "[%s]:%u" : "%s:%u", address, port);
    return out->n > 0;
}

static bool is_ready(int fd, short events, int wait_ms) {
    struct pollfd one = {.fd = fd, .events = events};
    return poll(&one, 1, wait_ms) == 1;
}

static int open_to(const struct endpoint *e, int type) {
    int fd = socket(e->address.ss_family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&e->address, e->n) != 0 &&
        errno != EINPROGRESS) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

int endpoint_connect(const struct endpoint *e, int wait_ms) {
    int fd = open_to(e, SOCK_STREAM), why = ETIMEDOUT;
    socklen_t n = sizeof why;
    if (fd < 0)
        return -1;
    if (is_ready(fd, POLLOUT, wait_ms) && getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &n) == 0 &&
        why == 0)
        return fd;
    close(fd);
    errno = why;
    return -1;
}

/* Said by this kernel, or by a router for it: nobody took it. Others are troubles of our own. */
static bool is_refusal(int why) {
    static const int refusals[] = {ECONNREFUSED, ECONNRESET,    ENETUNREACH,    EHOSTUNREACH,
                                   EHOSTDOWN,    ENETDOWN,      EACCES,         EPERM,
                                   EAFNOSUPPORT, EADDRNOTAVAIL, EPROTONOSUPPORT};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (why == refusals[i])
            return true;
    return false;
}

/* What could not be sent to, or was not answered. */
static void tell_failure(const struct probe *p, const char *probe, const char *what, int why) {
    if (is_refusal(why))
        probe_tell(p, probe, what, PROBE_CONTAINED, NULL, "%s", strerror(why));
    else if (why == ETIMEDOUT)
        probe_tell(p, probe, what, PROBE_UNSURE, fix_target,
                   "nobody answers: dropped, or on its way");
    else
        probe_tell(p, probe, what, PROBE_UNSURE, "mend what keeps the test from being made", "%s",
                   strerror(why));
}

/* As endpoint_of; says it when the text is none (an address with a zone). */
static bool find_endpoint(const struct probe *p, const char *probe, const char *address,
                          uint16_t port, struct endpoint *out) {
    if (endpoint_of(address, port, out))
        return true;
    tell_failure(p, probe, out->text, EINVAL);
    return false;
}

/* ---- answers ---- */

/* Reads until the text is there, or it is sure not to come. */
static bool is_answered_with(int fd, const char *const *texts, int wait_ms) {
    char in[4096];
    size_t n = 0;
    uint64_t end = clock_mono() + (uint64_t)wait_ms * 1000000u;
    for (uint64_t now = clock_mono(); now < end && n < sizeof in; now = clock_mono()) {
        if (!is_ready(fd, POLLIN, (int)((end - now) / 1000000u) + 1))
            return false;
        ssize_t got = recv(fd, in + n, sizeof in - n, 0);
        if (got <= 0)
            return false;
        n += (size_t)got;
        for (size_t i = 0; texts[i]; i++)
            if (view_search(view_of(in, n), view_str(texts[i])) < n)
                return true;
    }
    return false;
}

/* Whatever port it was meant for, exeat answers HTTP, by the echo host's answer or by a refusal. */
static bool is_exeat(int fd, int wait_ms) {
    static const char request[] =
        "GET / HTTP/1.1\r\nHost: " ECHO_HOST "\r\nConnection: close\r\n\r\n";
    static const char *const marks[] = {"exeat-refusal: ", "\"echo\":\"exeat\"", "exeat: ", NULL};
    return send(fd, request, sizeof request - 1, MSG_NOSIGNAL) == (ssize_t)sizeof request - 1 &&
           is_answered_with(fd, marks, wait_ms);
}

/* ---- connections ---- */

void probe_tcp(const struct probe *p, const char *address, uint16_t port) {
    struct endpoint e;
    if (!find_endpoint(p, "tcp", address, port, &e))
        return;
    int fd = endpoint_connect(&e, p->wait_ms);
    if (fd < 0) {
        tell_failure(p, "tcp", e.text, errno);
        return;
    }
    if (is_exeat(fd, p->wait_ms))
        probe_tell(p, "tcp", e.text, PROBE_CONTAINED, NULL, "exeat takes it");
    else
        probe_tell(p, "tcp", e.text, PROBE_ESCAPED, fix_network,
                   "somebody who is not exeat takes the connection");
    close(fd);
}

/* ---- datagrams ---- */

/* A long header of a version that nobody has: every QUIC server answers it (RFC 9000 6.1). */
static size_t write_quic(uint8_t *out, size_t size) {
    static const uint8_t head[] = {0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0};
    memset(out, 0, size);
    memcpy(out, head, sizeof head);
    return size;
}

static int send_and_wait(const struct endpoint *e, struct view datagram, int wait_ms) {
    uint8_t byte;
    int fd = open_to(e, SOCK_DGRAM);
    if (fd < 0)
        return errno;
    int why = send(fd, datagram.p, datagram.n, 0) < 0 ? errno : 0;
    if (why == 0 && !is_ready(fd, POLLIN, wait_ms))
        why = ETIMEDOUT;
    if (why == 0 && recv(fd, &byte, 1, 0) < 0)
        why = errno;
    close(fd);
    return why;
}

void probe_udp(const struct probe *p, const char *address, uint16_t port) {
    enum { QUIC_PORT = 443, QUIC_SIZE = 1200 };
    uint8_t datagram[QUIC_SIZE];
    struct endpoint e;
    const char *name = port == QUIC_PORT ? "quic" : "udp";
    size_t n = write_quic(datagram, sizeof datagram);
    if (!find_endpoint(p, name, address, port, &e))
        return;
    int why = send_and_wait(&e, view_of(datagram, n), p->wait_ms);
    if (why == 0)
        probe_tell(p, name, e.text, PROBE_ESCAPED, fix_network, "somebody answers a datagram");
    else
        tell_failure(p, name, e.text, why);
}

/* ---- questions ---- */

enum { DNS_PORT = 53, QUESTION_MAX = 128, LENGTH_SIZE = 2, NONCE_SIZE = 6 };

static const char name_end[] = ".exeat-doctor.invalid";

bool probe_is_name(struct view name) {
    if (name.n != 2 * NONCE_SIZE + sizeof name_end - 1 || !view_ends(name, view_str(name_end)))
        return false;
    for (size_t i = 0; i < 2 * NONCE_SIZE; i++)
        if (hex_value(name.p[i]) < 0)
            return false;
    return true;
}

static void put_labels(struct buf *b, struct view name) {
    while (name.n > 0) {
        struct view label = view_cut(&name, '.');
        buf_put_u8(b, (uint8_t)label.n);
        buf_put(b, label);
    }
    buf_put_u8(b, 0);
}

/* For the address of a name that does not exist, with EDNS, so that exeat says that it is exeat. */
static size_t write_question(uint8_t out[QUESTION_MAX]) {
    uint8_t nonce[NONCE_SIZE];
    char name[2 * NONCE_SIZE + sizeof name_end];
    struct buf b;
    random_bytes(nonce, sizeof nonce);
    hex_encode(view_of(nonce, sizeof nonce), name);
    memcpy(name + 2 * NONCE_SIZE, name_end, sizeof name_end);
    buf_init(&b, QUESTION_MAX);
    buf_put(&b, view_of(nonce, 2));
    buf_put(&b, VIEW("\1\0\0\1\0\0\0\0\0\1"));
    put_labels(&b, view_str(name));
    buf_put(&b, VIEW("\0\1\0\1"));
    buf_put(&b, VIEW("\0\0\x29\4\xd0\0\0\0\0\0\0"));
    size_t n = buf_len(&b);
    view_copy(buf_view(&b), (char *)out);
    buf_free(&b);
    return n;
}

static int open_question(const struct endpoint *e, bool tcp, int wait_ms) {
    uint8_t message[LENGTH_SIZE + QUESTION_MAX];
    size_t n = write_question(message + LENGTH_SIZE);
    int fd = tcp ? endpoint_connect(e, wait_ms) : open_to(e, SOCK_DGRAM);
    message[0] = (uint8_t)(n >> 8);
    message[1] = (uint8_t)n;
    struct view all = view_of(message, LENGTH_SIZE + n),
                out = tcp ? all : view_skip(all, LENGTH_SIZE);
    if (fd >= 0 && send(fd, out.p, out.n, MSG_NOSIGNAL) < 0) {
        int why = errno;
        close(fd);
        errno = why;
        return -1;
    }
    return fd;
}

/* The error that waits there, or 0. */
static int failure_of(int fd) {
    int why = 0;
    socklen_t n = sizeof why;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &why, &n) == 0 ? why : errno;
}

void probe_dns(const struct probe *p, const char *server, bool tcp) {
    static const char *const marks[] = {"exeat: ", NULL};
    struct endpoint e;
    char what[sizeof e.text + 8];
    if (!find_endpoint(p, "dns", server, DNS_PORT, &e))
        return;
    int fd = open_question(&e, tcp, p->wait_ms);
    int why = fd < 0 ? errno : !is_ready(fd, POLLIN, p->wait_ms) ? ETIMEDOUT : failure_of(fd);
    snprintf(what, sizeof what, "%s %s", e.text, tcp ? "tcp" : "udp");
    if (why != 0)
        tell_failure(p, "dns", what, why);
    else if (is_answered_with(fd, marks, p->wait_ms))
        probe_tell(p, "dns", what, PROBE_CONTAINED, NULL, "exeat answers");
    else
        probe_tell(p, "dns", what, PROBE_ESCAPED,
                   "let nothing but exeat's DNS be reached on port 53: questions carry data out",
                   "a server that is not exeat answers");
    if (fd >= 0)
        close(fd);
}

/* ---- sockets of other kinds ---- */

void probe_sockets(const struct probe *p) {
    static const struct {
        const char *probe, *what;
        int family, type, protocol;
        enum probe_verdict verdict; /* when it can be made */
        const char *why, *fix;
    } kinds[] = {
        {"raw", "IPv4", AF_INET, SOCK_RAW, IPPROTO_ICMP, PROBE_ESCAPED,
         "raw sockets can be made, for packets of any shape", "take CAP_NET_RAW from the sandbox"},
        {"raw", "IPv6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6, PROBE_ESCAPED,
         "raw sockets can be made, for packets of any shape", "take CAP_NET_RAW from the sandbox"},
        {"raw", "packet", AF_PACKET, SOCK_RAW, 0, PROBE_ESCAPED,
         "packet sockets can be made, past every rule of the network",
         "take CAP_NET_RAW from the sandbox"},
        {"vsock", "any", AF_VSOCK, SOCK_STREAM, 0, PROBE_UNSURE,
         "vsock sockets can be made, which know no network namespaces: the host may listen",
         "refuse the socket family by seccomp"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int fd = socket(kinds[i].family, kinds[i].type | SOCK_CLOEXEC, kinds[i].protocol);
        if (fd < 0)
            probe_tell(p, kinds[i].probe, kinds[i].what, PROBE_CONTAINED, NULL, "%s",
                       strerror(errno));
        else
            probe_tell(p, kinds[i].probe, kinds[i].what, kinds[i].verdict, kinds[i].fix, "%s",
                       kinds[i].why);
        if (fd >= 0)
            close(fd);
    }
}

void probe_interfaces(const struct probe *p) {
    struct ifaddrs *all;
    const char *found = NULL;
    if (getifaddrs(&all) != 0) {
        probe_tell(p, "interfaces", "all", PROBE_UNSURE, "permit netlink sockets for this test",
                   "%s", strerror(errno));
        return;
    }
    for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next)
        if (i->ifa_flags & IFF_UP && !(i->ifa_flags & IFF_LOOPBACK))
            found = i->ifa_name;
    if (found)
        probe_tell(
            p, "interfaces", found, PROBE_UNSURE,
            "`exeat run` gives a network of loopback alone; elsewhere the firewall behind it "
            "must leave only exeat's listener",
            "more than loopback is up: what it leads to is the platform's");
    else
        probe_tell(p, "interfaces", "lo", PROBE_CONTAINED, NULL, "nothing but loopback is up");
    freeifaddrs(all);
}
