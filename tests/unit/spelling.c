#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "egress/spelling.h"

#include <string.h>

static const char *spell(const char *name, const char *secret) {
    static uint8_t out[4096];
    struct view v = view_str(secret);
    for (size_t kind = 0; kind < SPELLINGS; kind++) {
        if (strcmp(spelling_name(kind), name) != 0)
            continue;
        size_t n = spelling_write(kind, v, out);
        assert_int_equal(n, spelling_offset(kind, v, v.n));
        out[n] = 0;
        return (const char *)out;
    }
    fail_msg("no kind %s", name);
    return NULL;
}

/* Written by other programs (coreutils, Python, Node.js), not by this one. */
static const struct {
    const char *kind, *secret, *text;
} cases[] = {
    {"as it is", "sk-A/b+c", "sk-A/b+c"},
    {"base64 at 0", "sk-secret", "c2stc2VjcmV0"},
    {"base64 at 0", "sk-secre", "c2stc2Vjcm"},
    {"base64 at 1", "sk-secret", "NrLXNlY3Jld"}, /* base64 of "Xsk-secret": WHNrLXNlY3JldA== */
    {"base64 at 2", "sk-secret", "zay1zZWNyZX"}, /* base64 of "XXsk-secret": WFhzay1zZWNyZXQ= */
    {"base64 at 0", "\xfb\xff\xfe", "+//+"},
    {"base64url at 0", "\xfb\xff\xfe", "-__-"},
    {"percent upper", "a-b._~c/d+e f!", "a-b._~c%2Fd%2Be%20f%21"},
    {"percent lower", "a/b+", "a%2fb%2b"},
    {"percent component upper", "a/b!*'()", "a%2Fb!*'()"},
    {"percent component lower", "a/b!*'()", "a%2fb!*'()"},
    {"percent uri upper", "a/b?c#d e\"", "a/b?c#d%20e%22"},
    {"percent uri lower", "a<b", "a%3cb"},
    {"percent path upper", "a/b+c=~<", "a%2Fb+c=~%3C"},
    {"percent path lower", "a/b@ ", "a%2fb@%20"},
    {"percent slash upper", "a/b+c=~", "a/b%2Bc%3D~"},
    {"percent slash lower", "a/b+", "a/b%2b"},
    {"percent form upper", "a b~c*", "a+b%7Ec*"},
    {"percent form lower", "a b~c*", "a+b%7ec*"},
    {"percent all upper", "az/", "%61%7A%2F"},
    {"percent all lower", "az/", "%61%7a%2f"},
    {"json", "a\"b\\c/", "a\\\"b\\\\c/"},
    {"json slash", "a\"b\\c/", "a\\\"b\\\\c\\/"},
    {"json html lower", "a<b&\"", "a\\u003cb\\u0026\\\""},
    {"json html upper", "a<b>", "a\\u003Cb\\u003E"},
    {"json plus upper", "a+b\"c\\", "a\\u002Bb\\u0022c\\\\"},
    {"json script upper", "a-b=c/'+", "a\\u002Db\\u003Dc/\\u0027+"},
    {"json equals lower", "a=b'", "a\\u003db\\u0027"},
    {"json all upper", "k/", "\\u006B\\u002F"},
    {"json all lower", "k/", "\\u006b\\u002f"},
    {"hex upper", "k/\xff", "6B2FFF"},
    {"hex lower", "k/\xff", "6b2fff"},
    {"html decimal", "a&b<c>d\"e'", "a&amp;b&lt;c&gt;d&quot;e&#39;"},
    {"html hex", "a'b", "a&#x27;b"},
    {"html quote decimal", "a'b\"c+&/", "a&#39;b&#34;c+&amp;/"},
    {"html plus decimal", "a+b'\"<=", "a&#43;b&#39;&#34;&lt;="},
    {"html plus hex upper", "a+b/'\"`", "a&#x2B;b/&#x27;&quot;&#x60;"},
    {"html slash hex upper", "a/b='\"+", "a&#x2F;b&#x3D;&#39;&quot;+"},
    {"html all decimal", "kA\x01/\xff", "&#107;&#65;&#1;&#47;&#255;"},
    {"html all hex lower", "k/", "&#x6b;&#x2f;"},
    {"html all hex upper", "k/", "&#x6B;&#x2F;"},
    {"percent twice upper", "a/b~", "a%252Fb~"},
    {"percent twice lower", "a/b+", "a%252fb%252b"},
    {"percent all twice upper", "k/", "%256B%252F"},
    {"percent all twice lower", "k/", "%256b%252f"},
    {"upper case", "sk-aZ{`\xe9", "SK-AZ{`\xe9"},
    {"lower case", "SK-aZ[@\xc9", "sk-az[@\xc9"},
};

static void each_kind_writes_what_other_programs_write(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {

        assert_string_equal(spell(cases[i].kind, cases[i].secret), cases[i].text);
    }
}

