/*
 * exeatd: the parent when it is called by the operator, one role when the parent executes it.
 */
#include "audit/audit.h"
#include "base/digest.h"
#include "base/log.h"
#include "base/openssl_memory.h"
#include "broker/broker.h"
#include "ca/ca.h"
#include "daemon/attach.h"
#include "daemon/control.h"
#include "daemon/load.h"
#include "daemon/parent.h"
#include "egress/dialer.h"
#include "egress/egress.h"
#include "egress/inspect.h"
#include "proxy/proxy.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int (*const roles[ROLE_COUNT])(const struct role_args *args) = {
    [ROLE_PROXY] = proxy_main,   [ROLE_EGRESS] = egress_main,   [ROLE_INSPECT] = inspect_main,
    [ROLE_BROKER] = broker_main, [ROLE_CA] = ca_main,           [ROLE_DIALER] = dialer_main,
    [ROLE_AUDIT] = audit_main,   [ROLE_CONTROL] = control_main, [ROLE_ATTACH] = attach_main,
};

enum {
    OPTION_ROLE = 256,
    OPTION_LANE,
    OPTION_LISTENERS,
    OPTION_WAYS,
    OPTION_ADMIT,
    OPTION_DIRECTORY,
    OPTION_GEO_COUNTRY,
    OPTION_GEO_ASN,
    OPTION_MISBEHAVE
};

static const struct option options[] = {
    {"config", required_argument, NULL, 'c'},
    {"debug", no_argument, NULL, 'd'},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, 'v'},
    /* what the parent says to a role */
    {"role", required_argument, NULL, OPTION_ROLE},
    {"lane", required_argument, NULL, OPTION_LANE},
    {"listeners", required_argument, NULL, OPTION_LISTENERS},
    {"ways", required_argument, NULL, OPTION_WAYS},
    {"admit", required_argument, NULL, OPTION_ADMIT},
    {"directory", required_argument, NULL, OPTION_DIRECTORY},
    {"geo-country", required_argument, NULL, OPTION_GEO_COUNTRY},
    {"geo-asn", required_argument, NULL, OPTION_GEO_ASN},
    {"misbehave", required_argument, NULL, OPTION_MISBEHAVE},
    {NULL, 0, NULL, 0},
};

static int usage(FILE *to) {
    fputs(
        "usage: exeatd [--config FILE] [--debug]      ($EXEAT_CONFIG, else /etc/exeat/exeat.conf)\n"
        "       exeatd --version\n"
        "\n"
        "Runs in the foreground; see exeatd(8), and `exeat help` for the operator's command.\n",
        to);
    return to == stdout ? 0 : 2;
}

static int run_role(const struct role_args *args, const char *config_file) {
    if (args->role == ROLE_LOAD)
        return load_main(config_file);
    if (!roles[args->role])
        return usage(stderr);
    /* Libraries that would open files of the system later (gmtime_r: /etc/localtime) do so now. */
    tzset();
    /* Before OpenSSL allocates for anybody else. */
    if (openssl_memory_start() != 0 || digest_start() != 0)
        return 1;
    return roles[args->role](args);
}

int main(int argc, char **argv) {
    struct role_args args = {.role = ROLE_PARENT};
    struct parent_options parent = {.config_file = "/etc/exeat/exeat.conf"};
    int c;
    if (getenv("EXEAT_CONFIG"))
        parent.config_file = getenv("EXEAT_CONFIG");
    while ((c = getopt_long(argc, argv, "c:dhv", options, NULL)) != -1) {
        switch (c) {
        case 'c':
            parent.config_file = optarg;
            break;
        case 'd':
            parent.debug = args.debug = true;
            break;
        case 'h':
            return usage(stdout);
        case 'v':
            puts("exeatd " EXEAT_VERSION);
            return 0;
        case OPTION_ROLE:
            if (role_find(view_str(optarg), &args.role) != 0)
                return usage(stderr);
            break;
        case OPTION_LANE:
            args.lane = (uint32_t)strtoul(optarg, NULL, 10);
            break;
        case OPTION_LISTENERS:
            args.listeners = (uint16_t)strtoul(optarg, NULL, 10);
            break;
        case OPTION_WAYS:
            args.ways = optarg;
            break;
        case OPTION_ADMIT:
            args.admit = optarg;
            break;
        case OPTION_DIRECTORY:
            args.directory = optarg;
            break;
        case OPTION_GEO_COUNTRY:
            args.geo_country = optarg;
            break;
        case OPTION_GEO_ASN:
            args.geo_asn = optarg;
            break;
        case OPTION_MISBEHAVE:
            parent.misbehave = args.misbehave = optarg;
            break;
        default:
            return usage(stderr);
        }
    }
    if (optind != argc) {
        fprintf(stderr, "exeatd: there is an argument too many: %s\n", argv[optind]);
        return usage(stderr);
    }
    return args.role == ROLE_PARENT ? parent_main(&parent) : run_role(&args, parent.config_file);
}
