#include "http/http1_head.h"

#include "base/eight.h"
#include "http/known.h"
#include "http/strict.h"
#include "policy/placeholder.h"

#include <assert.h>

enum { NAMES_KEPT = 4096 }; /* memory for names that a connection keeps between heads */

void head_init(struct head *h, bool request) {
    h->request = request;
    buf_init(&h->names, NAMES_KEPT);
}

void head_free(struct head *h) {
    buf_free(&h->names);
}

int head_start(struct head *h, struct fields *fields, size_t size) {
    h->fields = fields;
    fields->n = 0;
    h->n_host = h->n_length = h->n_coding = h->n_expect = 0;
    h->close = h->upgrade = h->placeholder_dropped = false;
    h->n_options = 0;
    h->seen = 0;
    h->status = 0;
    h->why = NULL;
    if (h->names.cap > NAMES_KEPT)
        buf_free(&h->names);
    buf_reset(&h->names);
    buf_raise(&h->names, size);
    return buf_reserve(&h->names, size) ? 0 : ERR_MEMORY;
}

static int refuse(struct head *h, uint16_t status, const char *why) {
    h->status = h->request ? status : 502;
    h->why = why;
    return ERR_BAD;
}

/* A lower-case copy that stays where it is until head_start. */
static struct view lower(struct head *h, struct view v) {
    uint8_t *p = buf_reserve(&h->names, v.n);
    assert(p);
    size_t i = 0;
    for (; v.n - i >= 8; i += 8) {
        uint64_t x = eight_lower(eight_at(v.p + i));
        memcpy(p + i, &x, sizeof x);
    }
    for (; i < v.n; i++)
        p[i] = to_lower(v.p[i]);
    buf_commit(&h->names, v.n);
    return view_of(p, v.n);
}

/* ---- fields ---- */

static int add(struct head *h, struct view name, struct view value) {
    return fields_add(h->fields, name, value) == 0 ? 0 : refuse(h, 431, "too many fields");
}

/* What does not leave here is looked at all the same: a placeholder belongs nowhere in it (PH-02). */
static void look_at_dropped(struct head *h, struct view v) {
    if (placeholder_inside(v))
        h->placeholder_dropped = true;
}

static void look_at_dropped_name(struct head *h, struct view v) {
    look_at_dropped(h, v);
    if (v.n >= PLACEHOLDER_CORE_SIZE && placeholder_inside_name(v))
        h->placeholder_dropped = true;
}

static int take_option(struct head *h, struct view option) {
    if (option.n == 0)
        return 0;
    if (!strict_is_token(option))
        return refuse(h, 400, "a Connection option that is not a token");
    struct view name = lower(h, option);
    enum known known = known_field(name);
    if (view_equal(name, VIEW("close")))
        h->close = true;
    if (view_equal(name, VIEW("close")) || view_equal(name, VIEW("keep-alive")))
        return 0;
    /* In an answer such a name is harmless, and some servers do send "Transfer-Encoding". */
    if (h->request && (known_is_single(known) || known == KNOWN_PROXY_AUTHORIZATION ||
                       known == KNOWN_HOST || known == KNOWN_CONTENT_LENGTH ||
                       known == KNOWN_TRANSFER_ENCODING || known == KNOWN_EXPECT))
        return refuse(h, 400, "Connection names a field that must not be dropped");
    if (known_is_taken(known))
        return 0;
    if (h->n_options == OPTIONS_MAX)
        return refuse(h, 400, "too many Connection options");
    h->options[h->n_options++] = name;
    return 0;
}

static int take_connection(struct head *h, struct view value) {
    look_at_dropped_name(h, value);
    while (value.n > 0)
        if (take_option(h, view_trim(view_cut(&value, ','))) != 0)
            return ERR_BAD;
    return 0;
}

static int take_once(struct view *place, unsigned *count, struct view value) {
    *place = value;
    ++*count;
    return 0;
}

static int take_single(struct head *h, enum known known, struct view name, struct view value) {
    if (h->request && (h->seen & 1u << known))
        return refuse(h, 400, "a field that must be there once is there twice");
    h->seen |= 1u << known;
    return add(h, name, value);
}

