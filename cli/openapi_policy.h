/*
 * A policy out of an OpenAPI description: one service, whose operations have the names that the
 * description gives them, tag by tag. What reads is allowed, what writes stands there commented out;
 * each has an expectation.
 *
 * A template is `{name}`, or `{name:int}` where the description says integer; an `x-multi-segment` at the end
 * is `**`; a segment that is only partly a template is `*`. Text of the description gets into comments as visible
 * ASCII, into names as letters, digits, '-', '_' and '.', and into paths only if they are patterns.
 */
#ifndef CLI_OPENAPI_POLICY_H
#define CLI_OPENAPI_POLICY_H

#include "cli/openapi.h"

/* name: of the service and of its credential; empty: from the host. url: instead of the description's; empty: that one. */
struct openapi_wish {
    struct view name, url;
};

/* ERR_BAD: *why is a static sentence. */
MUST_USE int openapi_policy_write(const struct openapi *a, const struct openapi_wish *wish,
                                  struct buf *out, const char **why);

#endif
