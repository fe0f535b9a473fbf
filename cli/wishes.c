#include "cli/wishes.h"

#include "cli/json_scan.h"
#include "policy/lexer.h"
#include "policy/method.h"
#include "policy/pattern.h"
#include "policy/policy.h"

#include <string.h>

/*
 * A sandbox can have any number of requests refused, and each is held against those that are kept: these are only as many as a policy
 * has room for. RULE_MORE is what is written of one beside its words.
 */
enum { RULE_MORE = 256, NOTES_ROOM = 1 << 18 };

bool wish_same_place(const struct wish *a, const struct wish *b) {
    return a->tls == b->tls && authority_equal(&a->authority, &b->authority);
}

bool wish_same_rule(const struct wish *a, const struct wish *b) {
    return wish_same_place(a, b) && view_equal(a->method, b->method) &&
           view_equal(a->path, b->path);
}

bool wish_is_reason(enum reason why) {
    return why == REASON_HOST_NOT_ALLOWED || why == REASON_PORT_NOT_ALLOWED ||
           why == REASON_CLEAR_NOT_ALLOWED || why == REASON_OPERATION_NOT_ALLOWED ||
           why == REASON_OPERATION_NOT_GRANTED;
}

void wish_put_url(const struct wish *w, struct buf *out) {
    buf_put_str(out, w->tls ? "https://" : "http://");
    authority_write(&w->authority, w->tls ? 443 : 80, out);
    buf_put(out, w->path);
}

/* ---- what can be said ---- */

static bool names_one(const struct authority *a) {
    return a->kind != HOST_ADDRESS || address_is_one(&a->address);
}

/* Only what a rule can say exactly: a registered method, a path without stars, and no address that is never dialled. */
static bool can_be_said(const struct decision *d) {
    struct path_pattern pattern;
    const char *why;
    return names_one(&d->authority) && (method_bit(d->method) & methods_grantable()) != 0 &&
           name_is_good(d->sandbox) && view_find(d->path, '*') == d->path.n &&
           view_find(d->path, '"') == d->path.n &&
           path_pattern_parse(d->path, false, &pattern, &why) == 0;
}

/* Where it is: behind its name, or its host itself. False: nobody knows, or it is public. */
static bool is_closed(const struct wish *w, struct address *at) {
    if (w->authority.kind == HOST_ADDRESS)
        *at = w->authority.address;
    else if (address_parse(w->address, at) != 0)
        return false;
    return address_classify(at) != ADDRESS_PUBLIC;
}

bool wish_is_closed(const struct wish *w) {
    struct address at;
    return is_closed(w, &at);
}

/* ---- keeping ---- */

static bool is_kept(const struct wish_list *l, const struct wish *new) {
    for (const struct wish *w = l->first; w; w = w->next)
        if (wish_same_rule(w, new) && view_equal(w->sandbox, new->sandbox))
            return true;
    return false;
}

static bool take_room(struct wishes *all, struct wish_list *l, const struct wish *w) {
    size_t wanted =
        RULE_MORE + strlen(w->authority.host) + 2 * w->sandbox.n + 2 * w->method.n + 2 * w->path.n;
    if (wanted > l->room) {
        all->crowded_out++;
        return false;
    }
    l->room -= wanted;
    return true;
}

static struct view copy(struct wishes *all, struct view text) {
    struct view kept = arena_copy(&all->arena, text);
    all->failed = all->failed || (text.n > 0 && !kept.p);
    return kept;
}

void wish_list_add(struct wish_list *l, struct wish *w) {
    w->next = NULL;
    *l->end = w;
    l->end = &w->next;
}

static void keep(struct wishes *all, struct wish_list *l, const struct wish *new) {
    if (is_kept(l, new) || !take_room(all, l, new))
        return;
    struct wish *w = arena_alloc(&all->arena, sizeof *w);
    all->failed = all->failed || !w;
    if (!w)
        return;
    *w = *new;
    w->sandbox = copy(all, new->sandbox);
    w->method = copy(all, new->method);
    w->path = copy(all, new->path);
    w->address = copy(all, new->address);
    w->condition = copy(all, new->condition);
    wish_list_add(l, w);
}

/* A name or a connection that was refused for its host or port: what for is not known. */
static bool keep_tunnel(struct wishes *all, struct wish *w) {
    const struct decision *d = &all->d;
    if (!d->bare || !name_is_good(d->sandbox) ||
        (d->why != REASON_HOST_NOT_ALLOWED && d->why != REASON_PORT_NOT_ALLOWED))
        return false;
    w->tls = true;
    w->method = w->path = (struct view){NULL, 0};
    keep(all, wish_is_closed(w) ? &all->closed : &all->tunnels, w);
    return true;
}

