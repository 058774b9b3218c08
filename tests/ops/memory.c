/* memory.c - operands with watched bytes around them, on the host and on a device. */
#include "ops/memory.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/backend/ref/load.h"
#include "support/devices.h"

static const size_t slot_bytes = (size_t)1 << 30, watched_before = 128;

static void reserve(slot *s)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    s->begin = mmap(NULL, slot_bytes + page, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TP_ASSERT(s->begin != MAP_FAILED);
    s->end = s->begin + slot_bytes;
    TP_ASSERT(mprotect(s->end, page, PROT_NONE) == 0);
}

void memory_init(memory *m)
{
    for (int i = 0; i < N_SLOTS; i++)
        reserve(&m->slots[i]);
    reserve(&m->workspace);
}

static size_t watched_bytes(const slot *s) { return (size_t)(s->end - s->low); }

static size_t span_bytes(const tp_operand *operand)
{
    if (operand->dim[0] == 0 || operand->dim[1] == 0)
        return 0;
    int64_t elements = (operand->dim[0] - 1) * operand->stride + operand->dim[1];
    return (size_t)elements * tp_dtype_size(operand->dtype);
}

static void place(slot *s, tp_arena *arena, tp_operand *operand, bool is_strided)
{
    bool has_gaps = is_strided && operand->rank == 2;
    operand->stride = operand->rank == 2 ? operand->dim[1] + (has_gaps ? 5 : 0) : 1;
    size_t bytes = span_bytes(operand);
    TP_ASSERT(bytes + watched_before + 64 < slot_bytes);
    unsigned char *data = s->end - bytes;
    if (!is_strided)
        data -= (uintptr_t)data % 64;
    operand->data = data;
    s->low = data - watched_before;
    s->pristine = tp_arena_array(arena, unsigned char, watched_bytes(s));
    s->saved = tp_arena_array(arena, unsigned char, watched_bytes(s));
    memset(s->low, 0xff, watched_bytes(s));
}

static void store_values(const tp_operand *operand, const tensor *t)
{
    for (int64_t r = 0; r < t->dim[0]; r++) {
        for (int64_t c = 0; c < t->dim[1]; c++) {
            if (t->f)
                ref_store(operand, r, c, t->f[r * t->dim[1] + c]);
            else
                ((int32_t *)operand->data)[r * operand->stride + c] = t->i[r * t->dim[1] + c];
        }
    }
}

static bool is_alike(const tp_operand *a, const tp_operand *b)
{
    return a->data && a->dtype == b->dtype && a->dim[0] == b->dim[0] && a->dim[1] == b->dim[1];
}

void memory_bind(memory *m, tp_arena *arena, const problem *p, bool is_strided, bool in_place)
{
    m->launch = launch_of(p);
    for (int i = 0; i < p->sig->n_in; i++) {
        if (tensor_is_absent(&p->in[i]))
            continue;
        place(&m->slots[i], arena, &m->launch.in[i], is_strided);
        store_values(&m->launch.in[i], &p->in[i]);
    }
    for (int o = 0; o < p->sig->n_out; o++) {
        tp_operand *out = &m->launch.out[o];
        int input = tp_op_alias(p->op, o);
        if (in_place && o == 0 && is_alike(&m->launch.in[0], out))
            input = 0;
        bool shares = input >= 0 && m->launch.in[input].data;
        m->input_of[o] = shares ? input : -1;
        if (tensor_is_absent(&p->out[o]))
            continue;
        if (shares)
            *out = m->launch.in[input];
        else
            place(&m->slots[TP_MAX_IN + o], arena, out, is_strided);
    }
    memory_commit(m);
}

static const tp_operand *operand_of(const memory *m, int i)
{
    return i < TP_MAX_IN ? &m->launch.in[i] : &m->launch.out[i - TP_MAX_IN];
}

/* Slots that hold an operand of their own. */
static bool is_used(const memory *m, int i)
{
    return operand_of(m, i)->rank > 0 && (i < TP_MAX_IN || m->input_of[i - TP_MAX_IN] < 0);
}

void memory_commit(memory *m)
{
    for (int i = 0; i < N_SLOTS; i++) {
        if (is_used(m, i))
            memcpy(m->slots[i].pristine, m->slots[i].low, watched_bytes(&m->slots[i]));
    }
}

static bool is_output(const memory *m, int i)
{
    if (i >= TP_MAX_IN)
        return true;
    for (int o = 0; o < m->launch.n_out; o++) {
        if (m->input_of[o] == i && m->launch.out[o].data)
            return true;
    }
    return false;
}

