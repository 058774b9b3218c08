#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "byte_tokenizer.h"
#include "engine/data/dataset.h"
#include "engine/data/lines.h"

static char root[64], cache_dir[80], data_path[80];
static tp_tokenizer *tok;
static tp_pool *pool;
static tp_error err;
static char last_notice[1200];

static void keep_notice(void *user, tp_log_level level, const char *component, const char *message)
{
    if (level >= TP_LOG_NOTICE)
        snprintf(last_notice, sizeof last_notice, "%s", message);
}

static int set_up(void **state)
{
    snprintf(root, sizeof root, "/tmp/temper-dataset-XXXXXX");
    if (!mkdtemp(root))
        return 1;
    snprintf(cache_dir, sizeof cache_dir, "%s/cache", root);
    snprintf(data_path, sizeof data_path, "%s/d.jsonl", root);
    tp_log_set_sink(keep_notice, NULL);
    return tp_pool_create(&pool, 2, NULL) != TP_OK || byte_tokenizer_make(NULL, &tok) != 0;
}

static int tear_down(void **state)
{
    tp_log_set_sink(NULL, NULL);
    tp_tokenizer_free(tok);
    tp_pool_free(pool);
    return tp_dir_remove(root, NULL) != TP_OK;
}

static int empty_cache(void **state)
{
    last_notice[0] = 0;
    return tp_dir_remove(cache_dir, NULL) != TP_OK;
}

static void put(const char *text, size_t n)
{
    assert_int_equal(tp_file_write_atomic(data_path, text, n, NULL), TP_OK);
}

static tp_dataset_options options_of(const char *text)
{
    if (text)
        put(text, strlen(text));
    return (tp_dataset_options){.data_path = data_path, .cache_dir = cache_dir};
}

static tp_dataset *open_set(const tp_dataset_options *options)
{
    tp_dataset *ds = NULL;
    err.message[0] = 0;
    tp_status status = tp_dataset_open(options, tok, pool, &ds, &err);
    assert_string_equal(err.message, "");
    assert_int_equal(status, TP_OK);
    return ds;
}

/* The message without the path of the data, which changes from run to run. */
static void expect_failure(const tp_dataset_options *options, const char *message)
{
    char expected[1200];
    tp_dataset *ds;
    snprintf(expected, sizeof expected, "%s%s", data_path, message);
    assert_int_not_equal(tp_dataset_open(options, tok, pool, &ds, &err), TP_OK);
    assert_string_equal(err.message, expected);
}

#define ROW(q, a) "{\"question\":\"" q "\",\"answer\":\"" a "\"}\n"

static void expect_shown(const tp_dataset *ds, tp_split split, uint64_t i, const char *picture)
{
    tp_buf out = {0};
    assert_int_equal(tp_dataset_show(ds, split, i, &out, NULL), TP_OK);
    const char *body = strchr(tp_buf_str(&out), '\n') + 1; /* behind the title */
    assert_string_equal(body, picture);
    tp_buf_release(&out);
}

static void rows_are_tokenised_in_order(void **state)
{
    tp_dataset_options options = options_of(ROW("1", "a") ROW("2", "bb") "\n  \r\n" ROW("3", "c"));

    tp_dataset *ds = open_set(&options);

    const tp_dataset_report *r = tp_dataset_get_report(ds);
    assert_int_equal(r->n_train, 3);
    assert_int_equal(r->n_validation, 0);
    assert_int_equal(r->counts.n_rows, 3);
    assert_int_equal(r->counts.n_tokens, 3 + 4 + 3);
    assert_int_equal(r->counts.n_targets, 4);
    assert_int_equal(r->counts.longest, 4);
    assert_false(r->cache_hit);
    expect_shown(ds, TP_SPLIT_TRAIN, 0, "| 1\\n\n> a\n");
    expect_shown(ds, TP_SPLIT_TRAIN, 1, "| 2\\n\n> bb\n");
    expect_shown(ds, TP_SPLIT_TRAIN, 2, "| 3\\n\n> c\n");
    tp_buf out = {0};
    tp_dataset_report_text(r, &out);
    assert_memory_equal(out.data, "rows       question_answer (detected)\n", 38);
    tp_buf_release(&out);
    tp_dataset_close(ds);
}

