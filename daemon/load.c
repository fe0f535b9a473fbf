#include "daemon/load.h"

#include "base/child.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/policy_files.h"
#include "daemon/confirm.h"
#include "http/tls.h"
#include "policy/errors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONFIG_MAX = 1 << 20, ANCHORS_MAX = 16 << 20, TEXT_MAX = 32 << 20, ERRORS_MAX = 64 << 10 };

static const char *const system_anchors[] = {
    "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"};

/*
 * Reads a whole file of at most max bytes. On failure a line "PATH: why" is appended to why and an
 * error returned.
 */
static int read_whole(const char *path, size_t max, struct buf *out, struct buf *why) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        buf_printf(why, "%s: %s\n", path, strerror(errno));
        return ERR_SYSTEM;
    }
    int result = file_read(fd, max, out);
    if (result != 0)
        buf_printf(why, "%s: %s\n", path, err_why(result));
    return result;
}

/* Appends errors of a text, each with its line and a caret (errors_show). */
static void show_errors(const struct policy_errors *errors, struct view text, struct buf *out) {
    for (size_t i = 0; i < errors->n; i++)
        errors_show(&errors->at[i], text, out);
    if (errors->total > errors->n)
        buf_printf(out, "and %zu more error%s\n", errors->total - errors->n,
                   errors->total - errors->n == 1 ? "" : "s");
}

/* The text stays with the caller, for errors that are met later. */
static int read_config(const char *path, struct buf *text, struct config *out, struct buf *why) {
    static struct policy_errors errors;
    errors = (struct policy_errors){.n = 0};
    int result = read_whole(path, CONFIG_MAX, text, why);
    if (result != 0)
        return result;
    result = config_read(buf_view(text), path, out, &errors);
    show_errors(&errors, buf_view(text), why);
    return result;
}

int load_config(const char *path, struct config *out, struct buf *why) {
    struct buf text;
    buf_init(&text, CONFIG_MAX);
    int result = read_config(path, &text, out, why);
    buf_free(&text);
    return result;
}

/* ---- trust anchors ---- */

/* Files need not end in a newline. */
static int add_anchors(const char *path, struct buf *out, struct buf *why) {
    size_t before = buf_len(out);
    int result = read_whole(path, ANCHORS_MAX - before, out, why);
    if (result != 0)
        return result;
    struct view added = view_skip(buf_view(out), before);
    if (view_search(added, VIEW("-----BEGIN CERTIFICATE-----")) == added.n) {
        buf_printf(why, "%s: no certificate (PEM) in it\n", path);
        return ERR_BAD;
    }
    buf_put_u8(out, '\n');
    return buf_ok(out) ? 0 : ERR_LIMIT;
}

static int add_system_anchors(struct buf *out, struct buf *why) {
    for (size_t i = 0; i < sizeof system_anchors / sizeof *system_anchors; i++)
        if (access(system_anchors[i], R_OK) == 0)
            return add_anchors(system_anchors[i], out, why);
    buf_put_str(why, "no trust anchors of the system were found: install ca-certificates or name a "
                     "`trust file`\n");
    return ERR_MISSING;
}

static int load_anchors(const struct config *c, struct buf *out, struct buf *why) {
    int result = c->trust_system ? add_system_anchors(out, why) : 0;
    for (const struct config_trust *t = c->trust; t && result == 0; t = t->next) {
        size_t before = buf_len(why);
        result = add_anchors(t->path, out, why);
        if (result != 0 && buf_len(why) > before)
            buf_printf(why, "%s:%u:%u: it is named here\n", t->at.file, t->at.line, t->at.column);
    }
    return result;
}

/* A file in which there is a certificate, but none that can be read, would stop the roles. */
static int check_anchors(const char *path, struct view pem, struct buf *why) {
    struct tls_client *client = tls_client_new(pem, 1);
    if (!client)
        buf_printf(why, "%s: none of its certificates can be read\n", path);
    tls_client_free(client);
    return client ? 0 : ERR_BAD;
}

static int add_own_anchors(const struct service *s, struct buf *out, struct buf *why) {
    const struct upstream_terms *terms = service_upstream(s);
    char path[PATH_MAX] = "";
    struct buf pem;
    buf_init(&pem, ANCHORS_MAX);
    int result = policy_file_name(terms->at.file, terms->ca, path, sizeof path);
    if (result != 0)
        buf_printf(why, "the name of the file is too long\n");
    else
        result = add_anchors(path, &pem, why);
    if (result == 0)
        result = check_anchors(path, buf_view(&pem), why);
    if (result != 0)
        buf_printf(why, "%s:%u:%u: `upstream ca` of service %.*s names it\n", terms->at.file,
                   terms->at.line, terms->at.column, VIEW_ARG(service_name(s)));
    else
        bundle_put_anchors(out, service_name(s), buf_view(&pem));
    buf_free(&pem);
    return result == 0 && !buf_ok(out) ? ERR_LIMIT : result;
}

static int load_own_anchors(const struct policy *p, struct buf *out, struct buf *why) {
    const struct service *s;
    int result = 0;
    for (size_t i = 0; result == 0 && (s = policy_service_at(p, i)) != NULL; i++)
        if (service_upstream(s)->ca.n > 0)
            result = add_own_anchors(s, out, why);
    if (result == ERR_LIMIT)
        buf_printf(why, "`upstream ca`: the files have more than %d bytes in all\n", ANCHORS_MAX);
    return result;
}

