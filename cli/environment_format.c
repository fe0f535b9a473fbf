#include "cli/environment_format.h"

#include "base/json.h"

/* ---- quoting ---- */

/* The value with `before` in front of each byte of `special`. */
static void put_escaped(struct buf *out, struct view value, const char *special,
                        const char *before) {
    for (size_t i = 0; i < value.n; i++) {
        if (strchr(special, value.p[i]))
            buf_put_str(out, before);
        buf_put_u8(out, value.p[i]);
    }
}

static void put_quoted(struct buf *out, struct view value, const char *special,
                       const char *before) {
    buf_put_u8(out, '"');
    put_escaped(out, value, special, before);
    buf_put_u8(out, '"');
}

/* ---- a variable in each language ---- */

static void put_sh(struct buf *out, const char *name, struct view value) {
    buf_printf(out, "export %s='", name);
    put_escaped(out, value, "'", "'\\'");
    buf_put_str(out, "'\n");
}

static void put_fish(struct buf *out, const char *name, struct view value) {
    buf_printf(out, "set -gx %s '", name);
    put_escaped(out, value, "'\\", "\\");
    buf_put_str(out, "'\n");
}

static void put_powershell(struct buf *out, const char *name, struct view value) {
    buf_printf(out, "$env:%s = '", name);
    put_escaped(out, value, "'", "'");
    buf_put_str(out, "'\n");
}

static void put_systemd(struct buf *out, const char *name, struct view value) {
    buf_printf(out, "%s=", name);
    put_quoted(out, value, "\"\\`$", "\\");
    buf_put_u8(out, '\n');
}

/* Nothing is special between single quotes, and they cannot be escaped there. */
static void put_dotenv(struct buf *out, const char *name, struct view value) {
    if (view_find(value, '\'') == value.n)
        buf_printf(out, "%s='%.*s'\n", name, VIEW_ARG(value));
    else
        put_systemd(out, name, value);
}

static void put_plain(struct buf *out, const char *name, struct view value) {
    buf_printf(out, "%s=%.*s\n", name, VIEW_ARG(value));
}

static void put_yaml(struct buf *out, const char *name, struct view value) {
    buf_printf(out, "- name: %s\n  value: ", name);
    put_quoted(out, value, "\"\\", "\\");
    buf_put_u8(out, '\n');
}

/* ---- JSON ---- */

static void write_json(const struct environment *e, struct buf *out) {
    buf_put_str(out, "{");
    json_put_text(out, "sandbox", e->sandbox);
    buf_put_str(out, ",\"variables\":{");
    environment_each(e, out, json_put_text);
    buf_put_str(out, "},\"credentials\":{");
    for (size_t i = 0; i < e->n_credentials; i++) {
        char text[ENVIRONMENT_VARIABLE_SIZE];
        if (view_cstr(e->credentials[i].name, text, sizeof text) == 0)
            json_put_text(out, text, e->credentials[i].placeholder);
    }
    buf_put_str(out, "}}\n");
}

/* ---- the table ---- */

static const struct format {
    const char *name, *head;
    environment_put *put; /* NULL: JSON */
    bool comments;
} formats[] = {
    {"sh", "", put_sh, true},
    {"fish", "", put_fish, true},
    {"powershell", "", put_powershell, true},
    {"dotenv", "", put_dotenv, true},
    {"docker", "", put_plain, true},
    {"k8s", "env:\n", put_yaml, true},
    {"github", "", put_plain, false},
    {"systemd", "", put_systemd, true},
    {"json", "", NULL, false},
};

static const struct format *find(const char *name) {
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

/* Only the paths come from outside; most languages have no line ends in a value. */
static bool is_one_line(struct view v) {
    return view_find(v, '\n') == v.n && view_find(v, '\r') == v.n && view_find(v, 0) == v.n;
}

int environment_write(const struct environment *e, const char *name, struct buf *out) {
    const struct format *f = find(name);
    if (!f)
        return ERR_MISSING;
    if (!is_one_line(e->public) || !is_one_line(e->socket))
        return ERR_BAD;
    if (!f->put) {
        write_json(e, out);
        return 0;
    }
    buf_put_str(out, f->head);
    environment_each(e, out, f->put);
    if (f->comments)
        environment_notes(e, out);
    return 0;
}
