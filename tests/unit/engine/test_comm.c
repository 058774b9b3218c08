/* What ranks do together, over threads: every number of ranks has its own schedule. */
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/platform.h"
#include "support/local_ranks.h"

/* Of rank r, element i. */
static float value_of(int r, size_t i) { return (float)(r + 1) * 0.1f + (float)i * 1e-3f; }

typedef struct {
    size_t n;
    float *results; /* [ranks][n] */
} sums;

/* Parts: the elements split as evenly as they can, the last rank has none when there are few. */
static void split(size_t n, int ranks, size_t *starts)
{
    for (int i = 0; i <= ranks; i++)
        starts[i] = TP_MIN((n + (size_t)ranks - 1) / (size_t)ranks * (size_t)i, n);
}

static void reduce(tp_comm *comm, void *user)
{
    const sums *s = user;
    size_t starts[17];
    tp_exchange *request;
    float *data = s->results + (size_t)tp_comm_rank(comm) * s->n;
    float *temp = calloc(s->n, sizeof *temp);
    split(s->n, tp_comm_size(comm), starts);
    for (size_t i = 0; i < s->n; i++)
        data[i] = value_of(tp_comm_rank(comm), i);
    const tp_exchange_spec all = {.kind = TP_ALL_REDUCE,
                                  .element = sizeof *data,
                                  .add = tp_add_f32,
                                  .data = data,
                                  .temp = temp,
                                  .starts = starts};
    tp_error err;
    if (tp_comm_start(comm, &all, &request, &err) != TP_OK ||
        tp_comm_wait(comm, request, &err) != TP_OK)
        abort();
    free(temp);
}

static void all_reduce_gives_every_rank_the_same_sum(void **state)
{
    for (int ranks = 1; ranks <= 8; ranks++)
        for (size_t n = 1; n <= 67; n += 11) {
            sums s = {n, calloc((size_t)ranks * n, sizeof(float))};
            local_ranks_run(ranks, reduce, &s);
            for (size_t i = 0; i < n; i++) {
                double exact = 0;
                for (int r = 0; r < ranks; r++)
                    exact += (double)value_of(r, i);
                assert_true(exact - 1e-5 < (double)s.results[i] &&
                            (double)s.results[i] < exact + 1e-5);
                for (int r = 1; r < ranks; r++)
                    assert_memory_equal(&s.results[(size_t)r * n + i], &s.results[i], 4);
            }
            free(s.results);
        }
}

static void gather(tp_comm *comm, void *user)
{
    int mine = 10 + tp_comm_rank(comm), all[16] = {0};
    tp_error err;
    if (tp_comm_gather(comm, &mine, sizeof mine, all, &err) != TP_OK)
        abort();
    for (int i = 0; i < tp_comm_size(comm); i++)
        if (all[i] != 10 + i)
            abort();
    double v[2] = {tp_comm_rank(comm), 1}, most = tp_comm_rank(comm);
    int n = tp_comm_size(comm), word = tp_comm_rank(comm) == n - 1 ? 77 : 0;
    if (tp_comm_sum(comm, v, 2, &err) != TP_OK || tp_comm_max(comm, &most, 1, &err) != TP_OK ||
        tp_comm_broadcast(comm, &word, sizeof word, n - 1, &err) != TP_OK)
        abort();
    if (v[0] != n * (n - 1) / 2 || v[1] != n || most != n - 1 || word != 77)
        abort();
    (void)user;
}

static void small_things_reach_every_rank(void **state)
{
    for (int ranks = 1; ranks <= 9; ranks++)
        local_ranks_run(ranks, gather, NULL);
}

/* Several are on their way at once, and are waited for in any order. */
static void overlap(tp_comm *comm, void *user)
{
    enum { N = 5, SIZE = 40 };
    float data[N][SIZE], temp[N][SIZE];
    size_t starts[17];
    tp_exchange *requests[N];
    tp_error err;
    split(SIZE, tp_comm_size(comm), starts);
    for (int k = 0; k < N; k++) {
        for (size_t i = 0; i < SIZE; i++)
            data[k][i] = (float)k;
        const tp_exchange_spec c = {.kind = TP_ALL_REDUCE,
                                    .element = 4,
                                    .add = tp_add_f32,
                                    .data = data[k],
                                    .temp = temp[k],
                                    .starts = starts};
        if (tp_comm_start(comm, &c, &requests[k], &err) != TP_OK)
            abort();
    }
    for (int k = N; k-- > 0;) {
        tp_comm_progress(comm);
        if (tp_comm_wait(comm, requests[k], &err) != TP_OK ||
            data[k][SIZE - 1] != (float)(k * tp_comm_size(comm)))
            abort();
    }
    (void)user;
}

