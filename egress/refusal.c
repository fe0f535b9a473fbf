#include "egress/refusal.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>

uint16_t refusal_status(enum reason reason, bool basic_challenge) {
    return basic_challenge && reason == REASON_CREDENTIAL_MISSING ? 401
                                                                  : reason_info(reason)->status;
}

static void add(struct refusal *r, struct view name, struct view value) {
    /* A refusal has a handful of fields; FIELDS_MAX cannot be reached. */
    int result = fields_add(&r->head.fields, name, value);
    (void)result;
}

static void add_challenge(struct refusal *r) {
    static const struct {
        uint16_t status;
        struct view name, value;
    } challenges[] = {
        {401, VIEW("www-authenticate"), VIEW("Basic realm=\"exeat: use your placeholder\"")},
        {407, VIEW("proxy-authenticate"), VIEW("Basic realm=\"exeat\"")},
        {503, VIEW("retry-after"), VIEW("1")},
    };
    for (size_t i = 0; i < sizeof challenges / sizeof *challenges; i++)
        if (challenges[i].status == r->head.status)
            add(r, challenges[i].name, challenges[i].value);
}

/* Where nobody knows better, in ten seconds. */
static void add_retry_after(struct refusal *r, uint32_t seconds) {
    snprintf(r->retry_after, sizeof r->retry_after, "%u", seconds ? seconds : 10);
    add(r, VIEW("retry-after"), view_str(r->retry_after));
}

/* The rule's file without its folders: the sandbox need not know where the operator keeps it. */
static void put_rule(struct buf *out, const struct position *at) {
    char text[300];
    if (!at->file)
        return;
    const char *slash = strrchr(at->file, '/');
    snprintf(text, sizeof text, "%s:%u:%u", slash ? slash + 1 : at->file, at->line, at->column);
    json_put_text(out, "rule", view_str(text));
}

/* Then the detail is a sentence of our own about the client's bytes, and no news about anybody else. */
static bool is_malformed(enum reason reason) {
    return reason >= REASON_MALFORMED_REQUEST && reason <= REASON_REQUEST_TIMEOUT;
}

static void put_body(struct refusal *r, const struct trail *t, const struct reason_info *info) {
    struct buf *b = &r->body;
    buf_put_str(b, "{");
    json_put_text(b, "title", view_str(info->title));
    json_put_number(b, "status", r->head.status);
    json_put_text(b, "reason", view_str(info->code));
    if (t->verdict.service)
        json_put_text(b, "service", service_name(t->verdict.service));
    /* The place of a condition would say how many of them hold by now, to whoever tries one after the other. */
    if (info->shown == t->verdict.reason && !t->verdict.unmet)
        put_rule(b, &t->verdict.at);
    if (is_malformed(t->verdict.reason))
        json_put_text(b, "detail", t->detail);
    json_put_text(b, "hint", view_str(info->hint));
    json_put_text(b, "record", view_str(t->id));
    json_put_text(b, "message", view_str(r->line));
    buf_put_str(b, "}\n");
}

void refusal_make(struct refusal *r, const struct trail *t, bool basic_challenge) {
    const struct reason_info *info =
        verdict_reason(&t->verdict, reason_info(t->verdict.reason)->shown);
    r->head.status = refusal_status(t->verdict.reason, basic_challenge);
    r->head.minor = 1;
    r->head.framing = FRAMING_LENGTH;
    r->head.has_length = r->head.keep_alive = false;
    r->head.fields.n = 0;
    snprintf(r->line, sizeof r->line, "exeat: %s (%s; record %s)", info->title, info->code, t->id);
    buf_init(&r->body, 4096);
    put_body(r, t, info);
    r->head.length = buf_len(&r->body);
    add(r, VIEW("content-type"), VIEW("application/problem+json"));
    add(r, VIEW("x-content-type-options"), VIEW("nosniff"));
    add(r, VIEW("cache-control"), VIEW("no-store"));
    add(r, VIEW(REFUSAL_FIELD), view_str(r->line));
    add_challenge(r);
    if (r->head.status == 429)
        add_retry_after(r, t->retry_after);
}

void refusal_free(struct refusal *r) {
    buf_free(&r->body);
}
