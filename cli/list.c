#include "cli/list.h"

#include <stdio.h>

enum { TABLE_MAX = 4 * BROKER_TEXT_MAX };

int list_ask(const struct cli *cli, uint16_t type, const struct list_column *columns) {
    struct buf json, table;
    buf_init(&json, BROKER_TEXT_MAX);
    buf_init(&table, TABLE_MAX);
    int code = client_ask(cli, type, VIEW(""), -1, &json, NULL);
    if (code == EXIT_YES && cli->json) {
        buf_put_u8(&json, '\n');
        cli_print(stdout, &json);
    } else if (code == EXIT_YES) {
        list_write(buf_view(&json), columns, &table);
        cli_print(stdout, &table);
    }
    buf_free(&json);
    buf_free(&table);
    return code;
}