int head_field(struct head *h, struct view name, struct view value) {
    name = lower(h, name);
    enum known known = known_field(name);
    switch (known) {
    case KNOWN_NOT:
        return add(h, name, value);
    case KNOWN_HOST:
        return take_once(&h->host, &h->n_host, value);
    case KNOWN_CONTENT_LENGTH:
        return take_once(&h->length, &h->n_length, value);
    case KNOWN_TRANSFER_ENCODING:
        return take_once(&h->coding, &h->n_coding, value);
    case KNOWN_EXPECT:
        return take_once(&h->expect, &h->n_expect, value);
    case KNOWN_CONNECTION:
        return take_connection(h, value);
    case KNOWN_UPGRADE:
        look_at_dropped(h, value);
        /* h2c is an offer that a server may pass over in silence (RFC 9110 7.8); some clients always make it. */
        h->upgrade = h->upgrade || !view_equal_nocase(view_trim(value), VIEW("h2c"));
        return 0;
    case KNOWN_TWIN:
        return h->request ? refuse(h, 400, "a name that servers take for that of another field")
                          : 0;
    case KNOWN_PROXY_AUTHORIZATION:
        look_at_dropped(h, value);
        return h->request ? add(h, name, value) : 0;
    case KNOWN_HOP:
    case KNOWN_PROXY_AUTHENTICATE:
        look_at_dropped(h, value);
        return 0;
    default:
        return take_single(h, known, name, value);
    }
}

int head_trailer(struct head *h, struct view name, struct view value) {
    struct view lowered = lower(h, name);
    if (view_equal(lowered, VIEW("content-length")) ||
        view_equal(lowered, VIEW("transfer-encoding")))
        return refuse(h, 400, "a trailer that frames");
    return add(h, lowered, value);
}

/* ---- framing (RFC 9112 6) ---- */

static int finish_length(struct head *h, uint64_t *length) {
    if (h->n_length > 1)
        return refuse(h, 400, "more than one Content-Length");
    if (h->length.n > 1 && h->length.p[0] == '0')
        return refuse(h, 400, "a Content-Length with leading zeros");
    if (view_number(h->length, INT64_MAX, length) != 0)
        return refuse(h, 400, "a Content-Length that is not a number");
    return 0;
}

static int finish_framing(struct head *h, uint8_t minor, enum framing *framing, uint64_t *length) {
    *framing = h->n_coding ? FRAMING_CHUNKED : h->n_length ? FRAMING_LENGTH : FRAMING_NONE;
    *length = 0;
    if (h->n_coding && h->n_length)
        return refuse(h, 400, "both Content-Length and Transfer-Encoding");
    if (h->n_coding > 1)
        return refuse(h, 400, "more than one Transfer-Encoding");
    if (h->n_coding && !view_equal(h->coding, VIEW("chunked")))
        return refuse(h, 400, "a Transfer-Encoding that is not chunked");
    if (h->n_coding && minor == 0)
        return refuse(h, 400, "Transfer-Encoding in HTTP/1.0");
    return h->n_length ? finish_length(h, length) : 0;
}

static void drop_options(struct head *h) {
    for (size_t i = 0; i < h->n_options; i++) {
        for (size_t k = 0; k < h->fields->n; k++)
            if (view_equal(h->fields->at[k].name, h->options[i]))
                look_at_dropped(h, h->fields->at[k].value);
        fields_remove(h->fields, h->options[i]);
    }
}

/* ---- requests ---- */

static int finish_host(struct head *h, uint8_t minor, struct request_head *out) {
    if (h->n_host > 1)
        return refuse(h, 400, "more than one Host");
    if (h->n_host == 0 && minor == 1)
        return refuse(h, 400, "no Host");
    out->has_host = h->n_host == 1;
    out->host = out->has_host ? h->host : (struct view){NULL, 0};
    if (out->has_host && !strict_is_authority(out->host))
        return refuse(h, 400, "a Host that is not a host");
    return 0;
}

