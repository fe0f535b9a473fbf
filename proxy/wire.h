/*
 * A client's socket, clear or with TLS on it: reading, and writing what was
 * gathered. Knows nothing of HTTP nor of states.
 */
#ifndef PROXY_WIRE_H
#define PROXY_WIRE_H

#include "base/loop.h"
#include "http/tls.h"

enum wire_result {
    WIRE_DONE, /* bytes were read; or all that was gathered is with the kernel */
    WIRE_WAIT, /* nothing can be done until the socket is ready again */
    WIRE_END,  /* the peer has ended its direction in an orderly way */
    WIRE_LOST, /* reset, cut off inside TLS, or broken: of no more use */
};

struct wire {
    int fd;
    struct tls *tls; /* NULL: clear */
    struct event *readable, *writable;
    struct buf out;     /* gathered, not yet taken by the kernel */
    bool reading;       /* readable is armed */
    bool inside;        /* bytes may wait inside TLS that no event will tell of */
    bool read_on_write; /* TLS must write before it can read on */
    bool ended;         /* WIRE_END was seen */
    bool is_unix;       /* descriptors may come along, which the kernel closes for us */
};

/* Takes over fd, a non-blocking socket. most: bytes that may be gathered. ERR_MEMORY (fd is closed). */
MUST_USE int wire_init(struct wire *w, struct loop *l, int fd, size_t most, event_callback_fn read,
                       event_callback_fn write, void *ctx);
/* Closes. reset: with RST instead of FIN, where nothing else could show that something is missing. */
void wire_free(struct wire *w, bool reset);
/* Up to size bytes; *n says how many on WIRE_DONE. */
enum wire_result wire_read(struct wire *w, uint8_t *p, size_t size, size_t *n);
/* Writes out; on WIRE_WAIT the writable event is armed. */
enum wire_result wire_flush(struct wire *w);
/* Arms or disarms the readable event; armed while bytes wait inside it fires at once. */
void wire_want(struct wire *w, bool read);
/* Arms the writable event once. */
void wire_await_write(struct wire *w);
/* Says that we will write no more, close_notify first; afterwards bytes are read as they come from the kernel. */
void wire_finish(struct wire *w);

#endif
