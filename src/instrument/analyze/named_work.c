/* named_work.c - visits every named piece of work: device activities, operators, annotations. */
#include "instrument/analyze/named_work.h"

void tp_each_device_work(const tp_selection *sel, tp_named_visit visit, void *context)
{
    for (size_t i = 0; i < sel->n; i++)
        visit(context, tp_events_name_text(sel->events, sel->v[i].name), tp_work_step(sel, i),
              sel->v[i].end - sel->v[i].start);
}

void tp_each_operator_work(const tp_selection *sel, const tp_operators *o, bool by_host,
                           tp_named_visit visit, void *context)
{
    const tp_events *e = sel->events;
    for (size_t i = 0; i < o->n_spans && by_host; i++)
        if (!o->is_repeat[i])
            visit(context, tp_events_name_text(e, e->name[o->spans[i].event]),
                  tp_steps_at(&sel->steps, o->spans[i].start), o->self_ns[i]);
    for (size_t i = 0; i < sel->n && !by_host; i++)
        if (o->op_of[i] != TP_NO_PARENT)
            visit(context, tp_events_name_text(e, e->name[o->spans[o->op_of[i]].event]),
                  tp_work_step(sel, i), sel->v[i].end - sel->v[i].start);
}

void tp_each_phase(const tp_selection *sel, tp_named_visit visit, void *context)
{
    const tp_events *e = sel->events;
    int64_t number;
    for (size_t i = 0; i < e->n; i++) {
        if (e->kind[i] != TP_EVENT_ANNOTATION || e->phase[i] != 'X')
            continue;
        tp_slice name = tp_events_name_text(e, e->name[i]);
        if (!tp_step_number(name.data, name.len, &number))
            visit(context, name, tp_steps_at(&sel->steps, e->start[i]),
                  tp_event_end(e, i) - e->start[i]);
    }
}
