#include "egress/tally.h"

#include "base/digest.h"
#include "base/json.h"
#include "base/log.h"
#include "egress/exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

/* What outlives us. Whoever wrote it may have been hostile: every number is one that may stand there. */
struct row {
    uint8_t grant[DIGEST_SIZE];
    char sandbox[IDENTITY_SIZE + 7];
    uint64_t uses, bytes;
    double tokens;
    uint64_t refilled; /* monotonic nanoseconds, which all processes share */
};

enum { ROWS = CHILD_LEDGER_SIZE / sizeof(struct row) - 1 };

struct ledger {
    uint64_t n;
    struct row rows[ROWS];
};

_Static_assert(sizeof(struct ledger) <= CHILD_LEDGER_SIZE, "the ledger does not fit");

struct tally {
    struct tally *next;
    struct row *row;
    uint64_t concurrent;
    bool held; /* by one that moves, and may come back */
};

/* ---- finding ---- */

static struct tally **place_of(struct lane *l, const uint8_t *grant) {
    return &l->tallies[grant[0]];
}

static struct tally *find(const struct lane *l, const uint8_t *grant, const char *sandbox) {
    struct tally *t = l->tallies[grant[0]];
    while (t && (memcmp(t->row->grant, grant, DIGEST_SIZE) != 0 ||
                 strcmp(t->row->sandbox, sandbox) != 0))
        t = t->next;
    return t;
}

static struct tally *link_row(struct lane *l, struct row *row) {
    struct tally *t = calloc(1, sizeof *t), **at = place_of(l, row->grant);
    if (!t)
        return NULL;
    t->row = row;
    t->next = *at;
    return *at = t;
}

int tally_attach(struct lane *l, int fd) {
    bool whole = lseek(fd, 0, SEEK_END) == (off_t)CHILD_LEDGER_SIZE;
    void *map = !whole || l->ledger
                    ? MAP_FAILED
                    : mmap(NULL, CHILD_LEDGER_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED)
        return ERR_BAD;
    l->ledger = map;
    if (l->ledger->n > ROWS)
        return ERR_BAD;
    for (size_t i = 0; i < l->ledger->n; i++) {
        struct row *row = &l->ledger->rows[i];
        row->sandbox[sizeof row->sandbox - 1] = 0;
        if (!link_row(l, row))
            return ERR_MEMORY;
    }
    return 0;
}

/* A row that says nothing of any grant that there is: it may be another's. */
static struct row *find_stale(struct lane *l) {
    for (size_t i = 0; i < l->ledger->n; i++) {
        struct row *row = &l->ledger->rows[i];
        struct tally *t = find(l, row->grant, row->sandbox);
        if (t->concurrent == 0 && !t->held && !generation_grants(l->now, row->grant))
            return row;
    }
    return NULL;
}

static void unlink_row(struct lane *l, const struct row *row) {
    struct tally **at = place_of(l, row->grant);
    while ((*at)->row != row)
        at = &(*at)->next;
    struct tally *t = *at;
    *at = t->next;
    free(t);
}

static struct row *next_row(struct lane *l) {
    struct ledger *ledger = l->ledger;
    if (ledger->n < ROWS)
        return &ledger->rows[ledger->n];
    struct row *stale = find_stale(l);
    if (stale)
        unlink_row(l, stale);
    return stale;
}

/* NULL: there is no place to count in. */
static struct tally *find_or_add(struct lane *l, const struct grant *g, const uint8_t *grant,
                                 const char *sandbox) {
    struct tally *t = l->ledger ? find(l, grant, sandbox) : NULL;
    if (t || !l->ledger)
        return t;
    struct row *row = next_row(l);
    if (!row) {
        log_warn("there is no room to count what sandbox %s uses of its grants", sandbox);
        return NULL;
    }
    *row = (struct row){.tokens = (double)grant_limits(g)->rate, .refilled = loop_now(l->loop)};
    memcpy(row->grant, grant, DIGEST_SIZE);
    snprintf(row->sandbox, sizeof row->sandbox, "%s", sandbox);
    t = link_row(l, row);
    if (t && row == &l->ledger->rows[l->ledger->n])
        l->ledger->n++;
    return t;
}

/* ---- one grant ---- */

static void refill(struct row *r, const struct grant_limits *limits, uint64_t now) {
    double most = (double)limits->rate;
    if (!(r->tokens >= 0) || r->refilled > now)
        r->tokens = 0;
    else
        r->tokens +=
            (double)(now - r->refilled) / (double)SECOND * most / (double)limits->rate_seconds;
    if (r->tokens > most)
        r->tokens = most;
    r->refilled = now;
}

static uint64_t left(uint64_t limit, uint64_t used) {
    return used < limit ? limit - used : 0;
}

