/*
 * Forms of keys: what vendors put before the keys and tokens that they issue, so that scanners find them, and the three
 * parts of a JWT. By it a key is known under a name that nobody would guess (P7). Pure.
 *
 * Behind a known beginning there must be sixteen letters and digits in a row, both kinds among them: words that
 * only begin alike ("sk-learn-examples-2024") have none. Such a run is what makes a key hard to guess.
 */
#ifndef POLICY_KEY_FORM_H
#define POLICY_KEY_FORM_H

#include "base/bytes.h"

enum { KEY_FORM_MIN = 20 /* no shorter word has such a form */ };

/*
 * Whether a word of v (letters, digits, '-', '_' and '.'; v may be percent-encoded) has the form of somebody's key; *key: the first
 * that has.
 */
bool key_form_inside(struct view v, struct view *key);

#endif
