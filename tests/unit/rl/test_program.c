/* test_program.c - judges that are programs, most of them bad ones.  Small shell scripts
 * play them.  A limit that an honest answer must keep is PATIENCE seconds, far more than a
 * shell needs that starts no other program; others are short. */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/reward/program_line.h"
#include "unit/rl/environment_fixture.h"

/* Of the tests in which one question times out and others must not. */
#define PATIENCE "3"

static char folder[64];

static int enter(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/temper-judge-XXXXXX");
    return !mkdtemp(folder) || chdir(folder) != 0;
}

static int leave(void **state)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") != 0 || system(command) != 0;
}

/* A script in the folder; the shell itself takes id and completion out of a question. */
static void write_script(const char *body)
{
    FILE *f = fopen("judge.sh", "w");
    assert_non_null(f);
    fprintf(f,
            "id_of() { x=${1#*'\"id\":'}; echo \"${x%%%%[!0-9]*}\"; }\n"
            "said() { x=${1#*'\"completion\":\"'}; echo \"${x%%%%'\"'*}\"; }\n"
            "%s",
            body);
    fclose(f);
}

#define COMMAND "env.judge.type=program", "env.judge.command=[sh, judge.sh]"
#define OPEN(...) open_judge((const char *const[]){COMMAND, __VA_ARGS__, NULL})

static fixture f;

static void open_judge(const char *const *words)
{
    if (fixture_open(&f, "judge", words) != TP_OK)
        fail_msg("%s", f.err.message);
}

/* Replies 1 to "good" and 0 to all else, and does something else for some words. */
#define HONEST(cases)                                                               \
    "while read -r line; do\n"                                                      \
    "id=$(id_of \"$line\"); word=$(said \"$line\")\n"                               \
    "case $word in\n" cases "good) echo \"{\\\"id\\\":$id,\\\"reward\\\":1}\" ;;\n" \
    "*) echo \"{\\\"id\\\":$id,\\\"reward\\\":0}\" ;;\n"                            \
    "esac\ndone\n"

static void expect_good(const tp_reward *r, double reward)
{
    if (r->status != TP_REWARD_OK)
        fail_msg("no reward: %s", r->why);
    assert_true(r->reward == reward);
}

static void expect_excluded(const tp_reward *r, tp_reward_status status, const char *why)
{
    assert_int_equal(r->status, status);
    assert_true(isnan(r->reward));
    if (!strstr(r->why, why))
        fail_msg("'%s' does not say '%s'", r->why, why);
}

static void an_honest_program(void **state)
{
    write_script(HONEST(""));
    OPEN("env.judge.num_workers=3");
    const char *texts[] = {"good", "bad", "good", "bad", "good", "bad", "good", "bad"};

    tp_rewards r = fixture_score(&f, "t", NULL, texts, 8);

    assert_int_equal(r.n, 8);
    for (int i = 0; i < 8; i++) {
        expect_good(&r.v[i], i % 2 == 0);
        assert_int_equal(r.v[i].correct, i % 2 ? TP_CORRECT_NO : TP_CORRECT_YES);
    }
    assert_int_equal(r.counts[TP_REWARD_OK], 8);
    tp_rewards_release(&r);
    assert_int_equal(tp_environment_get_counts(f.env).died, 0);
    fixture_close(&f);
}

static void the_question_says_everything(void **state)
{
    write_script("read -r line; printf '%s\\n' \"$line\" >asked\n"
                 "echo '{\"id\":0,\"reward\":0.5,\"answer\":\"x\",\"metrics\":{\"a\":2,\"b\":3}}'\n"
                 "cat >/dev/null\n");
    OPEN("env.judge.num_workers=1");
    const char *texts[] = {"line\n\"quoted\""};

    tp_rewards r = fixture_score(&f, "truth", NULL, texts, 1);

    expect_good(&r.v[0], 0.5);
    assert_int_equal(r.v[0].correct, TP_CORRECT_UNKNOWN);
    assert_string_equal(r.v[0].answer, "x");
    assert_int_equal(r.v[0].n_parts, 2);
    assert_string_equal(r.v[0].parts[1].name, "b");
    assert_true(r.v[0].parts[1].value == 3);
    tp_rewards_release(&r);
    fixture_close(&f);
    char line[500] = "";
    FILE *asked = fopen("asked", "r");
    assert_non_null(asked);
    assert_non_null(fgets(line, sizeof line, asked));
    fclose(asked);
    assert_string_equal(line, "{\"id\":0,\"env\":\"judge\",\"prompt_id\":\"test:1\",\"sample\":0,"
                              "\"prompt\":\"question\",\"completion\":\"line\\n\\\"quoted\\\"\","
                              "\"truth\":\"truth\",\"n_tokens\":0,\"truncated\":false}\n");
}

