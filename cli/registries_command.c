#include "cli/command.h"
#include "cli/options.h"
#include "cli/registry.h"
#include "policy/errors.h"

#include <stdio.h>
#include <stdlib.h>

/* What is printed loads; a configuration may hold anything. */
static int check(struct view text) {
    static struct policy_errors errors;
    struct policy *p;
    struct buf out;
    if (policy_load(text, "registries", &p, &errors) == 0) {
        policy_free(p);
        return EXIT_YES;
    }
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < errors.n; i++)
        errors_show(&errors.at[i], text, &out);
    cli_print(stderr, &out);
    buf_free(&out);
    return cli_fail(EXIT_NO, "what the clients are set up for makes no policy");
}

int command_policy_registries(const struct cli *cli, int argc, char **argv) {
    static struct registries found;
    const char *home = getenv("HOME"), *root = NULL;
    const struct option_spec specs[] = {{"--root", &root, NULL}, {NULL, NULL, NULL}};
    (void)cli;
    int code = options_read(argc, argv, specs, NULL, 0);
    if (code != EXIT_YES)
        return code;
    registries_find(home ? home : "", root ? root : "", &found);
    if (found.n == 0)
        return cli_fail(EXIT_NO, "no client that is set up for a registry was found");
    struct buf out;
    buf_init(&out, POLICY_TEXT_MAX);
    code = registries_write(&found, &out) == 0 ? check(buf_view(&out))
                                               : cli_fail(EXIT_NO, "too many registries");
    if (code == EXIT_YES)
        cli_print(stdout, &out);
    buf_free(&out);
    return code;
}
