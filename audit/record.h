/*
 * Audit records: what every role but proxy tells audit, one record a packet of
 * a SOCK_SEQPACKET socket whose reading end the parent keeps open as well: once
 * the kernel holds a packet it outlives its writer and a killed audit.
 *
 * A decision is written before bytes leave and has an outcome record with the
 * same id when the exchange ends; a refusal is one record and complete. Fields
 * are rows of one table: adding one is one line here and one in record.c.
 */
#ifndef AUDIT_RECORD_H
#define AUDIT_RECORD_H

#include "base/bytes.h"

enum { RECORD_SIZE = 16384, RECORD_TEXT_MAX = 2048 /* longer values are cut and end in "..." */ };

enum record_kind {
    RECORD_DECISION, /* allow or deny of one request, tunnel or lease */
    RECORD_OUTCOME,  /* how an allowed one ended */
    RECORD_EVENT,    /* start, stop, reload, vault and policy changes, lost roles */
};

enum record_field {
    /* text */
    FIELD_ID,      /* record id that the sandbox sees too */
    FIELD_EVENT,   /* RECORD_EVENT: "start", "reload", "secret_added", "role_lost", ... */
    FIELD_VERDICT, /* "allow", "deny" */
    FIELD_REASON,  /* code of policy/reason.h, the precise one */
    FIELD_DETAIL,  /* a sentence for the operator */
    FIELD_RULE,    /* file:line:col */
    FIELD_SANDBOX,
    FIELD_SERVICE,
    FIELD_OPERATION,
    FIELD_DOOR,   /* "connect", "http", "tls" */
    FIELD_CLIENT, /* peer of the listener */
    FIELD_METHOD,
    FIELD_SCHEME,
    FIELD_HOST,  /* canonical, or what was sent when there is no canonical form */
    FIELD_PATH,  /* canonical, placeholders and foreign credentials replaced */
    FIELD_QUERY, /* parameter names only */
    FIELD_SNI,
    FIELD_ADDRESS, /* the address dialled, or refused */
    FIELD_ALIASES, /* CNAME chain */
    FIELD_COUNTRY,
    FIELD_ASN,
    FIELD_CREDENTIAL, /* name, never a value */
    FIELD_PLACE,      /* where credential-looking material stood */
    FIELD_MATERIAL,   /* class and salted fingerprint of such material: "bearer:3f9c2a1b" */
    FIELD_PRINCIPAL,  /* operator's uid for events */
    /* numbers */
    FIELD_PORT,
    FIELD_GENERATION,
    FIELD_LANE,
    FIELD_STATUS,    /* as sent to the sandbox */
    FIELD_BYTES_OUT, /* body bytes towards the upstream */
    FIELD_BYTES_IN,  /* body bytes towards the sandbox */
    FIELD_MASKED,    /* runs masked by the guard */
    FIELD_US_JUDGE,
    FIELD_US_CONNECT,
    FIELD_US_FIRST,
    FIELD_US_TOTAL,   /* microseconds */
    FIELD_VERSION,    /* of a secret */
    FIELD_UNENFORCED, /* 1 when nothing forces the sandbox through exeat */
    FIELD_COUNT
};

/* A record being built. Adding the same field twice keeps the first. */
struct record {
    struct buf bytes;
    uint64_t present;
};

/* Buffer of RECORD_SIZE at most; wall and mono are nanoseconds. */
void record_begin(struct record *r, enum record_kind kind, uint64_t wall, uint64_t mono);
/* Empty values are left out; bytes may be anything: escaping is audit's work. Longer than RECORD_TEXT_MAX is cut. */
void record_text(struct record *r, enum record_field f, struct view value);
void record_str(struct record *r, enum record_field f, const char *value);
void record_number(struct record *r, enum record_field f, uint64_t value);
void record_free(struct record *r);

/* ---- the producer's end ---- */

struct audit_writer;

/*
 * Takes over fd, the writing end. Numbers records from 1 in a stream that is
 * named by `origin` ("egress 3") and an epoch that differs at each start. NULL when out of memory.
 */
struct audit_writer *audit_writer_new(int fd, const char *origin, uint64_t epoch);
void audit_writer_free(struct audit_writer *w);
/*
 * Hands r to the kernel. 0 when the kernel holds it; ERR_AGAIN, ERR_SYSTEM or
 * ERR_CLOSED when it does not: then nothing may leave (audit_unavailable). The
 * number is used up only on success. r may be reused.
 */
MUST_USE int audit_write(struct audit_writer *w, struct record *r);
/* A fresh record id, unique over restarts: "e3-65a1b2c3-000017". out holds 40 bytes. */
void audit_id(struct audit_writer *w, char out[40]);
/* The writing end, to poll for the one byte audit sends back: 'D' disk or chain trouble (refuse), 'U' usable again. */
int audit_writer_fd(const struct audit_writer *w);

/* ---- audit's and the reader's end ---- */

/* One packet as read: header, then fields in any order. Views point into the packet. */
struct record_facts {
    enum record_kind kind;
    uint64_t number, epoch, wall, mono;
    struct view origin;
    struct view text[FIELD_COUNT];
    uint64_t number_of[FIELD_COUNT];
    uint64_t present; /* bit per field */
};
MUST_USE int record_read(struct view packet, struct record_facts *out);
/* Name of a field in JSON ("bytes_out"); whether it is a number. */
const char *record_field_name(enum record_field f);
bool record_field_is_number(enum record_field f);
/*
 * Appends the members of a JSON object without braces, fields in table order:
 * control characters, quotes, DEL, non-ASCII and bidi marks escaped as \u00NN per byte that is not
 * UTF-8, or \uXXXX for valid UTF-8.
 */
void record_json(const struct record_facts *r, struct buf *out);

#endif
