/*
 * What sandboxes asked for and were refused for want of a rule, out of decisions of the audit trail: what
 * `exeat policy suggest` makes rules of, or notes where none can be made.
 */
#ifndef CLI_WISHES_H
#define CLI_WISHES_H

#include "cli/decision.h"
#include "policy/arena.h"

/* What is added to a policy is called so, with a number behind it. */
#define WISH_NAME "suggested-"

enum { WISH_NAME_SIZE = sizeof WISH_NAME + 20 };

struct wish {
    struct authority authority; /* of a name: port 0 */
    bool tls;
    struct view sandbox, method, path; /* path empty: there was no request yet */
    struct view address;               /* where a name was found that is not public; else empty */
    char name
        [WISH_NAME_SIZE]; /* of the operation that it made in a service of the policy, or empty */
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
    size_t crowded_out;        /* refusals for which there was no room */
    size_t left_out;           /* that no rule can be made of */
    bool failed;               /* out of memory */
};

/* room: bytes of text for rules. */
void wishes_init(struct wishes *w, size_t room);
void wishes_free(struct wishes *w);
/* One line of a trail; a struct wishes as ctx, for decision_read_logs. */
void wishes_line(void *ctx, struct view line);
/* Takes the requests that are left there and are for an address that is not public out of w->requests, into w->closed. */
void wishes_close(struct wishes *w);
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
