/*
 * What inspect may answer and egress may ask: any bytes are refused, or are a well-formed whole
 * that is written again as the same bytes.
 *
 * Input: how many pointers were asked for, question or answer; then the message.
 */
#include "egress/facts_message.h"
#include "fuzz/require.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum body_fault fault_of(const char *why) {
    int f = BODY_FAULTLESS;
    while (body_fault_text((enum body_fault)f) != why)
        f++;
    return (enum body_fault)f;
}

static void try_answer(struct view message, size_t n_pointers) {
    struct facts *facts;
    struct buf b;
    if (facts_read(message, n_pointers, &facts) != 0)
        return;
    const struct body_facts *c = facts_content(facts);
    for (size_t i = 0; i < c->n_values; i++)
        REQUIRE(c->values[i].pointer < n_pointers);
    REQUIRE(!c->unclear || (c->why && c->n_values == 0));
    buf_init(&b, FACTS_MAX);
    facts_write(c, fault_of(c->why), &b);
    REQUIRE(buf_ok(&b) && buf_len(&b) == message.n);
    buf_free(&b);
    facts_free(facts);
}

static void try_question(struct view message) {
    struct facts_ask ask;
    struct body_read *r;
    struct buf b;
    if (facts_ask_read(message, &ask) != 0)
        return;
    buf_init(&b, FACTS_ASK_MAX);
    facts_ask_write(ask.source, &ask.wants, &b);
    REQUIRE(view_equal(buf_view(&b), message));
    buf_free(&b);
    if (body_read_new(ask.source, &ask.wants, &r) == 0)
        body_read_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2)
        return 0;
    struct view message = view_of(data + 2, size - 2);
    if (data[1] & 1)
        try_question(message);
    else
        try_answer(message, data[0] % (JSON_PATHS_MAX + 1u));
    return 0;
}
