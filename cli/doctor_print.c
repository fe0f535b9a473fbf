#include "cli/doctor.h"
#include "cli/json_scan.h"
#include "cli/list.h"

#include <stdio.h>

enum { OUTPUT_MORE = 64 << 10 }; /* than the rows */

/* ---- the fixes ---- */

static void print_place(struct view row, struct buf *out) {
    static const char *const parts[] = {"name", "what"};
    struct view part;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        buf_put_str(out, i ? " " : "");
        if (json_member(row, parts[i], &part))
            list_put_text(part, out);
    }
}

/* All rows that it mends, and it; nothing when that was done at a row before this one. */
static void print_fix(struct view rows, struct view at, struct view fix, struct buf *out) {
    struct view rest = json_elements(rows), row, other;
    bool first = true;
    while (json_element(&rest, &row)) {
        if (!json_member(row, "fix", &other) || !view_equal(other, fix))
            continue;
        if (first && row.p != at.p)
            return;
        buf_put_str(out, first ? "\n" : ", ");
        print_place(row, out);
        first = false;
    }
    buf_put_str(out, ": ");
    list_put_text(fix, out);
}

static void print_fixes(struct view rows, struct buf *out) {
    struct view rest = json_elements(rows), row, fix;
    while (json_element(&rest, &row))
        if (json_member(row, "fix", &fix))
            print_fix(rows, row, fix, out);
}

/* ---- all of it ---- */

static void print_json(const struct doctor *d, struct buf *out) {
    buf_printf(out, "{\"sandbox\":%s,\"escaped\":%zu,\"open\":%zu,\"unsure\":%zu,\"failed\":%zu,",
               d->in_sandbox ? "true" : "false", d->escaped, d->open, d->unsure, d->failed);
    buf_put_str(out, "\"rows\":");
    buf_put(out, buf_view(&d->rows));
    buf_put_str(out, "}\n");
}

static void print_table(const struct doctor *d, struct buf *out) {
    static const struct list_column columns[] = {
        {"PART", "part", LIST_TEXT},       {"NAME", "name", LIST_TEXT}, {"WHAT", "what", LIST_TEXT},
        {"VERDICT", "verdict", LIST_TEXT}, {"WHY", "why", LIST_TEXT},   {NULL, NULL, LIST_TEXT}};
    if (!d->in_sandbox)
        buf_put_str(out,
                    "This is not a sandbox: exeat answers by no way from here. To try one, run "
                    "the doctor inside of it: exeat run --policy FILE -- exeat doctor\n\n");
    list_write(buf_view(&d->rows), columns, out);
    if (d->in_sandbox) {
        print_fixes(buf_view(&d->rows), out);
        buf_printf(out, "\n%zu escaped, %zu unsure, %zu failed\n", d->escaped, d->unsure,
                   d->failed);
    } else {
        buf_printf(out, "\n%zu open, %zu unsure\n", d->open, d->unsure);
    }
}

void doctor_print(const struct cli *cli, const struct doctor *d) {
    struct buf out;
    buf_init(&out, 4 * buf_len(&d->rows) + OUTPUT_MORE);
    if (cli->json)
        print_json(d, &out);
    else
        print_table(d, &out);
    cli_print(stdout, &out);
    buf_free(&out);
}
