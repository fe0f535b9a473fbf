#include "audit/audit.h"

#include "audit/findings.h"
#include "audit/ledger.h"
#include "base/child.h"
#include "base/json.h"
#include "base/log.h"
#include "base/rights.h"
#include "policy/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum {
    PACKETS_A_TURN = 512,
    WAITING_MAX = 4096,
    RETRY_SECONDS = 1,
    SHORT_NAP_NS = 4000000,
    NAP_NS = 10000000,
    LONG_NAP_NS = 20000000,
    FEW_PACKETS = 16,
    LONE_RECORD = 1024, /* bytes of a packet, about, that brings one record */
};

struct peer {
    struct audit *audit;
    enum role role;
    uint32_t lane;
    char origin[RECORD_ORIGIN_MAX + 1];
    size_t producer; /* of the ledger */
    int fd;
    struct event *readable;
    uint64_t acked_epoch, acked;
    char told;    /* 'D' or 'U'; 0: nothing yet */
    bool retired; /* the producer is dead; a new socket of its successor may wait behind this one */
    size_t in_hand; /* packets that were read, and stay in the kernel until they are written */
    struct peer *next;
};

struct audit {
    struct loop *loop;
    struct child *child;
    int dir;
    const char *path;      /* of dir */
    struct ledger *ledger; /* NULL as long as the log cannot be opened */
    struct peer *peers;    /* in the order in which they came */
    struct deferred flush;
    struct event *retry, *sign;
    struct ledger_settings settings, prepared;
    uint64_t sign_seconds, prepared_sign_seconds;
    char policy[2 * DIGEST_SIZE + 1]; /* SHA-256 of the prepared policy's text */
    bool down;
    char why[512]; /* it is down */
    uint64_t down_since;
    size_t packets, bytes; /* that were read since the last nap */
    struct record record;
    uint8_t packet[RECORD_PACKET_SIZE + 1]; /* one more, to see what is too long */
};

/* ---- telling producers ---- */

/* False when the socket is full; the retry timer tries again. */
static bool peer_tell(struct peer *p, char what) {
    if (p->told == what)
        return true;
    if (write(p->fd, &what, 1) == 1)
        p->told = what;
    return p->told == what || errno != EAGAIN;
}

static bool tell_all(struct audit *a) {
    bool all = true;
    for (struct peer *p = a->peers; p; p = p->next)
        if (!p->retired && !peer_tell(p, a->down ? 'D' : 'U'))
            all = false;
    return all;
}

static void retry_later(struct audit *a) {
    struct timeval in = {RETRY_SECONDS, 0};
    event_add(a->retry, &in);
}

/* Up to where all is on the disk: cumulative, so that one which finds no room is no loss. */
static void acknowledge(struct audit *a) {
    for (struct peer *p = a->peers; p; p = p->next) {
        uint64_t epoch, number;
        struct buf b;
        if (!ledger_written(a->ledger, p->producer, &epoch, &number) ||
            (epoch == p->acked_epoch && number == p->acked))
            continue;
        buf_init(&b, 16);
        buf_put_u64(&b, epoch);
        buf_put_u64(&b, number);
        if (buf_ok(&b) && write(p->fd, buf_view(&b).p, buf_len(&b)) == (ssize_t)buf_len(&b)) {
            p->acked_epoch = epoch;
            p->acked = number;
        } else if (errno == EAGAIN) {
            retry_later(a);
        }
        buf_free(&b);
    }
}

/* ---- events of its own ---- */

static struct record *event_of(struct audit *a, const char *name) {
    record_begin(&a->record, RECORD_EVENT, clock_wall(), clock_mono());
    record_str(&a->record, FIELD_EVENT, name);
    return &a->record;
}

static void event_put(struct audit *a) {
    int result = a->ledger ? ledger_event(a->ledger, &a->record) : ERR_MISSING;
    if (result != 0)
        log_warn("%s: an event of audit's own is lost: %s", a->path,
                 a->ledger ? err_text(result) : "the log is not open");
    loop_defer(a->loop, &a->flush);
}

/* ---- trouble ---- */

