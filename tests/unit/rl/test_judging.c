/* test_judging.c - judging beside other work: verdicts in their places, failures, stopping, and who
 * hears what a judge has to say.  Small shell scripts play the judges. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/reward/judging.h"
#include "unit/rl/environment_fixture.h"

static char folder[64];
static fixture f;
static tp_judging *j;

static int enter(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/temper-judging-XXXXXX");
    return !mkdtemp(folder) || chdir(folder) != 0;
}

static int leave(void **state)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return chdir("/") != 0 || system(command) != 0;
}

/* The reward is the length of what was said. */
#define COUNTS                                                        \
    "while read -r line; do x=${line#*'\"id\":'}; id=${x%%[!0-9]*}\n" \
    "x=${line#*'\"completion\":\"'}; said=${x%%'\"'*}\n"              \
    "case $said in hang) sleep 1000 ;; die) exit 1 ;; esac\n"         \
    "echo \"{\\\"id\\\":$id,\\\"reward\\\":${#said}}\"; done\n"

static void open_judge(const char *script, const char *failures)
{
    const char *words[] = {"env.judge.type=program", "env.judge.command=[sh, judge.sh]", failures,
                           "env.judge.retries=0", NULL};
    FILE *file = fopen("judge.sh", "w");
    assert_non_null(file);
    fputs(script, file);
    fclose(file);
    if (fixture_open(&f, "judge", words) != TP_OK)
        fail_msg("%s", f.err.message);
    assert_int_equal(tp_judging_create(&j, NULL), TP_OK);
}

static void close_judge(void)
{
    fixture_close(&f);
    tp_judging_free(j);
    j = NULL;
}

static const tp_prompt prompt = {.id = "test:1", .text = "question"};

static void begin(size_t n) { assert_int_equal(tp_judging_begin(j, f.env, NULL, n, NULL), TP_OK); }

static void give(const char *text, size_t place)
{
    const tp_completion c = {.prompt = &prompt, .text = text, .n_text = strlen(text)};
    tp_judging_give(j, &c, place);
}

static void verdicts_are_in_their_places(void **state)
{
    static const char *const texts[] = {"", "a", "bb", "ccc", "dddd", "eeeee"};
    open_judge(COUNTS, "env.judge.max_failures=2");
    for (int round = 0; round < 3; round++) {
        tp_rewards r = {0};
        double beside_s = -1;
        begin(6);
        for (size_t i = 6; i-- > 0;) {
            give(texts[i], i);
            if (i == 3 && round == 1)
                usleep(20000); /* no verdict: whether it has judged these or not */
        }
        assert_int_equal(tp_judging_wait(j, &r, &beside_s, &f.err), TP_OK);
        assert_int_equal(r.n, 6);
        assert_int_equal(r.counts[TP_REWARD_OK], 6);
        for (int i = 0; i < 6; i++)
            assert_true(r.v[i].reward == i);
        assert_true(beside_s >= 0);
        tp_rewards_release(&r);
    }
    close_judge();
}

static void nothing_to_judge(void **state)
{
    tp_rewards r = {0};
    open_judge(COUNTS, "env.judge.max_failures=2");
    begin(0);
    assert_true(tp_judging_is_done(j));
    assert_int_equal(tp_judging_wait(j, &r, NULL, &f.err), TP_OK);
    assert_int_equal(r.n, 0);
    tp_rewards_release(&r);
    tp_judging_drop(j); /* nothing has begun */
    close_judge();
}

static void an_answer_without_a_verdict_has_its_place(void **state)
{
    tp_rewards r = {0};
    open_judge(COUNTS, "env.judge.max_failures=2");
    begin(3);
    give("ab", 2);
    give("die", 0);
    give("abc", 1);
    assert_int_equal(tp_judging_wait(j, &r, NULL, &f.err), TP_OK);
    assert_int_equal(r.v[0].status, TP_REWARD_CRASHED);
    assert_true(isnan(r.v[0].reward));
    assert_true(r.v[1].reward == 3 && r.v[2].reward == 2);
    assert_int_equal(r.counts[TP_REWARD_CRASHED], 1);
    tp_rewards_release(&r);
    close_judge();
}

static void a_broken_judge_is_known_before_the_end(void **state)
{
    tp_rewards r = {0};
    tp_status status;
    open_judge("exit 1\n", "env.judge.max_failures=1");
    begin(3);
    give("a", 0);
    while ((status = tp_judging_look(j, &f.err)) == TP_OK)
        usleep(1000); /* no verdict: it asks again */
    assert_int_equal(status, TP_ERR_IO);
    assert_non_null(strstr(f.err.message, "was lost 1 times in a row"));
    assert_true(tp_judging_is_done(j));
    give("b", 1);
    give("c", 2);
    f.err.message[0] = 0;
    assert_int_equal(tp_judging_wait(j, &r, NULL, &f.err), TP_ERR_IO);
    assert_non_null(strstr(f.err.message, "was lost 1 times in a row"));
    assert_null(r.v);
    close_judge();
}

typedef struct {
    bool stops;
    int n_said;
    pthread_t thread;
    char last[400];
} listener;

static bool stops(void *user) { return ((const listener *)user)->stops; }

static void hear(void *user, const char *text)
{
    listener *l = user;
    assert_true(pthread_equal(l->thread, pthread_self()));
    l->n_said++;
    snprintf(l->last, sizeof l->last, "%s", text);
}

static void who_asks_to_stop_is_heard_and_told(void **state)
{
    listener l = {.thread = pthread_self()};
    const tp_environment_watch watch = {stops, hear, &l};
    tp_rewards r = {0};
    open_judge(COUNTS, "env.judge.max_failures=2");
    tp_environment_set_watch(f.env, &watch);
    begin(1);
    give("hang", 0);
    assert_int_equal(tp_judging_look(j, &f.err), TP_OK);
    l.stops = true;
    assert_int_equal(tp_judging_wait(j, &r, NULL, &f.err), TP_ERR_INTERRUPTED);
    assert_ptr_equal(tp_environment_get_watch(f.env).user, &l); /* as it was */
    close_judge();
}

static void what_is_dropped_is_over(void **state)
{
    tp_rewards r = {0};
    open_judge(COUNTS, "env.judge.max_failures=2");
    begin(2);
    give("hang", 0);
    tp_judging_drop(j);
    begin(1); /* and another round may begin */
    give("abcd", 0);
    assert_int_equal(tp_judging_wait(j, &r, NULL, &f.err), TP_OK);
    assert_true(r.v[0].reward == 4);
    tp_rewards_release(&r);
    close_judge();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verdicts_are_in_their_places),
        cmocka_unit_test(nothing_to_judge),
        cmocka_unit_test(an_answer_without_a_verdict_has_its_place),
        cmocka_unit_test(a_broken_judge_is_known_before_the_end),
        cmocka_unit_test(who_asks_to_stop_is_heard_and_told),
        cmocka_unit_test(what_is_dropped_is_over),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