/* Verdicts of a judge that hangs over so many answers.  On a machine that stands still for as long
 * as PATIENCE it is late for others too, through no fault of anybody: then it is asked anew. */
static tp_rewards ask_judge(const char *const *words, const char *const *texts, size_t n,
                            int n_hanging)
{
    for (int attempt = 0;; attempt++) {
        open_judge(words);
        tp_rewards r = fixture_score(&f, "t", NULL, texts, n);
        if ((int)r.counts[TP_REWARD_TIMEOUT] <= n_hanging || attempt == 4)
            return r;
        tp_rewards_release(&r);
        fixture_close(&f);
    }
}

#define ASK(texts, n, n_hanging, ...) \
    ask_judge((const char *const[]){COMMAND, __VA_ARGS__, NULL}, texts, n, n_hanging)

static void hanging_is_a_timeout(void **state)
{
    write_script(HONEST("hang) sleep 1000 ;;\n"));
    const char *texts[] = {"good", "hang", "good", "hang", "good", "good"};

    tp_rewards r = ASK(texts, 6, 2, "env.judge.num_workers=2", "env.judge.timeout=" PATIENCE,
                       "env.judge.grace=0.05");

    assert_int_equal(r.n, 6);
    for (int i = 0; i < 6; i++)
        if (i == 1 || i == 3)
            expect_excluded(&r.v[i], TP_REWARD_TIMEOUT, "no answer within " PATIENCE " s");
        else
            expect_good(&r.v[i], 1);
    assert_int_equal(r.counts[TP_REWARD_TIMEOUT], 2);
    tp_rewards_release(&r);
    fixture_close(&f);
}

static void an_answer_to_another_question_is_named(void **state)
{
    write_script("read -r line; echo '{\"id\":12345,\"reward\":1}'; sleep 1000\n");
    OPEN("env.judge.num_workers=1", "env.judge.timeout=" PATIENCE, "env.judge.grace=0.05");
    const char *texts[] = {"good"};

    tp_rewards r = fixture_score(&f, "t", NULL, texts, 1);

    assert_int_equal(r.n, 1);
    expect_excluded(&r.v[0], TP_REWARD_TIMEOUT,
                    "no answer within " PATIENCE
                    " s to question 0; it answered \"id\": 12345, which nobody asked");
    tp_rewards_release(&r);
    fixture_close(&f);
}

static void hanging_among_many_in_flight(void **state)
{
    write_script(HONEST("hang) sleep 1000 ;;\n"));
    const char *texts[] = {"good", "hang", "bad", "good", "bad", "good"};

    tp_rewards r = ASK(texts, 6, 1, "env.judge.num_workers=1", "env.judge.timeout=" PATIENCE,
                       "env.judge.grace=0.05", "env.judge.in_flight=4");

    assert_int_equal(r.n, 6);
    for (int i = 0; i < 6; i++)
        if (i == 1)
            expect_excluded(&r.v[i], TP_REWARD_TIMEOUT, "no answer within");
        else
            expect_good(&r.v[i], strcmp(texts[i], "good") == 0);
    tp_rewards_release(&r);
    fixture_close(&f);
}

