#include "audit/ledger.h"

#include "audit/findings.h"
#include "audit/sign_key.h"
#include "base/log.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PENDING_MAX = 4 << 20,
    PRODUCERS_MAX = 65536,
    /* Of a record's line, what is not its values: names, numbers, hashes. */
    LINE_FRAME_MAX = 4096,
    /* What a packet may need: each byte as an escape of six, and two events with it: a new epoch and a gap. */
    PACKET_LINES_MAX =
        6 * RECORD_PACKET_SIZE + RECORDS_A_PACKET * LINE_FRAME_MAX + 2 * LINE_MAX_BYTES,
    EARLIER_MAX = 8,
};

struct producer {
    char origin[RECORD_ORIGIN_MAX + 1];
    bool known; /* a record of it stands in the log */
    bool again; /* nothing came since the log was opened: what it has may come again */
    uint64_t earlier[EARLIER_MAX]; /* the last epochs before this one that were in the log */
    size_t n_earlier;
    uint64_t epoch, number;
    uint64_t written_epoch, written; /* as far as ledger_flush came */
};

struct ledger {
    int dir;
    struct log_file file;
    struct ledger_settings settings;
    struct chain chain;
    struct buf line, pending;
    struct buf findings; /* lines that are not in their file yet */
    struct producer *producers;
    size_t n_producers;
    struct record event; /* for the ledger's own events */
    uint64_t mono;       /* of the newest record, for them */
    uint64_t first;      /* number of the current file's first record */
    bool fresh;          /* nothing but header lines in the current file */
    /* heads */
    struct chain_signer *signer;
    struct chain_keys *keys;
    struct chain_head last_head; /* as head.json has it; seq 0: none */
    bool head_seen, head_matches;
    uint64_t head_line;             /* number of the newest line of kind "head" */
    uint64_t synced;                /* records up to this one are on the disk */
    uint64_t lost_first, lost_last; /* a sync failed that covered these */
};

/* ---- lines ---- */

static void line_close(struct ledger *l) {
    int result = chain_close_line(&l->chain, &l->line);
    assert(result == 0); /* memory was reserved, and no record makes so long a line */
    buf_put(&l->pending, buf_view(&l->line));
    assert(buf_ok(&l->pending));
}

static void put_hex(uint64_t x, struct buf *out) {
    char text[17];
    uint8_t bytes[8];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(x >> (56 - 8 * i));
    hex_encode(view_of(bytes, sizeof bytes), text);
    buf_put_str(out, text);
}

static void line_origin(struct ledger *l, const char *origin, uint64_t number, uint64_t epoch) {
    buf_put_str(&l->line, ",\"origin\":\"");
    record_escape(view_str(origin), &l->line);
    buf_put_u8(&l->line, '"');
    if (!number)
        return;
    buf_put_str(&l->line, ",\"n\":");
    buf_put_decimal(&l->line, number);
    buf_put_str(&l->line, ",\"epoch\":\"");
    put_hex(epoch, &l->line);
    buf_put_u8(&l->line, '"');
}

static void line_record(struct ledger *l, const struct record_facts *f, const char *origin,
                        uint64_t number) {
    chain_open_line(&l->chain, f->wall, &l->line);
    line_origin(l, origin, number, f->epoch);
    buf_put_str(&l->line, ",\"mono\":");
    buf_put_decimal(&l->line, f->mono / 1000);
    record_json(f, &l->line);
    line_close(l);
    l->mono = f->mono;
    l->fresh = false;
}

int ledger_event(struct ledger *l, const struct record *r) {
    struct buf packet;
    struct record_facts f;
    int result = 0;
    if (buf_room(&l->pending) <= LINE_MAX_BYTES + 1)
        return ERR_LIMIT;
    /* The same way as every other record, so that there is one writer of lines. */
    buf_init(&packet, RECORD_SIZE);
    buf_put_u8(&packet, 2);
    buf_put_u64(&packet, 1);
    buf_put_u64(&packet, 0);
    buf_put_block(&packet, VIEW("audit"));
    buf_put_block(&packet, buf_view(&r->bytes));
    if (!buf_ok(&packet) || record_read(buf_view(&packet), &f) != 0)
        result = ERR_MEMORY;
    else
        line_record(l, &f, "audit", 0);
    buf_free(&packet);
    return result;
}

