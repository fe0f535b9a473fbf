/*
 * What sandboxes asked for and were refused for want of a rule, out of decisions of the audit trail: what
 * `exeat policy suggest` makes rules of, or notes where none can be made.
 */
#ifndef CLI_WISHES_H
#define CLI_WISHES_H

#include "base/error.h"
#include "cli/decision.h"
#include "policy/arena.h"

/* What is added to a policy is called so, with a number behind it. */
#define WISH_NAME "suggested-"

struct service;

enum { WISH_NAME_SIZE = sizeof WISH_NAME + 20 };

struct wish {
    struct authority authority; /* of a name: port 0 */
    bool tls;
    struct view sandbox, method, path; /* path empty: there was no request yet */
    struct view address;               /* where a name was found that is not public; else empty */
    struct view condition;             /* the place of one that refused it; else empty */
    /* Where its rule goes: */
    const struct service *service; /* of the policy; NULL: one of its own */
    struct view operation;         /* that is only to be granted; empty: a new one */
    char name[WISH_NAME_SIZE];     /* of the new one, or empty: the service is in another file */
    bool out;                      /* its rule does not fit into the policy */
    struct view why;               /* no rule is made of it; empty: nothing to say */
    struct wish *next;
};

struct wish_list {
    struct wish *first, **end;
    size_t room; /* bytes of text that are left for more of them */
};

struct wishes {
    struct decision d;
    struct arena arena;
    struct wish_list requests; /* each once */
    struct wish_list tunnels;  /* refused before there was a request */
    struct wish_list closed;   /* at addresses that are not public: nobody's rule by itself */
    struct wish_list refused;  /* no rule is made of these, for a reason of each */
    size_t crowded_out;        /* refusals for which there was no room */
    size_t left_out;           /* that no rule can be made of */
    bool failed;               /* out of memory */
};

/* room: bytes of text for rules. */
void wishes_init(struct wishes *w, size_t room);
void wishes_free(struct wishes *w);
/* One line of a trail; a struct wishes as ctx, for decision_read_logs. */
void wishes_line(void *ctx, struct view line);
void wish_list_add(struct wish_list *l, struct wish *w);
/* Puts one that is in no list among those of which no rule is made; why is copied. ERR_MEMORY. */
MUST_USE int wish_refuse(struct wishes *all, struct wish *w, struct view why);
/* Whether it is for an address that is not public, as far as is known. */
bool wish_is_closed(const struct wish *w);
/* Comments: what was left out, and what no rule is made of. */
void wishes_put_notes(const struct wishes *w, struct buf *out);

bool wish_same_place(const struct wish *a, const struct wish *b);
/* The same but for the sandbox. */
bool wish_same_rule(const struct wish *a, const struct wish *b);
/* Whether a refusal is for want of a rule or a grant. */
bool wish_is_reason(enum reason why);
/* "https://api.example.com/v1/items" */
void wish_put_url(const struct wish *w, struct buf *out);

#endif
