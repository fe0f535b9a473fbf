/*
 * A policy in its JSON form: what is read is text that lexes as it should, so that errors are placed inside the JSON,
 * and that is the same policy again when it is put into JSON and back.
 */
#include "policy/json_form.h"
#include "policy/layout.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool x) {
    if (!x)
        abort();
}

static void check_errors(const struct policy_errors *errors, struct view json) {
    struct buf out;
    uint32_t lines = 1;
    for (size_t i = 0; i < json.n; i++)
        lines += json.p[i] == '\n';
    buf_init(&out, 1 << 20);
    for (size_t i = 0; i < errors->n; i++) {
        must(errors->at[i].at.line >= 1 && errors->at[i].at.line <= lines);
        errors_show(&errors->at[i], json, &out);
    }
    buf_free(&out);
}

static void check_round(struct view text, struct policy_errors *errors) {
    struct buf json, again;
    buf_init(&json, JSON_FORM_MAX);
    buf_init(&again, JSON_FORM_MAX);
    must(json_form_write(text, "policy", &json, errors) == 0);
    must(json_form_read(buf_view(&json), "policy", &again, errors) == 0);
    must(view_equal(buf_view(&again), text));
    buf_free(&json);
    buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct policy_errors errors;
    struct view json = view_of(data, size);
    struct buf text, formatted;
    errors_reset(&errors);
    buf_init(&text, JSON_FORM_MAX);
    buf_init(&formatted, JSON_FORM_MAX);
    if (json_form_read(json, "policy", &text, &errors) == 0 &&
        policy_format(buf_view(&text), "policy", &formatted, &errors) == 0)
        check_round(buf_view(&formatted), &errors);
    else if (buf_len(&text) > 0)
        json_form_place(json, "policy", &errors);
    check_errors(&errors, json);
    buf_free(&text);
    buf_free(&formatted);
    return 0;
}
