/* bootstrap_bench.c - what 10,000 resamples of 1,000 values cost on one thread.
 *
 *     bootstrap_bench [ROUNDS]
 *
 * Mean and median in turn, each as median (least, most) of its rounds, and the ends of the BCa
 * interval: a change that only makes it faster leaves them to the last digit. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "stats/bootstrap.h"
#include "stats/descriptive.h"

enum { N = 1000, RESAMPLES = 10000, MOST = 1001 };

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        tp_statistic statistic;
    } rows[] = {{"mean", tp_statistic_mean}, {"median", tp_statistic_median}};
    static double x[N], ms[2][MOST];
    const tp_bootstrap_options options = {.n_resamples = RESAMPLES, .seed = 1, .level = 0.95};
    tp_bootstrap_result r[2];
    tp_splitmix stream = {7};
    long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 15;
    if (rounds < 1 || rounds > MOST) {
        fprintf(stderr, "bootstrap_bench: 1 to %d rounds\n", MOST);
        return 2;
    }
    for (int i = 0; i < N; i++)
        x[i] = (double)(tp_splitmix_next(&stream) >> 11) * 0x1p-53;
    for (long k = 0; k < rounds; k++)
        for (int i = 0; i < 2; i++) {
            double start = tp_clock_s();
            if (tp_bootstrap(x, N, rows[i].statistic, NULL, &options, &r[i], NULL) != TP_OK)
                return 1;
            ms[i][k] = 1e3 * (tp_clock_s() - start);
        }
    for (int i = 0; i < 2; i++) {
        tp_sort(ms[i], (size_t)rounds);
        printf("%-6s %.2f ms (%.2f, %.2f)  BCa %.17g to %.17g\n", rows[i].name,
               tp_median_sorted(ms[i], (size_t)rounds), ms[i][0], ms[i][rounds - 1], r[i].bca.lo,
               r[i].bca.hi);
    }
    return 0;
}
