#include "egress/inspect.h"

#include "base/child.h"
#include "base/log.h"
#include "base/rights.h"
#include "base/secret.h"
#include "base/table.h"
#include "egress/body_scan.h"
#include "egress/facts_message.h"
#include "egress/inflate.h"
#include "egress/inspect_messages.h"
#include "policy/bundle.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

/* More than this unsent: decoding, and facts, wait until egress has read some of it. */
enum { BACKLOG_MAX = 4 << 20, RETRY_MS = 2, ARGUMENT_MAX = FACTS_ASK_MAX };

static_assert(BACKLOG_MAX + INSPECT_PIECE_MAX < CHANNEL_OUT_MAX, "one more piece must fit");
static_assert(BACKLOG_MAX + FACTS_MAX + CHANNEL_HEADER_SIZE < CHANNEL_OUT_MAX,
              "one more body's facts must fit");

struct job {
    uint32_t id;
    struct inspect *inspect;
    struct body_scan *scan;  /* either this */
    struct body_read *read;  /* or this */
    struct inflate *inflate; /* or this */
    uint64_t cleared;        /* scan: told to egress */
    struct buf input;        /* inflate: not yet decoded */
    size_t consumed;         /* inflate: decoded, credit not yet given */
    bool ended;              /* the body is complete */
    bool waiting;            /* in the list of those that wait for the channel */
    TAILQ_ENTRY(job) queue;
};

struct inspect {
    struct channel *channel;
    struct limits limits;
    struct table jobs;
    TAILQ_HEAD(, job) waiting;
    struct event *retry;
    inspect_lost *lost;
    void *ctx;
    uint8_t piece[INSPECT_PIECE_MAX];
};

/* ---- jobs ---- */

static void stop_waiting(struct inspect *i, struct job *j) {
    TAILQ_REMOVE(&i->waiting, j, queue);
    j->waiting = false;
}

static void wait_for_channel(struct job *j) {
    struct inspect *i = j->inspect;
    struct timeval soon = {0, RETRY_MS * 1000};
    if (j->waiting)
        return;
    j->waiting = true;
    TAILQ_INSERT_TAIL(&i->waiting, j, queue);
    event_add(i->retry, &soon);
}

static void job_free(struct job *j) {
    if (j->waiting)
        stop_waiting(j->inspect, j);
    table_take(&j->inspect->jobs, j->id);
    body_scan_free(j->scan);
    body_read_free(j->read);
    inflate_free(j->inflate);
    buf_free(&j->input);
    free(j);
}

static void refuse(struct inspect *i, uint32_t id, const char *why) {
    buf_put_block(channel_begin(i->channel, INSPECT_BAD, id, 0), view_str(why));
    channel_end(i->channel);
}

static void job_bad(struct job *j, const char *why) {
    refuse(j->inspect, j->id, why);
    job_free(j);
}

static void job_done(struct job *j) {
    channel_send(j->inspect->channel, INSPECT_DONE, j->id, 0, (struct view){NULL, 0});
    job_free(j);
}

/* ---- scanning ---- */

static void send_clear(struct job *j) {
    uint64_t clear = body_scan_clear(j->scan);
    if (clear == j->cleared)
        return;
    buf_put_u32(channel_begin(j->inspect->channel, INSPECT_CLEAR, j->id, 0),
                (uint32_t)(clear - j->cleared));
    channel_end(j->inspect->channel);
    j->cleared = clear;
}

/* Tells egress what is known; true when the job is over. */
static bool report(struct job *j, enum body_step verdict) {
    if (verdict == BODY_CLEAR) {
        send_clear(j);
        return false;
    }
    if (verdict == BODY_BAD) {
        job_bad(j, body_scan_why(j->scan));
        return true;
    }
    struct buf *b = channel_begin(j->inspect->channel, INSPECT_FOUND, j->id, 0);
    buf_put_block(b, body_scan_name(j->scan));
    buf_put_block(b, body_scan_value(j->scan));
    channel_end(j->inspect->channel);
    job_free(j);
    return true;
}

