/* Placeholders: made, told from near misses, and found in every spelling and at every cut (theme PH). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "policy/placeholder.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static char made[PLACEHOLDER_SIZE];

/* A placeholder that depends on seed only. */
static struct view make(const char *prefix, uint8_t seed) {
    uint8_t random[32];
    for (size_t i = 0; i < sizeof random; i++)
        random[i] = (uint8_t)(seed + 7 * i * i + 13 * i);
    assert_int_equal(placeholder_make(view_str(prefix), random, made), 0);
    return view_str(made);
}

static struct view core_of(struct view placeholder) {
    return view_skip(placeholder, placeholder.n - PLACEHOLDER_CORE_SIZE);
}

/* ---- making and telling ---- */

static void ph_12_a_placeholder_has_the_prefix_of_the_real_key(void **state) {
    static const char *const prefixes[] = {"",          "sk-ant-api03-", "ghp_",
                                           "xoxb-1.2-", "123456:",       "AKIA"};
    (void)state;
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        struct view p = make(prefixes[i], (uint8_t)i), prefix = view_str(prefixes[i]);
        assert_int_equal(p.n, prefix.n + PLACEHOLDER_CORE_SIZE);
        assert_true(view_starts(p, prefix));
        assert_true(view_starts(view_skip(p, prefix.n), VIEW("exeat")));
        assert_true(placeholder_is(p));
        assert_true(placeholder_is_core(core_of(p)));
    }
}

/* The check characters are the CRC-32 (IEEE) of the random ones; computed once with another program. */
static void the_form_does_not_change_between_versions(void **state) {
    uint8_t random[32] = {0};
    (void)state;
    assert_int_equal(placeholder_make(VIEW("k-"), random, made), 0);
    assert_string_equal(made, "k-exeat00000000000000000000000003KOfzi");
    for (size_t i = 0; i < sizeof random; i++)
        random[i] = (uint8_t)(i + 1);
    assert_int_equal(placeholder_make(VIEW(""), random, made), 0);
    assert_string_equal(made, "exeatonqEdg8bm4QqWagKlFSNsr5ym4ZWutV");
}

static void other_prefixes_are_refused(void **state) {
    static const char *const prefixes[] = {"a b", "a/",  "\"",    "a+",       "\xc3\xbc",
                                           "a\n", "%41", "exeat", "my-exeat-"};
    uint8_t random[32] = {0};
    char longest[PLACEHOLDER_PREFIX_MAX + 1];
    (void)state;
    for (size_t i = 0; i < COUNT(prefixes); i++)
        assert_int_equal(placeholder_make(view_str(prefixes[i]), random, made), ERR_BAD);
    memset(longest, 'p', sizeof longest);
    assert_int_equal(placeholder_make(view_of(longest, sizeof longest), random, made), ERR_BAD);
    assert_int_equal(placeholder_make(view_of(longest, sizeof longest - 1), random, made), 0);
    assert_int_equal(strlen(made), PLACEHOLDER_SIZE - 1);
    assert_true(placeholder_is(view_str(made)));
}

static void xs_05_each_random_byte_matters(void **state) {
    uint8_t random[32];
    char first[PLACEHOLDER_SIZE];
    (void)state;
    memset(random, 0x5a, sizeof random);
    assert_int_equal(placeholder_make(VIEW(""), random, first), 0);
    for (size_t i = 16; i < sizeof random; i++) {
        random[i] ^= 1;
        assert_int_equal(placeholder_make(VIEW(""), random, made), 0);
        assert_string_not_equal(first, made);
        random[i] ^= 1;
    }
}

static void ph_02_a_core_alone_is_inside_and_nothing_shorter(void **state) {
    struct view core = make("", 3);
    (void)state;
    assert_int_equal(core.n, PLACEHOLDER_CORE_SIZE);
    assert_true(placeholder_inside(core));
    assert_false(placeholder_inside(view_head(core, core.n - 1)));
    assert_false(placeholder_inside(view_skip(core, 1)));
}

