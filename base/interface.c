#include "base/interface.h"

#include <net/if.h>
#include <string.h>

_Static_assert(INTERFACE_SIZE == IF_NAMESIZE, "the kernel's size of a name");

bool interface_own_name(const char *name, char out[INTERFACE_SIZE]) {
    unsigned index = if_nametoindex(name);
    return index > 0 && if_indextoname(index, out);
}

bool interface_is(unsigned index, const char *name) {
    char own[INTERFACE_SIZE];
    return index > 0 && if_indextoname(index, own) && strcmp(own, name) == 0;
}
