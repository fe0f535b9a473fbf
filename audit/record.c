#include "audit/record.h"

#include <assert.h>
#include <endian.h>

enum {
    VERSION = 2,
    HEADER_MAX =
        128,         /* version, number, epoch, origin and length, which the writer puts in front */
    TEXT_HEADER = 5, /* field and length */
    NUMBER_SIZE = 9,
    LEAST_TEXT = 3, /* what is left of a value in the worst case: "..." */
};

#define MEMBER(text)                                                                               \
    { (const uint8_t *)(text), sizeof(text) - 1 }
#define TEXT(name)                                                                                 \
    { name, MEMBER(",\"" name "\":\""), false }
#define NUMBER(name)                                                                               \
    { name, MEMBER(",\"" name "\":"), true }

static const struct {
    const char *name;
    struct view member; /* what stands in a line between the value before and its own */
    bool number;
} table[FIELD_COUNT] = {
    [FIELD_ID] = TEXT("id"),
    [FIELD_EVENT] = TEXT("event"),
    [FIELD_VERDICT] = TEXT("verdict"),
    [FIELD_REASON] = TEXT("reason"),
    [FIELD_DETAIL] = TEXT("detail"),
    [FIELD_RULE] = TEXT("rule"),
    [FIELD_SANDBOX] = TEXT("sandbox"),
    [FIELD_SERVICE] = TEXT("service"),
    [FIELD_OPERATION] = TEXT("operation"),
    [FIELD_DOOR] = TEXT("door"),
    [FIELD_CLIENT] = TEXT("client"),
    [FIELD_METHOD] = TEXT("method"),
    [FIELD_SCHEME] = TEXT("scheme"),
    [FIELD_HOST] = TEXT("host"),
    [FIELD_PATH] = TEXT("path"),
    [FIELD_QUERY] = TEXT("query"),
    [FIELD_SNI] = TEXT("sni"),
    [FIELD_ADDRESS] = TEXT("address"),
    [FIELD_ALIASES] = TEXT("aliases"),
    [FIELD_COUNTRY] = TEXT("country"),
    [FIELD_ASN] = TEXT("asn"),
    [FIELD_CREDENTIAL] = TEXT("credential"),
    [FIELD_PLACE] = TEXT("place"),
    [FIELD_MATERIAL] = TEXT("material"),
    [FIELD_PRINCIPAL] = TEXT("principal"),
    [FIELD_PRODUCER] = TEXT("producer"),
    [FIELD_GRANT] = TEXT("grant"),
    [FIELD_OBSERVED] = TEXT("observed"),
    [FIELD_CLIENT_CERTIFICATE] = TEXT("client_certificate"),
    [FIELD_TARGET_SHA256] = TEXT("target_sha256"),
    [FIELD_MEANT] = TEXT("meant"),
    [FIELD_UNICODE] = TEXT("unicode"),
    [FIELD_PORT] = NUMBER("port"),
    [FIELD_GENERATION] = NUMBER("generation"),
    [FIELD_LANE] = NUMBER("lane"),
    [FIELD_STATUS] = NUMBER("status"),
    [FIELD_BYTES_OUT] = NUMBER("bytes_out"),
    [FIELD_BYTES_IN] = NUMBER("bytes_in"),
    [FIELD_MASKED] = NUMBER("masked"),
    [FIELD_US_JUDGE] = NUMBER("us_judge"),
    [FIELD_US_CONNECT] = NUMBER("us_connect"),
    [FIELD_US_FIRST] = NUMBER("us_first"),
    [FIELD_US_TOTAL] = NUMBER("us_total"),
    [FIELD_VERSION] = NUMBER("version"),
    [FIELD_UNENFORCED] = NUMBER("unenforced"),
    [FIELD_FIRST] = NUMBER("first"),
    [FIELD_LAST] = NUMBER("last"),
    [FIELD_BYTES] = NUMBER("bytes"),
    [FIELD_TARGET_BYTES] = NUMBER("target_bytes"),
};

/* The largest reserve and one cut text for each field fit, whatever the values are. */
static_assert(HEADER_MAX + FIELD_COUNT * (TEXT_HEADER + LEAST_TEXT + NUMBER_SIZE) < RECORD_SIZE / 4,
              "every field must fit");
static_assert(FIELD_COUNT <= 64, "one bit for each field");
static_assert(1 + 8 + 8 + 4 + RECORD_ORIGIN_MAX + 4 <= HEADER_MAX, "the header must fit");

const char *record_field_name(enum record_field f) {
    return table[f].name;
}

bool record_field_is_number(enum record_field f) {
    return table[f].number;
}

struct view record_field_member(enum record_field f) {
    return table[f].member;
}

const char *record_kind_name(enum record_kind k) {
    static const char *const names[] = {"decision", "outcome", "event"};
    return names[k];
}

/* ---- building ---- */

/* What a field may need when it is cut to nothing but its mark. */
static size_t least_size(enum record_field f) {
    return table[f].number ? NUMBER_SIZE : TEXT_HEADER + LEAST_TEXT;
}