static void ph_11_near_misses_are_none(void **state) {
    char text[PLACEHOLDER_SIZE + 8];
    struct view p = make("sk-", 1);
    (void)state;
    for (size_t i = 3; i < p.n; i++) { /* any one character changed */
        memcpy(text, p.p, p.n);
        text[i] = text[i] == 'Q' ? 'R' : 'Q';
        assert_false(placeholder_is(view_of(text, p.n)));
        assert_false(placeholder_inside(view_of(text, p.n)));
    }
    for (size_t n = 0; n < p.n; n++) /* cut at the end */
        assert_false(placeholder_is(view_head(p, n)));
    for (size_t n = 4; n < p.n; n++) /* cut at the front, into the core */
        assert_false(placeholder_is(view_skip(p, n)));
    memcpy(text, p.p, p.n);
    text[p.n] = 'A';
    assert_false(placeholder_is(view_of(text, p.n + 1)));
    for (size_t i = 0; i < p.n; i++)
        text[i] = (char)(text[i] >= 'a' && text[i] <= 'z' ? text[i] - 32 : text[i]);
    assert_false(placeholder_is(view_of(text, p.n)));
    assert_false(placeholder_is(VIEW("")));
}

static void ph_10_a_placeholder_in_a_placeholders_prefix_is_none(void **state) {
    char text[2 * PLACEHOLDER_SIZE];
    struct view p = make("", 2);
    (void)state;
    memcpy(text, p.p, p.n);
    memcpy(text + p.n, p.p, p.n);
    assert_false(placeholder_is(view_of(text, 2 * p.n)));
    assert_true(placeholder_inside(view_of(text, 2 * p.n)));
}

/* ---- spellings ---- */

typedef void spell(struct view v, struct buf *to);

static void as_it_is(struct view v, struct buf *to) {
    buf_put(to, v);
}

static void hexadecimal(struct view v, struct buf *to) {
    for (size_t i = 0; i < v.n; i++)
        buf_printf(to, "%02x", v.p[i]);
}

static void hexadecimal_upper(struct view v, struct buf *to) {
    for (size_t i = 0; i < v.n; i++)
        buf_printf(to, "%02X", v.p[i]);
}

static void percent(struct view v, struct buf *to) {
    for (size_t i = 0; i < v.n; i++)
        buf_printf(to, "%%%02x", v.p[i]);
}

static void percent_mixed(struct view v, struct buf *to) {
    for (size_t i = 0; i < v.n; i++)
        buf_printf(to, i % 3 ? "%c" : "%%%02X", v.p[i]);
}

static void percent_last(struct view v, struct buf *to) {
    buf_put(to, view_head(v, v.n - 1));
    buf_printf(to, "%%%02x", v.p[v.n - 1]);
}

static void percent_twice(struct view v, struct buf *to) {
    for (size_t i = 0; i < v.n; i++)
        buf_printf(to, "%%25%02x", v.p[i]);
}

static void percent_twice_whole(struct view v, struct buf *to) {
    for (size_t i = 0; i < v.n; i++) {
        char digits[3];
        hex_encode(view_of(v.p + i, 1), digits);
        buf_printf(to, "%%25%%%02x%%%02x", digits[0], digits[1]);
    }
}

static void json(struct view v, struct buf *to) {
    for (size_t i = 0; i < v.n; i++)
        buf_printf(to, "\\u00%02x", v.p[i]);
}

static void json_mixed(struct view v, struct buf *to) {
    for (size_t i = 0; i < v.n; i++)
        buf_printf(to, i % 5 == 4 ? "\\u00%02X" : "%c", v.p[i]);
}

static void json_in_json(struct view v, struct buf *to) {
    for (size_t i = 0; i < v.n; i++)
        buf_printf(to, "\\\\u00%02x", v.p[i]);
}

static void html_decimal(struct view v, struct buf *to) {
    for (size_t i = 0; i < v.n; i++)
        buf_printf(to, "&#%u;", v.p[i]);
}

static void html_padded(struct view v, struct buf *to) {
    for (size_t i = 0; i < v.n; i++)
        buf_printf(to, "&#%07u;", v.p[i]);
}

static void html_hexadecimal(struct view v, struct buf *to) {
    for (size_t i = 0; i < v.n; i++)
        buf_printf(to, i % 2 ? "&#x%X;" : "&#X%04x;", v.p[i]);
}

static void html_open(struct view v, struct buf *to) {
    for (size_t i = 0; i < v.n; i++)
        buf_printf(to, "&#%u", v.p[i]);
}

static void utf_16_little(struct view v, struct buf *to) {
    for (size_t i = 0; i < v.n; i++) {
        buf_put_u8(to, v.p[i]);
        buf_put_u8(to, 0);
    }
}

static void utf_16_big(struct view v, struct buf *to) {
    for (size_t i = 0; i < v.n; i++)
        buf_put_u16(to, v.p[i]);
}

