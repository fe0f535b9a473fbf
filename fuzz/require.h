/* What must hold for every input: where it does not, the fuzzer has found something. */
#ifndef FUZZ_REQUIRE_H
#define FUZZ_REQUIRE_H

#include <stdlib.h>

#define REQUIRE(what)                                                                              \
    do {                                                                                           \
        if (!(what))                                                                               \
            abort();                                                                               \
    } while (0)

#endif
