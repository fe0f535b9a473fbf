#include "cli/list.h"

#include "cli/json_scan.h"

#include <time.h>

enum { CELL_MAX = 4096, COLUMNS_MAX = 16, GAP = 2 };

static void put_time(struct view value, struct buf *out) {
    uint64_t seconds;
    char text[32];
    struct tm tm;
    if (view_number(value, INT32_MAX * UINT64_C(100), &seconds) != 0)
        return;
    time_t t = (time_t)seconds;
    if (gmtime_r(&t, &tm) && strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm) > 0)
        buf_put_str(out, text);
}

static void put_words(struct view value, struct buf *out) {
    struct view rest = json_elements(value), element;
    size_t before = buf_len(out);
    while (json_element(&rest, &element)) {
        buf_put_str(out, buf_len(out) > before ? " " : "");
        json_text(element, out);
    }
}

/* Control characters cannot reach the terminal, whatever the daemon says. */
/* From `at` on. */
static void make_visible(struct buf *out, size_t at) {
    for (size_t i = out->pos + at; i < out->n; i++)
        if (out->p[i] < 0x20 || out->p[i] >= 0x7f)
            out->p[i] = '?';
}

void list_put_text(struct view value, struct buf *out) {
    size_t at = buf_len(out);
    json_text(value, out);
    make_visible(out, at);
}

static void put_cell(struct view object, const struct list_column *c, struct buf *out) {
    struct view value;
    size_t at = buf_len(out);
    if (!json_member(object, c->member, &value))
        return;
    if (c->format == LIST_TIME)
        put_time(value, out);
    else if (c->format == LIST_YES_NO)
        buf_put_str(out, view_equal(value, VIEW("true")) ? "yes" : "no");
    else if (c->format == LIST_WORDS)
        put_words(value, out);
    else
        json_text(value, out);
    make_visible(out, at);
}

static size_t cell_width(struct view object, const struct list_column *c) {
    struct buf cell;
    buf_init(&cell, CELL_MAX);
    put_cell(object, c, &cell);
    size_t n = buf_len(&cell);
    buf_free(&cell);
    return n;
}

static void put_padded(struct buf *out, size_t from, size_t width, bool last) {
    for (size_t n = buf_len(out) - from; !last && n < width + GAP; n++)
        buf_put_u8(out, ' ');
}

static void put_row(struct view object, const struct list_column *columns, const size_t *widths,
                    struct buf *out) {
    for (size_t i = 0; columns[i].title; i++) {
        size_t from = buf_len(out);
        if (object.n == 0)
            buf_put_str(out, columns[i].title);
        else
            put_cell(object, &columns[i], out);
        put_padded(out, from, widths[i], !columns[i + 1].title);
    }
    buf_put_u8(out, '\n');
}

void list_write(struct view json, const struct list_column *columns, struct buf *out) {
    size_t widths[COLUMNS_MAX];
    struct view rest = json_elements(json), object;
    for (size_t i = 0; columns[i].title; i++)
        widths[i] = view_str(columns[i].title).n;
    while (json_element(&rest, &object))
        for (size_t i = 0; columns[i].title; i++) {
            size_t n = cell_width(object, &columns[i]);
            widths[i] = n > widths[i] ? n : widths[i];
        }
    put_row(VIEW(""), columns, widths, out);
    for (rest = json_elements(json); json_element(&rest, &object);)
        put_row(object, columns, widths, out);
}
