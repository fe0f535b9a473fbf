/*
 * DNS in HTTP (RFC 8484 and its like, DN-06). Whoever may ask a host for any name has a resolver, and
 * with it a way out by names that no rule allows. So only a line that names such messages takes them.
 * Internal to policy/.
 */
#ifndef POLICY_DNS_MESSAGE_H
#define POLICY_DNS_MESSAGE_H

#include "policy/condition.h"
#include "policy/policy.h"

/* Whether the request carries a question, or wants an answer: by its types, or by the message or the type in its query. */
bool dns_message_is_in(const struct request_facts *f);
/* Whether a line with these conditions is for them: `content-type`, `header accept`, `query dns` or `query ct` says so. */
bool dns_message_is_named(const struct condition *conditions);

#endif
