#include "cli/run_settings.h"

#include "base/file.h"
#include "daemon/config.h"
#include "policy/errors.h"
#include "run/say.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { SETTINGS_MAX = 1 << 20, SHOWN_MAX = 64 << 10 };

/* What follows it begins a line of its own. */
int run_settings_read(const char *file, struct buf *out) {
    if (!*file)
        return 0;
    int fd = file_open(file, O_RDONLY, 0);
    if (fd < 0)
        return run_say("--settings %s: %s", file, file_why());
    int result = file_read(fd, SETTINGS_MAX, out);
    if (result != 0)
        return run_say("--settings %s: %s", file, err_why(result));
    if (buf_len(out) > 0 && !view_ends(buf_view(out), VIEW("\n")))
        buf_put_str(out, "\n");
    return 0;
}

static unsigned count_lines(struct view text) {
    unsigned n = 0;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    return n;
}

/* Behind the user's lines are those that repeat what he has said, or are in a block that he has not ended. */
static void tell(const char *file, struct view text, size_t own,
                 const struct policy_errors *errors) {
    unsigned lines = count_lines(view_head(text, own));
    struct buf shown;
    buf_init(&shown, SHOWN_MAX);
    for (size_t i = 0; i < errors->n; i++)
        if (errors->at[i].at.line <= lines)
            errors_show(&errors->at[i], text, &shown);
        else
            buf_printf(&shown,
                       "%s: %s; behind its lines come `state`, `policy`, `control`, `attach` and "
                       "`uids`, which `exeat run` writes itself\n",
                       file, errors->at[i].text);
    fprintf(stderr, "%.*s", VIEW_ARG(buf_view(&shown)));
    buf_free(&shown);
}

int run_settings_check(const char *file, struct view text, size_t own) {
    static struct policy_errors errors;
    struct config config;
    int result = config_read(text, file, &config, &errors);
    if (result == 0) {
        config_free(&config);
        return 0;
    }
    tell(file, text, own, &errors);
    return run_say("--settings %s: %s", file,
                   result == ERR_BAD ? "these lines cannot be used" : err_text(result));
}

void run_settings_quote(const char *file, const char *configuration, struct view said,
                        struct buf *out) {
    struct view name = view_str(configuration);
    for (size_t at; *file && (at = view_search(said, name)) < said.n;) {
        buf_put(out, view_head(said, at));
        buf_put_str(out, file);
        said = view_skip(said, at + name.n);
    }
    buf_put(out, said);
}
