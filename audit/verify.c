#include "audit/verify.h"

#include "audit/line.h"
#include "audit/log_file.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ATTEMPTS = 3, GLANCES = 64, HEADS_MAX = 2 };

/* A head whose record must be in the log. */
struct wanted {
    const struct chain_head *head;
    const char *name;
    bool exported; /* its record cannot have gone with the oldest files */
    bool seen;
};

struct verify {
    const struct chain_keys *keys;
    struct wanted wanted[HEADS_MAX];
    size_t n_wanted;
    struct chain chain;
    bool begun;
    bool signs;      /* the trail that is read has a signed head */
    uint64_t behind; /* records of it behind its last one */
    bool copied;     /* one file that is not in its place */
    struct verify_report *report;
};

__attribute__((format(printf, 3, 4))) static void find(struct verify *v, uint64_t seq,
                                                       const char *format, ...) {
    struct verify_report *r = v->report;
    va_list ap;
    if (!r->good)
        return; /* the first finding stands */
    r->good = false;
    r->seq = seq;
    va_start(ap, format);
    vsnprintf(r->text, sizeof r->text, format, ap);
    va_end(ap);
}

static void place(struct verify *v, const struct segment_name *name, uint64_t line) {
    if (!v->report->good)
        return;
    snprintf(v->report->file, sizeof v->report->file, "%s", name->text);
    v->report->line = line;
}

/* ---- one record ---- */

static void find_fault(struct verify *v, enum chain_fault fault, const struct chain_line *line) {
    unsigned long long seq = line->seq, before = v->chain.seq;
    if (fault == CHAIN_MALFORMED)
        find(v, 0, "the line behind record %llu %s", before, chain_fault_text(fault));
    else if (fault == CHAIN_MISSING && seq == before + 2)
        find(v, before + 1, "record %llu is missing: record %llu follows %llu", before + 1, seq,
             before);
    else if (fault == CHAIN_MISSING)
        find(v, before + 1, "records %llu to %llu are missing: record %llu follows %llu",
             before + 1, seq - 1, seq, before);
    else if (fault == CHAIN_REPEATED)
        find(v, seq, "record %llu %s, behind record %llu", seq, chain_fault_text(fault), before);
    else
        find(v, seq, "record %llu %s", seq, chain_fault_text(fault));
}

static bool check_signature(struct verify *v, const struct chain_head *h, const char *what) {
    int result = v->keys ? chain_head_verify(v->keys, h) : ERR_MISSING;
    if (result == ERR_MISSING)
        find(v, h->seq, "%s is signed by a key that is not in sign.pub", what);
    else if (result != 0)
        find(v, h->seq, "%s has a wrong signature", what);
    return result == 0;
}

static void want(struct verify *v, const struct chain_head *h, const char *name, bool exported) {
    v->report->has_head = true;
    if (check_signature(v, h, name))
        v->wanted[v->n_wanted++] = (struct wanted){h, name, exported, false};
}

static bool is_wanted(const struct verify *v, uint64_t seq) {
    for (size_t i = 0; i < v->n_wanted; i++)
        if (v->wanted[i].head->seq == seq)
            return true;
    return false;
}

static bool check_wanted(struct verify *v, const struct chain_line *line) {
    for (size_t i = 0; i < v->n_wanted; i++) {
        struct wanted *w = &v->wanted[i];
        if (w->head->seq != line->seq)
            continue;
        w->seen = true;
        if (memcmp(line->hash, w->head->hash, DIGEST_SIZE) == 0)
            continue;
        find(v, line->seq,
             "record %llu is not the one that %s names: "
             "the log was written anew from there or from before",
             (unsigned long long)line->seq, w->name);
        return false;
    }
    return true;
}

static bool check_line(struct verify *v, const struct chain_line *line, bool first_of_file) {
    struct chain_head h;
    if (first_of_file && !view_equal(line->kind, VIEW("segment"))) {
        find(v, line->seq, "the beginning of the file is missing before record %llu",
             (unsigned long long)line->seq);
        return false;
    }
    if (!check_wanted(v, line))
        return false;
    if (!view_equal(line->kind, VIEW("head")))
        return true;
    v->report->heads++;
    if (chain_head_of_line(line, &h) != 0) {
        find(v, line->seq, "record %llu states no signed head", (unsigned long long)line->seq);
        return false;
    }
    hex_encode(view_of(h.key, sizeof h.key), v->report->key);
    v->report->unchecked += !v->keys;
    v->signs = true;
    if (!v->keys && v->copied)
        return true;
    char what[64];
    snprintf(what, sizeof what, "the head in record %llu", (unsigned long long)line->seq);
    return check_signature(v, &h, what);
}

/* A line with a head says nothing else, so that it is covered as well. */
static void count_behind(struct verify *v, const struct chain_line *line) {
    v->behind++;
    v->report->behind++;
    if (view_equal(line->kind, VIEW("head")) || is_wanted(v, line->seq)) {
        v->report->behind -= v->behind;
        v->behind = 0;
    }
}

