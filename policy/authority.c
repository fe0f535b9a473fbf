#include "policy/authority.h"

#include <string.h>

enum { NAME_MAX_BYTES = 253, LABEL_MAX_BYTES = 63 };

static int refuse(const char **why, const char *text) {
    if (why)
        *why = text;
    return ERR_BAD;
}

/* ---- ports ---- */

static int parse_port(struct view text, uint16_t *out, const char **why) {
    uint64_t port;
    if (text.n == 0)
        return refuse(why, "the port is empty");
    if (text.n > 5 || text.p[0] == '0' || view_number(text, 65535, &port) != 0)
        return refuse(why, "the port is not 1 to 65535 in plain digits");
    *out = (uint16_t)port;
    return 0;
}

/* ---- names ---- */

static bool is_label_byte(uint8_t c) {
    return is_alnum(c) || c == '-' || c == '_';
}

/* Says of the first byte that no host has what a person would want to know about it. */
static int check_bytes(struct view text, const char **why) {
    for (size_t i = 0; i < text.n; i++) {
        uint8_t c = text.p[i];
        if (is_label_byte(c) || c == '.')
            continue;
        if (c == '@')
            return refuse(why, "user information is not allowed");
        if (c == '%')
            return refuse(why, "percent-encoding is not allowed in a host");
        if (c >= 0x80)
            return refuse(why, "a byte is outside ASCII; write the name as an A-label (xn--)");
        return refuse(why, "a byte is not a letter, digit, '-', '_' or '.'");
    }
    return 0;
}

static int check_label(struct view label, const char **why) {
    if (label.n == 0)
        return refuse(why, "a label is empty");
    if (label.n > LABEL_MAX_BYTES)
        return refuse(why, "a label is longer than 63 bytes");
    if (label.p[0] == '-' || label.p[label.n - 1] == '-')
        return refuse(why, "a label starts or ends with '-'");
    if (view_equal_nocase(view_head(label, 4), VIEW("xn--")) && view_find(label, '_') < label.n)
        return refuse(why, "an A-label holds '_'");
    return 0;
}

/* What the C library or a browser would read as a number, and so perhaps as an address. */
static bool is_numeric(struct view label) {
    bool hexadecimal = view_equal_nocase(view_head(label, 2), VIEW("0x"));
    struct view digits = hexadecimal ? view_skip(label, 2) : label;
    for (size_t i = 0; i < digits.n; i++)
        if (hexadecimal ? hex_value(digits.p[i]) < 0 : !is_digit(digits.p[i]))
            return false;
    return true;
}

static int parse_name(struct view text, struct authority *out, const char **why) {
    if (text.n > 0 && text.p[text.n - 1] == '.')
        text.n--;
    if (text.n > NAME_MAX_BYTES)
        return refuse(why, "the name is longer than 253 bytes");
    struct view rest = text, label;
    for (bool more = true; more;) {
        more = view_find(rest, '.') < rest.n;
        label = view_cut(&rest, '.');
        if (check_label(label, why) != 0)
            return ERR_BAD;
    }
    if (is_numeric(label))
        return refuse(why, "the last label is a number, which is no name and no plain address");
    for (size_t i = 0; i < text.n; i++)
        out->host[i] = (char)to_lower(text.p[i]);
    out->kind = HOST_NAME;
    return 0;
}

/* ---- hosts ---- */

static void set_address(struct authority *out, const struct address *a) {
    out->kind = HOST_ADDRESS;
    out->address = *a;
    address_format(a, out->host);
}

static int parse_bracketed(struct view text, struct authority *out, const char **why) {
    struct address a;
    if (address_parse(text, &a) != 0 || a.family != 6)
        return refuse(why, "what stands in brackets is not an IPv6 address");
    set_address(out, &a);
    return 0;
}

static int parse_plain(struct view text, struct authority *out, const char **why) {
    struct address a;
    if (text.n == 0)
        return refuse(why, "the host is empty");
    if (check_bytes(text, why) != 0)
        return ERR_BAD;
    if (address_parse(text, &a) != 0)
        return parse_name(text, out, why);
    set_address(out, &a);
    return 0;
}

/* Takes the host off the front of *text: up to and with ']' when it begins with '[', else up to ':'. */
static int parse_front(struct view *text, struct authority *out, const char **why) {
    if (text->n == 0 || text->p[0] != '[') {
        struct view host = view_head(*text, view_find(*text, ':'));
        *text = view_skip(*text, host.n);
        return parse_plain(host, out, why);
    }
    size_t end = view_find(*text, ']');
    if (end == text->n)
        return refuse(why, "a bracket is not closed");
    struct view inside = view_slice(*text, 1, end);
    *text = view_skip(*text, end + 1);
    return parse_bracketed(inside, out, why);
}

int authority_parse(struct view text, uint16_t default_port, struct authority *out,
                    const char **why) {
    struct authority a = {.port = default_port};
    if (parse_front(&text, &a, why) != 0)
        return ERR_BAD;
    if (text.n == 0 && default_port == 0)
        return refuse(why, "the port is missing");
    if (text.n > 0 && text.p[0] != ':')
        return refuse(why, "something other than a port follows the bracket");
    if (text.n > 0 && parse_port(view_skip(text, 1), &a.port, why) != 0)
        return ERR_BAD;
    *out = a;
    return 0;
}

int authority_parse_host(struct view text, uint16_t port, struct authority *out, const char **why) {
    struct authority a = {.port = port};
    if (parse_front(&text, &a, why) != 0)
        return ERR_BAD;
    if (text.n > 0)
        return refuse(why, "something follows the host");
    *out = a;
    return 0;
}

int authority_read(struct view host, uint16_t port, struct authority *out) {
    char text[HOST_SIZE + 2] = "[";
    bool literal6 = view_find(host, ':') < host.n;
    if (port == 0 || view_cstr(host, text + literal6, HOST_SIZE) != 0)
        return ERR_BAD;
    if (literal6)
        memcpy(text + 1 + host.n, "]", 2);
    struct authority a;
    if (authority_parse_host(view_str(text), port, &a, NULL) != 0 ||
        !view_equal(host, view_str(a.host)))
        return ERR_BAD;
    *out = a;
    return 0;
}

bool authority_same_host(const struct authority *a, const struct authority *b) {
    return a->kind == b->kind && strcmp(a->host, b->host) == 0;
}

bool authority_equal(const struct authority *a, const struct authority *b) {
    return a->port == b->port && authority_same_host(a, b);
}

void authority_write(const struct authority *a, uint16_t default_port, struct buf *out) {
    bool brackets = a->kind == HOST_ADDRESS && a->address.family == 6;
    if (brackets)
        buf_put_u8(out, '[');
    buf_put_str(out, a->host);
    if (brackets)
        buf_put_u8(out, ']');
    if (a->port == default_port)
        return;
    buf_put_u8(out, ':');
    buf_put_decimal(out, a->port);
}
