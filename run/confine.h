/*
 * What the command has no right to, beyond what namespaces take from it. All of it stays with the
 * command's children.
 */
#ifndef RUN_CONFINE_H
#define RUN_CONFINE_H

/*
 * Gives up all capabilities for good, sets no_new_privs, and refuses by seccomp
 *   - sockets other than Unix, IPv4, IPv6 and netlink: vsock and others know no network namespaces;
 *   - ioctls that type into the terminal (TIOCSTI, TIOCLINUX);
 *   - io_uring, which makes sockets past that rule, and kernel keyrings, which are shared with the host.
 * A 32-bit program gets no sockets: its calls cannot be told apart. -1 after saying why not.
 */
int confine_command(void);
/* The first process of a sandbox: no capabilities, no new privileges; nobody may look into it. */
int confine_init(void);

#endif
