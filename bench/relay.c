/*
 * The bare bound: a single-threaded relay that answers CONNECT, ends the
 * client's TLS with one fixed certificate, opens a verified TLS connection to
 * the origin and copies bytes. It reads no HTTP after the CONNECT line, mints
 * nothing and enforces nothing, so a proxy that does real work on the same
 * library and one thread cannot be much cheaper.
 */
#include "wire.h"

struct pair;

struct side {
    struct pair *pair;
    struct io io;
    uint32_t armed;
    bool open, added;
    struct buf out; /* what is still to be written to this side */
};

struct pair {
    struct side client, origin;
    enum { HEAD, CLIENT_TLS, RELAY } st;
    bool dead;
    struct buf head;
    char name[256];
};

static SSL_CTX *server, *upstream;
static SSL_SESSION *session;
static int ep, origin_port;
static bool resume;
static char chunk[65536];

static void arm(struct side *s, uint32_t ev) {
    struct epoll_event e = {.events = ev, .data.ptr = s};

    if (s->added && s->armed == ev)
        return;
    epoll_ctl(ep, s->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, s->io.fd, &e);
    s->added = true;
    s->armed = ev;
}

static void side_close(struct side *s) {
    if (s->io.ssl != NULL && s->open)
        SSL_shutdown(s->io.ssl);
    io_close(&s->io);
    buf_free(&s->out);
}

static void pair_close(struct pair *p) {
    side_close(&p->client);
    side_close(&p->origin);
    buf_free(&p->head);
    p->dead = true; /* freed after the batch: its other side may have an event in it */
}

static int on_session(SSL *ssl, SSL_SESSION *s) {
    (void)ssl;
    SSL_SESSION_free(session);
    session = s;
    return 1;
}

static bool origin_open(struct pair *p) {
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)origin_port)};
    struct io *io = &p->origin.io;

    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    io->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sock_tune(io->fd);
    if (connect(io->fd, (struct sockaddr *)&sa, sizeof sa) < 0 && errno != EINPROGRESS)
        return false;
    io->ssl = SSL_new(upstream);
    SSL_set_fd(io->ssl, io->fd);
    SSL_set_connect_state(io->ssl);
    SSL_set_tlsext_host_name(io->ssl, p->name);
    SSL_set1_host(io->ssl, p->name);
    if (resume && session != NULL) {
        /* OpenSSL spends a TLS 1.3 session on first use; a copy keeps the stored one usable. */
        SSL_SESSION *copy_of = SSL_SESSION_dup(session);

        SSL_set_session(io->ssl, copy_of);
        SSL_SESSION_free(copy_of);
    }
    return true;
}

/* 1 established, 0 waiting, -1 failed */
static int handshake(struct side *s) {
    int rc;

    if (s->open)
        return 1;
    ERR_clear_error();
    rc = SSL_do_handshake(s->io.ssl);
    if (rc == 1) {
        s->open = true;
        return 1;
    }
    if (io_result(&s->io, rc) == IO_CLOSED)
        return -1;
    arm(s, s->io.want);
    return 0;
}

static int read_head(struct pair *p) {
    ssize_t r;

    buf_room(&p->head, 1024);
    r = io_read(&p->client.io, p->head.p + p->head.len, p->head.cap - p->head.len);
    if (r <= 0) {
        if (r == IO_AGAIN)
            arm(&p->client, EPOLLIN);
        return (int)r;
    }
    p->head.len += (size_t)r;
    if (memmem(p->head.p, p->head.len, "\r\n\r\n", 4) == NULL)
        return p->head.len > 8192 ? -1 : 0;
    if (sscanf(p->head.p, "CONNECT %255[^: ]", p->name) != 1 ||
        send(p->client.io.fd, "HTTP/1.1 200 OK\r\n\r\n", 19, MSG_NOSIGNAL) != 19)
        return -1;
    buf_free(&p->head);
    p->client.io.ssl = SSL_new(server);
    SSL_set_fd(p->client.io.ssl, p->client.io.fd);
    SSL_set_accept_state(p->client.io.ssl);
    return 1;
}

/* Write what is owed to `to`, then copy from `from`. 0 blocked, -1 ended. */
static int copy(struct side *from, struct side *to) {
    do {
        ssize_t r, n = 0;

        while (buf_size(&to->out) > 0) {
            r = io_write(&to->io, buf_head(&to->out), buf_size(&to->out));
            if (r <= 0)
                return (int)r;
            to->out.off += (size_t)r;
        }
        buf_free(&to->out);
        r = io_read(&from->io, chunk, sizeof chunk);
        if (r <= 0)
            return (int)r;
        while (n < r) {
            ssize_t k = io_write(&to->io, chunk + n, (size_t)(r - n));

            if (k == IO_CLOSED)
                return -1;
            if (k == IO_AGAIN) {
                buf_add(&to->out, chunk + n, (size_t)(r - n));
                return 0;
            }
            n += k;
        }
    } while (io_pending(&from->io));
    return 0;
}

