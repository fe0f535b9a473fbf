/*
 * What the network of a sandbox refuses by itself: datagrams to ports where nobody listens. The kernel tells their sender at
 * once, and tells raw sockets of this network as well, so that exeatd can record it.
 */
#ifndef RUN_REFUSED_H
#define RUN_REFUSED_H

/*
 * A raw socket of this family in this namespace, for WAY_UNREACHABLE; where the kernel has no IPv6, another of IPv4. Once for each
 * family. -1 after saying why not.
 */
int refused_open(int family);
/*
 * From now on they hear; before, it is the launcher's own probes that are refused. By copies that this process has kept,
 * which for the kernel are the same sockets. -1 after saying why not.
 */
int refused_hear(void);

#endif
