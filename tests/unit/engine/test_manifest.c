/* test_manifest.c - the hashes of a checkpoint's files come from those who write them: what is read
 * for them is counted. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"
#include "base/platform.h"
#include "engine/model/safetensors.h"
#include "engine/train/checkpoint_internal.h"
#include "support/local_ranks.h"

/* Two pieces of a file and the beginning of a third. */
enum { FEW = 1000, MANY = 34 << 20, MOST = 4 };

static char root[64];
static float *numbers;

/* What this thread has read so far: of files, not of mappings. */
static int64_t bytes_read(void)
{
    char text[256] = "";
    int fd = open("/proc/thread-self/io", O_RDONLY);
    if (fd < 0)
        return -1;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 7 && strncmp(text, "rchar: ", 7) == 0 ? atoll(text + 7) : -1;
}

typedef struct {
    bool in_parts;
    int64_t read[MOST];
} saving;

static tp_status copy(const void *source, size_t offset, void *to, size_t bytes, tp_error *err)
{
    (void)err;
    memcpy(to, (const char *)source + offset, bytes);
    return TP_OK;
}

/* As checkpoints are saved: rank 0 makes the file, each writes what it has. */
static void save(tp_comm *comm, void *user)
{
    saving *s = user;
    tp_error err = {0};
    tp_shard among = {tp_comm_rank(comm), tp_comm_size(comm)};
    char model[96], file[128];
    uint64_t bytes = 0;
    tp_tensor_out tensors[2];
    snprintf(model, sizeof model, "%s/model", root);
    snprintf(file, sizeof file, "%s/model.safetensors", model);
    for (int i = 0; i < 2; i++) {
        tp_tensor state = {.name = i ? "many" : "few",
                           .role = TP_ROLE_WEIGHT,
                           .dtype = TP_DTYPE_F32,
                           .rank = 1,
                           .dim = {i ? MANY : FEW, 1},
                           .keeps_part = s->in_parts,
                           .shard = s->in_parts ? among : (tp_shard){0}};
        tensors[i] = tp_tensor_out_of(&state, state.name, TP_DTYPE_F32, among);
        tensors[i].source = numbers;
        tensors[i].read = copy;
    }
    int64_t before = bytes_read();
    tp_file_sums *sums = tp_file_sums_begin();
    if (among.index == 0) {
        assert_int_equal(tp_dir_make(model, &err), TP_OK);
        assert_int_equal(tp_safetensors_frame(file, tensors, 2, &err), TP_OK);
    }
    assert_int_equal(tp_comm_agree(comm, TP_OK, &err), TP_OK);
    assert_int_equal(tp_safetensors_fill(file, tensors, 2, &err), TP_OK);
    assert_int_equal(tp_comm_agree(comm, TP_OK, &err), TP_OK);
    assert_int_equal(tp_manifest_write(root, comm, among, 1, sums, &bytes, &err), TP_OK);
    tp_file_sums_end(sums);
    s->read[among.index] = bytes_read() - before;
}

static void save_with(int ranks, bool in_parts, int64_t wanted)
{
    saving s = {.in_parts = in_parts};
    int64_t read = 0;
    char last[128];
    tp_error err = {0};
    snprintf(root, sizeof root, "/tmp/temper-manifest-XXXXXX");
    assert_non_null(mkdtemp(root));
    local_ranks_run(ranks, save, &s);

    assert_int_equal(tp_checkpoint_verify(root, &err), TP_OK);
    tp_safetensors *st;
    snprintf(last, sizeof last, "%s/model/model.safetensors", root);
    assert_int_equal(tp_safetensors_open(last, &st, &err), TP_OK);
    assert_memory_equal(tp_safetensors_find(st, "few")->data, numbers, FEW * sizeof(float));
    assert_memory_equal(tp_safetensors_find(st, "many")->data, numbers, MANY * sizeof(float));
    tp_safetensors_close(st);
    for (int r = 0; r < ranks; r++)
        read += s.read[r];
    /* Counting reads something, too. */
    assert_in_range(read, wanted, wanted + 4096);
    assert_int_equal(tp_dir_remove(root, &err), TP_OK);
}

static void nothing_is_read_of_what_all_have(void **state)
{
    if (bytes_read() < 0)
        skip(); /* a kernel that does not count */
    for (int ranks = 1; ranks <= MOST; ranks++)
        save_with(ranks, false, 0);
}

/* Two have a half of each tensor: the first piece has both parts of the few, the second the
 * middle of the many, and the third is one's alone. */
static void only_pieces_of_several_writers_are_read(void **state)
{
    if (bytes_read() < 0)
        skip();
    save_with(2, true, 2 * (int64_t)TP_FILE_PIECE);
}

static int make_numbers(void **state)
{
    numbers = malloc((size_t)MANY * sizeof *numbers);
    for (size_t i = 0; numbers && i < MANY; i++)
        numbers[i] = (float)(i % 8191);
    return numbers == NULL;
}

static int free_numbers(void **state)
{
    free(numbers);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_read_of_what_all_have),
        cmocka_unit_test(only_pieces_of_several_writers_are_read),
    };
    return cmocka_run_group_tests(tests, make_numbers, free_numbers);
}