static void go_down(struct audit *a, const char *what, int result) {
    int number = errno;
    snprintf(a->why, sizeof a->why, "%s: %s: %s", a->path, what,
             result == ERR_SYSTEM ? strerror(number) : err_text(result));
    if (!a->down) {
        log_warn("%s: producers are told to refuse", a->why);
        a->down = true;
        a->down_since = clock_mono();
        for (struct peer *p = a->peers; p; p = p->next)
            event_del(p->readable);
        tell_all(a);
    } else {
        /* Again each time: a producer that was restarted on its old socket has not heard it. */
        for (struct peer *p = a->peers; p; p = p->next)
            p->told = 0;
    }
    retry_later(a);
}

/* What is written need not be read again by a successor. */
static void consume(struct audit *a) {
    uint8_t byte;
    for (struct peer *p = a->peers; p; p = p->next)
        while (p->in_hand > 0 && (recv(p->fd, &byte, 1, MSG_DONTWAIT) >= 0 || errno != EINTR))
            p->in_hand--;
}

static int write_out(struct audit *a) {
    int result = ledger_flush(a->ledger, clock_wall());
    if (result == 0)
        consume(a);
    return result;
}

static bool flush_now(struct audit *a) {
    int result = write_out(a);
    if (result != 0) {
        go_down(a, "the log cannot be written", result);
        return false;
    }
    if (a->settings.durable)
        acknowledge(a);
    return true;
}

/*
 * Producers are waiting for nobody: for some milliseconds records gather in the kernel, which holds them, so
 * that a busy lane is not interrupted for each, and reading and writing them costs less. Longer where they come one by one: what
 * gathered then delays one request, which should be one of some hundred. Short where there are few, which somebody may look for at once. Who waits for the disk waits for no nap.
 */
static void nap(struct audit *a) {
    bool few = a->packets < FEW_PACKETS, lone = a->bytes <= a->packets * LONE_RECORD;
    const struct timespec moment = {0, few ? SHORT_NAP_NS : lone ? LONG_NAP_NS : NAP_NS};
    a->packets = a->bytes = 0;
    if (!a->settings.durable)
        nanosleep(&moment, NULL);
}

static void run_flush(void *ctx) {
    struct audit *a = ctx;
    if (!a->down && flush_now(a))
        nap(a);
}

/* ---- reading producers ---- */

static void peer_free(struct peer *p) {
    struct peer **at = &p->audit->peers;
    while (*at && *at != p)
        at = &(*at)->next;
    if (*at)
        *at = p->next;
    if (p->readable)
        event_free(p->readable);
    if (p->fd >= 0)
        close(p->fd);
    free(p);
}

static void peer_bad(struct peer *p) {
    struct audit *a = p->audit;
    log_warn("%s broke the contract: its records are read no more", p->origin);
    struct record *r = event_of(a, "bad_producer");
    record_str(r, FIELD_PRODUCER, p->origin);
    record_number(r, FIELD_LANE, p->lane);
    event_put(a);
    /* Its socket goes with it: what it had sent before counts. */
    (void)flush_now(a);
    child_bad_peer(a->child, p->role, p->lane);
    peer_free(p);
}

enum turn { TURN_AGAIN, TURN_EMPTY, TURN_GONE, TURN_DOWN };

/* One packet. TURN_AGAIN: there may be more. TURN_GONE: p is no more. */
static enum turn read_packet(struct peer *p) {
    struct audit *a = p->audit;
    if (!ledger_has_room(a->ledger) && !flush_now(a))
        return TURN_DOWN;
    ssize_t n = recv(p->fd, a->packet, sizeof a->packet, MSG_PEEK);
    if (n < 0 && errno == EINTR)
        return TURN_AGAIN;
    if (n < 0 && errno == EAGAIN)
        return TURN_EMPTY;
    if (n > 0) {
        p->in_hand++;
        a->packets++;
        a->bytes += (size_t)n;
    }
    loop_defer(a->loop, &a->flush);
    /* No end of it is ever closed, so that nothing is an empty packet. */
    if (n <= 0 || (size_t)n > RECORD_PACKET_SIZE ||
        ledger_take(a->ledger, p->producer, view_of(a->packet, (size_t)n)) != 0) {
        peer_bad(p);
        return TURN_GONE;
    }
    return TURN_AGAIN;
}

