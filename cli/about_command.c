/* `exeat limits` and `exeat version`. */
#include "base/json.h"
#include "base/libraries.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct option_spec no_options[] = {{NULL, NULL, NULL}};

/* Bytes as they may be written in the configuration. */
static void write_value(const struct limit_info *i, uint64_t value, char *out, size_t size) {
    static const char letters[] = {'T', 'G', 'M', 'K'};
    bool bytes = strcmp(i->unit, "bytes") == 0;
    for (unsigned u = 0; bytes && value != 0 && u < sizeof letters; u++) {
        unsigned shift = 40 - 10 * u;
        if (value >> shift << shift != value)
            continue;
        snprintf(out, size, "%" PRIu64 "%c", value >> shift, letters[u]);
        return;
    }
    const char *unit = bytes ? "" : i->unit;
    size_t n = strlen(unit);
    /* One of them: "1 file". */
    if (value == 1 && n > 2 && unit[n - 1] == 's')
        n--;
    snprintf(out, size, "%" PRIu64 "%s%.*s", value, n ? " " : "", (int)n, unit);
}

static int print_limits_json(void) {
    struct buf out;
    buf_init(&out, 64 << 10);
    buf_put_str(&out, "[");
    for (int i = 0; i < LIMIT_COUNT; i++) {
        const struct limit_info *info = limit_info((enum limit)i);
        buf_put_str(&out, i ? ",{" : "{");
        json_put_text(&out, "name", view_str(info->name));
        json_put_text(&out, "unit", view_str(info->unit));
        json_put_number(&out, "default", info->normal);
        json_put_number(&out, "least", info->least);
        json_put_number(&out, "most", info->most);
        json_put_text(&out, "limits", view_str(info->what));
        json_put_text(&out, "then", view_str(info->then));
        buf_put_str(&out, "}");
    }
    buf_put_str(&out, "]\n");
    printf("%.*s", VIEW_ARG(buf_view(&out)));
    buf_free(&out);
    return EXIT_YES;
}

static void print_limits_plain(void) {
    for (int i = 0; i < LIMIT_COUNT; i++) {
        const struct limit_info *info = limit_info((enum limit)i);
        char normal[32], least[32], most[32];
        write_value(info, info->normal, normal, sizeof normal);
        write_value(info, info->least, least, sizeof least);
        write_value(info, info->most, most, sizeof most);
        printf("%s %s (%s to %s)\n    limits %s\n    then: %s\n", info->name, normal, least, most,
               info->what, info->then);
    }
}

int command_limits(const struct cli *cli, int argc, char **argv) {
    int code = options_read(argc, argv, no_options, NULL, 0);
    if (code != EXIT_YES)
        return code;
    if (cli->json)
        return print_limits_json();
    if (isatty(STDOUT_FILENO)) {
        print_limits_plain();
        return EXIT_YES;
    }
    puts("| limit | default | range | what is limited | what happens then |");
    puts("|---|---|---|---|---|");
    for (int i = 0; i < LIMIT_COUNT; i++) {
        const struct limit_info *info = limit_info((enum limit)i);
        char normal[32], least[32], most[32];
        write_value(info, info->normal, normal, sizeof normal);
        write_value(info, info->least, least, sizeof least);
        write_value(info, info->most, most, sizeof most);
        printf("| `%s` | %s | %s to %s | %s | %s |\n", info->name, normal, least, most, info->what,
               info->then);
    }
    return EXIT_YES;
}

int command_version(const struct cli *cli, int argc, char **argv) {
    struct buf out;
    bool deps = false;
    const struct option_spec specs[] = {{"--deps", NULL, &deps}, {NULL, NULL, NULL}};
    int code = options_read(argc, argv, specs, NULL, 0);
    if (code != EXIT_YES)
        return code;
    buf_init(&out, 8192);
    if (cli->json) {
        buf_put_str(&out, "{");
        json_put_text(&out, "exeat", view_str(EXEAT_VERSION));
    } else {
        buf_printf(&out, "exeat %s\n", EXEAT_VERSION);
    }
    for (size_t i = 0; deps && i < libraries_count(); i++) {
        struct library lib = library_at(i);
        if (cli->json)
            json_put_text(&out, lib.name, view_str(lib.version));
        else
            buf_printf(&out, "%-14s %s%s%s\n", lib.name, lib.version, lib.warning ? "  " : "",
                       lib.warning ? lib.warning : "");
    }
    if (cli->json)
        buf_put_str(&out, "}\n");
    printf("%.*s", VIEW_ARG(buf_view(&out)));
    buf_free(&out);
    return EXIT_YES;
}
