#include "daemon/config_reader.h"

enum { RIGHTS_MAX = 1024 };

static int read_names(struct config_source *s, struct lexer *l, struct view *out) {
    struct buf names;
    struct token name;
    int err = 0;
    buf_init(&names, POLICY_TEXT_MAX);
    do {
        err = lexer_name(l, "the name of a sandbox", &name);
        if (err == 0 && buf_len(&names))
            buf_put_u8(&names, ' ');
        if (err == 0)
            buf_put(&names, name.text);
    } while (err == 0 && lexer_at(l, TOKEN_WORD));
    if (err == 0) {
        *out = arena_copy(&s->config->arena, buf_view(&names));
        err = buf_ok(&names) && out->p ? 0 : ERR_MEMORY;
    }
    buf_free(&names);
    return err;
}

static int read_right(struct config_source *s, struct lexer *l, const struct token *at,
                      bool group) {
    struct config_right **end = &s->config->attach.rights, *right;
    uint32_t id;
    size_t n = 0;
    if (config_id(l, group, &id) != 0)
        return ERR_BAD;
    for (; *end; end = &(*end)->next, n++)
        if ((*end)->who.group == group && (*end)->who.id == id) {
            errors_add(l->errors, at->at, "the same %s as in line %u", group ? "group" : "user",
                       (*end)->at.line);
            return ERR_BAD;
        }
    if (n == RIGHTS_MAX) {
        errors_add(l->errors, at->at, "more than %d users and groups", RIGHTS_MAX);
        return ERR_BAD;
    }
    right = arena_alloc(&s->config->arena, sizeof *right);
    if (!right)
        return ERR_MEMORY;
    *right = (struct config_right){.who = {.group = group, .id = id}, .at = at->at};
    int err = read_names(s, l, &right->who.names);
    if (err == 0)
        *end = right;
    return err;
}

static int read_uid(void *source, struct lexer *l, const struct token *at) {
    return read_right(source, l, at, false);
}

static int read_gid(void *source, struct lexer *l, const struct token *at) {
    return read_right(source, l, at, true);
}

static int read_mode(void *source, struct lexer *l, const struct token *at) {
    (void)at;
    return config_mode(l, &((struct config_source *)source)->config->attach.mode);
}

int config_attach(void *source, struct lexer *l, const struct token *at) {
    static const struct statement words[] = {
        {"uid", read_uid, false}, {"gid", read_gid, false}, {"mode", read_mode, true}};
    struct config_source *s = source;
    s->config->attach = (struct config_attach){.mode = 0666, .at = at->at};
    int err = config_socket(s, l, &s->config->attach.path);
    if (err == ERR_MEMORY || !lexer_at(l, TOKEN_OPEN))
        return err;
    int block = statements_read(l, words, sizeof words / sizeof *words, "attach", s);
    return block != 0 ? block : err;
}

int config_put_rights(const struct config *c, const struct policy *p, struct buf *out,
                      struct policy_errors *errors) {
    errors_reset(errors);
    for (const struct config_right *right = c->attach.rights; right; right = right->next) {
        config_check_names(right->who.names, right->at, p, errors);
        bundle_put_right(out, &right->who);
    }
    if (errors->total != 0)
        return ERR_BAD;
    return buf_ok(out) ? 0 : ERR_MEMORY;
}
