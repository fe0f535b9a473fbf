#include "cli/log_table.h"

#include "audit/line.h"
#include "audit/record.h"
#include "policy/echo.h"
#include "run/probe_network.h"

#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS = 4096,
    WAITING_MAX = 20000,
    REASON_WIDTH = 29, /* the longest there is */
    ID_WIDTH = 20,
};

#define WAIT_NS UINT64_C(2000000000)

/* A decision whose outcome may still come, or a whole row that waits for those before it. */
struct row {
    char *decision, *outcome; /* lines */
    size_t decision_size, outcome_size;
    struct view id; /* inside decision; empty: waits for nothing */
    bool complete;
    bool counted; /* instead of printed */
    bool held;    /* how it ends tells whether it matches */
    uint64_t since;
    struct row *before, *next; /* in the order in which they came */
    struct row *same_bucket;
};

struct log_table {
    struct log_filter filter;
    struct buf sandbox, host; /* the filter's values, escaped as in lines */
    bool lines, whole, late, titled, counts;
    FILE *out;
    struct row *first, *last;
    size_t waiting;
    struct row *buckets[BUCKETS];
    uint64_t records, matched, unread, counted;
};

/* ---- values of a line ---- */

static struct view value_of(struct view line, const char *name) {
    struct line_member m;
    return line_find(line, view_str(name), &m) == 0 ? m.value : VIEW("");
}

/* The outcome knows better where it says something. */
static struct view value_of_row(const struct row *r, const char *name) {
    struct view v = value_of(view_of(r->outcome, r->outcome_size), name);
    return view_is_empty(v) ? value_of(view_of(r->decision, r->decision_size), name) : v;
}

static bool host_matches(struct view host, struct view wanted) {
    if (view_equal_nocase(host, wanted))
        return true;
    return host.n > wanted.n && host.p[host.n - wanted.n - 1] == '.' &&
           view_equal_nocase(view_skip(host, host.n - wanted.n), wanted);
}

static bool has_filter(const struct log_table *t) {
    const struct log_filter *f = &t->filter;
    return f->sandbox || f->host || f->denied || f->record || f->since || f->reason ||
           f->credential;
}

/* Of a request; or an event's, whose name says so. */
static bool is_refusal(struct view line) {
    return view_equal(value_of(line, "verdict"), VIEW("deny")) ||
           view_ends(value_of(line, "event"), VIEW("_refused"));
}

/* A refused request may carry several. */
static bool has_credential(struct view line, const char *wanted) {
    struct view names = value_of(line, "credential");
    while (names.n > 0)
        if (view_equal(view_trim(view_cut(&names, ',')), view_str(wanted)))
            return true;
    return false;
}

static bool is_since(struct view line, const char *since) {
    size_t n = strlen(since);
    struct view time = value_of(line, "time");
    return time.n >= n && memcmp(time.p, since, n) >= 0;
}

static bool reason_matches(const struct log_table *t, struct view reason) {
    return !t->filter.reason || view_equal(reason, view_str(t->filter.reason));
}

static bool line_matches(const struct log_table *t, struct view line) {
    if (t->filter.record && !view_equal(value_of(line, "id"), view_str(t->filter.record)))
        return false;
    if (t->filter.sandbox && !view_equal(value_of(line, "sandbox"), buf_view(&t->sandbox)))
        return false;
    if (t->filter.host && !host_matches(value_of(line, "host"), buf_view(&t->host)))
        return false;
    if (t->filter.since && !is_since(line, t->filter.since))
        return false;
    if (t->filter.credential && !has_credential(line, t->filter.credential))
        return false;
    return !t->filter.denied || is_refusal(line);
}