static void dying_is_a_crash(void **state)
{
    write_script(HONEST("die) echo 'Segmentation of the worm' >&2; exit 7 ;;\n"
                        "kill) kill -9 $$ ;;\n"));
    OPEN("env.judge.num_workers=1", "env.judge.backoff=0.001");
    const char *texts[] = {"good", "die", "good", "kill", "good"};

    tp_rewards r = fixture_score(&f, "t", NULL, texts, 5);

    assert_int_equal(r.n, 5);
    expect_excluded(&r.v[1], TP_REWARD_CRASHED, "exit status 7; it said: Segmentation of the worm");
    expect_excluded(&r.v[3], TP_REWARD_CRASHED, "signal 9 (Killed)");
    for (int i = 0; i < 5; i += 2)
        expect_good(&r.v[i], 1);
    assert_int_equal(r.counts[TP_REWARD_CRASHED], 2);
    tp_rewards_release(&r);
    /* Each was tried twice. */
    assert_int_equal(tp_environment_get_counts(f.env).died, 4);
    fixture_close(&f);
}

static void dying_among_many_in_flight(void **state)
{
    write_script(HONEST("die) exit 7 ;;\n"));
    OPEN("env.judge.num_workers=2", "env.judge.in_flight=8", "env.judge.backoff=0.001");
    const char *texts[] = {"bad", "good", "die", "good", "bad", "good", "die", "good"};

    tp_rewards r = fixture_score(&f, "t", NULL, texts, 8);

    assert_int_equal(r.n, 8);
    for (int i = 0; i < 8; i++)
        if (i == 2 || i == 6)
            expect_excluded(&r.v[i], TP_REWARD_CRASHED, "exit status 7");
        else
            expect_good(&r.v[i], strcmp(texts[i], "good") == 0);
    tp_rewards_release(&r);
    fixture_close(&f);
}

static void a_program_that_ends_after_each_answer(void **state)
{
    write_script("read -r line; echo \"{\\\"id\\\":$(id_of \"$line\"),\\\"reward\\\":1}\"\n");
    OPEN("env.judge.num_workers=1", "env.judge.retries=5", "env.judge.max_failures=3",
         "env.judge.backoff=0.001");
    const char *texts[] = {"a", "b", "c", "d", "e", "f"};

    tp_rewards r = fixture_score(&f, "t", NULL, texts, 6);

    assert_int_equal(r.n, 6);
    assert_int_equal(r.counts[TP_REWARD_OK], 6);
    tp_rewards_release(&r);
    fixture_close(&f);
}

static void a_program_that_never_works_ends_the_run(void **state)
{
    write_script("echo 'no module named numpy' >&2; exit 1\n");
    OPEN("env.judge.num_workers=2", "env.judge.backoff=0.001", "env.judge.max_failures=4",
         "env.judge.retries=100");
    const char *texts[] = {"a", "b", "c"};

    tp_rewards r = fixture_score(&f, "t", NULL, texts, 3);

    assert_int_equal(r.n, 0);
    assert_int_equal(f.err.status, TP_ERR_IO);
    assert_non_null(strstr(f.err.message, "env.judge: 'sh' was lost 4 times in a row"));
    assert_non_null(strstr(f.err.message, "exit status 1; it said: no module named numpy"));
    fixture_close(&f);
}

static void flooding_is_nonsense(void **state)
{
    write_script(HONEST("flood) yes ;;\n"
                        "long) head -c 3000000 /dev/zero | tr '\\0' x ;;\n"
                        "errors) yes >&2 & sleep 0.1; kill $!; echo "
                        "\"{\\\"id\\\":$id,\\\"reward\\\":1}\" ;;\n"));
    OPEN("env.judge.num_workers=1", "env.judge.max_line_bytes=65536", "env.judge.backoff=0.001");
    const char *texts[] = {"good", "long", "good", "errors", "flood", "good"};

    tp_rewards r = fixture_score(&f, "t", NULL, texts, 6);

    assert_int_equal(r.n, 6);
    expect_excluded(&r.v[1], TP_REWARD_NONSENSE, "it floods: a line longer than max_line_bytes");
    /* The first line of a flood is an answer, and no JSON. */
    expect_excluded(&r.v[4], TP_REWARD_NONSENSE, "no JSON: 'y'");
    expect_good(&r.v[0], 1);
    expect_good(&r.v[2], 1);
    expect_good(&r.v[3], 1);
    expect_good(&r.v[5], 1);
    tp_rewards_release(&r);
    assert_true(tp_environment_get_counts(f.env).killed >= 2);
    fixture_close(&f);
}