/* Also of a later row, and from the cache. */
static void columns_that_are_not_read_are_said(void **state)
{
    tp_dataset_options options =
        options_of(ROW("1", "a") "{\"question\":\"2\",\"answer\":\"b\",\"system\":\"s\","
                                 "\"text\":\"t\"}\n");
    for (int again = 0; again < 2; again++) {
        tp_dataset *ds = open_set(&options);
        TP_OWN(tp_buf) out = {0};
        tp_dataset_report_line(tp_dataset_get_report(ds), &out);
        assert_non_null(
            strstr(out.data, ", columns not read: system (data.train.system_key=system takes it), "
                             "text (data.train.text_key=text learns it instead)"));
        tp_dataset_close(ds);
    }
}

/* A value that had no effect in earlier versions. */
static void headers_that_are_learned_are_said(void **state)
{
    tp_dataset_options options = options_of(ROW("1", "a"));
    options.chat_template = "{% for m in messages %}{{ m.role }}:{{ m.content }}{% endfor %}"
                            "{% if add_generation_prompt %}assistant:{% endif %}";
    for (int learns = 0; learns < 2; learns++) {
        options.learn_header = learns;
        tp_dataset *ds = open_set(&options);
        TP_OWN(tp_buf) out = {0};
        tp_dataset_report_line(tp_dataset_get_report(ds), &out);
        tp_dataset_report_text(tp_dataset_get_report(ds), &out);
        assert_int_equal(strstr(out.data, ", chat template, headers of answers are learned "
                                          "(data.add_generation_prompt=false)") != NULL,
                         learns);
        tp_dataset_close(ds);
    }
}

static void the_second_opening_hits_the_cache(void **state)
{
    tp_dataset_options options = options_of(ROW("1", "a"));
    tp_dataset *ds = open_set(&options);
    tp_dataset_close(ds);

    ds = open_set(&options);
    assert_true(tp_dataset_get_report(ds)->cache_hit);
    assert_int_equal(tp_dataset_get_report(ds)->counts.n_tokens, 3);
    expect_shown(ds, TP_SPLIT_TRAIN, 0, "| 1\\n\n> a\n");
    tp_dataset_close(ds);

    options.add_eos = true; /* other options, other cache */
    ds = open_set(&options);
    assert_false(tp_dataset_get_report(ds)->cache_hit);
    expect_shown(ds, TP_SPLIT_TRAIN, 0, "| 1\\n\n> a<|end|>\n");
    tp_dataset_close(ds);

    options = options_of(ROW("1", "b")); /* other contents */
    ds = open_set(&options);
    assert_false(tp_dataset_get_report(ds)->cache_hit);
    tp_dataset_close(ds);
    tp_json variables[2] = {{.type = TP_JSON_NUMBER, .text = TP_SLICE("NaN")},
                            {.type = TP_JSON_STRING, .text = TP_SLICE("NaN")}};
    for (int i = 0; i < 2; i++) { /* other variables, though they look alike */
        variables[i].key = TP_SLICE("v");
        options.template_variables =
            &(tp_json){.type = TP_JSON_OBJECT, .n = 1, .child = &variables[i]};
        ds = open_set(&options);
        assert_false(tp_dataset_get_report(ds)->cache_hit);
        tp_dataset_close(ds);
    }
    options.template_variables = NULL;
    options.rows.input_key = "answer";
    options.rows.output_key = "question";
    ds = open_set(&options);
    assert_false(tp_dataset_get_report(ds)->cache_hit);
    expect_shown(ds, TP_SPLIT_TRAIN, 0, "| b\n> 1\n");
    tp_dataset_close(ds);
}

static void a_damaged_cache_is_made_again_loudly(void **state)
{
    tp_dataset_options options = options_of(ROW("1", "a") ROW("2", "b"));
    tp_dataset *ds = open_set(&options);
    char path[300], expected[400];
    snprintf(path, sizeof path, "%s", tp_dataset_get_report(ds)->cache_path);
    tp_dataset_close(ds);
    assert_int_equal(truncate(path, 300), 0);

    ds = open_set(&options);

    assert_false(tp_dataset_get_report(ds)->cache_hit);
    snprintf(expected, sizeof expected, "%s is cut short: its length is odd", path);
    assert_string_equal(tp_dataset_get_report(ds)->rebuilt_because, expected);
    assert_memory_equal(last_notice, expected, strlen(expected));
    expect_shown(ds, TP_SPLIT_TRAIN, 1, "| 2\\n\n> b\n");
    tp_dataset_close(ds);
}

