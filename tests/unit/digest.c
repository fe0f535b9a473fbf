#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/digest.h"

/* FIPS 180-4 and RFC 4231. */
static void must_be(struct view text, const char *hex) {
    uint8_t digest[DIGEST_SIZE];
    char got[2 * DIGEST_SIZE + 1];
    digest_sha256(text, digest);
    hex_encode(view_of(digest, sizeof digest), got);
    assert_string_equal(got, hex);
}

static void digests_are_those_of_the_standard(void **state) {
    (void)state;
    must_be(VIEW(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    must_be(VIEW("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    must_be(VIEW("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void a_digest_knows_nothing_of_the_one_before(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        must_be(VIEW("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        must_be((struct view){NULL, 0},
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    }
}

static void a_keyed_digest_is_that_of_the_standard(void **state) {
    uint8_t digest[DIGEST_SIZE];
    char got[2 * DIGEST_SIZE + 1];
    (void)state;
    digest_hmac(VIEW("Jefe"), VIEW("what do ya want for nothing?"), digest);
    hex_encode(view_of(digest, sizeof digest), got);
    assert_string_equal(got, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_are_those_of_the_standard),
        cmocka_unit_test(a_digest_knows_nothing_of_the_one_before),
        cmocka_unit_test(a_keyed_digest_is_that_of_the_standard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