static void nonsense_and_nan(void **state)
{
    write_script(
        HONEST("text) echo 'I like it' ;;\n"
               "none) echo \"{\\\"id\\\":$id}\" ;;\n"
               "null) echo \"{\\\"id\\\":$id,\\\"reward\\\":null}\" ;;\n"
               "word) echo \"{\\\"id\\\":$id,\\\"reward\\\":\\\"much\\\"}\" ;;\n"
               "nan) echo \"{\\\"id\\\":$id,\\\"reward\\\":NaN}\" ;;\n"
               "inf) echo \"{\\\"id\\\":$id,\\\"reward\\\":-Infinity}\" ;;\n"
               "huge) echo \"{\\\"id\\\":$id,\\\"reward\\\":1e999}\" ;;\n"
               "quoted) echo \"{\\\"id\\\":$id,\\\"reward\\\":\\\"NaN\\\"}\" ;;\n"
               "endless) echo \"{\\\"id\\\":$id,\\\"reward\\\":\\\"inf\\\"}\" ;;\n"
               "true) echo \"{\\\"id\\\":$id,\\\"reward\\\":true}\" ;;\n"
               "sorry) echo \"{\\\"id\\\":$id,\\\"error\\\":\\\"cannot parse\\\"}\" ;;\n"));
    OPEN("env.judge.num_workers=1");
    static const struct {
        const char *text;
        tp_reward_status status;
        const char *why;
    } samples[] = {
        {"text", TP_REWARD_NONSENSE, "the answer is no JSON: 'I like it'"},
        {"none", TP_REWARD_NONSENSE, "\"reward\" is missing"},
        {"null", TP_REWARD_NONSENSE, "\"reward\" is null"},
        {"word", TP_REWARD_NONSENSE, "\"reward\" is a string"},
        {"nan", TP_REWARD_NAN, "NaN"},
        {"inf", TP_REWARD_NAN, "infinite"},
        {"huge", TP_REWARD_NAN, "infinite"},
        {"quoted", TP_REWARD_NAN, "NaN"},
        {"endless", TP_REWARD_NAN, "infinite"},
        {"sorry", TP_REWARD_REFUSED, "cannot parse"},
        {"true", TP_REWARD_OK, NULL},
        {"good", TP_REWARD_OK, NULL},
    };
    const char *texts[TP_COUNTOF(samples)];
    for (size_t i = 0; i < TP_COUNTOF(samples); i++)
        texts[i] = samples[i].text;

    tp_rewards r = fixture_score(&f, "t", NULL, texts, TP_COUNTOF(samples));

    assert_int_equal(r.n, TP_COUNTOF(samples));
    for (size_t i = 0; i < TP_COUNTOF(samples); i++)
        if (samples[i].status == TP_REWARD_OK)
            expect_good(&r.v[i], 1);
        else
            expect_excluded(&r.v[i], samples[i].status, samples[i].why);
    assert_int_equal(r.counts[TP_REWARD_NAN], 5);
    assert_int_equal(r.counts[TP_REWARD_NONSENSE], 4);
    tp_rewards_release(&r);
    /* A program that talks nonsense is not a program that died. */
    assert_int_equal(tp_environment_get_counts(f.env).started, 1);
    fixture_close(&f);
}

static void answers_out_of_order(void **state)
{
    /* Three questions are read before any is answered, the last one first. */
    write_script("while read -r a && read -r b && read -r c; do\n"
                 "for line in \"$c\" \"$b\" \"$a\"; do\n"
                 "case $(said \"$line\") in good) reward=1 ;; *) reward=0 ;; esac\n"
                 "echo \"{\\\"id\\\":$(id_of \"$line\"),\\\"reward\\\":$reward}\"\n"
                 "done; done\n");
    OPEN("env.judge.num_workers=1", "env.judge.in_flight=3");
    const char *texts[] = {"good", "bad", "good", "bad", "bad", "good"};

    tp_rewards r = fixture_score(&f, "t", NULL, texts, 6);

    assert_int_equal(r.n, 6);
    for (int i = 0; i < 6; i++)
        expect_good(&r.v[i], strcmp(texts[i], "good") == 0);
    tp_rewards_release(&r);
    fixture_close(&f);
}

