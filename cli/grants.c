#include "cli/grants.h"

#include "cli/json_scan.h"
#include "cli/list.h"

static bool is_of(struct view grant, struct view sandbox) {
    struct view raw, name;
    return view_is_empty(sandbox) || (json_member(grant, "sandbox", &raw) &&
                                      json_word(raw, &name) && view_equal(name, sandbox));
}

void grants_gather(struct view status, struct view sandbox, struct buf *out) {
    struct view processes = {NULL, 0}, process, grants, grant;
    const char *between = "";
    buf_put_u8(out, '[');
    if (json_member(status, "processes", &processes))
        processes = json_elements(processes);
    while (json_element(&processes, &process)) {
        if (!json_member(process, "grants", &grants))
            continue;
        for (struct view rest = json_elements(grants); json_element(&rest, &grant);) {
            if (!is_of(grant, sandbox))
                continue;
            buf_put_str(out, between);
            buf_put(out, grant);
            between = ",";
        }
    }
    buf_put_u8(out, ']');
}

void grants_write(struct view grants, struct buf *out) {
    static const struct list_column columns[] = {
        {"SANDBOX", "sandbox", LIST_TEXT},
        {"SERVICE", "service", LIST_TEXT},
        {"USES", "uses", LIST_TEXT},
        {"LEFT", "uses_left", LIST_TEXT},
        {"BYTES OUT", "bytes", LIST_TEXT},
        {"LEFT", "bytes_left", LIST_TEXT},
        {"IN PROGRESS", "concurrent", LIST_TEXT},
        {"ENDED", "ended", LIST_YES_NO},
        {"TERMS", "terms", LIST_TEXT},
        {"GRANT", "rule", LIST_TEXT},
        {NULL, NULL, LIST_TEXT},
    };
    if (json_elements(grants).n > 0)
        list_write(grants, columns, out);
}

static void put_member(struct view grant, const char *name, struct buf *out) {
    struct view value;
    if (json_member(grant, name, &value))
        list_put_text(value, out);
}

void grants_shout(struct view grants, struct buf *out) {
    struct view rest = json_elements(grants), grant, observes;
    while (json_element(&rest, &grant)) {
        if (!json_member(grant, "observes", &observes) || !view_equal(observes, VIEW("true")))
            continue;
        buf_put_str(out, "OBSERVING    sandbox ");
        put_member(grant, "sandbox", out);
        buf_put_str(out, " at ");
        put_member(grant, "service", out);
        buf_put_str(out, ": what the policy would refuse is let through: ");
        put_member(grant, "rule", out);
        buf_put_u8(out, '\n');
    }
}
