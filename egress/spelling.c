#include "egress/spelling.h"

#include <assert.h>
#include <string.h>

enum way {
    WAY_PLAIN,
    WAY_UPPER,
    WAY_LOWER,
    WAY_BASE64,
    WAY_PERCENT,
    WAY_JSON,
    WAY_HEX,
    WAY_HTML,
    WAY_UTF16_LE,
    WAY_UTF16_BE,
};

struct kind {
    enum way way;
    const char *name;
    const char *set;       /* percent: kept as they are; JSON and HTML: escaped by number */
    const char *backslash; /* JSON: escaped by a backslash */
    const char *number;    /* HTML: how one begins */
    uint8_t skip;          /* base64: bytes before the secret in its group of three */
    bool url;              /* base64url */
    bool upper;            /* digits A to F */
    bool all;              /* every byte is escaped */
    bool plus;             /* SP is written as '+' */
    bool twice;            /* the '%' of an escape is escaped as well */
};

static const struct kind kinds[SPELLINGS] = {
    {WAY_PLAIN, "as it is", .set = ""},
    /* Names of hosts, fields and environments are folded; the letters that are left are most of a key. */
    {WAY_UPPER, "upper case", .set = ""},
    {WAY_LOWER, "lower case", .set = ""},
    {WAY_BASE64, "base64 at 0", .skip = 0},
    {WAY_BASE64, "base64 at 1", .skip = 1},
    {WAY_BASE64, "base64 at 2", .skip = 2},
    {WAY_BASE64, "base64url at 0", .skip = 0, .url = true},
    {WAY_BASE64, "base64url at 1", .skip = 1, .url = true},
    {WAY_BASE64, "base64url at 2", .skip = 2, .url = true},
    /* What is kept: RFC 3986 unreserved; encodeURIComponent; encodeURI; HTML forms. */
    {WAY_PERCENT, "percent upper", .set = "-._~", .upper = true},
    {WAY_PERCENT, "percent lower", .set = "-._~"},
    {WAY_PERCENT, "percent component upper", .set = "-._~!*'()", .upper = true},
    {WAY_PERCENT, "percent component lower", .set = "-._~!*'()"},
    {WAY_PERCENT, "percent uri upper", .set = "-._~!*'();/?:@&=+$,#", .upper = true},
    {WAY_PERCENT, "percent uri lower", .set = "-._~!*'();/?:@&=+$,#"},
    /* Go's and Java's for a segment of a path; Python's. */
    {WAY_PERCENT, "percent path upper", .set = "-._~!$&'()*+,;=:@", .upper = true},
    {WAY_PERCENT, "percent path lower", .set = "-._~!$&'()*+,;=:@"},
    {WAY_PERCENT, "percent slash upper", .set = "-._~/", .upper = true},
    {WAY_PERCENT, "percent slash lower", .set = "-._~/"},
    {WAY_PERCENT, "percent form upper", .set = "-._*", .upper = true, .plus = true},
    {WAY_PERCENT, "percent form lower", .set = "-._*", .plus = true},
    {WAY_PERCENT, "percent all upper", .set = "", .upper = true, .all = true},
    {WAY_PERCENT, "percent all lower", .set = "", .all = true},
    /* A redirect to a page that takes the first address as a parameter. */
    {WAY_PERCENT, "percent twice upper", .set = "-._~", .upper = true, .twice = true},
    {WAY_PERCENT, "percent twice lower", .set = "-._~", .twice = true},
    {WAY_PERCENT, "percent all twice upper", .set = "", .upper = true, .all = true, .twice = true},
    {WAY_PERCENT, "percent all twice lower", .set = "", .all = true, .twice = true},
    {WAY_JSON, "json", .set = "", .backslash = "\"\\"},
    {WAY_JSON, "json slash", .set = "", .backslash = "\"\\/"},
    /* Serialisers that are careful about HTML, in the ways of Go, Django, .NET and Gson. */
    {WAY_JSON, "json html lower", .set = "<>&", .backslash = "\"\\"},
    {WAY_JSON, "json html upper", .set = "<>&", .backslash = "\"\\", .upper = true},
    {WAY_JSON, "json plus upper", .set = "\"&'+<>`", .backslash = "\\", .upper = true},
    {WAY_JSON, "json script upper", .set = "\\'\"<>&=-;`", .backslash = "", .upper = true},
    {WAY_JSON, "json equals lower", .set = "<>&='", .backslash = "\"\\"},
    {WAY_JSON, "json all upper", .set = "", .backslash = "", .upper = true, .all = true},
    {WAY_JSON, "json all lower", .set = "", .backslash = "", .all = true},
    {WAY_HEX, "hex upper", .upper = true},
    {WAY_HEX, "hex lower", .upper = false},
    {WAY_HTML, "html decimal", .set = "'", .number = "&#"},
    {WAY_HTML, "html hex", .set = "'", .number = "&#x"},
    /* Templates, in the ways of Jinja, Go, .NET and Mustache. */
    {WAY_HTML, "html quote decimal", .set = "'\"", .number = "&#"},
    {WAY_HTML, "html plus decimal", .set = "'\"+", .number = "&#"},
    {WAY_HTML, "html plus hex upper", .set = "'+`", .number = "&#x", .upper = true},
    {WAY_HTML, "html slash hex upper", .set = "/=`", .number = "&#x", .upper = true},
    {WAY_HTML, "html all decimal", .set = "", .number = "&#", .all = true},
    {WAY_HTML, "html all hex lower", .set = "", .number = "&#x", .all = true},
    {WAY_HTML, "html all hex upper", .set = "", .number = "&#x", .all = true, .upper = true},
    {WAY_UTF16_LE, "utf-16 little endian", .set = ""},
    {WAY_UTF16_BE, "utf-16 big endian", .set = ""},
};

