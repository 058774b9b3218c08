/* nsight.c - an SQLite export opened without trust: hardened, bounded, its schema mended. */
#include "instrument/ingest/nsight.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/output.h"
#include "instrument/ingest/foreign_db.h"

static tp_status open_database(tp_nsight *n, const char *path, const void *bytes, size_t size,
                               bool damaged, tp_error *err)
{
    TP_OWN(tp_buf) uri = {0};
    int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX;
    if (!bytes)
        /* immutable: no locks, no journal; nothing is ever written beside the file */
        tp_foreign_db_uri(path, "?mode=ro&immutable=1", &uri);
    else
        tp_buf_adds(&uri, ":memory:");
    if (bytes)
        flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX;
    tp_output_note_input(path);
    int result = sqlite3_open_v2(uri.data, &n->db, flags, NULL);
    if (result == SQLITE_OK && bytes) {
        /* SQLite asks for a pointer that is not const, and does not write through it. */
        result = sqlite3_deserialize(n->db, "main", (unsigned char *)(uintptr_t)bytes,
                                     (sqlite3_int64)size, (sqlite3_int64)size,
                                     SQLITE_DESERIALIZE_READONLY);
    }
    if (result != SQLITE_OK)
        return tp_fail(err, TP_ERR_FORMAT, "cannot open '%s' as a database: %s", path,
                       n->db ? sqlite3_errmsg(n->db) : sqlite3_errstr(result));
    tp_foreign_db_harden(n->db, damaged);
    return TP_OK;
}

/* Without a page that is there in part only: its missing rows would read as zeros. */
static size_t whole_pages(const unsigned char *bytes, size_t size)
{
    size_t page = size > 18 ? (size_t)bytes[16] << 8 | bytes[17] : 0;
    if (page == 1)
        page = 65536;
    return page >= 512 ? size - size % page : size;
}

