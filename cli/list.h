/*
 * Lists that the daemon answers with, as a table or, with --json, as they are.
 */
#ifndef CLI_LIST_H
#define CLI_LIST_H

#include "cli/client.h"

enum list_format { LIST_TEXT, LIST_TIME /* seconds since 1970 */, LIST_YES_NO, LIST_WORDS };

struct list_column {
    const char *title, *member;
    enum list_format format;
};

/* Asks and prints; columns end with a NULL title. An exit code. */
int list_ask(const struct cli *cli, uint16_t type, const struct list_column *columns);
/* The table of a JSON array of objects, columns as wide as they must be. */
void list_write(struct view json, const struct list_column *columns, struct buf *out);
/* A JSON string's text (json_text), fit for a terminal: with '?' for what is no visible ASCII. */
void list_put_text(struct view value, struct buf *out);

#endif