/* log_table.h says which. */
static bool is_doctors(struct view line) {
    struct view host = value_of(line, "host"), reason = value_of(line, "reason");
    if (view_equal(value_of(line, "door"), VIEW("udp")))
        return probe_is_nowhere(value_of(line, "meant")) &&
               view_equal(reason, VIEW("protocol_not_allowed"));
    if (view_equal(host, VIEW(ECHO_HOST)))
        return view_equal(reason, VIEW("allowed")) ||
               view_equal(reason, VIEW("port_not_allowed")) ||
               view_equal(reason, VIEW("client_closed"));
    return probe_is_name(host) && view_equal(value_of(line, "door"), VIEW("dns")) &&
           view_equal(reason, VIEW("host_not_allowed"));
}

/* ---- printing ---- */

static void print_cell(FILE *out, struct view v, int width) {
    if (view_is_empty(v))
        v = VIEW("-");
    fprintf(out, "%-*.*s ", width, VIEW_ARG(v));
}

static void print_title(struct log_table *t) {
    if (t->titled)
        return;
    t->titled = true;
    fprintf(t->out, "%-23s %-14s %-7s %-7s %-6s %-13s %-*s %-16s ", "TIME (UTC)", "SANDBOX",
            "VERDICT", "METHOD", "STATUS", "BYTES OUT/IN", REASON_WIDTH, "REASON", "CREDENTIAL");
    if (t->filter.ids)
        print_cell(t->out, VIEW("RECORD"), ID_WIDTH);
    fputs("HOST AND PATH\n", t->out);
}

static void print_where(FILE *out, const struct row *r) {
    struct view scheme = value_of_row(r, "scheme"), port = value_of_row(r, "port");
    struct view path = value_of_row(r, "path");
    bool plain = (view_equal(scheme, VIEW("https")) && view_equal(port, VIEW("443"))) ||
                 (view_equal(scheme, VIEW("http")) && view_equal(port, VIEW("80")));
    struct view host = value_of_row(r, "host");
    /* A datagram, or a connection that never said a name. */
    fprintf(out, "%.*s", VIEW_ARG(host.n ? host : value_of_row(r, "meant")));
    if (!plain && port.n && host.n)
        fprintf(out, ":%.*s", VIEW_ARG(port));
    fprintf(out, "%.*s", VIEW_ARG(path));
    if (view_equal(value_of_row(r, "reason"), VIEW("address_not_allowed")))
        fprintf(out, "  at %.*s", VIEW_ARG(value_of_row(r, "address")));
    fprintf(out, "%s\n", value_of_row(r, "unenforced").n ? "  UNENFORCED" : "");
}

static void print_event(FILE *out, const struct row *r) {
    static const char *const names[] = {"producer", "credential", "host",
                                        "detail",   "principal",  "unenforced"};
    fprintf(out, "%.*s", VIEW_ARG(value_of_row(r, "event")));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct view v = value_of_row(r, names[i]);
        if (v.n)
            fprintf(out, "  %s: %.*s", names[i], VIEW_ARG(v));
    }
    fputc('\n', out);
}

static void print_bytes(FILE *out, const struct row *r) {
    char text[48] = "-";
    struct view sent = value_of_row(r, "bytes_out"), received = value_of_row(r, "bytes_in");
    if (sent.n || received.n)
        snprintf(text, sizeof text, "%.*s/%.*s", VIEW_ARG(sent.n ? sent : VIEW("0")),
                 VIEW_ARG(received.n ? received : VIEW("0")));
    fprintf(out, "%-13s ", text);
}

static void print_row(struct log_table *t, const struct row *r) {
    struct view decision = view_of(r->decision, r->decision_size);
    bool event = view_equal(value_of(decision, "kind"), VIEW("event"));
    bool observed = !event && value_of(decision, "observed").n > 0;
    struct view verdict = event      ? VIEW("event")
                          : observed ? VIEW("OBSERVE")
                                     : value_of_row(r, "verdict");
    print_title(t);
    print_cell(t->out, view_head(value_of(decision, "time"), 23), 23);
    print_cell(t->out, value_of_row(r, "sandbox"), 14);
    print_cell(t->out, verdict, 7);
    if (event) {
        print_event(t->out, r);
        return;
    }
    print_cell(t->out, value_of_row(r, "method"), 7);
    print_cell(t->out, r->complete ? value_of_row(r, "status") : VIEW("open"), 6);
    print_bytes(t->out, r);
    print_cell(t->out, value_of_row(r, observed ? "observed" : "reason"), REASON_WIDTH);
    print_cell(t->out, value_of_row(r, "credential"), 16);
    if (t->filter.ids)
        print_cell(t->out, value_of(decision, "id"), ID_WIDTH);
    print_where(t->out, r);
}