/* `by` is the side that an event came for. */
static void pair_run(struct pair *p, struct side *by, uint32_t events) {
    bool first = false;
    int a, b;

    if (p->st == HEAD) {
        a = read_head(p);
        if (a < 0 || (a == 1 && !origin_open(p)))
            pair_close(p);
        if (a != 1 || p->dead)
            return;
        p->st = CLIENT_TLS;
    }
    if (p->st == CLIENT_TLS) {
        a = handshake(&p->client);
        b = handshake(&p->origin);
        if (a < 0 || b < 0)
            pair_close(p);
        if (a != 1 || b != 1)
            return;
        p->st = RELAY;
        first = true;
    }
    a = b = 0;
    if (first || (by == &p->client && (events & ~(uint32_t)EPOLLOUT)) ||
        (by == &p->origin && (events & EPOLLOUT)))
        a = copy(&p->client, &p->origin);
    if (first || (by == &p->origin && (events & ~(uint32_t)EPOLLOUT)) ||
        (by == &p->client && (events & EPOLLOUT)))
        b = copy(&p->origin, &p->client);
    if (a < 0 || b < 0) {
        pair_close(p);
        return;
    }
    arm(&p->client, (buf_size(&p->client.out) > 0 ? EPOLLOUT : 0u) |
                        (buf_size(&p->origin.out) > 0 ? 0u : EPOLLIN));
    arm(&p->origin, (buf_size(&p->origin.out) > 0 ? EPOLLOUT : 0u) |
                        (buf_size(&p->client.out) > 0 ? 0u : EPOLLIN));
}

static void accept_all(int lfd) {
    int fd;

    while ((fd = accept4(lfd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct pair *p = calloc(1, sizeof *p);

        if (p == NULL)
            die("out of memory");
        sock_tune(fd);
        p->client.pair = p->origin.pair = p;
        p->client.io.fd = fd;
        p->origin.io.fd = -1;
        pair_run(p, &p->client, EPOLLIN);
        if (p->dead)
            free(p);
    }
}

static SSL_CTX *context(const SSL_METHOD *m) {
    SSL_CTX *ctx = SSL_CTX_new(m);

    if (ctx == NULL)
        die("SSL_CTX_new");
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(ctx, 1);
    return ctx;
}

int main(int argc, char **argv) {
    struct epoll_event ev[256], e = {.events = EPOLLIN};
    struct pair *dead[512];
    const char *cert = NULL, *key = NULL, *ca = NULL;
    int port = 0, opt, lfd;

    while ((opt = getopt(argc, argv, "l:o:c:k:C:R")) != -1) {
        switch (opt) {
        case 'l':
            port = atoi(optarg);
            break;
        case 'o':
            origin_port = atoi(optarg);
            break;
        case 'c':
            cert = optarg;
            break;
        case 'k':
            key = optarg;
            break;
        case 'C':
            ca = optarg;
            break;
        case 'R':
            resume = true;
            break;
        default:
            port = 0;
        }
    }
    if (port == 0 || origin_port == 0 || cert == NULL || key == NULL || ca == NULL)
        die("usage: relay -l PORT -o ORIGINPORT -c CHAIN -k KEY -C ORIGINCA [-R]");
    process_init();
    server = context(TLS_server_method());
    upstream = context(TLS_client_method());
    if (SSL_CTX_use_certificate_chain_file(server, cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(server, key, SSL_FILETYPE_PEM) != 1 ||
        SSL_CTX_load_verify_file(upstream, ca) != 1)
        die("cannot load the certificates");
    SSL_CTX_set_verify(upstream, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_session_cache_mode(upstream, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(upstream, on_session);
    ep = epoll_create1(EPOLL_CLOEXEC);
    lfd = sock_listen((uint16_t)port, 4096);
    e.data.ptr = NULL;
    epoll_ctl(ep, EPOLL_CTL_ADD, lfd, &e);
    for (;;) {
        int n = epoll_wait(ep, ev, 256, -1), n_dead = 0;

        for (int i = 0; i < n; i++) {
            struct side *s = ev[i].data.ptr;

            if (s == NULL) {
                accept_all(lfd);
            } else if (!s->pair->dead) {
                pair_run(s->pair, s, ev[i].events);
                if (s->pair->dead)
                    dead[n_dead++] = s->pair;
            }
        }
        while (n_dead > 0)
            free(dead[--n_dead]);
    }
}
