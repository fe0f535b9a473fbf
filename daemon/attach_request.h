/*
 * What of a launcher's request can be judged by itself: whose it is, and what its descriptors are.
 */
#ifndef DAEMON_ATTACH_REQUEST_H
#define DAEMON_ATTACH_REQUEST_H

#include "base/attach.h"
#include "policy/bundle.h"

/* Whether rights (bundle_right walks) let this user, or one of the groups, attach the sandbox. */
bool attach_request_permitted(struct view rights, uint32_t uid, const uint32_t *groups,
                              size_t n_groups, struct view sandbox);
/* What is wrong with its listeners, or NULL. */
const char *attach_request_fault(const struct attach_request *r);
/* Whether nothing forces the sandbox to the listeners: one is in our own network (home: base/peer.h). One of Unix says nothing of it. */
bool attach_request_unenforced(const struct attach_request *r, uint64_t home);

#endif
