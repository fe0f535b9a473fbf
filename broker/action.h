/*
 * Actions: what an operator's requests do to the vault. Each checks, writes
 * its audit record, and only then changes anything. No descriptor and no
 * channel: values are given as bytes.
 *
 * Results are 0 or an error code; *text* gets the JSON value of the answer, or
 * on failure a sentence for the operator.
 */
#ifndef BROKER_ACTION_H
#define BROKER_ACTION_H

#include "broker/custody.h"

struct request {
    uint16_t type; /* BROKER_SECRET_ADD, ... */
    uint32_t uid;  /* the operator */
    char name[NAME_SIZE], like[LIKE_SIZE];
    bool allow_short;
    struct buf pem; /* of a client certificate; empty: a plain secret */
};

/*
 * Reads a message of control; request_free afterwards. ERR_BAD: control broke the contract, and nothing is
 * held. ERR_MEMORY. Names are not checked yet.
 */
MUST_USE int action_read(uint16_t type, struct view body, struct request *out);

void request_free(struct request *r);

/* Whether the request can be carried out as things are, before its descriptor is read. */
MUST_USE int action_check(const struct custody *c, const struct request *r, struct buf *text);

/* For action*.c: the sentence is the answer, and the code the result. */
int action_say(struct buf *text, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* BROKER_SECRET_ADD and _ROTATE: source is what the descriptor gave: the value, of which one final
 * newline is dropped, or the private key of the client certificate. */
MUST_USE int action_value(struct custody *c, const struct request *r, struct view source,
                          uint64_t now, struct buf *text);
MUST_USE int action_secret_remove(struct custody *c, const struct request *r, struct buf *text);
MUST_USE int action_sandbox_add(struct custody *c, const struct request *r, uint64_t now,
                                struct buf *text);
MUST_USE int action_sandbox_remove(struct custody *c, const struct request *r, struct buf *text);
MUST_USE int action_list(const struct custody *c, const struct request *r, struct buf *text);
/* image gets the copy that is to be written to the descriptor. */
MUST_USE int action_backup(struct custody *c, const struct request *r, struct buf *image,
                           struct buf *text);
MUST_USE int action_restore(struct custody *c, const struct request *r, struct view image,
                            struct buf *text);
MUST_USE int action_rekey(struct custody *c, const struct request *r, struct view source,
                          struct buf *text);

#endif
