#include "egress/multipart_scan.h"

#include <string.h>

/* ---- delimiters: Knuth, Morris and Pratt's search ---- */

static void delimiter_init(struct delimiter *d, const char *lead, struct view boundary) {
    struct view v = view_str(lead);
    view_copy(v, d->text);
    view_copy(boundary, d->text + v.n);
    d->n = (uint8_t)(v.n + boundary.n);
    d->at = 0;
    d->back[0] = 0;
    for (uint8_t i = 1, k = 0; i < d->n; i++) {
        while (k > 0 && d->text[i] != d->text[k])
            k = d->back[k - 1];
        k = (uint8_t)(k + (d->text[i] == d->text[k]));
        d->back[i] = k;
    }
}

/* Whether c ends an occurrence. */
static bool delimiter_byte(struct delimiter *d, uint8_t c) {
    while (d->at > 0 && (d->at == d->n || d->text[d->at] != c))
        d->at = d->back[d->at - 1];
    if (d->text[d->at] == c)
        d->at++;
    return d->at == d->n;
}

/* ---- a part's head ---- */

struct disposition {
    struct view name, filename, id;         /* id: Content-ID, which some take for a name */
    unsigned fields, names, filenames, ids; /* how many there were */
    bool encoded;                           /* filename* */
    bool request;                           /* the content is an HTTP message */
};

static bool is_token(struct view v) {
    for (size_t i = 0; i < v.n; i++)
        if (!is_tchar(v.p[i]))
            return false;
    return v.n > 0;
}

/* Takes a quoted string off *rest; its content is left as it is. False when it is ambiguous or open. */
static bool take_quoted(struct view *rest, struct view *content) {
    size_t end = view_find(view_skip(*rest, 1), '"');
    *content = view_slice(*rest, 1, 1 + end);
    if (end + 1 >= rest->n || (end > 0 && rest->p[end] == '\\'))
        return false;
    *rest = view_skip(*rest, end + 2);
    return true;
}

/* One `; name=value`; false when malformed. */
static bool take_parameter(struct view *rest, struct disposition *d) {
    *rest = view_trim(view_skip(*rest, 1));
    size_t equals = view_find(*rest, '=');
    struct view name = view_head(*rest, equals), value;
    *rest = view_skip(*rest, equals + 1);
    if (!is_token(name) || view_equal_nocase(view_head(name, 5), VIEW("name*")))
        return false;
    if (rest->n > 0 && rest->p[0] == '"') {
        if (!take_quoted(rest, &value))
            return false;
    } else {
        size_t end = view_find(*rest, ';');
        value = view_trim(view_head(*rest, end));
        *rest = view_skip(*rest, end);
        if (!is_token(value))
            return false;
    }
    *rest = view_trim(*rest);
    if (view_equal_nocase(name, VIEW("name"))) {
        d->name = value;
        d->names++;
    } else if (view_equal_nocase(view_head(name, 8), VIEW("filename"))) {
        d->filename = value;
        d->filenames++;
        d->encoded = d->encoded || name.n > 8;
    }
    return rest->n == 0 || rest->p[0] == ';';
}

static bool read_disposition(struct view value, struct disposition *d) {
    size_t end = view_find(value, ';');
    struct view rest = view_skip(value, end);
    d->fields++;
    if (!is_token(view_trim(view_head(value, end))))
        return false;
    while (rest.n > 0)
        if (!take_parameter(&rest, d))
            return false;
    return true;
}

/* Takes the next line, which ends in CRLF, off *rest. */
static bool take_line(struct view *rest, struct view *line) {
    size_t end = view_search(*rest, VIEW("\r\n"));
    *line = view_head(*rest, end);
    *rest = view_skip(*rest, end + 2);
    for (size_t i = 0; i < line->n; i++)
        if (line->p[i] == '\r' || line->p[i] == '\n' || line->p[i] == 0)
            return false;
    return true;
}

static bool read_head(struct view head, struct disposition *d) {
    struct view line;
    while (head.n > 0) {
        if (!take_line(&head, &line))
            return false;
        struct view value = line, name = view_cut(&value, ':');
        if (!is_token(name) || name.n == line.n)
            return false;
        if (view_equal_nocase(name, VIEW("content-disposition")) &&
            !read_disposition(view_trim(value), d))
            return false;
        if (view_equal_nocase(name, VIEW("content-type"))) {
            struct view type = view_trim(value);
            d->request = d->request || view_equal_nocase(view_trim(view_cut(&type, ';')),
                                                         VIEW("application/http"));
        }
        if (view_equal_nocase(name, VIEW("content-id"))) {
            d->id = view_trim(value);
            d->ids++;
        }
    }
    bool called = d->names > 0 || (d->filenames <= 1 && !d->encoded);
    return d->fields <= 1 && d->names <= 1 && d->ids <= 1 && called;
}

/* ---- the scan ---- */

int multipart_scan_init(struct multipart_scan *s, struct view boundary) {
    if (!media_type_is_boundary(boundary))
        return ERR_BAD;
    memset(s, 0, sizeof *s);
    delimiter_init(&s->line, "\r\n--", boundary);
    delimiter_init(&s->bare, "--", boundary);
    return 0;
}

static enum body_step malformed(struct multipart_scan *s) {
    return body_bad(&s->member, "malformed multipart");
}

