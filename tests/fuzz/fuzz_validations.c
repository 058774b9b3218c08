/* fuzz_validations.c - any bytes as the metrics of a run: refused, or series whose points
 * ascend, each with an accuracy, and with intervals that hold it. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "instrument/evaluations/validation_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tp_validations v;
    tp_error err = {0};
    if (size > 1 << 14)
        return 0;
    if (tp_validations_parse("fuzz", (const char *)data, size, 0.95, &v, &err) != TP_OK)
        return 0;
    for (size_t i = 0; i < v.n; i++) {
        const tp_validation_series *s = &v.series[i];
        if (s->n == 0)
            abort();
        for (size_t k = 0; k < s->n; k++) {
            const tp_validation_point *p = &s->points[k];
            if (isnan(p->accuracy) || (k > 0 && s->points[k - 1].step >= p->step))
                abort();
            if (!isnan(p->lo) && (p->lo > p->accuracy + 1e-9 || p->hi < p->accuracy - 1e-9))
                abort();
        }
    }
    tp_validations_release(&v);
    return 0;
}
