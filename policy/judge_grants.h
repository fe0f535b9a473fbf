/*
 * What judge.c asks of grants: by which of those with limits an operation may be asked for, and whether
 * somebody only watches a service. Internal to policy/.
 */
#ifndef POLICY_JUDGE_GRANTS_H
#define POLICY_JUDGE_GRANTS_H

#include "policy/judge.h"

/*
 * Of an allowed operation: fills in v->grants. False, and v refuses, when in some layer all grants of it have
 * ended.
 */
bool judge_grants(const struct who *who, uint64_t now, struct verdict *v);

/* A service that is observed at this host. */
struct observed {
    const struct service *service;
    const struct operation *operation; /* that matches and is not granted, or NULL */
    const struct credential *credential;
    struct position at; /* of the grant */
};
/* False: nobody observes there, or it cannot be told which credential goes with the request. */
bool judge_observed(const struct policy *p, const struct host_facts *host,
                    const struct search *search, struct observed *out);
/* Fills in v->grants with those that observe the service. */
void judge_observing_grants(const struct who *who, uint64_t now, struct verdict *v);

#endif