static void utf_16_has_a_zero_byte_beside_each(void **state) {
    (void)state;
    assert_memory_equal(spell("utf-16 little endian", "k/"), "k\0/\0", 4);
    assert_memory_equal(spell("utf-16 big endian", "k/"), "\0k\0/", 4);
}

static void reference_base64(const char *text, char *out) {
    static const char a[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = strlen(text), bits = 0, used = 0;
    uint32_t pending = 0;
    for (size_t i = 0; i < n; i++) {
        pending = pending << 8 | (uint8_t)text[i];
        for (bits += 8; bits >= 6; bits -= 6)
            out[used++] = a[pending >> (bits - 6) & 63];
    }
    if (bits)
        out[used++] = a[pending << (6 - bits) & 63];
    out[used] = 0;
}

static void base64_is_what_every_neighbour_leaves_alone(void **state) {
    (void)state;
    static const char *kinds[] = {"base64 at 0", "base64 at 1", "base64 at 2"};
    char secret[64] = "";
    for (size_t n = 1; n < 20; n++) {
        secret[n - 1] = (char)('A' + n * 7 % 57);
        secret[n] = 0;
        for (size_t before = 0; before < 6; before++) {
            char text[128] = "", encoded[256], other[256];
            memset(text, 'x', before);
            strcat(text, secret);
            reference_base64(strcat(text, "z"), encoded);
            memset(text, 'Q', before);
            text[before + n] = '!';
            reference_base64(text, other);
            const char *s = spell(kinds[before % 3], secret);
            size_t at = (8 * before + 5) / 6;
            assert_memory_equal(encoded + at, s, strlen(s));
            assert_memory_equal(other + at, s, strlen(s));
            /* and it could not be longer */
            assert_true(encoded[at + strlen(s)] != other[at + strlen(s)]);
        }
    }
}

static void offsets_say_where_the_rest_begins(void **state) {
    (void)state;
    struct view secret = VIEW("a/\"b<+'c d.e");
    uint8_t whole[128], rest[128];
    for (size_t kind = 0; kind < SPELLINGS; kind++) {
        if (strncmp(spelling_name(kind), "base64", 6) == 0)
            continue;
        size_t n = spelling_write(kind, secret, whole);
        for (size_t i = 0; i <= secret.n; i++) {
            size_t m = spelling_write(kind, view_skip(secret, i), rest);
            size_t at = spelling_offset(kind, secret, i);
            assert_int_equal(at + m, n);
            assert_memory_equal(whole + at, rest, m);
        }
    }
}

static void a_run_is_as_long_as_its_longest_place_needs(void **state) {
    (void)state;
    struct view secret = VIEW("abcdefgh//ijklmnop");
    for (size_t kind = 0; kind < SPELLINGS; kind++) {
        const char *name = spelling_name(kind);
        size_t run = spelling_run(kind, secret, 4);
        if (strcmp(name, "as it is") == 0)
            assert_int_equal(run, 4);
        else if (strcmp(name, "percent upper") == 0)
            assert_int_equal(run, 8);
        else if (strcmp(name, "json slash") == 0)
            assert_int_equal(run, 6);
        else if (strcmp(name, "json all lower") == 0)
            assert_int_equal(run, 24);
        else if (strncmp(name, "base64", 6) == 0)
            assert_int_equal(run, 4); /* 28 bits have four whole sextets */
    }
}

static void the_public_head_is_what_a_format_says(void **state) {
    (void)state;
    static const struct {
        const char *secret;
        size_t prefix, head;
    } heads[] = {
        /* whole when no longer than a run */
        {"0123456789abcdef", 0, 0},
        {"0123456789abcdef", 7, 0},
        {"0123456789abcdefg", 0, 1},
        /* a quarter, or the placeholder's prefix when that is longer */
        {"0123456789abcdefghijklmnopqrstuvwxyzABCD", 0, 10},
        {"0123456789abcdefghijklmnopqrstuvwxyzABCD", 13, 13},
        {"0123456789abcdefghijklmnopqrstuvwxyzABCD", 39, 24},
        /* team and key ids */
        {"xoxb-123456789012-1234567890123-abcdefghijklmnopqrstuvwx", 5, 32},
        /* a separator late in the random part does not count */
        {"sk-0123456789012345678901234567890123456789-abcdefghijklmnopqr", 3, 15},
        /* the signature of a JWT */
        {"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.0123456789012345678901234567890123456789012", 0, 37},
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        assert_int_equal(spelling_public_head(view_str(heads[i].secret), heads[i].prefix, 16),
                         heads[i].head);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_writes_what_other_programs_write),
        cmocka_unit_test(utf_16_has_a_zero_byte_beside_each),
        cmocka_unit_test(base64_is_what_every_neighbour_leaves_alone),
        cmocka_unit_test(offsets_say_where_the_rest_begins),
        cmocka_unit_test(a_run_is_as_long_as_its_longest_place_needs),
        cmocka_unit_test(the_public_head_is_what_a_format_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