/* ---- what audit itself has found ---- */

static struct view value_of(struct view text, const char *name) {
    struct line_member m;
    return line_find(text, view_str(name), &m) == 0 ? m.value : VIEW("");
}

/* The chain is whole then, but begins anew behind what was cut or changed while audit did not run. */
static void check_event(struct verify *v, struct view text, uint64_t seq) {
    if (!view_equal(value_of(text, "origin"), VIEW("audit")) ||
        !view_equal(value_of(text, "event"), VIEW("head_mismatch")))
        return;
    find(v, seq, "record %llu: audit found at its start that %.*s", (unsigned long long)seq,
         VIEW_ARG(value_of(text, "detail")));
}

/* ---- one file ---- */

/* Anybody can write a trail whose records fit: with a key at hand, one that nobody signed is not taken for audit's. */
static void check_signed(struct verify *v) {
    if (v->copied && v->keys && v->begun && !v->signs)
        find(v, v->chain.seq, "the trail that ends with record %llu has no signed head",
             (unsigned long long)v->chain.seq);
}

/* Behind the end of one trail, where nothing but a whole one can follow. */
static bool begins_another(const struct verify *v, struct view text) {
    return v->copied && v->n_wanted == 0 && view_equal(value_of(text, "kind"), VIEW("segment")) &&
           view_equal(value_of(text, "seq"), VIEW("1"));
}

static bool check_text(struct verify *v, struct view text, bool first_of_file) {
    struct chain_line line;
    bool begins = begins_another(v, text);
    v->report->trails += begins || !v->begun;
    if (begins) {
        check_signed(v);
        v->chain = (struct chain){.seq = 0};
        v->begun = true;
        v->signs = false;
        v->behind = 0;
    }
    enum chain_fault fault = chain_step(&v->chain, v->begun, text, &line);
    if (fault != CHAIN_GOOD) {
        find_fault(v, fault, &line);
        return false;
    }
    if (v->report->records == 0)
        v->report->first = line.seq;
    v->begun = true;
    if (!check_line(v, &line, first_of_file))
        return false;
    check_event(v, text, line.seq);
    count_behind(v, &line);
    v->report->records++;
    v->report->last = line.seq;
    return true;
}

/* The end of a file that was read whole: is part of a line left? */
static void check_end(struct verify *v, const struct segment_name *name, const struct segment *s,
                      int result) {
    place(v, name, s->line + 1);
    if (result == ERR_LIMIT)
        find(v, 0, "the line behind record %llu %s", (unsigned long long)v->chain.seq,
             chain_fault_text(CHAIN_MALFORMED));
    else if (segment_rest(s) > 0 && name->first != UINT64_MAX)
        find(v, 0, "the file ends inside a record");
    else
        v->report->unfinished = segment_rest(s);
}

/* Stops at the first finding in the file; false: and nothing behind it can be judged. */
static int check_segment(struct verify *v, struct segment *s, const struct segment_name *name,
                         bool *go_on) {
    struct view text;
    int result = 0;
    v->report->files++;
    *go_on = true;
    while (*go_on && (result = segment_next(s, &text)) == 0) {
        place(v, name, s->line);
        *go_on = check_text(v, text, s->line == 1);
    }
    if (*go_on && (result == ERR_AGAIN || result == ERR_LIMIT)) {
        check_end(v, name, s, result);
        *go_on = result == ERR_AGAIN;
        result = 0;
    }
    /* A file that was set aside is a finding, and the chain goes on behind its last good record. */
    if (name->bad && result == 0) {
        place(v, name, 0);
        find(v, v->chain.seq, "%s was set aside when audit started", name->text);
        *go_on = true;
    }
    return result;
}

static int check_file(struct verify *v, int dir, const char *path, const struct segment_name *name,
                      bool *go_on) {
    struct segment s;
    int result = segment_open(dir, path, &s);
    if (result == 0)
        result = check_segment(v, &s, name, go_on);
    segment_close(&s);
    return result;
}

/* ---- the whole ---- */

static void check_head(struct verify *v, const struct wanted *w) {
    const struct verify_report *r = v->report;
    if (w->seen || !r->good)
        return;
    if (w->head->seq > v->chain.seq)
        find(v, r->last + 1,
             "the log ends at record %llu, but %s is of record %llu: its end was cut",
             (unsigned long long)r->last, w->name, (unsigned long long)w->head->seq);
    else if (w->exported)
        find(v, w->head->seq, "%s is of record %llu, older than the oldest file (from %llu)",
             w->name, (unsigned long long)w->head->seq, (unsigned long long)r->first);
}

/* The files of a trail at one moment, whatever audit does with them afterwards. */
struct trail {
    struct segment_list list;
    struct segment current;
    bool has_current;
};

static void trail_close(struct trail *t) {
    segment_list_free(&t->list);
    segment_close(&t->current);
}

