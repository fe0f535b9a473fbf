#include "cli/policy_told.h"

#include "base/json.h"
#include "cli/policy_files.h"

#include <errno.h>
#include <string.h>

void policy_told_place(struct buf *out, const struct position *at) {
    if (at->file)
        json_put_text(out, "file", view_str(at->file));
    if (at->line != 0) {
        json_put_number(out, "line", at->line);
        json_put_number(out, "column", at->column);
    }
}

void policy_told_grants(const struct verdict *v, struct buf *out) {
    struct buf terms;
    buf_init(&terms, 512);
    buf_put_str(out, ",\"grants\":[");
    for (size_t i = 0; i < v->n_grants; i++) {
        struct position at = grant_position(v->grants[i]);
        buf_reset(&terms);
        grant_put_terms(v->grants[i], &terms);
        buf_put_str(out, i ? ",{" : "{");
        json_put_number(out, "layer", grant_layer(v->grants[i]));
        json_put_text(out, "terms", buf_view(&terms));
        if (grant_note(v->grants[i]).n)
            json_put_text(out, "note", grant_note(v->grants[i]));
        policy_told_place(out, &at);
        buf_put_u8(out, '}');
    }
    buf_put_u8(out, ']');
    buf_free(&terms);
}

void policy_told_errors(struct buf *out, const char *member, const struct policy_errors *errors) {
    buf_printf(out, ",\"%s\":[", member);
    for (size_t i = 0; i < errors->n; i++) {
        buf_put_str(out, i ? ",{" : "{");
        policy_told_place(out, &errors->at[i].at);
        json_put_text(out, "text", view_str(errors->at[i].text));
        buf_put_u8(out, '}');
    }
    buf_put_u8(out, ']');
}

static void put_errors_json(const struct policy_errors *errors, struct buf *out) {
    buf_put_str(out, "{\"valid\":false");
    json_put_number(out, "total", errors->total);
    policy_told_errors(out, "errors", errors);
    buf_put_str(out, "}\n");
}

int policy_told_refuse(const struct cli *cli, const struct policy_errors *errors, struct view text,
                       const char *path) {
    struct buf out;
    buf_init(&out, POLICY_OUTPUT_MAX);
    if (cli->json)
        put_errors_json(errors, &out);
    else
        policy_file_errors(errors, text, path, &out);
    cli_print(cli->json ? stdout : stderr, &out);
    buf_free(&out);
    return EXIT_INVALID;
}

int policy_told_read(const char *path, struct buf *out) {
    int err = policy_file_read(path, out);
    return err != 0 ? cli_unread(path, err == ERR_MISSING ? ERR_SYSTEM : err) : EXIT_YES;
}

static int load(const struct cli *cli, const char *path, bool failing,
                struct policy_included *included, struct policy **out) {
    static struct policy_errors errors;
    struct buf text;
    buf_init(&text, POLICY_FILE_MAX);
    int code = policy_told_read(path, &text);
    if (code == EXIT_YES) {
        int err = failing ? policy_file_load_failing(buf_view(&text), path, out, &errors)
                  : included
                      ? policy_file_load_naming(buf_view(&text), path, included, out, &errors)
                      : policy_file_load(buf_view(&text), path, NULL, out, &errors);
        if (err == ERR_BAD)
            code = policy_told_refuse(cli, &errors, buf_view(&text), path);
        else if (err != 0)
            code = cli_fail(EXIT_INVALID, "%s: %s", path, err_text(err));
        else if (errors.total > 0)
            cli_fail(EXIT_YES,
                     "note: this policy does not load: expectations fail (%zu, the first at "
                     "%s:%u:%u); `exeat policy check %s` tells which",
                     errors.total, errors.at[0].at.file, errors.at[0].at.line,
                     errors.at[0].at.column, path);
    }
    buf_free(&text);
    return code;
}

int policy_told_load(const struct cli *cli, const char *path, struct policy **out) {
    return load(cli, path, false, NULL, out);
}

int policy_told_load_naming(const struct cli *cli, const char *path,
                            struct policy_included *included, struct policy **out) {
    return load(cli, path, false, included, out);
}

int policy_told_load_failing(const struct cli *cli, const char *path, struct policy **out) {
    return load(cli, path, true, NULL, out);
}
