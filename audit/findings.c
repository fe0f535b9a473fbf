#include "audit/findings.h"

#include "audit/log_file.h"

enum { TOLD_MAX = 512 };

int findings_add(int dir, struct view lines) {
    struct buf text;
    buf_init(&text, 2 * FINDINGS_MAX);
    int result = log_file_read(dir, FINDINGS_FILE, FINDINGS_MAX, &text);
    if (result == 0 || result == ERR_MISSING) {
        buf_put(&text, view_head(lines, FINDINGS_MAX));
        result = log_file_replace(dir, FINDINGS_FILE, 0640, buf_view(&text));
    }
    buf_free(&text);
    return result == ERR_LIMIT ? 0 : result;
}

void findings_tell(int dir, struct buf *out) {
    struct buf text;
    buf_init(&text, 2 * FINDINGS_MAX + 1);
    int result = log_file_read(dir, FINDINGS_FILE, 2 * FINDINGS_MAX, &text);
    if (result == 0) {
        struct view rest = buf_view(&text), first = view_cut(&rest, '\n');
        size_t more = 0;
        while (rest.n > 0)
            more += view_cut(&rest, '\n').n > 0;
        buf_put(out, view_head(first, TOLD_MAX));
        if (more > 0)
            buf_printf(out, " (and %zu more)", more);
    } else if (result != ERR_MISSING) {
        buf_printf(out, FINDINGS_FILE ": %s", err_why(result));
    }
    buf_free(&text);
}
