/* selection.c - activities classified, numbered and put in scope. */
#include "instrument/analyze/selection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/platform.h"
#include "base/strings.h"
#include "base/vec.h"
#include "instrument/analyze/collectives.h"
#include "instrument/analyze/number_index.h"
#include "instrument/analyze/periods.h"
#include "instrument/analyze/sort.h"

static const char *const scope_names[] = {"all", "linked", "steps"};

const char *tp_scope_name(tp_scope scope) { return scope_names[scope]; }

bool tp_scope_parse(const char *text, tp_scope *ret)
{
    for (int i = 0; i < 3; i++)
        if (strcmp(text, scope_names[i]) == 0) {
            *ret = (tp_scope)i;
            return true;
        }
    return false;
}

tp_slice tp_events_name_text(const void *events, uint32_t name)
{
    const tp_events *e = events;
    return (tp_slice){tp_events_str(e, name), tp_string_len(&e->strings, name)};
}

/* ---- names ---- */

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

/* The whole of s, with * and ?; one step back to the last * is enough. */
static bool glob(tp_slice s, const char *p)
{
    size_t i = 0, star_i = 0;
    const char *star = NULL;
    while (i < s.len) {
        if (*p == '*') {
            star = p++;
            star_i = i;
        } else if (*p && (*p == '?' || lower(*p) == lower(s.data[i]))) {
            p++;
            i++;
        } else if (star) {
            p = star + 1;
            i = ++star_i;
        } else {
            return false;
        }
    }
    while (*p == '*')
        p++;
    return !*p;
}

bool tp_name_matches(tp_slice name, const char *pattern)
{
    if (strpbrk(pattern, "*?"))
        return glob(name, pattern);
    size_t n = strlen(pattern);
    for (size_t at = 0; at + n <= name.len; at++) {
        size_t k = 0;
        while (k < n && lower(name.data[at + k]) == lower(pattern[k]))
            k++;
        if (k == n)
            return true;
    }
    return false;
}

/* What is known of each name, found out once. */
enum { NAME_SEEN = 1, NAME_COMM = 2, NAME_COPY = 4, NAME_WANTED = 8 };

static uint8_t look_at_name(const tp_events *events, uint32_t name, const tp_select_options *o)
{
    tp_slice text = tp_events_name_text(events, name);
    uint8_t found = NAME_SEEN;
    if (tp_name_communicates(text) || (o->comm && tp_name_matches(text, o->comm)))
        found |= NAME_COMM;
    if (tp_name_is_copy(text))
        found |= NAME_COPY;
    if (!o->name || tp_name_matches(text, o->name))
        found |= NAME_WANTED;
    return found;
}

/* ---- devices ---- */

static int by_text(const void *a, const void *b, void *keys)
{
    return strcmp(tp_string_get(keys, *(const uint32_t *)a),
                  tp_string_get(keys, *(const uint32_t *)b));
}

/* Devices in order of their texts; `keys` are numbered from 1, `id` has a number for each.
 * Returns the place of every key. */
static uint32_t *order_devices(tp_string_table *keys, const int64_t *id, tp_selection *s)
{
    size_t n = keys->n - 1;
    uint32_t *order = tp_vec_new(n, sizeof *order), *place = tp_vec_new(n + 1, sizeof *place);
    s->devices = tp_vec_new(n, sizeof *s->devices);
    s->device_ids = tp_vec_new(n, sizeof *s->device_ids);
    s->n_devices = n;
    for (size_t k = 0; k < n; k++)
        order[k] = (uint32_t)k + 1;
    if (n)
        qsort_r(order, n, sizeof *order, by_text, keys);
    for (size_t k = 0; k < n; k++) {
        snprintf(s->devices[k], sizeof s->devices[k], "%s", tp_string_get(keys, order[k]));
        s->device_ids[k] = id[order[k]];
        place[order[k]] = (uint32_t)k;
    }
    free(order);
    return place;
}

/* Every device is looked at on its own: a file that names one per event would take for ever, so
 * what comes beyond this many is one device, "others". */
enum { MOST_DEVICES = 1024 };

static bool has_device_work(const tp_events *events)
{
    const uint64_t *n = events->counts.kind;
    return n[TP_EVENT_KERNEL] || n[TP_EVENT_MEMCPY] || n[TP_EVENT_MEMSET] || n[TP_EVENT_GRAPH];
}

