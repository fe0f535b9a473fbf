/*
 * Which line of what a client printed tells why it failed. Pure.
 */
#ifndef CLI_DOCTOR_WHY_H
#define CLI_DOCTOR_WHY_H

#include "base/bytes.h"

/* Of no use are the last line of curl, which points to a page, or npm's, the name of a log. Borrowed from out. */
struct view doctor_why(struct view out);
/* The line says that the client does not trust who signed the certificate. */
bool doctor_why_is_trust(struct view line);

#endif
