#include "daemon/rollout.h"
#include "daemon/load.h"

#include "base/file.h"
#include "base/log.h"
#include "daemon/attached.h"
#include "daemon/lanes.h"
#include "daemon/parent.h"
#include "daemon/places.h"
#include "daemon/process.h"
#include "policy/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LATE_SECONDS = 10, LATEST_SECONDS = 60, GATHER_MS = 500, CONFIG_TEXT_MAX = 1 << 20 };

/* ---- loading ---- */

/* At a first start parent_loaded says it: that is the end of it. */
static void keep_error(struct parent *p, struct view text) {
    char line[256];
    if (view_cstr(view_head(text, sizeof p->load_error - 1), p->load_error, sizeof p->load_error) !=
        0)
        log_text(text, p->load_error, sizeof p->load_error);
    if (!p->ready)
        return;
    log_warn("the new configuration is not used");
    while (text.n > 0)
        log_warn("%s", log_text(view_cut(&text, '\n'), line, sizeof line));
}

/* The CA may have been rotated. At the start of ca it is given its files anyway. */
static bool renew_ca(struct parent *p) {
    struct process *ca = process_find(p, ROLE_CA, 0), *attach = process_find(p, ROLE_ATTACH, 0);
    return p->generation == 0 ||
           ((ca->state != PROCESS_UP || place_files(p, ca)) &&
            (!attach || attach->state != PROCESS_UP || place_files(p, attach)));
}

static void use_loaded(struct parent *p) {
    struct reader r = reader_of(buf_view(&p->loaded));
    uint8_t outcome = read_u8(&r);
    if (r.bad || outcome != LOAD_GOOD) {
        keep_error(p, r.bad ? VIEW("the load child died") : r.rest);
        int why = outcome == LOAD_UNCONFIRMED ? ERR_DENIED : ERR_BAD;
        parent_loaded(p, r.bad ? ERR_SYSTEM : why, view_str(p->load_error));
        return;
    }
    if (!renew_ca(p)) {
        keep_error(p, VIEW("a file of the CA cannot be used: the lines before this one tell why"));
        parent_loaded(p, ERR_BAD, view_str(p->load_error));
        return;
    }
    buf_reset(&p->candidate);
    buf_put(&p->candidate, r.rest);
    p->load_error[0] = 0;
    rollout_begin(p);
}

static void on_loader(evutil_socket_t fd, short what, void *ctx) {
    struct parent *p = ctx;
    (void)what;
    uint8_t *at = buf_reserve(&p->loaded, 65536);
    ssize_t n = at ? read(fd, at, 65536) : 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        buf_commit(&p->loaded, (size_t)n);
        return;
    }
    event_free(p->loader_readable);
    p->loader_readable = NULL;
    close(p->loader_fd);
    p->loader_fd = -1;
    use_loaded(p);
    buf_free(&p->loaded);
}

void rollout_load(struct parent *p, bool confirmed) {
    if (p->loader_readable) {
        log_info("a reload is in progress already");
        return;
    }
    buf_init(&p->loaded, 64 << 20);
    p->loader_fd = process_start_loader(p, confirmed ? -1 : p->text);
    if (p->loader_fd >= 0)
        p->loader_readable =
            event_new(loop_base(p->loop), p->loader_fd, EV_READ | EV_PERSIST, on_loader, p);
    if (!p->loader_readable || event_add(p->loader_readable, NULL) != 0) {
        char why[128];
        snprintf(why, sizeof why, "the load child cannot be started: %s", strerror(errno));
        keep_error(p, view_str(why));
        parent_loaded(p, ERR_SYSTEM, view_str(p->load_error));
    }
}

void rollout_registry(struct parent *p, uint64_t state, struct view registry, bool left) {
    /* A broker that was started again tells what is known. */
    if (p->has_registry && state == p->registry_state &&
        view_equal(registry, buf_view(&p->registry)))
        return;
    p->registry_state = state;
    buf_reset(&p->registry);
    buf_put(&p->registry, registry);
    p->has_registry = true;
    if (left)
        p->rollout.left = true;
    else
        p->rollout.wanted = true;
    rollout_begin(p);
}

void rollout_leave(struct parent *p) {
    p->rollout.left = true;
    rollout_begin(p);
}

/* ---- the text ---- */

