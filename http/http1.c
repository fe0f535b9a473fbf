#include "http/http1.h"

#include "http/http1_head.h"
#include "http/strict.h"

#include <assert.h>
#include <llhttp.h>
#include <stdlib.h>
#include <string.h>

enum { BLANK_LINES_MAX = 2 }; /* before a request (RFC 9112 2.2) */

enum state { AT_HEAD, IN_LENGTH, IN_CHUNKS, IN_TRAILERS, UNTIL_CLOSE, AT_END, IS_BAD };

struct http1 {
    enum http1_side side;
    const struct limits *limits;
    enum state state;
    unsigned blank_lines;
    bool head_request;
    uint64_t left; /* IN_LENGTH: body bytes to come */
    struct strict_head scan;
    struct strict_chunks chunks;
    struct head head;
    uint16_t bad_status;
    const char *bad_why;
    /* llhttp, and what it found in the bytes of one call */
    llhttp_t parser;
    struct view lines; /* what our own split has not yet compared with it */
    struct view found_start, found_name, found_value, found_body;
    union {
        struct request_head request;
        struct answer_head answer;
    };
    struct fields *trailers; /* NULL until a message had some */
    bool has_trailers;
};

/* ---- llhttp's view of the bytes, compared with ours ---- */

static struct http1 *owner(llhttp_t *p) {
    return p->data;
}

/* A part may be told in several pieces, which then stand one behind another. */
static int found(struct view *part, const char *at, size_t n) {
    const uint8_t *p = (const uint8_t *)at;
    if (!part->p)
        part->p = p;
    if (p != part->p + part->n)
        return HPE_USER;
    part->n += n;
    return 0;
}

static int on_start(llhttp_t *p, const char *at, size_t n) {
    return found(&owner(p)->found_start, at, n);
}

static int on_name(llhttp_t *p, const char *at, size_t n) {
    return found(&owner(p)->found_name, at, n);
}

static int on_value(llhttp_t *p, const char *at, size_t n) {
    return found(&owner(p)->found_value, at, n);
}

static int on_body(llhttp_t *p, const char *at, size_t n) {
    return found(&owner(p)->found_body, at, n);
}

static bool is_same(struct view a, struct view b) {
    return a.n == b.n && (a.n == 0 || a.p == b.p);
}

static int on_field_end(llhttp_t *p) {
    struct http1 *h = owner(p);
    struct view name, value;
    if (!strict_field(&h->lines, &name, &value) || !is_same(name, h->found_name) ||
        !is_same(value, view_trim(h->found_value)))
        return HPE_USER;
    h->found_name = h->found_value = (struct view){NULL, 0};
    int err = h->state == AT_HEAD ? head_field(&h->head, name, value)
                                  : head_trailer(&h->head, name, value);
    return err == 0 ? 0 : HPE_USER;
}

static int on_stop(llhttp_t *p) {
    (void)p;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_start,
    .on_header_field = on_name,
    .on_header_value = on_value,
    .on_header_value_complete = on_field_end,
    .on_headers_complete = on_stop,
    .on_body = on_body,
    .on_message_complete = on_stop,
};

static void parser_start(struct http1 *h) {
    llhttp_init(&h->parser, h->side == HTTP1_REQUESTS ? HTTP_REQUEST : HTTP_RESPONSE, &settings);
    h->parser.data = h;
}

/* Gives v to llhttp, which must use all of it, and stop by itself at its end if `stops`. */
static llhttp_errno_t parser_run(struct http1 *h, struct view v, bool stops) {
    h->found_start = h->found_name = h->found_value = h->found_body = (struct view){NULL, 0};
    llhttp_errno_t e = llhttp_execute(&h->parser, (const char *)v.p, v.n);
    if (e == HPE_PAUSED && stops && llhttp_get_error_pos(&h->parser) == (const char *)v.p + v.n) {
        llhttp_resume(&h->parser);
        return HPE_OK;
    }
    if (e == HPE_OK && stops)
        return HPE_USER;
    return e;
}

/* Whether our split came to the end of the lines, which is the empty one. */
static bool lines_done(struct http1 *h) {
    struct view name, value;
    return !strict_field(&h->lines, &name, &value) && h->lines.n == 0;
}