/* A name of the policy that was found at an address which none of its ranges opens. */
static bool keep_closed(struct wishes *all, const struct wish *w) {
    const struct decision *d = &all->d;
    if (d->why != REASON_ADDRESS_NOT_ALLOWED || !decision_is_request(d) || !can_be_said(d) ||
        !wish_is_closed(w))
        return false;
    keep(all, &all->closed, w);
    return true;
}

void wishes_line(void *ctx, struct view line) {
    struct wishes *all = ctx;
    struct decision *d = &all->d;
    struct view raw;
    bool allowed = decision_line_says(line, "verdict", "allow");
    if (!decision_line_says(line, "kind", "decision") ||
        (allowed && !json_member(line, "observed", &raw)))
        return;
    bool known = decision_read(line, d);
    struct wish wish = {.authority = d->authority,
                        .tls = !view_equal(d->scheme, VIEW("http")),
                        .sandbox = d->sandbox,
                        .method = d->method,
                        .path = d->path,
                        .address = d->address};
    if (known ? decision_is_exeats(d) || keep_tunnel(all, &wish) || keep_closed(all, &wish)
              : decision_is_doctors_datagram(line))
        return;
    wish.address = (struct view){NULL, 0};
    if (known && d->why == REASON_OPERATION_NOT_ALLOWED)
        wish.condition = d->rule;
    if (known && decision_is_request(d) && wish_is_reason(allowed ? d->observed : d->why) &&
        can_be_said(d))
        keep(all, &all->requests, &wish);
    else
        all->left_out++;
}

int wish_refuse(struct wishes *all, struct wish *w, struct view why) {
    w->why = copy(all, why);
    wish_list_add(&all->refused, w);
    return all->failed ? ERR_MEMORY : 0;
}

/* ---- notes ---- */

static void put_note(const struct wish *w, struct buf *out) {
    struct address at;
    buf_printf(out, "#     %.*s", VIEW_ARG(w->sandbox));
    if (w->path.n == 0) {
        buf_put_str(out, " to ");
        authority_write(&w->authority, 0, out);
    } else {
        buf_printf(out, ": %.*s ", VIEW_ARG(w->method));
        wish_put_url(w, out);
    }
    if (is_closed(w, &at)) {
        char text[ADDRESS_TEXT_SIZE];
        address_format(&at, text);
        if (w->authority.kind != HOST_ADDRESS)
            buf_printf(out, ", found at %s", text);
        buf_printf(out, " (%s)", address_class_name(address_classify(&at)));
    }
    if (w->why.n > 0)
        buf_printf(out, ": %.*s", VIEW_ARG(w->why));
    buf_put_u8(out, '\n');
}

static void put_list(const struct wish_list *l, const char *heading, struct buf *out) {
    if (l->first)
        buf_put_str(out, heading);
    for (const struct wish *w = l->first; w; w = w->next)
        put_note(w, out);
}

void wishes_put_notes(const struct wishes *w, struct buf *out) {
    if (w->left_out > 0)
        buf_printf(out,
                   "# %zu refusal%s left out: not for want of a rule, or not to be said exactly\n",
                   w->left_out, w->left_out == 1 ? "" : "s");
    if (w->crowded_out > 0)
        buf_printf(
            out,
            "# %zu later refusal%s left out: a policy has no room for so many different ones\n",
            w->crowded_out, w->crowded_out == 1 ? "" : "s");
    put_list(&w->refused, "# No rule is made of these:\n", out);
    put_list(&w->closed,
             "# Refused at addresses that are not public. No rule is made of these: a `range` for "
             "one opens the\n# operator's own network, the machine itself, or a metadata service, "
             "which hands out the machine's\n# keys, to code that nobody has read. Where it is "
             "meant, write it yourself, with that one address:\n",
             out);
    put_list(&w->tunnels,
             "# Refused as names or connections, before there was a request. A service "
             "with this host\n# (and port), granted in `mode observe`, tells what is "
             "asked there:\n",
             out);
}

/* ---- beginning and end ---- */

void wishes_init(struct wishes *w, size_t room) {
    *w = (struct wishes){
        .requests.room = room, .tunnels.room = NOTES_ROOM, .closed.room = NOTES_ROOM};
    w->requests.end = &w->requests.first;
    w->tunnels.end = &w->tunnels.first;
    w->closed.end = &w->closed.first;
    w->refused.end = &w->refused.first;
    buf_init(&w->d.memory, 1 << 20);
}

void wishes_free(struct wishes *w) {
    buf_free(&w->d.memory);
    arena_free(&w->arena);
}
