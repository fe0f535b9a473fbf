#include "broker/desk.h"

#include "base/log.h"
#include "base/secret.h"
#include "broker/action.h"
#include "broker/issue.h"
#include "broker/transfer.h"

#include <stdlib.h>
#include <string.h>

enum {
    JOBS_MAX = 32,
    ATTACH_JOBS_MAX = 8192, /* all that are attached may end at once */
    READ_SECONDS = 60,      /* a person pastes a key within it */
    COPY_SECONDS = 120,     /* a backup over a slow pipe */
    WAIT_SECONDS = 120,     /* for a generation: many lanes begin at once on a busy machine */
    KEY_TEXT_MAX = 2 * SEAL_KEY_SIZE + 1,
};

/* A request that is not answered yet: its descriptor is in use, or its generation is awaited. */
struct job {
    struct desk *owner;
    struct job *next;
    struct request request;
    uint32_t id; /* control's */
    struct transfer *transfer;
    struct event *deadline;
    struct buf answer;
    uint64_t state; /* of the vault: a generation with it, or a later one, is awaited */
};

/* What attach had issued and has not ended. */
struct issue {
    struct issue *next;
    uint32_t uid;
    char name[NAME_SIZE];
};

struct desk {
    struct loop *loop;
    struct custody *custody;
    struct desk_hooks hooks;
    bool whole;
    struct channel *control; /* or attach */
    struct job *jobs;
    size_t n_jobs;
    struct issue *issues; /* not when whole */
};

/* ---- jobs ---- */

/* Takes over what the request holds. */
static struct job *job_new(struct desk *o, struct request *r, uint32_t id) {
    size_t most = o->whole ? JOBS_MAX : ATTACH_JOBS_MAX;
    struct job *j = o->n_jobs < most ? calloc(1, sizeof *j) : NULL;
    if (!j) {
        request_free(r);
        return NULL;
    }
    *j = (struct job){.owner = o, .request = *r, .id = id, .next = o->jobs};
    buf_init(&j->answer, BROKER_TEXT_MAX);
    o->jobs = j;
    o->n_jobs++;
    return j;
}

static void job_free(struct job *j) {
    struct job **at = &j->owner->jobs;
    while (*at != j)
        at = &(*at)->next;
    *at = j->next;
    j->owner->n_jobs--;
    transfer_free(j->transfer);
    if (j->deadline)
        event_free(j->deadline);
    /* It may hold a token. */
    if (j->answer.p)
        secret_clear(j->answer.p, j->answer.cap);
    buf_free(&j->answer);
    request_free(&j->request);
    free(j);
}

static void answer(struct desk *o, uint32_t id, int code, struct view text) {
    if (!o->control)
        return;
    struct buf *b = channel_begin(o->control, BROKER_DONE, id, 0);
    buf_put_u8(b, (uint8_t)-code);
    buf_put_block(b, text);
    channel_end(o->control);
}

static void job_end(struct job *j, int code) {
    answer(j->owner, j->id, code, buf_view(&j->answer));
    job_free(j);
}

/* ---- waiting for a generation ---- */

static void on_deadline(evutil_socket_t fd, short what, void *ctx) {
    struct job *j = ctx;
    (void)fd;
    (void)what;
    buf_reset(&j->answer);
    buf_put_str(&j->answer,
                "the vault was changed, but no generation with the change came into use "
                "in time: see `exeat status` and the log");
    job_end(j, ERR_TIMEOUT);
}

static bool wait(struct job *j) {
    struct timeval end = {WAIT_SECONDS, 0};
    j->deadline = event_new(loop_base(j->owner->loop), -1, 0, on_deadline, j);
    return j->deadline && event_add(j->deadline, &end) == 0;
}

/* The vault has changed: answers once a generation has the registry that follows from it. */
static void job_settle(struct job *j) {
    struct desk *o = j->owner;
    j->state = custody_state(o->custody);
    if (j->request.type == BROKER_SANDBOX_ADD)
        o->hooks.registry(o->hooks.ctx, REGISTRY_ISSUED, view_str(j->request.name));
    else if (j->request.type == BROKER_SANDBOX_REMOVE && !o->whole)
        o->hooks.registry(o->hooks.ctx, REGISTRY_LEFT, view_str(j->request.name));
    else
        o->hooks.registry(o->hooks.ctx, REGISTRY_OTHER, VIEW(""));
    if (!wait(j))
        on_deadline(-1, 0, j);
}

void desk_in_use(struct desk *o, uint64_t state) {
    struct job *next;
    for (struct job *j = o->jobs; j; j = next) {
        next = j->next;
        if (j->deadline && j->state <= state)
            job_end(j, 0);
    }
}

/* ---- what attach has issued ---- */

static void issue_forget(struct desk *o, const char *name) {
    struct issue **at = &o->issues;
    while (*at && strcmp((*at)->name, name) != 0)
        at = &(*at)->next;
    struct issue *found = *at;
    if (!found)
        return;
    *at = found->next;
    free(found);
}

