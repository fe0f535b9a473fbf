#include "egress/resolv_conf.h"

static const size_t servers_max = sizeof((struct resolv_conf *)0)->servers / sizeof(struct address);

static struct view cut_word(struct view *rest) {
    size_t n = 0;
    *rest = view_trim(*rest);
    while (n < rest->n && rest->p[n] != ' ' && rest->p[n] != '\t')
        n++;
    struct view word = view_head(*rest, n);
    *rest = view_trim(view_skip(*rest, n));
    return word;
}

static int read_line(struct view line, struct resolv_conf *out) {
    struct address a;
    if (!view_equal(cut_word(&line), VIEW("nameserver")))
        return 0;
    struct view value = cut_word(&line);
    if (!view_is_empty(line))
        return ERR_BAD;
    if (view_find(value, '%') < value.n) {
        out->skipped++;
        return 0;
    }
    if (address_parse(value, &a) != 0)
        return ERR_BAD;
    if (out->n < servers_max)
        out->servers[out->n++] = a;
    return 0;
}

int resolv_conf_read(struct view text, struct resolv_conf *out, size_t *line) {
    *out = (struct resolv_conf){.n = 0};
    for (*line = 1; !view_is_empty(text); ++*line)
        if (read_line(view_cut(&text, '\n'), out) != 0)
            return ERR_BAD;
    return out->n ? 0 : ERR_MISSING;
}
