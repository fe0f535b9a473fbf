/* Lines: a target, then fields. What is found stays inside of its limits and can be read. */
#include "policy/provenance.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned sum(struct view v) {
    unsigned total = 0;
    for (size_t i = 0; i < v.n; i++)
        total += v.p[i];
    return total;
}

static void check(const struct materials *m) {
    volatile unsigned total = 0;
    assert(m->n <= MATERIALS_MAX && m->used <= sizeof m->storage);
    for (size_t i = 0; i < m->n; i++) {
        const struct material *at = &m->at[i];
        total += sum(at->name) + sum(at->scheme) + sum(at->token);
        assert(at->place <= PLACE_FORM);
        if (at->place == PLACE_BASIC_USER)
            assert(at->token.n > 0 && view_find(at->token, ':') == at->token.n);
        if (at->place == PLACE_HEADER && !at->malformed)
            assert(at->token.n > 0 && view_find(at->token, ' ') == at->token.n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct credential_place places[] = {
        {.place = PLACE_HEADER, .name = {(const uint8_t *)"x-team", 6}},
        {.place = PLACE_QUERY, .name = {(const uint8_t *)"q", 1}},
        {.place = PLACE_PATH, .name = {(const uint8_t *)"2", 1}, .segment = 2}};
    static const struct watched watched = {{&places[0], &places[1], &places[2]}, 3};
    struct materials *m = calloc(1, sizeof *m);
    struct view rest = view_of(data, size), line = view_cut(&rest, '\n');
    struct target t;
    struct buf canonical;
    buf_init(&canonical, size + 1);
    if (target_parse(line, SEGMENTS_MAX, &canonical, &t, NULL) == 0)
        provenance_target(&t, &watched, m);
    while (rest.n > 0) {
        line = view_cut(&rest, '\n');
        struct view name = view_cut(&line, ':');
        (void)provenance_body_name(name);
        provenance_field(name, view_trim(line), &watched, m);
    }
    check(m);
    buf_free(&canonical);
    free(m);
    return 0;
}