/* Are all bytes as before the run, but for the elements themselves when they may change? */
static bool is_untouched(const memory *m, int i)
{
    const slot *s = &m->slots[i];
    const tp_operand *operand = operand_of(m, i);
    size_t size = tp_dtype_size(operand->dtype), total = watched_bytes(s);
    if (!is_output(m, i) || !operand->data)
        return memcmp(s->low, s->pristine, total) == 0;
    size_t at = 0;
    for (int64_t r = 0; r < operand->dim[0] && operand->dim[1] > 0; r++) {
        size_t row = watched_before + (size_t)(r * operand->stride) * size;
        if (memcmp(s->low + at, s->pristine + at, row - at) != 0)
            return false;
        at = row + (size_t)operand->dim[1] * size;
    }
    return memcmp(s->low + at, s->pristine + at, total - at) == 0;
}

/* ---- on a device ---- */

static tp_buffer *upload(tp_device *device, const unsigned char *from, size_t bytes)
{
    tp_buffer *b;
    MUST(tp_buffer_alloc(device, TP_MEM_DATA, bytes, &b, NULL));
    MUST(tp_span_write((tp_span){b, 0}, from, bytes, NULL));
    return b;
}

static void download(tp_buffer *b, unsigned char *to)
{
    MUST(tp_span_read(to, (tp_span){b, 0}, b->bytes, NULL));
    tp_buffer_free(b);
}

static tp_span span_in(tp_buffer *const *buffers, const memory *m, int slot_, const void *data)
{
    size_t offset = (size_t)((const unsigned char *)data - m->slots[slot_].low);
    return data ? (tp_span){buffers[slot_], offset} : (tp_span){0};
}

/* The watched bytes of every slot go there and come back, so that what is written outside the
 * outputs shows as it does here. */
static void run_on_device(memory *m, size_t workspace_bytes)
{
    tp_buffer *buffers[N_SLOTS] = {0}, *scratch = NULL;
    tp_launch launch = m->launch;
    unsigned char *workspace = m->workspace.end - workspace_bytes;
    for (int i = 0; i < N_SLOTS; i++)
        if (is_used(m, i))
            buffers[i] = upload(m->device, m->slots[i].low, watched_bytes(&m->slots[i]));
    for (int i = 0; i < launch.n_in; i++)
        launch.in[i].span = span_in(buffers, m, i, launch.in[i].data);
    for (int o = 0; o < launch.n_out; o++) {
        int at = m->input_of[o] >= 0 ? m->input_of[o] : TP_MAX_IN + o;
        launch.out[o].span = span_in(buffers, m, at, launch.out[o].data);
    }
    if (workspace_bytes) {
        scratch = upload(m->device, workspace, workspace_bytes);
        launch.workspace_span.buffer = scratch;
    }
    MUST(tp_device_submit(m->device, &launch, 1, NULL));
    for (int i = 0; i < N_SLOTS; i++)
        if (buffers[i])
            download(buffers[i], m->slots[i].low);
    if (scratch)
        download(scratch, workspace);
}

const char *memory_run(memory *m, const tp_kernel *kernel, int threads, unsigned char garbage)
{
    static char message[100];
    for (int i = 0; i < N_SLOTS; i++) {
        if (is_used(m, i))
            memcpy(m->slots[i].low, m->slots[i].pristine, watched_bytes(&m->slots[i]));
    }
    tp_launch *launch = &m->launch;
    launch->kernel = kernel;
    launch->threads = (uint16_t)threads;
    launch->team = team_of(threads);
    launch->workspace_bytes = tp_kernel_workspace(kernel, launch);
    TP_ASSERT(launch->workspace_bytes + watched_before + 64 < slot_bytes);
    size_t rounded = (launch->workspace_bytes + 63) / 64 * 64;
    unsigned char *workspace = m->workspace.end - rounded;
    launch->workspace = rounded > 0 ? workspace : NULL;
    memset(workspace - watched_before, garbage, rounded + watched_before);

    if (m->device)
        run_on_device(m, rounded);
    else
        kernel->run(launch);

    for (size_t i = 1; i <= watched_before; i++) {
        if (workspace[-(ptrdiff_t)i] != garbage)
            return "wrote before its workspace";
    }
    for (size_t i = launch->workspace_bytes; i < rounded; i++) {
        if (workspace[i] != garbage)
            return "wrote past its workspace";
    }
    for (int i = 0; i < N_SLOTS; i++) {
        if (is_used(m, i) && !is_untouched(m, i)) {
            bool is_in = i < TP_MAX_IN;
            snprintf(message, sizeof message, "wrote outside its outputs, at %s %d",
                     is_in ? "input" : "output", is_in ? i : i - TP_MAX_IN);
            return message;
        }
    }
    return NULL;
}

slot *memory_output(memory *m, int o)
{
    return &m->slots[m->input_of[o] >= 0 ? m->input_of[o] : TP_MAX_IN + o];
}

void memory_save(memory *m)
{
    for (int o = 0; o < m->launch.n_out; o++) {
        slot *s = memory_output(m, o);
        if (m->launch.out[o].data)
            memcpy(s->saved, s->low, watched_bytes(s));
    }
}

bool memory_is_same(memory *m, int o)
{
    slot *s = memory_output(m, o);
    return memcmp(s->saved, s->low, watched_bytes(s)) == 0;
}