static bool framing_agrees(const struct http1 *h, enum framing framing, uint64_t length) {
    const unsigned any = F_CONTENT_LENGTH | F_CHUNKED | F_TRANSFER_ENCODING;
    unsigned told = h->parser.flags & any;
    if (framing == FRAMING_LENGTH)
        return told == F_CONTENT_LENGTH && h->parser.content_length == length;
    if (framing == FRAMING_CHUNKED)
        return told == (F_CHUNKED | F_TRANSFER_ENCODING);
    return told == 0 || (framing == FRAMING_NONE && h->side == HTTP1_ANSWERS);
}

/* ---- life ---- */

static void at_head(struct http1 *h) {
    const uint64_t *v = h->limits->v;
    h->state = AT_HEAD;
    h->blank_lines = 0;
    strict_head_init(&h->scan, h->side == HTTP1_REQUESTS ? STRICT_REQUEST : STRICT_ANSWER,
                     (size_t)v[LIMIT_HEAD_BYTES], (size_t)v[LIMIT_TARGET_BYTES],
                     (size_t)v[LIMIT_HEAD_FIELDS]);
}

struct http1 *http1_new(enum http1_side side, const struct limits *limits) {
    struct http1 *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->side = side;
    h->limits = limits;
    head_init(&h->head, side == HTTP1_REQUESTS);
    at_head(h);
    return h;
}

void http1_free(struct http1 *h) {
    if (!h)
        return;
    head_free(&h->head);
    free(h->trailers);
    free(h);
}

void http1_reset(struct http1 *h) {
    h->head_request = false;
    h->has_trailers = false;
    at_head(h);
}

/* ---- events ---- */

static struct http1_event event(enum http1_what what, size_t used) {
    return (struct http1_event){.what = what, .used = used};
}

static struct http1_event bad(struct http1 *h, uint16_t status, const char *why) {
    h->state = IS_BAD;
    h->bad_status = h->side == HTTP1_REQUESTS ? status : 502;
    h->bad_why = why;
    return (struct http1_event){.what = HTTP1_BAD, .status = h->bad_status, .why = why};
}

static struct http1_event bad_by_parser(struct http1 *h, llhttp_errno_t e) {
    if (h->head.why)
        return bad(h, h->head.status, h->head.why);
    if (e == HPE_INVALID_METHOD)
        return bad(h, 501, "a method that is not known");
    if (e == HPE_USER || e == HPE_PAUSED || e == HPE_PAUSED_UPGRADE)
        return bad(h, 400, "two parsers read it differently");
    return bad(h, 400, llhttp_get_error_reason(&h->parser));
}

/* ---- heads ---- */

static bool request_agrees(struct http1 *h, struct view start) {
    const char *known = llhttp_method_name((llhttp_method_t)llhttp_get_method(&h->parser));
    uint8_t minor = (uint8_t)(start.p[start.n - 1] - '0');
    struct view method = view_cut(&start, ' '), target = view_cut(&start, ' ');
    if (!is_same(target, h->found_start) || !view_equal(method, view_str(known)) ||
        llhttp_get_http_minor(&h->parser) != minor)
        return false;
    return head_finish_request(&h->head, method, target, minor, &h->request) == 0 &&
           framing_agrees(h, h->request.framing, h->request.length);
}

static bool answer_agrees(struct http1 *h, struct view start) {
    uint8_t minor = (uint8_t)(start.p[sizeof "HTTP/1." - 1] - '0');
    uint64_t status;
    struct view digits = view_slice(start, sizeof "HTTP/1.1 " - 1, sizeof "HTTP/1.1 200" - 1);
    if (view_number(digits, 999, &status) != 0 ||
        llhttp_get_status_code(&h->parser) != (int)status ||
        llhttp_get_http_minor(&h->parser) != minor)
        return false;
    return head_finish_answer(&h->head, (uint16_t)status, minor, h->head_request, &h->answer) ==
               0 &&
           framing_agrees(h, h->answer.framing, h->answer.length);
}

static void after_head(struct http1 *h, enum framing framing, uint64_t length) {
    static const enum state next[] = {[FRAMING_NONE] = AT_END,
                                      [FRAMING_LENGTH] = IN_LENGTH,
                                      [FRAMING_CHUNKED] = IN_CHUNKS,
                                      [FRAMING_CLOSE] = UNTIL_CLOSE};
    h->state = framing == FRAMING_LENGTH && length == 0 ? AT_END : next[framing];
    h->left = length;
    strict_chunks_init(&h->chunks, h->limits->v[LIMIT_CHUNK_OVERHEAD]);
}

