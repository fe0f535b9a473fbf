#include "daemon/links.h"

#include "base/log.h"
#include "daemon/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct {
    enum role a, b;
} table[] = {
    {ROLE_EGRESS, ROLE_CA},      {ROLE_EGRESS, ROLE_BROKER}, {ROLE_EGRESS, ROLE_DIALER},
    {ROLE_CONTROL, ROLE_BROKER}, {ROLE_ATTACH, ROLE_BROKER},
};

/* Those whose channel is made with the lane. */
static bool are_of_one_lane(const struct process *x, const struct process *y) {
    return x->lane && x->lane == y->lane && (x->role == ROLE_EGRESS || y->role == ROLE_EGRESS);
}

static bool are_in_table(const struct process *x, const struct process *y) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if ((table[i].a == x->role && table[i].b == y->role) ||
            (table[i].a == y->role && table[i].b == x->role))
            return true;
    return false;
}

bool links_may_talk(const struct process *x, const struct process *y) {
    return are_of_one_lane(x, y) || are_in_table(x, y);
}

static bool are_linked(const struct process *x, const struct process *y) {
    for (size_t i = 0; i < LINKS_MAX; i++)
        if (x->linked[i] == y)
            return true;
    return false;
}

void links_send_peer(struct process *to, enum role role, uint32_t lane, struct view name, int fd) {
    struct buf b;
    buf_init(&b, 512);
    buf_put_u8(&b, (uint8_t)role);
    buf_put_u32(&b, lane);
    buf_put_block(&b, name);
    channel_send_fd(to->channel, PARENT_PEER, 0, 0, buf_view(&b), fd);
    buf_free(&b);
}

/* The public key that ca signs for in this lane: its proxy's, told to the parent at start. */
static struct view key_of_lane(struct parent *p, uint32_t lane) {
    for (struct process *of = p->processes; of; of = of->next)
        if (of->role == ROLE_PROXY && of->lane == lane && of->state == PROCESS_UP)
            return buf_view(&of->key);
    return (struct view){NULL, 0};
}

static void connect_both(struct process *x, struct process *y) {
    int pair[2];
    struct view key = {NULL, 0};
    struct process *ca = x->role == ROLE_CA ? x : y->role == ROLE_CA ? y : NULL;
    if (ca)
        key = key_of_lane(x->parent, x->lane + y->lane);
    if ((ca && view_is_empty(key)) || channel_pair(pair) != 0)
        return;
    links_send_peer(x, y->role, y->lane, x == ca ? key : view_str(y->origin), pair[0]);
    links_send_peer(y, x->role, x->lane, y == ca ? key : view_str(x->origin), pair[1]);
    /* Noted on the lane's side: a shared role has a link to every lane. */
    struct process *keeper = y->lane && !x->lane ? y : x;
    for (size_t i = 0; i < LINKS_MAX; i++) {
        if (keeper->linked[i])
            continue;
        keeper->linked[i] = keeper == x ? y : x;
        return;
    }
}

void links_send_records(struct process *audit, const struct process *of) {
    if (of->audit_read >= 0)
        links_send_peer(audit, of->role, of->lane, view_str(of->origin),
                        fcntl(of->audit_read, F_DUPFD_CLOEXEC, 0));
}

/* Audit gets the reading ends of all streams, everybody else a writing end of its own. */
static void hand_out_audit(struct process *of) {
    struct process *audit = of->parent->processes;
    while (audit && audit->role != ROLE_AUDIT)
        audit = audit->next;
    if (of == audit) {
        for (struct process *each = of->parent->processes; each; each = each->next)
            links_send_records(of, each);
        for (struct process *each = of->parent->processes; each; each = each->next)
            if (each != of && each->state == PROCESS_UP && each->audit_write >= 0)
                links_send_peer(each, ROLE_AUDIT, 0, (struct view){NULL, 0},
                                fcntl(each->audit_write, F_DUPFD_CLOEXEC, 0));
    } else if (audit && audit->state == PROCESS_UP && of->audit_write >= 0) {
        links_send_peer(of, ROLE_AUDIT, 0, (struct view){NULL, 0},
                        fcntl(of->audit_write, F_DUPFD_CLOEXEC, 0));
    }
}

static void connect_with_all(struct process *of) {
    for (struct process *each = of->parent->processes; each; each = each->next)
        if (of->state == PROCESS_UP && each->state == PROCESS_UP && are_in_table(of, each) &&
            !are_linked(of, each) && !are_linked(each, of))
            connect_both(of, each);
}

void links_make(struct process *of) {
    hand_out_audit(of);
    connect_with_all(of);
    /* Ca needs the key of a lane's proxy before it can serve its egress. */
    if (of->role == ROLE_PROXY)
        connect_with_all(process_find(of->parent, ROLE_EGRESS, of->lane));
}

static void tell_gone(struct process *to, const struct process *of) {
    if (to->state != PROCESS_UP)
        return;
    struct buf *b = channel_begin(to->channel, PARENT_PEER_GONE, 0, 0);
    buf_put_u8(b, (uint8_t)of->role);
    buf_put_u32(b, of->lane);
    channel_end(to->channel);
}

/* Nothing of it is to be read any more. Who has read waits for nothing: audit leaves in the kernel what it has not written. */
static bool is_read(const struct process *of) {
    int waiting = 0;
    return ioctl(of->audit_read, FIONREAD, &waiting) == 0 && waiting == 0;
}

/* Audit has closed its end too: what it says to producers comes before the end of it. */
static bool is_let_go(const struct process *of) {
    uint8_t said[64];
    ssize_t n;
    while ((n = recv(of->audit_write, said, sizeof said, MSG_DONTWAIT)) > 0)
        ;
    return n == 0 || errno != EAGAIN;
}

bool links_records_ended(struct process *of) {
    struct process *audit = process_find(of->parent, ROLE_AUDIT, 0);
    if (of->audit_write < 0)
        return true;
    if (of->audit_read >= 0) {
        if (!is_read(of))
            return false;
        close(of->audit_read);
        of->audit_read = -1;
        /* One that is not up has none of it open. */
        if (audit->state == PROCESS_UP)
            tell_gone(audit, of);
    }
    return is_let_go(of);
}

static void forget(struct process *x, const struct process *y) {
    for (size_t i = 0; i < LINKS_MAX; i++)
        if (x->linked[i] == y)
            x->linked[i] = NULL;
}

void links_lost(struct process *of) {
    for (struct process *each = of->parent->processes; each; each = each->next) {
        if (each == of)
            continue;
        bool linked = are_linked(each, of) || are_linked(of, each);
        if (linked || (of->role == ROLE_AUDIT && each->audit_write >= 0))
            tell_gone(each, of);
        forget(each, of);
    }
    for (size_t i = 0; i < LINKS_MAX; i++)
        of->linked[i] = NULL;
}
