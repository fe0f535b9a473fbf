#include "audit/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPIES_MAX = 10000 };

/* ---- writing ---- */

static int write_at(int fd, struct view v, uint64_t at) {
    while (v.n > 0) {
        ssize_t n = pwrite(fd, v.p, v.n, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            if (n == 0)
                errno = EIO;
            return ERR_SYSTEM;
        }
        v = view_skip(v, (size_t)n);
        at += (uint64_t)n;
    }
    return 0;
}

static int sync_directory(int dir) {
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = fd >= 0 && fsync(fd) == 0 ? 0 : ERR_SYSTEM;
    if (fd >= 0)
        close(fd);
    return result;
}

static int create_current(struct log_file *f) {
    f->fd = openat(f->dir, SEGMENT_CURRENT, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    f->size = 0;
    return f->fd >= 0 ? sync_directory(f->dir) : ERR_SYSTEM;
}

int log_file_append(struct log_file *f, struct view v, bool sync) {
    if (f->fd < 0 && create_current(f) != 0)
        return ERR_SYSTEM;
    int result = write_at(f->fd, v, f->size);
    if (result == 0 && sync)
        result = log_file_sync(f);
    if (result == 0)
        f->size += v.n;
    return result;
}

int log_file_sync(struct log_file *f) {
    return f->fd < 0 || fdatasync(f->fd) == 0 ? 0 : ERR_SYSTEM;
}

/* A name that no file has yet. */
static int free_name(int dir, uint64_t first, bool bad, char *out) {
    struct stat st;
    for (unsigned copy = 0; copy < COPIES_MAX; copy++) {
        segment_name_write(first, bad, copy, out);
        if (fstatat(dir, out, &st, AT_SYMLINK_NOFOLLOW) != 0)
            return errno == ENOENT ? 0 : ERR_SYSTEM;
    }
    return ERR_SYSTEM;
}

static int rename_current(struct log_file *f, uint64_t first, bool bad, char *name) {
    if (free_name(f->dir, first, bad, name) != 0 ||
        renameat(f->dir, SEGMENT_CURRENT, f->dir, name) != 0)
        return ERR_SYSTEM;
    log_file_close(f);
    return sync_directory(f->dir);
}

int log_file_rotate(struct log_file *f, uint64_t first) {
    char name[SEGMENT_NAME_SIZE];
    if (f->fd < 0)
        return 0;
    /* A write that failed half may have left bytes behind the end. */
    if (ftruncate(f->fd, (off_t)f->size) != 0 || log_file_sync(f) != 0)
        return ERR_SYSTEM;
    return rename_current(f, first, false, name);
}

void log_file_close(struct log_file *f) {
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
    f->size = 0;
}

int log_file_remove_oldest(struct log_file *f, uint64_t keep, char out[SEGMENT_NAME_SIZE]) {
    struct segment_list list;
    int result = segment_list_read(f->dir, &list);
    uint64_t finished = 0;
    const struct segment_name *oldest = NULL;
    for (size_t i = 0; result == 0 && i < list.n; i++) {
        if (list.at[i].bad || list.at[i].first == UINT64_MAX)
            continue;
        if (finished++ == 0)
            oldest = &list.at[i];
    }
    if (result == 0 && finished <= keep)
        result = ERR_MISSING;
    if (result == 0) {
        memcpy(out, oldest->text, SEGMENT_NAME_SIZE);
        result = unlinkat(f->dir, out, 0) == 0 ? 0 : ERR_SYSTEM;
    }
    segment_list_free(&list);
    return result;
}

/* ---- small files ---- */

/* What root makes in somebody else's directory is of use only to its owner. */
static int give(int dir, int fd) {
    struct stat st;
    if (fstat(dir, &st) != 0)
        return ERR_SYSTEM;
    return st.st_uid == geteuid() || fchown(fd, st.st_uid, st.st_gid) == 0 ? 0 : ERR_SYSTEM;
}

int log_file_replace(int dir, const char *name, unsigned mode, struct view v) {
    char temporary[SEGMENT_NAME_SIZE];
    snprintf(temporary, sizeof temporary, "%s.new", name);
    if (unlinkat(dir, temporary, 0) != 0 && errno != ENOENT)
        return ERR_SYSTEM;
    int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0)
        return ERR_SYSTEM;
    /* Not the umask's business who may read these. */
    int result = fchmod(fd, mode) == 0 ? write_at(fd, v, 0) : ERR_SYSTEM;
    if (result == 0)
        result = give(dir, fd);
    if (result == 0 && fsync(fd) != 0)
        result = ERR_SYSTEM;
    close(fd);
    if (result == 0 && renameat(dir, temporary, dir, name) != 0)
        result = ERR_SYSTEM;
    return result == 0 ? sync_directory(dir) : result;
}

int log_file_read(int dir, const char *name, size_t max, struct buf *out) {
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return errno == ENOENT ? ERR_MISSING : ERR_SYSTEM;
    uint8_t *p = buf_reserve(out, max + 1);
    ssize_t n = p ? read(fd, p, max + 1) : 0;
    close(fd);
    if (!p || n < 0)
        return p ? ERR_SYSTEM : ERR_MEMORY;
    if ((size_t)n > max)
        return ERR_LIMIT;
    buf_commit(out, (size_t)n);
    return 0;
}