static void base64_behind(size_t before, struct view v, struct buf *to) {
    struct buf plain;
    buf_init(&plain, 1024);
    buf_put(&plain, view_head(VIEW("\xff{'key':'"), before));
    buf_put(&plain, v);
    buf_put_str(&plain, "\xfe!");
    base64_encode(buf_view(&plain), to);
    buf_free(&plain);
}

static void base64_at_0(struct view v, struct buf *to) {
    base64_behind(3, v, to);
}

static void base64_at_1(struct view v, struct buf *to) {
    base64_behind(1, v, to);
}

static void base64_at_2(struct view v, struct buf *to) {
    base64_behind(8, v, to);
}

static void base64_url(struct view v, struct buf *to) {
    base64_behind(4, v, to);
    for (size_t i = to->pos; i < to->n; i++)
        to->p[i] = to->p[i] == '+' ? '-' : to->p[i] == '/' ? '_' : to->p[i];
}

static const struct {
    const char *name;
    spell *spell;
} spellings[] = {
    {"as it is", as_it_is},
    {"hexadecimal", hexadecimal},
    {"hexadecimal, upper", hexadecimal_upper},
    {"percent", percent},
    {"percent, mixed", percent_mixed},
    {"percent, last", percent_last},
    {"percent, twice", percent_twice},
    {"percent, twice and whole", percent_twice_whole},
    {"JSON", json},
    {"JSON, mixed", json_mixed},
    {"JSON in JSON", json_in_json},
    {"HTML, decimal", html_decimal},
    {"HTML, padded", html_padded},
    {"HTML, hexadecimal", html_hexadecimal},
    {"HTML, open", html_open},
    {"UTF-16, little", utf_16_little},
    {"UTF-16, big", utf_16_big},
    {"base64 at 0", base64_at_0},
    {"base64 at 1", base64_at_1},
    {"base64 at 2", base64_at_2},
    {"base64url", base64_url},
};

static void ph_02_a_name_has_lost_the_case_of_its_letters(void **state) {
    (void)state;
    char p[PLACEHOLDER_SIZE], name[128];
    uint8_t random[32] = {7, 1, 9};
    assert_int_equal(placeholder_make(VIEW("sk-"), random, p), 0);
    for (char *c = p; *c; c++)
        *c = (char)to_lower((uint8_t)*c);
    snprintf(name, sizeof name, "x-%s-y", p);
    assert_false(placeholder_inside(view_str(name)));
    assert_true(placeholder_inside_name(view_str(name)));
    assert_true(placeholder_inside_name(view_str(p)));
    assert_false(placeholder_inside_name(view_head(view_str(p), strlen(p) - 1)));
    name[20] = '-';
    assert_false(placeholder_inside_name(view_str(name)));
    assert_false(placeholder_inside_name(VIEW("exeat")));
    assert_false(placeholder_inside_name(VIEW("x-exeats-and-other-names-of-some-length")));
}

static void ph_07_every_spelling_is_found(void **state) {
    static const char *const around[][2] = {
        {"", ""},   {"{\"key\": \"", "\"}"}, {"a=1&b=", "&c=3"},
        {" ", " "}, {"%20", "%20"},          {"\\\"", "\\n"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(spellings); i++)
        for (size_t k = 0; k < COUNT(around); k++) {
            struct buf text;
            buf_init(&text, 4096);
            buf_put_str(&text, around[k][0]);
            spellings[i].spell(make("sk-", (uint8_t)(i * 11 + k)), &text);
            buf_put_str(&text, around[k][1]);
            if (!placeholder_inside(buf_view(&text)))
                fail_msg("not found: %s, between '%s' and '%s'", spellings[i].name, around[k][0],
                         around[k][1]);
            buf_free(&text);
        }
}

static void ph_07_one_kind_of_escape_does_not_hide_another(void **state) {
    static const char *const before[] = {"%4", "%2",    "%25%36", "\\u004", "&#x4",
                                         "%",  "\\u00", "%25",    "&#1"};
    (void)state;
    for (size_t i = 0; i < COUNT(before); i++) {
        struct buf text;
        struct view core = core_of(make("", (uint8_t)i));
        buf_init(&text, 1024);
        buf_put_str(&text, before[i]);
        if (i % 3)
            buf_printf(&text, "%%%02x", core.p[0]);
        buf_put(&text, view_slice(core, i % 3 ? 1 : 0, 20));
        buf_printf(&text, i % 2 ? "%%%02x" : "\\u00%02x", core.p[20]);
        buf_put(&text, view_skip(core, 21));
        if (!placeholder_inside(buf_view(&text)))
            fail_msg("not found behind '%s'", before[i]);
        buf_free(&text);
    }
}

static void ph_07_near_misses_are_found_in_no_spelling(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(spellings); i++) {
        struct buf text;
        struct view p = make("sk-", (uint8_t)i);
        made[p.n - 9] = made[p.n - 9] == 'x' ? 'y' : 'x';
        buf_init(&text, 4096);
        spellings[i].spell(p, &text);
        if (placeholder_inside(buf_view(&text)))
            fail_msg("found: %s", spellings[i].name);
        buf_free(&text);
    }
}

