/* Files of an audit log as verification and the operator's reader take them, line by line. */
#include "audit/chain_head.h"
#include "cli/log_table.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(struct chain *c, bool *begun, struct view text) {
    struct chain_line line;
    struct chain_head h;
    if (chain_step(c, *begun, text, &line) == CHAIN_GOOD) {
        *begun = true;
        assert(line.seq == c->seq);
        if (chain_head_of_line(&line, &h) == 0)
            assert(h.seq + 1 == line.seq);
    }
    if (chain_head_read(text, &h) == 0) {
        struct buf again;
        buf_init(&again, HEAD_JSON_MAX);
        chain_head_write(&h, &again);
        assert(view_equal(view_head(buf_view(&again), buf_len(&again) - 1), text) ||
               view_equal_nocase(view_head(buf_view(&again), buf_len(&again) - 1), text));
        buf_free(&again);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static FILE *nowhere;
    struct log_filter all = {0}, some = {.sandbox = "one", .host = "example.com", .denied = true};
    struct view rest = view_of(data, size);
    struct chain c = {0};
    bool begun = false;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    struct log_table *table = log_table_new(&all, false, false, nowhere);
    struct log_table *late = log_table_new(&some, false, true, nowhere);
    struct log_table *lines = log_table_new(&some, true, false, nowhere);
    for (uint64_t now = 0; rest.n > 0; now += 1000000000) {
        struct view text = view_cut(&rest, '\n');
        check_line(&c, &begun, text);
        log_table_line(table, text, now);
        log_table_line(late, text, now);
        log_table_line(lines, text, now);
        log_table_tick(late, now);
    }
    log_table_end(table);
    log_table_free(table);
    log_table_free(late);
    log_table_free(lines);
    return 0;
}
