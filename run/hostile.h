/*
 * Hostile builds only (make HOSTILE=1): a sandbox with a hole, which the probes must find. The shell command of
 * $EXEAT_HOLE is run with all rights over the sandbox once it is made. In other builds this is nothing.
 */
#ifndef RUN_HOSTILE_H
#define RUN_HOSTILE_H

#ifdef EXEAT_HOSTILE

void hostile_open_hole(void);

#else

static inline void hostile_open_hole(void) {
}

#endif
#endif