static void on_readable(evutil_socket_t fd, short what, void *ctx) {
    struct peer *p = ctx;
    (void)fd;
    (void)what;
    for (int i = 0; i < PACKETS_A_TURN; i++)
        if (read_packet(p) != TURN_AGAIN)
            return;
}

/* Reads a socket to its end, whose producer is dead: what it wrote comes before what its successor writes. */
static bool drain(struct peer *p) {
    enum turn t;
    while ((t = read_packet(p)) == TURN_AGAIN)
        ;
    if (t == TURN_EMPTY && !flush_now(p->audit))
        return false;
    if (t == TURN_EMPTY)
        peer_free(p);
    return t != TURN_DOWN;
}

static void peer_arm(struct peer *p) {
    if (event_add(p->readable, NULL) != 0)
        log_warn("%s: cannot wait for its records", p->origin);
}

/* Reads on after trouble. */
static void resume(struct audit *a) {
    struct peer *next;
    for (struct peer *p = a->peers; p && !a->down; p = next) {
        next = p->next;
        if (p->retired)
            drain(p);
    }
    for (struct peer *p = a->peers; p && !a->down; p = p->next)
        peer_arm(p);
}

/* ---- out of trouble ---- */

static int open_ledger(struct audit *a) {
    int result = ledger_open(a->dir, clock_wall(), clock_mono(), &a->ledger);
    if (result != 0)
        return result;
    ledger_set(a->ledger, &a->settings);
    for (struct peer *p = a->peers; p && result == 0; p = p->next)
        result = ledger_producer(a->ledger, p->origin, &p->producer);
    return result;
}

static void go_up(struct audit *a) {
    char detail[64];
    snprintf(detail, sizeof detail, "for %llu ms",
             (unsigned long long)((clock_mono() - a->down_since) / 1000000));
    log_info("the log can be written again");
    record_str(event_of(a, "was_down"), FIELD_DETAIL, detail);
    a->down = false;
    event_put(a);
    tell_all(a);
    resume(a);
}

static const char *what_fails(const struct audit *a, int why) {
    return a->ledger           ? "the log cannot be written"
           : why == ERR_CRYPTO ? "the log cannot be opened, sign.key or sign.pub is damaged"
                               : "the log cannot be opened";
}

static void try_again(struct audit *a) {
    int result = a->ledger ? 0 : open_ledger(a);
    if (result == 0)
        result = write_out(a);
    if (result == 0)
        result = ledger_sign(a->ledger, clock_wall());
    if (result != 0)
        go_down(a, what_fails(a, result), result);
    else if (a->down)
        go_up(a);
}

static void on_retry(evutil_socket_t fd, short what, void *ctx) {
    struct audit *a = ctx;
    (void)fd;
    (void)what;
    if (a->down)
        try_again(a);
    if (!tell_all(a))
        retry_later(a);
    if (!a->down && a->settings.durable)
        acknowledge(a);
}

static void sign_later(struct audit *a) {
    struct timeval in = {(time_t)a->sign_seconds, 0};
    event_add(a->sign, &in);
}

static void on_sign(evutil_socket_t fd, short what, void *ctx) {
    struct audit *a = ctx;
    (void)fd;
    (void)what;
    sign_later(a);
    if (a->down)
        return;
    int result = ledger_sign(a->ledger, clock_wall());
    if (result != 0)
        go_down(a, "a head cannot be signed", result);
    else if (a->settings.durable)
        acknowledge(a);
}

/* ---- the parent's messages ---- */

static struct peer *peer_new(struct audit *a, enum role role, uint32_t lane, struct view name,
                             int fd) {
    struct peer *p = calloc(1, sizeof *p);
    int flags = fcntl(fd, F_GETFL), from = 0;
    /* Each look at the queue goes on behind the last; a predecessor's looks do not count. */
    if (!p || flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &from, sizeof from) != 0) {
        free(p);
        close(fd);
        return NULL;
    }
    *p = (struct peer){.audit = a, .role = role, .lane = lane, .fd = fd};
    p->readable = event_new(loop_base(a->loop), fd, EV_READ | EV_PERSIST, on_readable, p);
    if (!p->readable || view_cstr(name, p->origin, sizeof p->origin) != 0 ||
        (a->ledger && ledger_producer(a->ledger, p->origin, &p->producer) != 0)) {
        peer_free(p);
        return NULL;
    }
    return p;
}

