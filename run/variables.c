#include "run/variables.h"

#include "run/say.h"
#include "run/talk.h"

#include <stdlib.h>
#include <string.h>

static bool set_variable(struct view pair) {
    char *text = strndup((const char *)pair.p, pair.n);
    char *value = text ? strchr(text, '=') : NULL;
    if (value)
        *value++ = '\0';
    bool done = value && setenv(text, value, 1) == 0;
    free(text);
    return done;
}

int variables_set(struct view blocks) {
    struct reader r = reader_of(blocks);
    while (r.rest.n > 0) {
        struct view pair = read_block(&r, TALK_ENVIRONMENT_MAX);
        if (r.bad || !set_variable(pair))
            return run_say("the command's environment cannot be made");
    }
    return 0;
}
