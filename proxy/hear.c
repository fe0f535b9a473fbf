#include "proxy/hear.h"

#include "base/log.h"
#include "egress/lane_messages.h"
#include "proxy/gate.h"
#include "proxy/hostile.h"
#include "proxy/names.h"
#include "proxy/passage.h"
#include "proxy/relay.h"

enum { CERTIFICATE_MAX = 16 * 1024, NAME_MAX_BYTES = 255, WINDOW_MAX = 1 << 20 };

static struct client *client_of(struct proxy *p, const struct message *m) {
    struct client *c = table_get(&p->tunnels, m->id);
    if (!c)
        proxy_hostile_heard(m);
    return c;
}

static struct relay *relay_of(struct proxy *p, const struct message *m) {
    struct relay *x = table_get(&p->relays, m->id);
    if (!x)
        proxy_hostile_heard(m);
    return x;
}

/* ---- tunnels ---- */

static int take_opened(void *ctx, struct channel *ch, struct message *m) {
    struct client *c = client_of(ctx, m);
    struct reader r = reader_of(m->body);
    (void)ch;
    read_block(&r, NAME_MAX_BYTES);
    read_u16(&r);
    if (!read_done(&r))
        return ERR_BAD;
    if (c)
        gate_opened(c);
    return 0;
}

static int take_refused(void *ctx, struct channel *ch, struct message *m) {
    struct proxy *p = ctx;
    struct client *c = client_of(p, m);
    struct reader r = reader_of(m->body);
    (void)ch;
    struct reader head = reader_of(read_block(&r, LANE_HEAD_MAX));
    struct view body = read_block(&r, LANE_BODY_MAX);
    if (!read_done(&r) || answer_read(&head, &p->answer) != 0 || !read_done(&head))
        return ERR_BAD;
    if (c)
        gate_refused(c, &p->answer, body);
    return 0;
}

static int take_leaf(void *ctx, struct channel *ch, struct message *m) {
    struct client *c = client_of(ctx, m);
    struct reader r = reader_of(m->body);
    (void)ch;
    struct view name = read_block(&r, NAME_MAX_BYTES);
    struct view leaf = read_block(&r, CERTIFICATE_MAX);
    struct view chain = read_block(&r, CERTIFICATE_MAX);
    uint64_t not_after = read_u64(&r);
    if (!read_done(&r))
        return ERR_BAD;
    if (c)
        gate_leaf(c, name, leaf, chain, not_after);
    return 0;
}

static int take_alert(void *ctx, struct channel *ch, struct message *m) {
    struct client *c = client_of(ctx, m);
    struct reader r = reader_of(m->body);
    (void)ch;
    uint8_t alert = read_u8(&r);
    if (!read_done(&r))
        return ERR_BAD;
    if (c)
        gate_alert(c, alert);
    return 0;
}

static int take_cut(void *ctx, struct channel *ch, struct message *m) {
    struct client *c = client_of(ctx, m);
    (void)ch;
    if (c)
        client_drop(c);
    return 0;
}

static int take_spliced(void *ctx, struct channel *ch, struct message *m) {
    struct client *c = client_of(ctx, m);
    struct reader r = reader_of(m->body);
    (void)ch;
    uint32_t window = read_u32(&r);
    if (!read_done(&r) || window == 0 || window > WINDOW_MAX)
        return ERR_BAD;
    if (c)
        passage_begin(c, window);
    return 0;
}

static int take_raw_back(void *ctx, struct channel *ch, struct message *m) {
    struct client *c = client_of(ctx, m);
    (void)ch;
    if (c)
        passage_back(c, m->body);
    return 0;
}

static int take_raw_back_end(void *ctx, struct channel *ch, struct message *m) {
    struct client *c = client_of(ctx, m);
    (void)ch;
    if (c)
        passage_back_end(c);
    return 0;
}

static int take_raw_taken(void *ctx, struct channel *ch, struct message *m) {
    struct client *c = client_of(ctx, m);
    struct reader r = reader_of(m->body);
    (void)ch;
    uint32_t n = read_u32(&r);
    if (!read_done(&r))
        return ERR_BAD;
    if (c)
        passage_credit(c, n);
    return 0;
}

/* ---- exchanges ---- */

static int take_continue(void *ctx, struct channel *ch, struct message *m) {
    struct relay *x = relay_of(ctx, m);
    (void)ch;
    if (x)
        relay_continue(x);
    return 0;
}

