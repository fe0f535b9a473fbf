/*
 * What a segment of a path may mean to a server that decodes it, trims it and takes off what stands behind the name.
 * Pure. Internal to policy/.
 */
#ifndef POLICY_PATH_SEGMENT_H
#define POLICY_PATH_SEGMENT_H

#include "base/bytes.h"

/* The next byte, decoded. What is not "%XX" stands for itself. v is not empty. */
uint8_t path_segment_decoded(struct view *v);
/* Without blanks in front: encoded ones, also those of Unicode, and '+', which servers that decode paths as forms are take for one. */
struct view path_segment_unpadded(struct view v);
/*
 * Whether servers are known to strip this from the end of a segment: nothing, parameters, a format, dots, blanks, and
 * what is a query or a fragment to who parses it once more ("%3F", "%23").
 */
bool path_segment_is_stripped(struct view tail);
/* The same for the tails of one segment, each shorter than the one before: blanks that follow each other are gone through once. */
struct path_tails {
    const uint8_t *behind; /* the blanks that were met last; NULL at first */
    bool stripped;         /* so is what stands there */
};
bool path_tails_next_is_stripped(struct path_tails *t, struct view tail);
/* Whether the segment is one or more digits; widely: may be taken for that. */
bool path_segment_is_number(struct view segment, bool widely);

#endif
