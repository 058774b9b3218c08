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

bool tp_dimension_has_end(tp_dimension_figures *f, const tp_curve *c)
{
    if (!c->is_lost)
        return true;
    f->is_lost = true;
    snprintf(f->why, sizeof f->why,
             "%s ends without a finite value: the last one is that of step %.0f", c->tag,
             c->step[c->n - 1]);
    snprintf(f->advice, sizeof f->advice,
             "lower the learning rate, clip gradients; 'temper metrics' shows the values before "
             "the first that is not finite");
    return false;
}
