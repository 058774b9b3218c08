/* engine_internal.h - the parts of an engine; private to engine/generate.
 *
 *   engine.c     making one, requests in and results out
 *   draft.c      what is tried as the next tokens of a text
 *   schedule.c   who runs: starting, putting back, ending; blocks of the cache
 *   step.c       one step: rows of the graph, and what became of them
 *   stop_text.c  stop strings
 *   rules.c      which ids may come next
 *
 * A sample is known up to its last token: prompt, then what was drawn.  `n_cached` of
 * these tokens are in the cache; a step computes the next ones, and when it reaches the
 * last the row gives the next token.  Prompts, decoding and computing again are so the
 * same thing, and so is a draft: tokens behind the last one, whose rows say what follows if they
 * are right. */
#ifndef TP_ENGINE_GENERATE_ENGINE_INTERNAL_H
#define TP_ENGINE_GENERATE_ENGINE_INTERNAL_H

#include <stdint.h>

#include "engine/generate/engine.h"

/* ---- which blocks of the cache are free ----
 *
 * A block belongs to everyone who keeps it: the samples whose tables name it and the prefix of a
 * request that waits for more of its samples to start. */

typedef struct {
    int32_t n, n_free, least_free; /* least_free: since the last reset */
    int32_t *free;                 /* a stack */
    int32_t *keepers;              /* of each block */
} tp_blocks;

void tp_blocks_init(tp_blocks *blocks, int32_t n);
void tp_blocks_release(tp_blocks *blocks);

/* A free block, kept once; the caller knows that there is one. */
int32_t tp_blocks_take(tp_blocks *blocks);
void tp_blocks_keep(tp_blocks *blocks, int32_t block);
void tp_blocks_drop(tp_blocks *blocks, int32_t block); /* free when the last keeper drops it */

/* ---- the engine ---- */

typedef struct request request;

/* Outputs of the graph. */
enum { TP_ENGINE_OUT_LOGITS, TP_ENGINE_OUT_IDS, TP_ENGINE_OUT_LOGP, TP_ENGINE_OUT_DRAWN };

typedef enum { SAMPLE_WAITING, SAMPLE_RUNNING, SAMPLE_DONE } sample_state;

typedef struct {
    request *request;
    int64_t index; /* within the request */
    sample_state state;
    tp_finish finish;
    int32_t stop_string;
    int32_t *ids;
    float *logp, *drawn;
    int64_t n, cap;
    int64_t n_draft;    /* ids behind the n that are tried in this step */
    int64_t most_draft; /* of the next step; 0: as many as are asked for */
    bool is_plain;      /* tries nothing any more */
    int32_t slot;       /* row of the tables while running */
    int32_t n_blocks;
    int64_t n_cached, n_computed; /* n_computed: most that was ever cached */
    tp_decode_stream stream;      /* stop strings */
    tp_buf text;
} sample;

/* Where the tokens of a prompt but the last are, for the samples that have not started. */
typedef enum { PREFIX_NONE, PREFIX_BUILDING, PREFIX_READY } prefix_state;

struct request {
    int64_t id;
    request *next_waiting; /* in the order of submission */
    int32_t *prompt;
    int64_t n_prompt, max_new;
    tp_sampling sampling;
    tp_logit_rules rules; /* its lists belong to the request */
    int32_t adapter;      /* as the graph knows it: -1 is none */
    uint64_t seed, stream;
    int32_t *stop_ids;
    size_t n_stop_ids;
    char **stop_strings;
    size_t n_stop_strings, longest_stop;
    bool (*on_token)(void *user, const tp_engine_token *token);
    void *user;
    sample *samples;
    int64_t n_samples, n_started, n_done;
    prefix_state prefix;
    const sample *builder;
    int32_t *prefix_blocks;
    int32_t n_prefix_blocks;
};

/* Drawing again under rules; see rules.c. */
typedef struct {
    tp_program *program; /* whose only graph it is */
    tp_exec *exec;
    float *logits, *plain, *sampling; /* [most_rows, vocab], [vocab], [most_rows, 4] */
    double *draws;
    int64_t *rows; /* of the step that they are */
} tp_rules;

struct tp_engine {
    const tp_model *model;
    tp_engine_options options;
    tp_states *states;
    tp_program *program;
    bool owns_program;
    int graph; /* of the program */
    tp_exec *exec;
    int64_t table_width; /* blocks of a sequence of max_length */
    int64_t most_rows;   /* that ask for logits in a step */
    size_t block_bytes;
    tp_blocks blocks;

