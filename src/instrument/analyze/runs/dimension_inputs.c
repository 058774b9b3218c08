/* dimension_inputs.c - what a dimension was made of. */
#include <math.h>
#include <stdio.h>

#include "instrument/analyze/runs/dimension.h"

void tp_dimension_input_number(tp_dimension_figures *f, const char *key, double value)
{
    if (f->n_inputs < TP_DIMENSION_INPUTS)
        f->inputs[f->n_inputs++] = (tp_dimension_input){.key = key, .value = value};
}

void tp_dimension_input_text(tp_dimension_figures *f, const char *key, const char *text)
{
    if (f->n_inputs == TP_DIMENSION_INPUTS)
        return;
    tp_dimension_input *i = &f->inputs[f->n_inputs++];
    *i = (tp_dimension_input){.key = key, .value = NAN};
    snprintf(i->text, sizeof i->text, "%s", text);
}

void tp_dimension_input_metric(tp_dimension_figures *f, const char *key, const tp_curve *c)
{
    tp_dimension_input_text(f, key, c->tag);
    f->n_odd += c->n_odd;
}

void tp_dimension_input_other_sets(tp_dimension_figures *f, tp_metrics *m, const char *tag)
{
    char others[120];
    tp_curve_others(m, TP_ROLE_EVAL_LOSS, tag, others, sizeof others);
    if (others[0])
        tp_dimension_input_text(f, "not_judged", others);
}

bool tp_dimension_has_metric(tp_dimension_figures *f, const tp_curve *c, const char *what,
                             tp_run_role a, tp_run_role b)
{
    char first[400], second[400] = "";
    if (c->tag)
        return true;
    tp_role_names(a, first, sizeof first);
    if (b != a)
        tp_role_names(b, second, sizeof second);
    snprintf(f->why, sizeof f->why, "no metric of %s; looked for %s%s%s", what, first,
             *second ? ", " : "", second);
    return false;
}

bool tp_dimension_has_values(tp_dimension_figures *f, const tp_curve *c)
{
    if (c->n == 0)
        snprintf(f->why, sizeof f->why, "%s has no finite value: %zu are NaN or infinite", c->tag,
                 c->n_odd);
    return c->n > 0;
}

bool tp_dimension_has_end(tp_dimension_figures *f, const tp_curve *c)
{
    if (!c->is_lost)
        return true;
    f->is_lost = true;
    if (tp_dimension_has_values(f, c))
        snprintf(f->why, sizeof f->why,
                 "%s ends without a finite value: the last one is that of step %.0f", c->tag,
                 c->step[c->n - 1]);
    snprintf(f->advice, sizeof f->advice,
             "lower the learning rate, clip gradients; 'temper metrics' shows the values before "
             "the first that is not finite");
    return false;
}