/* Before the first delimiter only a CRLF may stand. */
static enum body_step start_byte(struct multipart_scan *s, uint8_t c) {
    if (s->line.at == 0 && c == '-')
        s->line.at = 2; /* as if the CRLF had been there */
    if (c != s->line.text[s->line.at])
        return malformed(s);
    if (delimiter_byte(&s->line, c))
        s->state = MULTIPART_DELIMITER;
    return BODY_CLEAR;
}

static enum body_step delimiter_end(struct multipart_scan *s, uint8_t c) {
    s->pair[s->n_pair++] = c;
    if (s->n_pair < 2)
        return BODY_CLEAR;
    struct view pair = view_of(s->pair, 2);
    s->n_pair = 0;
    s->n_head = 0;
    if (view_equal(pair, VIEW("--")))
        s->state = MULTIPART_CLOSED;
    else if (view_equal(pair, VIEW("\r\n")))
        s->state = MULTIPART_HEADERS;
    else
        return malformed(s);
    return BODY_CLEAR;
}

/* Some servers undo a percent-encoding in a name; NUL ends it for some. */
static bool is_encoded_credential(struct body_member *m, struct view name) {
    body_member_begin(m);
    for (size_t i = 0; i < name.n; i++) {
        uint8_t c = name.p[i], byte;
        if (c == '%' && hex_decode(view_slice(name, i + 1, i + 3), &byte, 1) == 0) {
            c = byte;
            i += 2;
        }
        if (c == 0)
            break;
        body_member_put(m, c);
    }
    return body_member_is_credential(m);
}

static bool is_credential(struct body_member *m, struct view name) {
    body_member_begin(m);
    for (size_t i = 0; i < name.n; i++)
        body_member_put(m, name.p[i]);
    return body_member_is_credential(m) || is_encoded_credential(m, name);
}

/* What has no name is called by its file's name, or by its id (Rack). */
static bool is_credentials_part(struct body_member *m, const struct disposition *d) {
    if (d->names > 0)
        return is_credential(m, d->name);
    return is_credential(m, d->filename) || is_credential(m, d->id);
}

/* Names that say how others are to be read, or are encoded words (RFC 2047). */
static bool is_odd(struct view name) {
    return view_equal_nocase(name, VIEW("_charset_")) || view_search(name, VIEW("=?")) < name.n;
}

static enum body_step begin_content(struct multipart_scan *s) {
    struct disposition d = {.fields = 0};
    /* The last two bytes are the empty line. */
    if (!read_head(view_of(s->head, s->n_head - 2), &d))
        return malformed(s);
    if (is_odd(d.name) || (d.names == 0 && (is_odd(d.filename) || is_odd(d.id))))
        return body_bad(&s->member, "a part's name is encoded, or says how others are");
    if (d.request)
        return body_bad(&s->member, "a request within a part, which no operation could judge");
    s->credential = is_credentials_part(&s->member, &d);
    s->state = MULTIPART_CONTENT;
    s->line.at = s->bare.at = 0;
    s->n_content = 0;
    return s->credential ? BODY_HOLD : BODY_CLEAR;
}

static enum body_step header_byte(struct multipart_scan *s, uint8_t c) {
    if (s->n_head == sizeof s->head)
        return body_bad(&s->member, "the head of a part is too long");
    s->head[s->n_head++] = c;
    struct view head = view_of(s->head, s->n_head);
    return view_ends(head, VIEW("\r\n\r\n")) ? begin_content(s) : BODY_HOLD;
}

static enum body_step found(struct multipart_scan *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (body_member_put_value(&s->member, s->content[i]))
            break;
    return BODY_FOUND;
}

static enum body_step content_byte(struct multipart_scan *s, uint8_t c) {
    bool line = delimiter_byte(&s->line, c), bare = delimiter_byte(&s->bare, c);
    if (bare && !line)
        return body_bad(&s->member, "the boundary within a part");
    if (s->credential)
        s->content[s->n_content++] = c;
    if (line) {
        s->state = MULTIPART_DELIMITER;
        if (s->credential && s->n_content > s->line.n)
            return found(s, s->n_content - s->line.n);
        return BODY_CLEAR;
    }
    if (s->credential && s->n_content == sizeof s->content)
        return found(s, BODY_VALUE_MAX);
    return s->credential ? BODY_HOLD : BODY_CLEAR;
}

static enum body_step closed_byte(struct multipart_scan *s, uint8_t c) {
    static const uint8_t pair[] = {'\r', '\n'};
    if (s->n_pair == sizeof pair || c != pair[s->n_pair])
        return malformed(s);
    s->n_pair++;
    return BODY_CLEAR;
}

enum body_step multipart_scan_byte(struct multipart_scan *s, uint8_t c) {
    switch (s->state) {
    case MULTIPART_START:
        return start_byte(s, c);
    case MULTIPART_DELIMITER:
        return delimiter_end(s, c);
    case MULTIPART_HEADERS:
        return header_byte(s, c);
    case MULTIPART_CONTENT:
        return content_byte(s, c);
    default:
        return closed_byte(s, c);
    }
}

size_t multipart_scan_skip(const struct multipart_scan *s, struct view v) {
    if (s->state != MULTIPART_CONTENT || s->credential || s->line.at > 0 || s->bare.at > 0)
        return 0;
    size_t dash = view_find(v, '-');
    return view_find(view_head(v, dash), '\r');
}

enum body_step multipart_scan_end(struct multipart_scan *s) {
    bool whole = s->state == MULTIPART_CLOSED && s->n_pair != 1;
    return whole ? BODY_CLEAR : body_bad(&s->member, "the multipart body is cut short");
}
