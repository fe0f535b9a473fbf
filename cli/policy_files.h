/*
 * Policies out of files, with what they include.
 */
#ifndef CLI_POLICY_FILES_H
#define CLI_POLICY_FILES_H

#include "policy/policy.h"

/* The folder of the files that come with exeat: $EXEAT_SHARE, else where `make install` puts them. */
const char *policy_share(void);
/*
 * What `include` means in files: a path that does not begin with "/" is looked for beside the file that
 * has the `include`, then in policy_share.
 */
extern const struct policy_files policy_files_of_disk;

/* The name of a file that the policy file `from` names, beside which it is looked for. ERR_LIMIT: too long. */
MUST_USE int policy_file_name(const char *from, struct view path, char *name, size_t size);
/* Appends the text of the file. ERR_MISSING, ERR_SYSTEM, ERR_LIMIT; errno says more. */
MUST_USE int policy_file_read(const char *path, struct buf *out);
/* policy_load_files of text, which is that of the file path. */
MUST_USE int policy_file_load(struct view text, const char *path, struct policy **out,
                              struct policy_errors *errors);
/* errors_show of all of them, each with a line of its own file; text is that of the file path. */
void policy_file_errors(const struct policy_errors *errors, struct view text, const char *path,
                        struct buf *out);

#endif
