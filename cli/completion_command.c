/* `exeat completion SHELL`: what a shell completes, from the tables of commands and options. */
#include "cli/command.h"
#include "cli/help.h"
#include "cli/options.h"

#include <stdio.h>
#include <string.h>

enum { OUTPUT_MAX = 256 << 10 };

static bool is_first_of_noun(size_t i) {
    return i == 0 || strcmp(cli_command(i - 1)->noun, cli_command(i)->noun) != 0;
}

/* The option alone of "--like PREFIX". */
static struct view option_name(const char *option) {
    struct view rest = view_str(option), name = view_cut(&rest, ' ');
    return view_head(name, view_find(name, '['));
}

static void put_nouns(struct buf *out) {
    for (size_t i = 0; cli_command(i); i++)
        if (is_first_of_noun(i))
            buf_printf(out, "%s ", cli_command(i)->noun);
    buf_put_str(out, "help");
}

static void put_verbs(const char *noun, struct buf *out) {
    for (size_t i = 0; cli_command(i); i++)
        if (cli_command(i)->verb && strcmp(cli_command(i)->noun, noun) == 0)
            buf_printf(out, "%s ", cli_command(i)->verb);
}

static void put_options(const struct command *c, struct buf *out) {
    const char *option, *what;
    for (size_t i = 0; help_option(c->noun, c->verb, i, &option, &what); i++)
        buf_printf(out, "%.*s ", VIEW_ARG(option_name(option)));
    buf_put_str(out, "--config --json --help");
}

/* Bash and zsh alike: `first` and `second` are the words behind exeat, `at` is which word is completed. */
static void put_cases(struct buf *out) {
    buf_put_str(out, "    if [ \"$at\" = 1 ]; then\n        list='");
    put_nouns(out);
    buf_put_str(out, "'\n    else\n        case \"$first $second\" in\n");
    for (size_t i = 0; cli_command(i); i++) {
        const struct command *c = cli_command(i);
        buf_printf(out, "        '%s %s'%s) list='", c->noun, c->verb ? c->verb : "",
                   c->verb ? "" : "*");
        put_options(c, out);
        buf_put_str(out, "' ;;\n");
    }
    buf_put_str(out,
                "        esac\n    fi\n    if [ \"$at\" = 2 ]; then\n        case $first in\n");
    for (size_t i = 0; cli_command(i); i++) {
        if (!is_first_of_noun(i))
            continue;
        buf_printf(out, "        %s) list=\"", cli_command(i)->noun);
        put_verbs(cli_command(i)->noun, out);
        buf_put_str(out, "$list\" ;;\n");
    }
    buf_put_str(out, "        esac\n    fi\n");
}

static void put_bash(struct buf *out) {
    buf_put_str(out, "_exeat() {\n    local at=$COMP_CWORD first=${COMP_WORDS[1]} "
                     "second=${COMP_WORDS[2]} list=\n");
    put_cases(out);
    buf_put_str(out, "    COMPREPLY=($(compgen -W \"$list\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\n"
                     "complete -o default -F _exeat exeat\n");
}

static void put_zsh(struct buf *out) {
    buf_put_str(out, "#compdef exeat\n_exeat() {\n    local at=$((CURRENT - 1)) first=$words[2] "
                     "second=$words[3] list=\n");
    put_cases(out);
    buf_put_str(out, "    compadd -- ${=list}\n    _files\n}\n"
                     "if [ \"$funcstack[1]\" = _exeat ]; then _exeat \"$@\"; else compdef _exeat "
                     "exeat; fi\n");
}

/* In single quotes. */
static void put_quoted(const char *text, struct buf *out) {
    buf_put_u8(out, '\'');
    for (; *text; text++)
        buf_printf(out, *text == '\'' || *text == '\\' ? "\\%c" : "%c", *text);
    buf_put_u8(out, '\'');
}

static void put_fish_options(const struct command *c, struct buf *out) {
    const char *option, *what;
    for (size_t i = 0; help_option(c->noun, c->verb, i, &option, &what); i++) {
        struct view name = option_name(option);
        buf_printf(out, "complete -c exeat -n '__fish_seen_subcommand_from %s", c->noun);
        if (c->verb)
            buf_printf(out, "; and __fish_seen_subcommand_from %s", c->verb);
        buf_printf(out, "' -l %.*s%s -d ", VIEW_ARG(view_skip(name, 2)),
                   name.n < strlen(option) ? " -r" : "");
        put_quoted(what, out);
        buf_put_u8(out, '\n');
    }
}

static void put_fish(struct buf *out) {
    for (size_t i = 0; cli_command(i); i++) {
        const struct command *c = cli_command(i);
        if (is_first_of_noun(i))
            buf_printf(out, "complete -c exeat -f -n __fish_use_subcommand -a %s\n", c->noun);
        if (c->verb) {
            buf_printf(out, "complete -c exeat -n '__fish_seen_subcommand_from %s' -a %s -d ",
                       c->noun, c->verb);
            put_quoted(c->summary, out);
            buf_put_u8(out, '\n');
        }
        put_fish_options(c, out);
    }
}

int command_completion(const struct cli *cli, int argc, char **argv) {
    static const struct option_spec no_options[] = {{NULL, NULL, NULL}};
    static const struct {
        const char *name;
        void (*put)(struct buf *out);
    } shells[] = {{"bash", put_bash}, {"zsh", put_zsh}, {"fish", put_fish}};
    const char *wanted;
    struct buf out;
    int code = options_read(argc, argv, no_options, &wanted, 1);
    (void)cli;
    for (size_t i = 0; code == EXIT_YES && i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(wanted, shells[i].name) != 0)
            continue;
        buf_init(&out, OUTPUT_MAX);
        shells[i].put(&out);
        cli_print(stdout, &out);
        buf_free(&out);
        return EXIT_YES;
    }
    return code == EXIT_YES ? cli_fail(EXIT_USAGE, "%s: it is bash, zsh or fish", wanted) : code;
}
