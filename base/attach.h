/*
 * How a sandbox is attached to a running exeatd: one conversation over a Unix socket of type SOCK_SEQPACKET,
 * between the launcher that has made the sandbox and exeatd's process attach.
 *
 *   launcher to exeatd, one packet, with all its listening sockets in one SCM_RIGHTS:
 *       u8 version, block sandbox, u8 n, then n times u8 enum way_in, in the order of the descriptors
 *   exeatd to launcher, one packet:
 *       u8 err (0, or -code), block text, block ca
 *       err 0: text is broker's answer to CONTROL_SANDBOX_ADD, JSON; ca our certificates, PEM.
 *       Else text is a sentence for the user, and the connection is closed behind it.
 *   Up to here the lane refuses whatever is asked of it (not_probed), but where nothing forces the sandbox to it.
 *   launcher to exeatd, one packet, what attempts to get out of the sandbox found:
 *       u8 ATTACH_REPORT, then a report (run/report.h), of nothing when the attempts could not be made
 *   exeatd to launcher, one packet:
 *       as the answer, with empty text and ca, when the lane serves from now on. It does not where something is not contained.
 *   exeatd to launcher, at any time from then on, one byte ATTACH_ASK: the attempts are to be made again, and reported. Where
 *       something is not contained, or no report comes, the lane ends; else exeatd says nothing.
 *
 * The sandbox's lane lives as long as the connection: whoever closes it ends the lane, and what was issued with
 * it. The end of file tells the launcher that the lane has ended.
 *
 * Who may attach what is judged by the peer's uid and groups. A launcher whose socket was made in another
 * network namespace than exeatd's is refused, so that nobody inside of a sandbox can attach: it connects before
 * it leaves for the sandbox's.
 */
#ifndef BASE_ATTACH_H
#define BASE_ATTACH_H

#include "base/bytes.h"
#include "base/way_in.h"

enum {
    ATTACH_VERSION = 2,
    ATTACH_REPORT = 'r',
    ATTACH_ASK = 'p',
    ATTACH_LISTENERS_MAX = 32,
    ATTACH_NAME_MAX = 64
};

/* Of an answer: what fits into one packet of a socket with the kernel's usual buffer. */
#define ATTACH_ANSWER_MAX ((size_t)160 << 10)
#define ATTACH_REPORT_MAX ((size_t)64 << 10)

struct attach_request {
    struct view sandbox;
    size_t n;
    uint8_t kinds[ATTACH_LISTENERS_MAX];
    int fds[ATTACH_LISTENERS_MAX];
};

struct attach_answer {
    int err; /* 0 or a code of base/error.h */
    struct view text, ca;
};

/* A connected, close-on-exec socket, or -1 with errno. */
int attach_connect(const char *path);
/* The descriptors stay the caller's. ERR_LIMIT: the name or n does not fit; ERR_SYSTEM. */
MUST_USE int attach_send_request(int fd, const struct attach_request *r);
/* Waits. Views point into out, which has room for ATTACH_ANSWER_MAX. ERR_CLOSED, ERR_BAD, ERR_SYSTEM. */
MUST_USE int attach_receive_answer(int fd, struct buf *out, struct attach_answer *a);

/* ERR_LIMIT: it does not fit into a packet; ERR_SYSTEM. */
MUST_USE int attach_send_report(int fd, struct view report);
/* 0: the attempts are to be made again. ERR_AGAIN: nothing is there yet; ERR_CLOSED; ERR_BAD. */
MUST_USE int attach_receive_ask(int fd);

/*
 * exeatd's side. The view points into out. ERR_AGAIN: nothing is there yet; ERR_CLOSED; ERR_BAD: another version, or no request.
 * Looking at a request leaves it there, and takes none of its descriptors (r->fds is not set): of who may not ask nothing is held. Receiving it
 * takes them, close-on-exec: they are the caller's, on ERR_BAD as well, r->n of them.
 */
MUST_USE int attach_look_at_request(int fd, struct buf *out, struct attach_request *r);
MUST_USE int attach_receive_request(int fd, struct buf *out, struct attach_request *r);
/*
 * Closes the descriptors of a request (patience_prepare has been called). False: some are no sockets and are left open, unless files of
 * theirs may be closed as well: that waits for whoever serves the file system, without an end.
 */
MUST_USE bool attach_close_listeners(const struct attach_request *r, bool files);
/* ERR_LIMIT: it does not fit into a packet; ERR_SYSTEM. */
MUST_USE int attach_send_answer(int fd, const struct attach_answer *a);
/* Appends the report. ERR_AGAIN: nothing is there yet; ERR_CLOSED; ERR_BAD: something else came. */
MUST_USE int attach_receive_report(int fd, struct buf *report);
/* ERR_SYSTEM. */
MUST_USE int attach_send_ask(int fd);

#endif