const char *spelling_name(size_t kind) {
    return kinds[kind].name;
}

static size_t put_text(const char *s, uint8_t *out) {
    size_t n = strlen(s);
    memcpy(out, s, n);
    return n;
}

static bool in_set(const char *set, uint8_t c) {
    return c != 0 && strchr(set, c) != NULL;
}

static size_t put_hex(uint8_t c, bool upper, uint8_t *out) {
    const char *digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    out[0] = (uint8_t)digits[c >> 4];
    out[1] = (uint8_t)digits[c & 15];
    return 2;
}

static size_t put_percent(const struct kind *k, uint8_t c, uint8_t *out) {
    if (k->plus && c == ' ') {
        *out = '+';
        return 1;
    }
    if (!k->all && (is_alnum(c) || in_set(k->set, c))) {
        *out = c;
        return 1;
    }
    size_t n = put_text(k->twice ? "%25" : "%", out);
    return n + put_hex(c, k->upper, out + n);
}

static size_t put_json(const struct kind *k, uint8_t c, uint8_t *out) {
    if (in_set(k->backslash, c)) {
        out[0] = '\\';
        out[1] = c;
        return 2;
    }
    if (!k->all && !in_set(k->set, c)) {
        *out = c;
        return 1;
    }
    put_text("\\u00", out);
    return 4 + put_hex(c, k->upper, out + 4);
}

static size_t put_decimal(uint8_t c, uint8_t *out) {
    size_t n = 0;
    if (c >= 100)
        out[n++] = (uint8_t)('0' + c / 100);
    if (c >= 10)
        out[n++] = (uint8_t)('0' + c / 10 % 10);
    out[n++] = (uint8_t)('0' + c % 10);
    return n;
}

static size_t put_number(const struct kind *k, uint8_t c, uint8_t *out) {
    size_t n = put_text(k->number, out);
    n += out[n - 1] == 'x' ? put_hex(c, k->upper, out + n) : put_decimal(c, out + n);
    out[n++] = ';';
    return n;
}

static size_t put_html(const struct kind *k, uint8_t c, uint8_t *out) {
    if (k->all || in_set(k->set, c))
        return put_number(k, c, out);
    switch (c) {
    case '&':
        return put_text("&amp;", out);
    case '<':
        return put_text("&lt;", out);
    case '>':
        return put_text("&gt;", out);
    case '"':
        return put_text("&quot;", out);
    case '\'':
        return put_text("&#39;", out);
    default:
        *out = c;
        return 1;
    }
}

