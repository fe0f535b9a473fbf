/*
 * A folder in memory for what keeps files, emptied before each input and removed at the end; and files that are
 * put there as somebody edited them.
 */
#ifndef FUZZ_FOLDER_H
#define FUZZ_FOLDER_H

#include "base/file.h"
#include "fuzz/require.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the folder ---- */

static char folder_path[64];
static int folder = -1; /* its descriptor */

static inline void folder_empty(void) {
    DIR *d = fdopendir(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct dirent *e;
    REQUIRE(d);
    while ((e = readdir(d)))
        if (e->d_name[0] != '.')
            unlinkat(folder, e->d_name, 0);
    closedir(d);
}

static inline void folder_remove(void) {
    folder_empty();
    close(folder);
    rmdir(folder_path);
}

static inline void folder_make(void) {
    static const char *const places[] = {"/dev/shm", "/tmp"};
    for (size_t i = 0; i < 2 && folder < 0; i++) {
        snprintf(folder_path, sizeof folder_path, "%s/exeat-fuzz-XXXXXX", places[i]);
        if (mkdtemp(folder_path))
            folder = open(folder_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    REQUIRE(folder >= 0);
    atexit(folder_remove);
}

static inline void folder_put(const char *name, struct view v) {
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && file_write(fd, v) == 0);
    close(fd);
}

/* False: there is no such file. */
static inline bool folder_get(const char *name, struct buf *out) {
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    REQUIRE(file_read(fd, (size_t)1 << 20, out) == 0);
    return true;
}

/* ---- edited files ---- */

enum { EDITED_NAME_SIZE = 64, EDITED_MAX = 1 << 18, EDITS_MAX = 24 };

/* What it takes. */
enum edit {
    EDIT_WRITE,  /* u16 at, u8 n, bytes: over what is there */
    EDIT_INSERT, /* u16 at, u8 n, bytes */
    EDIT_DELETE, /* u16 at, u16 n */
    EDIT_CUT,    /* u16 at */
    EDIT_REMOVE, /* the file */
    EDIT_MOVE,   /* u8 line, u8 before which */
    EDIT_REPEAT, /* u8 line */
    EDIT_DROP,   /* u8 line */
    EDIT_ADD,    /* u8 a file, whose content is put behind */
    EDIT_TAKE,   /* u8 a file, whose content it gets */
    EDIT_COUNT
};

struct edited {
    char name[EDITED_NAME_SIZE]; /* "": none of its own, its content is only taken */
    struct buf good, text;       /* as it was, as it is now */
    bool removed;
};

static inline struct view edited_line(struct view text, size_t n) {
    struct view v = {NULL, 0};
    for (size_t i = 0; i <= n && text.n > 0; i++) {
        v = text;
        (void)view_cut(&text, '\n');
        v.n -= text.n;
    }
    return v;
}

/* Before and behind `at` stands what stood there, between them v, and n bytes are left out. */
static inline void edited_replace(struct buf *b, size_t at, size_t n, struct view v) {
    struct buf out;
    struct view all = buf_view(b), rest = view_skip(all, at);
    buf_init(&out, EDITED_MAX);
    buf_put(&out, view_head(all, at));
    buf_put(&out, v);
    buf_put(&out, view_skip(rest, n));
    if (buf_ok(&out)) {
        buf_reset(b);
        buf_put(b, buf_view(&out));
    }
    buf_free(&out);
}

static inline size_t edited_offset(const struct buf *b, struct view part) {
    return part.n ? (size_t)(part.p - buf_view(b).p) : buf_len(b);
}

static inline void edited_move(struct buf *b, size_t from, size_t to, bool keep) {
    struct view line = edited_line(buf_view(b), from);
    struct buf copy;
    buf_init(&copy, EDITED_MAX);
    buf_put(&copy, line);
    if (!keep)
        edited_replace(b, edited_offset(b, line), line.n, (struct view){NULL, 0});
    edited_replace(b, edited_offset(b, edited_line(buf_view(b), to)), 0, buf_view(&copy));
    buf_free(&copy);
}

static inline void edited_edit(struct edited *files, size_t n_files, struct edited *f,
                               struct reader *r) {
    struct view v;
    uint16_t at;
    uint8_t n;
    switch (read_u8(r) % EDIT_COUNT) {
    case EDIT_WRITE:
        at = read_u16(r);
        n = read_u8(r);
        edited_replace(&f->text, at, n, read_bytes(r, n));
        break;
    case EDIT_INSERT:
        at = read_u16(r);
        edited_replace(&f->text, at, 0, read_bytes(r, read_u8(r)));
        break;
    case EDIT_DELETE:
        at = read_u16(r);
        edited_replace(&f->text, at, read_u16(r), (struct view){NULL, 0});
        break;
    case EDIT_CUT:
        edited_replace(&f->text, read_u16(r), EDITED_MAX, (struct view){NULL, 0});
        break;
    case EDIT_REMOVE:
        f->removed = true;
        break;
    case EDIT_MOVE:
        n = read_u8(r);
        edited_move(&f->text, n, read_u8(r), false);
        break;
    case EDIT_REPEAT:
        n = read_u8(r);
        edited_move(&f->text, n, n, true);
        break;
    case EDIT_DROP:
        v = edited_line(buf_view(&f->text), read_u8(r));
        edited_replace(&f->text, edited_offset(&f->text, v), v.n, (struct view){NULL, 0});
        break;
    case EDIT_TAKE:
        buf_reset(&f->text);
        /* fall through */
    default:
        edited_replace(&f->text, buf_len(&f->text), 0, buf_view(&files[read_u8(r) % n_files].good));
    }
}

/* What the folder has now under this name. */
static inline void edited_keep(struct edited *f, const char *name) {
    snprintf(f->name, sizeof f->name, "%s", name);
    buf_init(&f->good, EDITED_MAX);
    buf_init(&f->text, EDITED_MAX);
    REQUIRE(folder_get(name, &f->good));
}

static inline bool edited_is_good(const struct edited *f) {
    return !f->removed && view_equal(buf_view(&f->text), buf_view(&f->good));
}

/* Puts the files into the empty folder as the input edits them: each edit a byte for the file, one of enum edit, and what that takes. */
static inline void edited_write(struct edited *files, size_t n_files, struct view input) {
    struct reader r = reader_of(input);
    for (size_t i = 0; i < n_files; i++) {
        buf_reset(&files[i].text);
        buf_put(&files[i].text, buf_view(&files[i].good));
        files[i].removed = false;
    }
    for (int i = 0; i < EDITS_MAX && !r.bad && r.rest.n > 0; i++) {
        size_t which = read_u8(&r) % n_files;
        edited_edit(files, n_files, &files[which], &r);
    }
    folder_empty();
    for (size_t i = 0; i < n_files; i++)
        if (files[i].name[0] && !files[i].removed)
            folder_put(files[i].name, buf_view(&files[i].text));
}

#endif