/* ---- finding the end at a start ---- */

struct scan {
    struct chain chain;
    bool begun;
    uint64_t first;   /* number of the first good line */
    uint64_t good;    /* bytes of good lines */
    bool faulty;      /* a line, or what is left of one, is not good */
    bool well_formed; /* the faulty line is whole: no torn write looks like that */
    bool more;        /* good lines of ours stand behind the fault */
    enum chain_fault fault;
    uint64_t fault_line;
};

static void note_fault(struct scan *s, enum chain_fault fault, uint64_t line) {
    s->faulty = true;
    s->fault = fault;
    s->fault_line = line;
    s->well_formed = fault != CHAIN_MALFORMED;
}

/* Is there any line of a log behind the fault? Then it is not the end that was torn off. */
static int scan_rest(struct scan *s, struct segment *file) {
    struct view text;
    struct chain_line line;
    int result;
    while ((result = segment_next(file, &text)) == 0 || result == ERR_LIMIT)
        if (result == 0 && chain_read(text, &line) == CHAIN_GOOD)
            s->more = true;
    return result;
}

static int scan_lines(struct scan *s, struct segment *file, log_line_seen *seen, void *ctx) {
    struct view text;
    struct chain_line line;
    int result;
    while ((result = segment_next(file, &text)) == 0) {
        enum chain_fault fault = chain_step(&s->chain, s->begun, text, &line);
        if (fault == CHAIN_GOOD && !s->begun && !view_equal(line.kind, VIEW("segment")))
            fault = CHAIN_MISSING;
        if (fault != CHAIN_GOOD) {
            note_fault(s, fault, file->line);
            return scan_rest(s, file);
        }
        if (!s->begun)
            s->first = line.seq;
        s->begun = true;
        s->good += text.n + 1;
        seen(ctx, &line);
    }
    if (result == ERR_LIMIT || (result == ERR_AGAIN && segment_rest(file) > 0))
        note_fault(s, CHAIN_MALFORMED, file->line + 1);
    return result == ERR_LIMIT ? scan_rest(s, file) : result;
}

/* 0 when all of the file was read, whatever stands in it; ERR_MISSING; ERR_SYSTEM. */
static int scan_file(int dir, const char *name, log_line_seen *seen, void *ctx, struct scan *s) {
    struct segment file;
    *s = (struct scan){0};
    int result = segment_open(dir, name, &file);
    if (result != 0)
        return result;
    result = scan_lines(s, &file, seen, ctx);
    segment_close(&file);
    return result == ERR_AGAIN ? 0 : result;
}

/* Where the chain stood before the current file: the end of the file before it. */
static int scan_before(int dir, log_line_seen *seen, void *ctx, struct chain *out) {
    struct segment_list list;
    struct scan s = {0};
    int result = segment_list_read(dir, &list);
    *out = (struct chain){0};
    if (result != 0)
        return result;
    for (size_t i = list.n; i > 0; i--) {
        if (list.at[i - 1].first == UINT64_MAX)
            continue;
        result = scan_file(dir, list.at[i - 1].text, seen, ctx, &s);
        if (result != 0 || s.begun)
            break;
    }
    if (result == 0 && s.begun)
        *out = s.chain;
    segment_list_free(&list);
    return result;
}

static int open_current(struct log_file *f, uint64_t size) {
    f->fd = openat(f->dir, SEGMENT_CURRENT, O_RDWR | O_CLOEXEC);
    f->size = size;
    return f->fd >= 0 ? 0 : ERR_SYSTEM;
}

static int cut_current(struct log_file *f, uint64_t *cut) {
    struct stat st;
    if (fstat(f->fd, &st) != 0 || (uint64_t)st.st_size < f->size)
        return ERR_SYSTEM;
    *cut = (uint64_t)st.st_size - f->size;
    if (*cut == 0)
        return 0;
    return ftruncate(f->fd, (off_t)f->size) == 0 && fsync(f->fd) == 0 ? 0 : ERR_SYSTEM;
}

int log_file_open(struct log_file *f, int dir, log_line_seen *seen, void *ctx,
                  struct log_found *found) {
    struct scan s;
    *f = (struct log_file){.dir = dir, .fd = -1};
    *found = (struct log_found){0};
    int result = scan_file(dir, SEGMENT_CURRENT, seen, ctx, &s);
    if (result != 0 && result != ERR_MISSING)
        return result;
    bool exists = result == 0;
    found->needs_header = !s.begun;
    found->chain = s.chain;
    if (!s.begun && (result = scan_before(dir, seen, ctx, &found->chain)) != 0)
        return result;
    if (!exists)
        return 0;
    if (s.faulty && (s.well_formed || s.more)) {
        found->needs_header = true;
        found->fault = s.fault;
        found->fault_line = s.fault_line;
        return rename_current(f, s.begun ? s.first : found->chain.seq + 1, true, found->set_aside);
    }
    result = open_current(f, s.good);
    return result == 0 ? cut_current(f, &found->cut) : result;
}
