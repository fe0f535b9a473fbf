#include "base/file.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/policy_files.h"
#include "cli/policy_told.h"
#include "policy/layout.h"
#include "policy/lint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- fmt ---- */

/* The whole new text beside the file, and then in its place. */
static int replace_file(const char *path, struct view text) {
    char *beside = NULL;
    struct stat st;
    if (asprintf(&beside, "%s.XXXXXX", path) < 0)
        return cli_fail(EXIT_NO, "%s: %s", path, err_text(ERR_MEMORY));
    int fd = mkstemp(beside);
    bool good = fd >= 0 && stat(path, &st) == 0 && fchmod(fd, st.st_mode & 07777) == 0 &&
                file_write(fd, text) == 0 && fsync(fd) == 0 && rename(beside, path) == 0;
    int why = errno;
    if (!good && fd >= 0)
        unlink(beside);
    if (fd >= 0)
        close(fd);
    free(beside);
    return good ? EXIT_YES : cli_fail(EXIT_NO, "%s: %s", path, strerror(why));
}

/* The form that is wanted: that of the file, where none is said. */
static int convert(const char *path, struct view text, const char *to, struct buf *out,
                   struct policy_errors *errors) {
    bool from_json = json_form_is(text), to_json = to ? strcmp(to, "json") == 0 : from_json;
    struct buf plain;
    errors_reset(errors);
    buf_init(&plain, POLICY_FILE_MAX);
    int err = 0;
    if (from_json)
        err = json_form_read(text, path, &plain, errors);
    else
        buf_put(&plain, text);
    if (err == 0)
        err = (to_json ? json_form_write : policy_format)(buf_view(&plain), path, out, errors);
    if (err == ERR_BAD && from_json && buf_len(&plain) > 0)
        json_form_place(text, path, errors);
    buf_free(&plain);
    return err;
}

static int format(const struct cli *cli, const char *path, struct view text, const char *to,
                  struct buf *out) {
    static struct policy_errors errors;
    int err = convert(path, text, to, out, &errors);
    if (err == ERR_BAD)
        return policy_told_refuse(cli, &errors, text, path);
    return err != 0 ? cli_fail(EXIT_INVALID, "%s: %s", path, err_text(err)) : EXIT_YES;
}

static int give_formatted(const char *path, struct view text, const struct buf *out, bool check,
                          bool write) {
    bool same = view_equal(text, buf_view(out));
    if (check)
        return same
                   ? EXIT_YES
                   : cli_fail(EXIT_NO, "%s is not formatted; `exeat policy fmt --write %s` does it",
                              path, path);
    if (write)
        return same ? EXIT_YES : replace_file(path, buf_view(out));
    cli_print(stdout, out);
    return EXIT_YES;
}

int command_policy_fmt(const struct cli *cli, int argc, char **argv) {
    bool check = false, write = false;
    const char *path, *to = NULL;
    const struct option_spec options[] = {{"--check", NULL, &check},
                                          {"--write", NULL, &write},
                                          {"--to", &to, NULL},
                                          {NULL, NULL, NULL}};
    struct buf text, out;
    int code = options_read(argc, argv, options, &path, 1);
    if (code != EXIT_YES)
        return code;
    if (to && strcmp(to, "text") != 0 && strcmp(to, "json") != 0)
        return cli_fail(EXIT_USAGE, "--to takes text or json");
    buf_init(&text, POLICY_FILE_MAX);
    buf_init(&out, POLICY_OUTPUT_MAX);
    code = policy_told_read(path, &text);
    if (code == EXIT_YES)
        code = format(cli, path, buf_view(&text), to, &out);
    if (code == EXIT_YES)
        code = give_formatted(path, buf_view(&text), &out, check, write);
    buf_free(&text);
    buf_free(&out);
    return code;
}

/* ---- lint ---- */

struct findings {
    bool json;
    size_t n;
    struct buf out;
};

