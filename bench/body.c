#include "body.h"

char pattern[PATTERN];

const char *head_get(const char *head, size_t len, const char *name, size_t *vlen) {
    size_t nlen = strlen(name);
    const char *p = memchr(head, '\n', len), *end = head + len;

    while (p != NULL && ++p < end) {
        const char *nl = memchr(p, '\n', (size_t)(end - p));
        const char *stop = nl != NULL ? nl : end;

        if ((size_t)(stop - p) > nlen && p[nlen] == ':' && strncasecmp(p, name, nlen) == 0) {
            p += nlen + 1;
            while (p < stop && (*p == ' ' || *p == '\t'))
                p++;
            while (stop > p && (stop[-1] == '\r' || stop[-1] == ' '))
                stop--;
            *vlen = (size_t)(stop - p);
            return p;
        }
        p = nl;
    }
    return NULL;
}

bool head_has(const char *head, size_t len, const char *name, const char *word) {
    size_t vlen, wlen = strlen(word);
    const char *v = head_get(head, len, name, &vlen);

    for (size_t i = 0; v != NULL && i + wlen <= vlen; i++)
        if (strncasecmp(v + i, word, wlen) == 0)
            return true;
    return false;
}

void body_init(struct body *b, const char *head, size_t len, bool is_response) {
    size_t vlen;
    const char *v;

    memset(b, 0, sizeof *b);
    if (head_has(head, len, "Transfer-Encoding", "chunked")) {
        b->kind = BODY_CHUNKED;
    } else if ((v = head_get(head, len, "Content-Length", &vlen)) != NULL) {
        b->kind = BODY_LENGTH;
        b->left = strtoull(v, NULL, 10);
        b->done = b->left == 0;
    } else {
        b->kind = is_response ? BODY_EOF : BODY_NONE;
        b->done = !is_response;
    }
}

ssize_t body_feed(struct body *b, const char *p, size_t n, body_cb cb, void *arg) {
    size_t i = 0, k;

    if (b->kind == BODY_LENGTH || b->kind == BODY_EOF) {
        k = b->kind == BODY_LENGTH && b->left < n ? (size_t)b->left : n;
        cb(arg, p, k);
        b->got += k;
        if (b->kind == BODY_LENGTH)
            b->done = (b->left -= k) == 0;
        return (ssize_t)k;
    }
    while (i < n && !b->done) {
        char c = p[i];

        switch (b->st) {
        case CH_SIZE:
        case CH_EXT:
            i++;
            if (c == '\n') {
                if (b->digits == 0)
                    return -1;
                b->st = b->left > 0 ? CH_DATA : CH_TRAILER;
                b->line = 0;
            } else if (b->st == CH_SIZE && c != '\r' && c != ';' && c != ' ') {
                int v = c >= '0' && c <= '9' ? c - '0' : (c | 32) - 'a' + 10;

                if (v < 0 || v > 15 || ++b->digits > 15)
                    return -1;
                b->left = b->left * 16 + (unsigned)v;
            } else {
                b->st = CH_EXT;
            }
            break;
        case CH_DATA:
            k = b->left < n - i ? (size_t)b->left : n - i;
            cb(arg, p + i, k);
            b->got += k;
            b->left -= k;
            i += k;
            if (b->left == 0)
                b->st = CH_CRLF;
            break;
        case CH_CRLF:
            i++;
            if (c == '\n') {
                b->st = CH_SIZE;
                b->digits = 0;
            } else if (c != '\r') {
                return -1;
            }
            break;
        default: /* CH_TRAILER */
            i++;
            if (c == '\n') {
                b->done = b->line == 0;
                b->line = 0;
            } else if (c != '\r') {
                b->line++;
            }
        }
    }
    return (ssize_t)i;
}

void pattern_init(void) {
    uint32_t x = 2463534242u;

    for (size_t i = 0; i < PATTERN; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        pattern[i] = (char)x;
    }
}

bool pattern_same(uint64_t off, const char *p, size_t n) {
    while (n > 0) {
        size_t at = off % PATTERN, k = PATTERN - at < n ? PATTERN - at : n;

        if (memcmp(pattern + at, p, k) != 0)
            return false;
        off += k;
        p += k;
        n -= k;
    }
    return true;
}