static struct record *event_begin(struct ledger *l, const char *name, uint64_t wall) {
    record_begin(&l->event, RECORD_EVENT, wall, l->mono);
    record_str(&l->event, FIELD_EVENT, name);
    return &l->event;
}

/* The newest event_begin's record. Room was seen to by who calls. */
static void event_end(struct ledger *l) {
    int result = ledger_event(l, &l->event);
    if (result != 0)
        log_warn("an event of audit's own is lost: %s", err_text(result));
}

static void line_header(struct ledger *l, uint64_t wall) {
    chain_open_line(&l->chain, wall, &l->line);
    line_origin(l, "audit", 0, 0);
    buf_put_str(&l->line, ",\"kind\":\"segment\"");
    line_close(l);
    l->first = l->chain.seq;
    l->fresh = true;
}

/* So that the end of one file tells where every producer stood, whatever happened to older ones. */
static void line_producer(struct ledger *l, const struct producer *p, uint64_t wall) {
    chain_open_line(&l->chain, wall, &l->line);
    line_origin(l, p->origin, p->number, p->epoch);
    buf_put_str(&l->line, ",\"kind\":\"producer\"");
    line_close(l);
}

/* ---- producers ---- */

static size_t producer_find(const struct ledger *l, struct view origin) {
    size_t i = 0;
    while (i < l->n_producers && !view_equal(view_str(l->producers[i].origin), origin))
        i++;
    return i;
}

int ledger_producer(struct ledger *l, const char *origin, size_t *out) {
    struct view name = view_str(origin);
    size_t i = producer_find(l, name);
    *out = i;
    if (i < l->n_producers)
        return 0;
    if (name.n == 0 || name.n > RECORD_ORIGIN_MAX)
        return ERR_BAD;
    if (i == PRODUCERS_MAX)
        return ERR_LIMIT;
    struct producer *more = reallocarray(l->producers, i + 1, sizeof *more);
    if (!more)
        return ERR_MEMORY;
    l->producers = more;
    more[i] = (struct producer){0};
    memcpy(more[i].origin, origin, name.n);
    l->n_producers = i + 1;
    return 0;
}

static void note_restart(struct ledger *l, const struct producer *p, uint64_t wall) {
    struct record *r = event_begin(l, "producer_restarted", wall);
    record_str(r, FIELD_PRODUCER, p->origin);
    record_number(r, FIELD_LAST, p->number);
    event_end(l);
}

static void note_gap(struct ledger *l, const struct producer *p, uint64_t first, uint64_t last,
                     uint64_t wall) {
    char detail[160];
    struct record *r = event_begin(l, "gap", wall);
    snprintf(detail, sizeof detail, "records %llu to %llu of %s are lost",
             (unsigned long long)first, (unsigned long long)last, p->origin);
    record_str(r, FIELD_DETAIL, detail);
    record_str(r, FIELD_PRODUCER, p->origin);
    record_number(r, FIELD_FIRST, first);
    record_number(r, FIELD_LAST, last);
    event_end(l);
    log_warn("%s", detail);
}

bool ledger_has_room(const struct ledger *l) {
    return buf_room(&l->pending) > PACKET_LINES_MAX;
}

static bool was_there(const struct producer *p, uint64_t epoch) {
    for (size_t i = 0; i < p->n_earlier && i < EARLIER_MAX; i++)
        if (p->earlier[i] == epoch)
            return true;
    return false;
}

