/* A channel to nobody: what is sent on it stays unread at the other end, and nothing comes. */
#ifndef TESTS_UNIT_UNREAD_H
#define TESTS_UNIT_UNREAD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/channel.h"

static int unread_take(void *ctx, struct channel *ch, struct message *m) {
    (void)ctx;
    (void)ch;
    (void)m;
    return 0;
}

static void unread_closed(void *ctx, struct channel *ch, int why) {
    (void)ctx;
    (void)ch;
    fail_msg("%d", why);
}

/* *other: the other end, the caller's to close. */
static struct channel *unread_channel(struct loop *l, int *other) {
    static const struct channel_rule rules[] = {{1, 0, 0, unread_take, "nothing"}};
    int fds[2];
    assert_int_equal(channel_pair(fds), 0);
    *other = fds[1];
    return channel_new(l, fds[0], rules, 1, 0, unread_closed, NULL);
}

#endif
