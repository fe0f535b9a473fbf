/*
 * HTTP messages as facts: what both codecs produce and both sides exchange
 * (promise P4: there is one record, and the wire is written from it).
 */
#ifndef HTTP_MESSAGE_H
#define HTTP_MESSAGE_H

#include "policy/field.h"

enum { FIELDS_MAX = 256 };

struct fields {
    struct field at[FIELDS_MAX];
    size_t n;
};

enum framing {
    FRAMING_NONE,   /* no body */
    FRAMING_LENGTH, /* exactly `length` bytes (may be 0) */
    FRAMING_CHUNKED,
    FRAMING_CLOSE, /* answers only: until the connection ends */
};

enum form {
    FORM_ORIGIN,    /* "/path?query" */
    FORM_ABSOLUTE,  /* "http://host/path"; authority and target are split here */
    FORM_AUTHORITY, /* CONNECT */
    FORM_ASTERISK,  /* OPTIONS * */
};

struct request_head {
    struct view method; /* as sent: methods are case-sensitive */
    enum form form;
    bool https;            /* FORM_ABSOLUTE: the scheme was https */
    struct view authority; /* raw: from FORM_ABSOLUTE or FORM_AUTHORITY, else empty */
    struct view host;      /* raw value of Host; has_host says whether there was one */
    bool has_host;
    struct view target; /* raw path and query: "/..." (FORM_ABSOLUTE may give ""), or "*" */
    uint8_t minor;      /* HTTP/1.minor: 0 or 1 */
    enum framing framing;
    uint64_t length;
    bool expect_continue;
    bool keep_alive; /* what the client asked for */
    bool upgrade;    /* an Upgrade field was there, for something other than h2c */
    bool
        placeholder_dropped; /* one is in what is not in fields: of the connection, or named by it */
    /*
     * Without Host, framing, Expect, hop-by-hop fields and those that Connection named. Out of
     * http1 Proxy-Authorization is still there: the proxy process takes it out (and counts it)
     * before it makes a record, and request_read refuses a record that has one.
     */
    struct fields fields;
};

struct answer_head {
    uint16_t status;
    uint8_t minor;
    enum framing framing;
    uint64_t length;
    bool has_length;      /* FRAMING_NONE only: the answer to HEAD, or a 304, told this length */
    bool keep_alive;      /* whether the connection may carry another exchange */
    struct fields fields; /* as above; Proxy-Authenticate only in answers of our own */
};

/* A refusal of ours in one line. What upstreams say by this name is dropped. */
#define REFUSAL_FIELD "exeat-refusal"

/* First value of a field, and how many there are of that name (lower-case). value may be NULL. */
size_t fields_find(const struct fields *f, struct view name, struct view *value);
/* ERR_LIMIT when FIELDS_MAX are there. */
MUST_USE int fields_add(struct fields *f, struct view name, struct view value);
/* Removes every field of that name; how many there were. */
size_t fields_remove(struct fields *f, struct view name);
/* The same for n names, in one pass. */
size_t fields_remove_any(struct fields *f, const struct view *names, size_t n);

/*
 * Binary form for channels. A read head's views point into the source. The
 * reader treats the writer as an enemy: a head that http1 could not have made
 * (after the proxy took out Proxy-Authorization) is ERR_BAD. So names are
 * lower-case tokens and none of those in known.h that are facts of their own,
 * values are free of control bytes, what policy depends on is there once, and
 * form, framing and the rest agree with each other. Views of the fields that are not
 * used by the form are empty.
 */
void request_write(const struct request_head *h, struct buf *out);
MUST_USE int request_read(struct reader *r, struct request_head *out);
void answer_write(const struct answer_head *h, struct buf *out);
/* Copies the facts and the fields that are there; views still point into the same source. */
void answer_copy(const struct answer_head *h, struct answer_head *out);
MUST_USE int answer_read(struct reader *r, struct answer_head *out);

#endif
