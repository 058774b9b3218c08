/* simulate_coverage.c - coverage of every interval with 10,000 repetitions, or as many as
 * the first argument says.  Exit status 1 when one is off. */
#include <stdio.h>
#include <stdlib.h>

#include "simulation.h"

int main(int argc, char **argv)
{
    int repetitions = argc > 1 ? atoi(argv[1]) : 10000;
    int failed = repetitions > 0 ? run_simulation(repetitions, 1) : -1;
    printf("%d repetitions, %d rows off\n", repetitions, failed);
    return failed != 0;
}
