/*
 * What the sandboxes of a lane may take of the lane's limits. On a lane of its own a sandbox may
 * have all of it. On a shared one it gets another only while it holds fewer than are still free:
 * alone it comes to a half, two that take all they can to a third each, and a newcomer always
 * finds as much free as the greediest holds. So nobody fills a limit for the others, and nothing
 * must be configured.
 */
#ifndef EGRESS_SHARE_H
#define EGRESS_SHARE_H

#include "egress/lane.h"

/* Whether who holds `own` of a limit, of which the lane holds `taken` in all, may have another. */
bool share_allows(const struct lane *l, size_t own, size_t taken, uint64_t limit);

/*
 * Counts one more for the sandbox. NULL when it has its share, or memory is short. What was taken is given
 * back with the handle.
 */
struct share *share_take(struct lane *l, const char *sandbox, enum share_of of);
/*
 * n more bytes of those that are held, or on their way to inspect, which are counted like the rest; its
 * share may be passed by what is added last.
 */
bool share_has_room(const struct lane *l, const struct share *s, enum share_of of, uint64_t limit);
void share_add(struct lane *l, struct share *s, enum share_of of, size_t n);
void share_less(struct lane *l, struct share *s, enum share_of of, size_t n);
/* NULL is fine. */
void share_give(struct lane *l, struct share *s, enum share_of of);

#endif
