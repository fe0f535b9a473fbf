/*
 * Audit records: what every role but proxy tells audit, in packets of a
 * SOCK_SEQPACKET socket whose reading end the parent keeps open as well: once
 * the kernel holds a packet it outlives its writer and a killed audit.
 *
 *   u8 version (2), u64 number of the first record, u64 epoch, block origin, then records, each a block:
 *   u8 kind, u64 wall, u64 mono, then fields: u8 field, block text or u64 number   (big-endian)
 *
 * A decision is written before bytes leave and has an outcome record with the
 * same id when the exchange ends; a refusal is one record and complete. Fields
 * are rows of one table: adding one is one line here and one in record.c.
 */
#ifndef AUDIT_RECORD_H
#define AUDIT_RECORD_H

#include "base/bytes.h"

enum {
    RECORD_SIZE = 16384, /* a record with what stands in front of it */
    RECORD_PACKET_SIZE = 65536,
    RECORDS_A_PACKET = 64,
    RECORD_TEXT_MAX = 2048, /* longer values are cut and end in "..." */
    RECORD_ORIGIN_MAX = 63, /* visible ASCII and SP */
};

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
    FIELD_DOOR,   /* "connect", "http", "tls", "spliced", "socks", "transparent", "dns" */
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
    FIELD_PRODUCER,   /* audit's own events: the origin they are about */
    FIELD_GRANT,      /* file:line:col of the grants with limits that it is sent by */
    FIELD_OBSERVED,   /* `mode observe`: the reason for which an allowed request would be refused */
    FIELD_CLIENT_CERTIFICATE, /* name and SHA-256 of what was shown to the upstream; "none" when it asked in vain */
    FIELD_TARGET_SHA256, /* of path and query as they are sent, where they do not stand here whole */
    FIELD_MEANT,         /* the address and port that a transparent client connected to */
    FIELD_UNICODE,       /* FIELD_HOST with the letters that its A-labels stand for */
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
    FIELD_FIRST,      /* audit's own events: first and last of a range of numbers */
    FIELD_LAST,
    FIELD_BYTES,        /* cut from a torn file */
    FIELD_TARGET_BYTES, /* how long path and query are, where they do not stand here whole */
    FIELD_COUNT
};

/* A record being built: zeroed before its first record_begin, then reused as it is. */
struct record {
    struct buf bytes;
    uint64_t present;
    size_t reserve; /* bytes that the fields not yet given may need */
};

/* Starts a new record; wall and mono are nanoseconds. Adding the same field twice keeps the first. */
void record_begin(struct record *r, enum record_kind kind, uint64_t wall, uint64_t mono);
/*
 * Empty values are left out; bytes may be anything: escaping is audit's work. Longer than
 * RECORD_TEXT_MAX is cut, and shorter when the record is nearly full: a value that was given is
 * never left out, so that no sandbox can make a record that does not fit. False when it was cut.
 */
bool record_text(struct record *r, enum record_field f, struct view value);
void record_str(struct record *r, enum record_field f, const char *value);
void record_number(struct record *r, enum record_field f, uint64_t value);
void record_free(struct record *r);

/* ---- the producer's end ---- */

/*
 * What audit sends back, one packet each: u8 'D' (disk or chain trouble) or 'U' (usable); or, when
 * audit is durable, u64 epoch and u64 number, up to which the writer's records are on the disk.
 */
struct audit_writer;

/*
 * Takes over fd, the writing end, made non-blocking. Numbers records from 1 in a stream that is
 * named by `origin` ("egress 3") and an epoch that differs at each start and grows: clock_wall() of
 * the start. NULL when out of memory or origin is longer than RECORD_ORIGIN_MAX (fd is closed).
 */
struct audit_writer *audit_writer_new(int fd, const char *origin, uint64_t epoch);
void audit_writer_free(struct audit_writer *w);
/*
 * The parent handed a writing end again, because audit was restarted: takes over fd instead of the
 * one before and goes on with the same epoch and numbers, so that what audit had in hand when it
 * died shows as a gap. (A new writer would begin a new epoch and hide it.) ERR_SYSTEM; fd is closed then.
 */
MUST_USE int audit_writer_renew(struct audit_writer *w, int fd);
/*
 * Hands r to the kernel. 0 when the kernel holds it; ERR_AGAIN, ERR_MEMORY, ERR_SYSTEM or
 * ERR_CLOSED when it does not: then nothing may leave (audit_unavailable). The
 * number is used up only on success. r may be reused.
 */
