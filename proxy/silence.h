/*
 * Transparent connections whose client says nothing, because in its protocol the server speaks first (SMTP, MySQL,
 * FTP), or nothing that tells TLS from HTTP: after a moment egress is asked with the address alone, so that a refusal
 * does not take as long as a client may be slow. Not at ports whose protocols all begin with the client: it may be slow.
 */
#ifndef PROXY_SILENCE_H
#define PROXY_SILENCE_H

#include "proxy/client.h"

/* A transparent connection was accepted. */
void silence_begin(struct client *c);
/* It has ended, or its client does. */
void silence_end(struct client *c);

#endif