/* ---- reading ---- */

static void send_facts(struct job *j) {
    if (channel_unsent(j->inspect->channel) > BACKLOG_MAX) {
        wait_for_channel(j);
        return;
    }
    const struct body_facts *facts = body_read_end(j->read);
    facts_write(facts, body_read_fault(j->read),
                channel_begin(j->inspect->channel, INSPECT_FACTS, j->id, 0));
    channel_end(j->inspect->channel);
    job_free(j);
}

static void read_piece(struct job *j, struct view piece) {
    if (j->waiting)
        return; /* its facts are final */
    if (!body_read_feed(j->read, piece)) {
        send_facts(j);
        return;
    }
    buf_put_u32(channel_begin(j->inspect->channel, INSPECT_CLEAR, j->id, 0), (uint32_t)piece.n);
    channel_end(j->inspect->channel);
}

/* ---- decoding ---- */

static void send_plain(struct job *j, struct view plain, size_t credit) {
    struct buf *b = channel_begin(j->inspect->channel, INSPECT_PLAIN, j->id, 0);
    buf_put_u32(b, (uint32_t)credit);
    buf_put(b, plain);
    channel_end(j->inspect->channel);
    j->consumed -= credit;
}

static void finish_decoding(struct job *j) {
    const char *why = inflate_end(j->inflate);
    if (why)
        job_bad(j, why);
    else
        job_done(j);
}

/* Decodes what is there, as far as the channel takes it. */
static void decode(struct job *j) {
    struct inspect *i = j->inspect;
    size_t room = i->limits.v[LIMIT_INSPECT_BYTES] < sizeof i->piece
                      ? (size_t)i->limits.v[LIMIT_INSPECT_BYTES]
                      : sizeof i->piece;
    for (;;) {
        if (channel_unsent(i->channel) > BACKLOG_MAX) {
            wait_for_channel(j);
            return;
        }
        struct inflate_step step = inflate_next(j->inflate, buf_view(&j->input), i->piece, room);
        if (step.why) {
            secret_clear(i->piece, step.made);
            job_bad(j, step.why);
            return;
        }
        buf_consume(&j->input, step.used);
        j->consumed += step.used;
        /* Credit goes out with the last output of the bytes it is for. */
        bool more = step.made == room;
        if (step.made > 0 || (!more && j->consumed > 0))
            send_plain(j, view_of(i->piece, step.made), more ? 0 : j->consumed);
        secret_clear(i->piece, step.made);
        if (!more)
            break;
    }
    if (j->ended)
        finish_decoding(j);
}

static void on_retry(evutil_socket_t fd, short what, void *ctx) {
    struct inspect *i = ctx;
    struct timeval soon = {0, RETRY_MS * 1000};
    (void)fd;
    (void)what;
    for (struct job *j = TAILQ_FIRST(&i->waiting), *next;
         j && channel_unsent(i->channel) <= BACKLOG_MAX; j = next) {
        next = TAILQ_NEXT(j, queue);
        stop_waiting(i, j);
        if (j->read)
            send_facts(j);
        else
            decode(j);
    }
    if (!TAILQ_EMPTY(&i->waiting))
        event_add(i->retry, &soon);
}

/* ---- messages ---- */

static int start_reading(struct job *j, struct view argument) {
    struct facts_ask ask;
    int err = facts_ask_read(argument, &ask);
    return err != 0 ? err : body_read_new(ask.source, &ask.wants, &j->read);
}

static int start_scan(struct job *j, enum body_kind kind, struct view argument) {
    struct body_names names;
    struct reader r = reader_of(argument);
    struct view boundary = read_block(&r, SCAN_ASK_MAX);
    if (body_names_read(&r, &names) != 0 || !read_done(&r))
        return ERR_BAD;
    return body_scan_new(kind, boundary, &names, &j->scan);
}

