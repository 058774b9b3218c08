/* order.h - what qsort() and bsearch() are given.
 *
 *     TP_ORDER(by_age, person, TP_COMPARE(y->age, x->age) ?: strcmp(x->name, y->name))
 *
 * is a static function that puts the oldest first, and those of one age in the order of their
 * names. */
#ifndef TP_BASE_ORDER_H
#define TP_BASE_ORDER_H

/* -1, 0 or 1: the smaller first.  What cannot be compared (NaN) counts as equal. */
#define TP_COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

/* A function over items of `type`, which are *x and *y; the first that differs decides, which is
 * what ?: without a middle says. */
#define TP_ORDER(name, type, order)                 \
    static int name(const void *a_, const void *b_) \
    {                                               \
        const type *x = a_;                         \
        const type *y = b_;                         \
        return order;                               \
    }

#endif