static bool is_current(int dir, const struct segment *s) {
    struct stat now, ours;
    return fstatat(dir, SEGMENT_CURRENT, &now, 0) == 0 && fstat(s->fd, &ours) == 0 &&
           now.st_dev == ours.st_dev && now.st_ino == ours.st_ino;
}

static bool lists_current(const struct segment_list *l) {
    return l->n > 0 && l->at[l->n - 1].first == UINT64_MAX;
}

/* The file being written is opened first: is it still the one when the others are listed, none was finished in between. */
static int trail_glance(int dir, struct trail *t, bool *steady) {
    int result = segment_open(dir, SEGMENT_CURRENT, &t->current);
    t->has_current = result == 0;
    t->list = (struct segment_list){0};
    if (result == 0 || result == ERR_MISSING)
        result = segment_list_read(dir, &t->list);
    *steady = t->has_current ? is_current(dir, &t->current) : !lists_current(&t->list);
    return result;
}

static int trail_open(int dir, struct trail *t) {
    bool steady = false;
    int result = trail_glance(dir, t, &steady);
    for (int i = 1; i < GLANCES && result == 0 && !steady; i++) {
        trail_close(t);
        result = trail_glance(dir, t, &steady);
    }
    return result;
}

/* A file that `audit-keep` removed in the meantime is the oldest: ERR_MISSING when others were read before it. */
static int check_files(struct verify *v, int dir, struct trail *t) {
    bool go_on = true;
    int result = 0;
    for (size_t i = 0; i < t->list.n && go_on && result == 0; i++) {
        const struct segment_name *name = &t->list.at[i];
        if (t->has_current && name->first == UINT64_MAX)
            result = check_segment(v, &t->current, name, &go_on);
        else
            result = check_file(v, dir, name->text, name, &go_on);
        if (result == ERR_MISSING && !v->begun) {
            result = 0;
            go_on = true;
        }
    }
    return result;
}

static void conclude(struct verify *v) {
    struct verify_report *r = v->report;
    if (r->good) { /* what follows has no place */
        r->file[0] = 0;
        r->line = 0;
    }
    if (!v->begun && v->n_wanted > 0)
        find(v, 0, "there is no audit log, but %s is of record %llu", v->wanted[0].name,
             (unsigned long long)v->wanted[0].head->seq);
    else if (!v->begun)
        find(v, 0, "there is no audit log");
    if (!v->keys && !v->copied)
        find(v, 0, "sign.pub is missing or no public key: heads cannot be checked");
    check_signed(v);
    for (size_t i = 0; i < v->n_wanted; i++)
        check_head(v, &v->wanted[i]);
}

/* The newest head, read before the log is: what it covers was on the disk when it was signed. */
static int read_newest(int dir, struct verify *v, struct chain_head *out) {
    struct buf text;
    buf_init(&text, 2 * HEAD_JSON_MAX);
    int result = log_file_read(dir, "head.json", HEAD_JSON_MAX, &text);
    bool is_there = result != ERR_MISSING;
    v->report->has_head |= is_there;
    if (result == 0)
        result = chain_head_read(buf_view(&text), out);
    buf_free(&text);
    if (result == 0)
        want(v, out, "head.json", false);
    else if (is_there && result != ERR_SYSTEM)
        find(v, 0, "head.json is no signed head");
    return result == ERR_SYSTEM ? result : 0;
}

static int attempt(int dir, const struct chain_keys *keys, const struct chain_head *head,
                   struct verify_report *out) {
    struct verify v = {.keys = keys, .report = out};
    struct chain_head newest;
    struct trail t;
    *out = (struct verify_report){.good = true};
    if (head)
        want(&v, head, "the exported head", true);
    int result = read_newest(dir, &v, &newest);
    if (result != 0)
        return result;
    result = trail_open(dir, &t);
    if (result == 0)
        result = check_files(&v, dir, &t);
    trail_close(&t);
    if (result == 0)
        conclude(&v);
    return result;
}

int verify_log(int dir, const struct chain_keys *keys, const struct chain_head *head,
               struct verify_report *out) {
    int result = ERR_MISSING;
    for (int i = 0; i < ATTEMPTS && result == ERR_MISSING; i++)
        result = attempt(dir, keys, head, out);
    return result;
}

int verify_file(const char *path, const struct chain_keys *keys, const struct chain_head *head,
                struct verify_report *out) {
    struct verify v = {.keys = keys, .copied = true, .report = out};
    struct segment_name name = {.first = UINT64_MAX};
    const char *slash = strrchr(path, '/');
    bool go_on;
    snprintf(name.text, sizeof name.text, "%s", slash ? slash + 1 : path);
    *out = (struct verify_report){.good = true};
    if (head)
        want(&v, head, "the exported head", true);
    int result = check_file(&v, AT_FDCWD, path, &name, &go_on);
    if (result == 0)
        conclude(&v);
    return result;
}
