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
        fwrite(buf_view(&json).p, 1, buf_len(&json), stdout);
    } else if (code == EXIT_YES) {
        list_write(buf_view(&json), columns, &table);
        fwrite(buf_view(&table).p, 1, buf_len(&table), stdout);
    }
    buf_free(&json);
    buf_free(&table);
    return code;
}
