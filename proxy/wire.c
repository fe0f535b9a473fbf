#include "proxy/wire.h"

#include "base/patience.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

int wire_init(struct wire *w, struct loop *l, int fd, size_t most, event_callback_fn read,
              event_callback_fn write, void *ctx) {
    *w = (struct wire){.fd = fd};
    buf_init(&w->out, most);
    w->readable = event_new(loop_base(l), fd, EV_READ | EV_PERSIST, read, ctx);
    w->writable = event_new(loop_base(l), fd, EV_WRITE, write, ctx);
    if (w->readable && w->writable)
        return 0;
    wire_free(w, false);
    return ERR_MEMORY;
}

void wire_free(struct wire *w, bool reset) {
    tls_free(w->tls);
    if (w->readable)
        event_free(w->readable);
    if (w->writable)
        event_free(w->writable);
    buf_free(&w->out);
    struct linger at_once = {1, 0};
    if (reset)
        setsockopt(w->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    if (w->is_unix)
        patience_close(w->fd);
    else
        close(w->fd);
}

/* ---- reading ---- */

static enum wire_result read_clear(struct wire *w, uint8_t *p, size_t size, size_t *n) {
    ssize_t got;
    do
        got = read(w->fd, p, size);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? WIRE_WAIT : WIRE_LOST;
    *n = (size_t)got;
    return got == 0 ? WIRE_END : WIRE_DONE;
}

static enum wire_result read_result(struct wire *w, enum tls_result result) {
    w->inside = false;
    switch (result) {
    case TLS_WANT_WRITE:
        w->read_on_write = true;
        wire_await_write(w);
        return WIRE_WAIT;
    case TLS_WANT_READ:
        return WIRE_WAIT;
    case TLS_EOF:
        return WIRE_END;
    default:
        return WIRE_LOST;
    }
}

static enum wire_result read_tls(struct wire *w, uint8_t *p, size_t size, size_t *n) {
    w->read_on_write = false;
    do {
        size_t got = 0;
        enum tls_result result = tls_read(w->tls, p + *n, size - *n, &got);
        if (result != TLS_DONE) {
            if (*n == 0)
                return read_result(w, result);
            /* The bytes first; whatever ended them is told again by the next read. */
            w->inside = result != TLS_WANT_READ;
            return WIRE_DONE;
        }
        *n += got;
        w->inside = tls_pending(w->tls);
    } while (w->inside && *n < size);
    return WIRE_DONE;
}

enum wire_result wire_read(struct wire *w, uint8_t *p, size_t size, size_t *n) {
    *n = 0;
    if (w->is_unix)
        patience_begin();
    enum wire_result result = w->tls ? read_tls(w, p, size, n) : read_clear(w, p, size, n);
    if (w->is_unix)
        patience_end();
    if (result == WIRE_END)
        w->ended = true;
    return result;
}

/* ---- writing ---- */

static enum wire_result write_clear(struct wire *w, struct view v, size_t *n) {
    ssize_t put;
    do
        put = write(w->fd, v.p, v.n);
    while (put < 0 && errno == EINTR);
    if (put < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? WIRE_WAIT : WIRE_LOST;
    *n = (size_t)put;
    /* A short write says that the kernel is full: no need to hear it again. */
    return *n < v.n ? WIRE_WAIT : WIRE_DONE;
}

static enum wire_result write_tls(struct wire *w, struct view v, size_t *n) {
    switch (tls_write(w->tls, v, n)) {
    case TLS_DONE:
        return *n < v.n ? WIRE_WAIT : WIRE_DONE;
    case TLS_WANT_WRITE:
        return WIRE_WAIT;
    default:
        /* Without renegotiation a write never waits for a read. */
        return WIRE_LOST;
    }
}

enum wire_result wire_flush(struct wire *w) {
    while (buf_len(&w->out) > 0) {
        size_t n = 0;
        struct view v = buf_view(&w->out);
        enum wire_result result = w->tls ? write_tls(w, v, &n) : write_clear(w, v, &n);
        buf_consume(&w->out, n);
        if (result == WIRE_WAIT)
            wire_await_write(w);
        if (result != WIRE_DONE)
            return result;
    }
    return WIRE_DONE;
}

void wire_await_write(struct wire *w) {
    event_add(w->writable, NULL);
}

void wire_want(struct wire *w, bool read) {
    if (read != w->reading) {
        w->reading = read;
        if (read)
            event_add(w->readable, NULL);
        else
            event_del(w->readable);
    }
    if (read && w->inside)
        event_active(w->readable, EV_READ, 0);
}

void wire_finish(struct wire *w) {
    if (w->tls)
        tls_shutdown(w->tls);
    tls_free(w->tls);
    w->tls = NULL;
    w->inside = w->read_on_write = false;
    shutdown(w->fd, SHUT_WR);
}
