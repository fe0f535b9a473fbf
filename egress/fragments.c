#include "egress/fragments.h"

void fragments_note(struct fragments *f, size_t from, size_t to) {
    for (size_t i = 0; i < f->n; i++)
        if (f->from[i] <= from && to <= f->to[i])
            return;
    if (f->n > FRAGMENTS_MAX)
        return;
    f->from[f->n] = (uint16_t)from;
    f->to[f->n] = (uint16_t)to;
    f->n++;
}
