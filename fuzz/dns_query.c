/* DNS queries of a hostile sandbox: whatever is read is answered within the limit, and the answer holds the question. */
#include "http/dns_query.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct dns_query q;
    enum reply_code code = REPLY_OK;
    const char *why = NULL;
    struct dns_reply r = {.ttl = 1, .n = 1, .addresses = {{6, {0xfd}}}};
    struct buf out;
    int result = dns_query_read(view_of(data, size), &q, &code, &why);
    if (result == ERR_DENIED)
        return 0;
    if ((result == 0) != (why == NULL) || (result == 0 && q.n_question == 0) ||
        strlen(q.name) >= QUERY_NAME_SIZE)
        abort();
    r.code = code;
    r.text = view_of(data, size);
    buf_init(&out, REPLY_BYTES_MAX);
    dns_reply_write(&out, &q, &r);
    if (!buf_ok(&out) || buf_len(&out) < 12)
        abort();
    struct view question = view_skip(buf_view(&out), 12);
    if (q.n_question > 0 && !view_starts(question, view_of(q.question, q.n_question)))
        abort();
    buf_free(&out);
    return 0;
}
