/* What happened while reading, in sentences. */
#include "instrument/ingest/kineto.h"

#include <inttypes.h>

static const char *plural(uint64_t n) { return n == 1 ? "" : "s"; }

static void note_count(tp_kineto *k, tp_note_level level, uint64_t n, const char *what,
                       const char *meaning)
{
    if (n)
        tp_notes_add(k->notes, level, "%" PRIu64 " %s%s: %s", n, what, plural(n), meaning);
}

static void note_end(tp_kineto *k)
{
    const char *damage = tp_source_damage(&k->source);
    if (damage)
        tp_notes_add(k->notes, TP_NOTE_WARNING, "the gzip stream of '%s': %s", k->name, damage);
    if (tp_source_is_truncated(&k->source))
        tp_notes_add(k->notes, TP_NOTE_WARNING,
                     "'%s' ends inside its gzip stream (a job that was killed?); the %" PRIu64
                     " events before the end were read",
                     k->name, k->events->counts.events);
    else if (k->events->counts.truncated)
        tp_notes_add(k->notes, TP_NOTE_WARNING,
                     "'%s' ends in the middle (a job that was killed?); the %" PRIu64
                     " events before the end were read",
                     k->name, k->events->counts.events);
}

static void note_skipped(tp_kineto *k)
{
    const tp_event_counts *c = &k->events->counts;
    if (!c->skipped_events)
        return;
    tp_notes_add(k->notes, TP_NOTE_WARNING,
                 "%" PRIu64 " place%s could not be read: %" PRIu64 " bytes were skipped; figures "
                 "lack what was there",
                 c->skipped_events, plural(c->skipped_events), c->skipped_bytes);
    for (size_t i = 0; i < k->n_places; i++)
        tp_notes_add(k->notes, TP_NOTE_INFO, "skipped at byte %" PRIu64 ": %s", k->places[i].offset,
                     k->places[i].error);
}

void tp_kineto_notes(tp_kineto *k)
{
    const tp_event_counts *c = &k->events->counts;
    note_end(k);
    note_skipped(k);
    note_count(k, TP_NOTE_INFO, c->repaired_strings, "string",
               "held unescaped quotes and were made whole");
    note_count(k, TP_NOTE_INFO, c->odd_escapes, "backslash",
               "JSON does not know what they escape; kept as they are");
    note_count(k, TP_NOTE_INFO, c->control_bytes, "string", "held raw control characters");
    note_count(k, TP_NOTE_INFO, c->invalid_utf8, "string", "not UTF-8; shown with U+FFFD");
    note_count(k, TP_NOTE_INFO, c->odd_numbers, "bare word",
               "inf, nan, N/A or alike in place of a number; taken as unknown");
    note_count(k, TP_NOTE_INFO, c->odd_commas, "comma", "missing, doubled or trailing");
    note_count(k, TP_NOTE_INFO, k->n_lost_members, "metadata member", "not JSON; left out");
    note_count(k, TP_NOTE_WARNING, c->ph[0], "event",
               "without a phase (\"ph\", one letter); left out");
    note_count(k, TP_NOTE_WARNING, c->missing_time, "event", "without a time; left out");
    note_count(k, TP_NOTE_WARNING, c->missing_duration, "event", "without a duration; left out");
    note_count(k, TP_NOTE_WARNING, c->clamped_times, "value", "beyond 64 bits; clamped");
    note_count(k, TP_NOTE_WARNING, c->negative_durations, "event",
               "of negative duration; kept as they are");
    note_count(k, TP_NOTE_WARNING, c->absurd_durations, "event",
               "longer than 7 days; kept as they are");
    note_count(k, TP_NOTE_WARNING, c->unpaired, "span",
               "begun but not ended, or ended but not begun");
    note_count(k, TP_NOTE_INFO, c->not_kept, "event",
               "of phases that no analysis uses (async, samples, objects)");
}
