/*
 * The command's end of the control socket (daemon/control_messages.h), in
 * plain blocking code, and the configuration that says where it is.
 */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include "cli/command.h"
#include "daemon/config.h"
#include "daemon/control_messages.h"

/*
 * Reads the configuration named by --config or $EXEAT_CONFIG. EXIT_YES, or an
 * exit code after saying what is wrong; out then holds nothing.
 */
int client_config(const struct cli *cli, struct config *out);
/*
 * The same for what must work also with a configuration that is wrong somewhere: only its state,
 * control and vault_key may be used; what is wrong is printed.
 */
int client_place(const struct cli *cli, struct config *out);

/*
 * Asks the daemon one thing and waits for its answer. fd: -1, or a descriptor
 * that goes along (and stays open here). CONTROL_STATUS, CONTROL_STOP and CONTROL_HEAD
 * get along with client_place. EXIT_YES with the answer's JSON appended to text;
 * otherwise an exit code, after the daemon's or our own sentence was printed.
 * *told, if not NULL, says whether what became of it is known: false means that
 * the daemon may have done it or not.
 */
int client_ask(const struct cli *cli, uint16_t type, struct view body, int fd, struct buf *text,
               bool *told);
/* False when nobody listens at that socket: nothing can have been asked. */
bool client_daemon_runs(const char *path);
/* The same with a known socket. */
int client_ask_at(const char *path, uint16_t type, struct view body, int fd, struct buf *text,
                  bool *told);

#endif
