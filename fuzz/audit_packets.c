/*
 * Hostile producers: packets of four of them into one log, which is opened anew now and then. Whatever they hold, the log
 * verifies, also by the head that was signed last, and no producer writes in another's name.
 *
 * Input: steps, each a byte of enum step and what it takes.
 */
#include "audit/ledger.h"
#include "audit/sign_key.h"
#include "audit/verify.h"
#include "base/log.h"
#include "fuzz/folder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX = 8192, STEPS_MAX = 48, PRODUCERS = 4 };
#define WALL UINT64_C(1790000000000000000)

enum step {
    STEP_PACKET, /* u8 producer, u16 n: these bytes */
    STEP_RECORDS, /* u8 producer, u8 epoch, u8 beyond what is expected, u16 n: records behind a header that is good */
    STEP_FLUSH,
    STEP_SIGN,
    STEP_OPEN, /* the log was closed, perhaps without what was not flushed */
    STEP_COUNT
};

static const char *const origins[PRODUCERS] = {"egress 1", "egress 2", "dialer", "broker"};

static struct ledger *ledger;
static uint64_t next[PRODUCERS]; /* the number that is expected */
static bool bad[PRODUCERS];      /* taken from no more */

static void open_ledger(void) {
    static const struct ledger_settings settings = {.file_bytes = 4096};
    REQUIRE(ledger_open(folder, WALL, 1, &ledger) == 0);
    ledger_set(ledger, &settings);
}

static void take(size_t i, struct view packet) {
    struct record_packet k;
    size_t producer;
    if (bad[i])
        return;
    if (!ledger_has_room(ledger))
        REQUIRE(ledger_flush(ledger, WALL) == 0);
    REQUIRE(ledger_producer(ledger, origins[i], &producer) == 0);
    bad[i] = ledger_take(ledger, producer, packet) != 0;
    if (!bad[i] && record_packet_read(packet, &k) == 0) {
        REQUIRE(view_equal(k.origin, view_str(origins[i])));
        next[i] = k.number;
    }
}

static void take_records(struct reader *r) {
    size_t i = read_u8(r) % PRODUCERS;
    uint8_t epoch = read_u8(r), beyond = read_u8(r);
    struct view records = read_bytes(r, read_u16(r));
    struct buf b;
    buf_init(&b, RECORD_PACKET_SIZE);
    buf_put_u8(&b, 2);
    buf_put_u64(&b, next[i] + 1 + beyond);
    buf_put_u64(&b, epoch);
    buf_put_block(&b, view_str(origins[i]));
    buf_put(&b, records);
    take(i, buf_view(&b));
    buf_free(&b);
}

static void take_step(struct reader *r) {
    size_t i;
    switch (read_u8(r) % STEP_COUNT) {
    case STEP_PACKET:
        i = read_u8(r) % PRODUCERS;
        take(i, read_bytes(r, read_u16(r)));
        break;
    case STEP_RECORDS:
        take_records(r);
        break;
    case STEP_FLUSH:
        REQUIRE(ledger_flush(ledger, WALL) == 0);
        break;
    case STEP_SIGN:
        REQUIRE(ledger_sign(ledger, WALL) == 0);
        break;
    default:
        ledger_free(ledger);
        open_ledger();
    }
}

static void check(void) {
    struct verify_report report;
    struct chain_keys *keys = NULL;
    REQUIRE(ledger_flush(ledger, WALL) == 0 && ledger_sign(ledger, WALL) == 0);
    const struct chain_head *head = ledger_head(ledger);
    REQUIRE(head && sign_key_public(folder, "sign.pub", &keys) == 0);
    REQUIRE(verify_log(folder, keys, head, &report) == 0 && report.good);
    REQUIRE(report.last >= head->seq && report.unfinished == 0);
    chain_keys_free(keys);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (folder < 0) {
        log_open("fuzz", LOG_FATAL);
        folder_make();
    }
    if (size == 0 || size > INPUT_MAX)
        return 0;
    folder_empty();
    memset(next, 0, sizeof next);
    memset(bad, 0, sizeof bad);
    open_ledger();
    struct reader r = reader_of(view_of(data, size));
    for (int i = 0; i < STEPS_MAX && !r.bad && r.rest.n > 0; i++)
        take_step(&r);
    check();
    ledger_free(ledger);
    return 0;
}
