/*
 * The vault's key-encryption key in a file: 64 hexadecimal digits and a newline, for its owner alone.
 * The caller clears the text.
 */
#ifndef CLI_VAULT_KEY_H
#define CLI_VAULT_KEY_H

#include <stdbool.h>

enum { VAULT_KEY_TEXT_SIZE = 65 };

/* A new one, from the kernel's randomness. */
void vault_key_make(char text[VAULT_KEY_TEXT_SIZE + 1]);
/* 64 digits and perhaps a newline, from a file that nobody else can read. An exit code. */
int vault_key_read(const char *path, char text[VAULT_KEY_TEXT_SIZE + 1]);
/* A new file of mode 0600 that belongs to whom `like` belongs, on the disk. Never overwrites. An exit code. */
int vault_key_write(const char *path, const char *text, const char *like);

/* Has the folder of a file that was made or renamed remember its name. False with errno. */
bool vault_key_sync(const char *file);

#endif