/* Known to newer llhttp only: the verdict is that of all the others. */
static bool is_new_method(struct view start) {
    return view_starts(start, VIEW("QUERY "));
}

/* v: a whole head that passed the byte check. */
static struct http1_event parse_head(struct http1 *h, struct view v, size_t used) {
    bool request = h->side == HTTP1_REQUESTS;
    h->lines = v;
    struct view start = view_cut(&h->lines, '\n');
    start.n--;
    if (head_start(&h->head, request ? &h->request.fields : &h->answer.fields, v.n) != 0)
        return bad(h, 400, "no memory for the head");
    parser_start(h);
    llhttp_errno_t e =
        request && is_new_method(start) ? HPE_INVALID_METHOD : parser_run(h, v, true);
    if (e != HPE_OK)
        return bad_by_parser(h, e);
    if (!lines_done(h) || !(request ? request_agrees(h, start) : answer_agrees(h, start)))
        return bad_by_parser(h, HPE_USER);
    if (request)
        after_head(h, h->request.framing, h->request.length);
    else
        after_head(h, h->answer.framing, h->answer.length);
    return event(HTTP1_HEAD, used + v.n);
}

/* How many bytes of ignored empty lines there are; *half: input ends within one. */
static size_t skip_blank_lines(struct http1 *h, struct view input, bool *half) {
    size_t used = 0;
    while (h->scan.at == 0 && h->blank_lines < BLANK_LINES_MAX &&
           view_starts(view_skip(input, used), VIEW("\r\n"))) {
        used += 2;
        h->blank_lines++;
    }
    *half = h->scan.at == 0 && h->blank_lines < BLANK_LINES_MAX &&
            view_equal(view_skip(input, used), VIEW("\r"));
    return used;
}

static struct http1_event next_head(struct http1 *h, struct view input) {
    size_t skipped = 0;
    h->has_trailers = false;
    if (h->side == HTTP1_REQUESTS) {
        bool half;
        skipped = skip_blank_lines(h, input, &half);
        if (half)
            return event(HTTP1_MORE, skipped);
    }
    input = view_skip(input, skipped);
    int err = strict_head_scan(&h->scan, input);
    if (err == ERR_AGAIN)
        return event(HTTP1_MORE, skipped);
    if (err != 0)
        return bad(h, h->scan.status, h->scan.why);
    return parse_head(h, view_head(input, h->scan.at), skipped);
}

/* ---- bodies ---- */

static struct http1_event body(struct view v, size_t used) {
    return (struct http1_event){.what = HTTP1_BODY, .used = used, .body = v};
}

static struct http1_event next_length(struct http1 *h, struct view input) {
    if (input.n == 0)
        return event(HTTP1_MORE, 0);
    struct view v = input.n > h->left ? view_head(input, (size_t)h->left) : input;
    h->left -= v.n;
    struct http1_event e = body(v, v.n);
    e.last = h->left == 0;
    if (e.last)
        h->state = AT_END;
    return e;
}

static struct http1_event until_close(struct http1 *h, struct view input) {
    (void)h;
    return input.n ? body(input, input.n) : event(HTTP1_MORE, 0);
}

static void at_trailers(struct http1 *h) {
    h->state = IN_TRAILERS;
    strict_head_init(&h->scan, STRICT_TRAILERS, (size_t)h->limits->v[LIMIT_TRAILER_BYTES], 0,
                     (size_t)h->limits->v[LIMIT_HEAD_FIELDS]);
}

static struct http1_event next_chunks(struct http1 *h, struct view input) {
    size_t used;
    struct view data;
    h->head.why = NULL;
    enum strict_piece piece = strict_chunks_next(&h->chunks, input, &used, &data);
    if (piece == STRICT_BAD)
        return bad(h, 400, h->chunks.why);
    if (used > 0) {
        llhttp_errno_t e = parser_run(h, view_head(input, used), false);
        if (e != HPE_OK || !is_same(data, h->found_body))
            return bad_by_parser(h, e != HPE_OK ? e : HPE_USER);
    }
    if (piece == STRICT_DATA)
        return body(data, used);
    if (piece == STRICT_LAST)
        at_trailers(h);
    return event(HTTP1_MORE, used);
}

