/*
 * What the commands on policies share: files that are read and loaded, and how
 * their errors are told.
 */
#ifndef CLI_POLICY_TOLD_H
#define CLI_POLICY_TOLD_H

#include "cli/command.h"
#include "cli/policy_files.h"

#include <stdio.h>

enum { POLICY_OUTPUT_MAX = 1 << 24 };

/* Appends the file's text. EXIT_YES; anything else was told. */
int policy_told_read(const char *path, struct buf *out);
/* EXIT_YES with *out, which the caller frees with policy_free; anything else was told. */
int policy_told_load(const struct cli *cli, const char *path, struct policy **out);
/* The same; appends to *included. */
int policy_told_load_naming(const struct cli *cli, const char *path,
                            struct policy_included *included, struct policy **out);
/*
 * The same, but where nothing but expectations fails, that is only noted on standard error: to ask what a policy would say of a
 * request is how to find out why.
 */
int policy_told_load_failing(const struct cli *cli, const char *path, struct policy **out);
/* Tells the errors of a text, to standard error or as JSON. Always EXIT_INVALID. */
int policy_told_refuse(const struct cli *cli, const struct policy_errors *errors, struct view text,
                       const char *path);
/* `,"member":[...]`: place and text of each. */
void policy_told_errors(struct buf *out, const char *member, const struct policy_errors *errors);
/* `,"grants":[...]`: those with limits that an allowed request goes by. */
void policy_told_grants(const struct verdict *v, struct buf *out);
/* "file", "line" and "column" of an object, as far as they are known. */
void policy_told_place(struct buf *out, const struct position *at);

#endif
