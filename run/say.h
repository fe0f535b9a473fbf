/*
 * What the launcher tells the user of its own failures. Children of the launcher say it themselves:
 * they have the same standard error.
 */
#ifndef RUN_SAY_H
#define RUN_SAY_H

/* The launcher's own exit statuses, as env(1) and timeout(1) have them; all others are the command's. */
enum run_exit {
    RUN_FAILED = 125,       /* the sandbox could not be made */
    RUN_NOT_EXECUTED = 126, /* the command is there and cannot be executed */
    RUN_NOT_FOUND = 127,
};

/*
 * Prints "exeat: run: ..."; -1, so that a function can end with it. Names in it may be whatever other users of this machine chose: what would
 * be an order to the terminal is a question mark.
 */
int run_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Becomes the command, or says why not and ends as env(1) does. */
_Noreturn void run_execute(char **argv);

#endif
