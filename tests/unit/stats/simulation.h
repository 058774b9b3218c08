/* simulation.h - how often intervals hold what they promise.
 *
 * Every repetition draws data with a known answer and asks whether the interval holds it.
 * A nominal interval is right when the count lies within the binomial bounds of its level
 * at error 1e-4, both ways; a guaranteed one may cover more; where theory promises
 * neither, the expected figure stands in the table with its tolerance. */
#ifndef TP_TESTS_SIMULATION_H
#define TP_TESTS_SIMULATION_H

#include <stdint.h>

/* Returns the number of rows that failed; prints every row when `verbose`. */
int run_simulation(int repetitions, int verbose);

#endif
