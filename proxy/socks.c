#include "proxy/socks.h"

#include "base/base64.h"
#include "http/socks.h"
#include "proxy/gate.h"
#include "proxy/say.h"

#include <stdlib.h>

enum { LOGIN_MAX = 1024, AUTHORITY_MAX = 512 };

struct socks {
    enum { PHASE_GREETING, PHASE_LOGIN, PHASE_REQUEST } phase;
    struct buf login; /* as the value of Proxy-Authorization */
};

static struct socks *socks_of(struct client *c) {
    if (!c->socks && (c->socks = calloc(1, sizeof *c->socks)))
        buf_init_cleared(&c->socks->login, LOGIN_MAX);
    return c->socks;
}

void socks_forget(struct client *c) {
    if (!c->socks)
        return;
    buf_free(&c->socks->login);
    free(c->socks);
    c->socks = NULL;
}

/* What was said last stands in out already. bytes: for the record. */
static enum client_step refuse(struct client *c, enum reason why, const char *detail,
                               struct view bytes) {
    say_malformed(c, ++c->proxy->last_exchange, 400, why, detail, bytes);
    client_shut(c);
    return STEP_WAIT;
}

/* What is no request may be a login, asked for or not, and hold a password: it is in no record. */
static enum client_step refuse_all(struct client *c, struct view *input, const char *detail) {
    bool is_request = input->n > 0 && input->p[0] == SOCKS_VERSION;
    struct view bytes = is_request ? *input : (struct view){NULL, 0};
    *input = view_skip(*input, input->n);
    return refuse(c, REASON_MALFORMED_REQUEST, detail, bytes);
}

/* ---- phases; each takes what is its own from *input ---- */

static enum client_step greet(struct client *c, struct view *input) {
    enum socks_method method;
    size_t used;
    int result = socks_greeting(*input, &used, &method);
    if (result == ERR_AGAIN)
        return STEP_WAIT;
    if (result != 0)
        return refuse_all(c, input, "a SOCKS greeting of another version than 5");
    *input = view_skip(*input, used);
    const uint8_t answer[] = {SOCKS_VERSION, (uint8_t)method};
    buf_put(client_out(c), view_of(answer, sizeof answer));
    if (method == SOCKS_NO_METHOD)
        return refuse_all(c, input, "SOCKS with a login that is not by user name and password");
    c->socks->phase = method == SOCKS_LOGIN ? PHASE_LOGIN : PHASE_REQUEST;
    return STEP_NEXT;
}

static void keep_login(struct socks *s, struct view user, struct view password) {
    struct buf pair;
    buf_init_cleared(&pair, LOGIN_MAX);
    buf_put(&pair, user);
    buf_put_u8(&pair, ':');
    buf_put(&pair, password);
    buf_put_str(&s->login, "Basic ");
    base64_encode(buf_view(&pair), &s->login);
    buf_free(&pair);
}

static enum client_step login(struct client *c, struct view *input) {
    struct view user, password;
    size_t used;
    int result = socks_login(*input, &used, &user, &password);
    if (result == ERR_AGAIN)
        return STEP_WAIT;
    if (result != 0)
        return refuse_all(c, input, "a SOCKS login of another version than 1");
    /* Who it is gets judged with where it wants to go: one decision, one record. */
    keep_login(c->socks, user, password);
    *input = view_skip(*input, used);
    buf_put(client_out(c), VIEW("\x01\x00"));
    c->socks->phase = PHASE_REQUEST;
    return STEP_NEXT;
}

static enum client_step request(struct client *c, struct view *input) {
    struct buf authority;
    enum socks_reply reply = SOCKS_FAILURE;
    const char *why = "no memory";
    size_t used = 0;
    buf_init(&authority, AUTHORITY_MAX);
    int result = socks_request(*input, &used, &authority, &reply, &why);
    if (result == 0) {
        *input = view_skip(*input, used);
        gate_open_socks(c, buf_view(&authority), buf_view(&c->socks->login));
        socks_forget(c);
    }
    buf_free(&authority);
    if (result == 0 || result == ERR_AGAIN)
        return STEP_WAIT;
    socks_put_reply(client_out(c), reply);
    return refuse_all(c, input, why);
}

enum client_step socks_step(struct client *c, struct view *input) {
    c->way = LANE_WAY_SOCKS;
    if (!socks_of(c)) {
        client_drop(c);
        return STEP_WAIT;
    }
    switch (c->socks->phase) {
    case PHASE_GREETING:
        return greet(c, input);
    case PHASE_LOGIN:
        return login(c, input);
    case PHASE_REQUEST:
        return request(c, input);
    }
    return STEP_WAIT;
}

void socks_ended(struct client *c) {
    refuse(c, REASON_MALFORMED_REQUEST, "the input ended inside a SOCKS request",
           (struct view){NULL, 0});
    client_drop(c);
}

void socks_late(struct client *c) {
    refuse(c, REASON_REQUEST_TIMEOUT, "no whole SOCKS request in time", (struct view){NULL, 0});
    client_drop(c);
}