static int take_answer(void *ctx, struct channel *ch, struct message *m) {
    struct proxy *p = ctx;
    struct relay *x = relay_of(p, m);
    struct reader r = reader_of(m->body);
    (void)ch;
    bool end = read_u8(&r) != 0;
    if (answer_read(&r, &p->answer) != 0 || !read_done(&r))
        return ERR_BAD;
    if (x)
        relay_answer(x, &p->answer, end);
    return 0;
}

static int take_answer_body(void *ctx, struct channel *ch, struct message *m) {
    struct relay *x = relay_of(ctx, m);
    (void)ch;
    if (x)
        relay_answer_body(x, m->body);
    return 0;
}

static int take_answer_end(void *ctx, struct channel *ch, struct message *m) {
    struct relay *x = relay_of(ctx, m);
    (void)ch;
    if (x)
        relay_answer_end(x);
    return 0;
}

static int take_answer_cut(void *ctx, struct channel *ch, struct message *m) {
    struct relay *x = relay_of(ctx, m);
    (void)ch;
    if (x)
        relay_answer_cut(x);
    return 0;
}

static int take_body_credit(void *ctx, struct channel *ch, struct message *m) {
    struct relay *x = relay_of(ctx, m);
    struct reader r = reader_of(m->body);
    (void)ch;
    uint32_t n = read_u32(&r);
    if (!read_done(&r))
        return ERR_BAD;
    if (x)
        relay_credit(x, n);
    return 0;
}

static int take_window(void *ctx, struct channel *ch, struct message *m) {
    struct relay *x = relay_of(ctx, m);
    struct reader r = reader_of(m->body);
    (void)ch;
    uint32_t n = read_u32(&r);
    if (!read_done(&r) || n == 0 || n > WINDOW_MAX)
        return ERR_BAD;
    if (x)
        relay_window(x, n);
    return 0;
}

/* ---- names ---- */

static int take_found(void *ctx, struct channel *ch, struct message *m) {
    struct proxy *p = ctx;
    (void)ch;
    proxy_hostile_heard(m);
    return names_found(p, m->id, m->body);
}

static const struct channel_rule rules[] = {
    {LANE_OPENED, 0, 512, take_opened, "lane opened"},
    {LANE_REFUSED, 0, LANE_HEAD_MAX + LANE_BODY_MAX, take_refused, "lane refused"},
    {LANE_LEAF, 0, 3 * CERTIFICATE_MAX, take_leaf, "lane leaf"},
    {LANE_ALERT, 0, 1, take_alert, "lane alert"},
    {LANE_CUT, 0, 0, take_cut, "lane cut"},
    {LANE_CONTINUE, 0, 0, take_continue, "lane continue"},
    {LANE_ANSWER, 0, LANE_HEAD_MAX, take_answer, "lane answer"},
    {LANE_ANSWER_BODY, 0, LANE_BODY_MAX, take_answer_body, "lane answer body"},
    {LANE_ANSWER_END, 0, 0, take_answer_end, "lane answer end"},
    {LANE_ANSWER_CUT, 0, 0, take_answer_cut, "lane answer cut"},
    {LANE_BODY_CREDIT, 0, 4, take_body_credit, "lane body credit"},
    {LANE_WINDOW, 0, 4, take_window, "lane window"},
    {LANE_SPLICED, 0, 4, take_spliced, "lane spliced"},
    {LANE_RAW_BACK, 0, LANE_BODY_MAX, take_raw_back, "lane raw back"},
    {LANE_RAW_BACK_END, 0, 0, take_raw_back_end, "lane raw back end"},
    {LANE_RAW_TAKEN, 0, 4, take_raw_taken, "lane raw taken"},
    {LANE_FOUND, 0, 512, take_found, "lane found"},
};

static void on_closed(void *ctx, struct channel *ch, int why) {
    struct proxy *p = ctx;
    (void)ch;
    if (!p->stopping)
        log_warn("egress' channel: %s", err_text(why));
    p->lost = true;
    loop_stop(p->loop);
}

int hear_begin(struct proxy *p, int fd) {
    p->lane =
        channel_new(p->loop, fd, rules, sizeof rules / sizeof *rules, CHANNEL_READ, on_closed, p);
    return p->lane ? 0 : ERR_MEMORY;
}
