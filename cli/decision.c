#include "cli/decision.h"

#include "audit/segment.h"
#include "cli/command.h"
#include "cli/json_scan.h"
#include "policy/echo.h"
#include "run/probe_network.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* ---- lines ---- */

bool decision_line_says(struct view line, const char *name, const char *value) {
    struct view raw, word;
    return json_member(line, name, &raw) && json_word(raw, &word) &&
           view_equal(word, view_str(value));
}

static struct view member(struct decision *d, struct view line, const char *name) {
    struct view raw;
    size_t before = buf_len(&d->memory);
    if (json_member(line, name, &raw))
        json_text(raw, &d->memory);
    return view_skip(buf_view(&d->memory), before);
}

bool decision_read(struct view line, struct decision *d) {
    struct view port, raw;
    uint64_t number = 0;
    bool named = decision_line_says(line, "door", "dns"); /* which is asked for without a port */
    buf_reset(&d->memory);
    if (!decision_line_says(line, "kind", "decision") || json_member(line, "target_bytes", &raw) ||
        !buf_reserve(&d->memory, 8 * line.n))
        return false;
    d->id = member(d, line, "id");
    d->verdict = member(d, line, "verdict");
    d->reason = member(d, line, "reason");
    d->sandbox = member(d, line, "sandbox");
    d->method = member(d, line, "method");
    d->scheme = member(d, line, "scheme");
    d->host = member(d, line, "host");
    d->path = member(d, line, "path");
    d->query = member(d, line, "query");
    d->address = member(d, line, "address");
    d->rule = member(d, line, "rule");
    port = member(d, line, "port");
    d->bare = named || d->method.n == 0 || view_equal(d->method, VIEW("CONNECT"));
    d->foreign = json_member(line, "material", &raw);
    d->why = d->observed = REASON_ALLOWED;
    struct view observed = member(d, line, "observed");
    if (observed.n > 0 && reason_find(observed, &d->observed) != 0)
        return false;
    if (view_equal(d->verdict, VIEW("deny")) && reason_find(d->reason, &d->why) != 0)
        return false;
    return buf_ok(&d->memory) && (named || view_number(port, UINT16_MAX, &number) == 0) &&
           authority_parse_host(d->host, (uint16_t)number, &d->authority, NULL) == 0;
}

bool decision_is_request(const struct decision *d) {
    return view_starts(d->path, VIEW("/")) && !d->bare;
}

bool decision_is_exeats(const struct decision *d) {
    return echo_is_host(&d->authority) || probe_is_name(d->host);
}

bool decision_is_doctors_datagram(struct view line) {
    struct view raw, end;
    return decision_line_says(line, "door", "udp") && json_member(line, "meant", &raw) &&
           json_word(raw, &end) && probe_is_nowhere(end);
}

/* ---- files ---- */

static int fail_log(const char *path, int err) {
    if (err == ERR_BAD)
        return cli_fail(EXIT_UNSEEN, "%s: " DECISION_NO_TRAIL, path);
    return cli_unread(path, err == ERR_MISSING ? ERR_SYSTEM : err);
}

/* Calls each for every line; one that is too long for a record, or not whole, is none. ERR_BAD: no line is a record. */
static int read_segment(int dir, const char *name, void (*each)(void *ctx, struct view line),
                        void *ctx) {
    struct segment s;
    struct view line, raw;
    size_t records = 0;
    int err = segment_open(dir, name, &s);
    while (err == 0 || err == ERR_LIMIT) {
        err = segment_next(&s, &line);
        if (err != 0)
            continue;
        records += json_member(line, "kind", &raw);
        each(ctx, line);
    }
    segment_close(&s);
    if (err != ERR_AGAIN)
        return err;
    return records == 0 ? ERR_BAD : 0;
}

/* The files of a trail in the order in which they were written. ERR_BAD: there are none. */
static int read_directory(int dir, void (*each)(void *ctx, struct view line), void *ctx) {
    struct segment_list list = {.n = 0};
    int err = segment_list_read(dir, &list);
    for (size_t i = 0; err == 0 && i < list.n; i++) {
        err = list.at[i].bad ? 0 : read_segment(dir, list.at[i].text, each, ctx);
        if (err == ERR_MISSING || (err == ERR_BAD && i + 1 == list.n && i > 0))
            err = 0; /* rotated or removed while we read, or just begun */
    }
    if (err == 0 && list.n == 0)
        err = ERR_BAD;
    segment_list_free(&list);
    return err;
}

/* A file of the trail, or its directory with all of them. EXIT_YES; anything else was told. */
static int read_log(const char *path, void (*each)(void *ctx, struct view line), void *ctx) {
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
    if (dir >= 0) {
        err = read_directory(dir, each, ctx);
        close(dir);
    } else {
        err = read_segment(AT_FDCWD, path, each, ctx);
    }
    return err == 0 ? EXIT_YES : fail_log(path, err);
}

int decision_read_logs(const char *const *paths, int n, void (*each)(void *ctx, struct view line),
                       void *ctx) {
    int code = EXIT_YES;
    for (int i = 0; i < n && code == EXIT_YES; i++)
        code = read_log(paths[i], each, ctx);
    return code;
}
