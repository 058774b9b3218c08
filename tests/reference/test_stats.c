/* test_stats.c - every number of the statistics oracle.
 *
 * tests/data/stats/oracle.json is a part of it (tools/reference/make_stats.py); the whole,
 * ../shared/oracles/stats.json, is used as well where it is.  Values were computed in
 * 50-digit arithmetic from the exact doubles, so 1e-12 is asked of all of them; of NIST's
 * certified values, which are for decimal inputs, what a double's inputs allow. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "stats/bootstrap.h"
#include "support/stats_questions.h"
#include "text/json/json.h"

typedef struct {
    tp_arena arena;
    tp_buf text;
    const tp_json *root;
} oracle;

static oracle part, whole;

static bool load(const char *path, oracle *o)
{
    tp_error err = {0};
    if (!tp_file_exists(path))
        return false;
    assert_int_equal(tp_file_read(path, 0, &o->text, &err), TP_OK);
    assert_int_equal(tp_arena_init(&o->arena, (size_t)1 << 28, &err), TP_OK);
    if (tp_json_parse(&o->arena, path, o->text.data, o->text.len, NULL, &o->root, &err) != TP_OK)
        fail_msg("%s", err.message);
    return true;
}

typedef struct {
    size_t compared, wrong;
    double tolerance;
} tally;

static void report(tally *t, const char *path, const tp_json *wanted, const tp_json *got)
{
    if (t->wrong++ < 20)
        print_error("%s: %s, not %s\n", path, got && got->text.data ? got->text.data : "(other)",
                    wanted->text.data ? wanted->text.data : "(other)");
}

static bool same_number(const tp_json *wanted, const tp_json *got, double tolerance)
{
    double a, b;
    if (!tp_json_f64(wanted, &a) || !tp_json_f64(got, &b))
        return false;
    return fabs(a - b) <= tolerance * (a == 0 ? 1 : fabs(a));
}

/* Everything in `wanted` is in `got`. */
static void compare(const tp_json *wanted, const tp_json *got, const char *path, tally *t)
{
    char inner[300];
    size_t i = 0;
    if (!got || (got->type != wanted->type)) {
        report(t, path, wanted, got);
        return;
    }
    switch (wanted->type) {
    case TP_JSON_OBJECT:
        for (const tp_json *m = wanted->child; m; m = m->next) {
            snprintf(inner, sizeof inner, "%s.%s", path, m->key.data);
            compare(m, tp_json_get(got, m->key.data), inner, t);
        }
        return;
    case TP_JSON_ARRAY:
        if (wanted->n != got->n)
            report(t, path, wanted, got);
        for (const tp_json *v = wanted->child; v; v = v->next, i++) {
            snprintf(inner, sizeof inner, "%s[%zu]", path, i);
            compare(v, tp_json_at(got, i), inner, t);
        }
        return;
    case TP_JSON_NUMBER:
        t->compared++;
        if (!same_number(wanted, got, t->tolerance))
            report(t, path, wanted, got);
        return;
    case TP_JSON_STRING:
        t->compared++;
        if (!tp_slice_eq(wanted->text, got->text))
            report(t, path, wanted, got);
        return;
    default:
        t->compared++;
    }
}

/* The answer to a text, in the caller's arena. */
static const tp_json *ask(tp_arena *arena, const char *name, const char *text, size_t n)
{
    tp_buf out = {0};
    tp_error err = {0};
    const tp_json *root = NULL;
    tp_json_w w;
    tp_question_options options = TP_QUESTION_DEFAULTS;
    tp_json_w_init(&w, &out, 0);
    if (tp_question_text(name, text, n, &options, &w, &err) != TP_OK)
        fail_msg("%s", err.message);
    if (tp_json_parse(arena, name, tp_buf_str(&out), out.len, NULL, &root, &err) != TP_OK)
        fail_msg("%s", err.message);
    tp_buf_release(&out);
    return root;
}

static const tp_json *ask_object(tp_arena *arena, const char *name, const tp_json *object,
                                 const char *extra)
{
    static const char *const answers[] = {"expected", "nist_certified"};
    tp_buf text = {0};
    tp_json_w w;
    tp_json_w_init(&w, &text, 0);
    tp_json_w_begin(&w, '{');
    for (const tp_json *m = object->child; m; m = m->next) {
        if (strcmp(m->key.data, answers[0]) == 0 || strcmp(m->key.data, answers[1]) == 0)
            continue;
        tp_json_w_key(&w, m->key.data);
        tp_json_w_value(&w, m);
    }
    tp_json_w_end(&w, '}');
    if (extra) {
        text.len--;
        tp_buf_addf(&text, ",%s}", extra);
    }
    const tp_json *root = ask(arena, name, text.data, text.len);
    tp_buf_release(&text);
    return root;
}