static void print_members(FILE *out, struct view text) {
    struct line line = line_of(text);
    struct line_member m;
    while (line_next(&line, &m))
        fprintf(out, "%-12.*s %.*s\n", VIEW_ARG(m.name), VIEW_ARG(m.value));
    fputc('\n', out);
}

static void print_line(struct log_table *t, struct view line) {
    if (t->whole)
        print_members(t->out, line);
    else
        fprintf(t->out, "%.*s\n", VIEW_ARG(line));
}

/* ---- rows that wait ---- */

static struct row **bucket_of(struct log_table *t, struct view id) {
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < id.n; i++)
        hash = (hash ^ id.p[i]) * 16777619u;
    return &t->buckets[hash % BUCKETS];
}

static struct row *row_find(struct log_table *t, struct view id) {
    struct row *r = id.n ? *bucket_of(t, id) : NULL;
    while (r && !view_equal(r->id, id))
        r = r->same_bucket;
    return r;
}

static void row_free(struct row *r) {
    free(r->decision);
    free(r->outcome);
    free(r);
}

/* From here on no outcome finds r. */
static void row_settle(struct log_table *t, struct row *r) {
    struct row **at = bucket_of(t, r->id);
    while (*at && *at != r)
        at = &(*at)->same_bucket;
    if (*at)
        *at = r->same_bucket;
    r->id = VIEW("");
}

/* Takes r out of the table. */
static void row_take(struct log_table *t, struct row *r) {
    row_settle(t, r);
    *(r->before ? &r->before->next : &t->first) = r->next;
    *(r->next ? &r->next->before : &t->last) = r->before;
    t->waiting--;
}

/* It has ended, or will not be waited for. */
static void release(struct log_table *t, const struct row *r) {
    t->matched++;
    if (!t->lines)
        return;
    print_line(t, view_of(r->decision, r->decision_size));
    if (r->outcome_size > 0)
        print_line(t, view_of(r->outcome, r->outcome_size));
}

static void row_print(struct log_table *t, struct row *r) {
    bool matches = !r->held || reason_matches(t, value_of_row(r, "reason")) ||
                   reason_matches(t, value_of_row(r, "observed"));
    row_take(t, r);
    if (r->held && matches)
        release(t, r);
    if (!t->lines && !r->counted && matches)
        print_row(t, r);
    row_free(r);
}

/* In the order of decisions, as far as outcomes are there; never more than WAITING_MAX in memory. */
static void print_ready(struct log_table *t) {
    while (t->first && ((t->first->complete && !t->late) || t->waiting > WAITING_MAX))
        row_print(t, t->first);
}

static char *copy(struct view v) {
    char *p = malloc(v.n + 1);
    if (p)
        view_copy(v, p);
    return p;
}

static void row_add(struct log_table *t, struct view line, bool complete, bool held, uint64_t now) {
    struct row *r = calloc(1, sizeof *r);
    if (!r || !(r->decision = copy(line))) {
        free(r);
        t->unread++;
        return;
    }
    r->decision_size = line.n;
    r->complete = complete;
    r->held = held;
    r->counted = t->counts && is_doctors(line);
    t->counted += r->counted;
    r->since = now;
    r->before = t->last;
    *(t->last ? &t->last->next : &t->first) = r;
    t->last = r;
    t->waiting++;
    if (complete && t->late) {
        row_print(t, r);
        return;
    }
    if (!complete) {
        r->id = value_of(view_of(r->decision, r->decision_size), "id");
        struct row **at = bucket_of(t, r->id);
        r->same_bucket = *at;
        *at = r;
    }
    print_ready(t);
}