/* The late answer arrives while the program still has its grace: it is counted, does not
 * become the answer of another question, and the program goes on. */
static void late_answers_are_counted(void **state)
{
    write_script(HONEST("slow) sleep 8; echo \"{\\\"id\\\":$id,\\\"reward\\\":1}\" ;;\n"));
    const char *texts[] = {"slow", "bad", "good"};

    tp_rewards r = ASK(texts, 3, 1, "env.judge.num_workers=1", "env.judge.timeout=" PATIENCE,
                       "env.judge.grace=60");

    assert_int_equal(r.n, 3);
    expect_excluded(&r.v[0], TP_REWARD_TIMEOUT, "no answer within");
    expect_good(&r.v[1], 0);
    expect_good(&r.v[2], 1);
    tp_rewards_release(&r);
    assert_int_equal(tp_environment_get_counts(f.env).late_answers, 1);
    assert_int_equal(tp_environment_get_counts(f.env).killed, 0);
    fixture_close(&f);
}

static void answers_to_nobody_are_ignored(void **state)
{
    write_script(HONEST("wrong) echo '{\"id\":999999,\"reward\":1}'; echo "
                        "\"{\\\"id\\\":$id,\\\"reward\\\":0}\" ;;\n"
                        "twice) echo \"{\\\"id\\\":$id,\\\"reward\\\":1}\"; echo "
                        "\"{\\\"id\\\":$id,\\\"reward\\\":0}\" ;;\n"));
    OPEN("env.judge.num_workers=1");
    const char *texts[] = {"wrong", "twice", "bad", "good"};

    tp_rewards r = fixture_score(&f, "t", NULL, texts, 4);

    assert_int_equal(r.n, 4);
    expect_good(&r.v[0], 0);
    expect_good(&r.v[1], 1);
    expect_good(&r.v[2], 0);
    expect_good(&r.v[3], 1);
    tp_rewards_release(&r);
    fixture_close(&f);
}

/* It reads nothing at all: the questions fill the pipe, and nobody waits for that. */
static void a_program_that_does_not_read(void **state)
{
    write_script("sleep 1000\n");
    OPEN("env.judge.num_workers=1", "env.judge.timeout=0.2", "env.judge.grace=0.01",
         "env.judge.max_failures=100");
    tp_buf text = {0};
    for (int i = 0; i < 300000; i++)
        tp_buf_addc(&text, 'x');
    const char *texts[] = {tp_buf_str(&text), tp_buf_str(&text)};

    tp_rewards r = fixture_score(&f, "t", NULL, texts, 2);

    assert_int_equal(r.n, 2);
    assert_int_equal(r.counts[TP_REWARD_TIMEOUT], 2);
    tp_rewards_release(&r);
    tp_buf_release(&text);
    fixture_close(&f);
}

static void a_text_goes_to_the_shell(void **state)
{
    fixture g;
    write_script(HONEST(""));
    const char *const words[] = {"env.judge.type=program", "env.judge.command='cat | sh judge.sh'",
                                 NULL};
    assert_int_equal(fixture_open(&g, "judge", words), TP_OK);
    const char *texts[] = {"good"};
    tp_rewards r = fixture_score(&g, "t", NULL, texts, 1);
    assert_int_equal(r.n, 1);
    expect_good(&r.v[0], 1);
    tp_rewards_release(&r);
    fixture_close(&g);
}