static void a_folder_that_cannot_be_written_has_a_fallback(void **state)
{
    tp_dataset_options options = options_of(ROW("1", "a"));
    char fallback[100];
    snprintf(fallback, sizeof fallback, "%s/run", root);
    options.cache_dir = data_path; /* a file is no folder */
    tp_dataset *ds;
    assert_int_not_equal(tp_dataset_open(&options, tok, pool, &ds, &err), TP_OK);
    assert_memory_equal(err.message, "no folder for the token cache: ", 31);
    options.fallback_dir = fallback;

    ds = open_set(&options);

    assert_memory_equal(tp_dataset_get_report(ds)->cache_path, fallback, strlen(fallback));
    assert_non_null(strstr(last_notice, "the token cache goes to"));
    tp_dataset_close(ds);
}

static void bad_rows_stop_or_are_skipped_and_counted(void **state)
{
    tp_dataset_options options =
        options_of(ROW("1", "a") "{\"question\":1}\n" ROW("2", "b") "{\n" ROW("3", "c"));
    expect_failure(&options, ":2:13: \"question\" is a number; a string is needed");
    options.skip_bad = 1;
    tp_dataset *ds;
    assert_int_equal(tp_dataset_open(&options, tok, pool, &ds, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "d.jsonl:4:"));
    assert_non_null(strstr(err.message, "(2 bad rows are more than data.skip_bad_rows)"));

    options.skip_bad = 2;
    ds = open_set(&options);

    assert_int_equal(tp_dataset_get_report(ds)->counts.n_bad, 2);
    assert_int_equal(tp_dataset_get_report(ds)->n_train, 3);
    assert_non_null(strstr(tp_dataset_get_report(ds)->first_bad, "d.jsonl:2:13: \"question\" is"));
    expect_shown(ds, TP_SPLIT_TRAIN, 2, "| 3\\n\n> c\n");
    tp_dataset_close(ds);
    options.skip_bad = 0; /* the cache exists, but stands for more than is allowed */
    expect_failure(&options, ":2:13: \"question\" is a number; a string is needed");
}

static void bad_first_rows_do_not_decide_the_kind(void **state)
{
    tp_dataset_options options = options_of("{\"x\":1}\nnull\n" ROW("1", "a"));
    options.skip_bad = -1;
    tp_dataset *ds = open_set(&options);
    assert_int_equal(tp_dataset_get_report(ds)->counts.n_bad, 2);
    assert_int_equal(tp_dataset_get_report(ds)->n_train, 1);
    tp_dataset_close(ds);
}

static void what_is_no_json_lines_is_named(void **state)
{
    tp_dataset_options options = options_of("");
    expect_failure(&options, " is empty; one JSON object per line is needed, such as {\"prompt\": "
                             "\"...\", \"completion\": \"...\"}");
    options = options_of("\n\r\n  \n");
    expect_failure(&options, " is empty; one JSON object per line is needed, such as {\"prompt\": "
                             "\"...\", \"completion\": \"...\"}");
    options = options_of("\n [{\"text\":\"a\"}]");
    expect_failure(&options, " is a JSON array; one object per line is needed, as `jq -c '.[]'` "
                             "makes of it");
    options = options_of("\xff\xfe{");
    expect_failure(&options, " is UTF-16; convert it with `iconv -t UTF-8`");
    options = options_of("\x1f\x8b\x08");
    expect_failure(&options, " is compressed; unpack it with gunzip");
    options = options_of("PAR1xyz");
    expect_failure(&options, " is Parquet; convert it to JSON lines, such as with pandas: "
                             "read_parquet(FILE).to_json(OUT, orient=\"records\", lines=True)");
    options = options_of("prompt,completion\na,b\n");
    expect_failure(&options, " begins like a table in CSV; one JSON object per line is needed, as "
                             "`mlr --icsv --ojsonl cat` (Miller) makes of it");
    options = options_of("\"prompt\"\tcompletion\na\tb\n");
    expect_failure(&options, " begins like a table in CSV; one JSON object per line is needed, as "
                             "`mlr --icsv --ojsonl cat` (Miller) makes of it");
    options = options_of("{\"question\":\"\xc3\x28\",\"answer\":\"a\"}");
    tp_dataset *ds;
    assert_int_equal(tp_dataset_open(&options, tok, pool, &ds, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "d.jsonl:1:14"));
}

