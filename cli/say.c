#include "cli/command.h"

#include "base/error.h"

#include <errno.h>
#include <stdarg.h>

int cli_fail(int code, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    fputs("exeat: ", stderr);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    return code;
}

int cli_unread(const char *path, int result) {
    bool denied = result == ERR_SYSTEM && (errno == EACCES || errno == EPERM);
    return cli_fail(denied ? EXIT_PERMISSION : EXIT_UNSEEN, "%s: %s", path, err_why(result));
}

void cli_print(FILE *to, const struct buf *b) {
    if (buf_len(b) > 0)
        fwrite(buf_view(b).p, 1, buf_len(b), to);
}