int ledger_take(struct ledger *l, size_t producer, struct view packet) {
    struct producer *p = &l->producers[producer];
    struct record_packet k;
    struct record_facts f;
    assert(producer < l->n_producers && ledger_has_room(l));
    if (record_packet_read(packet, &k) != 0 || !view_equal(k.origin, view_str(p->origin)) ||
        record_next(&k, &f) != 0)
        return ERR_BAD;
    bool same = p->known && f.epoch == p->epoch;
    uint64_t expected = same ? p->number + 1 : 1;
    int result = 0;
    if (p->again && !same && was_there(p, f.epoch))
        return 0;
    while (p->again && same && f.number < expected)
        if ((result = record_next(&k, &f)) != 0)
            return result == ERR_MISSING ? 0 : ERR_BAD;
    if (f.number < expected)
        return ERR_BAD;
    p->again = false;
    if (p->known && !same)
        note_restart(l, p, f.wall);
    if (f.number > expected)
        note_gap(l, p, expected, f.number - 1, f.wall);
    do {
        line_record(l, &f, p->origin, f.number);
        p->known = true;
        p->epoch = f.epoch;
        p->number = f.number;
    } while ((result = record_next(&k, &f)) == 0);
    return result == ERR_MISSING ? 0 : ERR_BAD;
}

bool ledger_written(const struct ledger *l, size_t producer, uint64_t *epoch, uint64_t *number) {
    const struct producer *p = &l->producers[producer];
    *epoch = p->written_epoch;
    *number = p->written;
    return p->written > 0;
}

/* ---- writing ---- */

static void note_written(struct ledger *l) {
    for (size_t i = 0; i < l->n_producers; i++) {
        l->producers[i].written_epoch = l->producers[i].epoch;
        l->producers[i].written = l->producers[i].number;
    }
    if (l->settings.durable)
        l->synced = l->chain.seq;
}

static int write_pending(struct ledger *l) {
    struct view v = buf_view(&l->pending);
    if (view_is_empty(v))
        return 0;
    int result = log_file_append(&l->file, v, l->settings.durable);
    if (result != 0)
        return result;
    buf_consume(&l->pending, v.n);
    note_written(l);
    return 0;
}

static void remove_old_files(struct ledger *l, uint64_t wall) {
    char name[SEGMENT_NAME_SIZE];
    int result = ERR_MISSING;
    while (l->settings.keep && ledger_has_room(l) &&
           (result = log_file_remove_oldest(&l->file, l->settings.keep, name)) == 0) {
        struct record *r = event_begin(l, "file_removed", wall);
        record_str(r, FIELD_DETAIL, name);
        event_end(l);
    }
    if (result != 0 && result != ERR_MISSING)
        log_warn("an old audit file cannot be removed: %s", strerror(errno));
}

static void begin_file(struct ledger *l, uint64_t wall) {
    line_header(l, wall);
    for (size_t i = 0; i < l->n_producers; i++)
        if (l->producers[i].known && buf_room(&l->pending) > PENDING_MAX / 2)
            line_producer(l, &l->producers[i], wall);
}

static int sync_file(struct ledger *l) {
    if (log_file_sync(&l->file) == 0) {
        l->synced = l->chain.seq;
        return 0;
    }
    /* The kernel may have thrown the pages away: a later success says nothing about these records. */
    if (!l->lost_first)
        l->lost_first = l->synced + 1;
    l->lost_last = l->chain.seq;
    return ERR_SYSTEM;
}

static void note_lost(struct ledger *l, uint64_t wall) {
    if (!l->lost_first)
        return;
    struct record *r = event_begin(l, "sync_failed", wall);
    record_str(r, FIELD_DETAIL, "the disk failed: these records may not be on it");
    record_number(r, FIELD_FIRST, l->lost_first);
    record_number(r, FIELD_LAST, l->lost_last);
    event_end(l);
    l->lost_first = l->lost_last = 0;
}

static int rotate(struct ledger *l, uint64_t wall) {
    int result = sync_file(l);
    if (result == 0)
        result = log_file_rotate(&l->file, l->first);
    if (l->file.fd >= 0)
        return result;
    /* From here on the next append makes a new file, also when the old one's new name is not synced yet. */
    begin_file(l, wall);
    note_lost(l, wall);
    remove_old_files(l, wall);
    return result == 0 ? write_pending(l) : result;
}

static int write_findings(struct ledger *l) {
    struct view lines = buf_view(&l->findings);
    int result = view_is_empty(lines) ? 0 : findings_add(l->dir, lines);
    if (result == 0)
        buf_reset(&l->findings);
    return result;
}