static void issue_remember(struct desk *o, const struct request *r) {
    struct issue *new = calloc(1, sizeof *new);
    issue_forget(o, r->name);
    if (!new)
        return;
    new->uid = r->uid;
    memcpy(new->name, r->name, sizeof new->name);
    new->next = o->issues;
    o->issues = new;
}

/* Attach has died, and with it the connections that these lived by. */
static void end_issues(struct desk *o) {
    struct buf text;
    bool ended = o->issues;
    buf_init(&text, BROKER_TEXT_MAX);
    while (o->issues) {
        struct request r = {.type = BROKER_SANDBOX_REMOVE, .uid = o->issues->uid};
        memcpy(r.name, o->issues->name, sizeof r.name);
        issue_forget(o, r.name);
        buf_reset(&text);
        if (action_sandbox_remove(o->custody, &r, &text) != 0)
            log_warn("what was issued to sandbox %s stays: %.*s", r.name,
                     VIEW_ARG(buf_view(&text)));
    }
    buf_free(&text);
    if (ended)
        o->hooks.registry(o->hooks.ctx, REGISTRY_OTHER, VIEW(""));
}

/* ---- what is done ---- */

static uint64_t seconds_now(void) {
    return clock_wall() / 1000000000u;
}

static void recall_all(struct desk *o) {
    const struct inventory *v = o->custody->vault ? vault_inventory(o->custody->vault) : NULL;
    for (size_t i = 0; v && i < v->n_secrets; i++)
        o->hooks.recall(o->hooks.ctx, view_str(v->secrets[i].name));
}

/* With what the descriptor gave. */
static void act_on_value(struct job *j, struct view source) {
    struct desk *o = j->owner;
    int result = action_value(o->custody, &j->request, source, seconds_now(), &j->answer);
    if (result == 0)
        o->hooks.recall(o->hooks.ctx, view_str(j->request.name));
    job_end(j, result);
}

static void act_on_copy(struct job *j, struct view image) {
    recall_all(j->owner);
    int result = action_restore(j->owner->custody, &j->request, image, &j->answer);
    if (result == 0)
        job_settle(j);
    else
        job_end(j, result);
}

static void on_read(void *ctx, struct transfer *t, int result, struct view bytes) {
    struct job *j = ctx;
    (void)t;
    if (result != 0) {
        buf_reset(&j->answer);
        buf_put_str(&j->answer, result == ERR_LIMIT     ? "what was given is too long"
                                : result == ERR_TIMEOUT ? "nothing more came in time"
                                                        : "what was given cannot be read");
        job_end(j, result);
    } else if (j->request.type == BROKER_VAULT_RESTORE) {
        act_on_copy(j, bytes);
    } else if (j->request.type == BROKER_VAULT_REKEY) {
        job_end(j, action_rekey(j->owner->custody, &j->request, bytes, &j->answer));
    } else {
        act_on_value(j, bytes);
    }
}

static void on_written(void *ctx, struct transfer *t, int result, struct view bytes) {
    struct job *j = ctx;
    (void)t;
    (void)bytes;
    if (result != 0) {
        buf_reset(&j->answer);
        buf_put_str(&j->answer, "the copy could not be written whole");
    }
    job_end(j, result);
}

static void start_backup(struct job *j, int fd) {
    struct buf image;
    buf_init(&image, STORE_IMAGE_MAX);
    int result = action_backup(j->owner->custody, &j->request, &image, &j->answer);
    if (result == 0)
        j->transfer = transfer_write(j->owner->loop, fd, &image, COPY_SECONDS, on_written, j);
    else
        evutil_closesocket(fd);
    buf_free(&image);
    if (!j->transfer)
        job_end(j, result == 0 ? ERR_SYSTEM : result);
}

static void start_read(struct job *j, int fd) {
    bool copy = j->request.type == BROKER_VAULT_RESTORE;
    size_t max = copy                                    ? (size_t)STORE_IMAGE_MAX
                 : j->request.type == BROKER_VAULT_REKEY ? (size_t)KEY_TEXT_MAX
                                                         : (size_t)SECRET_MAX + 1;
    j->transfer = transfer_read(j->owner->loop, fd, max, !copy, copy ? COPY_SECONDS : READ_SECONDS,
                                on_read, j);
    if (!j->transfer) {
        buf_put_str(&j->answer, "the descriptor is of no use");
        job_end(j, ERR_SYSTEM);
    }
}

static void start_change(struct job *j) {
    struct desk *o = j->owner;
    struct view name = view_str(j->request.name);
    int result;
    switch (j->request.type) {
    case BROKER_SECRET_REMOVE:
        result = action_secret_remove(o->custody, &j->request, &j->answer);
        if (result == 0)
            o->hooks.recall(o->hooks.ctx, name);
        break;
    case BROKER_SANDBOX_ADD:
        result = action_sandbox_add(o->custody, &j->request, seconds_now(), &j->answer);
        break;
    default:
        result = action_sandbox_remove(o->custody, &j->request, &j->answer);
    }
    if (result == 0 && !o->whole && j->request.type == BROKER_SANDBOX_ADD)
        issue_remember(o, &j->request);
    else if (result == 0 && !o->whole)
        issue_forget(o, j->request.name);
    if (result == 0)
        job_settle(j);
    else
        job_end(j, result);
}