static bool bytes_fit(const struct grant_limits *limits, const struct row *r, uint64_t n) {
    return limits->bytes_out == 0 || n <= left(limits->bytes_out, r->bytes);
}

/* moving: the request was counted for the rate before. */
static enum reason room_of(const struct grant_limits *limits, const struct tally *t, uint64_t bytes,
                           bool moving) {
    const struct row *r = t->row;
    if (limits->uses && r->uses >= limits->uses)
        return REASON_GRANT_USED;
    if (!bytes_fit(limits, r, bytes > 0 ? bytes : 1))
        return REASON_GRANT_BYTES;
    if (limits->concurrent && t->concurrent >= limits->concurrent)
        return REASON_GRANT_CONCURRENT;
    if (limits->rate && !moving && r->tokens < 1)
        return REASON_GRANT_RATE;
    return REASON_ALLOWED;
}

static uint32_t seconds_until_token(const struct grant_limits *limits, const struct row *r) {
    double wait = (1 - r->tokens) * (double)limits->rate_seconds / (double)limits->rate;
    return 1 + (uint32_t)wait;
}

/* ---- all that a request needs ---- */

/* Of several grants that have no room the sandbox is told what passes soonest. */
static bool is_milder(enum reason a, enum reason b) {
    bool a_passes = reason_info(a)->status == 429, b_passes = reason_info(b)->status == 429;
    return b == REASON_ALLOWED || (a_passes && !b_passes);
}

struct search {
    struct exchange *ex;
    uint64_t bytes;
    bool moving;
    enum reason why;
};

static void note_refusal(struct search *s, enum reason why, const struct grant *g,
                         const struct tally *t) {
    if (!is_milder(why, s->why))
        return;
    s->why = why;
    s->ex->verdict.at = grant_position(g);
    s->ex->trail.retry_after =
        why == REASON_GRANT_RATE ? seconds_until_token(grant_limits(g), t->row) : 1;
}

/* The first grant of the layer that has room, from *i on, which is moved behind the layer. */
static bool choose(struct search *s, size_t *i, struct taken *out) {
    const struct exchange *ex = s->ex;
    const struct verdict *v = &ex->verdict;
    unsigned layer = grant_layer(v->grants[*i]);
    bool found = false;
    s->why = REASON_ALLOWED;
    for (; *i < v->n_grants && grant_layer(v->grants[*i]) == layer; ++*i) {
        const struct grant *g = v->grants[*i];
        struct tally *t =
            found ? NULL
                  : find_or_add(ex->lane, g, generation_grant(ex->generation, g), ex->sandbox);
        if (found)
            continue;
        if (!t) {
            s->why = REASON_TOO_MANY;
            return false;
        }
        const struct grant_limits *limits = grant_limits(g);
        if (limits->rate)
            refill(t->row, limits, loop_now(ex->lane->loop));
        enum reason why = room_of(limits, t, s->bytes, s->moving);
        if (why != REASON_ALLOWED) {
            note_refusal(s, why, g, t);
            continue;
        }
        out->grants[out->n] = g;
        out->of[out->n++] = t;
        found = true;
    }
    return found;
}

static void count(const struct taken *taken) {
    for (size_t i = 0; i < taken->n; i++) {
        struct tally *t = taken->of[i];
        t->row->uses++;
        t->row->bytes += taken->bytes;
        t->concurrent++;
    }
}

static void take_each(struct taken *taken, bool moving) {
    count(taken);
    for (size_t i = 0; i < taken->n; i++) {
        const struct grant_limits *limits = grant_limits(taken->grants[i]);
        if (limits->rate && !moving)
            taken->of[i]->row->tokens--;
        if (limits->until && (taken->until == 0 || limits->until < taken->until)) {
            taken->until = limits->until;
            taken->ends = grant_position(taken->grants[i]);
        }
    }
}

static enum reason take(struct exchange *ex, struct taken taken, bool moving) {
    struct search s = {.ex = ex, .bytes = taken.bytes, .moving = moving};
    for (size_t i = 0; i < ex->verdict.n_grants;)
        if (!choose(&s, &i, &taken))
            return s.why;
    take_each(&taken, moving);
    ex->taken = taken;
    return REASON_ALLOWED;
}

enum reason tally_take(struct exchange *ex) {
    uint64_t body = ex->request.framing == FRAMING_LENGTH ? ex->request.length : ex->body_received;
    return take(ex, (struct taken){.bytes = body}, false);
}

static bool take_bytes(struct exchange *ex, size_t n) {
    struct taken *taken = &ex->taken;
    for (size_t i = 0; i < taken->n; i++)
        if (!bytes_fit(grant_limits(taken->grants[i]), taken->of[i]->row, n)) {
            ex->verdict.at = grant_position(taken->grants[i]);
            return false;
        }
    for (size_t i = 0; i < taken->n; i++)
        taken->of[i]->row->bytes += n;
    taken->bytes += n;
    return true;
}

