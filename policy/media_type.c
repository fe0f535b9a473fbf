#include "policy/media_type.h"

#include <string.h>

struct media {
    struct view type, subtype;
    struct view boundary, charset;
    unsigned boundaries, charsets; /* how many there were */
    bool elsewhere;                /* another parameter speaks of a boundary */
};

/* ---- the syntax ---- */

static bool has(struct view v, struct view word) {
    for (size_t i = 0; v.n >= word.n && i <= v.n - word.n; i++)
        if (view_equal_nocase(view_slice(v, i, i + word.n), word))
            return true;
    return false;
}

static bool take_byte(struct view *rest, uint8_t c) {
    if (rest->n == 0 || rest->p[0] != c)
        return false;
    *rest = view_skip(*rest, 1);
    return true;
}

static bool take_token(struct view *rest, struct view *token) {
    size_t n = 0;
    while (n < rest->n && is_tchar(rest->p[n]))
        n++;
    *token = view_head(*rest, n);
    *rest = view_skip(*rest, n);
    return n > 0;
}

static bool take_quoted(struct view *rest, struct view *content) {
    size_t end = view_find(*rest, '"');
    *content = view_head(*rest, end);
    *rest = view_skip(*rest, end);
    for (size_t i = 0; i < content->n; i++) {
        uint8_t c = content->p[i];
        if ((c < ' ' && c != '\t') || c > '~' || c == '\\' || c == ';')
            return false;
    }
    return take_byte(rest, '"');
}

static bool take_parameter(struct view *rest, struct media *m) {
    struct view name, value;
    *rest = view_trim(*rest);
    if (!take_byte(rest, ';'))
        return false;
    *rest = view_trim(*rest);
    /* An empty parameter is no parameter (RFC 9110 5.6.6). */
    if (rest->n == 0 || rest->p[0] == ';')
        return true;
    if (!take_token(rest, &name) || view_find(name, '*') < name.n || !take_byte(rest, '='))
        return false;
    if (!(take_byte(rest, '"') ? take_quoted(rest, &value) : take_token(rest, &value)))
        return false;
    if (view_equal_nocase(name, VIEW("boundary"))) {
        m->boundary = value;
        m->boundaries++;
    } else if (has(name, VIEW("boundary")) || has(value, VIEW("boundary"))) {
        m->elsewhere = true;
    }
    if (view_equal_nocase(name, VIEW("charset"))) {
        m->charset = value;
        m->charsets++;
    }
    return true;
}

static bool parse(struct view value, struct media *m) {
    struct view rest = view_trim(value);
    if (!take_token(&rest, &m->type) || !take_byte(&rest, '/') || !take_token(&rest, &m->subtype))
        return false;
    if (view_find(m->type, '*') < m->type.n || view_find(m->subtype, '*') < m->subtype.n)
        return false;
    while (rest.n > 0)
        if (!take_parameter(&rest, m))
            return false;
    return m->boundaries <= 1 && m->charsets <= 1;
}

/* ---- the choice ---- */

/*
 * Blanks, and bytes of U+FEFF in UTF-8, UTF-16 and UTF-32. NUL is half of an ASCII character in UTF-16,
 * which some parsers of JSON find out by themselves; the controls are left out by lenient ones.
 */
static bool may_precede_json(uint8_t c) {
    return memchr("\0 \t\r\n\v\f\x1e\xef\xbb\xbf\xfe\xff", c, 13) != NULL;
}

/* No encoding of JSON has four NUL in a row: files have. */
size_t media_type_lead(struct view body) {
    size_t n = 0;
    for (unsigned nuls = 0; n < body.n && may_precede_json(body.p[n]); n++) {
        nuls = body.p[n] == 0 ? nuls + 1 : 0;
        if (nuls == 4)
            break;
    }
    return n;
}

static bool is_form(const struct media *m) {
    return has(m->subtype, VIEW("urlencoded")) || has(m->subtype, VIEW("url-encoded"));
}

static bool is_plain(const struct media *m) {
    return view_equal_nocase(m->type, VIEW("text")) && view_equal_nocase(m->subtype, VIEW("plain"));
}

static bool is_json(const struct media *m) {
    return has(m->subtype, VIEW("json")) || view_equal_nocase(m->subtype, VIEW("csp-report"));
}

/* Those in which an ASCII name is its ASCII bytes, and nothing else is. */
static bool is_plain_charset(const struct media *m) {
    static const char *const plain[] = {"utf-8", "utf8", "us-ascii", "iso-8859-1", "windows-1252"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (view_equal_nocase(m->charset, view_str(plain[i])))
            return true;
    return m->charsets == 0;
}

bool media_type_is_boundary(struct view v) {
    if (v.n == 0 || v.n > BOUNDARY_MAX || v.p[v.n - 1] == ' ')
        return false;
    for (size_t i = 0; i < v.n; i++)
        if (!is_alnum(v.p[i]) && (v.p[i] == 0 || !strchr("'()+_,-./:=? ", v.p[i])))
            return false;
    return true;
}

static enum reason choose_multipart(const struct media *m, struct media_scan *out) {
    if (m->elsewhere || !media_type_is_boundary(m->boundary))
        return REASON_MALFORMED_REQUEST;
    out->wanted = true;
    out->kind = BODY_MULTIPART;
    out->boundary = m->boundary;
    return REASON_ALLOWED;
}

enum reason media_type_choose(struct view value, bool post, uint8_t first, struct media_scan *out) {
    struct media m = {.boundaries = 0};
    *out = (struct media_scan){.wanted = false};
    bool typed = !view_is_empty(value), json = first == '{' || first == '[';
    if (typed && !parse(value, &m))
        return REASON_MALFORMED_REQUEST;
    if (view_equal_nocase(m.type, VIEW("multipart"))) {
        enum reason why = choose_multipart(&m, out);
        if (why != REASON_ALLOWED)
            return why;
    } else if (is_json(&m) || (json && (is_plain(&m) || (!typed && !post)))) {
        out->wanted = true;
        out->kind = BODY_JSON;
    } else if (is_form(&m) || (!typed && post)) {
        out->wanted = true;
        out->kind = json ? BODY_JSON_OR_FORM : BODY_FORM;
    } else if (json) {
        out->wanted = true;
        out->kind = BODY_JSON_UNSAID;
        return REASON_ALLOWED;
    }
    return out->wanted && !is_plain_charset(&m) ? REASON_BODY_CODING : REASON_ALLOWED;
}

bool media_type_is_coded(const struct field *fields, size_t n) {
    size_t codings = 0, identities = 0;
    for (size_t i = 0; i < n; i++)
        if (view_equal_nocase(fields[i].name, VIEW("content-encoding"))) {
            codings++;
            identities += view_equal_nocase(fields[i].value, VIEW("identity"));
        }
    return codings > 1 || codings > identities;
}

enum reason media_type_judge(const struct field *fields, size_t n, struct view method,
                             uint8_t first, struct media_scan *out) {
    size_t at = 0;
    while (at < n && !view_equal_nocase(fields[at].name, VIEW("content-type")))
        at++;
    struct view type = at < n ? fields[at].value : VIEW("");
    bool coded = media_type_is_coded(fields, n), post = view_equal(method, VIEW("POST"));
    /* A coded body may begin with anything once it is decoded. */
    enum reason why = media_type_choose(type, post, coded ? '{' : first, out);
    if (coded && out->kind == BODY_JSON_UNSAID)
        out->wanted = false;
    return coded && why == REASON_ALLOWED && out->wanted ? REASON_BODY_CODING : why;
}
