/* doctor.c - a diagnosis: the self-tests, the checks, the measurement. */
#include "temper/doctor.h"

#include "api/doctor.h"
#include "base/cpu.h"
#include "base/sized.h"
#include "engine/backend/cpu/paths.h"

static double seconds(const tp_doctor_options *o) { return o->seconds > 0 ? o->seconds : 3; }

static tp_status measure(const tp_doctor_options *o, int threads, tp_machine *m, tp_error *err)
{
    bool found = false;
    if (o->use_cached)
        TP_TRY(tp_machine_load(&tp_backend_cpu, threads, m, &found, err));
    if (found)
        return TP_OK;
    TP_TRY(tp_machine_measure(&tp_backend_cpu, threads, seconds(o), m, err));
    return m->disturbed_by[0] ? TP_OK : tp_machine_save(m, err);
}

static tp_status check_stop(const tp_doctor_options *o, tp_error *err)
{
    return o->should_stop && o->should_stop(o->user)
               ? tp_fail(err, TP_ERR_INTERRUPTED, "stopped before everything was looked at")
               : TP_OK;
}

static tp_status diagnose(const tp_doctor_options *o, tp_diagnosis *d, tp_error *err)
{
    int threads = o->threads > 0 ? o->threads : tp_cpu_count();
    if (o->use_cached)
        tp_paths_prove();
    else
        tp_paths_prove_again();
    if (o->config || o->n_overrides)
        TP_TRY(tp_doctor_look(o, &d->checks, err));
    TP_TRY(check_stop(o, err));
    tp_status status = measure(o, threads, &d->machine, &d->why);
    if (status == TP_OK && !o->use_cached && check_stop(o, NULL) == TP_OK) {
        status =
            tp_machine_measure_units(&tp_backend_cpu, threads, seconds(o) / 2, &d->units, &d->why);
        d->has_units = status == TP_OK;
    }
    if (status == TP_ERR_NOMEM) /* the rest can be told all the same */
        d->machine = tp_machine_describe(&tp_backend_cpu, threads);
    else if (status != TP_OK) {
        if (err)
            *err = d->why;
        return status;
    }
    return check_stop(o, err);
}

tp_status tp_diagnosis_make(const tp_doctor_options *options, tp_diagnosis **ret, tp_error *err)
{
    TP_MEMORY_GUARD(err);
    tp_doctor_options o;
    if (!ret)
        return tp_fail(err, TP_ERR_ARG, "tp_diagnosis_make: ret is NULL");
    TP_TRY(tp_sized_read(&o, sizeof o, options, "tp_doctor_options", err));
    if (o.threads < 0 || o.threads > 4096 || !(o.seconds >= 0 && o.seconds <= 3600))
        return tp_fail(err, TP_ERR_ARG,
                       "threads is %d and seconds %g; expected 0 to 4096, 0 to 3600", o.threads,
                       o.seconds);
    tp_diagnosis *d = tp_new(1, sizeof *d);
    TP_HAND_OVER(diagnose(&o, d, err), ret, d, tp_diagnosis_free(d));
}

void tp_diagnosis_free(tp_diagnosis *d)
{
    if (!d)
        return;
    tp_doctor_release(&d->checks);
    free(d);
}

size_t tp_diagnosis_count(const tp_diagnosis *d) { return d->checks.n; }

tp_diagnosis_finding tp_diagnosis_at(const tp_diagnosis *d, size_t i)
{
    return i < d->checks.n ? d->checks.v[i] : (tp_diagnosis_finding){.what = "", .text = ""};
}

size_t tp_diagnosis_failures(const tp_diagnosis *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->checks.n; i++)
        n += d->checks.v[i].kind == TP_FINDING_FAILED;
    return n;
}

void tp_diagnosis_text(const tp_diagnosis *d, bool json, char **ret_text, size_t *ret_n)
{
    tp_buf text = {0};
    (json ? tp_diagnosis_add_json : tp_diagnosis_add_text)(d, &text);
    *ret_text = text.data;
    *ret_n = text.len;
}