/* Ranks without devices that record their exchanges: what they compute are their operators. */
static bool works_on_host(const tp_events *events)
{
    return events->counts.kind[TP_EVENT_COLLECTIVE] && !has_device_work(events);
}

/* An operator that only waits for an exchange has its name. */
static bool is_host_work(const tp_events *events, size_t i)
{
    return events->kind[i] == TP_EVENT_COLLECTIVE ||
           (events->kind[i] == TP_EVENT_CPU_OP && !tp_events_collective(events, i));
}

static bool is_work(const tp_selection *s, size_t i)
{
    return s->is_host ? is_host_work(s->events, i) : tp_event_is_gpu(s->events->kind[i]);
}

/* The device number of every track that has device work; TP_NO_ROW for the others. */
static uint32_t *number_devices(const tp_events *events, tp_selection *s)
{
    uint32_t *of_track = tp_vec_new(events->n_tracks, sizeof *of_track);
    TP_FREED int64_t *id = tp_vec_new(events->n_tracks + 2, sizeof *id);
    TP_OWN(tp_string_table) keys = {0};
    memset(of_track, 0xFF, events->n_tracks * sizeof *of_track);
    tp_string_table_init(&keys);
    for (size_t i = 0; i < events->n; i++) {
        char text[sizeof *s->devices];
        uint32_t track = events->track[i], number;
        if (!is_work(s, i) || of_track[track] != TP_NO_ROW)
            continue;
        if (s->is_host)
            snprintf(text, sizeof text, "host");
        else
            tp_events_device_name(events, i, text, sizeof text);
        if (!*text)
            snprintf(text, sizeof text, "None"); /* as other tools print "not given" */
        if (keys.n > MOST_DEVICES && !tp_string_find(&keys, text, strlen(text), &number))
            snprintf(text, sizeof text, "others");
        of_track[track] = tp_string_add(&keys, text, strlen(text));
        id[of_track[track]] = events->tracks[track].device;
    }
    TP_FREED uint32_t *place = order_devices(&keys, id, s);
    for (size_t t = 0; t < events->n_tracks; t++)
        if (of_track[t] != TP_NO_ROW)
            of_track[t] = place[of_track[t]];
    return of_track;
}

/* ---- launches ---- */

/* Nsight exports hold several processes, whose correlations repeat. */
static uint64_t launch_key(const tp_events *events, size_t i)
{
    uint64_t key = (uint64_t)events->correlation[i];
    if (events->info.tables)
        key ^= (uint64_t)events->tracks[events->track[i]].pid << 40;
    return key;
}

static int64_t process_of(const void *events, uint32_t event)
{
    const tp_events *e = events;
    return e->tracks[e->track[event]].pid;
}

/* The calls by their numbers.  Files of several ranks that were joined into one have the same
 * numbers again and again, and the device's side of them does not say the process.  Without work
 * there is nothing to mistake. */
static void index_launches(const tp_events *events, tp_number_index *index, size_t *ret_shared)
{
    if (!has_device_work(events))
        return;
    tp_number_index_reserve(index, (size_t)(events->counts.kind[TP_EVENT_RUNTIME] +
                                            events->counts.kind[TP_EVENT_DRIVER]));
    for (size_t i = 0; i < events->n; i++)
        if ((events->kind[i] == TP_EVENT_RUNTIME || events->kind[i] == TP_EVENT_DRIVER) &&
            events->correlation[i] != TP_UNKNOWN && events->phase[i] == 'X')
            tp_number_index_add(index, launch_key(events, i), (uint32_t)i);
    tp_number_index_finish(index);
    *ret_shared = tp_number_index_forget_shared(index, process_of, events);
}

/* ---- the selection ---- */

int64_t tp_event_end(const tp_events *events, size_t i)
{
    int64_t dur = events->dur[i] > 0 ? events->dur[i] : 0;
    return tp_add_saturating(events->start[i], dur);
}

bool tp_event_is_beyond(const tp_events *events, size_t i)
{
    return events->start[i] < TP_PERIODS_FIRST || tp_event_end(events, i) > TP_PERIODS_LAST;
}

bool tp_event_is_migration(const tp_events *events, size_t i)
{
    enum { FIRST = 11, LAST = 13 }; /* as CUPTI numbers kinds of copies */
    const tp_event_copy *copy = tp_events_copy(events, i);
    return copy && copy->copy_kind >= FIRST && copy->copy_kind <= LAST;
}

