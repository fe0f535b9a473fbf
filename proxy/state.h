/*
 * The state of one proxy process: what the files of this folder share. Nobody outside proxy/
 * includes this; each part is changed only by the file named beside it.
 */
#ifndef PROXY_STATE_H
#define PROXY_STATE_H

#include "base/channel.h"
#include "base/limits.h"
#include "base/table.h"
#include "http/http1.h"
#include "http/tls.h"
#include "policy/reason.h"
#include "proxy/leaf_cache.h"

#include <sys/queue.h>

struct client;
struct relay;
struct door;
struct names;

/* One read, and so one body piece; not more than LANE_BODY_MAX. */
enum { PROXY_PIECE = 256 * 1024, PROXY_PARSERS = 64 };

struct proxy {
    struct loop *loop;
    struct tls_server *server;
    struct limits limits; /* in use */
    bool stopping;        /* serves what is in progress, takes nothing new */
    bool lost;            /* egress is gone, or broke the contract */

    /* hear.c */
    struct channel *lane;

    /* door.c */
    struct door *door;

    /* client.c */
    struct client *clients;        /* all */
    struct client *dirty;          /* have bytes gathered in this turn */
    struct client *dead;           /* to be freed at the end of this turn */
    size_t n_clients;              /* but those */
    TAILQ_HEAD(, client) yielding; /* may be closed for a newcomer, who waits for longest first */
    size_t n_waiting; /* who is not read because the lane is full: clients, and names */
    struct http1 *parsers[PROXY_PARSERS]; /* spare ones: a client has one only while it sends */
    size_t n_parsers;
    uint8_t piece[PROXY_PIECE]; /* what one read gives, when nothing older waits before it */

    /* gate.c */
    struct table tunnels; /* id to client */
    uint32_t last_tunnel;
    struct leaf_cache *leaves;

    /* names.c */
    struct names *names;
    uint32_t last_lookup;

    /* relay.c */
    struct table relays; /* exchange id to relay */
    uint32_t last_exchange;
    struct relay *spare; /* objects to be used again */

    /* proxy.c */
    struct deferred turn; /* writes what was gathered, frees what is dead */
    struct event *sweep, *retry;
    uint64_t stop_by;
    size_t most_clients; /* since memory was given back */

    /* Heads that are being changed on their way between a client and the lane. */
    struct request_head request;
    struct answer_head answer;
};

/* So much waits for egress that nothing more is read from clients for now. */
bool proxy_lane_full(struct proxy *p);
/* Runs the end of this turn: see turn. */
void proxy_at_turn_end(struct proxy *p);

#endif
