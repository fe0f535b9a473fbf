#include "cli/nft_interfaces.h"

#include "cli/command.h"
#include "cli/nft_question.h"

#include <errno.h>
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

/* Of this namespace. -1 after saying why it cannot be read. */
static int read_setting(const char *file, enum setting *out) {
    char first;
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    *out = SETTING_MISSING;
    if (fd < 0 && errno == ENOENT)
        return 0;
    ssize_t n = fd >= 0 ? read(fd, &first, 1) : -1;
    int why = n < 0 ? errno : EIO;
    if (fd >= 0)
        close(fd);
    if (n == 1) {
        *out = first == '0' ? SETTING_OFF : SETTING_ON;
        return 0;
    }
    cli_fail(EXIT_UNSEEN, "%s: %s", file, strerror(why));
    return -1;
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
    if (question_ask(&q, read_link, &f) < 0) {
        cli_fail(EXIT_UNSEEN, "the interface %s: %s", interface, strerror(errno));
        return -1;
    }
    /* Without the module there is no such file, and nothing heeds the attribute. */
    enum setting of_all = SETTING_MISSING;
    if (f.is_bridge && read_setting(f.way->file, &of_all) != 0)
        return -1;
    if (of_all == SETTING_ON)
        *setting = f.way->setting;
    else if (of_all == SETTING_OFF && f.calls)
        *setting = f.way->of_one;
    return 0;
}

/* ---- sources ---- */

/* Of one interface or of "all"; that of "" is off. */
static int read_source_setting(const char *interface, const char *name, bool *on) {
    char file[128];
    enum setting setting = SETTING_MISSING;
    snprintf(file, sizeof file, "/proc/sys/net/ipv4/conf/%s/%s", interface, name);
    int result = interface[0] ? read_setting(file, &setting) : 0;
    *on = setting == SETTING_ON;
    return result;
}

int nft_source_look(const char *interface, const char **setting) {
    bool local, local_all, mark, mark_all;
    *setting = NULL;
    if (read_source_setting("all", "accept_local", &local_all) != 0 ||
        read_source_setting(interface, "accept_local", &local) != 0 ||
        read_source_setting("all", "src_valid_mark", &mark_all) != 0 ||
        read_source_setting(interface, "src_valid_mark", &mark) != 0)
        return -1;
    /* The kernel takes either, of all interfaces or of one. */
    if (local || local_all)
        return 0;
    if (mark_all)
        *setting = "sysctl net.ipv4.conf.all.src_valid_mark=0";
    else if (mark)
        *setting = "sysctl net.ipv4.conf.NAME.src_valid_mark=0";
    return 0;
}