/* The call of a device work, or TP_NO_ROW. */
static uint32_t call_of(const tp_events *events, size_t i, tp_number_index *launches)
{
    return events->correlation[i] == TP_UNKNOWN
               ? TP_NO_ROW
               : tp_number_index_first(launches, launch_key(events, i));
}

static bool calls_link(const tp_selection *s, tp_number_index *launches)
{
    const tp_events *e = s->events;
    for (size_t i = 0; i < e->n && launches->n; i++)
        if (is_work(s, i) && call_of(e, i, launches) != TP_NO_ROW)
            return true;
    return false;
}

/* Work whose call is not in the file may be of the step before, however late it starts.  Where
 * nothing tells its call, its start is all that there is. */
static bool goes_by_start(const tp_selection *s, size_t i, tp_number_index *launches)
{
    const tp_events *e = s->events;
    return !s->has_calls || tp_event_is_migration(e, i) ||
           (e->correlation[i] != TP_UNKNOWN &&
            tp_number_index_is_shared(launches, launch_key(e, i)));
}

static int64_t step_of(const tp_selection *s, size_t i, uint32_t launch, tp_number_index *launches)
{
    if (launch != TP_NO_ROW)
        return tp_steps_at(&s->steps, s->events->start[launch]);
    return goes_by_start(s, i, launches) ? tp_steps_at(&s->steps, s->events->start[i]) : -1;
}

static bool wants_step(const tp_selection *s, int64_t step)
{
    const tp_select_options *o = &s->options;
    if (o->has_step)
        return step >= 0 && s->steps.v[step].number == o->step;
    return step >= 0 || o->scope != TP_SCOPE_STEPS;
}

bool tp_selection_has_time(const tp_selection *s, int64_t at)
{
    return wants_step(s, tp_steps_at(&s->steps, at));
}

static bool in_scope(tp_selection *s, size_t i, uint32_t launch, int64_t step)
{
    const tp_events *events = s->events;
    if (s->options.scope == TP_SCOPE_LINKED && launch == TP_NO_ROW)
        return false;
    if (s->options.has_stream && events->tracks[events->track[i]].stream != s->options.stream)
        return false;
    if (step < 0) {
        s->n_stepless++;
        s->stepless_ns = tp_add_saturating(s->stepless_ns, TP_MAX(events->dur[i], 0));
    }
    return wants_step(s, step);
}

static tp_work classify(tp_selection *s, const tp_events *events, size_t i, uint8_t name)
{
    if (s->is_host)
        return events->kind[i] == TP_EVENT_COLLECTIVE ? TP_WORK_COMM : TP_WORK_COMPUTE;
    if (events->kind[i] != TP_EVENT_KERNEL)
        return TP_WORK_MEM;
    if (name & NAME_COMM)
        return TP_WORK_COMM;
    const tp_event_collective *c = tp_events_collective(events, i);
    if (c && c->name && !(name & NAME_COPY)) {
        s->n_by_metadata++;
        return TP_WORK_COMM;
    }
    return TP_WORK_COMPUTE;
}

static void count_gloo(const tp_events *events, tp_selection *s)
{
    for (size_t i = 0; i < events->n; i++)
        s->n_gloo += events->kind[i] == TP_EVENT_ANNOTATION && events->phase[i] == 'X' &&
                     tp_str_starts(tp_events_str(events, events->name[i]), "gloo:");
}