    /* inputs of a step */
    int32_t *tokens, *positions, *slots, *which, *place, *tables, *rows;
    float *sampling;
    double *draws;
    sample **row_samples; /* whose row each of `rows` is */
    int64_t n_tokens, n_rows;
    struct {
        char input[32];
        int32_t *rows; /* of the step's tokens: those that this adapter answers */
        int64_t n;
    } * adapters;
    int64_t n_adapters;

    /* results of a step, by row */
    int32_t *ids;
    float *logp, *sampled_logp;
    int64_t n_prompt_rows; /* of n_tokens: no new token, or the first of a sample */

    struct {
        int32_t from, to;
    } * copies; /* blocks of the cache that the next step copies first */
    int64_t n_copies;

    sample **running; /* oldest first */
    int64_t n_running;
    sample **returned; /* put back, oldest first */
    int64_t n_returned;
    bool *slot_in_use;
    request *first_waiting, *last_waiting; /* requests with samples that never started */
    int64_t n_waiting;

    request **requests; /* by id, NULL once forgotten */
    int64_t n_requests, cap_requests, first_live;
    tp_engine_stats stats;
    tp_rules *rules; /* NULL until a request has some */
};

static inline int64_t sample_length(const sample *s) { return s->request->n_prompt + s->n; }

static inline int32_t sample_token(const sample *s, int64_t position)
{
    int64_t n = s->request->n_prompt;
    return position < n ? s->request->prompt[position] : s->ids[position - n];
}

static inline int32_t *sample_table(const tp_engine *e, const sample *s)
{
    return e->tables + s->slot * e->table_width;
}

/* Instead of an id that was drawn: the logits are no numbers; the rules leave none. */
enum { TP_ID_BROKEN = -1, TP_ID_RULED_OUT = -2 };

/* A vector where there is one column. */
static inline tp_ref tp_engine_input(tp_graph *g, const char *name, tp_dtype dtype, int64_t rows,
                                     int64_t columns)
{
    int64_t dim[] = {rows, columns};
    return tp_graph_input(g, name, dtype, columns > 1 ? 2 : 1, dim);
}

/* rules.c */
bool tp_rules_are_some(const tp_logit_rules *rules);
TP_CHECKED tp_status tp_rules_prepare(tp_engine *e, tp_error *err);
void tp_rules_free(tp_rules *rules); /* NULL is a no-op */
/* After the graph has run: what was drawn for rows with rules is drawn again. */
TP_CHECKED tp_status tp_rules_draw(tp_engine *e, tp_error *err);

/* draft.c */
/* Fills in what is left open; 0 tokens: nothing is tried. */
TP_CHECKED tp_status tp_draft_read_options(tp_drafting *o, int64_t max_running, tp_error *err);
/* Try up to `room` tokens behind those of s, which has computed all but the last. */
void tp_draft_next(tp_engine *e, sample *s, int64_t room);
/* So many of the tokens that were tried were right. */
void tp_draft_note(sample *s, int64_t tried, int64_t right);

/* schedule.c */
void tp_sample_reserve(sample *s, int64_t n); /* room for n answer tokens */
/* Every running sample has a block for its next token: some may be put back or end. */
void tp_schedule_grow(tp_engine *e);
/* Of n tokens behind the known ones, those that s can have places for while every running sample
 * keeps a spare block; it has them then. */
int64_t tp_schedule_reserve(tp_engine *e, sample *s, int64_t n);
/* To begin anew later, with the tokens that it has. */
void tp_schedule_put_back(tp_engine *e, sample *s);
/* Start the next sample whose known tokens fit, or NULL.  One that never will has ended. */
sample *tp_schedule_start(tp_engine *e);
void tp_schedule_end(tp_engine *e, sample *s, tp_finish finish);
/* After a step: prefixes whose builder has reached their end become ready. */
void tp_schedule_note_prefix(tp_engine *e, const sample *s);
void tp_schedule_drop_prefix(tp_engine *e, request *r);
void tp_schedule_add(tp_engine *e, request *r);
void tp_schedule_remove(tp_engine *e, request *r); /* from the waiting ones, if it is there */

/* stop_text.c: does the text with this new token hold a stop string?  Its number, or -1. */
int32_t tp_stop_text_next(const tp_engine *e, sample *s, int32_t id);

#endif