static void peer_retire(struct peer *p) {
    p->retired = true;
    event_del(p->readable);
    if (!p->audit->down)
        drain(p);
}

/* Producers of the same name that were there before are dead. */
static void retire(struct audit *a, const char *origin) {
    struct peer *next;
    for (struct peer *p = a->peers; p; p = next) {
        next = p->next;
        if (strcmp(p->origin, origin) == 0)
            peer_retire(p);
    }
}

static int on_peer(void *ctx, enum role role, uint32_t lane, struct view name, int fd) {
    struct audit *a = ctx;
    struct peer *p = peer_new(a, role, lane, name, fd);
    if (!p)
        return ERR_MEMORY;
    retire(a, p->origin);
    struct peer **at = &a->peers;
    while (*at)
        at = &(*at)->next;
    *at = p;
    /* Also when all is well: an audit before us may have died right after it said 'D'. */
    if (!peer_tell(p, a->down ? 'D' : 'U'))
        retry_later(a);
    if (!a->down) {
        peer_arm(p);
        if (a->settings.durable)
            acknowledge(a);
    }
    return 0;
}

/* For good, with its lane. */
static void on_peer_gone(void *ctx, enum role role, uint32_t lane) {
    struct peer *next;
    for (struct peer *p = ((struct audit *)ctx)->peers; p; p = next) {
        next = p->next;
        if (p->role == role && p->lane == lane && !p->retired)
            peer_retire(p);
    }
}

static int on_generation(void *ctx, uint32_t generation, struct view text) {
    struct audit *a = ctx;
    struct bundle b;
    uint8_t hash[DIGEST_SIZE];
    (void)generation;
    int result = bundle_read(text, &b);
    if (result != 0)
        return result;
    a->prepared = (struct ledger_settings){.file_bytes = b.limits.v[LIMIT_AUDIT_FILE],
                                           .keep = b.limits.v[LIMIT_AUDIT_KEEP],
                                           .durable = b.audit_durable};
    a->prepared_sign_seconds = b.limits.v[LIMIT_HEAD_INTERVAL];
    digest_sha256(b.policy_text, hash);
    hex_encode(view_of(hash, sizeof hash), a->policy);
    return 0;
}

static void on_commit(void *ctx, uint32_t generation) {
    struct audit *a = ctx;
    char detail[128];
    a->settings = a->prepared;
    a->sign_seconds = a->prepared_sign_seconds;
    if (a->ledger)
        ledger_set(a->ledger, &a->settings);
    struct record *r = event_of(a, "generation_in_use");
    snprintf(detail, sizeof detail, "policy sha256 %s", a->policy);
    record_str(r, FIELD_DETAIL, detail);
    record_number(r, FIELD_GENERATION, generation);
    event_put(a);
    sign_later(a);
}

/* What producers had written when it was asked for; a busy one does not hold up the head. */
static void catch_up(struct audit *a) {
    struct peer *next;
    for (struct peer *p = a->peers; p && !a->down; p = next) {
        next = p->next;
        for (int i = 0; i < WAITING_MAX && read_packet(p) == TURN_AGAIN; i++)
            ;
    }
}

static int on_head(void *ctx, struct buf *out) {
    struct audit *a = ctx;
    catch_up(a);
    int result = a->down ? ERR_SYSTEM : ledger_sign(a->ledger, clock_wall());
    if (!a->down && result != 0)
        go_down(a, "a head cannot be signed", result);
    if (result != 0) {
        buf_put_str(out, "the audit log cannot be written, so that no head can be signed");
        return result;
    }
    if (a->settings.durable)
        acknowledge(a);
    chain_head_write(ledger_head(a->ledger), out);
    return 0;
}