static size_t put_byte(const struct kind *k, uint8_t c, uint8_t out[SPELLING_GROWTH]) {
    switch (k->way) {
    case WAY_PERCENT:
        return put_percent(k, c, out);
    case WAY_JSON:
        return put_json(k, c, out);
    case WAY_HEX:
        return put_hex(c, k->upper, out);
    case WAY_HTML:
        return put_html(k, c, out);
    case WAY_UPPER:
        *out = c >= 'a' && c <= 'z' ? (uint8_t)(c - 'a' + 'A') : c;
        return 1;
    case WAY_LOWER:
        *out = to_lower(c);
        return 1;
    case WAY_UTF16_LE:
        out[0] = c;
        out[1] = 0;
        return 2;
    case WAY_UTF16_BE:
        out[0] = 0;
        out[1] = c;
        return 2;
    default:
        *out = c;
        return 1;
    }
}

/* ---- base64: six bits a character, counted from the group's first byte ---- */

static size_t first_sextet(size_t byte) {
    return (8 * byte + 5) / 6;
}

static size_t base64_size(const struct kind *k, struct view secret) {
    return 8 * (k->skip + secret.n) / 6 - first_sextet(k->skip);
}

static size_t write_base64(const struct kind *k, struct view secret, uint8_t *out) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    size_t n = base64_size(k, secret);
    for (size_t i = 0; i < n; i++) {
        size_t bit = 6 * (first_sextet(k->skip) + i) - 8u * k->skip;
        size_t at = bit / 8, shift = bit % 8;
        unsigned pair = (unsigned)secret.p[at] << 8 | (at + 1 < secret.n ? secret.p[at + 1] : 0);
        out[i] = (uint8_t)(k->url ? url : plain)[pair >> (10 - shift) & 63];
    }
    return n;
}

/* ---- all kinds ---- */

size_t spelling_write(size_t kind, struct view secret, uint8_t *out) {
    const struct kind *k = &kinds[kind];
    size_t n = 0;
    if (k->way == WAY_BASE64)
        return write_base64(k, secret, out);
    for (size_t i = 0; i < secret.n; i++)
        n += put_byte(k, secret.p[i], out + n);
    return n;
}

size_t spelling_offset(size_t kind, struct view secret, size_t i) {
    const struct kind *k = &kinds[kind];
    uint8_t unit[SPELLING_GROWTH];
    size_t n = 0;
    assert(i <= secret.n);
    if (k->way == WAY_BASE64) {
        size_t at = first_sextet(k->skip + i) - first_sextet(k->skip);
        return at < base64_size(k, secret) ? at : base64_size(k, secret);
    }
    for (size_t j = 0; j < i; j++)
        n += put_byte(k, secret.p[j], unit);
    return n;
}

size_t spelling_run(size_t kind, struct view secret, size_t run) {
    const struct kind *k = &kinds[kind];
    uint8_t unit[SPELLING_GROWTH];
    size_t now = 0, most = 0;
    /* A run that does not begin a group loses up to four bits to its neighbour. */
    if (k->way == WAY_BASE64)
        return (8 * run - 4) / 6;
    for (size_t i = 0; i < secret.n; i++) {
        now += put_byte(k, secret.p[i], unit);
        if (i >= run)
            now -= put_byte(k, secret.p[i - run], unit);
        if (now > most)
            most = now;
    }
    return most;
}

bool spelling_leans_before(size_t kind) {
    return kinds[kind].way == WAY_BASE64 && kinds[kind].skip != 0;
}

bool spelling_leans_after(size_t kind, struct view secret) {
    return kinds[kind].way == WAY_BASE64 && 8 * (kinds[kind].skip + secret.n) % 6 != 0;
}

size_t spelling_public_head(struct view secret, size_t prefix, size_t run) {
    if (secret.n <= run)
        return 0;
    size_t most = secret.n - run;
    size_t head = secret.n / 4 > prefix ? secret.n / 4 : prefix;
    for (size_t i = head; i < most; i++) {
        uint8_t c = secret.p[i];
        bool early = i < secret.n * 3 / 5;
        if (c == '.' || (early && in_set("-_:", c)))
            head = i + 1;
    }
    return head < most ? head : most;
}
