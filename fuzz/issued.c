/*
 * What was issued to a sandbox, as JSON, made into its environment: in whatever language it is written, no value ends its line
 * or its quotes.
 */
#include "cli/environment.h"
#include "cli/environment_format.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 1 << 20 };

static void must(bool x) {
    if (!x)
        abort();
}

/* `export NAME='...'`, in which a quote is '\''. */
static void check_shell(struct view text) {
    while (text.n > 0) {
        struct view line = view_cut(&text, '\n');
        if (line.n == 0 || line.p[0] == '#')
            continue;
        must(view_starts(line, VIEW("export ")));
        line = view_skip(line, view_find(line, '='));
        must(view_starts(line, VIEW("='")));
        line = view_skip(line, 2);
        for (size_t at; (at = view_find(line, '\'')) + 1 < line.n;) {
            must(view_starts(view_skip(line, at), VIEW("'\\''")));
            line = view_skip(line, at + 4);
        }
        must(line.n > 0 && line.p[line.n - 1] == '\'');
    }
}

static void check_lines(struct view text) {
    while (text.n > 0) {
        struct view line = view_cut(&text, '\n');
        must(line.n == 0 || line.p[0] == '#' || view_find(line, '=') < line.n);
    }
}

static void write_all(const struct environment *e) {
    static const char *const formats[] = {"sh",  "fish",   "powershell", "dotenv", "docker",
                                          "k8s", "github", "systemd",    "json"};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct buf out;
        buf_init(&out, TEXT_MAX);
        if (environment_write(e, formats[i], &out) == 0) {
            if (strcmp(formats[i], "sh") == 0)
                check_shell(buf_view(&out));
            if (strcmp(formats[i], "docker") == 0 || strcmp(formats[i], "github") == 0)
                check_lines(buf_view(&out));
        }
        buf_free(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct environment e;
    struct view token;
    struct buf url;
    e = (struct environment){.proxy_host = VIEW("127.0.0.1"),
                             .proxy_port = 3128,
                             .public = VIEW("/var/lib/exeat/it's \"here\"")};
    if (environment_read_issued(view_of(data, size), &e, &token) != 0)
        return 0;
    buf_init(&url, TEXT_MAX);
    e.proxy_url = VIEW("http://127.0.0.1:3128");
    environment_put_url(&e, true, token, &url);
    e.proxy_url = buf_view(&url);
    write_all(&e);
    buf_free(&url);
    return 0;
}