static size_t least_size_of_all(void) {
    static size_t sum;
    if (sum == 0)
        for (unsigned f = 0; f < FIELD_COUNT; f++)
            sum += least_size(f);
    return sum;
}

void record_begin(struct record *r, enum record_kind kind, uint64_t wall, uint64_t mono) {
    if (r->bytes.max == 0)
        buf_init(&r->bytes, RECORD_SIZE - HEADER_MAX);
    buf_reset(&r->bytes);
    r->present = 0;
    r->reserve = least_size_of_all();
    buf_put_u8(&r->bytes, (uint8_t)kind);
    buf_put_u64(&r->bytes, wall);
    buf_put_u64(&r->bytes, mono);
}

/* False when the field is there already. */
static bool claim(struct record *r, enum record_field f) {
    uint64_t bit = UINT64_C(1) << f;
    if (r->present & bit)
        return false;
    r->present |= bit;
    r->reserve -= least_size(f);
    return true;
}

/* As buf_put_u8 and buf_put_block, but room is asked for once: of a record's bytes nearly all are such. */
static void put_text(struct buf *out, enum record_field f, struct view value) {
    uint8_t *to = buf_reserve(out, TEXT_HEADER + value.n);
    if (!to)
        return;
    uint32_t n = htobe32((uint32_t)value.n);
    *to++ = (uint8_t)f;
    memcpy(to, &n, sizeof n);
    view_copy(value, to + sizeof n);
    buf_commit(out, TEXT_HEADER + value.n);
}

bool record_text(struct record *r, enum record_field f, struct view value) {
    assert(!table[f].number);
    if (view_is_empty(value) || !claim(r, f))
        return true;
    size_t kept = r->reserve + TEXT_HEADER;
    size_t most = buf_room(&r->bytes) > kept ? buf_room(&r->bytes) - kept : 0;
    if (most > RECORD_TEXT_MAX)
        most = RECORD_TEXT_MAX;
    if (value.n <= most) {
        put_text(&r->bytes, f, value);
        return true;
    }
    size_t head = most > LEAST_TEXT ? most - LEAST_TEXT : 0;
    buf_put_u8(&r->bytes, (uint8_t)f);
    buf_put_u32(&r->bytes, (uint32_t)(head + LEAST_TEXT));
    buf_put(&r->bytes, view_head(value, head));
    buf_put(&r->bytes, VIEW("..."));
    return false;
}

void record_str(struct record *r, enum record_field f, const char *value) {
    record_text(r, f, view_str(value));
}

void record_number(struct record *r, enum record_field f, uint64_t value) {
    assert(table[f].number);
    if (!claim(r, f))
        return;
    buf_put_u8(&r->bytes, (uint8_t)f);
    buf_put_u64(&r->bytes, value);
}

void record_free(struct record *r) {
    buf_free(&r->bytes);
}

/* ---- reading ---- */

static int read_field(struct reader *r, struct record_facts *out) {
    unsigned f = read_u8(r);
    if (r->bad || f >= FIELD_COUNT || (out->present & (UINT64_C(1) << f)))
        return ERR_BAD;
    out->present |= UINT64_C(1) << f;
    if (table[f].number) {
        out->number_of[f] = read_u64(r);
        return r->bad ? ERR_BAD : 0;
    }
    out->text[f] = read_block(r, RECORD_TEXT_MAX);
    return r->bad || view_is_empty(out->text[f]) ? ERR_BAD : 0;
}

static bool origin_is_good(struct view origin) {
    for (size_t i = 0; i < origin.n; i++)
        if (origin.p[i] < 0x20 || origin.p[i] > 0x7e)
            return false;
    return origin.n > 0;
}

int record_packet_read(struct view packet, struct record_packet *out) {
    struct reader *r = &out->rest;
    *r = reader_of(packet);
    if (packet.n > RECORD_PACKET_SIZE || read_u8(r) != VERSION)
        return ERR_BAD;
    out->first = out->number = read_u64(r);
    out->epoch = read_u64(r);
    out->origin = read_block(r, RECORD_ORIGIN_MAX);
    return r->bad || !origin_is_good(out->origin) ? ERR_BAD : 0;
}

int record_next(struct record_packet *p, struct record_facts *out) {
    if (read_done(&p->rest))
        return ERR_MISSING;
    struct reader r = reader_of(read_block(&p->rest, RECORD_SIZE - HEADER_MAX));
    *out = (struct record_facts){.number = p->number, .epoch = p->epoch, .origin = p->origin};
    unsigned kind = read_u8(&r);
    out->wall = read_u64(&r);
    out->mono = read_u64(&r);
    if (p->rest.bad || r.bad || kind > RECORD_EVENT || p->number == 0 ||
        p->number - p->first == RECORDS_A_PACKET)
        return ERR_BAD;
    p->number++;
    out->kind = (enum record_kind)kind;
    while (!view_is_empty(r.rest)) {
        int result = read_field(&r, out);
        if (result != 0)
            return result;
    }
    return 0;
}

int record_read(struct view packet, struct record_facts *out) {
    struct record_packet p;
    if (record_packet_read(packet, &p) != 0 || record_next(&p, out) != 0 || !read_done(&p.rest))
        return ERR_BAD;
    return 0;
}
