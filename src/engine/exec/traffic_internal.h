/* traffic_internal.h - what the files of exec/traffic share: buckets, and their pieces on the way.
 */
#ifndef TP_ENGINE_EXEC_TRAFFIC_INTERNAL_H
#define TP_ENGINE_EXEC_TRAFFIC_INTERNAL_H

#include "engine/exec/traffic.h"

enum { TP_TRAFFIC_SLOTS = 3 };

/* What of an op's tensor goes in and comes out, by whose part it is. */
typedef enum { TP_OWN = 1, TP_OTHERS = 2, TP_ALL = 3 } tp_whose;

typedef struct {
    tp_collective_kind kind;
    tp_whose in, out;
    bool from_part, to_part; /* its operand, its result is kept in parts: the own one is there */
    bool is_across;          /* among the ranks that keep the same part */
    bool is_tensor;          /* among those that share the layers */
    bool is_inside;          /* what others compute in this run needs it */
    bool is_each;            /* it is of a micro-batch, not of a step */
    bool by_rows;            /* parts are shares of the rows of a matrix */
    bool adds;               /* the result is added to what there is */
} tp_manner;

/* Launches that go together.  Elements of a tensor lie in the staging buffer by whose they are:
 * part 0 of every tensor, then part 1 of every tensor ...  Of what is encoded a block counts as
 * one element, and begins where a tensor's part does, so that it is the same in any bucket. */
typedef struct {
    tp_manner how;
    tp_wire wire;
    size_t block;        /* numbers of an element: 1 unless it is encoded */
    size_t element;      /* bytes */
    tp_comm_group group; /* that exchanges it */
    int parts, own;      /* ranks of the group, and which of them this one is */
    size_t unit;         /* elements of a piece that are a rank's */
    size_t *launches;
    size_t n, n_begun;
    size_t *lengths; /* [parts]: elements of each rank's part */
    size_t longest;
    size_t numbers; /* of all parts */
} tp_bucket;

/* A piece of a bucket on its way. */
typedef struct {
    const tp_bucket *of; /* NULL: free */
    size_t piece;
    char *data, *temp;
    float *sum;     /* of what is encoded: the own part, as far as it came */
    size_t *starts; /* [parts + 1] */
    tp_exchange *request;
    tp_exchange_coder coder;
    tp_traffic *traffic;
} tp_parcel;

struct tp_traffic {
    tp_ranks ranks;
    const tp_launch *launches;
    tp_bucket *buckets;
    size_t n_buckets;
    int *bucket_of;                           /* per launch; -1: none */
    size_t data_bytes, temp_bytes, sum_bytes; /* of a slot */
    tp_parcel slots[TP_TRAFFIC_SLOTS];
    int next;           /* the slots are filled and emptied in turn */
    double rehearsed_s; /* to copy a byte, in a rehearsal; else 0 */
    tp_wire_stats stats;
};

/* ---- traffic_plan.c ---- */

/* What this rank holds of a launch's tensor: across, its part. */
void tp_bucket_held(const tp_traffic *traffic, const tp_bucket *bucket, const tp_launch *launch,
                    size_t *ret_begin, size_t *ret_end);
/* The part of a launch's tensor (of what is held of it, across) that is a rank's of the group. */
void tp_bucket_part(const tp_traffic *traffic, const tp_bucket *bucket, const tp_launch *launch,
                    int rank, size_t *ret_begin, size_t *ret_end);
size_t tp_bucket_elements(const tp_bucket *bucket, size_t begin, size_t end);
size_t tp_bucket_pieces(const tp_bucket *bucket);
/* What a rank sends of the bucket, on average, if it is not encoded. */
double tp_bucket_plain_bytes(const tp_bucket *bucket);

/* ---- traffic_parcel.c ---- */

/* Numbers of a tensor that are in the piece of a slot: `n` from `at` on, counted from where the
 * rank's part of the tensor begins in it; the piece has them from the rank's element `from` on. */
typedef struct {
    const tp_launch *launch;
    size_t begin, at, n, from;
} tp_stretch;

typedef tp_status tp_stretch_fn(const tp_parcel *s, int rank, const tp_stretch *x, tp_error *err);

/* All of a rank's part. */
TP_CHECKED tp_status tp_parcel_walk(const tp_parcel *s, int rank, tp_stretch_fn *fn, tp_error *err);
char *tp_parcel_staged(const tp_parcel *s, int rank, const tp_stretch *x);
/* Where numbers are in the tensors, `at` of the stretch on. */
tp_span tp_stretch_place(const tp_bucket *b, const tp_stretch *x, bool in, size_t at);

/* ---- traffic_encoded.c ---- */

/* What is done with a rank's part of a slot whose bucket is encoded, in or out. */
tp_stretch_fn *tp_encoded_copier(const tp_parcel *s, int rank, bool in);
/* What a collective asks while it is on its way; `slot` is the user. */
tp_exchange_coder tp_encoded_coder(tp_parcel *slot);
/* In a rehearsal: the time that so many elements take passes. */
void tp_encoded_rehearse(const tp_parcel *s, size_t elements);

#endif
