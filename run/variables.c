#include "run/variables.h"

#include "run/say.h"
#include "run/talk.h"

#include <stdlib.h>
#include <string.h>

static bool set_variable(struct view pair) {
    char *text = strndup((const char *)pair.p, pair.n);
    /* The environment keeps the text. */
    return text && putenv(text) == 0;
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