int ledger_flush(struct ledger *l, uint64_t wall) {
    /* First, as a start finds what was set aside only once. */
    int result = write_findings(l);
    if (result == 0)
        result = write_pending(l);
    if (result == 0 && !l->fresh && l->file.fd >= 0 && l->file.size >= l->settings.file_bytes)
        result = rotate(l, wall);
    return result;
}

bool ledger_is_behind(const struct ledger *l) {
    return buf_len(&l->pending) > 0;
}

/* ---- heads ---- */

static int write_head(struct ledger *l, const struct chain_head *h) {
    struct buf text;
    buf_init(&text, HEAD_JSON_MAX);
    chain_head_write(h, &text);
    int result =
        buf_ok(&text) ? log_file_replace(l->dir, "head.json", 0644, buf_view(&text)) : ERR_MEMORY;
    buf_free(&text);
    return result;
}

static void line_head(struct ledger *l, const struct chain_head *h, uint64_t wall) {
    chain_open_line(&l->chain, wall, &l->line);
    line_origin(l, "audit", 0, 0);
    chain_head_members(h, &l->line);
    line_close(l);
    l->head_line = l->chain.seq;
}

int ledger_sign(struct ledger *l, uint64_t wall) {
    struct chain_head h;
    int result = ledger_flush(l, wall);
    if (result != 0 || l->chain.seq == l->head_line)
        return result;
    /* A head must never promise what the disk can still lose. */
    result = sync_file(l);
    if (result == 0 && l->lost_first) {
        note_lost(l, wall);
        result = ledger_flush(l, wall);
        if (result == 0)
            result = sync_file(l);
    }
    if (result == 0)
        result = chain_head_sign(l->signer, &l->chain, wall, &h);
    if (result == 0)
        result = write_head(l, &h);
    if (result != 0)
        return result;
    l->last_head = h;
    line_head(l, &h, wall);
    return ledger_flush(l, wall);
}

const struct chain_head *ledger_head(const struct ledger *l) {
    return l->last_head.seq > 0 ? &l->last_head : NULL;
}

/* ---- opening ---- */

static void on_line(void *ctx, const struct chain_line *line) {
    struct ledger *l = ctx;
    char origin[RECORD_ORIGIN_MAX + 1];
    size_t at;
    l->head_line = view_equal(line->kind, VIEW("head")) ? line->seq : l->head_line;
    if (view_equal(line->kind, VIEW("segment")))
        l->first = line->seq;
    if (line->seq == l->last_head.seq) {
        l->head_seen = true;
        l->head_matches = memcmp(line->hash, l->last_head.hash, DIGEST_SIZE) == 0;
    }
    if (!line->numbered || view_cstr(line->origin, origin, sizeof origin) != 0 ||
        ledger_producer(l, origin, &at) != 0)
        return;
    struct producer *p = &l->producers[at];
    if (p->known && p->epoch != line->epoch)
        p->earlier[p->n_earlier++ % EARLIER_MAX] = p->epoch;
    p->known = p->again = true;
    p->epoch = p->written_epoch = line->epoch;
    p->number = p->written = line->n;
}

static int read_last_head(struct ledger *l) {
    struct buf text;
    buf_init(&text, 2 * HEAD_JSON_MAX);
    int result = log_file_read(l->dir, "head.json", HEAD_JSON_MAX, &text);
    if (result == 0 && (chain_head_read(buf_view(&text), &l->last_head) != 0 ||
                        chain_head_verify(l->keys, &l->last_head) != 0)) {
        log_warn("head.json is not a head that this log's key has signed");
        l->last_head = (struct chain_head){0};
    }
    buf_free(&text);
    return result == ERR_MISSING || result == ERR_LIMIT ? 0 : result;
}

/* An event that nobody may miss. */
static void end_finding(struct ledger *l, const char *detail, uint64_t wall) {
    char time[CHAIN_TIME_SIZE];
    chain_time(wall, time);
    record_str(&l->event, FIELD_DETAIL, detail);
    event_end(l);
    buf_printf(&l->findings, "%s %s\n", time, detail);
    log_warn("%s", detail);
}