MUST_USE int audit_write(struct audit_writer *w, struct record *r);
/*
 * Keeps r until audit_flush, so that the records of a loop turn are one packet; number: the one it
 * will have. ERR_AGAIN: as much as is allowed is kept already, and r is not; ERR_MEMORY. r may be reused.
 * A writer that gathers does not use audit_write.
 */
MUST_USE int audit_gather(struct audit_writer *w, struct record *r, uint64_t *number);
/*
 * Hands what is gathered to the kernel. 0 when it holds all of it. Otherwise the rest stays, in
 * order, also over audit_writer_renew: ERR_AGAIN: when the descriptor is writable again;
 * ERR_SYSTEM, ERR_CLOSED: not over this descriptor.
 */
MUST_USE int audit_flush(struct audit_writer *w);
/* Something is gathered that the kernel does not hold. */
bool audit_writer_is_behind(const struct audit_writer *w);
/* Number of the newest record that the kernel holds; 0: none yet. */
uint64_t audit_writer_number(const struct audit_writer *w);
/* A fresh record id, unique over restarts: "e3-18d0f0a1b2c-17". out holds 40 bytes. */
void audit_id(struct audit_writer *w, char out[40]);

/* The writing end, to wait for what audit sends back (EV_READ, then audit_writer_read until ERR_AGAIN). */
int audit_writer_fd(const struct audit_writer *w);

enum audit_notice_kind {
    AUDIT_DOWN,    /* disk or chain trouble: refuse */
    AUDIT_UP,      /* usable again */
    AUDIT_DURABLE, /* all records up to `number` are on the disk (only when audit is durable) */
};

struct audit_notice {
    enum audit_notice_kind kind;
    uint64_t number;
};

/* The next notice. ERR_AGAIN: none now; ERR_CLOSED; ERR_BAD: not from audit (refuse from now on). */
MUST_USE int audit_writer_read(struct audit_writer *w, struct audit_notice *out);
/*
 * False from AUDIT_DOWN until AUDIT_UP, as far as they were read, and for good after ERR_CLOSED or
 * ERR_BAD: allow nothing then. Records may and should still be written (refusals, outcomes): the
 * kernel keeps them until audit reads on.
 */
bool audit_writer_usable(const struct audit_writer *w);
/* Newest number that AUDIT_DURABLE named. */
uint64_t audit_writer_durable(const struct audit_writer *w);

/* ---- audit's and the reader's end ---- */

/* One packet as read: its header, and the records that are still to be read. Views point into it. */
struct record_packet {
    uint64_t first, number, epoch; /* numbers: of the first record, of the next */
    struct view origin;
    struct reader rest;
};

/* A record: fields in any order. */
struct record_facts {
    enum record_kind kind;
    uint64_t number, epoch, wall, mono;
    struct view origin;
    struct view text[FIELD_COUNT];
    uint64_t number_of[FIELD_COUNT];
    uint64_t present; /* bit per field */
};
/* The header. ERR_BAD. */
MUST_USE int record_packet_read(struct view packet, struct record_packet *out);
/*
 * The next record. ERR_MISSING: there is none left; ERR_BAD for anything that the functions above do
 * not write: unknown or repeated fields, empty or too long texts, too many records.
 */
MUST_USE int record_next(struct record_packet *p, struct record_facts *out);
/* The one record of a packet that holds no other; otherwise ERR_BAD. */
MUST_USE int record_read(struct view packet, struct record_facts *out);
/* Name of a field in JSON ("bytes_out"); whether it is a number. */
const char *record_field_name(enum record_field f);
bool record_field_is_number(enum record_field f);
/* What stands before its value in JSON: `,"bytes_out":` or `,"host":"`. Static. */
struct view record_field_member(enum record_field f);
/* "decision", "outcome", "event". Static. */
const char *record_kind_name(enum record_kind k);
/*
 * Appends `,"kind":"..."` and the fields in table order as members of a JSON object, without braces.
 */
void record_json(const struct record_facts *r, struct buf *out);
/*
 * Appends v as the inside of a JSON string. Visible ASCII but '"' and '\', and SP, stand as they are;
 * everything else is \uXXXX: a character of valid UTF-8 by its code (two surrogates beyond the first
 * plane), any other byte as \u00NN. So a quote inside a line only ever ends a string. out must have
 * room for six bytes for each of v.
 */
void record_escape(struct view v, struct buf *out);

#endif
