/*
 * The rights of every role, on one page: rights.c has a row for each. The
 * systemd units repeat them in systemd's words.
 */
#ifndef BASE_RIGHTS_H
#define BASE_RIGHTS_H

#include "base/role.h"

/*
 * Narrows this process for good, before it reads a byte from outside: not
 * dumpable, no core, no new privileges, Landlock (no file system but
 * args->directory for broker and audit), a seccomp allow-list that kills on
 * anything else. The uid was changed by the parent before exec. Descriptors
 * and directories must be open by now. Landlock that the kernel lacks is
 * logged and left out; a failing seccomp is ERR_SYSTEM and the role must exit.
 */
MUST_USE int rights_enter(const struct role_args *args);

#endif
