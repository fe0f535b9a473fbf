/* Records from a hostile peer: one that is read, written again, gives the same bytes. */
#include "http/message.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_same(struct view read, const struct buf *written) {
    if (!buf_ok(written) || !view_equal(read, buf_view(written)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct request_head request;
    static struct answer_head answer;
    struct view v = view_of(data, size);
    struct buf out;
    buf_init(&out, 4 << 20);
    struct reader r = reader_of(v);
    if (request_read(&r, &request) == 0) {
        request_write(&request, &out);
        check_same(view_head(v, size - r.rest.n), &out);
    }
    buf_reset(&out);
    r = reader_of(v);
    if (answer_read(&r, &answer) == 0) {
        answer_write(&answer, &out);
        check_same(view_head(v, size - r.rest.n), &out);
    }
    buf_free(&out);
    return 0;
}
