/* collectives.h - which kernels communicate, what they do, and how fast that is.
 *
 * A kernel communicates when the trace says so (Kineto copies "Collective name" onto
 * it) or when its name does: NCCL and its relatives, NVLS multimem kernels, the custom
 * all-reduces of inference servers, DeepEP, user buffers.  What it does comes from the
 * metadata first and from the name else.
 *
 * Bandwidths are those of nccl-tests (1 GB = 1e9 bytes, n ranks): algbw = S / t and
 * busbw = algbw * factor, with S the bytes that nccl-tests would print:
 *     all_reduce      in             2 (n - 1) / n
 *     reduce_scatter  in             (n - 1) / n
 *     all_gather      out            (n - 1) / n
 *     all_to_all, gather, scatter    the larger side, (n - 1) / n
 *     broadcast, reduce, send, recv  the larger side, 1                               */
#ifndef TP_INSTRUMENT_ANALYZE_COLLECTIVES_H
#define TP_INSTRUMENT_ANALYZE_COLLECTIVES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strings.h"

typedef enum {
    TP_COLLECTIVE_UNKNOWN,
    TP_COLLECTIVE_ALL_REDUCE,
    TP_COLLECTIVE_REDUCE_SCATTER,
    TP_COLLECTIVE_ALL_GATHER,
    TP_COLLECTIVE_ALL_TO_ALL,
    TP_COLLECTIVE_BROADCAST,
    TP_COLLECTIVE_REDUCE,
    TP_COLLECTIVE_GATHER,
    TP_COLLECTIVE_SCATTER,
    TP_COLLECTIVE_SEND_RECV,
    TP_COLLECTIVE_BARRIER,
    TP_COLLECTIVE_COUNT
} tp_collective;

const char *tp_collective_name(tp_collective collective); /* "all_reduce" */

/* By the name of a kernel alone. */
bool tp_name_communicates(tp_slice kernel_name);
/* A copy or a fill that older ROCm versions record as a kernel. */
bool tp_name_is_copy(tp_slice kernel_name);

tp_collective tp_collective_of_kernel(tp_slice kernel_name);
/* Of "Collective name": "allreduce", "_allgather_base", "all_to_allv", ... */
tp_collective tp_collective_of_metadata(tp_slice name);

/* Bytes of one element of "dtype" as Kineto writes it ("BFloat16"); 0 when unknown. */
int tp_dtype_bytes(tp_slice dtype);

/* The S of nccl-tests; -1 when it cannot be told. */
int64_t tp_collective_bytes(tp_collective c, int64_t in_elements, int64_t out_elements,
                            int element_bytes);
/* The same from the bytes that one rank hands to NCCL: counts are per rank there, S of
 * reduce_scatter, all_gather, all_to_all, gather and scatter counts all `ranks`. */
int64_t tp_collective_message_bytes(tp_collective c, int64_t message_bytes, int64_t ranks);
/* busbw / algbw for a group of n; NaN when unknown. */
double tp_collective_factor(tp_collective c, int64_t n);

#endif