static void several_are_on_their_way_at_once(void **state)
{
    for (int ranks = 1; ranks <= 5; ranks++)
        local_ranks_run(ranks, overlap, NULL);
}

/* Every rank's clock goes by itself; rank 0's is the machine's. */
typedef struct {
    int64_t ahead_ns;
} own_clock;

static int64_t read_own(void *user)
{
    const own_clock *k = user;
    return (int64_t)tp_clock_ns() + k->ahead_ns;
}

static void compare_clocks(tp_comm *comm, void *user)
{
    own_clock k = {(int64_t)tp_comm_rank(comm) * -3000000000};
    tp_clock_offset o = {77, 77};
    tp_error err;
    if (tp_comm_compare_clocks(comm, read_own, &k, &o, &err) != TP_OK)
        abort();
    int64_t wrong = o.offset_ns - k.ahead_ns;
    if (o.error_ns < 0 || (wrong < 0 ? -wrong : wrong) > o.error_ns ||
        (tp_comm_rank(comm) == 0) != (o.error_ns == 0))
        abort();
    gather(comm, user); /* all still know what comes next */
}

static void clocks_are_compared_within_the_stated_error(void **state)
{
    for (int ranks = 1; ranks <= 5; ranks += 2)
        local_ranks_run(ranks, compare_clocks, NULL);
}

static void disagree(tp_comm *comm, void *user)
{
    tp_error err = {0};
    tp_status mine = TP_OK;
    if (tp_comm_rank(comm) == 1)
        mine = tp_fail(&err, TP_ERR_FORMAT, "no such row");
    if (tp_comm_agree(comm, mine, &err) != TP_ERR_FORMAT || !strstr(err.message, "rank 1 (") ||
        !strstr(err.message, "): no such row"))
        abort();
    (void)user;
}

static void a_failure_of_one_is_everybodys(void **state) { local_ranks_run(3, disagree, NULL); }

/* Rank 2 fails where the others wait for it in a collective. */
static void fail_alone(tp_comm *comm, void *user)
{
    tp_error err = {0};
    double x = 1;
    if (tp_comm_rank(comm) == 2) {
        (void)!tp_fail(&err, TP_ERR_OUTPUT, "disk full");
        tp_comm_fail(comm, &err);
    } else if (tp_comm_sum(comm, &x, 1, &err) != TP_ERR_OUTPUT ||
               !strstr(err.message, "rank 2 (") || !strstr(err.message, "disk full"))
        abort();
    (void)user;
}

static void a_failure_ends_the_waiting_of_the_others(void **state)
{
    local_ranks_run(4, fail_alone, NULL);
}

static void compare(tp_comm *comm, void *user)
{
    const tp_comm_fact facts[] = {
        {.what = "configuration", .hash = "12"},
        {.what = "training data", .hash = {'3', tp_comm_rank(comm) == 2 ? '9' : '4'}}};
    tp_error err = {0};
    if (tp_comm_compare(comm, facts, 1, &err) != TP_OK)
        abort();
    if (tp_comm_compare(comm, facts, 2, &err) != TP_ERR_CONFIG ||
        !strstr(err.message, "ranks do not have the same training data: rank 2 (") ||
        !strstr(err.message, " differs from rank 0"))
        abort();
    (void)user;
}

/* Of four ranks 0 and 2, 1 and 3 have the same; as `user` says rank 3 has not. */
static void compare_by_twos(tp_comm *comm, void *user)
{
    const int rank = tp_comm_rank(comm), *differs = user;
    const tp_comm_fact fact = {"sizes", {*differs && rank == 3 ? '7' : (char)('0' + rank % 2)}, 2};
    tp_error err = {0};
    tp_status status = tp_comm_compare(comm, &fact, 1, &err);
    if (!*differs && status != TP_OK)
        abort();
    if (*differs && (status != TP_ERR_CONFIG ||
                     !strstr(err.message, "ranks do not have the same sizes: rank 3 (") ||
                     !strstr(err.message, " differs from rank 1")))
        abort();
}

