#include "base/file.h"
#include "cli/command.h"
#include "cli/openapi_policy.h"
#include "cli/options.h"
#include "policy/errors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

static int read_description(const char *path, struct buf *out) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int err = fd < 0 ? ERR_SYSTEM : file_read(fd, OPENAPI_MAX, out);
    return err != 0 ? cli_unread(path, err) : EXIT_YES;
}

static bool looks_like_json(struct view text) {
    return view_starts(view_trim(text), VIEW("{"));
}

/* What is printed loads: anything else would be a mistake of ours, or a description meant to make one. */
static int check(const char *path, struct view text) {
    static struct policy_errors errors;
    struct policy *p;
    int err = policy_load(text, "the policy that comes of it", &p, &errors);
    if (err == 0) {
        policy_free(p);
        return EXIT_YES;
    }
    if (err != ERR_BAD)
        return cli_fail(EXIT_NO, "%s: %s", path, err_text(err));
    struct buf out;
    buf_init(&out, 1 << 20);
    errors_show(&errors.at[0], text, &out);
    cli_print(stderr, &out);
    buf_free(&out);
    return cli_fail(EXIT_NO, "%s: no policy can be made of it", path);
}

static int convert(const char *path, struct view json, const struct openapi_wish *wish) {
    struct openapi api;
    struct buf out;
    char where[256];
    const char *why = where;
    buf_init(&out, POLICY_TEXT_MAX);
    int err = openapi_read(json, &api, where, sizeof where);
    if (err == 0)
        err = openapi_policy_write(&api, wish, &out, &why);
    int code =
        err == 0            ? check(path, buf_view(&out))
        : err == ERR_MEMORY ? cli_fail(EXIT_NO, "%s: %s", path, err_text(err))
        : !looks_like_json(json)
            ? cli_fail(EXIT_NO,
                       "%s: this is no JSON; a description in YAML must be converted before", path)
            : cli_fail(EXIT_NO, "%s: %s", path, why);
    if (code == EXIT_YES)
        cli_print(stdout, &out);
    openapi_free(&api);
    buf_free(&out);
    return code;
}

int command_policy_import(const struct cli *cli, int argc, char **argv) {
    const char *words[2], *name = NULL, *url = NULL;
    const struct option_spec specs[] = {
        {"--service", &name, NULL}, {"--url", &url, NULL}, {NULL, NULL, NULL}};
    (void)cli;
    int code = options_read(argc, argv, specs, words, 2);
    if (code != EXIT_YES)
        return code;
    if (strcmp(words[0], "openapi") != 0)
        return cli_fail(EXIT_USAGE, "there is no importer for '%s', only for openapi", words[0]);
    struct buf json;
    buf_init(&json, OPENAPI_MAX + 4096);
    code = read_description(words[1], &json);
    if (code == EXIT_YES)
        code = convert(words[1], buf_view(&json),
                       &(struct openapi_wish){view_str(name), view_str(url)});
    buf_free(&json);
    return code;
}
