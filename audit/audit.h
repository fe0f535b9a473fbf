/*
 * audit: the process that appends records, chains and signs them, and nothing else.
 *
 * Run by the parent, one for the whole daemon. It alone holds the audit directory and the key that
 * signs heads. PARENT_PEER brings the reading end of a producer's SOCK_SEQPACKET socket with its
 * role, lane and name; the parent keeps a copy. Packets stay in the kernel until they are written, so
 * that an audit that was killed loses nothing: its successor reads on, and passes over what stands in
 * the log. Packets are those of audit/record.h; a producer that sends another's name, a number twice or
 * bytes that are no record is read no more, and reported: the parent ends it, and its successor writes to
 * another socket.
 *
 * When the disk fails it stops reading ('D' to every producer: refuse), tries again every second,
 * and reads on after success ('U'). No record is dropped. With `audit durable` it tells each producer
 * up to which record all is on the disk, one sync for all that came in a turn.
 *
 * Never: opens a file outside its directory, reads what sandboxes or upstreams send, changes or
 * removes a record (whole old files only, when `audit-keep` says so).
 */
#ifndef AUDIT_AUDIT_H
#define AUDIT_AUDIT_H

#include "base/role.h"

int audit_main(const struct role_args *args);
/* What audit_main does once its rights are narrowed; dir is its directory, open and locked. For tests. */
int audit_serve(const struct role_args *args, int dir);

#endif
