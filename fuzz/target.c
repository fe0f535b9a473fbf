/* A canonical target is its own canonical form, and its segments have one reading. */
#include "policy/target.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_segments(const struct target *t) {
    struct view rest = t->path, segment;
    size_t n = 0;
    for (; target_segment(&rest, &segment); n++) {
        assert(segment.n > 0 && view_find(segment, '/') == segment.n);
        assert(!view_equal(segment, VIEW(".")) && !view_equal(segment, VIEW("..")));
        assert(!view_starts(segment, VIEW(".;")) && !view_starts(segment, VIEW("..;")));
    }
    assert(n == t->n_segments);
}

/* What a server would read decodes to nothing that has another meaning. */
static void check_decoded(struct view path) {
    struct buf decoded;
    buf_init(&decoded, path.n + 1);
    assert(percent_decode(path, false, &decoded) == 0);
    struct view v = buf_view(&decoded);
    assert(view_find(v, 0) == v.n && view_find(v, '\\') == v.n && view_find(v, '\n') == v.n);
    assert(view_search(v, VIEW("/../")) == v.n && view_search(v, VIEW("//")) == v.n);
    buf_free(&decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct buf once, twice;
    struct target t, u;
    struct view rest, name, value;
    buf_init(&once, size + 1);
    buf_init(&twice, size + 2);
    if (target_parse(view_of(data, size), SEGMENTS_MAX, &once, &t, NULL) == 0) {
        assert(target_parse(buf_view(&once), SEGMENTS_MAX, &twice, &u, NULL) == 0);
        assert(view_equal(buf_view(&once), buf_view(&twice)));
        assert(t.n_segments == u.n_segments && t.has_query == u.has_query);
        check_segments(&t);
        check_decoded(t.path);
        for (rest = t.query; target_pair(&rest, &name, &value);)
            assert(view_find(name, '&') == name.n && view_find(name, '=') == name.n);
    }
    buf_free(&once);
    buf_free(&twice);
    return 0;
}
