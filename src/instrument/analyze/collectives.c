/* collectives.c - which kernels communicate, by metadata or name; bytes and bus factors of
 * NCCL's performance notes. */
#include "instrument/analyze/collectives.h"

#include <math.h>
#include <string.h>

static const char *const names[TP_COLLECTIVE_COUNT] = {
    "unknown", "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast",
    "reduce",  "gather",     "scatter",        "send_recv",  "barrier"};

const char *tp_collective_name(tp_collective collective) { return names[collective]; }

/* ---- searching in names, without regard to case ---- */

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

static bool has_at(tp_slice s, size_t at, const char *word)
{
    for (; *word; word++, at++)
        if (at >= s.len || lower(s.data[at]) != *word)
            return false;
    return true;
}

/* Where `word` (lower case) begins in s at or after `from`; s.len when nowhere. */
static size_t find(tp_slice s, size_t from, const char *word)
{
    for (; from < s.len; from++)
        if (lower(s.data[from]) == *word && has_at(s, from, word))
            return from;
    return s.len;
}

static bool has(tp_slice s, const char *word) { return find(s, 0, word) < s.len; }

/* (one|two|1|2)_?shot */
static bool has_counted_shot(tp_slice s)
{
    static const char *const counts[] = {"one", "two", "1", "2"};
    for (size_t at = find(s, 0, "shot"); at < s.len; at = find(s, at + 1, "shot")) {
        size_t before = at > 0 && s.data[at - 1] == '_' ? at - 1 : at;
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            size_t n = strlen(counts[i]);
            if (before >= n && has_at(s, before - n, counts[i]))
                return true;
        }
    }
    return false;
}

/* On either side: "oneShotAllReduceKernel", "allreduce_prototype_twoshot" */
static bool has_shot_all_reduce(tp_slice s)
{
    return has_counted_shot(s) && (has(s, "allreduce") || has(s, "all_reduce"));
}

/* Names of Inductor's kernels are made of the operators around them, which communicate. */
static bool is_of_inductor(tp_slice name) { return has_at(name, 0, "triton_"); }

bool tp_name_communicates(tp_slice name)
{
    static const char *const words[] = {"nccl",      "rccl",    "msccl",
                                        "oneccl",    "nvshmem", "allreduce_fusion",
                                        "multimem_", "deep_ep", "userbuffers"};
    if (is_of_inductor(name))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has(name, words[i]))
            return true;
    return (has(name, "cross_device_") && has(name, "reduce")) || has_shot_all_reduce(name);
}

bool tp_name_is_copy(tp_slice name)
{
    return has(name, "__amd_rocclr_copybuffer") || has(name, "__amd_rocclr_fillbuffer") ||
           has(name, "memory_copy_");
}

/* ---- what is done ---- */

typedef struct {
    const char *word; /* underscores left out */
    tp_collective collective;
} word_row;

/* The first that occurs decides: "allgather" before "gather", "reducescatter" before both. */
static const word_row words[] = {{"allreduce", TP_COLLECTIVE_ALL_REDUCE},
                                 {"crossdevicereduce", TP_COLLECTIVE_ALL_REDUCE},
                                 {"reducescatter", TP_COLLECTIVE_REDUCE_SCATTER},
                                 {"allgather", TP_COLLECTIVE_ALL_GATHER},
                                 {"alltoall", TP_COLLECTIVE_ALL_TO_ALL},
                                 {"sendrecv", TP_COLLECTIVE_SEND_RECV},
                                 {"broadcast", TP_COLLECTIVE_BROADCAST},
                                 {"bcast", TP_COLLECTIVE_BROADCAST},
                                 {"barrier", TP_COLLECTIVE_BARRIER},
                                 {"gather", TP_COLLECTIVE_GATHER},
                                 {"scatter", TP_COLLECTIVE_SCATTER}};