static void what_differs_is_named(void **state)
{
    int differs[] = {0, 1};
    local_ranks_run(4, compare, NULL);
    local_ranks_run(4, compare_by_twos, &differs[0]);
    local_ranks_run(4, compare_by_twos, &differs[1]);
}

/* Rank 1 sends what it owes in the first round and then stands still, until both others have said
 * whom they wait for: rank 0 has that and waits for rank 2, which has all it wants but nobody takes
 * what it sends.  A thread that the processor is taken from for long is named as well, before: only
 * that the right words come is asked, and without them this never ends. */
typedef struct {
    const char *expected;
    bool has_come;
    sem_t *is_named;
} listener;

static void hear(void *user, const char *text)
{
    listener *l = user;
    if (l->has_come || !l->expected || !strstr(text, l->expected))
        return;
    l->has_come = true;
    sem_post(l->is_named);
}

static void stand_still(tp_comm *comm, void *user)
{
    static const char *const expected[] = {"rank 0 waits for rank 2 (", NULL,
                                           "rank 2 waits for rank 1 ("};
    int rank = tp_comm_rank(comm);
    listener l = {.expected = expected[rank], .is_named = user};
    float data[3] = {1, 2, 3}, temp[3];
    const size_t starts[] = {0, 1, 2, 3};
    const tp_exchange_spec all = {.kind = TP_ALL_REDUCE,
                                  .element = sizeof *data,
                                  .add = tp_add_f32,
                                  .data = data,
                                  .temp = temp,
                                  .starts = starts};
    tp_exchange *request;
    tp_error err;
    tp_comm_on_notice(comm, hear, &l);
    if (tp_comm_start(comm, &all, &request, &err) != TP_OK)
        abort();
    for (int waiting = 2; rank == 1 && waiting > 0; waiting--)
        sem_wait(l.is_named);
    if (tp_comm_wait(comm, request, &err) != TP_OK || data[2] != 9)
        abort();
}

static void a_rank_that_stands_still_is_named_by_who_sends_to_it(void **state)
{
    sem_t is_named;
    sem_init(&is_named, 0, 0);
    local_ranks_run(3, stand_still, &is_named);
    sem_destroy(&is_named);
}

static void gather_in(tp_comm *comm, tp_comm_group group, int *data)
{
    tp_exchange *request;
    tp_error err;
    const size_t starts[] = {0, 1, 2};
    const tp_exchange_spec all = {.kind = TP_ALL_GATHER,
                                  .group = group,
                                  .element = sizeof *data,
                                  .data = data,
                                  .starts = starts};
    if (tp_comm_start(comm, &all, &request, &err) != TP_OK ||
        tp_comm_wait(comm, request, &err) != TP_OK)
        abort();
}

/* Ranks 1 and 3 say more to each other than 0 and 2; then neighbours talk, and all. */
static void talk_in_groups(tp_comm *comm, void *user)
{
    int rank = tp_comm_rank(comm), across[2], beside[2], all[4];
    (void)user;
    for (int times = 0; times < 1 + 2 * (rank % 2); times++) {
        across[rank / 2] = 10 * rank + times;
        gather_in(comm, (tp_comm_group){rank % 2, 2, 2}, across);
        if (across[1 - rank / 2] != 10 * (rank ^ 2) + times)
            abort();
    }
    beside[rank % 2] = 100 + rank;
    gather_in(comm, (tp_comm_group){rank / 2 * 2, 1, 2}, beside);
    if (beside[1 - rank % 2] != 100 + (rank ^ 1))
        abort();
    if (tp_comm_gather(comm, &rank, sizeof rank, all, NULL) != TP_OK || all[3 - rank] != 3 - rank)
        abort();
}

static void groups_may_say_more_than_others(void **state)
{
    local_ranks_run(4, talk_in_groups, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_reduce_gives_every_rank_the_same_sum),
        cmocka_unit_test(small_things_reach_every_rank),
        cmocka_unit_test(several_are_on_their_way_at_once),
        cmocka_unit_test(groups_may_say_more_than_others),
        cmocka_unit_test(clocks_are_compared_within_the_stated_error),
        cmocka_unit_test(a_failure_of_one_is_everybodys),
        cmocka_unit_test(a_failure_ends_the_waiting_of_the_others),
        cmocka_unit_test(what_differs_is_named),
        cmocka_unit_test(a_rank_that_stands_still_is_named_by_who_sends_to_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