static void warn_of_geography(const struct config *c, const struct policy *p) {
    const struct service *s;
    for (size_t i = 0; (s = policy_service_at(p, i)) != NULL; i++) {
        struct view name = service_name(s);
        if (service_asks_country(s) && !c->geo_country)
            log_warn("service %.*s: nothing matches its 'country', the configuration has no 'geo "
                     "country'",
                     VIEW_ARG(name));
        if (service_asks_asn(s) && !c->geo_asn)
            log_warn("service %.*s: nothing matches its 'asn', the configuration has no 'geo asn'",
                     VIEW_ARG(name));
    }
}

/* Everything a generation is made of, and its text. */
struct loading {
    struct config config;
    struct policy *policy;
    struct policy_errors errors;
    struct buf config_text, policy_text, packed, anchors, own_anchors, lanes, rights, hosts, own,
        why;
};

static int load_policy(struct loading *l) {
    int result = read_whole(l->config.policy, POLICY_FILE_MAX, &l->policy_text, &l->why);
    if (result != 0)
        return result;
    result = policy_file_load(buf_view(&l->policy_text), l->config.policy, &l->packed, &l->policy,
                              &l->errors);
    if (result == ERR_LIMIT)
        buf_printf(&l->why, "%s: with what it includes it has more than %d bytes\n",
                   l->config.policy, POLICY_TEXT_MAX);
    if (result != 0) {
        policy_file_errors(&l->errors, buf_view(&l->policy_text), l->config.policy, &l->why);
        return result;
    }
    result = config_put_lanes(&l->config, l->policy, &l->lanes, &l->errors);
    show_errors(&l->errors, buf_view(&l->config_text), &l->why);
    if (result != 0)
        return result;
    result = config_put_rights(&l->config, l->policy, &l->rights, &l->errors);
    show_errors(&l->errors, buf_view(&l->config_text), &l->why);
    return result;
}

/* In every language that an operator reads: what is only watched is let through. */
static void shout(const struct policy *p) {
    struct view sandbox, service;
    struct position at;
    for (size_t i = 0; policy_observes(p, i, &sandbox, &service, &at); i++)
        log_warn("%s:%u:%u: OBSERVING: what the policy would refuse sandbox %.*s at %.*s is let "
                 "through and recorded",
                 at.file, at.line, at.column, VIEW_ARG(sandbox), VIEW_ARG(service));
}

static void put_bundle(const struct loading *l, struct buf *out) {
    struct bundle b = {.limits = l->config.limits,
                       .policy_file = view_str(l->config.policy),
                       .policy_text = buf_view(&l->packed),
                       .lanes = buf_view(&l->lanes),
                       .static_hosts = buf_view(&l->hosts),
                       .n_resolvers = l->config.n_resolvers,
                       .upstream_proxy = l->config.upstream_proxy,
                       .own_addresses = buf_view(&l->own),
                       .anchors = buf_view(&l->anchors),
                       .own_anchors = buf_view(&l->own_anchors),
                       .attach_rights = buf_view(&l->rights),
                       .audit_durable = l->config.audit_durable};
    memcpy(b.resolvers, l->config.resolvers, sizeof b.resolvers);
    memcpy(b.resolver_ports, l->config.resolver_ports, sizeof b.resolver_ports);
    memcpy(b.synthetic, l->config.synthetic, sizeof b.synthetic);
    bundle_write(&b, out);
}

int load_main(const char *config_file) {
    static struct loading l;
    struct buf out;
    int running = confirm_running();
    log_open("load", LOG_INFO);
    buf_init(&l.config_text, CONFIG_MAX);
    buf_init(&l.policy_text, POLICY_FILE_MAX);
    buf_init(&l.packed, POLICY_TEXT_MAX);
    buf_init(&l.anchors, ANCHORS_MAX);
    buf_init(&l.own_anchors, ANCHORS_MAX);
    buf_init(&l.lanes, CONFIG_MAX);
    buf_init(&l.rights, CONFIG_MAX);
    buf_init(&l.hosts, CONFIG_MAX);
    buf_init(&l.own, CONFIG_MAX);
    buf_init(&l.why, ERRORS_MAX);
    buf_init(&out, TEXT_MAX);
    int result = read_config(config_file, &l.config_text, &l.config, &l.why);
    if (result == 0) {
        config_put_hosts(&l.config, &l.hosts);
        config_put_own_addresses(&l.config, &l.own);
        result = load_policy(&l);
    }
    if (result == 0)
        result = load_anchors(&l.config, &l.anchors, &l.why);
    if (result == 0)
        warn_of_geography(&l.config, l.policy);
    if (result == 0)
        result = load_own_anchors(l.policy, &l.own_anchors, &l.why);
    if (result == 0 && !l.config.reload_unconfirmed)
        result = confirm_policy(running, buf_view(&l.packed), l.policy, &l.why);
    buf_put_u8(&out, result == 0 ? LOAD_GOOD : result == ERR_DENIED ? LOAD_UNCONFIRMED : LOAD_BAD);
    if (result == 0) {
        shout(l.policy);
        buf_put_block(&out, buf_view(&l.config_text));
        put_bundle(&l, &out);
    } else {
        buf_put(&out, buf_view(&l.why));
    }
    if (!buf_ok(&out) || file_write(PARENT_FD, buf_view(&out)) != 0)
        return 1;
    return 0;
}
