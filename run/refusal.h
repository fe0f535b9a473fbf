/*
 * Why a system does not let an ordinary user make namespaces, and who can permit it how. Nothing is
 * tried in their place: without them there is no boundary.
 */
#ifndef RUN_REFUSAL_H
#define RUN_REFUSAL_H

/*
 * The sentence for what failed with errno `why`: the rule that is found in force, else the error
 * alone. root: where /proc is looked at ("" but in tests). Static; valid until the next call.
 */
const char *refusal_reason(const char *root, int why);
/* The same for a fresh /proc, which is refused where a container hides parts of its own. */
const char *refusal_proc(int why);
/* The sentence where this process is in a sandbox of `exeat run` itself, else NULL. */
const char *refusal_within(const char *root);

#endif