bool tally_take_head(struct exchange *ex, size_t n) {
    if (!take_bytes(ex, n))
        return false;
    ex->taken.heads += n;
    return true;
}

bool tally_take_body(struct exchange *ex, size_t n) {
    return ex->request.framing != FRAMING_CHUNKED || take_bytes(ex, n);
}

bool tally_counts_uses(const struct exchange *ex) {
    bool counts = false;
    for (size_t i = 0; i < ex->taken.n; i++)
        counts = counts || grant_limits(ex->taken.grants[i])->uses > 0;
    return counts;
}

/* ---- giving back ---- */

static void give(struct taken *taken, uint64_t bytes, bool use) {
    for (size_t i = 0; i < taken->n; i++) {
        struct row *r = taken->of[i]->row;
        taken->of[i]->concurrent--;
        r->bytes -= bytes < r->bytes ? bytes : r->bytes;
        r->uses -= use && r->uses > 0;
    }
    *taken = (struct taken){.n = 0};
}

void tally_give(struct exchange *ex) {
    struct taken *taken = &ex->taken;
    uint64_t spent = taken->sent ? taken->heads + ex->body_framed : 0;
    give(taken, left(taken->bytes, spent), !taken->sent);
}

static void hold(const struct taken *taken, bool held) {
    for (size_t i = 0; i < taken->n; i++)
        taken->of[i]->held = held;
}

enum reason tally_move(struct exchange *ex) {
    struct taken before = ex->taken;
    struct taken again = {.bytes = before.bytes, .heads = before.heads, .sent = before.sent};
    hold(&before, true);
    give(&ex->taken, before.bytes, true);
    enum reason why = take(ex, again, true);
    hold(&before, false);
    if (why != REASON_ALLOWED) {
        count(&before);
        ex->taken = before;
    }
    return why;
}

/* ---- status ---- */

static void put_used(struct buf *out, const char *used, const char *rest, uint64_t n,
                     uint64_t limit) {
    json_put_number(out, used, n);
    if (limit)
        json_put_number(out, rest, left(limit, n));
}

static void put_grant(const struct lane *l, const struct grant *g, struct view sandbox,
                      struct buf *out) {
    char name[IDENTITY_SIZE] = "";
    struct buf text;
    static const struct row unused;
    const struct grant_limits *limits = grant_limits(g);
    struct position at = grant_position(g);
    int known = view_cstr(sandbox, name, sizeof name);
    const struct tally *t = known == 0 ? find(l, generation_grant(l->now, g), name) : NULL;
    const struct row *r = t ? t->row : &unused;
    buf_init(&text, 4096);
    grant_put_terms(g, &text);
    buf_put_u8(out, '{');
    json_put_text(out, "sandbox", sandbox);
    json_put_text(out, "service", grant_service(g));
    json_put_text(out, "terms", buf_view(&text));
    buf_reset(&text);
    buf_printf(&text, "%s:%u:%u", at.file, at.line, at.column);
    json_put_text(out, "rule", buf_view(&text));
    put_used(out, "uses", "uses_left", r->uses, limits->uses);
    put_used(out, "bytes", "bytes_left", r->bytes, limits->bytes_out);
    put_used(out, "concurrent", "concurrent_left", t ? t->concurrent : 0, limits->concurrent);
    buf_printf(out, ",\"ended\":%s,\"observes\":%s}",
               limits->until && clock_wall() / SECOND >= limits->until ? "true" : "false",
               grant_observes(g) ? "true" : "false");
    buf_free(&text);
}

void tally_put_status(const struct lane *l, struct buf *out) {
    enum { END_MAX = 64 };
    struct view rest = view_str(l->now ? l->now->names : ""), name;
    const struct grant *g;
    struct buf one;
    size_t more = 0;
    buf_init(&one, out->max);
    buf_put_str(out, ",\"grants\":[");
    for (bool first = true; l->now && lane_sandbox(&rest, &name);)
        for (size_t i = 0; (g = policy_sandbox_grant_at(l->now->policy, name, i)) != NULL; i++) {
            buf_reset(&one);
            buf_put_str(&one, first ? "" : ",");
            put_grant(l, g, name, &one);
            if (!buf_ok(&one) || buf_room(out) < buf_len(&one) + END_MAX) {
                more++;
                continue;
            }
            buf_put(out, buf_view(&one));
            first = false;
        }
    buf_put_u8(out, ']');
    if (more > 0)
        json_put_number(out, "grants_more", more);
    buf_free(&one);
}
