/*
 * The network of a sandbox: loopback alone, on which every address there is is local. So nothing
 * can leave, whatever its routes say; a connection to any address ends at a listener of this
 * namespace, whose own address is then the one that was asked for, or is refused at once.
 */
#ifndef RUN_NETWORK_H
#define RUN_NETWORK_H

enum { RUN_PROXY_PORT = 3128 };

/* Brings loopback up in this namespace and makes all addresses local. -1 after saying why not. */
int network_up(void);
/* A listening socket on 127.0.0.1 and RUN_PROXY_PORT, or -1 after saying why not. */
int network_listen(void);

#endif
