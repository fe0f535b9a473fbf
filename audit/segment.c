#include "audit/segment.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_SIZE = 256 * 1024 };

/* ---- names ---- */

void segment_name_write(uint64_t first, bool bad, unsigned copy, char *out) {
    char number[16] = "";
    if (copy)
        snprintf(number, sizeof number, ".%u", copy);
    snprintf(out, SEGMENT_NAME_SIZE, "audit-%012llu%s%s.jsonl", (unsigned long long)first,
             bad ? ".bad" : "", number);
}

int segment_name_read(const char *text, struct segment_name *out) {
    struct view v = view_str(text);
    *out = (struct segment_name){.first = UINT64_MAX};
    if (v.n >= SEGMENT_NAME_SIZE)
        return ERR_MISSING;
    memcpy(out->text, v.p, v.n);
    if (view_equal(v, VIEW(SEGMENT_CURRENT)))
        return 0;
    if (!view_starts(v, VIEW("audit-")) || !view_ends(v, VIEW(".jsonl")))
        return ERR_MISSING;
    v = view_slice(v, 6, v.n - 6);
    struct view digits = view_cut(&v, '.');
    out->bad = view_equal(v, VIEW("bad")) || view_starts(v, VIEW("bad."));
    bool good = digits.n >= 12 && view_number(digits, UINT64_MAX - 1, &out->first) == 0;
    return good ? 0 : ERR_MISSING;
}

static int order(const void *a, const void *b) {
    const struct segment_name *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    /* What was set aside first was written first: its successor begins behind its last good line. */
    if (x->bad != y->bad)
        return x->bad ? -1 : 1;
    return strcmp(x->text, y->text);
}

static int list_add(struct segment_list *l, const struct segment_name *name) {
    struct segment_name *at = reallocarray(l->at, l->n + 1, sizeof *at);
    if (!at)
        return ERR_MEMORY;
    at[l->n++] = *name;
    l->at = at;
    return 0;
}

static int list_fill(DIR *d, struct segment_list *out) {
    struct segment_name name;
    struct dirent *e;
    errno = 0;
    while ((e = readdir(d))) {
        if (segment_name_read(e->d_name, &name) == 0 && list_add(out, &name) != 0)
            return ERR_MEMORY;
        errno = 0;
    }
    return errno == 0 ? 0 : ERR_SYSTEM;
}

int segment_list_read(int dir, struct segment_list *out) {
    *out = (struct segment_list){0};
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        if (fd >= 0)
            close(fd);
        return ERR_SYSTEM;
    }
    int result = list_fill(d, out);
    closedir(d);
    if (result != 0)
        segment_list_free(out);
    else if (out->n > 0)
        qsort(out->at, out->n, sizeof *out->at, order);
    return result;
}

void segment_list_free(struct segment_list *l) {
    free(l->at);
    *l = (struct segment_list){0};
}

/* ---- reading ---- */

int segment_open(int dir, const char *name, struct segment *out) {
    *out = (struct segment){.fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY)};
    buf_init(&out->bytes, LINE_MAX_BYTES + READ_SIZE);
    if (out->fd >= 0)
        return 0;
    return errno == ENOENT ? ERR_MISSING : ERR_SYSTEM;
}

void segment_close(struct segment *s) {
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
    buf_free(&s->bytes);
}

/* Bytes that were read: 0 at the end of the file, or an error. */
static ssize_t read_more(struct segment *s) {
    size_t size = READ_SIZE < buf_room(&s->bytes) ? READ_SIZE : buf_room(&s->bytes);
    uint8_t *p = buf_reserve(&s->bytes, size);
    if (!p)
        return ERR_MEMORY;
    ssize_t n;
    do
        n = read(s->fd, p, size);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return ERR_SYSTEM;
    buf_commit(&s->bytes, (size_t)n);
    return n;
}

int segment_next(struct segment *s, struct view *line) {
    buf_consume(&s->bytes, s->shown);
    s->offset += s->shown;
    s->shown = 0;
    size_t searched = 0;
    for (;;) {
        struct view all = buf_view(&s->bytes);
        size_t end = searched + view_find(view_skip(all, searched), '\n');
        if (end > LINE_MAX_BYTES) {
            s->shown = LINE_MAX_BYTES;
            return ERR_LIMIT;
        }
        if (end < all.n) {
            *line = view_head(all, end);
            s->shown = end + 1;
            s->line++;
            return 0;
        }
        searched = all.n;
        ssize_t n = read_more(s);
        if (n <= 0)
            return n == 0 ? ERR_AGAIN : (int)n;
    }
}

size_t segment_rest(const struct segment *s) {
    return buf_len(&s->bytes) - s->shown;
}