static int start(struct job *j, enum inspect_job kind, struct view argument, uint64_t most) {
    const struct limits *l = &j->inspect->limits;
    switch (kind) {
    case INSPECT_GUNZIP:
    case INSPECT_INFLATE:
        j->inflate = inflate_new(kind == INSPECT_GUNZIP ? INFLATE_GZIP : INFLATE_DEFLATE, most,
                                 l->v[LIMIT_INSPECT_RATIO]);
        return j->inflate ? 0 : ERR_MEMORY;
    case INSPECT_JSON:
        return start_scan(j, BODY_JSON, argument);
    case INSPECT_FORM:
        return start_scan(j, BODY_FORM, argument);
    case INSPECT_MULTIPART:
        return start_scan(j, BODY_MULTIPART, argument);
    case INSPECT_JSON_UNSAID:
        return start_scan(j, BODY_JSON_UNSAID, argument);
    case INSPECT_READ:
        return start_reading(j, argument);
    default:
        return start_scan(j, BODY_JSON_OR_FORM, argument);
    }
}

static int take_open(void *ctx, struct channel *ch, struct message *m) {
    struct inspect *i = ctx;
    struct reader r = reader_of(m->body);
    (void)ch;
    uint8_t kind = read_u8(&r);
    struct view argument = read_block(&r, ARGUMENT_MAX);
    uint64_t most = read_u64(&r);
    if (!read_done(&r) || kind > INSPECT_READ || m->id == 0 || table_get(&i->jobs, m->id))
        return ERR_BAD;
    struct job *j = i->jobs.n < 2 * i->limits.v[LIMIT_EXCHANGES] ? calloc(1, sizeof *j) : NULL;
    if (!j || table_put(&i->jobs, m->id, j) != 0) {
        free(j);
        refuse(i, m->id, "too many bodies at once");
        return 0;
    }
    j->id = m->id;
    j->inspect = i;
    buf_init_cleared(&j->input, INSPECT_WINDOW);
    int result = start(j, (enum inspect_job)kind, argument, most);
    if (result != 0)
        job_bad(j, result != ERR_BAD      ? err_text(result)
                   : kind == INSPECT_READ ? "not a question"
                                          : "not what a scan is told");
    return 0;
}

static int take_data(void *ctx, struct channel *ch, struct message *m) {
    struct inspect *i = ctx;
    struct job *j = table_get(&i->jobs, m->id);
    (void)ch;
    if (!j)
        return 0;
    if (j->ended)
        return ERR_BAD;
    if (j->scan) {
        report(j, body_scan_feed(j->scan, m->body));
        return 0;
    }
    if (j->read) {
        read_piece(j, m->body);
        return 0;
    }
    buf_put(&j->input, m->body);
    if (!buf_ok(&j->input))
        return ERR_LIMIT; /* more than its window */
    if (!j->waiting)
        decode(j);
    return 0;
}

static int take_end(void *ctx, struct channel *ch, struct message *m) {
    struct inspect *i = ctx;
    struct job *j = table_get(&i->jobs, m->id);
    (void)ch;
    if (!j)
        return 0;
    if (j->ended)
        return ERR_BAD;
    j->ended = true;
    if (j->scan) {
        if (!report(j, body_scan_end(j->scan)))
            job_done(j);
        return 0;
    }
    if (j->waiting)
        return 0;
    if (j->read)
        send_facts(j);
    else
        decode(j);
    return 0;
}

static int take_close(void *ctx, struct channel *ch, struct message *m) {
    struct inspect *i = ctx;
    struct job *j = table_get(&i->jobs, m->id);
    (void)ch;
    if (j)
        job_free(j);
    return 0;
}

static const struct channel_rule rules[] = {
    {INSPECT_OPEN, 0, ARGUMENT_MAX + 16, take_open, "inspect open"},
    {INSPECT_DATA, 0, INSPECT_PIECE_MAX, take_data, "inspect data"},
    {INSPECT_END, 0, 0, take_end, "inspect end"},
    {INSPECT_CLOSE, 0, 0, take_close, "inspect close"},
};

