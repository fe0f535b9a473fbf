/* `exeat reasons`: the codes of answers, records and verdicts. */
#include "base/json.h"
#include "cli/command.h"
#include "cli/options.h"
#include "policy/errors.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *shown_as(const struct reason_info *info) {
    const char *shown = reason_info(info->shown)->code;
    return strcmp(shown, info->code) != 0 ? shown : NULL;
}

static void put_json(const struct reason_info *info, struct buf *out) {
    buf_put_str(out, buf_len(out) > 1 ? ",{" : "{");
    json_put_text(out, "code", view_str(info->code));
    if (info->status)
        json_put_number(out, "status", info->status);
    if (shown_as(info))
        json_put_text(out, "told_as", view_str(shown_as(info)));
    json_put_text(out, "means", view_str(info->title));
    json_put_text(out, "then", view_str(info->hint));
    buf_put_str(out, "}");
}

static void put_row(const struct reason_info *info, struct buf *out) {
    buf_printf(out, "| `%s` | ", info->code);
    if (info->status)
        buf_printf(out, "%u", info->status);
    buf_printf(out, " | %s", info->title);
    if (shown_as(info))
        buf_printf(out, "; the sandbox is told `%s`", shown_as(info));
    buf_printf(out, " | %s |\n", info->hint);
}

static void put_plain(const struct reason_info *info, struct buf *out) {
    buf_put_str(out, info->code);
    if (info->status)
        buf_printf(out, " (%u)", info->status);
    if (shown_as(info))
        buf_printf(out, ", told as %s", shown_as(info));
    buf_printf(out, "\n    %s.\n    %s\n", info->title, info->hint);
}

int cli_fail_reason(int code, const char *word) {
    struct guess g = guess_of(view_str(word));
    for (enum reason r = 0; r < REASON_COUNT; r++)
        guess_offer(&g, view_str(reason_info(r)->code));
    return cli_fail(code, "there is no reason '%s'%s `exeat reasons` lists them", word,
                    *guess_text(&g) ? guess_text(&g) : ":");
}

int command_reasons(const struct cli *cli, int argc, char **argv) {
    static const struct option_spec no_options[] = {{NULL, NULL, NULL}};
    const char *wanted;
    struct buf out;
    int n, code = options_read_some(argc, argv, no_options, &wanted, 0, 1, &n);
    enum reason first = 0, end = REASON_COUNT;
    if (code != EXIT_YES)
        return code;
    if (n == 1 && reason_find(view_str(wanted), &first) != 0)
        return cli_fail_reason(EXIT_NO, wanted);
    if (n == 1)
        end = first + 1;
    bool plain = n == 1 || isatty(STDOUT_FILENO);
    buf_init(&out, 64 << 10);
    if (cli->json)
        buf_put_str(&out, "[");
    else if (!plain)
        buf_put_str(&out, "| code | status | what it means | what to do |\n|---|---|---|---|\n");
    for (enum reason r = first; r < end; r++)
        (cli->json ? put_json : plain ? put_plain : put_row)(reason_info(r), &out);
    if (cli->json)
        buf_put_str(&out, "]\n");
    cli_print(stdout, &out);
    buf_free(&out);
    return EXIT_YES;
}