static void on_stop(void *ctx) {
    struct audit *a = ctx;
    struct peer *next;
    for (struct peer *p = a->peers; p && !a->down; p = next) {
        next = p->next;
        drain(p);
    }
    event_of(a, "stopped");
    event_put(a);
    if (!a->down && flush_now(a) && ledger_sign(a->ledger, clock_wall()) != 0)
        log_warn("the last head cannot be signed: %s", strerror(errno));
    loop_stop(a->loop);
}

static void put_trouble(const struct audit *a, struct buf *out) {
    struct buf text;
    buf_init(&text, sizeof a->why + FINDINGS_MAX);
    if (a->down)
        buf_printf(&text,
                   "%s: every request is refused; mend it, and audit goes on within a second",
                   a->why);
    else
        findings_tell(a->dir, &text);
    if (!a->down && buf_len(&text) > 0)
        buf_printf(&text,
                   ": `exeat log verify` tells more; status tells of it until %s/" FINDINGS_FILE
                   " is taken away",
                   a->path);
    if (buf_len(&text) > 0)
        json_put_text(out, "trouble", buf_view(&text));
    buf_free(&text);
}

static void on_status(void *ctx, struct buf *out) {
    struct audit *a = ctx;
    size_t producers = 0;
    for (struct peer *p = a->peers; p; p = p->next)
        producers++;
    buf_printf(out, "\"usable\":%s,\"durable\":%s,\"producers\":%zu", a->down ? "false" : "true",
               a->settings.durable ? "true" : "false", producers);
    if (a->ledger)
        buf_printf(out, ",\"seq\":%llu,\"file_bytes\":%llu",
                   (unsigned long long)ledger_seq(a->ledger),
                   (unsigned long long)ledger_bytes(a->ledger));
    put_trouble(a, out);
}

/* ---- the process ---- */

static bool audit_open(struct audit *a, const struct role_args *args) {
    static const struct child_ops ops = {.on_peer = on_peer,
                                         .on_peer_gone = on_peer_gone,
                                         .on_generation = on_generation,
                                         .on_commit = on_commit,
                                         .on_stop = on_stop,
                                         .on_status = on_status,
                                         .on_head = on_head};
    a->settings.file_bytes = limit_info(LIMIT_AUDIT_FILE)->normal;
    a->sign_seconds = limit_info(LIMIT_HEAD_INTERVAL)->normal;
    a->flush = (struct deferred){.run = run_flush, .ctx = a};
    a->retry = evtimer_new(loop_base(a->loop), on_retry, a);
    a->sign = evtimer_new(loop_base(a->loop), on_sign, a);
    a->child = child_new(a->loop, args, &ops, a);
    if (!a->retry || !a->sign || !a->child)
        return false;
    sign_later(a);
    try_again(a);
    return true;
}

static void audit_close(struct audit *a) {
    for (struct peer *p = a->peers, *next; p; p = next) {
        next = p->next;
        peer_free(p);
    }
    loop_forget(a->loop, &a->flush);
    if (a->retry)
        event_free(a->retry);
    if (a->sign)
        event_free(a->sign);
    child_free(a->child);
    ledger_free(a->ledger);
    record_free(&a->record);
    loop_free(a->loop);
}

int audit_serve(const struct role_args *args, int dir) {
    struct audit *a = calloc(1, sizeof *a);
    int result = 1;
    if (a && (a->loop = loop_new())) {
        a->dir = dir;
        a->path = args->directory;
        if (audit_open(a, args)) {
            child_up(a->child, (struct view){NULL, 0});
            result = loop_run(a->loop) == 0 ? 0 : 1;
        }
        audit_close(a);
    }
    free(a);
    return result;
}

int audit_main(const struct role_args *args) {
    log_open("audit", args->debug ? LOG_DEBUG : LOG_INFO);
    int dir = args->directory ? open(args->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (dir < 0) {
        log_fatal("%s: %s", args->directory ? args->directory : "no directory", strerror(errno));
        return 1;
    }
    /* Two writers would break the chain; one that was just killed may still hold it for a moment. */
    if (flock(dir, LOCK_EX | LOCK_NB) != 0) {
        log_fatal("%s: another audit writes here", args->directory);
        return 1;
    }
    if (rights_enter(args) != 0)
        return 1;
    return audit_serve(args, dir);
}