static uint32_t big_endian(const unsigned char *p, int n)
{
    uint32_t v = 0;
    for (int i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

/* Page 1 lists the pages of the schema.  Those behind the cut are taken off the list, so that
 * the tables before it are found; their rows come first in the file as well. */
static void mend_schema(unsigned char *bytes, size_t size)
{
    enum { HEADER = 100, COUNT = HEADER + 3, LAST = HEADER + 8, CELLS = HEADER + 12, INTERIOR = 5 };
    uint32_t page = size > CELLS ? big_endian(bytes + 16, 2) : 0;
    page = page == 1 ? 65536 : page;
    if (page < 512 || size < page || bytes[HEADER] != INTERIOR)
        return;
    uint32_t n = big_endian(bytes + COUNT, 2), kept = 0, last = big_endian(bytes + LAST, 4);
    if (last <= size / page)
        return;
    for (; kept < n && CELLS + 2 * (size_t)kept + 2 <= page; kept++) {
        uint32_t cell = big_endian(bytes + CELLS + 2 * kept, 2);
        uint32_t child = cell + 4 <= page ? big_endian(bytes + cell, 4) : UINT32_MAX;
        if (child > size / page)
            break;
        last = child;
    }
    if (kept == 0)
        return;
    kept--; /* its page becomes the last one */
    bytes[COUNT] = (unsigned char)(kept >> 8);
    bytes[COUNT + 1] = (unsigned char)kept;
    for (int i = 0; i < 4; i++)
        bytes[LAST + i] = (unsigned char)(last >> (24 - 8 * i));
}

/* Open it, and once more leniently when pages are missing; `copy` has to live as long. */
static tp_status open_somehow(tp_nsight *n, const char *path, const void *bytes, size_t size,
                              tp_buf *copy, tp_error *err)
{
    TP_TRY(open_database(n, path, bytes, size, false, err));
    if (sqlite3_exec(n->db, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL) !=
        SQLITE_CORRUPT)
        return TP_OK;
    sqlite3_close(n->db);
    n->db = NULL;
    if (bytes)
        tp_buf_add(copy, bytes, size);
    else
        TP_TRY(tp_file_read(path, 0, copy, err));
    size = whole_pages((const unsigned char *)copy->data, copy->len);
    mend_schema((unsigned char *)copy->data, size);
    TP_TRY(open_database(n, path, copy->data, size, true, err));
    n->events->counts.truncated = true;
    tp_notes_add(n->notes, TP_NOTE_WARNING,
                 "'%s' is damaged or ends in the middle; what could be found was read", path);
    return TP_OK;
}

/* The header counts the pages, where the writer kept that number up to date.  Pages that no row
 * is looked for in can be missing without any error. */
static void note_missing_pages(tp_nsight *n, const char *path, const void *bytes, size_t size)
{
    enum { CHANGES = 24, PAGES = 28, VALID_FOR = 92, HEADER = 100 };
    unsigned char header[HEADER] = {0};
    int64_t found = bytes ? (int64_t)size : tp_file_size(path);
    FILE *f = bytes ? NULL : fopen(path, "rb");
    if (bytes && size >= HEADER)
        memcpy(header, bytes, HEADER);
    if (f) {
        if (fread(header, 1, HEADER, f) != HEADER)
            memset(header, 0, HEADER);
        fclose(f);
    }
    int64_t page = big_endian(header + 16, 2);
    page = page == 1 ? 65536 : page;
    int64_t declared = page * (int64_t)big_endian(header + PAGES, 4);
    if (memcmp(header + CHANGES, header + VALID_FOR, 4) != 0 || found < 0 || declared <= found ||
        n->events->counts.truncated)
        return;
    n->events->counts.truncated = true;
    tp_notes_add(n->notes, TP_NOTE_WARNING,
                 "'%s' ends in the middle: %" PRId64 " of %" PRId64 " bytes are there", path, found,
                 declared);
}

static tp_status check_schema(tp_nsight *n, tp_error *err)
{
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(n->db, "SELECT count(*) FROM sqlite_master", -1, &s, NULL) != SQLITE_OK)
        return tp_fail(err, TP_ERR_FORMAT, "'%s' is damaged: %s", n->name, sqlite3_errmsg(n->db));
    int result = sqlite3_step(s);
    sqlite3_finalize(s);
    if (result != SQLITE_ROW)
        return tp_fail(err, TP_ERR_FORMAT, "'%s' is damaged: %s", n->name, sqlite3_errmsg(n->db));
    static const char *const tables[] = {"CUPTI_ACTIVITY_KIND_KERNEL",
                                         "CUPTI_ACTIVITY_KIND_RUNTIME",
                                         "CUPTI_ACTIVITY_KIND_MEMCPY",
                                         "NVTX_EVENTS",
                                         "StringIds",
                                         "OSRT_API",
                                         "META_DATA_EXPORT",
                                         "EXPORT_META_DATA"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (tp_nsight_has_table(n, tables[i]))
            return TP_OK;
    return tp_fail(err, TP_ERR_FORMAT,
                   "'%s' is a SQLite database, but no export of Nsight Systems: none of its tables "
                   "is there; make one with: nsys export --type sqlite REPORT.nsys-rep",
                   n->name);
}

static void prepare_strings(tp_nsight *n)
{
    if (!tp_nsight_has_table(n, "StringIds") ||
        sqlite3_prepare_v2(n->db, "SELECT value FROM main.StringIds WHERE id = ?1", -1,
                           &n->string_query, NULL) != SQLITE_OK)
        n->string_query = NULL;
}

/* Processes that all have one device of the same number: the same, or one each that
 * CUDA_VISIBLE_DEVICES renumbered? */
static void note_shared_device(const tp_nsight *n)
{
    int64_t device = TP_UNKNOWN, pid = TP_UNKNOWN;
    bool is_shared = false;
    for (size_t i = 0; i < n->events->n_tracks; i++) {
        const tp_event_track *track = &n->events->tracks[i];
        if (track->device == TP_UNKNOWN || track->pid == TP_UNKNOWN)
            continue;
        if (device != TP_UNKNOWN && track->device != device)
            return;
        is_shared |= pid != TP_UNKNOWN && track->pid != pid;
        device = track->device;
        pid = track->pid;
    }
    if (is_shared && n->devices.n == 0)
        tp_notes_add(n->notes, TP_NOTE_WARNING,
                     "several processes have a device %" PRId64 ", and without a table "
                     "TARGET_INFO_CUDA_DEVICE nothing tells whether it is the same: taken for one",
                     device);
}

static void add_notes(tp_nsight *n)
{
    const tp_trace_info *info = &n->events->info;
    const tp_event_counts *c = &n->events->counts;
    if (n->n_damaged) {
        n->events->counts.truncated = true;
        tp_notes_add(n->notes, TP_NOTE_WARNING,
                     "%" PRIu64 " tables of '%s' could not be read to their end (%s); what came "
                     "before was read",
                     n->n_damaged, n->name, n->damage);
    }
    note_shared_device(n);
    if (!n->string_query)
        tp_notes_add(n->notes, TP_NOTE_WARNING, "'%s' has no StringIds: names are missing",
                     n->name);
    if (info->graphs_hide_kernels && c->kind[TP_EVENT_GRAPH])
        tp_notes_add(n->notes, TP_NOTE_WARNING,
                     "CUDA graphs were captured as wholes (%" PRIu64 " launches): their kernels "
                     "are not in the file; capture with --cuda-graph-trace=node to see them",
                     c->kind[TP_EVENT_GRAPH]);
    if (c->unpaired)
        tp_notes_add(n->notes, TP_NOTE_INFO, "%" PRIu64 " NVTX ranges have no end", c->unpaired);
    if (c->negative_durations)
        tp_notes_add(n->notes, TP_NOTE_WARNING,
                     "%" PRIu64 " rows of negative duration; kept as they are",
                     c->negative_durations);
    if (c->absurd_durations)
        tp_notes_add(n->notes, TP_NOTE_WARNING,
                     "%" PRIu64 " rows longer than 7 days; kept as they are", c->absurd_durations);
    if (c->missing_duration)
        tp_notes_add(n->notes, TP_NOTE_WARNING, "%" PRIu64 " rows without an end; left out",
                     c->missing_duration);
    if (c->missing_time)
        tp_notes_add(n->notes, TP_NOTE_WARNING, "%" PRIu64 " rows without a time; left out",
                     c->missing_time);
}

/* Where a database was not closed, its newest content is in a log beside it: it is not read. */
static bool has_journal(const tp_nsight *n)
{
    TP_OWN(tp_buf) wal = {0};
    tp_buf_addf(&wal, "%s-wal", n->name);
    return tp_file_size(wal.data) > 0;
}

static bool has_any_table(const tp_nsight *n)
{
    sqlite3_stmt *s = NULL;
    bool has =
        n->db &&
        sqlite3_prepare_v2(n->db, "SELECT 1 FROM sqlite_master", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW;
    sqlite3_finalize(s);
    return has;
}

tp_status tp_nsight_read(const char *path, const void *bytes, size_t size,
                         const tp_ingest_options *options, tp_events *ret, tp_notes *notes,
                         tp_error *err)
{
    tp_nsight n = {.name = path, .events = ret, .notes = notes, .options = options};
    TP_OWN(tp_buf) copy = {0};
    tp_builder_init(&n.builder, ret, options->keep);
    tp_status status = open_somehow(&n, path, bytes, size, &copy, err);
    if (status == TP_OK)
        status = check_schema(&n, err);
    bool is_open = !bytes && has_journal(&n);
    if (status != TP_OK && is_open && !has_any_table(&n))
        status =
            tp_fail(err, TP_ERR_FORMAT,
                    "'%s' was not closed: what is missing may be in '%s-wal', which is not read; "
                    "close it with: sqlite3 FILE 'PRAGMA wal_checkpoint(TRUNCATE)'",
                    path, path);
    if (status == TP_OK) {
        prepare_strings(&n);
        tp_nsight_read_about(&n);
        tp_nsight_read_rows(&n);
        note_missing_pages(&n, path, bytes, size);
        if (is_open)
            tp_notes_add(n.notes, TP_NOTE_WARNING,
                         "'%s-wal' exists: the export was not closed, and what is in there was not "
                         "read",
                         path);
        status = tp_builder_check(&n.builder, path, err);
    }
    tp_builder_finish(&n.builder);
    if (status == TP_OK)
        add_notes(&n);
    sqlite3_finalize(n.string_query);
    tp_number_map_release(&n.strings);
    tp_number_map_release(&n.devices);
    sqlite3_close(n.db);
    if (status != TP_OK)
        tp_events_release(ret);
    return status;
}