/* Nothing is left running, not even what the program started. */
static void closing_ends_everything(void **state)
{
    /* The first answer says that both are there. */
    write_script("sleep 1000 & echo $! >child; echo $$ >parent; trap '' TERM; read -r line; echo "
                 "\"{\\\"id\\\":$(id_of \"$line\"),\\\"reward\\\":1}\"; cat >/dev/null; "
                 "sleep 1000\n");
    const char *texts[] = {"first", "x"};
    tp_rewards r = ASK(texts, 2, 1, "env.judge.num_workers=1", "env.judge.timeout=" PATIENCE,
                       "env.judge.grace=0");
    expect_good(&r.v[0], 1);
    assert_int_equal(r.counts[TP_REWARD_TIMEOUT], 1);
    tp_rewards_release(&r);
    fixture_close(&f);

    static const char *const files[] = {"child", "parent"};
    for (int i = 0; i < 2; i++) {
        FILE *file = fopen(files[i], "r");
        int pid = 0, rc = 0;
        assert_non_null(file);
        assert_int_equal(fscanf(file, "%d", &pid), 1);
        fclose(file);
        /* An orphan is reaped by someone else, a moment later. */
        while ((rc = kill(pid, 0)) == 0) {
            char path[64], stat[200] = "";
            snprintf(path, sizeof path, "/proc/%d/stat", pid);
            FILE *s = fopen(path, "r");
            if (s && fgets(stat, sizeof stat, s) && strstr(stat, ") Z"))
                rc = -1; /* dead, if not buried */
            if (s)
                fclose(s);
            if (rc != 0)
                break;
            usleep(1000); /* no verdict: it asks again */
        }
        assert_int_not_equal(rc, 0);
    }
}

static void lines_of_a_program(void **state)
{
    static const struct {
        const char *line;
        int64_t id;
        tp_reward_status status;
    } samples[] = {
        {"{\"id\":3,\"reward\":1}", 3, TP_REWARD_OK},
        {"{\"id\":3.5,\"reward\":1}", TP_PROGRAM_NO_ID, TP_REWARD_NONSENSE},
        {"{\"id\":-3,\"reward\":1}", TP_PROGRAM_NO_ID, TP_REWARD_NONSENSE},
        {"{\"id\":\"3\",\"reward\":1}", TP_PROGRAM_NO_ID, TP_REWARD_NONSENSE},
        {"{\"reward\":1}", TP_PROGRAM_NO_ID, TP_REWARD_NONSENSE},
        {"[3,1]", TP_PROGRAM_NO_ID, TP_REWARD_NONSENSE},
        {"", TP_PROGRAM_NO_ID, TP_REWARD_NONSENSE},
        {"{\"id\":3,\"reward\":1", TP_PROGRAM_NO_ID, TP_REWARD_NONSENSE},
        {"{\"id\":3,\"reward\":[1]}", 3, TP_REWARD_NONSENSE},
        {"{\"id\":3,\"error\":{\"a\":1}}", 3, TP_REWARD_REFUSED},
        {"{\"id\":3,\"error\":null,\"reward\":0.25}", 3, TP_REWARD_OK},
        {"{\"id\":3,\"reward\":-1e-300}", 3, TP_REWARD_OK},
    };
    for (size_t i = 0; i < TP_COUNTOF(samples); i++) {
        tp_reward *r = tp_rewards_new(1);
        if (tp_program_line_read(tp_slice_of(samples[i].line), r) != samples[i].id)
            fail_msg("'%s': wrong id", samples[i].line);
        if (r->status != samples[i].status)
            fail_msg("'%s' is %s", samples[i].line, tp_reward_status_name(r->status));
        tp_reward_release(r);
        free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_a_program),
        cmocka_unit_test(an_honest_program),
        cmocka_unit_test(the_question_says_everything),
        cmocka_unit_test(hanging_is_a_timeout),
        cmocka_unit_test(an_answer_to_another_question_is_named),
        cmocka_unit_test(hanging_among_many_in_flight),
        cmocka_unit_test(dying_is_a_crash),
        cmocka_unit_test(dying_among_many_in_flight),
        cmocka_unit_test(a_program_that_ends_after_each_answer),
        cmocka_unit_test(a_program_that_never_works_ends_the_run),
        cmocka_unit_test(flooding_is_nonsense),
        cmocka_unit_test(nonsense_and_nan),
        cmocka_unit_test(answers_out_of_order),
        cmocka_unit_test(late_answers_are_counted),
        cmocka_unit_test(answers_to_nobody_are_ignored),
        cmocka_unit_test(a_program_that_does_not_read),
        cmocka_unit_test(a_text_goes_to_the_shell),
        cmocka_unit_test(closing_ends_everything),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
