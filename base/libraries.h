/*
 * Versions of the libraries that are linked, as they say themselves at run time, with a word of
 * warning where a version is known to lack fixes. For `exeat version --deps` and the start record.
 */
#ifndef BASE_LIBRARIES_H
#define BASE_LIBRARIES_H

#include <stddef.h>

struct library {
    const char *name, *version;
    const char *warning; /* or NULL */
};

size_t libraries_count(void);
struct library library_at(size_t i);

#endif
