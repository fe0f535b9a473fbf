/*
 * The environment of a sandbox: the variables that make ordinary clients use
 * exeat, trust its CA and find their placeholders. One table; adding a
 * variable is adding a row. Pure.
 */
#ifndef CLI_ENVIRONMENT_H
#define CLI_ENVIRONMENT_H

#include "base/bytes.h"

enum { CREDENTIALS_MAX = 256, ENVIRONMENT_VARIABLE_SIZE = 80 };

struct environment {
    struct view sandbox;
    struct view
        proxy_url; /* "http://127.0.0.1:3128"; empty: there is no listener on TCP for the proxy */
    struct view proxy_host; /* of the URL, which may also hold a token */
    unsigned proxy_port;
    struct view socket; /* its path, or empty */
    uint32_t
        vsock_port; /* of a guest, which reaches it at the host; 0: the listener is another one */
    struct view public; /* path of the directory of the public files (public.h) */
    struct {
        struct view name, placeholder;
    } credentials[CREDENTIALS_MAX];
    size_t n_credentials;
};

/*
 * Reads the answer to CONTROL_SANDBOX_ADD into e's sandbox and credentials and
 * into token; views point into json. ERR_BAD for anything broker does not write.
 */
MUST_USE int environment_read_issued(struct view json, struct environment *e, struct view *token);

/* The URL of e's proxy, with the token where the listener asks for one. */
void environment_put_url(const struct environment *e, bool with_token, struct view token,
                         struct buf *out);

/* Calls put for each variable, the credentials' behind the table's; one that would hide another is left out. */
typedef void environment_put(struct buf *out, const char *name, struct view value);
void environment_each(const struct environment *e, struct buf *out, environment_put *put);
/* Comment lines: how to use a socket, and the credentials that have no variable. */
void environment_notes(const struct environment *e, struct buf *out);

/*
 * The variable of a credential: upper case, '-' and '.' as '_', with a '_'
 * before a digit. False when it does not fit in size or would be a variable
 * that means something else to a shell or to the table.
 */
bool environment_variable(struct view credential, char *out, size_t size);

#endif