static int split_absolute(struct head *h, struct view target, struct request_head *out) {
    struct view scheme = view_head(target, view_search(target, VIEW("://")));
    out->form = FORM_ABSOLUTE;
    out->https = view_equal_nocase(scheme, VIEW("https"));
    if (scheme.n == target.n)
        return refuse(h, 400, "a target that is neither a path nor an http URL");
    if (!out->https && !view_equal_nocase(scheme, VIEW("http")))
        return refuse(h, 400, "a scheme that is not http or https");
    target = view_skip(target, scheme.n + VIEW("://").n);
    size_t end = view_find(target, '/');
    out->authority = view_head(target, end);
    out->target = view_skip(target, end);
    if (!strict_is_authority(out->authority))
        return refuse(h, 400, "an authority that is not host and port");
    return 0;
}

static int finish_target(struct head *h, struct view target, struct request_head *out) {
    bool connect = view_equal(out->method, VIEW("CONNECT"));
    out->https = false;
    out->authority = (struct view){NULL, 0};
    out->target = target;
    if (connect) {
        out->form = FORM_AUTHORITY;
        out->authority = target;
        out->target = (struct view){NULL, 0};
        return strict_is_authority(target)
                   ? 0
                   : refuse(h, 400, "an authority that is not host and port");
    }
    if (target.p[0] == '/') {
        out->form = FORM_ORIGIN;
        return 0;
    }
    if (view_equal(target, VIEW("*"))) {
        out->form = FORM_ASTERISK;
        return view_equal(out->method, VIEW("OPTIONS"))
                   ? 0
                   : refuse(h, 400, "the target * without OPTIONS");
    }
    return split_absolute(h, target, out);
}

static int finish_expect(struct head *h, struct request_head *out) {
    bool body = out->framing == FRAMING_CHUNKED || out->length > 0;
    if (h->n_expect > 1 ||
        (h->n_expect == 1 && !view_equal_nocase(h->expect, VIEW("100-continue"))))
        return refuse(h, 417, "an expectation that is not 100-continue");
    /* RFC 9110 10.1.1: to be ignored in HTTP/1.0, and of no use without a body. */
    out->expect_continue = h->n_expect && body && out->minor == 1;
    return 0;
}

int head_finish_request(struct head *h, struct view method, struct view target, uint8_t minor,
                        struct request_head *out) {
    out->method = method;
    out->minor = minor;
    if (finish_target(h, target, out) != 0 || finish_host(h, minor, out) != 0 ||
        finish_framing(h, minor, &out->framing, &out->length) != 0 || finish_expect(h, out) != 0)
        return ERR_BAD;
    if (out->form == FORM_AUTHORITY && out->framing != FRAMING_NONE)
        return refuse(h, 400, "CONNECT with a body");
    out->keep_alive = minor == 1 && !h->close;
    out->upgrade = h->upgrade;
    drop_options(h);
    /* Of CONNECT the Host says nothing, and is not passed on either. */
    if (out->form == FORM_AUTHORITY)
        look_at_dropped_name(h, out->host);
    out->placeholder_dropped = h->placeholder_dropped;
    return 0;
}

/* ---- answers (RFC 9112 6.3) ---- */

int head_finish_answer(struct head *h, uint16_t status, uint8_t minor, bool head_request,
                       struct answer_head *out) {
    if (status < 100 || status > 599)
        return refuse(h, 502, "a status outside 100 to 599");
    if (status == 101)
        return refuse(h, 502, "an upgrade that nobody asked for");
    if (finish_framing(h, minor, &out->framing, &out->length) != 0)
        return ERR_BAD;
    bool never = status < 200 || status == 204;
    bool told = out->framing == FRAMING_LENGTH && !never;
    bool bodiless = never || status == 304 || head_request;
    out->status = status;
    out->minor = minor;
    out->has_length = bodiless && told;
    if (bodiless)
        out->framing = FRAMING_NONE;
    else if (out->framing == FRAMING_NONE)
        out->framing = FRAMING_CLOSE;
    if (never)
        out->length = 0;
    out->keep_alive = minor == 1 && !h->close && out->framing != FRAMING_CLOSE;
    drop_options(h);
    return 0;
}
