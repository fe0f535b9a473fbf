#include "proxy/silence.h"

#include "proxy/gate.h"

enum { SILENCE_MS = 50 };

/* HTTP's, TLS's and SSH's, where also a slow client will speak. */
static bool speaks_first(struct view meant) {
    static const struct view ports[] = {VIEW(":80"), VIEW(":443"), VIEW(":22")};
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++)
        if (view_ends(meant, ports[i]))
            return true;
    return false;
}

static const struct timeval moment = {0, SILENCE_MS * 1000};

static void on_silence(evutil_socket_t fd, short what, void *ctx) {
    struct client *c = ctx;
    (void)fd;
    (void)what;
    if (c->tunnel != 0 || (c->state != CLIENT_FIRST && c->state != CLIENT_SNIFF))
        return;
    /* What it has said was not read yet. */
    if (c->is_waiting)
        event_add(c->silence, &moment);
    else
        gate_open_transparent(c, (struct view){NULL, 0}, false);
}

void silence_begin(struct client *c) {
    if (speaks_first(view_str(c->meant)))
        return;
    c->silence = event_new(loop_base(c->proxy->loop), -1, 0, on_silence, c);
    /* Without memory it waits as long as any client. */
    if (c->silence)
        event_add(c->silence, &moment);
}

void silence_end(struct client *c) {
    if (c->silence)
        event_free(c->silence);
    c->silence = NULL;
}
