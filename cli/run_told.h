/* What a sandbox's own exeatd refused, told at its end in a line to who sits at the terminal. */
#ifndef CLI_RUN_TOLD_H
#define CLI_RUN_TOLD_H

/* Reads the trail in the state folder; nothing refused: no line. log: where the trail is kept, or "". */
void run_told(const char *state, const char *log);

#endif
