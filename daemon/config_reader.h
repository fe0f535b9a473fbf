/*
 * What the files of the configuration's reader share. Internal to config*.c.
 */
#ifndef DAEMON_CONFIG_READER_H
#define DAEMON_CONFIG_READER_H

#include "daemon/config.h"
#include "policy/lexer.h"

enum { LISTENERS_MAX = 4096, CONFIG_HOSTS_MAX = 4096, CONTROL_UIDS_MAX = 64, TRUST_MAX = 64 };

struct config_source {
    struct config *config;
    struct view folder; /* of the configuration file, with its final slash; may be empty */
    struct config_listener **listeners;
    struct config_lane **lanes;
    struct config_host **hosts;
    size_t n_hosts;
    struct config_trust **trust;
    size_t n_trust;
    uint32_t limit_lines[LIMIT_COUNT]; /* where each was set; 0: nowhere */
    /* the listener being read */
    struct config_listener *listener;
    struct config_lane *who;
};

/* Takes a word as the path of a Unix socket, which is short, and makes it absolute or relative to the folder. */
int config_socket(struct config_source *s, struct lexer *l, const char **out);
/* Takes an octal mode. */
int config_mode(struct lexer *l, mode_t *out);
/* Takes the number of a user or group, or its name in /etc/passwd or /etc/group; *out is then not NOBODY. */
int config_id(struct lexer *l, bool group, uint32_t *out);
/* Reports each name, separated by SP, that the policy does not have. */
void config_check_names(struct view names, struct position at, const struct policy *p,
                        struct policy_errors *errors);
/* A statement's reader: `attach ...`. */
int config_attach(void *source, struct lexer *l, const struct token *at);
/* A statement's reader: `listen ...`. */
int config_listen(void *source, struct lexer *l, const struct token *at);
/* Statements of a listener, whom it lets in: `uid`, `cid`, `proxy-protocol`. */
int config_admit_users(void *source, struct lexer *l, const struct token *at);
int config_admit_guests(void *source, struct lexer *l, const struct token *at);
int config_admit_relays(void *source, struct lexer *l, const struct token *at);
int config_admit_sources(void *source, struct lexer *l, const struct token *at);
/* Of a listener: `interface NAME`. */
int config_interface(void *source, struct lexer *l, const struct token *at);
/* `port NAME`. */
int config_port(void *source, struct lexer *l, const struct token *at);
/* `limit NAME VALUE`. */
int config_limit(void *source, struct lexer *l, const struct token *at);

#endif