static void on_closed(void *ctx, struct channel *ch, int why) {
    struct inspect *i = ctx;
    (void)ch;
    i->lost(i->ctx, why);
}

/* ---- life ---- */

struct inspect *inspect_new(struct loop *l, int fd, const struct limits *limits, inspect_lost *lost,
                            void *ctx) {
    struct inspect *i = calloc(1, sizeof *i);
    if (!i) {
        close(fd);
        return NULL;
    }
    TAILQ_INIT(&i->waiting);
    i->limits = *limits;
    i->lost = lost;
    i->ctx = ctx;
    i->retry = event_new(loop_base(l), -1, 0, on_retry, i);
    i->channel = channel_new(l, fd, rules, sizeof rules / sizeof *rules,
                             CHANNEL_READ | CHANNEL_CLEARED, on_closed, i);
    if (!i->retry || !i->channel) {
        inspect_free(i);
        return NULL;
    }
    return i;
}

void inspect_free(struct inspect *i) {
    uint32_t id;
    struct job *j;
    if (!i)
        return;
    while ((j = table_any(&i->jobs, &id)) != NULL)
        job_free(j);
    table_free(&i->jobs);
    channel_free(i->channel);
    if (i->retry)
        event_free(i->retry);
    free(i);
}

size_t inspect_bodies(const struct inspect *i) {
    return i->jobs.n;
}

/* ---- the process ---- */

struct process {
    struct loop *loop;
    struct child *child;
    struct inspect *inspect; /* NULL before the first generation and after the end of egress */
    bool begun;
    struct limits now, next;
    uint32_t lane;
};

/* Without its egress it has nothing to do: the parent ends what is left of a lane. */
static void on_lost(void *ctx, int why) {
    struct process *p = ctx;
    if (why != ERR_CLOSED)
        child_bad_peer(p->child, ROLE_EGRESS, p->lane);
    inspect_free(p->inspect);
    p->inspect = NULL;
}

static int on_generation(void *ctx, uint32_t generation, struct view text) {
    struct process *p = ctx;
    struct bundle b;
    (void)generation;
    int result = bundle_read(text, &b);
    if (result == 0)
        p->next = b.limits;
    return result;
}

static void on_commit(void *ctx, uint32_t generation) {
    struct process *p = ctx;
    (void)generation;
    p->now = p->next;
    if (p->inspect)
        p->inspect->limits = p->now; /* for bodies that begin from now on */
    if (p->begun)
        return;
    p->begun = true;
    p->inspect = inspect_new(p->loop, LANE_FD, &p->now, on_lost, p);
    if (!p->inspect)
        loop_stop(p->loop);
}

static void on_status(void *ctx, struct buf *out) {
    struct process *p = ctx;
    buf_printf(out, "\"bodies\":%zu", p->inspect ? inspect_bodies(p->inspect) : 0);
}

static const struct child_ops ops = {
    .on_generation = on_generation, .on_commit = on_commit, .on_status = on_status};

static int run(struct process *p, const struct role_args *args) {
    p->child = child_new(p->loop, args, &ops, p);
    if (!p->child)
        return 1;
    child_up(p->child, (struct view){NULL, 0});
    int result = loop_run(p->loop) == 0 ? 0 : 1;
    inspect_free(p->inspect);
    child_free(p->child);
    return result;
}

int inspect_main(const struct role_args *args) {
    char name[32];
    struct process p = {.lane = args->lane};
    int result = 1;
    snprintf(name, sizeof name, "inspect %u", args->lane);
    log_open(name, args->debug ? LOG_DEBUG : LOG_INFO);
    p.loop = loop_new();
    if (p.loop && rights_enter(args) == 0)
        result = run(&p, args);
    loop_free(p.loop);
    return result;
}
