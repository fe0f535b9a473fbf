#include "egress/fragments.h"

static bool holds(const struct fragment *f, size_t from, size_t to) {
    return f->from <= from && to <= f->to;
}

static bool overlaps(const struct fragment *a, const struct fragment *b) {
    return a->from < b->to && b->from < a->to;
}

static void take_out(struct fragments *f, size_t i) {
    f->at[i] = f->at[--f->n];
}

void fragments_note(struct fragments *f, uint64_t look, size_t from, size_t to) {
    struct fragment new = {.from = (uint16_t)from, .to = (uint16_t)to};
    if (f->n > FRAGMENTS_MAX)
        return;
    for (size_t i = 0; i < f->n; i++)
        if (holds(&f->at[i], from, to))
            return;
    if (f->look != look)
        f->before = f->n;
    f->look = look;
    for (size_t i = f->before; i < f->n;) {
        const struct fragment *old = &f->at[i];
        if (!overlaps(old, &new)) {
            i++;
            continue;
        }
        new.from = old->from < new.from ? old->from : new.from;
        new.to = old->to > new.to ? old->to : new.to;
        take_out(f, i);
        i = f->before; /* the union may overlap others */
    }
    f->at[f->n++] = new;
}

void fragments_date(struct fragments *f, uint64_t until) {
    for (size_t i = 0; i < f->n; i++)
        if (f->at[i].until == 0)
            f->at[i].until = until;
}

void fragments_forget(struct fragments *f, uint64_t now) {
    for (size_t i = 0; i < f->n;)
        if (f->at[i].until <= now)
            take_out(f, i);
        else
            i++;
    f->before = f->n;
}

uint64_t fragments_last(const struct fragments *f) {
    uint64_t last = 0;
    for (size_t i = 0; i < f->n; i++)
        if (f->at[i].until > last)
            last = f->at[i].until;
    return last;
}