static void row_complete(struct log_table *t, struct row *r, struct view line) {
    r->outcome = copy(line);
    r->outcome_size = r->outcome ? line.n : 0;
    r->complete = true;
    row_settle(t, r);
    if (t->late || t->lines)
        row_print(t, r);
    else
        print_ready(t);
}

/* ---- lines ---- */

/* Outcomes belong to a decision that was shown. */
static void take_outcome(struct log_table *t, struct view line, uint64_t now) {
    struct row *r = row_find(t, value_of(line, "id"));
    if (!r && has_filter(t) && !(t->filter.record && line_matches(t, line)))
        return;
    if (r && r->held) {
        row_complete(t, r, line);
        return;
    }
    t->matched++;
    if (t->lines)
        print_line(t, line);
    if (r)
        row_complete(t, r, line);
    else if (!t->lines)
        row_add(t, line, true, false, now);
}

void log_table_line(struct log_table *t, struct view line, uint64_t now) {
    struct line_member kind;
    if (line_find(line, VIEW("kind"), &kind) != 0) {
        t->unread++;
        return;
    }
    t->records++;
    if (view_equal(kind.value, VIEW("outcome"))) {
        take_outcome(t, line, now);
        return;
    }
    bool decision = view_equal(kind.value, VIEW("decision"));
    bool shown = decision || view_equal(kind.value, VIEW("event"));
    if (has_filter(t) ? !shown || !line_matches(t, line) : !shown && !t->lines)
        return;
    bool waits = decision && view_equal(value_of(line, "verdict"), VIEW("allow")) &&
                 value_of(line, "id").n > 0;
    bool held = waits && t->filter.reason;
    if (!held && !reason_matches(t, value_of(line, "reason")))
        return;
    t->matched += !held;
    if (t->lines && !held)
        print_line(t, line);
    if (!t->lines || waits)
        row_add(t, line, !waits, held, now);
}

void log_table_tick(struct log_table *t, uint64_t now) {
    while (t->late && !t->lines && t->first && now - t->first->since >= WAIT_NS)
        row_print(t, t->first);
}

void log_table_end(struct log_table *t) {
    for (struct row *r = t->first, *next; r; r = next) {
        next = r->next;
        row_print(t, r);
    }
    if (t->counted > 0)
        fprintf(
            t->out,
            "%llu more of the kind that the doctor tries, to where nobody but exeat answers (--all "
            "shows them)\n",
            (unsigned long long)t->counted);
}

uint64_t log_table_records(const struct log_table *t) {
    return t->records;
}

uint64_t log_table_matched(const struct log_table *t) {
    return t->matched;
}

uint64_t log_table_unread(const struct log_table *t) {
    return t->unread;
}

/* ---- making one ---- */

struct log_table *log_table_new(const struct log_filter *f, bool lines, bool late, FILE *out) {
    struct log_table *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->filter = *f;
    t->lines = lines || f->record;
    t->whole = f->record && !lines;
    t->late = late;
    t->counts = !lines && !late && !f->all && !f->host && !f->record && !f->reason;
    t->out = out;
    buf_init(&t->sandbox, 4096);
    buf_init(&t->host, 4096);
    record_escape(view_str(f->sandbox), &t->sandbox);
    record_escape(view_str(f->host), &t->host);
    if (!buf_ok(&t->sandbox) || !buf_ok(&t->host)) {
        log_table_free(t);
        return NULL;
    }
    return t;
}

void log_table_free(struct log_table *t) {
    if (!t)
        return;
    for (struct row *r = t->first, *next; r; r = next) {
        next = r->next;
        row_free(r);
    }
    buf_free(&t->sandbox);
    buf_free(&t->host);
    free(t);
}
