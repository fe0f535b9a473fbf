#include "daemon/config_reader.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

/*
 * The files themselves: what the system's name services ask besides (LDAP, by a library of its own) would be code and answers
 * from a network in the parent.
 */
static const char *const files[] = {"/etc/passwd", "/etc/group"};

static bool find_user(FILE *f, struct view name, uint32_t *out) {
    const struct passwd *p;
    while ((p = fgetpwent(f)) && !view_equal(view_str(p->pw_name), name))
        ;
    if (p)
        *out = p->pw_uid;
    return p != NULL;
}

static bool find_group(FILE *f, struct view name, uint32_t *out) {
    const struct group *g;
    while ((g = fgetgrent(f)) && !view_equal(view_str(g->gr_name), name))
        ;
    if (g)
        *out = g->gr_gid;
    return g != NULL;
}

static int find(struct lexer *l, const struct token *name, bool group, uint32_t *out) {
    const char *kind = group ? "group" : "user";
    FILE *f = fopen(files[group], "re");
    if (!f) {
        errors_add(l->errors, name->at, "the %s '%.*s' is not looked up: %s: %s", kind,
                   WORD_ARG(name->text), files[group], strerror(errno));
        return ERR_BAD;
    }
    bool found = (group ? find_group : find_user)(f, name->text, out) && *out != NOBODY;
    fclose(f);
    if (!found)
        errors_add(l->errors, name->at,
                   "there is no %s '%.*s' in %s: one of another directory is written as a number",
                   kind, WORD_ARG(name->text), files[group]);
    return found ? 0 : ERR_BAD;
}

int config_id(struct lexer *l, bool group, uint32_t *out) {
    uint64_t number;
    struct view word = l->token.text;
    bool named = lexer_at(l, TOKEN_WORD) && word.n > 0 && (is_alpha(word.p[0]) || word.p[0] == '_');
    if (named) {
        struct token name = lexer_take(l);
        return find(l, &name, group, out);
    }
    int err = lexer_number(l, group ? "a group's name or id" : "a user's name or id", 0, NOBODY - 1,
                           &number);
    if (err == 0)
        *out = (uint32_t)number;
    return err;
}