static void note_file(struct ledger *l, const struct log_found *found, uint64_t wall) {
    char detail[192];
    if (found->cut) {
        struct record *r = event_begin(l, "recovered", wall);
        record_str(r, FIELD_DETAIL, "a torn end of the file was cut");
        record_number(r, FIELD_BYTES, found->cut);
        event_end(l);
        log_warn("a torn end of %llu bytes was cut", (unsigned long long)found->cut);
    }
    if (found->set_aside[0]) {
        snprintf(detail, sizeof detail, "%s: line %llu %s", found->set_aside,
                 (unsigned long long)found->fault_line, chain_fault_text(found->fault));
        event_begin(l, "set_aside", wall);
        end_finding(l, detail, wall);
    }
}

/* What the newest signed head says against what the disk says: head.json is written before the line of a head. */
static void note_head(struct ledger *l, uint64_t end, uint64_t wall) {
    const char *what = NULL;
    char detail[128];
    if (l->last_head.seq > end)
        what = "records up to a signed head are missing from the end of the log";
    else if (l->head_seen && !l->head_matches)
        what = "the log was changed: it does not agree with its newest signed head";
    else if (l->last_head.seq + 1 < l->head_line)
        what = "head.json is not the newest head that the log has";
    if (!what)
        return;
    struct record *r = event_begin(l, "head_mismatch", wall);
    if (l->last_head.seq > end)
        record_number(r, FIELD_FIRST, end + 1);
    record_number(r, FIELD_LAST, l->last_head.seq);
    snprintf(detail, sizeof detail, "%s (record %llu)", what,
             (unsigned long long)(l->last_head.seq ? l->last_head.seq : l->head_line - 1));
    end_finding(l, detail, wall);
}

static int open_log(struct ledger *l, uint64_t wall) {
    struct log_found found;
    bool made = false;
    int result = sign_key_open(l->dir, &l->signer, &l->keys, &made);
    if (result == 0)
        result = read_last_head(l);
    if (result == 0)
        result = log_file_open(&l->file, l->dir, on_line, l, &found);
    if (result != 0)
        return result;
    l->chain = found.chain;
    l->synced = found.chain.seq;
    if (found.needs_header)
        begin_file(l, wall);
    if (made) {
        event_begin(l, "signing_key_made", wall);
        event_end(l);
    }
    note_file(l, &found, wall);
    note_head(l, found.chain.seq, wall);
    event_begin(l, "started", wall);
    event_end(l);
    return 0;
}

int ledger_open(int dir, uint64_t wall, uint64_t mono, struct ledger **out) {
    struct ledger *l = calloc(1, sizeof *l);
    if (!l)
        return ERR_MEMORY;
    *l = (struct ledger){.dir = dir, .mono = mono, .file = {.dir = dir, .fd = -1}};
    l->settings = (struct ledger_settings){.file_bytes = UINT64_MAX};
    buf_init(&l->line, LINE_MAX_BYTES + 4096);
    buf_init(&l->pending, PENDING_MAX);
    buf_init(&l->findings, FINDINGS_MAX);
    /* Now, so that no record can ever fail for want of memory. */
    bool reserved = buf_reserve(&l->line, LINE_MAX_BYTES + 4096) != NULL &&
                    buf_reserve(&l->pending, PENDING_MAX) != NULL;
    int result = reserved ? open_log(l, wall) : ERR_MEMORY;
    if (result != 0) {
        ledger_free(l);
        return result;
    }
    *out = l;
    return 0;
}

void ledger_free(struct ledger *l) {
    if (!l)
        return;
    log_file_close(&l->file);
    chain_signer_free(l->signer);
    chain_keys_free(l->keys);
    record_free(&l->event);
    buf_free(&l->line);
    buf_free(&l->pending);
    buf_free(&l->findings);
    free(l->producers);
    free(l);
}

void ledger_set(struct ledger *l, const struct ledger_settings *s) {
    l->settings = *s;
}

uint64_t ledger_seq(const struct ledger *l) {
    return l->chain.seq;
}

uint64_t ledger_bytes(const struct ledger *l) {
    return l->file.size;
}