/* ---- control's messages ---- */

static int take_request(void *ctx, struct channel *ch, struct message *m) {
    struct desk *o = ctx;
    struct request r;
    (void)ch;
    int read = action_read(m->type, m->body, &r);
    if (read != 0)
        return read;
    struct job *j = job_new(o, &r, m->id);
    if (!j) {
        answer(o, m->id, ERR_LIMIT, VIEW("too many requests are in progress"));
        return 0;
    }
    int fd = m->fd;
    m->fd = -1;
    int result = action_check(o->custody, &j->request, &j->answer);
    if (result != 0) {
        if (fd >= 0)
            evutil_closesocket(fd);
        job_end(j, result);
    } else if (r.type == BROKER_SECRET_LIST || r.type == BROKER_SANDBOX_LIST) {
        job_end(j, action_list(o->custody, &j->request, &j->answer));
    } else if (r.type == BROKER_VAULT_BACKUP) {
        start_backup(j, fd);
    } else if (fd >= 0) {
        start_read(j, fd);
    } else {
        start_change(j);
    }
    return 0;
}

/* What was changed already stays changed; what is still to be read is not read. */
static int take_cancel(void *ctx, struct channel *ch, struct message *m) {
    struct desk *o = ctx;
    struct job *j = o->jobs;
    (void)ch;
    while (j && j->id != m->id)
        j = j->next;
    if (j)
        job_free(j);
    return 0;
}

static const struct channel_rule control_rules[] = {
    {BROKER_SECRET_ADD, CHANNEL_FD, BROKER_VALUE_MAX, take_request, "secret add"},
    {BROKER_SECRET_ROTATE, CHANNEL_FD, BROKER_VALUE_MAX, take_request, "secret rotate"},
    {BROKER_SECRET_REMOVE, 0, BROKER_ASK_MAX, take_request, "secret remove"},
    {BROKER_SECRET_LIST, 0, BROKER_ASK_MAX, take_request, "secret list"},
    {BROKER_SANDBOX_ADD, 0, BROKER_ASK_MAX, take_request, "sandbox add"},
    {BROKER_SANDBOX_REMOVE, 0, BROKER_ASK_MAX, take_request, "sandbox remove"},
    {BROKER_SANDBOX_LIST, 0, BROKER_ASK_MAX, take_request, "sandbox list"},
    {BROKER_VAULT_BACKUP, CHANNEL_FD, BROKER_ASK_MAX, take_request, "vault backup"},
    {BROKER_VAULT_RESTORE, CHANNEL_FD, BROKER_ASK_MAX, take_request, "vault restore"},
    {BROKER_VAULT_REKEY, CHANNEL_FD, BROKER_ASK_MAX, take_request, "vault rekey"},
    {BROKER_CANCEL, 0, 0, take_cancel, "cancel"},
};

static const struct channel_rule attach_rules[] = {
    {BROKER_SANDBOX_ADD, 0, BROKER_ASK_MAX, take_request, "sandbox add"},
    {BROKER_SANDBOX_REMOVE, 0, BROKER_ASK_MAX, take_request, "sandbox remove"},
};

static void detach(struct desk *o) {
    for (struct job *j = o->jobs, *next; j; j = next) {
        next = j->next;
        job_free(j);
    }
    channel_free(o->control);
    o->control = NULL;
}

static void on_closed(void *ctx, struct channel *ch, int why) {
    struct desk *o = ctx;
    (void)ch;
    log_line(why == ERR_CLOSED ? LOG_DEBUG : LOG_WARN, "%s's channel: %s",
             o->whole ? "control" : "attach", err_text(why));
    detach(o);
    end_issues(o);
    if (why == ERR_BAD || why == ERR_LIMIT)
        o->hooks.bad(o->hooks.ctx);
}

int desk_attach(struct desk *o, int fd) {
    detach(o);
    end_issues(o);
    o->control = o->whole
                     ? channel_new(o->loop, fd, control_rules,
                                   sizeof control_rules / sizeof *control_rules, 0, on_closed, o)
                     : channel_new(o->loop, fd, attach_rules,
                                   sizeof attach_rules / sizeof *attach_rules, 0, on_closed, o);
    return o->control ? 0 : ERR_MEMORY;
}

struct desk *desk_new(struct loop *l, struct custody *c, const struct desk_hooks *hooks,
                      bool whole) {
    struct desk *o = calloc(1, sizeof *o);
    if (o)
        *o = (struct desk){.loop = l, .custody = c, .hooks = *hooks, .whole = whole};
    return o;
}

void desk_free(struct desk *o) {
    if (!o)
        return;
    detach(o);
    while (o->issues)
        issue_forget(o, o->issues->name);
    free(o);
}