static void bom_crlf_and_a_missing_last_newline_are_fine(void **state)
{
    tp_dataset_options options =
        options_of("\xef\xbb\xbf{\"text\":\"ab\"}\r\n{\"text\":\"cd\"}\r\n{\"text\":\"ef\"}");
    tp_dataset *ds = open_set(&options);
    assert_int_equal(tp_dataset_get_report(ds)->n_train, 3);
    expect_shown(ds, TP_SPLIT_TRAIN, 2, "| e\n> f\n");
    tp_dataset_close(ds);
}

static void a_huge_line_is_refused_without_reading_it_all(void **state)
{
    put("{\"text\":\"ok\"}\n", 14);
    assert_int_equal(truncate(data_path, (off_t)TP_LONGEST_LINE * 2), 0); /* NULs, sparse */
    tp_dataset_options options = options_of(NULL);
    tp_dataset *ds;
    assert_int_equal(tp_dataset_open(&options, tok, pool, &ds, &err), TP_ERR_FORMAT);
    assert_non_null(strstr(err.message, "d.jsonl:2: the line is longer than 64 MiB; one JSON "
                                        "object per line is needed"));
}

static void lines_longer_than_a_wave_are_read(void **state)
{
    enum { N = 9 << 20 };
    char *text = malloc(N + 100);
    size_t n = (size_t)sprintf(text, "{\"text\":\"first\"}\n{\"text\":\"");
    memset(text + n, 'x', N);
    n += N;
    n += (size_t)sprintf(text + n, "\"}\n{\"text\":\"last\"}\n");
    put(text, n);
    free(text);
    tp_dataset_options options = options_of(NULL);
    options.max_seq_length = 1000;

    tp_dataset *ds = open_set(&options);

    assert_int_equal(tp_dataset_get_report(ds)->n_train, 3);
    assert_int_equal(tp_dataset_get_report(ds)->counts.n_truncated, 1);
    assert_int_equal(tp_dataset_get_report(ds)->counts.longest, 1000);
    expect_shown(ds, TP_SPLIT_TRAIN, 2, "| l\n> ast\n");
    tp_dataset_close(ds);
}

static void rows_without_targets_are_left_out(void **state)
{
    tp_dataset_options options = options_of(ROW("long prompt", "a") ROW("q", "bcd"));
    options.max_seq_length = 4;
    tp_dataset *ds = open_set(&options);
    assert_int_equal(tp_dataset_get_report(ds)->n_train, 1);
    assert_int_equal(tp_dataset_get_report(ds)->counts.n_masked, 1);
    assert_int_equal(tp_dataset_get_report(ds)->counts.n_truncated, 1);
    expect_shown(ds, TP_SPLIT_TRAIN, 0, "| q\\n\n> bc\n");
    tp_dataset_close(ds);
    options = options_of(ROW("long prompt", "a"));
    options.max_seq_length = 4;
    expect_failure(&options,
                   " has nothing to learn: of 1 rows 0 are bad and 1 have no token left "
                   "to learn; look at the roles, and at policy.max_total_sequence_length");
}

static char *many_rows(int n)
{
    char *text = malloc((size_t)n * 80 + 1);
    size_t used = 0;
    for (int i = 0; i < n; i++)
        used +=
            (size_t)sprintf(text + used, "{\"prompt\":\"%d=\",\"completion\":\"%d\"}\n", i, i * 7);
    return text;
}

static void threads_do_not_change_the_cache(void **state)
{
    char *text = many_rows(30000); /* more than one piece, less than a wave */
    char *first = NULL;
    for (int threads = 1; threads <= 4; threads += 3) {
        tp_dataset_options options = options_of(text);
        tp_pool *usual = pool;
        assert_int_equal(tp_pool_create(&pool, threads, NULL), TP_OK);
        tp_dataset *ds = open_set(&options);
        tp_pool_free(pool);
        pool = usual;
        assert_false(tp_dataset_get_report(ds)->cache_hit);
        assert_int_equal(tp_dataset_get_report(ds)->n_train, 30000);
        char hash[33];
        assert_int_equal(tp_file_hash(tp_dataset_get_report(ds)->cache_path, hash, NULL), TP_OK);
        if (first)
            assert_string_equal(hash, first);
        else
            first = strdup(hash);
        tp_dataset_close(ds);
        assert_int_equal(empty_cache(NULL), 0);
    }
    free(first);
    free(text);
}

