#include "cli/nft_interfaces.h"

#include "base/error.h"
#include "cli/nft_question.h"

#include <fcntl.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const struct way {
    uint8_t family;
    uint16_t attribute; /* of a bridge */
    const char *file, *setting, *of_one;
} ways[] = {
    {4, IFLA_BR_NF_CALL_IPTABLES, "/proc/sys/net/bridge/bridge-nf-call-iptables",
     "sysctl net.bridge.bridge-nf-call-iptables=0",
     "ip link set NAME type bridge nf_call_iptables 0"},
    {6, IFLA_BR_NF_CALL_IP6TABLES, "/proc/sys/net/bridge/bridge-nf-call-ip6tables",
     "sysctl net.bridge.bridge-nf-call-ip6tables=0",
     "ip link set NAME type bridge nf_call_ip6tables 0"},
};

struct found {
    const struct way *way;
    bool is_bridge, calls;
};

/* A bridge tells its settings in attributes of attributes. */
static bool read_link(const struct nlmsghdr *m, void *ctx) {
    struct found *f = ctx;
    size_t head = NLMSG_SPACE(sizeof(struct ifinfomsg));
    if (m->nlmsg_type != RTM_NEWLINK || m->nlmsg_len < head)
        return false;
    const struct rtattr *info =
        question_attribute((const uint8_t *)m + head, m->nlmsg_len - head, IFLA_LINKINFO);
    const struct rtattr *kind =
        info ? question_attribute(RTA_DATA(info), RTA_PAYLOAD(info), IFLA_INFO_KIND) : NULL;
    const struct rtattr *data =
        info ? question_attribute(RTA_DATA(info), RTA_PAYLOAD(info), IFLA_INFO_DATA) : NULL;
    f->is_bridge = kind && RTA_PAYLOAD(kind) == sizeof "bridge" &&
                   memcmp(RTA_DATA(kind), "bridge", sizeof "bridge") == 0;
    if (!f->is_bridge || !data)
        return true;
    const struct rtattr *calls =
        question_attribute(RTA_DATA(data), RTA_PAYLOAD(data), f->way->attribute);
    f->calls = calls && RTA_PAYLOAD(calls) == 1 && *(const uint8_t *)RTA_DATA(calls) == 1;
    return true;
}

enum setting { SETTING_MISSING, SETTING_OFF, SETTING_ON };

/* Of this namespace. */
static enum setting read_setting(const char *file) {
    char first = '0';
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return SETTING_MISSING;
    bool is_on = read(fd, &first, 1) == 1 && first != '0';
    close(fd);
    return is_on ? SETTING_ON : SETTING_OFF;
}

int nft_bridge_look(const char *interface, uint8_t family, const char **setting) {
    struct found f = {.way = &ways[family == 6]};
    struct question q;
    *setting = NULL;
    unsigned index = if_nametoindex(interface);
    if (index == 0)
        return 0;
    question_begin(&q, RTM_GETLINK, 0);
    struct ifinfomsg *link = question_put(&q, sizeof *link);
    link->ifi_index = (int)index;
    if (question_ask(&q, read_link, &f) < 0)
        return ERR_SYSTEM;
    /* Without the module there is no such file, and nothing heeds the attribute. */
    enum setting of_all = f.is_bridge ? read_setting(f.way->file) : SETTING_MISSING;
    if (of_all == SETTING_ON)
        *setting = f.way->setting;
    else if (of_all == SETTING_OFF && f.calls)
        *setting = f.way->of_one;
    return 0;
}

/* ---- sources ---- */

/* The kernel takes either, of all interfaces or of one. */
static bool is_on(const char *interface, const char *name) {
    char file[128];
    snprintf(file, sizeof file, "/proc/sys/net/ipv4/conf/%s/%s", interface, name);
    return interface[0] && read_setting(file) == SETTING_ON;
}

const char *nft_source_look(const char *interface) {
    if (is_on("all", "accept_local") || is_on(interface, "accept_local"))
        return NULL;
    if (is_on("all", "src_valid_mark"))
        return "sysctl net.ipv4.conf.all.src_valid_mark=0";
    return is_on(interface, "src_valid_mark") ? "sysctl net.ipv4.conf.NAME.src_valid_mark=0" : NULL;
}