static int trailers_start(struct http1 *h, size_t size) {
    if (!h->trailers)
        h->trailers = malloc(sizeof *h->trailers);
    if (!h->trailers)
        return ERR_MEMORY;
    h->has_trailers = true;
    return head_start(&h->head, h->trailers, size);
}

static struct http1_event next_trailers(struct http1 *h, struct view input) {
    int err = strict_head_scan(&h->scan, input);
    if (err == ERR_AGAIN)
        return event(HTTP1_MORE, 0);
    if (err != 0)
        return bad(h, h->scan.status, h->scan.why);
    h->lines = view_head(input, h->scan.at);
    if (h->scan.fields > 0 && trailers_start(h, h->lines.n) != 0)
        return bad(h, 400, "no memory for trailers");
    llhttp_errno_t e = parser_run(h, h->lines, true);
    if (e != HPE_OK || !lines_done(h))
        return bad_by_parser(h, e != HPE_OK ? e : HPE_USER);
    h->state = AT_END;
    return event(HTTP1_MORE, h->scan.at);
}

/* ---- the machine ---- */

static struct http1_event at_end(struct http1 *h, struct view input) {
    (void)input;
    if (h->side == HTTP1_ANSWERS && h->answer.status >= 200)
        h->head_request = false;
    at_head(h);
    return event(HTTP1_END, 0);
}

static struct http1_event still_bad(struct http1 *h, struct view input) {
    (void)input;
    return bad(h, h->bad_status, h->bad_why);
}

static struct http1_event step(struct http1 *h, struct view input) {
    static struct http1_event (*const steps[])(struct http1 *, struct view) = {
        [AT_HEAD] = next_head,         [IN_LENGTH] = next_length,   [IN_CHUNKS] = next_chunks,
        [IN_TRAILERS] = next_trailers, [UNTIL_CLOSE] = until_close, [AT_END] = at_end,
        [IS_BAD] = still_bad,
    };
    return steps[h->state](h, input);
}

/* The last chunk's line and the trailers are used up without an event of their own. */
struct http1_event http1_next(struct http1 *h, struct view input) {
    size_t used = 0;
    for (;;) {
        enum state before = h->state;
        struct http1_event e = step(h, view_skip(input, used));
        used += e.used;
        e.used = used;
        if (e.what != HTTP1_MORE || h->state == before)
            return e;
    }
}

struct http1_event http1_eof(struct http1 *h) {
    switch (h->state) {
    case AT_HEAD:
        if (h->scan.at == 0)
            return event(HTTP1_MORE, 0);
        return bad(h, 400, "the connection ended within a head");
    case UNTIL_CLOSE:
    case AT_END:
        return at_end(h, (struct view){NULL, 0});
    case IS_BAD:
        return bad(h, h->bad_status, h->bad_why);
    default:
        return bad(h, 400, "the connection ended within a body");
    }
}

const struct request_head *http1_request(const struct http1 *h) {
    assert(h->side == HTTP1_REQUESTS);
    return &h->request;
}

const struct answer_head *http1_answer(const struct http1 *h) {
    assert(h->side == HTTP1_ANSWERS);
    return &h->answer;
}

const struct fields *http1_trailers(const struct http1 *h) {
    static const struct fields none;
    return h->has_trailers ? h->trailers : &none;
}

void http1_expect(struct http1 *h, bool head_request) {
    assert(h->side == HTTP1_ANSWERS);
    h->head_request = head_request;
}

/* ---- self-test ---- */

static bool parser_takes(llhttp_type_t type, struct view v) {
    static const llhttp_settings_t none;
    llhttp_t parser;
    llhttp_init(&parser, type, &none);
    return llhttp_execute(&parser, (const char *)v.p, v.n) == HPE_OK;
}

int http1_self_test(void) {
    static const char good[] = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                               "1\r\nZ\r\n0\r\n\r\n";
    /* Each is taken by llhttp 8 when it was built without LLHTTP_STRICT_MODE. */
    static const char *const refused[] = {
        "GET / HTTP/1.1\r\nHost: a\r\n\rZGET /evil HTTP/1.1\r\nHost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: \rxTransfer-Encoding: chunked\r\n\r\n",
        "GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nZZ0\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    };
    if (!parser_takes(HTTP_REQUEST, view_str(good)))
        return ERR_BAD;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (parser_takes(HTTP_REQUEST, view_str(refused[i])))
            return ERR_BAD;
    return 0;
}
