/* Packets as audit takes them from producers: what is read becomes members that read back. */
#include "audit/record.h"
#include "audit/line.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct record_facts f;
    struct buf text;
    struct line_member m;
    if (record_read(view_of(data, size), &f) != 0)
        return 0;
    buf_init(&text, LINE_MAX_BYTES);
    buf_put_str(&text, "{\"v\":1");
    record_json(&f, &text);
    buf_put_u8(&text, '}');
    assert(buf_ok(&text)); /* whatever a packet holds, its line fits */
    struct line l = line_of(buf_view(&text));
    unsigned members = 0;
    while (line_next(&l, &m))
        members++;
    assert(!l.bad && members == 2 + (unsigned)__builtin_popcountll(f.present));
    buf_free(&text);
    return 0;
}
