/* test_templates.c - chat templates against jinja2, byte for byte.
 *
 * tests/data/chat/cases.json was made by tools/reference/make_chat.py; its clock
 * stood still, so templates that ask for the time are left to other tests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/files.h"
#include "text/template/chat.h"

typedef struct {
    tp_template_memory memory; /* of all renders */
    int right, refused, skipped;
} tally;

static void check_case(const tp_json *root, const tp_json *c, tally *t)
{
    const char *name = tp_json_str(tp_json_get(c, "name"));
    const tp_json *source = tp_json_get(c, "source"), *context = tp_json_get(c, "context");
    tp_error err = {0};
    tp_template *template_ = NULL;
    tp_buf out = {0};
    if (!source)
        source =
            tp_json_get(tp_json_get(root, "templates"), tp_json_str(tp_json_get(c, "template")));
    if (tp_json_str(context))
        context = tp_json_get(tp_json_get(root, "contexts"), tp_json_str(context));
    if (strstr(source->text.data, "strftime_now")) {
        t->skipped++;
        return;
    }
    tp_status status =
        tp_template_parse(name, source->text.data, source->text.len, &template_, &err);
    if (status == TP_OK)
        status = tp_template_render(template_, context, NULL, &t->memory, &out, NULL, &err);
    const tp_json *expected = tp_json_get(c, "expected");
    if (!expected || expected->type != TP_JSON_STRING) {
        if (status == TP_OK)
            fail_msg("%s: renders '%s', jinja2 refuses", name, tp_buf_str(&out));
        t->refused++;
    } else if (status != TP_OK) {
        if (strncmp(name, "rare ", 5) != 0)
            fail_msg("%s: %s", name, err.message);
        t->refused++; /* rare constructs may be refused, never rendered differently */
    } else {
        if (!tp_slice_eq((tp_slice){tp_buf_str(&out), out.len}, expected->text))
            fail_msg("%s: renders\n%s\njinja2 has\n%s", name, tp_buf_str(&out),
                     expected->text.data);
        t->right++;
    }
    tp_template_free(template_);
    tp_buf_release(&out);
}

static void test_output_is_that_of_jinja2(void **state)
{
    static const char path[] = TP_SOURCE_DIR "/tests/data/chat/cases.json";
    tp_buf text = {0};
    tp_arena arena;
    tp_error err = {0};
    const tp_json *root;
    tally t = {0};
    if (tp_arena_init(&arena, 256 << 20, &err) != TP_OK ||
        tp_file_read(path, 0, &text, &err) != TP_OK ||
        tp_json_parse(&arena, path, text.data, text.len, NULL, &root, &err) != TP_OK)
        fail_msg("%s", err.message);
    for (const tp_json *c = tp_json_get(root, "cases")->child; c; c = c->next)
        check_case(root, c, &t);
    print_message("%d equal, %d refused as they should be, %d ask for the time\n", t.right,
                  t.refused, t.skipped);
    assert_true(t.right > 250);
    tp_template_memory_release(&t.memory);
    tp_buf_release(&text);
    tp_arena_release(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_output_is_that_of_jinja2)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
