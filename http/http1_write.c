#include "http/http1.h"
#include "http/strict.h"

#include <assert.h>

static void put(struct buf *out, bool fits, struct view v) {
    if (fits)
        buf_put(out, v);
    else
        out->failed = true;
}

static void put_fields(struct buf *out, const struct fields *fields) {
    for (size_t i = 0; i < fields->n; i++) {
        struct view name = fields->at[i].name, value = fields->at[i].value;
        put(out, strict_is_name(name), name);
        buf_put(out, VIEW(": "));
        put(out, strict_is_value(value), value);
        buf_put(out, VIEW("\r\n"));
    }
}

static void put_length(struct buf *out, uint64_t length) {
    char text[20], *p = text + sizeof text;
    do
        *--p = (char)('0' + length % 10);
    while ((length /= 10) > 0);
    buf_put(out, VIEW("Content-Length: "));
    buf_put(out, view_of(p, (size_t)(text + sizeof text - p)));
    buf_put(out, VIEW("\r\n"));
}

static void put_framing(struct buf *out, enum framing framing, uint64_t length) {
    if (framing == FRAMING_LENGTH)
        put_length(out, length);
    if (framing == FRAMING_CHUNKED)
        buf_put(out, VIEW("Transfer-Encoding: chunked\r\n"));
}

static void put_end(struct buf *out, bool keep_alive) {
    if (!keep_alive)
        buf_put(out, VIEW("Connection: close\r\n"));
    buf_put(out, VIEW("\r\n"));
}

void http1_write_request(struct buf *out, struct view method, struct view target, struct view host,
                         const struct fields *fields, enum framing framing, uint64_t length,
                         bool keep_alive) {
    put(out, strict_is_token(method), method);
    buf_put(out, VIEW(" "));
    put(out, strict_is_target(target), target);
    buf_put(out, VIEW(" HTTP/1.1\r\nHost: "));
    put(out, strict_is_authority(host), host);
    buf_put(out, VIEW("\r\n"));
    put_fields(out, fields);
    put_framing(out, framing, length);
    put_end(out, keep_alive);
}

/* Reason phrases: the IANA registry. */
static const struct {
    uint16_t status;
    const char *phrase;
} phrases[] = {
    {100, "Continue"},
    {102, "Processing"},
    {103, "Early Hints"},
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {203, "Non-Authoritative Information"},
    {204, "No Content"},
    {205, "Reset Content"},
    {206, "Partial Content"},
    {207, "Multi-Status"},
    {208, "Already Reported"},
    {226, "IM Used"},
    {300, "Multiple Choices"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {402, "Payment Required"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {407, "Proxy Authentication Required"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {410, "Gone"},
    {411, "Length Required"},
    {412, "Precondition Failed"},
    {413, "Content Too Large"},
    {414, "URI Too Long"},
    {415, "Unsupported Media Type"},
    {416, "Range Not Satisfiable"},
    {417, "Expectation Failed"},
    {421, "Misdirected Request"},
    {422, "Unprocessable Content"},
    {423, "Locked"},
    {424, "Failed Dependency"},
    {425, "Too Early"},
    {426, "Upgrade Required"},
    {428, "Precondition Required"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {451, "Unavailable For Legal Reasons"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
    {506, "Variant Also Negotiates"},
    {507, "Insufficient Storage"},
    {508, "Loop Detected"},
    {511, "Network Authentication Required"},
};

/* Our own phrase for a status ("Not Found"); "Unknown" for others. */
static const char *phrase_of(uint16_t status) {
    for (size_t i = 0; i < sizeof phrases / sizeof *phrases; i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return "Unknown";
}

void http1_write_answer(struct buf *out, const struct answer_head *h, bool keep_alive) {
    bool interim = h->status < 200;
    struct view phrase = view_str(phrase_of(h->status));
    uint8_t digits[] = {(uint8_t)('0' + h->status / 100 % 10), (uint8_t)('0' + h->status / 10 % 10),
                        (uint8_t)('0' + h->status % 10)};
    buf_put(out, VIEW("HTTP/1.1 "));
    put(out, h->status >= 100 && h->status <= 599, view_of(digits, sizeof digits));
    buf_put(out, VIEW(" "));
    fields_find(&h->fields, VIEW(REFUSAL_FIELD), &phrase);
    buf_put(out, phrase);
    buf_put(out, VIEW("\r\n"));
    put_fields(out, &h->fields);
    if (!interim && h->status != 204)
        put_framing(out, h->has_length ? FRAMING_LENGTH : h->framing, h->length);
    put_end(out, keep_alive || interim);
}

void http1_write_chunk(struct buf *out, struct view v) {
    static const char digits[] = "0123456789abcdef";
    char text[16], *p = text + sizeof text;
    assert(v.n > 0); /* an empty chunk would end the body */
    for (size_t n = v.n; n > 0; n >>= 4)
        *--p = digits[n & 15];
    buf_put(out, view_of(p, (size_t)(text + sizeof text - p)));
    buf_put(out, VIEW("\r\n"));
    buf_put(out, v);
    buf_put(out, VIEW("\r\n"));
}

void http1_write_last_chunk(struct buf *out) {
    buf_put(out, VIEW("0\r\n\r\n"));
}