static void a_split_is_a_partition_by_seed(void **state)
{
    char *text = many_rows(1000);
    tp_dataset_options options = options_of(text);
    options.split_validation_size = 0.1;
    options.seed = 5;
    tp_dataset *ds = open_set(&options);
    const tp_sample_set *train = tp_dataset_set(ds, TP_SPLIT_TRAIN);
    const tp_sample_set *held = tp_dataset_set(ds, TP_SPLIT_VALIDATION);
    assert_int_equal(train->n, 900);
    assert_int_equal(held->n, 100);
    int seen[1000] = {0};
    for (uint64_t i = 0; i < train->n; i++)
        seen[train->index[i]]++;
    for (uint64_t i = 0; i < held->n; i++)
        seen[held->index[i]]++;
    for (int i = 0; i < 1000; i++)
        assert_int_equal(seen[i], 1);
    uint64_t first = held->index[0], last = held->index[99];
    assert_true(first < 200 && last > 800); /* spread, and in file order */
    tp_dataset_close(ds);

    options.seed = 6;
    ds = open_set(&options);
    assert_true(tp_dataset_get_report(ds)->cache_hit); /* the tokens are the same */
    const uint64_t *other = tp_dataset_set(ds, TP_SPLIT_VALIDATION)->index;
    assert_true(other[0] != first || other[99] != last);
    tp_dataset_close(ds);
    options.split_validation_size = 1;
    assert_int_equal(tp_dataset_open(&options, tok, pool, &ds, &err), TP_ERR_CONFIG);
    free(text);
}

static void arithmetic_is_a_data_set(void **state)
{
    tp_arithmetic_options sums = tp_arithmetic_defaults();
    tp_dataset_options options = {.arithmetic = &sums,
                                  .n_train = 10000,
                                  .n_validation = 500,
                                  .add_eos = true,
                                  .cache_dir = cache_dir};
    tp_dataset *ds = open_set(&options);
    assert_int_equal(tp_dataset_get_report(ds)->n_train, 10000);
    assert_int_equal(tp_dataset_get_report(ds)->n_validation, 500);
    tp_arithmetic made;
    char picture[600];
    tp_arithmetic_make(&sums, TP_SPLIT_VALIDATION, 499, &made);
    snprintf(picture, sizeof picture, "| %s\n> %s<|end|>\n", made.prompt, made.answer);
    expect_shown(ds, TP_SPLIT_VALIDATION, 499, picture);
    tp_loader *loader;
    const tp_microbatch *mb;
    tp_loader_options loading = {
        .pack = {.batch_size = 64, .packing = true, .budget = 256, .shuffle = true}};
    assert_int_equal(tp_dataset_loader(ds, TP_SPLIT_TRAIN, loading, &loader, &err), TP_OK);
    assert_int_equal(tp_loader_next(loader, &mb, &err), TP_OK);
    assert_int_equal(mb->step_sequences, 64);
    tp_loader_close(loader);
    tp_dataset_close(ds);
}

static void processes_that_want_the_same_data_share_it(void **state)
{
    char *text = many_rows(50000);
    tp_dataset_options options = options_of(text);
    free(text);
    pid_t children[4];
    for (int i = 0; i < 4; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            tp_dataset *ds;
            /* The pool's threads do not survive a fork. */
            if (tp_dataset_open(&options, tok, NULL, &ds, NULL) != TP_OK)
                _exit(99);
            bool hit = tp_dataset_get_report(ds)->cache_hit;
            bool right = tp_dataset_get_report(ds)->n_train == 50000;
            _exit(right ? hit : 98);
        }
    }
    int n_hits = 0;
    for (int i = 0; i < 4; i++) {
        int status;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
        n_hits += WEXITSTATUS(status);
    }
    assert_int_equal(n_hits, 3); /* one made it */
}

static void a_failing_write_leaves_no_cache(void **state)
{
    tp_dataset_options options = options_of(ROW("1", "a"));
    tp_dataset *ds;
    for (uint64_t n = 1;; n++) {
        tp_fault_arm(n, false);
        tp_status status = tp_dataset_open(&options, tok, pool, &ds, &err);
        bool reached = tp_fault_count() >= n;
        tp_fault_arm(0, false);
        if (status == TP_OK) {
            assert_false(reached);
            tp_dataset_close(ds);
            assert_in_range(n, 5, 20);
            return;
        }
        assert_true(reached);
        assert_int_equal(empty_cache(NULL), 0);
    }
}

