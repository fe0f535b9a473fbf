/*
 * The SOCKS5 door: from the first byte to the question whether the client may go where it wants to. From there on
 * the connection is a tunnel like one of CONNECT. User and password are what Proxy-Authorization is there.
 */
#ifndef PROXY_SOCKS_H
#define PROXY_SOCKS_H

#include "proxy/client.h"

/* Step of CLIENT_SOCKS. */
enum client_step socks_step(struct client *c, struct view *input);
/* The client will send no more. */
void socks_ended(struct client *c);
/* Its time is over. */
void socks_late(struct client *c);
/* The connection is being freed, or needs this no more. */
void socks_forget(struct client *c);

#endif
