/*
 * Mounts that cover a part of the file system, and trees that are kept to be shown in spite of that.
 * 0 or -1 with errno throughout; descriptors are close-on-exec.
 */
#ifndef RUN_COVERS_H
#define RUN_COVERS_H

#include <stdbool.h>
#include <sys/types.h>

/* A tree with all that is mounted in it, as it is now; a descriptor or -1. */
int cover_keep(const char *path);
/* Shows a kept tree at path, which is made where it is missing in a folder that cover_folder made. Takes fd. */
int cover_show(int fd, const char *path);
/* An empty folder in memory, at a folder that is there. */
int cover_folder(const char *path, mode_t mode);
/* Whether path is in a folder that cover_folder made. */
bool cover_has(const char *path);
/* The folder at path, as a descriptor, when it is in one that cover_folder made; else -1. */
int cover_open(const char *path);
/* Makes path and what is missing above it, only in a folder that cover_folder made. */
int cover_make_folder(const char *path);
/* A symbolic link at path, only in a folder that cover_folder made. */
int cover_link(const char *to, const char *path);
/* The folders above path that could be renamed, so that another lay there, cannot be any more: each becomes a mount. */
int cover_pin(const char *path);
/* Nor can the symbolic link at path, or be replaced. */
int cover_pin_link(const char *path);
/* Everything at path becomes read-only, as far as it is mounted now. */
int cover_read_only(const char *path);

#endif
