/*
 * What a lane's proxy and egress say to each other. Egress treats all of it as
 * an enemy's; proxy believes egress.
 *
 * Ids are chosen by proxy, from 1, never twice in a lane's life. Tunnels (one
 * for each accepted CONNECT) and exchanges (one request and its answer) have
 * separate spaces. Generation in messages of proxy is 0: it judges nothing.
 *
 * Ends: a tunnel is over with LANE_REFUSED or LANE_CLOSE (which follows LANE_FAILED, LANE_ALERT and
 * LANE_CUT as well); an exchange with LANE_ANSWER_END, LANE_ANSWER_CUT or LANE_GONE. What crosses
 * such an end on its way is ignored.
 *
 * A tunnel may be spliced (LANE_SPLICED instead of LANE_LEAF): then the bytes behind it go both ways unread, until
 * the ends of both directions, LANE_CLOSE or LANE_CUT.
 *
 * Flow: each direction of an exchange's body starts with LIMIT_WINDOW bytes of
 * credit; the receiver gives back with *_CREDIT what it has passed on. LANE_WINDOW says that there is more
 * for a request from now on, or less again (egress/window.h). Likewise those of a spliced tunnel, with LANE_RAW_TAKEN and LANE_RAW_CREDIT.
 */
#ifndef EGRESS_LANE_MESSAGES_H
#define EGRESS_LANE_MESSAGES_H

#include "base/channel.h"

enum {
    LANE_HEAD_MAX = 300 * 1024, /* a head in binary form */
    LANE_BODY_MAX = 256 * 1024, /* one piece */
    LANE_TEXT_MAX = 4096,
    LANE_ADDRESS_MAX = 64, /* "address:port" as text */
};

/* How a client came by its tunnel, and what it may expect for that. */
enum lane_way {
    LANE_WAY_CONNECT,
    LANE_WAY_SOCKS,
    LANE_WAY_TRANSPARENT, /* a connection that meant another address */
    LANE_WAY_COUNT
};

/* proxy to egress */
enum {
    /* id: tunnel. block authority as sent; block Proxy-Authorization as sent (empty: none);
     * u8 how many Proxy-Authorization fields; block the other fields as "name: value", joined by LF, for the placeholder check;
     * u8 whether there was one in what is none of those; block peer ("127.0.0.1:4711", "unix uid 1000"); u8 enum lane_way; u8 tls and block the address that the client meant, which
     * are for LANE_WAY_TRANSPARENT: then authority is the SNI (tls), or what Host says, or empty. Answered by LANE_OPENED or
     * LANE_REFUSED. */
    LANE_OPEN = 1,
    /* id: tunnel. The client speaks TLS: u8 has_sni, block SNI as sent, u8 has_ech. Answered by
     * LANE_LEAF, LANE_SPLICED or LANE_ALERT. */
    LANE_HELLO = 2,
    /* id: tunnel. The handshake failed, or what came is neither TLS nor HTTP, or proxy lacks memory for it: u16 enum reason,
     * block detail. To be recorded. */
    LANE_FAILED = 3,
    /* id: tunnel. The client's connection is gone. */
    LANE_CLOSE = 4,
    /* id: exchange. u32 tunnel (0: plain proxying); u8 tls; u8 n of Proxy-Authorization fields; block Proxy-Authorization
     * (plain proxying only); block peer; request (http/message.h). */
    LANE_REQUEST = 5,
    LANE_BODY = 6, /* id: exchange. Body bytes. */
    /* id: exchange. The request is complete. Its trailers as "name:value\n" lines, to be looked at: they are not sent on. */
    LANE_END = 7,
    LANE_GONE =
        8, /* id: exchange. The client went away (client_closed), or its request broke off: u16 enum reason, block
            * detail. In the second case, if no answer has begun, egress answers with a refusal. */
    LANE_CREDIT = 9, /* id: exchange. u32 bytes of the answer that were passed on. */
    /* id: exchange, a new one. u32 tunnel; u16 status; u16 enum reason; block detail; block the offending bytes' beginning;
     * block peer; u8 enum lane_way and block the address that the client meant, where there is no tunnel. What proxy refuses by
     * itself; egress records it and answers with LANE_ANSWER as for a refusal. */
    LANE_MALFORMED = 10,
    LANE_RAW = 11,        /* id: tunnel, spliced. Bytes. */
    LANE_RAW_END = 12,    /* id: tunnel, spliced. The client sends no more. */
    LANE_RAW_CREDIT = 13, /* id: tunnel, spliced. u32 bytes that the client was sent. */
    /* id: question, in a space of their own. block name (http/dns_query.h), u16 type, block peer, block the address that was
     * asked; u16 enum reason and block detail: why it is refused (malformed_request, peer_not_allowed), or allowed and empty. Answered by LANE_FOUND. */
    LANE_LOOKUP = 14,
    LANE_DATAGRAM =
        15, /* block peer, block the address it was sent to: of a datagram that the sandbox's kernel refused. */
};

/* egress to proxy */
enum {
    LANE_OPENED =
        1, /* id: tunnel. block canonical host, u16 port. Say so, if the client waits for that, and look at the first bytes. */
    LANE_REFUSED =
        2, /* id: tunnel. block answer head (http/message.h), block body: send it and close. */
    LANE_LEAF =
        3, /* id: tunnel. block name, block leaf DER, block chain DER (certificates one after another), u64 not after (seconds).
         * leaf empty: the one that was sent before for this name and not after; a proxy that no longer has it closes. */
    LANE_ALERT = 4,    /* id: tunnel. u8 TLS alert: send it and close. */
    LANE_CUT = 5,      /* id: tunnel. Close at once: denied by a newer generation, or a stop. */
    LANE_CONTINUE = 6, /* id: exchange. Send 100 Continue. */
    LANE_ANSWER =
        7, /* id: exchange. u8 close afterwards; answer head. An interim answer (1xx) may come before. */
    LANE_ANSWER_BODY = 8,  /* id: exchange. Body bytes. */
    LANE_ANSWER_END = 9,   /* id: exchange. Complete. */
    LANE_ANSWER_CUT = 10,  /* id: exchange. It will not be completed: the truncation must show. */
    LANE_BODY_CREDIT = 11, /* id: exchange. u32 bytes of the request that were passed on. */
    LANE_SPLICED =
        12, /* id: tunnel. u32 the window of each way. Pass the client's bytes on, the ClientHello first. */
    LANE_RAW_BACK = 13,     /* id: tunnel, spliced. Bytes for the client. */
    LANE_RAW_BACK_END = 14, /* id: tunnel, spliced. The upstream sends no more. */
    LANE_RAW_TAKEN = 15,    /* id: tunnel, spliced. u32 bytes that were passed on. */
    /* id: question. u8 enum reply_code, u32 TTL, u8 n, n times u8 family and its 4 or 16 bytes; block why not. */
    LANE_FOUND = 16,
    LANE_WINDOW = 17, /* id: exchange. u32 the window of its request from now on. */
};

#endif
