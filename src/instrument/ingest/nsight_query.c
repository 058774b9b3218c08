/* nsight_query.c - SQLite statements with errors that name the file and the table. */
#include <string.h>

#include "instrument/ingest/nsight.h"

void tp_nsight_damaged(tp_nsight *n)
{
    if (!n->n_damaged++)
        snprintf(n->damage, sizeof n->damage, "%s", sqlite3_errmsg(n->db));
}

/* Only real tables: a view or a virtual table in their place would be foreign code. */
bool tp_nsight_has_table(tp_nsight *n, const char *table)
{
    sqlite3_stmt *s;
    bool found = false;
    if (sqlite3_prepare_v2(n->db,
                           "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 AND "
                           "sql NOT LIKE 'CREATE VIRTUAL%'",
                           -1, &s, NULL) != SQLITE_OK)
        return false;
    if (sqlite3_bind_text(s, 1, table, -1, SQLITE_STATIC) == SQLITE_OK)
        found = sqlite3_step(s) == SQLITE_ROW;
    sqlite3_finalize(s);
    return found;
}

int64_t tp_nsight_count(tp_nsight *n, const char *table)
{
    sqlite3_stmt *s;
    int64_t count = -1;
    char *sql = sqlite3_mprintf("SELECT count(*) FROM \"%w\"", table);
    if (sql && sqlite3_prepare_v2(n->db, sql, -1, &s, NULL) == SQLITE_OK) {
        if (sqlite3_step(s) == SQLITE_ROW)
            count = sqlite3_column_int64(s, 0);
        sqlite3_finalize(s);
    }
    sqlite3_free(sql);
    return count;
}

/* The table's column among the alternatives "a|b", into `ret` (64 bytes). */
static bool find_column(tp_nsight *n, const char *table, const char *alternatives, char *ret)
{
    while (*alternatives) {
        size_t len = strcspn(alternatives, "|");
        const char *type;
        if (len < 64) {
            memcpy(ret, alternatives, len);
            ret[len] = 0;
            if (sqlite3_table_column_metadata(n->db, "main", table, ret, &type, NULL, NULL, NULL,
                                              NULL) == SQLITE_OK)
                return true;
        }
        alternatives += len + (alternatives[len] == '|');
    }
    return false;
}

bool tp_nsight_begin(tp_nsight_query *q, tp_nsight *n, const char *table,
                     const char *const *columns, int n_columns, int n_required)
{
    TP_OWN(tp_buf) sql = {0};
    *q = (tp_nsight_query){.nsight = n, .n_columns = n_columns};
    TP_ASSERT(n_columns <= TP_NSIGHT_COLUMNS);
    if (!tp_nsight_has_table(n, table))
        return false;
    tp_buf_adds(&sql, "SELECT ");
    for (int i = 0; i < n_columns; i++) {
        char column[64];
        q->has[i] = find_column(n, table, columns[i], column);
        if (!q->has[i] && i < n_required) {
            tp_notes_add(n->notes, TP_NOTE_WARNING,
                         "table %s of '%s' has no column '%s'; it was left out", table, n->name,
                         columns[i]);
            return false;
        }
        tp_buf_adds(&sql, i ? ", " : "");
        if (q->has[i])
            tp_buf_addf(&sql, "\"%s\"", column);
        else
            tp_buf_adds(&sql, "NULL");
    }
    tp_buf_addf(&sql, " FROM main.\"%s\"", table);
    int result = sqlite3_prepare_v2(n->db, sql.data, -1, &q->statement, NULL);
    tp_buf_release(&sql);
    if (result != SQLITE_OK) {
        tp_nsight_damaged(n);
        return false;
    }
    return true;
}

bool tp_nsight_next(tp_nsight_query *q)
{
    int result = sqlite3_step(q->statement);
    if (result == SQLITE_ROW)
        return true;
    if (result != SQLITE_DONE)
        tp_nsight_damaged(q->nsight);
    return false;
}

void tp_nsight_end(tp_nsight_query *q)
{
    sqlite3_finalize(q->statement);
    q->statement = NULL;
    tp_buf_release(&q->bytes);
}

int64_t tp_nsight_i64(const tp_nsight_query *q, int column)
{
    if (sqlite3_column_type(q->statement, column) == SQLITE_NULL)
        return TP_UNKNOWN;
    return sqlite3_column_int64(q->statement, column);
}

static uint32_t intern_column(tp_nsight *n, sqlite3_stmt *s, int column)
{
    const unsigned char *text = sqlite3_column_text(s, column);
    int len = sqlite3_column_bytes(s, column);
    if (!text || len <= 0)
        return 0;
    return tp_string_add(&n->events->strings, (const char *)text, (size_t)len);
}

uint32_t tp_nsight_text(const tp_nsight_query *q, int column)
{
    return intern_column(q->nsight, q->statement, column);
}

const char *tp_nsight_chars(const tp_nsight_query *q, int column)
{
    const unsigned char *text = sqlite3_column_text(q->statement, column);
    return text ? (const char *)text : "";
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 32);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

const unsigned char *tp_nsight_bytes(tp_nsight_query *q, int column, size_t *ret_n)
{
    int type = sqlite3_column_type(q->statement, column);
    *ret_n = 0;
    if (type != SQLITE_BLOB && type != SQLITE_TEXT)
        return NULL;
    const unsigned char *bytes = sqlite3_column_blob(q->statement, column);
    size_t n = (size_t)sqlite3_column_bytes(q->statement, column);
    if (!bytes)
        return NULL;
    *ret_n = n;
    if (type == SQLITE_BLOB || n % 2)
        return bytes;
    tp_buf_clear(&q->bytes);
    for (size_t i = 0; i < n; i += 2) {
        int high = digit_of((char)bytes[i]), low = digit_of((char)bytes[i + 1]);
        if (high < 0 || low < 0)
            return bytes; /* raw bytes in a column of text */
        tp_buf_addc(&q->bytes, (char)(high << 4 | low));
    }
    *ret_n = q->bytes.len;
    return (const unsigned char *)q->bytes.data;
}

/* --- strings by number --- */

static uint32_t nsight_string(tp_nsight *n, int64_t id)
{
    if (!n->string_query || id == TP_UNKNOWN)
        return 0;
    uint32_t number = tp_number_map_get(&n->strings, (uint64_t)id);
    if (number != TP_NO_ROW)
        return number;
    number = 0;
    sqlite3_reset(n->string_query);
    if (sqlite3_bind_int64(n->string_query, 1, id) == SQLITE_OK &&
        sqlite3_step(n->string_query) == SQLITE_ROW)
        number = intern_column(n, n->string_query, 0);
    sqlite3_reset(n->string_query);
    tp_number_map_set(&n->strings, (uint64_t)id, number);
    return number;
}

uint32_t tp_nsight_name(const tp_nsight_query *q, int column)
{
    return nsight_string(q->nsight, tp_nsight_i64(q, column));
}
