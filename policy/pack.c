#include "policy/pack.h"

/* ---- packing ---- */

static int read_and_keep(void *ctx, const char *from, struct view path, struct buf *out, char *name,
                         size_t size, const char **why) {
    struct packer *p = ctx;
    int err = p->inner->read(p->inner->ctx, from, path, out, name, size, why);
    if (err != 0)
        return err;
    p->any = true;
    buf_put_block(p->out, view_str(name));
    buf_put_block(p->out, buf_view(out));
    *why = "all files together are too long";
    return buf_ok(p->out) ? 0 : ERR_LIMIT;
}

struct policy_files pack_begin(struct packer *p, const struct policy_files *inner, struct view text,
                               struct buf *out) {
    *p = (struct packer){.inner = inner, .out = out};
    buf_put_u8(out, 0);
    buf_put_block(out, text);
    return (struct policy_files){read_and_keep, p};
}

void pack_end(const struct packer *p, struct view text) {
    if (p->any)
        return;
    buf_reset(p->out);
    buf_put(p->out, text);
}

/* ---- unpacking ---- */

static int read_next(void *ctx, const char *from, struct view path, struct buf *out, char *name,
                     size_t size, const char **why) {
    struct unpacker *p = ctx;
    (void)from;
    (void)path;
    struct view known = read_block(&p->rest, size - 1);
    struct view text = read_block(&p->rest, POLICY_TEXT_MAX);
    *why = "it is not in the packed text";
    if (p->rest.bad || view_cstr(known, name, size) != 0)
        return ERR_MISSING;
    buf_put(out, text);
    return buf_ok(out) ? 0 : ERR_MEMORY;
}

bool pack_is(struct view text) {
    return text.n > 0 && text.p[0] == 0;
}

struct policy_files unpack_begin(struct unpacker *p, struct view packed, struct view *first) {
    p->rest = reader_of(view_skip(packed, 1));
    *first = read_block(&p->rest, POLICY_TEXT_MAX);
    return (struct policy_files){read_next, p};
}

bool unpack_is_whole(const struct unpacker *p) {
    return !p->rest.bad;
}
