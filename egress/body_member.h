/*
 * What the scanners of bodies have in common: one step for each byte, and the
 * member of the body that is being read (its name, and its value's beginning
 * when the name is a credential's). Pure; constant memory.
 */
#ifndef EGRESS_BODY_MEMBER_H
#define EGRESS_BODY_MEMBER_H

#include "egress/body_names.h"

enum { BODY_VALUE_MAX = 128 };

/* What is known after a byte. */
enum body_step {
    BODY_CLEAR, /* all bytes up to this one are clean */
    BODY_HOLD,  /* a name is open, or a value whose name is a credential's */
    BODY_FOUND, /* a credential: see the member */
    BODY_BAD,   /* malformed, or read differently by different parsers: see why */
};

/*
 * A name longer than CREDENTIAL_LABEL_MAX is nobody's name for a credential: what is over is not
 * kept, and its bytes are clear. Where its beginning alone is one ("api_key[", and more), the
 * body is BODY_BAD.
 */
struct body_member {
    const struct body_names *names;     /* that count, too; NULL: none */
    uint8_t name[CREDENTIAL_LABEL_MAX]; /* decoded */
    size_t n_name;
    bool too_long;
    bool hides;                    /* too long, and begins with a credential's name */
    uint8_t value[BODY_VALUE_MAX]; /* as it was sent */
    size_t n_value;
    const char *why; /* after BODY_BAD: a static sentence fragment */
};

/* A new name begins. */
void body_member_begin(struct body_member *m);
/*
 * Appends a decoded byte to the name. Letters that some parsers take for ASCII
 * ones when they compare without case (U+212A for k, U+017F for s) become these.
 */
void body_member_put(struct body_member *m, uint8_t c);
/* The same for a code point, in UTF-8. */
void body_member_put_point(struct body_member *m, uint32_t point);
/* The name is complete: whether an API would read its value as a credential. */
bool body_member_is_credential(const struct body_member *m);
/* Keeps a byte of the value; true when BODY_VALUE_MAX are there. */
bool body_member_put_value(struct body_member *m, uint8_t c);
/* After a byte of a name: BODY_HOLD, or what a name that is too long makes of it. */
enum body_step body_member_in_name(struct body_member *m);
/* BODY_BAD with a reason. */
enum body_step body_bad(struct body_member *m, const char *why);

#endif