static void collect(const tp_events *events, const uint32_t *device_of, tp_number_index *launches,
                    tp_selection *s)
{
    TP_FREED uint8_t *names = tp_vec_new(events->strings.n + 1, 1);
    size_t cap = 0, cap_launch = 0, cap_step = 0;
    for (size_t i = 0; i < events->n; i++) {
        uint8_t kind = events->kind[i];
        if (!is_work(s, i) || events->phase[i] != 'X')
            continue;
        if (kind == TP_EVENT_GRAPH) {
            s->n_graphs++;
            continue;
        }
        uint32_t name = events->name[i];
        uint32_t launch = s->is_host ? (uint32_t)i /* its own */ : call_of(events, i, launches);
        int64_t step = step_of(s, i, launch, launches);
        s->n_all++;
        s->n_linked += launch != TP_NO_ROW;
        s->n_migrations += launch == TP_NO_ROW && tp_event_is_migration(events, i);
        if (!names[name])
            names[name] = look_at_name(events, name, &s->options);
        if (!(names[name] & NAME_WANTED) || !in_scope(s, i, launch, step))
            continue;
        if (tp_event_is_beyond(events, i)) {
            s->n_beyond++;
            continue;
        }
        s->n_negative += events->dur[i] < 0;
        s->v = tp_vec_room(s->v, &cap, s->n + 1, sizeof *s->v);
        s->launch = tp_vec_room(s->launch, &cap_launch, s->n + 1, sizeof *s->launch);
        s->step = tp_vec_room(s->step, &cap_step, s->n + 1, sizeof *s->step);
        s->launch[s->n] = launch;
        s->step[s->n] = (int32_t)step;
        s->v[s->n++] =
            (tp_activity){.start = events->start[i],
                          .end = tp_event_end(events, i),
                          .event = (uint32_t)i,
                          .name = name,
                          .device = device_of[events->track[i]],
                          .work = (uint8_t)classify(s, events, i, names[name]),
                          .is_kernel = kind == TP_EVENT_KERNEL || kind == TP_EVENT_COLLECTIVE};
    }
}

static void order_by_start(tp_selection *s)
{
    TP_FREED tp_keyed *keyed = tp_vec_new(s->n, sizeof *keyed);
    for (size_t i = 0; i < s->n; i++)
        keyed[i] = (tp_keyed){tp_key_of(s->v[i].start), (uint32_t)i};
    tp_sort_keyed(keyed, s->n);
    tp_activity *v = tp_vec_new(s->n, sizeof *v);
    uint32_t *launch = tp_vec_new(s->n, sizeof *launch);
    int32_t *step = tp_vec_new(s->n, sizeof *step);
    for (size_t i = 0; i < s->n; i++) {
        v[i] = s->v[keyed[i].index];
        launch[i] = s->launch[keyed[i].index];
        step[i] = s->step[keyed[i].index];
    }
    free(s->v);
    free(s->launch);
    free(s->step);
    s->v = v;
    s->launch = launch;
    s->step = step;
}

void tp_selection_make(const tp_events *events, const tp_select_options *options, tp_selection *ret)
{
    tp_selection s = {.events = events, .options = *options};
    TP_OWN(tp_number_index) launches = {0};
    s.is_host = works_on_host(events);
    tp_steps_find(events, &s.steps);
    TP_FREED uint32_t *device_of = number_devices(events, &s);
    index_launches(events, &launches, &s.n_shared);
    s.has_calls = calls_link(&s, &launches);
    collect(events, device_of, &launches, &s);
    order_by_start(&s);
    count_gloo(events, &s);
    *ret = s;
}

void tp_selection_release(tp_selection *s)
{
    free(s->v);
    free(s->launch);
    free(s->step);
    free(s->devices);
    free(s->device_ids);
    tp_steps_release(&s->steps);
    *s = (tp_selection){0};
}

const char *tp_selection_device_name(const tp_selection *s, size_t device)
{
    const tp_events *e = s->events;
    for (size_t i = 0; i < e->info.n_devices; i++)
        if (e->info.devices[i].id == s->device_ids[device])
            return tp_events_str(e, e->info.devices[i].name);
    return "";
}

int64_t tp_launch_time(const tp_selection *s, size_t i)
{
    return s->launch[i] != TP_NO_ROW ? s->events->start[s->launch[i]] : s->v[i].start;
}

int64_t tp_work_step(const tp_selection *s, size_t i) { return s->step[i]; }

tp_status tp_selection_check_steps(const tp_selection *s, const char *path, tp_error *err)
{
    const tp_select_options *o = &s->options;
    bool is_there = !o->has_step;
    if (!o->has_step && o->scope != TP_SCOPE_STEPS)
        return TP_OK;
    if (s->steps.n == 0)
        return tp_fail(err, TP_ERR_ARG, "%s has no steps (ProfilerStep#N): %s", path,
                       o->has_step ? "leave out --step" : "use --scope all");
    for (size_t i = 0; i < s->steps.n; i++)
        is_there |= s->steps.v[i].number == o->step;
    if (is_there)
        return TP_OK;
    return tp_fail(err, TP_ERR_ARG, "there is no step %lld in %s, whose steps are %lld to %lld",
                   (long long)o->step, path, (long long)s->steps.v[0].number,
                   (long long)s->steps.v[s->steps.n - 1].number);
}