/* What was heard of the opening of a file, and which word of it ends it; "": none. */
typedef struct {
    const char *end_at;
    char heard[1200];
} hearing;

static bool hear(void *user, const char *what, uint64_t done, uint64_t total)
{
    hearing *h = user;
    size_t n = strlen(h->heard);
    const char *path = strstr(what, root); /* it changes from run to run */
    assert_non_null(path);
    assert_string_equal(path, data_path);
    snprintf(h->heard + n, sizeof h->heard - n, "%.*s%llu of %llu\n", (int)(path - what), what,
             (unsigned long long)done, (unsigned long long)total);
    return !*h->end_at || strncmp(what, h->end_at, strlen(h->end_at)) != 0;
}

static void whoever_waits_hears_what_is_done(void **state)
{
    tp_dataset_options options = options_of("{\"text\": \"abc\"}\n");
    hearing first = {.end_at = ""}, second = {.end_at = ""};
    options.progress = hear;

    options.user = &first;
    tp_dataset_close(open_set(&options));
    options.user = &second;
    tp_dataset_close(open_set(&options));

    assert_string_equal(first.heard, "reading 16 of 16\ntokenising 16 of 16\n");
    assert_string_equal(second.heard, "reading 16 of 16\n");
}

static void reading_and_tokenising_can_be_interrupted(void **state)
{
    static const char *const words[] = {"reading", "tokenising"};
    tp_dataset_options options = options_of(ROW("1", "a"));
    tp_dataset *ds;
    for (size_t i = 0; i < 2; i++) {
        hearing h = {.end_at = words[i]};
        options.progress = hear;
        options.user = &h;
        assert_int_equal(tp_dataset_open(&options, tok, pool, &ds, &err), TP_ERR_INTERRUPTED);
        assert_non_null(strstr(err.message, words[i]));
    }
}

static void gsm8k_is_read_whole(void **state)
{
    const char *path = TP_SOURCE_DIR "/../shared/data/gsm8k_train.jsonl";
    if (!tp_file_exists(path)) {
        print_message("no %s beside the source: skipped\n", path);
        skip();
    }
    tp_dataset_options options = {.data_path = path,
                                  .cache_dir = cache_dir,
                                  .add_bos = true,
                                  .add_eos = true,
                                  .split_validation_size = 0.05};
    tp_dataset *ds = open_set(&options);
    const tp_dataset_report *r = tp_dataset_get_report(ds);
    assert_int_equal(r->counts.n_examples, 7473);
    assert_int_equal(r->n_train, 7473 - 374);
    assert_int_equal(r->n_validation, 374);
    assert_int_equal(r->counts.n_bad + r->counts.n_masked + r->counts.n_truncated, 0);
    assert_string_equal(last_notice, "");
    tp_dataset_close(ds);
}

int main(void)
{
#define FRESH(test) cmocka_unit_test_setup(test, empty_cache)
    const struct CMUnitTest tests[] = {
        FRESH(rows_are_tokenised_in_order),
        FRESH(columns_that_are_not_read_are_said),
        FRESH(headers_that_are_learned_are_said),
        FRESH(the_second_opening_hits_the_cache),
        FRESH(a_damaged_cache_is_made_again_loudly),
        FRESH(a_folder_that_cannot_be_written_has_a_fallback),
        FRESH(bad_rows_stop_or_are_skipped_and_counted),
        FRESH(bad_first_rows_do_not_decide_the_kind),
        FRESH(what_is_no_json_lines_is_named),
        FRESH(bom_crlf_and_a_missing_last_newline_are_fine),
        FRESH(a_huge_line_is_refused_without_reading_it_all),
        FRESH(lines_longer_than_a_wave_are_read),
        FRESH(rows_without_targets_are_left_out),
        FRESH(threads_do_not_change_the_cache),
        FRESH(a_split_is_a_partition_by_seed),
        FRESH(arithmetic_is_a_data_set),
        FRESH(processes_that_want_the_same_data_share_it),
        FRESH(a_failing_write_leaves_no_cache),
        FRESH(whoever_waits_hears_what_is_done),
        FRESH(reading_and_tokenising_can_be_interrupted),
        FRESH(gsm8k_is_read_whole),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
