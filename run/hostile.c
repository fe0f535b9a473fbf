#include "run/hostile.h"

#ifdef EXEAT_HOSTILE

#include "run/say.h"

#include <stdlib.h>

void hostile_open_hole(void) {
    const char *hole = getenv("EXEAT_HOLE");
    if (hole && system(hole) != 0)
        run_say("the hole cannot be made: %s", hole);
}

#endif