static void a_placeholder_is_found_inside_a_long_run_of_letters(void **state) {
    char text[400];
    struct view core = core_of(make("", 9));
    (void)state;
    for (size_t at = 0; at + core.n <= sizeof text; at += 7) {
        memset(text, 'x', sizeof text);
        memcpy(text + at, core.p, core.n);
        assert_true(placeholder_inside(view_of(text, sizeof text)));
    }
    memcpy(text, "exeatexeatexeat", 15);
    memcpy(text + 15, core.p, core.n);
    assert_true(placeholder_inside(view_of(text, 15 + core.n)));
}

static void ph_07_base64_in_lines_is_found_wherever_the_line_ends(void **state) {
    struct buf coded, lines;
    (void)state;
    for (size_t before = 30; before < 33; before++)
        for (size_t width = 16; width <= 76; width++)
            for (int crlf = 0; crlf < 2; crlf++) {
                struct buf plain;
                buf_init(&plain, 1024);
                buf_put(&plain,
                        view_head(VIEW("the quick brown fox jumps over the lazy dog"), before));
                buf_put(&plain, make("sk-", (uint8_t)width));
                buf_put_str(&plain, " and more of it");
                buf_init(&coded, 1024);
                buf_init(&lines, 1024);
                base64_encode(buf_view(&plain), &coded);
                struct view rest = buf_view(&coded);
                while (rest.n > 0) {
                    buf_put(&lines, view_head(rest, width));
                    buf_put_str(&lines, crlf ? "\r\n" : "\n");
                    rest = view_skip(rest, width);
                }
                if (!placeholder_inside(buf_view(&lines)))
                    fail_msg("behind %zu bytes, lines of %zu", before, width);
                buf_free(&plain);
                buf_free(&coded);
                buf_free(&lines);
            }
}

static void ph_07_a_line_end_behind_few_characters_of_base64_hides_nothing(void **state) {
    static const char *const ends[] = {"\n", "\r\n", "\n\n", "\r\n\r\n\r\n\r\n", "\n\r\n\n\n\n\n"};
    static const char *const before[] = {"", "\"", "key=", "text: ", "\n", "abcdefgh\n"};
    (void)state;
    for (size_t shift = 0; shift < 3; shift++)
        for (size_t at = 1; at < 6; at++)
            for (size_t e = 0; e < COUNT(ends); e++)
                for (size_t b = 0; b < COUNT(before); b++) {
                    struct buf plain, coded, text;
                    buf_init(&plain, 256);
                    buf_init(&coded, 256);
                    buf_init(&text, 512);
                    buf_put(&plain, view_head(VIEW("::"), shift));
                    buf_put(&plain, make("", (uint8_t)at));
                    base64_encode(buf_view(&plain), &coded);
                    buf_put_str(&text, before[b]);
                    buf_put(&text, view_head(buf_view(&coded), at));
                    buf_put_str(&text, ends[e]);
                    buf_put(&text, view_skip(buf_view(&coded), at));
                    if (!placeholder_inside(buf_view(&text)))
                        fail_msg("shift %zu, cut %zu, end %zu, behind '%s'", shift, at, e,
                                 before[b]);
                    buf_free(&plain);
                    buf_free(&coded);
                    buf_free(&text);
                }
}

