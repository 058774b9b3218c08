/* foreign_db.c - a stranger's database is opened without trust. */
#include "instrument/ingest/foreign_db.h"

#include <string.h>

/* Everything but letters, digits and a few marks in hexadecimal. */
void tp_foreign_db_uri(const char *path, const char *options, tp_buf *ret)
{
    tp_buf_adds(ret, "file:");
    for (const unsigned char *p = (const unsigned char *)path; *p; p++) {
        bool plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                     (*p >= '0' && *p <= '9') || strchr("/._-", *p);
        if (plain)
            tp_buf_addc(ret, (char)*p);
        else
            tp_buf_addf(ret, "%%%02x", *p);
    }
    tp_buf_adds(ret, options);
}

void tp_foreign_db_harden(sqlite3 *db, bool is_damaged)
{
    /* A schema that "may be written" is what SQLite calls reading on although pages are
     * missing; the database itself is open for reading only. */
    sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, !is_damaged, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_WRITABLE_SCHEMA, is_damaged, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 64 << 20);
    sqlite3_limit(db, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
    sqlite3_limit(db, SQLITE_LIMIT_COLUMN, 256);
    sqlite3_limit(db, SQLITE_LIMIT_ATTACHED, 0);
}