/* Its lanes' listeners must be there before anybody hears of them. Why not is kept. */
static int plan(struct parent *p) {
    struct reader r = reader_of(buf_view(&p->candidate));
    struct view config = read_block(&r, CONFIG_TEXT_MAX);
    struct buf why;
    buf_init(&why, sizeof p->load_error);
    int result = r.bad ? ERR_BAD : lanes_plan(p, config, &why);
    if (result != 0)
        keep_error(p, buf_len(&why) ? buf_view(&why) : VIEW("no memory for its lanes"));
    buf_free(&why);
    return result;
}

/* Base, lanes and registry in one sealed memfd: nobody can change what the others read. */
static int make_text(struct parent *p) {
    struct bundle b;
    struct buf out, lanes;
    int fd = -1;
    /* A text that nobody will use is not tried again with the next change of the registry. */
    struct view base = buf_len(&p->candidate) > 0 ? buf_view(&p->candidate) : buf_view(&p->base);
    buf_reset(&p->rollout.base);
    buf_put(&p->rollout.base, base);
    p->rollout.loaded = buf_len(&p->candidate) > 0;
    buf_reset(&p->candidate);
    struct reader r = reader_of(buf_view(&p->rollout.base));
    read_block(&r, CONFIG_TEXT_MAX);
    if (r.bad || bundle_read(r.rest, &b) != 0)
        return -1;
    buf_init(&lanes, 1 << 20);
    lanes_put(p, p->rollout.number + 1, b.lanes, &lanes);
    b.lanes = buf_view(&lanes);
    b.registry = buf_view(&p->registry);
    p->rollout.registry_state = p->registry_state;
    p->rollout.limits = b.limits;
    buf_init(&out, 64 << 20);
    bundle_write(&b, &out);
    if (buf_ok(&out) && buf_ok(&lanes))
        fd = memfd_create("exeat-generation", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 &&
        (file_write(fd, buf_view(&out)) != 0 ||
         fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
        close(fd);
        fd = -1;
    }
    buf_free(&out);
    buf_free(&lanes);
    return fd;
}

/* A generation is being agreed on; once it is committed it is the one in use. */
static bool is_open(const struct parent *p) {
    return p->rollout.running && !p->rollout.committed;
}

/* Those that judge by that generation. */
static bool takes_part(const struct process *of, uint32_t number) {
    return of->role != ROLE_CONTROL && of->state == PROCESS_UP && lanes_has(of, number);
}

static void send_text(struct process *of, uint32_t number, int text) {
    struct parent *p = of->parent;
    of->acknowledging = true;
    of->prepared = 0;
    if (of->role != ROLE_PROXY) {
        channel_send_fd(of->channel, PARENT_GENERATION, 0, number, (struct view){NULL, 0},
                        fcntl(text, F_DUPFD_CLOEXEC, 0));
        return;
    }
    struct buf *b = channel_begin(of->channel, PARENT_LIMITS, 0, number);
    limits_write(is_open(p) ? &p->rollout.limits : &p->limits, b);
    channel_end(of->channel);
}

static void send_commit(struct process *of, uint32_t number) {
    of->generation = number;
    of->confirming = true;
    channel_send(of->channel, PARENT_COMMIT, 0, number, (struct view){NULL, 0});
}

/* ---- rolling out ---- */

static void finish(struct parent *p) {
    /* Who acknowledges one that was committed came up meanwhile, and is committed alone. */
    for (struct process *of = p->processes; of && !p->rollout.committed; of = of->next)
        of->acknowledging = false;
    p->rollout.running = p->rollout.committed = false;
    event_del(p->rollout.late);
}

/* Everybody uses it: whoever waits for that is told. */
static void in_use(struct parent *p) {
    struct process *broker = process_find(p, ROLE_BROKER, 0);
    finish(p);
    parent_committed(p);
    if (takes_part(broker, p->generation)) {
        struct buf *b = channel_begin(broker->channel, PARENT_IN_USE, 0, p->generation);
        buf_put_u64(b, p->rollout.registry_state);
        channel_end(broker->channel);
    }
    rollout_begin(p);
}

/*
 * As long as others answer it is the machine that is slow, but not without end: that would be a veto as well. Each half, to read a
 * generation and to use it, has its time.
 */
static void wait_for_the_late(struct parent *p) {
    struct timeval late = {LATE_SECONDS, 0};
    if (p->rollout.running &&
        clock_mono() - p->rollout.begun < LATEST_SECONDS * UINT64_C(1000000000))
        event_add(p->rollout.late, &late);
}

static void wait_anew(struct parent *p) {
    p->rollout.begun = clock_mono();
    wait_for_the_late(p);
}

static void commit(struct parent *p) {
    uint32_t number = p->rollout.number;
    p->rollout.committed = true;
    wait_anew(p);
    buf_reset(&p->base);
    buf_put(&p->base, buf_view(&p->rollout.base));
    p->limits = p->rollout.limits;
    if (p->text >= 0)
        close(p->text);
    p->text = p->rollout.text;
    p->generation = number;
    lanes_commit(p);
    /*
     * Shared roles first: a lane that is still at N - 1 asks again. Proxies last, each once its egress uses it:
     * they begin to accept, and would accept what nobody judges yet.
     */
    for (struct process *of = p->processes; of; of = of->next)
        if (takes_part(of, number) && of->role != ROLE_PROXY)
            send_commit(of, number);
    for (struct process *of = p->processes; of; of = of->next)
        if (takes_part(of, number) && of->role == ROLE_PROXY) {
            of->prepared = number;
            of->confirming = true;
        }
}

static void abandon(struct parent *p, const char *why) {
    finish(p);
    close(p->rollout.text);
    lanes_abandon(p);
    keep_error(p, view_str(why));
    parent_loaded(p, ERR_BAD, view_str(p->load_error));
    /* What the broker has issued or ended meanwhile is not refused with a loaded text. */
    p->rollout.wanted = p->rollout.wanted || p->rollout.loaded;
    /* Who came up meanwhile has no generation yet. */
    for (struct process *of = p->processes; of; of = of->next)
        if (takes_part(of, p->rollout.number) && of->generation == 0 && p->generation)
            rollout_greet(of);
    rollout_begin(p);
}

static void check_complete(struct parent *p) {
    if (!p->rollout.running)
        return;
    for (struct process *of = p->processes; of; of = of->next)
        if (p->rollout.committed ? of->confirming : of->acknowledging)
            return;
    if (p->rollout.committed)
        in_use(p);
    else
        commit(p);
}

/*
 * Nobody has a veto by silence, and no lane by refusing what the others take: otherwise a
 * taken-over process could keep every tightening of the policy from all.
 */
static void end_vetoer(struct process *of) {
    of->acknowledging = of->confirming = false;
    process_kill(of);
}

static void on_late(evutil_socket_t fd, short what, void *ctx) {
    struct parent *p = ctx;
    (void)fd;
    (void)what;
    for (struct process *of = p->processes; of; of = of->next)
        if (p->rollout.committed ? of->confirming : of->acknowledging) {
            log_warn("%s did not answer generation %u: it is started anew", of->origin,
                     p->rollout.number);
            end_vetoer(of);
        }
    check_complete(p);
}

/* The first generation waits for everybody; later ones for whoever is up. */
static bool may_begin(const struct parent *p) {
    if (p->stopping || !p->has_registry || (buf_len(&p->base) == 0 && buf_len(&p->candidate) == 0))
        return false;
    for (const struct process *of = p->processes; of && p->generation == 0; of = of->next)
        if (of->role != ROLE_PARENT && of->state != PROCESS_UP && of->state != PROCESS_ASLEEP)
            return false;
    return true;
}

static void on_gathered(evutil_socket_t fd, short what, void *ctx) {
    struct parent *p = ctx;
    (void)fd;
    (void)what;
    p->rollout.gathered = true;
    rollout_begin(p);
}

/*
 * Every lane reads every generation, so that sandboxes which are attached in the same moment come with one, and those that detach go
 * with one: they are served no more anyhow. What is slow keeps nobody waiting for long.
 */
static bool gathers(struct parent *p) {
    struct rollout *r = &p->rollout;
    struct timeval most = {0, GATHER_MS * 1000};
    if (r->gathered || (r->wanted && !lanes_await_issue(p)))
        return false;
    if (!r->gather)
        r->gather = event_new(loop_base(p->loop), -1, 0, on_gathered, p);
    return r->gather &&
           (event_pending(r->gather, EV_TIMEOUT, NULL) || event_add(r->gather, &most) == 0);
}

void rollout_begin(struct parent *p) {
    struct rollout *r = &p->rollout;
    if (r->running || !may_begin(p))
        return;
    int result = buf_len(&p->candidate) > 0 ? plan(p) : 0;
    if (result != 0) {
        buf_reset(&p->candidate);
        parent_loaded(p, result, view_str(p->load_error));
    }
    /* What else is new is not refused with it. */
    if ((!r->wanted && !r->left && buf_len(&p->candidate) == 0) || p->stopping)
        return;
    if (buf_len(&p->candidate) == 0 && gathers(p))
        return;
    r->wanted = r->left = r->gathered = false;
    r->text = make_text(p);
    if (r->text < 0) {
        lanes_abandon(p);
        keep_error(p, VIEW("the generation's text cannot be made"));
        parent_loaded(p, ERR_SYSTEM, view_str(p->load_error));
        return;
    }
    if (r->gather)
        event_del(r->gather);
    if (!r->late)
        r->late = event_new(loop_base(p->loop), -1, 0, on_late, p);
    r->running = true;
    wait_anew(p);
    r->number++;
    for (struct process *of = p->processes; of; of = of->next)
        if (takes_part(of, r->number))
            send_text(of, r->number, r->text);
}

static void want_new(struct parent *p) {
    p->rollout.wanted = true;
    rollout_begin(p);
}

void rollout_greet(struct process *of) {
    struct parent *p = of->parent;
    /* The first generation waits for everybody, control too. */
    if (!p->rollout.running && p->text < 0)
        rollout_begin(p);
    else if (of->role == ROLE_CONTROL)
        return;
    else if (is_open(p) && lanes_has(of, p->rollout.number))
        send_text(of, p->rollout.number, p->rollout.text);
    else if (!is_open(p) && lanes_has(of, p->generation))
        send_text(of, p->generation, p->text);
    else if (!lanes_awaits_issue(lanes_find(p, of->lane)))
        want_new(p); /* with its lane */
}

void rollout_lost(struct process *of) {
    struct parent *p = of->parent;
    of->acknowledging = of->confirming = false;
    if (is_open(p) && p->generation == 0) {
        /* Nobody serves yet: again when all are up. */
        finish(p);
        close(p->rollout.text);
        lanes_abandon(p);
        if (buf_len(&p->candidate) == 0)
            buf_put(&p->candidate, buf_view(&p->rollout.base));
        p->rollout.wanted = true;
        return;
    }
    check_complete(p);
}

/* A lane's proxy that holds the generation in use ready, when its egress uses it. */
static void commit_proxy(struct parent *p, uint32_t lane) {
    struct process *proxy = process_find(p, ROLE_PROXY, lane),
                   *egress = process_find(p, ROLE_EGRESS, lane);
    if (takes_part(proxy, p->generation) && proxy->prepared == p->generation &&
        proxy->generation != p->generation && egress->generation == p->generation &&
        !egress->confirming)
        send_commit(proxy, p->generation);
}

/* A process that was started again. */
static void commit_alone(struct process *of) {
    struct parent *p = of->parent;
    if (of->role != ROLE_PROXY) {
        send_commit(of, p->generation);
        return;
    }
    of->prepared = p->generation;
    commit_proxy(p, of->lane);
}

int rollout_ready(struct process *of, uint32_t number) {
    struct parent *p = of->parent;
    /* An answer to a generation that was overtaken meanwhile changes nothing. */
    if (!of->acknowledging || number != (is_open(p) ? p->rollout.number : p->generation))
        return 0;
    of->acknowledging = false;
    wait_for_the_late(p);
    if (is_open(p))
        check_complete(p);
    else
        commit_alone(of);
    return 0;
}

int rollout_confirmed(struct process *of, uint32_t number) {
    if (number == of->generation) {
        if (of->confirming)
            wait_for_the_late(of->parent);
        of->confirming = false;
        if (of->role == ROLE_EGRESS)
            commit_proxy(of->parent, of->lane);
        if (of->role == ROLE_PROXY)
            attached_serves(lanes_find(of->parent, of->lane));
    }
    check_complete(of->parent);
    return 0;
}

int rollout_refused(struct process *of, uint32_t number, struct view why) {
    struct parent *p = of->parent;
    char text[200], line[300];
    if (!of->acknowledging)
        return 0;
    of->acknowledging = false;
    snprintf(line, sizeof line, "%s refused generation %u: %s", of->origin, number,
             log_text(why, text, sizeof text));
    if (!is_open(p) || number != p->rollout.number) {
        log_warn("%s", line);
    } else if (of->lane && p->generation) {
        log_warn("%s: it is started anew", line);
        end_vetoer(of);
        check_complete(p);
    } else {
        abandon(p, line);
    }
    return 0;
}
