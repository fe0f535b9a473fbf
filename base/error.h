/*
 * Error codes: one short list for the whole program.
 *
 * Functions that can fail return 0 or one of these negative codes, and give
 * results through their last pointer arguments. A policy's "deny" is a verdict
 * and never one of these; one of these never becomes an "allow".
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

enum err {
    ERR_AGAIN = -1,   /* more input is needed, or the kernel would block */
    ERR_BAD = -2,     /* malformed input */
    ERR_LIMIT = -3,   /* a stated limit would be exceeded */
    ERR_MEMORY = -4,  /* no memory, or the locked arena is full */
    ERR_SYSTEM = -5,  /* a system call failed; errno says which way */
    ERR_DENIED = -6,  /* not permitted */
    ERR_MISSING = -7, /* no such thing */
    ERR_EXISTS = -8,  /* there is one already */
    ERR_CLOSED = -9,  /* the peer ended the connection */
    ERR_TIMEOUT = -10,
    ERR_CRYPTO = -11, /* a cryptographic check or operation failed */
};

/* The result of a function marked so must be looked at. */
#define MUST_USE __attribute__((warn_unused_result))

/* A short lower-case English text for a code above (or 0), for log lines. Never NULL; static. */
const char *err_text(int code);
/* For people, right after the call that failed: what errno says where the code is ERR_SYSTEM. */
const char *err_why(int code);

#endif
