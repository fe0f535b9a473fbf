#include "base/limits.h"

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

static const struct limit_info table[LIMIT_COUNT] = {
    [LIMIT_CONNECTIONS] =
        {"connections", "", 2048, 1, 100000, "open client connections of a lane, shared out",
         "the one longest without tunnel and request is closed; 503; accepting pauses"},
    [LIMIT_FIRST_BYTE] = {"first-byte-time", "s", 30, 1, 3600, "from accept to the first byte",
                          "closed"},
    [LIMIT_HEAD_TIME] = {"head-time", "s", 20, 1, 3600, "for a whole request head", "408, closed"},
    [LIMIT_HANDSHAKE_TIME] =
        {"handshake-time", "s", 20, 1, 3600,
         "from CONNECT to a finished TLS handshake, or the first request in clear",
         "closed, with a record"},
    [LIMIT_IDLE_TIME] =
        {"idle-time", "s", 120, 1, 86400,
         "until the next request on a kept-alive connection, or the first one after the "
         "TLS handshake",
         "closed"},
    [LIMIT_BODY_STALL] = {"body-stall-time", "s", 120, 1, 86400,
                          "without a byte while a body or an event stream is due, either side",
                          "closed; 408 or 504 where a head can still be sent"},
    [LIMIT_REQUEST_TIME] = {"request-time", "s", 86400, 1, 604800, "for a whole exchange",
                            "closed; 408 or 504 where a head can still be sent"},
    [LIMIT_HEAD_BYTES] = {"head-bytes", "bytes", 64 * KIB, 1 * KIB, 256 * KIB,
                          "a request or answer head: start line and all fields",
                          "431 (request), 502 (answer), closed"},
    [LIMIT_HEAD_FIELDS] = {"head-fields", "", 128, 8, 256, "fields in a head",
                           "431 (request), 502 (answer), closed"},
    [LIMIT_TARGET_BYTES] = {"target-bytes", "bytes", 16 * KIB, 256, 64 * KIB, "a request target",
                            "414, closed"},
    [LIMIT_CHUNK_OVERHEAD] =
        {"chunk-overhead", "bytes", 16 * KIB, 1 * KIB, 1 * MIB,
         "chunk extensions of one body, and chunk lines beyond 16 for each KiB of data",
         "400 (request), 502 (answer), closed"},
    [LIMIT_TRAILER_BYTES] = {"trailer-bytes", "bytes", 8 * KIB, 64, 64 * KIB,
                             "trailers of one body", "431 (request), 502 (answer), closed"},
    [LIMIT_HELLO_BYTES] = {"hello-bytes", "bytes", 32 * KIB, 2 * KIB, 64 * KIB, "a TLS ClientHello",
                           "alert, closed"},
    [LIMIT_PATH_SEGMENTS] = {"path-segments", "", 256, 8, 1024, "segments of a path", "414"},
    [LIMIT_REQUEST_BODY] = {"request-body", "bytes", 0, 0, 16 * TIB, "a request body (0: no limit)",
                            "413; a chunked body breaks off when it passes the limit"},
    [LIMIT_ANSWER_BODY] = {"answer-body", "bytes", 0, 0, 16 * TIB, "an answer body (0: no limit)",
                           "502, or cut when it passes the limit"},
    [LIMIT_WINDOW] = {"window", "bytes", 256 * KIB, 32 * KIB, 1 * MIB,
                      "bytes of one direction of an exchange on their way between proxy and egress",
                      "the sender waits"},
    [LIMIT_EXCHANGES] = {"exchanges", "", 1024, 1, 65536,
                         "requests in progress of a lane, shared out", "503"},
    [LIMIT_LEAVES] = {"leaves", "", 1000, 8, 100000, "leaf certificates kept by a lane",
                      "the one unused for longest is dropped"},
    [LIMIT_NEW_NAMES] = {"new-names", "", 600, 1, 1000000,
                         "leaf certificates minted for a lane a minute",
                         "alert internal_error, closed; the record says `rate`"},
    [LIMIT_LEAF_DAYS] = {"leaf-days", "days", 7, 1, 90, "validity of a leaf certificate",
                         "minted anew before it ends"},
    [LIMIT_AUTH_FAILURES] = {"auth-failures", "", 60, 1, 100000,
                             "refused proxy credentials of a lane a minute", "429"},
    [LIMIT_DNS_TIME] = {"dns-time", "s", 5, 1, 60, "to resolve a name", "502"},
    [LIMIT_DNS_QUERIES] = {"dns-queries", "", 6000, 1, 1000000,
                           "questions to the DNS door of a lane a minute", "answered REFUSED"},
    [LIMIT_DNS_NEW_NAMES] = {"dns-new-names", "", 600, 1, 1000000,
                             "names that the DNS door of a lane gives a first address a minute",
                             "answered REFUSED"},
    [LIMIT_DNS_NAMES] = {"dns-names", "", 4096, 16, 65536,
                         "names whose addresses the DNS door of a lane keeps",
                         "the one not asked for longest is dropped"},
    [LIMIT_CONNECT_TIME] = {"connect-time", "s", 10, 1, 120,
                            "to connect, over all addresses of the name", "504"},
    [LIMIT_UPSTREAM_HANDSHAKE] = {"upstream-handshake-time", "s", 10, 1, 120,
                                  "for TLS with the upstream", "504"},
    [LIMIT_ANSWER_TIME] = {"answer-time", "s", 600, 1, 86400,
                           "from the end of the request to the answer's head", "504"},
    [LIMIT_POOL_IDLE] = {"pool-idle-time", "s", 60, 1, 3600,
                         "an unused upstream connection is kept", "closed"},
    [LIMIT_POOL_SIZE] = {"pool-size", "", 256, 0, 65536,
                         "unused upstream connections of a lane (0: none is kept)",
                         "the oldest is closed"},
    [LIMIT_UPSTREAMS] = {"upstreams", "", 256, 1, 65536,
                         "open upstream connections of a lane to one authority, shared out",
                         "503, at once"},
    [LIMIT_CERTIFICATES] = {"chain-certificates", "", 10, 1, 100,
                            "certificates in an upstream's chain", "502"},
    [LIMIT_ATTACHED] = {"attached", "", 256, 1, 4096, "sandboxes attached at once",
                        "the next one is refused"},
    [LIMIT_ATTACHED_USER] = {"attached-per-user", "", 128, 1, 4096,
                             "sandboxes of one user attached at once", "the next one is refused"},
    [LIMIT_SPLICE_BYTES] = {"splice-bytes", "bytes", 1 * GIB, 64 * KIB, 16 * TIB,
                            "a spliced connection, each way, where its service says no less",
                            "cut"},
    [LIMIT_SPLICE_IDLE] = {"splice-idle-time", "s", 300, 1, 86400,
                           "without a byte either way of a spliced connection", "cut"},
    [LIMIT_SPLICE_TIME] = {"splice-time", "s", 3600, 1, 604800, "for a whole spliced connection",
                           "cut"},
    [LIMIT_LEASE_TIME] = {"lease-time", "s", 60, 1, 3600, "a secret is lent to a lane",
                          "lent anew"},
    [LIMIT_GUARD_TIME] = {"guard-time", "s", 900, 60, 86400,
                          "answers are scanned for a secret after its last use", "forgotten"},
    [LIMIT_GUARD_RUN] = {"guard-run", "bytes", 16, 12, 64,
                         "shortest run of a secret's bytes that is masked", "-"},
    [LIMIT_GUARD_FRAGMENTS] =
        {"guard-fragments", "", 3, 0, 64,
         "different parts of one credential's secrets found in a sandbox's answers within "
         "guard-time",
         "the answer is cut; 403 for all of the sandbox's requests for guard-time"},
    [LIMIT_SECRETS] = {"secrets", "", 64, 1, 512,
                       "different secrets lent to a sandbox within guard-time", "503"},
    [LIMIT_ASK_TIME] = {"ask-time", "s", 5, 1, 60,
                        "until an unanswered question to ca, broker or audit is a refusal", "503"},
    [LIMIT_INSPECT_BYTES] = {"inspect-bytes", "bytes", 64 * KIB, 4 * KIB, 256 * KIB,
                             "one decoded piece of a compressed answer",
                             "decoding goes on in further pieces"},
    [LIMIT_INSPECT_BODY] = {"inspect-body", "bytes", 8 * MIB, 4 * KIB, 64 * MIB,
                            "a request body that conditions of the policy ask for",
                            "such conditions are undecided, and refuse"},
    [LIMIT_INSPECT_RATIO] = {"inspect-ratio", "", 2000, 10, 100000,
                             "decoded to encoded bytes of a whole body", "502, or cut"},
    [LIMIT_REFUSALS] = {"refusals", "", 500, 1, 1000000,
                        "refusals of a sandbox a second that get a record each, over a minute",
                        "429; an event a second says how many there were"},
    [LIMIT_AUDIT_FILE] = {"audit-file", "bytes", 64 * MIB, 64 * KIB, 64 * GIB, "the audit log",
                          "rotated"},
    [LIMIT_AUDIT_KEEP] = {"audit-keep", "", 0, 0, 100000, "rotated audit files kept (0: all)",
                          "the oldest is removed"},
    [LIMIT_HEAD_INTERVAL] = {"head-interval", "s", 10, 1, 86400,
                             "between signed heads of the audit chain", "signed"},
};

const struct limit_info *limit_info(enum limit which) {
    return &table[which];
}

int limit_find(struct view name, enum limit *out) {
    for (int i = 0; i < LIMIT_COUNT; i++) {
        if (!view_equal(name, view_str(table[i].name)))
            continue;
        *out = (enum limit)i;
        return 0;
    }
    return ERR_MISSING;
}

void limits_default(struct limits *l) {
    for (int i = 0; i < LIMIT_COUNT; i++)
        l->v[i] = table[i].normal;
}

void limits_write(const struct limits *l, struct buf *out) {
    buf_put_u16(out, LIMIT_COUNT);
    for (int i = 0; i < LIMIT_COUNT; i++)
        buf_put_u64(out, l->v[i]);
}

int limits_read(struct reader *r, struct limits *out) {
    if (read_u16(r) != LIMIT_COUNT)
        return ERR_BAD;
    for (int i = 0; i < LIMIT_COUNT; i++) {
        out->v[i] = read_u64(r);
        if (out->v[i] < table[i].least || out->v[i] > table[i].most)
            return ERR_BAD;
    }
    return r->bad ? ERR_BAD : 0;
}
