/* result_kind.h - what a file is that is no run: told from its name and its first bytes. */
#ifndef TP_INSTRUMENT_INGEST_RESULT_KIND_H
#define TP_INSTRUMENT_INGEST_RESULT_KIND_H

#include "temper/analysis.h"

const char *tp_result_kind_name(tp_result_kind kind); /* "run", "trace", ... */
/* Whether a file of this name is worth a look. */
bool tp_result_name_fits(const char *name);
/* TP_RESULT_RUN, and *ret_format NULL, where it is none that is known. */
tp_result_kind tp_result_look(const char *path, const char **ret_format);

#endif
