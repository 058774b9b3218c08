/* solve.h - where a monotone function crosses 0, for the other files here. */
#ifndef TP_STATS_SOLVE_H
#define TP_STATS_SOLVE_H

typedef double (*tp_function)(double x, void *context);

/* A root between lo and hi, whose values have opposite signs (NAN when they do not), to
 * about 1e-14 of its size: the ITP method of Oliveira and Takahashi (2020), which is as
 * fast as the secant and never worse than bisection. */
double tp_solve(tp_function f, void *context, double lo, double hi);

#endif
