#include "cli/options.h"

#include "cli/command.h"
#include "policy/errors.h"

#include <string.h>

static const struct option_spec *find(const struct option_spec *specs, const char *argument) {
    for (; specs->name; specs++) {
        size_t n = strlen(specs->name);
        if (strncmp(argument, specs->name, n) == 0 &&
            (argument[n] == 0 || (argument[n] == '=' && specs->value)))
            return specs;
    }
    return NULL;
}

static void fail_unknown(const struct option_spec *specs, const char *argument) {
    struct view rest = view_str(argument), name = view_cut(&rest, '=');
    struct guess g = guess_of(name);
    for (; specs->name; specs++)
        guess_offer(&g, view_str(specs->name));
    cli_fail(EXIT_USAGE, "there is no option %.*s here%s", VIEW_ARG(name), guess_text(&g));
}

/* How many arguments the option took, or -1. */
static int take_option(int left, char **argv, const struct option_spec *specs) {
    const struct option_spec *o = find(specs, argv[0]);
    if (!o) {
        fail_unknown(specs, argv[0]);
        return -1;
    }
    if (o->flag) {
        *o->flag = true;
        return 1;
    }
    const char *equals = strchr(argv[0], '=');
    if (!equals && left < 2) {
        cli_fail(EXIT_USAGE, "%s needs a value", o->name);
        return -1;
    }
    *o->value = equals ? equals + 1 : argv[1];
    return equals ? 1 : 2;
}

int options_read(int argc, char **argv, const struct option_spec *specs, const char **positional,
                 int n) {
    int found;
    return options_read_some(argc, argv, specs, positional, n, n, &found);
}

int options_read_some(int argc, char **argv, const struct option_spec *specs,
                      const char **positional, int least, int most, int *n) {
    int found = 0;
    bool options = true;
    for (int i = 0; i < argc;) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
            i++;
        } else if (options && argv[i][0] == '-' && argv[i][1] != 0) {
            int taken = take_option(argc - i, argv + i, specs);
            if (taken < 0)
                return EXIT_USAGE;
            i += taken;
        } else if (found == most) {
            return cli_fail(EXIT_USAGE, "there is an argument too many: %s", argv[i]);
        } else {
            positional[found++] = argv[i++];
        }
    }
    *n = found;
    return found >= least ? EXIT_YES : cli_fail(EXIT_USAGE, "an argument is missing");
}
