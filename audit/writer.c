#include "audit/record.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* The producer's end of audit/record.h. */

enum { GATHERED_MAX = 1 << 20 };

struct audit_writer {
    int fd;
    char origin[RECORD_ORIGIN_MAX + 1];
    uint64_t epoch, number, ids, durable;
    struct buf header;   /* of the packet being written */
    struct buf gathered; /* records as they stand in packets */
    uint64_t n_gathered;
    bool down, broken;
};

static bool make_nonblocking(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

struct audit_writer *audit_writer_new(int fd, const char *origin, uint64_t epoch) {
    struct audit_writer *w = calloc(1, sizeof *w);
    if (!w || strlen(origin) > RECORD_ORIGIN_MAX || !make_nonblocking(fd)) {
        free(w);
        close(fd);
        return NULL;
    }
    buf_init(&w->header, 128);
    buf_init(&w->gathered, GATHERED_MAX);
    w->fd = fd;
    w->epoch = epoch;
    memcpy(w->origin, origin, strlen(origin));
    return w;
}

void audit_writer_free(struct audit_writer *w) {
    if (!w)
        return;
    close(w->fd);
    buf_free(&w->header);
    buf_free(&w->gathered);
    free(w);
}

int audit_writer_renew(struct audit_writer *w, int fd) {
    if (!make_nonblocking(fd)) {
        close(fd);
        return ERR_SYSTEM;
    }
    close(w->fd);
    w->fd = fd;
    w->down = w->broken = false;
    return 0;
}

static int error_of(int number) {
    switch (number) {
    case EAGAIN:
    case ENOBUFS:
        return ERR_AGAIN;
    case EPIPE:
    case ECONNRESET:
    case ENOTCONN:
        return ERR_CLOSED;
    default:
        return ERR_SYSTEM;
    }
}

/* One packet, whole or not at all. */
static int send_packet(int fd, struct view first, struct view second) {
    struct iovec parts[] = {{(void *)(uintptr_t)first.p, first.n},
                            {(void *)(uintptr_t)second.p, second.n}};
    ssize_t n;
    do
        n = writev(fd, parts, 2);
    while (n < 0 && errno == EINTR);
    return n < 0 ? error_of(errno) : 0;
}

static int send_records(struct audit_writer *w, struct view rest, uint64_t n) {
    int result = send_packet(w->fd, buf_view(&w->header), rest);
    if (result == 0)
        w->number += n;
    if (result == ERR_CLOSED)
        w->broken = true;
    return result;
}

static bool begin_packet(struct audit_writer *w) {
    struct buf *h = &w->header;
    buf_reset(h);
    buf_put_u8(h, 2);
    buf_put_u64(h, w->number + 1);
    buf_put_u64(h, w->epoch);
    buf_put_block(h, view_str(w->origin));
    return buf_ok(h);
}

int audit_write(struct audit_writer *w, struct record *r) {
    assert(w->n_gathered == 0);
    if (!begin_packet(w) || !buf_ok(&r->bytes))
        return ERR_MEMORY;
    buf_put_u32(&w->header, (uint32_t)buf_len(&r->bytes));
    return buf_ok(&w->header) ? send_records(w, buf_view(&r->bytes), 1) : ERR_MEMORY;
}

int audit_gather(struct audit_writer *w, struct record *r, uint64_t *number) {
    if (!buf_ok(&r->bytes))
        return ERR_MEMORY;
    if (buf_room(&w->gathered) < buf_len(&r->bytes) + 4)
        return ERR_AGAIN;
    buf_put_block(&w->gathered, buf_view(&r->bytes));
    if (!buf_ok(&w->gathered)) {
        w->gathered.failed = false; /* nothing was put, and what is kept stays good */
        return ERR_MEMORY;
    }
    *number = w->number + ++w->n_gathered;
    return 0;
}

/* As many of the gathered records as a packet holds; their number. */
static uint64_t fill_packet(const struct audit_writer *w, struct view *out) {
    size_t room = RECORD_PACKET_SIZE - buf_len(&w->header), used = 0;
    uint64_t n = 0;
    struct view all = buf_view(&w->gathered);
    while (n < w->n_gathered && n < RECORDS_A_PACKET) {
        struct reader r = reader_of(view_skip(all, used));
        size_t size = 4 + read_u32(&r);
        if (used + size > room)
            break;
        used += size;
        n++;
    }
    *out = view_head(all, used);
    return n;
}

int audit_flush(struct audit_writer *w) {
    while (w->n_gathered > 0) {
        struct view records;
        if (w->broken)
            return ERR_CLOSED;
        if (!begin_packet(w))
            return ERR_MEMORY;
        uint64_t n = fill_packet(w, &records);
        int result = send_records(w, records, n);
        if (result != 0)
            return result;
        w->n_gathered -= n;
        buf_consume(&w->gathered, records.n);
    }
    return 0;
}

bool audit_writer_is_behind(const struct audit_writer *w) {
    return w->n_gathered > 0;
}

uint64_t audit_writer_number(const struct audit_writer *w) {
    return w->number;
}

static size_t view_put(struct view v, char *out) {
    view_copy(v, out);
    return v.n;
}

/* One letter, at most 10, 12 and 20 characters, two '-' and NUL: not by printf, since every request has one. */
void audit_id(struct audit_writer *w, char out[40]) {
    size_t name = strcspn(w->origin, " ");
    const char *lane = w->origin[name] ? w->origin + name + 1 : "";
    uint64_t ms = (w->epoch / 1000000) & 0xfffffffffffULL;
    size_t n = 0;
    out[n++] = w->origin[0];
    n += view_put(view_head(view_str(lane), 10), out + n);
    out[n++] = '-';
    n += digits_write(ms, 16, out + n);
    out[n++] = '-';
    n += digits_write(++w->ids, 10, out + n);
    out[n] = 0;
}

int audit_writer_fd(const struct audit_writer *w) {
    return w->fd;
}

static int take_notice(struct audit_writer *w, struct view packet, struct audit_notice *out) {
    struct reader r = reader_of(packet);
    if (packet.n == 16) {
        uint64_t epoch = read_u64(&r);
        uint64_t number = read_u64(&r);
        if (epoch != w->epoch)
            return ERR_AGAIN; /* to a writer that stood here before us */
        if (number > w->number || number < w->durable)
            return ERR_BAD;
        w->durable = number;
        *out = (struct audit_notice){AUDIT_DURABLE, number};
        return 0;
    }
    uint8_t what = read_u8(&r);
    if (!read_done(&r) || (what != 'D' && what != 'U'))
        return ERR_BAD;
    w->down = what == 'D';
    *out = (struct audit_notice){w->down ? AUDIT_DOWN : AUDIT_UP, 0};
    return 0;
}

int audit_writer_read(struct audit_writer *w, struct audit_notice *out) {
    uint8_t packet[32];
    ssize_t n;
    do
        n = read(w->fd, packet, sizeof packet);
    while (n < 0 && errno == EINTR);
    int result = n < 0    ? error_of(errno)
                 : n == 0 ? ERR_CLOSED
                          : take_notice(w, view_of(packet, (size_t)n), out);
    if (result == ERR_CLOSED || result == ERR_BAD)
        w->broken = true;
    return result;
}

bool audit_writer_usable(const struct audit_writer *w) {
    return !w->down && !w->broken;
}

uint64_t audit_writer_durable(const struct audit_writer *w) {
    return w->durable;
}