static void check_datasets(const oracle *o)
{
    tp_arena arena;
    tally t = {.tolerance = 1e-12};
    assert_int_equal(tp_arena_init(&arena, (size_t)1 << 28, NULL), TP_OK);
    const tp_json *sets = tp_json_get(o->root, "datasets");
    assert_non_null(sets);
    for (const tp_json *s = sets->child; s; s = s->next) {
        const tp_json *got = ask_object(&arena, s->key.data, s, NULL);
        compare(tp_json_get(s, "expected"), got, s->key.data, &t);
        tp_arena_rewind(&arena, 0);
    }
    tp_arena_release(&arena);
    print_message("%zu numbers of %zu data sets\n", t.compared, sets->n);
    assert_true(t.compared > 1000);
    assert_int_equal(t.wrong, 0);
}

static void answers_every_data_set(void **state) { check_datasets(&part); }

static void answers_every_data_set_of_the_whole_oracle(void **state)
{
    if (!whole.root)
        skip();
    check_datasets(&whole);
}

/* What NIST certifies, within what doubles can hold of the inputs. */
static double nist_tolerance(const char *name)
{
    static const struct {
        const char *name;
        double tolerance;
    } special[] = {{"numacc3", 1e-9},  {"numacc4", 1e-7}, {"mavro", 1e-13}, {"michelso", 1e-13},
                   {"atmwtag", 1e-10}, {"smls04", 1e-9},  {"smls05", 1e-9}, {"smls06", 1e-9},
                   {"smls07", 2e-4},   {"smls08", 2e-4},  {"smls09", 2e-4}, {"sirstv", 1e-12}};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        if (strstr(name, special[i].name))
            return special[i].tolerance;
    return 1e-14;
}

static void check_certified(const oracle *o, const char *section, tally *t)
{
    tp_arena arena;
    assert_int_equal(tp_arena_init(&arena, (size_t)1 << 28, NULL), TP_OK);
    const tp_json *sets = tp_json_get(o->root, section);
    for (const tp_json *s = sets->child; s; s = s->next) {
        const tp_json *certified = tp_json_get(s, "nist_certified");
        if (!certified)
            continue;
        const tp_json *got = ask_object(&arena, s->key.data, s, NULL);
        const tp_json *anova = tp_json_get(got, "anova");
        for (const tp_json *m = certified->child; m; m = m->next) {
            char path[100];
            const char *key = strcmp(m->key.data, "R2") == 0 ? "eta2" : m->key.data;
            snprintf(path, sizeof path, "%s %s", s->key.data, key);
            t->tolerance = nist_tolerance(s->key.data);
            compare(m, tp_json_get(anova ? anova : tp_json_get(got, "describe"), key), path, t);
        }
        tp_arena_rewind(&arena, 0);
    }
    tp_arena_release(&arena);
}

static void meets_what_nist_certifies(void **state)
{
    tally t = {0};
    const oracle *o = whole.root ? &whole : &part;
    check_certified(o, "datasets", &t);
    check_certified(o, "generated_datasets", &t);
    print_message("%zu certified numbers\n", t.compared);
    assert_true(t.compared > 30);
    assert_int_equal(t.wrong, 0);
}

/* A table as the oracle has it: rows of numbers whose last columns are answers, a list of
 * objects that hold question and answer, or one question with its `expected`. */
static void check_table(tp_arena *arena, const tp_json *table, tally *t)
{
    const char *name = table->key.data;
    const tp_json *rows = table->type == TP_JSON_ARRAY ? table : tp_json_get(table, "rows");
    if (!rows) {
        compare(tp_json_get(table, "expected"), ask_object(arena, name, table, NULL), name, t);
        return;
    }
    tp_buf text = {0};
    tp_json_w w;
    tp_json_w_init(&w, &text, 0);
    tp_json_w_begin(&w, '{');
    tp_json_w_put_str(&w, "table", name);
    tp_json_w_key(&w, "rows");
    tp_json_w_value(&w, rows);
    tp_json_w_end(&w, '}');
    const tp_json *got = tp_json_get(ask(arena, name, text.data, text.len), "rows");
    tp_buf_release(&text);
    if (rows->child->type == TP_JSON_ARRAY) {
        compare(rows, got, name, t);
        return;
    }
    size_t i = 0;
    for (const tp_json *row = rows->child; row; row = row->next, i++)
        for (const tp_json *m = tp_json_at(got, i)->child; m; m = m->next) {
            char path[100];
            const tp_json *wanted = tp_json_get(row, m->key.data);
            snprintf(path, sizeof path, "%s[%zu].%s", name, i, m->key.data);
            if (wanted)
                compare(wanted, m, path, t);
        }
}

