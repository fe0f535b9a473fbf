#include "policy/idna.h"

#include "base/utf8.h"

#include <idn2.h>

enum { LABEL_BYTES = 256 };

static int refuse(const char **why, const char *text) {
    *why = text;
    return ERR_BAD;
}

/* ---- scripts ---- */

/*
 * Ways of writing, as bits: the characters of a label have one in common. Those of scripts that go with no other
 * are numbered by the table's rows.
 */
#define ANY UINT64_MAX
#define JAPANESE (UINT64_C(1) << 63)
#define KOREAN (UINT64_C(1) << 62)
#define CHINESE (UINT64_C(1) << 61)
#define SCRIPT(n) (UINT64_C(1) << (n))

static const struct {
    uint32_t first, last;
    uint64_t ways;
} scripts[] = {
    {'-', '-', ANY},
    {'0', '9', ANY},
    {'a', 'z', SCRIPT(0)},        /* Latin */
    {0x00b7, 0x00b7, ANY},        /* the middle dot of Catalan */
    {0x00df, 0x00f6, SCRIPT(0)},  /* Latin */
    {0x00f8, 0x02af, SCRIPT(0)},  /* Latin */
    {0x0300, 0x036f, ANY},        /* marks that combine */
    {0x0370, 0x03ff, SCRIPT(1)},  /* Greek */
    {0x0400, 0x052f, SCRIPT(2)},  /* Cyrillic */
    {0x0530, 0x058f, SCRIPT(3)},  /* Armenian */
    {0x0590, 0x05ff, SCRIPT(4)},  /* Hebrew */
    {0x0600, 0x06ff, SCRIPT(5)},  /* Arabic */
    {0x0700, 0x074f, SCRIPT(6)},  /* Syriac */
    {0x0750, 0x077f, SCRIPT(5)},  /* Arabic */
    {0x0780, 0x07bf, SCRIPT(7)},  /* Thaana */
    {0x0900, 0x097f, SCRIPT(8)},  /* Devanagari */
    {0x0980, 0x09ff, SCRIPT(9)},  /* Bengali */
    {0x0a00, 0x0a7f, SCRIPT(10)}, /* Gurmukhi */
    {0x0a80, 0x0aff, SCRIPT(11)}, /* Gujarati */
    {0x0b00, 0x0b7f, SCRIPT(12)}, /* Oriya */
    {0x0b80, 0x0bff, SCRIPT(13)}, /* Tamil */
    {0x0c00, 0x0c7f, SCRIPT(14)}, /* Telugu */
    {0x0c80, 0x0cff, SCRIPT(15)}, /* Kannada */
    {0x0d00, 0x0d7f, SCRIPT(16)}, /* Malayalam */
    {0x0d80, 0x0dff, SCRIPT(17)}, /* Sinhala */
    {0x0e00, 0x0e7f, SCRIPT(18)}, /* Thai */
    {0x0e80, 0x0eff, SCRIPT(19)}, /* Lao */
    {0x0f00, 0x0fff, SCRIPT(20)}, /* Tibetan */
    {0x1000, 0x109f, SCRIPT(21)}, /* Myanmar */
    {0x10d0, 0x10ff, SCRIPT(22)}, /* Georgian */
    {0x1200, 0x139f, SCRIPT(23)}, /* Ethiopic */
    {0x1780, 0x17ff, SCRIPT(24)}, /* Khmer */
    {0x1800, 0x18af, SCRIPT(25)}, /* Mongolian */
    {0x1e00, 0x1eff, SCRIPT(0)},  /* Latin */
    {0x1f00, 0x1fff, SCRIPT(1)},  /* Greek */
    {0x3005, 0x3007, JAPANESE | KOREAN | CHINESE},
    {0x3040, 0x30ff, JAPANESE}, /* kana */
    {0x3100, 0x312f, CHINESE},  /* bopomofo */
    {0x3400, 0x4dbf, JAPANESE | KOREAN | CHINESE},
    {0x4e00, 0x9fff, JAPANESE | KOREAN | CHINESE},
    {0xac00, 0xd7a3, KOREAN}, /* hangul */
    {0x20000, 0x323af, JAPANESE | KOREAN | CHINESE},
};

static uint64_t ways_of(uint32_t point) {
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (point >= scripts[i].first && point <= scripts[i].last)
            return scripts[i].ways;
    return 0;
}

/* The next character of well-formed UTF-8. */
static uint32_t take_point(struct view *v) {
    uint8_t first = v->p[0];
    size_t n = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    uint32_t point = n == 1 ? first : first & (0x7fu >> n);
    for (size_t i = 1; i < n; i++)
        point = point << 6 | (v->p[i] & 0x3f);
    *v = view_skip(*v, n);
    return point;
}

static int check_scripts(struct view label, const char **why) {
    uint64_t ways = ANY;
    while (label.n > 0) {
        uint64_t here = ways_of(take_point(&label));
        if (here == 0)
            return refuse(
                why,
                "a label has an upper-case letter, a sign, or a letter of a script that is not "
                "known here; write it as an A-label (xn--)");
        if ((ways & here) == 0)
            return refuse(why, "a label mixes scripts, so that it reads like another name");
        ways &= here;
    }
    return 0;
}

/* ---- labels ---- */

static bool is_ascii(struct view v) {
    for (size_t i = 0; i < v.n; i++)
        if (v.p[i] >= 0x80)
            return false;
    return true;
}

static bool is_a_label(struct view v) {
    return view_equal_nocase(view_head(v, 4), VIEW("xn--"));
}

/* IDNA 2008 as it is, without the mapping of UTS 46: what is meant is written. */
static int convert(const char *label, struct buf *out, const char **why) {
    uint8_t *converted = NULL;
    int rc = idn2_lookup_u8((const uint8_t *)label, &converted, IDN2_NO_TR46);
    if (rc == IDN2_OK)
        buf_put_str(out, (const char *)converted);
    else
        *why = idn2_strerror(rc);
    idn2_free(converted);
    return rc == IDN2_OK ? 0 : ERR_BAD;
}

static int put_label(struct view label, struct buf *out, const char **why) {
    char text[LABEL_BYTES];
    if (is_ascii(label) && !is_a_label(label)) {
        buf_put(out, label);
        return 0;
    }
    if (view_cstr(label, text, sizeof text) != 0)
        return refuse(why, "a label is too long");
    if (is_a_label(label)) {
        for (size_t i = 0; i < label.n; i++)
            text[i] = (char)to_lower(label.p[i]);
    } else if (!utf8_is_text(label)) {
        return refuse(why, "a label is not UTF-8");
    } else if (check_scripts(label, why) != 0) {
        return ERR_BAD;
    }
    return convert(text, out, why);
}

int idna_to_ascii(struct view name, struct buf *out, const char **why) {
    for (bool more = true; more;) {
        more = view_find(name, '.') < name.n;
        if (put_label(view_cut(&name, '.'), out, why) != 0)
            return ERR_BAD;
        if (more)
            buf_put_u8(out, '.');
    }
    return buf_ok(out) ? 0 : refuse(why, "the name is too long");
}
