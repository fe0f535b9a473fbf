/*
 * Policies out of files, text or JSON, with what they include.
 */
#ifndef CLI_POLICY_FILES_H
#define CLI_POLICY_FILES_H

#include "policy/json_form.h"
#include "policy/policy.h"

/* The folder of the files that come with exeat: $EXEAT_SHARE, else where `make install` puts them from this program's folder, that
 * of its sources, or of the prefix that it was built for. */
const char *policy_share(void);
/*
 * What `include` means in files: a path that does not begin with "/" is looked for beside the file that
 * has the `include`, then in policy_share.
 */
extern const struct policy_files policy_files_of_disk;

/* The name of a file that the policy file `from` names, beside which it is looked for. ERR_LIMIT: too long. */
MUST_USE int policy_file_name(const char *from, struct view path, char *name, size_t size);
enum { POLICY_FILE_MAX = JSON_FORM_MAX };

/* Appends what is in the file, text or JSON, at most POLICY_FILE_MAX bytes. ERR_MISSING, ERR_SYSTEM, ERR_LIMIT; errno says more. */
MUST_USE int policy_file_read(const char *path, struct buf *out);
/*
 * policy_load_files of what is in the file path, text or JSON; policy_load_packing, where packed is not NULL. Errors have
 * their places in the files. Places in the policy are those in the text that JSON is turned into.
 */
MUST_USE int policy_file_load(struct view text, const char *path, struct buf *packed,
                              struct policy **out, struct policy_errors *errors);
/* Names of files that were included, each with a NUL; and those of them that stand before another one in policy_share. */
struct policy_included {
    struct buf names, in_place;
};
/* The same without packing; appends to *included. */
MUST_USE int policy_file_load_naming(struct view text, const char *path,
                                     struct policy_included *included, struct policy **out,
                                     struct policy_errors *errors);
/* policy_load_failing of it. */
MUST_USE int policy_file_load_failing(struct view text, const char *path, struct policy **out,
                                      struct policy_errors *errors);
/* errors_show of all of them, each with a line of its own file; text is that of the file path. */
void policy_file_errors(const struct policy_errors *errors, struct view text, const char *path,
                        struct buf *out);

#endif
