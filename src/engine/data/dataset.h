/* dataset.h - the front of this folder: a configuration becomes examples to train on.
 *
 *     JSONL or made-up sums -> schema -> render -> cache (once) -> splits
 *                                                                    |
 *                                       trainer <- loader <- pack <--+
 *
 * Opening finds the token cache of exactly this data, tokenizer and options, or makes
 * it; after that nothing is in memory but the mapping.  Cache files are named after
 * everything that decides their contents, so they are never stale; unusable ones are
 * made again, and that is said. */
#ifndef TP_ENGINE_DATA_DATASET_H
#define TP_ENGINE_DATA_DATASET_H

#include "base/threads.h"
#include "engine/data/arithmetic.h"
#include "engine/data/cache.h"
#include "engine/data/loader.h"
#include "engine/data/schema.h"
#include "text/json/json.h"
#include "text/tokenizer/tokenizer.h"

/* Names as under `data` in the configuration; zeroed means default. */
typedef struct {
    const char *data_path;                   /* JSONL; or: */
    const tp_arithmetic_options *arithmetic; /* with n_train and n_validation examples */
    uint64_t n_train, n_validation;

    tp_schema_options rows;    /* without the texts of its files */
    const char *chat_template; /* NULL: the tokenizer's; "": join contents; else a template */
    const tp_json *template_variables; /* further ones for it, an object; or NULL */
    bool only_unmask_final, learn_header, add_bos, add_eos;
    size_t max_seq_length;        /* data.max_input_seq_length; 0 = no limit */
    double split_validation_size; /* share of a file that is kept for validation, [0, 1) */
    uint64_t seed;                /* of that split */
    int64_t skip_bad;             /* rows that may be left out; < 0: any number */

    const char *cache_dir;    /* NULL: $XDG_CACHE_HOME/temper or ~/.cache/temper */
    double cache_limit;       /* bytes of all caches there; 0: no limit */
    const char *fallback_dir; /* (optional) where that cannot be written */

    /* (optional), see corpus.h; of reading the file as well */
    bool (*progress)(void *user, const char *what, uint64_t done, uint64_t total);
    void *user;
} tp_dataset_options;

typedef struct {
    tp_cache_counts counts; /* of all splits together */
    bool cache_hit;
    const char *cache_path;           /* of the first split; owned by the data set */
    const char *rebuilt_because;      /* "" unless an unusable cache was replaced */
    const char *first_bad;            /* message of the first bad row left out, or "" */
    double seconds;                   /* opening, all in all */
    double tokens_per_s, bytes_per_s; /* of tokenising; 0 on a cache hit */
    uint64_t n_train, n_validation;   /* examples */
    bool uses_chat_template, learns_headers;
} tp_dataset_report;

typedef struct tp_dataset tp_dataset;

/* `tok` must outlive the data set; the pool (NULL: this thread alone) only tokenises. */
TP_CHECKED tp_status tp_dataset_open(const tp_dataset_options *options, const tp_tokenizer *tok,
                                     tp_pool *pool, tp_dataset **ret, tp_error *err);
void tp_dataset_close(tp_dataset *ds); /* NULL is a no-op */

const tp_dataset_report *tp_dataset_get_report(const tp_dataset *ds);
/* n is 0 when the split is empty. */
const tp_sample_set *tp_dataset_set(const tp_dataset *ds, tp_split split);

/* A loader over a split, with the vocabulary filled in. */
TP_CHECKED tp_status tp_dataset_loader(const tp_dataset *ds, tp_split split,
                                       tp_loader_options options, tp_loader **ret, tp_error *err);

/* Example i of a split with its mask, for people; a title line first. */
TP_CHECKED tp_status tp_dataset_show(const tp_dataset *ds, tp_split split, uint64_t i, tp_buf *out,
                                     tp_error *err);

/* How many rows were read and what became of them, as a part of a line. */
void tp_dataset_report_line(const tp_dataset_report *report, tp_buf *out);
/* The report as a few lines of text. */
void tp_dataset_report_text(const tp_dataset_report *report, tp_buf *out);

#endif