static void put_finding(void *ctx, const struct lint_finding *f) {
    struct findings *all = ctx;
    if (!all->json) {
        buf_printf(&all->out, "%s:%u:%u: %s: %s\n    %s\n", f->at.file, f->at.line, f->at.column,
                   f->code, f->text, f->remedy);
    } else {
        buf_put_str(&all->out, all->n ? ",{" : "{");
        json_put_text(&all->out, "code", view_str(f->code));
        policy_told_place(&all->out, &f->at);
        json_put_text(&all->out, "text", view_str(f->text));
        json_put_text(&all->out, "remedy", view_str(f->remedy));
        buf_put_u8(&all->out, '}');
    }
    all->n++;
}

int command_policy_lint(const struct cli *cli, int argc, char **argv) {
    static const struct option_spec none[] = {{NULL, NULL, NULL}};
    struct findings all = {.json = cli->json};
    struct policy *p;
    const char *path;
    int code = options_read(argc, argv, none, &path, 1);
    if (code == EXIT_YES)
        code = policy_told_load(cli, path, &p);
    if (code != EXIT_YES)
        return code;
    buf_init(&all.out, POLICY_OUTPUT_MAX);
    if (cli->json)
        buf_put_str(&all.out, "{\"findings\":[");
    policy_lint(p, (uint64_t)time(NULL), put_finding, &all);
    if (cli->json)
        buf_put_str(&all.out, "]}\n");
    else if (all.n == 0)
        buf_printf(&all.out, "%s: nothing suspicious\n", path);
    cli_print(stdout, &all.out);
    buf_free(&all.out);
    policy_free(p);
    return all.n == 0 ? EXIT_YES : EXIT_NO;
}

/* ---- test ---- */

static void put_failures_json(const struct policy_errors *errors, size_t n, struct buf *out) {
    buf_put_str(out, "{");
    json_put_number(out, "expectations", n);
    json_put_number(out, "failed", errors->total);
    policy_told_errors(out, "failures", errors);
    buf_put_str(out, "}\n");
}

static int test(const struct cli *cli, const struct policy *p, const char *path, struct view text) {
    static struct policy_errors errors;
    struct buf out;
    size_t n;
    int err = policy_test(p, text, path, &n, &errors);
    if (err == ERR_BAD)
        return policy_told_refuse(cli, &errors, text, path);
    if (err != 0)
        return cli_fail(EXIT_INVALID, "%s: %s", path, err_text(err));
    if (n == 0)
        return cli_fail(EXIT_UNSEEN, "%s: there is no expectation in it, so that nothing was tried",
                        path);
    buf_init(&out, POLICY_OUTPUT_MAX);
    if (cli->json) {
        put_failures_json(&errors, n, &out);
    } else {
        for (size_t i = 0; i < errors.n; i++)
            errors_show(&errors.at[i], text, &out);
        buf_printf(&out, "%s: %zu expectation%s, %zu failed\n", path, n, n == 1 ? "" : "s",
                   errors.total);
    }
    cli_print(stdout, &out);
    buf_free(&out);
    return errors.total == 0 ? EXIT_YES : EXIT_NO;
}

int command_policy_test(const struct cli *cli, int argc, char **argv) {
    const char *policy = NULL, *path;
    const struct option_spec options[] = {{"--policy", &policy, NULL}, {NULL, NULL, NULL}};
    struct policy *p;
    struct buf text;
    int code = options_read(argc, argv, options, &path, 1);
    if (code == EXIT_YES && !policy)
        code = cli_fail(EXIT_USAGE, "--policy is needed");
    if (code == EXIT_YES)
        code = policy_told_load(cli, policy, &p);
    if (code != EXIT_YES)
        return code;
    buf_init(&text, POLICY_TEXT_MAX + 4096);
    code = policy_told_read(path, &text);
    if (code == EXIT_YES)
        code = test(cli, p, path, buf_view(&text));
    buf_free(&text);
    policy_free(p);
    return code;
}
