/*
 * Probes of what crosses network namespaces or needs no network: sockets of the host, its processes, exeat's files.
 * One finding for everything that is as it should be, one for each that is not.
 */
#ifndef RUN_PROBE_HOST_H
#define RUN_PROBE_HOST_H

#include "base/bytes.h"
#include "run/probe.h"

#include <stdbool.h>

/* Appends the paths, each with a NUL, where sockets of agents, container engines, buses and exeat are known to be. */
void probe_known_sockets(struct buf *out);
/* Appends those where exeat keeps its configuration, state and keys unless it was told otherwise. */
void probe_known_files(struct buf *out);

/* "socket": those of paths that can be connected to, and are not held by a process of this sandbox;
 * $EXEAT_SOCKET is the sandbox's way in. */
void probe_socket_files(const struct probe *p, struct view paths);
/* "abstract": the same of the abstract sockets that this network namespace shows. */
void probe_abstract(const struct probe *p);
/* "process": whether exeatd, or what /proc shows of another process namespace, can be touched. */
void probe_processes(const struct probe *p);
/* "file": what of the paths, or in them where they are folders, can be read; a folder `public` in them may. */
void probe_files(const struct probe *p, struct view paths);

#endif
