/* evalue.h - evidence that may be looked at after every round.
 *
 * A fixed-n p-value that is checked again and again flags far too often.  An e-value does
 * not: under the null hypothesis it exceeds 1 / alpha at any time with probability at most
 * alpha (Ville's inequality), so a run may stop as soon as it does. */
#ifndef TP_STATS_EVALUE_H
#define TP_STATS_EVALUE_H

#include "stats/common.h"

/* "The win rate is above one half", k wins in n rounds, against a win rate of at most one
 * half:  E = 2^{n+1} B(k+1, n-k+1) (1 - I_{1/2}(k+1, n-k+1)), a mixture over rates uniform
 * on (1/2, 1). */
double tp_sign_evalue_log(int64_t n, int64_t k);

#endif