static double seconds(clockid_t id) {
    struct timespec t;
    assert_int_equal(clock_gettime(id, &t), 0);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A scan that is quadratic in any of these takes minutes to hours; a linear one, a fraction of a second. */
static void rs_a_scan_takes_time_in_proportion_to_the_bytes_whatever_they_are(void **state) {
    static const char *const units[] = {
        "\n",       "\r",          "\r\n",      "\n\r\r",  "a\n",       "a\r\n",    "ZX\n",
        "ZXhlYX\n", "V4Z\n",       "a\r\r\r\n", "%",       "%65",       "%65%78",   "%25",
        "%2565",    "\\",          "\\u",       "\\u0065", "\\\\u0065", "&#",       "&#101;",
        "&#x65",    "&",           "e",         "ex",      "exeat",     "exeat%65", "6578656174",
        "e%78eat%", "leGVhdA\r\n", "e\0x\0e\0",
    };
    static uint8_t bytes[4 << 20];
    (void)state;
    for (size_t i = 0; i < COUNT(units); i++) {
        size_t n = i + 1 < COUNT(units) ? strlen(units[i]) : 6;
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)units[i][k % n];
        double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
        assert_false(placeholder_inside(view_of(bytes, sizeof bytes)));
        double took = seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
        if (took > 20)
            fail_msg("unit %zu: %.1f s", i, took);
    }
}

static void ordinary_bytes_are_not_taken_for_placeholders(void **state) {
    static uint8_t bytes[1 << 16];
    static const char *const texts[] = {
        "",
        "e",
        "exeat",
        "the exeat was granted",
        "exeat exeat exeat exeat exeat exeat exeat exeat",
        "%65%78%65%61%74",
        "%",
        "\\u",
        "&#",
        "&#x",
        "\\",
        "&",
        "100%",
        "%2",
        "6578656174",
        "ZXhlYXQ=",
        "a%2Fb%252Fc&amp;&#8217;\\n\\\"\\u00e9",
        "\n",
        "\r\n",
        "aaaaaaaa\n",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++)
        assert_false(placeholder_inside(view_str(texts[i])));
    srand(99);
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] =
                round % 2 ? (uint8_t)rand() : (uint8_t) "exatZXhlY%25\\u0065&#101;"[rand() % 24];
        assert_false(placeholder_inside(view_of(bytes, sizeof bytes)));
    }
}

/* ---- streams ---- */

/* What a careful caller does: holds back what it is told to, and stops when one was found. */
struct passed {
    struct placeholder_stream s;
    struct buf sent, kept;
    bool found;
};

static void pass(struct passed *p, struct view piece) {
    if (p->found)
        return;
    if (placeholder_stream_feed(&p->s, piece)) {
        p->found = true;
        return;
    }
    buf_put(&p->kept, piece);
    size_t held = placeholder_stream_held(&p->s);
    if (held > buf_len(&p->kept))
        held = buf_len(&p->kept);
    buf_put(&p->sent, view_head(buf_view(&p->kept), buf_len(&p->kept) - held));
    buf_consume(&p->kept, buf_len(&p->kept) - held);
}

static void pass_init(struct passed *p) {
    placeholder_stream_init(&p->s);
    buf_init(&p->sent, 1 << 20);
    buf_init(&p->kept, 1 << 20);
    p->found = false;
}

static void pass_free(struct passed *p) {
    buf_free(&p->sent);
    buf_free(&p->kept);
}

static void spell_amid_text(size_t i, struct buf *text) {
    buf_init(text, 8192);
    for (int k = 0; k < 20; k++)
        buf_put_str(text, "Lorem ipsum dolor sit amet: ");
    spellings[i].spell(core_of(make("", (uint8_t)i)), text);
    buf_put_str(text, "\" and what follows");
}

static void ph_06_the_verdict_is_the_same_at_every_cut(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(spellings); i++) {
        struct buf text;
        spell_amid_text(i, &text);
        struct view v = buf_view(&text);
        for (size_t cut = 0; cut <= v.n; cut++) {
            struct passed p;
            pass_init(&p);
            pass(&p, view_head(v, cut));
            pass(&p, view_skip(v, cut));
            if (!p.found)
                fail_msg("%s cut at %zu", spellings[i].name, cut);
            pass_free(&p);
        }
        buf_free(&text);
    }
}

static void ph_06_pieces_of_every_size_give_the_same_verdict(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(spellings); i++) {
        struct buf text;
        spell_amid_text(i, &text);
        for (size_t size = 1; size < 700; size += size < 8 ? 1 : 37) {
            struct passed p;
            pass_init(&p);
            for (struct view rest = buf_view(&text); rest.n > 0; rest = view_skip(rest, size))
                pass(&p, view_head(rest, size));
            if (!p.found)
                fail_msg("%s in pieces of %zu", spellings[i].name, size);
            pass_free(&p);
        }
        buf_free(&text);
    }
}