static void answers_every_table(void **state)
{
    tp_arena arena;
    tally t = {.tolerance = 1e-12};
    assert_int_equal(tp_arena_init(&arena, (size_t)1 << 28, NULL), TP_OK);
    const tp_json *tables = tp_json_get(part.root, "tables");
    for (const tp_json *table = tables->child; table; table = table->next) {
        check_table(&arena, table, &t);
        tp_arena_rewind(&arena, 0);
    }
    tp_arena_release(&arena);
    print_message("%zu numbers of %zu tables\n", t.compared, tables->n);
    assert_true(t.compared > 900);
    assert_int_equal(t.wrong, 0);
}

static void draws_the_stream_and_the_intervals_of_the_bootstrap(void **state)
{
    tp_arena arena;
    tally t = {.tolerance = 1e-12};
    tp_splitmix stream = {42};
    assert_int_equal(tp_arena_init(&arena, (size_t)1 << 28, NULL), TP_OK);
    const tp_json *all = tp_json_get(part.root, "bootstrap_and_curves");
    assert_true(tp_splitmix_next(&stream) == UINT64_C(13679457532755275413));
    assert_true(tp_splitmix_next(&stream) == UINT64_C(2949826092126892291));
    assert_true(tp_splitmix_at(42, 4) == UINT64_C(701532786141963250));
    stream = (tp_splitmix){42};
    const tp_json *indices = tp_json_get(all, "idx_n10_seed42_first20");
    for (const tp_json *v = indices->child; v; v = v->next) {
        int64_t index;
        assert_true(tp_json_i64(v, &index));
        assert_true(tp_splitmix_below(&stream, 10) == (uint64_t)index);
    }

    const tp_json *one = tp_json_get(all, "one_sample"), *two = tp_json_get(all, "two_sample");
    const tp_json *got = ask_object(&arena, "one", one, "\"kind\":\"one\"");
    compare(tp_json_get(one, "mean"), tp_json_get(got, "mean"), "mean", &t);
    compare(tp_json_get(one, "median"), tp_json_get(got, "median"), "median", &t);
    got = ask_object(&arena, "two", two, "\"kind\":\"two\"");
    compare(tp_json_get(two, "ratio_of_means"), tp_json_get(got, "ratio_of_means"), "means", &t);
    compare(tp_json_get(two, "ratio_of_medians"), tp_json_get(got, "ratio_of_medians"), "medians",
            &t);
    const tp_json *pairs = tp_json_get(all, "paired_log_ratio");
    got = ask_object(&arena, "paired",
                     tp_json_get(tp_json_get(part.root, "datasets"), "bench_pairs_plus6pct"),
                     "\"B\":1999,\"seed\":13");
    compare(tp_json_get(pairs, "mean_log_ratio"), tp_json_get(got, "mean_log_ratio"), "log mean",
            &t);
    compare(tp_json_get(pairs, "median_log_ratio"), tp_json_get(got, "median_log_ratio"),
            "log median", &t);

    tp_arena_release(&arena);
    assert_int_equal(t.wrong, 0);
}

static void fits_every_loss_curve(void **state)
{
    tp_arena arena;
    tally t = {.tolerance = 1e-12};
    assert_int_equal(tp_arena_init(&arena, (size_t)1 << 28, NULL), TP_OK);
    const tp_json *curves =
        tp_json_get(tp_json_get(part.root, "bootstrap_and_curves"), "loss_curves");
    for (const tp_json *c = curves->child; c; c = c->next)
        compare(tp_json_get(c, "expected"), ask_object(&arena, c->key.data, c, NULL), c->key.data,
                &t);
    tp_arena_release(&arena);
    assert_true(t.compared > 100);
    assert_int_equal(t.wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_every_data_set),
        cmocka_unit_test(answers_every_data_set_of_the_whole_oracle),
        cmocka_unit_test(meets_what_nist_certifies),
        cmocka_unit_test(answers_every_table),
        cmocka_unit_test(draws_the_stream_and_the_intervals_of_the_bootstrap),
        cmocka_unit_test(fits_every_loss_curve),
    };
    if (!load(TP_SOURCE_DIR "/tests/data/stats/oracle.json", &part))
        return 1;
    load(TP_SOURCE_DIR "/../shared/oracles/stats.json", &whole);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