static tp_collective by_words(tp_slice name, bool is_metadata)
{
    char plain[256];
    size_t n = 0;
    for (size_t i = 0; i < name.len && n < sizeof plain; i++)
        if (name.data[i] != '_')
            plain[n++] = name.data[i];
    tp_slice s = {plain, n};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has(s, words[i].word))
            return words[i].collective;
    if (has(s, is_metadata ? "reduce" : "kernelreduce"))
        return TP_COLLECTIVE_REDUCE;
    if (is_metadata && (has(s, "send") || has(s, "recv")))
        return TP_COLLECTIVE_SEND_RECV;
    return TP_COLLECTIVE_UNKNOWN;
}

tp_collective tp_collective_of_kernel(tp_slice name)
{
    if (has(name, "deep_ep"))
        return TP_COLLECTIVE_ALL_TO_ALL;
    return by_words(name, false);
}

tp_collective tp_collective_of_metadata(tp_slice name) { return by_words(name, true); }

/* ---- sizes and factors ---- */

int tp_dtype_bytes(tp_slice dtype)
{
    static const struct {
        const char *name;
        int bytes;
    } rows[] = {{"Byte", 1},           {"Char", 1},     {"Bool", 1},        {"Short", 2},
                {"Half", 2},           {"BFloat16", 2}, {"Int", 4},         {"Float", 4},
                {"Long", 8},           {"Double", 8},   {"ComplexHalf", 4}, {"ComplexFloat", 8},
                {"ComplexDouble", 16}, {"UInt16", 2},   {"UInt32", 4},      {"UInt64", 8},
                {"QInt8", 1},          {"QUInt8", 1},   {"QInt32", 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (tp_slice_is(dtype, rows[i].name))
            return rows[i].bytes;
    return dtype.len >= 7 && memcmp(dtype.data, "Float8_", 7) == 0 ? 1 : 0;
}

int64_t tp_collective_bytes(tp_collective c, int64_t in, int64_t out, int element_bytes)
{
    int64_t bytes, n = in > out ? in : out;
    if (c == TP_COLLECTIVE_ALL_REDUCE || c == TP_COLLECTIVE_REDUCE_SCATTER)
        n = in;
    if (c == TP_COLLECTIVE_ALL_GATHER)
        n = out;
    if (c == TP_COLLECTIVE_UNKNOWN || c == TP_COLLECTIVE_BARRIER || n <= 0 || element_bytes <= 0 ||
        __builtin_mul_overflow(n, (int64_t)element_bytes, &bytes))
        return -1;
    return bytes;
}

int64_t tp_collective_message_bytes(tp_collective c, int64_t message_bytes, int64_t ranks)
{
    bool counts_all = c == TP_COLLECTIVE_REDUCE_SCATTER || c == TP_COLLECTIVE_ALL_GATHER ||
                      c == TP_COLLECTIVE_ALL_TO_ALL || c == TP_COLLECTIVE_GATHER ||
                      c == TP_COLLECTIVE_SCATTER;
    int64_t bytes;
    if (c == TP_COLLECTIVE_UNKNOWN || c == TP_COLLECTIVE_BARRIER || message_bytes <= 0 ||
        (counts_all && ranks <= 0) ||
        __builtin_mul_overflow(message_bytes, counts_all ? ranks : 1, &bytes))
        return -1;
    return bytes;
}

double tp_collective_factor(tp_collective c, int64_t n)
{
    double ranks = (double)n;
    switch (c) {
    case TP_COLLECTIVE_ALL_REDUCE:
        return n > 0 ? 2 * (ranks - 1) / ranks : (double)NAN;
    case TP_COLLECTIVE_REDUCE_SCATTER:
    case TP_COLLECTIVE_ALL_GATHER:
    case TP_COLLECTIVE_ALL_TO_ALL:
    case TP_COLLECTIVE_GATHER:
    case TP_COLLECTIVE_SCATTER:
        return n > 0 ? (ranks - 1) / ranks : (double)NAN;
    case TP_COLLECTIVE_BROADCAST:
    case TP_COLLECTIVE_REDUCE:
    case TP_COLLECTIVE_SEND_RECV:
        return 1;
    case TP_COLLECTIVE_UNKNOWN:
    case TP_COLLECTIVE_BARRIER:
    case TP_COLLECTIVE_COUNT:
        break;
    }
    return (double)NAN;
}