/* Whichever way it is cut, no random character may leave before the placeholder is known as one. */
static void nothing_behind_the_marker_is_passed_on_early(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(spellings); i++) {
        struct buf text, marker;
        spell_amid_text(i, &text);
        buf_init(&marker, 1024);
        spellings[i].spell(VIEW("exeat"), &marker);
        size_t allowed = 20 * 28 + buf_len(&marker);
        for (size_t size = 1; size < 60; size++) {
            struct passed p;
            pass_init(&p);
            for (struct view rest = buf_view(&text); rest.n > 0; rest = view_skip(rest, size))
                pass(&p, view_head(rest, size));
            assert_true(p.found);
            if (buf_len(&p.sent) > allowed)
                fail_msg("%s in pieces of %zu: %zu bytes too many", spellings[i].name, size,
                         buf_len(&p.sent) - allowed);
            pass_free(&p);
        }
        buf_free(&text);
        buf_free(&marker);
    }
}

static void what_is_held_is_let_go_when_it_is_none(void **state) {
    static const char *const texts[] = {
        "an exeat is a leave",    "exeat0123456789-", "exeat012345678901234567890123456789 ",
        "%65%78%65%61%74%41%42 ", "6578656174xx",     "e\\u0078eatABC\"",
    };
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct passed p;
        struct view v = view_str(texts[i]);
        pass_init(&p);
        for (size_t k = 0; k < v.n; k++)
            pass(&p, view_slice(v, k, k + 1));
        assert_false(p.found);
        assert_int_equal(placeholder_stream_held(&p.s), 0);
        assert_true(view_equal(buf_view(&p.sent), v));
        pass_free(&p);
    }
}

static void held_counts_from_the_beginning_of_the_marker(void **state) {
    static const struct {
        const char *text;
        size_t held;
    } cases[] = {
        {"", 0},
        {"text e", 0},
        {"text exea", 0},
        {"text exeat", 5},
        {"exeat12", 7},
        {"exeat12 ", 0},
        {"exeat12%4", 9},
        {"exeat12%41", 10},
        {"exeat12&#6", 10},
        {"exeat12&#10;", 0},
        {"exeat12\\u00", 11},
        {"6578656174", 10},
        {"657865617", 0},
        {"ZXhlYX", 0},
        {"ZXhlYXQw", 8},
        {"100%", 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct placeholder_stream s;
        placeholder_stream_init(&s);
        assert_false(placeholder_stream_feed(&s, view_str(cases[i].text)));
        if (placeholder_stream_held(&s) != cases[i].held)
            fail_msg("'%s': %zu", cases[i].text, placeholder_stream_held(&s));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ph_12_a_placeholder_has_the_prefix_of_the_real_key),
        cmocka_unit_test(the_form_does_not_change_between_versions),
        cmocka_unit_test(other_prefixes_are_refused),
        cmocka_unit_test(xs_05_each_random_byte_matters),
        cmocka_unit_test(ph_02_a_core_alone_is_inside_and_nothing_shorter),
        cmocka_unit_test(ph_11_near_misses_are_none),
        cmocka_unit_test(ph_10_a_placeholder_in_a_placeholders_prefix_is_none),
        cmocka_unit_test(ph_02_a_name_has_lost_the_case_of_its_letters),
        cmocka_unit_test(ph_07_every_spelling_is_found),
        cmocka_unit_test(ph_07_one_kind_of_escape_does_not_hide_another),
        cmocka_unit_test(ph_07_near_misses_are_found_in_no_spelling),
        cmocka_unit_test(a_placeholder_is_found_inside_a_long_run_of_letters),
        cmocka_unit_test(ph_07_base64_in_lines_is_found_wherever_the_line_ends),
        cmocka_unit_test(ph_07_a_line_end_behind_few_characters_of_base64_hides_nothing),
        cmocka_unit_test(rs_a_scan_takes_time_in_proportion_to_the_bytes_whatever_they_are),
        cmocka_unit_test(ordinary_bytes_are_not_taken_for_placeholders),
        cmocka_unit_test(ph_06_the_verdict_is_the_same_at_every_cut),
        cmocka_unit_test(ph_06_pieces_of_every_size_give_the_same_verdict),
        cmocka_unit_test(nothing_behind_the_marker_is_passed_on_early),
        cmocka_unit_test(what_is_held_is_let_go_when_it_is_none),
        cmocka_unit_test(held_counts_from_the_beginning_of_the_marker),
    };
    return cmocka_run_group_tests_name("placeholder", tests, NULL, NULL);
}
