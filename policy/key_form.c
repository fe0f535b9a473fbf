#include "policy/key_form.h"

enum { RUN = 16 };

#define BEGINNING(text)                                                                            \
    { (const uint8_t *)(text), sizeof(text) - 1 }

static const struct view beginnings[] = {
    /* models */
    BEGINNING("sk-"),
    BEGINNING("hf_"),
    BEGINNING("gsk_"),
    BEGINNING("xai-"),
    BEGINNING("r8_"),
    BEGINNING("pplx-"),
    BEGINNING("nvapi-"),
    BEGINNING("tvly-"),
    /* forges and registries */
    BEGINNING("ghp_"),
    BEGINNING("gho_"),
    BEGINNING("ghu_"),
    BEGINNING("ghs_"),
    BEGINNING("ghr_"),
    BEGINNING("github_pat_"),
    BEGINNING("glpat-"),
    BEGINNING("gldt-"),
    BEGINNING("glrt-"),
    BEGINNING("glptt-"),
    BEGINNING("npm_"),
    BEGINNING("pypi-"),
    BEGINNING("rubygems_"),
    BEGINNING("dckr_pat_"),
    BEGINNING("ATATT3x"),
    BEGINNING("ATCTT3x"),
    /* clouds and what runs in them */
    BEGINNING("AKIA"),
    BEGINNING("ASIA"),
    BEGINNING("AIza"),
    BEGINNING("ya29."),
    BEGINNING("GOCSPX-"),
    BEGINNING("dop_v1_"),
    BEGINNING("hvs."),
    BEGINNING("hvb."),
    BEGINNING("pul-"),
    BEGINNING("tskey-"),
    BEGINNING("glsa_"),
    BEGINNING("glc_"),
    BEGINNING("sntrys_"),
    BEGINNING("sntryu_"),
    BEGINNING("NRAK-"),
    BEGINNING("PMAK-"),
    BEGINNING("sbp_"),
    /* payment, shops, mail, chat, offices */
    BEGINNING("sk_live_"),
    BEGINNING("sk_test_"),
    BEGINNING("rk_live_"),
    BEGINNING("rk_test_"),
    BEGINNING("whsec_"),
    BEGINNING("sq0"),
    BEGINNING("shpat_"),
    BEGINNING("shpss_"),
    BEGINNING("SG."),
    BEGINNING("xoxb-"),
    BEGINNING("xoxp-"),
    BEGINNING("xoxa-"),
    BEGINNING("xoxs-"),
    BEGINNING("xapp-"),
    BEGINNING("figd_"),
    BEGINNING("ntn_"),
    BEGINNING("lin_api_"),
};

static bool is_key_byte(uint8_t c) {
    return is_alnum(c) || c == '-' || c == '_' || c == '.';
}

/* Letters and digits, enough of them in a row and of both kinds. */
static bool has_run(struct view v) {
    size_t n = 0, digits = 0;
    for (size_t i = 0; i < v.n; i++) {
        n = is_alnum(v.p[i]) ? n + 1 : 0;
        digits = n == 0 ? 0 : digits + is_digit(v.p[i]);
        if (n >= RUN && digits > 0 && digits < n)
            return true;
    }
    return false;
}

/* "eyJ" is how JSON's first two bytes begin in base64. */
static bool is_jwt(struct view v) {
    struct view rest = v, header = view_cut(&rest, '.'), claims = view_cut(&rest, '.');
    return view_starts(header, VIEW("eyJ")) && header.n >= RUN && claims.n >= RUN && rest.n > 0;
}

static bool is_key(struct view v) {
    if (v.n < KEY_FORM_MIN)
        return false;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (v.p[0] == beginnings[i].p[0] && view_starts(v, beginnings[i]))
            return has_run(view_skip(v, beginnings[i].n));
    return is_jwt(v);
}

/* The two digits behind a '%' may be of a byte that is none of a key, or be its own. */
static bool is_behind_encoded(struct view v, size_t from, struct view word) {
    return from > 0 && v.p[from - 1] == '%' && word.n > 2 && hex_value(word.p[0]) >= 0 &&
           hex_value(word.p[1]) >= 0;
}

bool key_form_inside(struct view v, struct view *key) {
    for (size_t from = 0, to; from + KEY_FORM_MIN <= v.n; from = to + 1) {
        for (to = from; to < v.n && is_key_byte(v.p[to]);)
            to++;
        *key = view_slice(v, from, to);
        if (is_key(*key))
            return true;
        if (!is_behind_encoded(v, from, *key))
            continue;
        *key = view_skip(*key, 2);
        if (is_key(*key))
            return true;
    }
    return false;
}
