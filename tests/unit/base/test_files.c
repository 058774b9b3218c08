/* test_files.c - files: reading within bounds, atomic writing, injected faults. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/files.h"

static char root[64];
static char path_memory[4][256];

/* A path inside the test's folder; four may be alive at once. */
static const char *at(const char *name)
{
    static int next;
    char *path = path_memory[next++ % 4];
    snprintf(path, sizeof path_memory[0], "%s/%s", root, name);
    return path;
}

static int make_root(void **state)
{
    snprintf(root, sizeof root, "/tmp/temper-files-XXXXXX");
    return mkdtemp(root) == NULL;
}

static int remove_root(void **state)
{
    tp_fault_arm(0, false);
    return tp_dir_remove(root, NULL) != TP_OK;
}

/* What a writer left beside. */
static int n_hidden(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = 0;
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] == '.' && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(dir);
    return n;
}

static void put(const char *path, const char *text)
{
    assert_int_equal(tp_file_write_atomic(path, text, strlen(text), NULL), TP_OK);
}

static void expect_contents(const char *path, const char *text)
{
    tp_buf buf = {0};
    assert_int_equal(tp_file_read(path, 0, &buf, NULL), TP_OK);
    assert_int_equal(buf.len, strlen(text));
    assert_string_equal(tp_buf_str(&buf), text);
    tp_buf_release(&buf);
}

static void what_is_written_is_read(void **state)
{
    put(at("a.txt"), "first");
    put(at("a.txt"), "second, longer");

    expect_contents(at("a.txt"), "second, longer");
    assert_int_equal(tp_file_size(at("a.txt")), 14);
    assert_true(tp_file_exists(at("a.txt")));
    assert_false(tp_dir_exists(at("a.txt")));
    assert_int_equal(n_hidden(root), 0);
    put(at("empty"), "");
    expect_contents(at("empty"), "");
}

static void reading_is_limited(void **state)
{
    tp_buf buf = {0};
    tp_error err;
    put(at("five"), "12345");

    assert_int_equal(tp_file_read(at("five"), 5, &buf, &err), TP_OK);
    assert_int_equal(tp_file_read(at("five"), 4, &buf, &err), TP_ERR_FORMAT);

    assert_non_null(strstr(err.message, "five is larger than the 4 B allowed"));
    tp_buf_release(&buf);
}

static void a_pipe_is_read_to_its_end(void **state)
{
    assert_int_equal(mkfifo(at("pipe"), 0600), 0);
    pid_t child = fork();
    if (child == 0) {
        FILE *f = fopen(at("pipe"), "w");
        for (int i = 0; f && i < 30000; i++)
            fputs("0123456789", f);
        _exit(f ? fclose(f) : 1);
    }
    tp_buf buf = {0};

    assert_int_equal(tp_input_read(at("pipe"), TP_INPUT_STREAM, 0, &buf, NULL), TP_OK);

    assert_int_equal(buf.len, 300000);
    assert_memory_equal(buf.data + 299990, "0123456789", 10);
    assert_int_equal(waitpid(child, NULL, 0), child);
    tp_buf_release(&buf);
}

static void refuses(const char *path, tp_input_kind kind, const char *what)
{
    int fd;
    int64_t size;
    tp_error err;
    char expected[300];
    assert_int_equal(tp_input_open(path, kind, &fd, &size, &err), TP_ERR_IO);
    snprintf(expected, sizeof expected, "cannot read %s: it is %s, a file is expected here", path,
             what);
    assert_string_equal(err.message, expected);
}

/* Nobody writes into these pipes: waiting for one would never end. */
static void what_is_no_file_is_refused_at_once(void **state)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(mkfifo(at("fifo"), 0600), 0);
    snprintf(name.sun_path, sizeof name.sun_path, "%s", at("socket"));
    assert_int_equal(bind(s, (struct sockaddr *)&name, sizeof name), 0);

    refuses(at("fifo"), TP_INPUT_FILE, "a pipe");
    refuses(at("fifo"), TP_INPUT_TEXT, "a named pipe");
    refuses("/dev/zero", TP_INPUT_STREAM, "a device");
    refuses("/dev/null", TP_INPUT_TEXT, "a device");
    refuses(at("socket"), TP_INPUT_STREAM, "a socket or a device");
    close(s);
}

static void an_unnamed_pipe_is_text(void **state)
{
    int ends[2];
    char path[64];
    tp_buf buf = {0};
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "text", 4), 4);
    close(ends[1]);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);

    assert_int_equal(tp_file_read(path, 0, &buf, NULL), TP_OK);

    assert_string_equal(tp_buf_str(&buf), "text");
    refuses(path, TP_INPUT_FILE, "a pipe");
    close(ends[0]);
    tp_buf_release(&buf);
}

static void mappings_have_names(void **state)
{
    tp_map_file map;
    put(at("mapped"), "12345");
    assert_int_equal(tp_map_open(&map, at("mapped"), NULL), TP_OK);
    assert_string_equal(tp_map_name_at(map.data), at("mapped"));
    assert_string_equal(tp_map_name_at(map.data + 4), at("mapped"));
    assert_null(tp_map_name_at(map.data + 5));
    assert_null(tp_map_name_at(&map));
    const char *was = map.data;
    tp_map_close(&map);
    assert_null(tp_map_name_at(was));
}

static void errors_name_path_and_remedy(void **state)
{
    tp_buf buf = {0};
    tp_error err;
    char expected[300];

    assert_int_equal(tp_file_read("/nowhere/x.json", 0, &buf, &err), TP_ERR_IO);
    assert_string_equal(err.message,
                        "cannot open /nowhere/x.json: No such file or directory; check the path");
    assert_int_equal(tp_file_read(root, 0, &buf, &err), TP_ERR_IO);
    snprintf(expected, sizeof expected, "cannot read %s: Is a directory; a file is expected here",
             root);
    assert_string_equal(err.message, expected);
    assert_int_equal(tp_file_read("/dev/zero", 0, &buf, &err), TP_ERR_IO);
    assert_string_equal(err.message,
                        "cannot read /dev/zero: it is a device, a file is expected here");
    put(at("file"), "x");
    assert_int_equal(tp_dir_make(at("file"), &err), TP_ERR_IO);
    assert_non_null(strstr(err.message, "a file of that name is in the way"));
    assert_int_equal(tp_dir_make(at("file/sub"), &err), TP_ERR_IO);
    assert_int_equal(tp_dir_make("", &err), TP_ERR_ARG);
    tp_buf_release(&buf);
}

static void folders_are_made_with_parents(void **state)
{
    assert_int_equal(tp_dir_make(at("x//y/z/"), NULL), TP_OK);
    assert_int_equal(tp_dir_make(at("x/y/z"), NULL), TP_OK);

    assert_true(tp_dir_exists(at("x/y/z")));
    assert_false(tp_file_exists(at("x/y/z")));
    assert_int_equal(tp_file_size(at("x/y/z")), -1);
    assert_int_equal(tp_dir_sync(at("x"), NULL), TP_OK);
}

static void folders_are_removed_but_links_not_followed(void **state)
{
    assert_int_equal(tp_dir_make(at("keep"), NULL), TP_OK);
    put(at("keep/precious"), "data");
    assert_int_equal(tp_dir_make(at("tree/a/b/c"), NULL), TP_OK);
    assert_int_equal(tp_dir_make(at("tree/a2"), NULL), TP_OK);
    put(at("tree/a/file"), "1");
    put(at("tree/a/b/c/file"), "2");
    assert_int_equal(symlink("../../keep", at("tree/a/link")), 0);
    assert_int_equal(symlink("tree", at("way")), 0);
    tp_error err;

    assert_int_equal(tp_dir_remove(at("way"), &err), TP_ERR_OUTPUT);
    assert_non_null(strstr(err.message, "it is a link"));
    assert_true(tp_file_exists(at("tree/a/b/c/file")));
    assert_int_equal(tp_dir_remove(at("tree"), NULL), TP_OK);

    assert_false(tp_dir_exists(at("tree")));
    expect_contents(at("keep/precious"), "data");
    assert_int_equal(tp_dir_remove(at("tree"), NULL), TP_OK);
    assert_int_equal(tp_dir_remove(at("keep/precious"), &err), TP_ERR_OUTPUT);
    assert_non_null(strstr(err.message, "it is a file"));
}

static void mapping_shows_the_file(void **state)
{
    tp_map_file map = {0};
    put(at("m"), "mapped");
    put(at("nothing"), "");

    assert_int_equal(tp_map_open(&map, at("m"), NULL), TP_OK);
    assert_int_equal(map.len, 6);
    assert_memory_equal(map.data, "mapped", 6);
    tp_map_close(&map);
    assert_null(map.data);
    tp_map_close(&map);
    assert_int_equal(tp_map_open(&map, at("nothing"), NULL), TP_OK);
    assert_int_equal(map.len, 0);
    tp_map_close(&map);
    assert_int_equal(tp_map_open(&map, at("missing"), NULL), TP_ERR_IO);
}

static void writer_counts(void **state)
{
    tp_writer *w;
    char hash[33];
    uint64_t bytes = 0;
    static char block[700000];
    memset(block, 'a', sizeof block);

    assert_int_equal(tp_writer_open(&w, at("big"), NULL), TP_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(tp_writer_write(w, block, sizeof block, NULL), TP_OK);
    assert_int_equal(tp_writer_write(w, "xyz", 3, NULL), TP_OK);
    assert_int_equal(tp_writer_write(w, NULL, 0, NULL), TP_OK);
    assert_int_equal(tp_writer_close(w, &bytes, NULL), TP_OK);

    assert_int_equal(bytes, 3500003);
    assert_int_equal(tp_file_size(at("big")), 3500003);
    /* XXH3-128 of the empty input, from the specification's reference. */
    put(at("none"), "");
    assert_int_equal(tp_file_hash(at("none"), hash, NULL), TP_OK);
    assert_string_equal(hash, "99aa06d3014798d86001c324468d497f");
}

/* Of 64 MiB of zeros and three letters, as several ranks tell it. */
static void a_large_file_is_hashed_in_pieces(void **state)
{
    static char zeros[1 << 20];
    char pieces[2][33], whole[33], alone[33], joined[33], digits[65];
    tp_writer *w;
    assert_int_equal(tp_writer_open(&w, at("frame"), NULL), TP_OK);
    assert_int_equal(tp_writer_extend(w, TP_FILE_PIECE + 3, NULL), TP_OK);
    assert_int_equal(tp_writer_close(w, NULL, NULL), TP_OK);
    assert_int_equal(tp_writer_open_inside(&w, at("frame"), NULL), TP_OK);
    assert_int_equal(tp_writer_go_to(w, TP_FILE_PIECE, NULL), TP_OK);
    assert_int_equal(tp_writer_write(w, "abc", 3, NULL), TP_OK);
    assert_int_equal(tp_writer_close(w, NULL, NULL), TP_OK);
    assert_int_equal(tp_writer_open(&w, at("zeros"), NULL), TP_OK);
    for (int i = 0; i < 64; i++)
        assert_int_equal(tp_writer_write(w, zeros, sizeof zeros, NULL), TP_OK);
    assert_int_equal(tp_writer_close(w, NULL, NULL), TP_OK);
    assert_int_equal(tp_file_hash(at("zeros"), whole, NULL), TP_OK);
    put(at("rest"), "abc");

    assert_int_equal(tp_file_pieces(TP_FILE_PIECE + 3), 2);
    assert_int_equal(tp_file_hash_piece(at("frame"), 0, pieces[0], NULL), TP_OK);
    assert_int_equal(tp_file_hash_piece(at("frame"), 1, pieces[1], NULL), TP_OK);
    assert_int_equal(tp_file_join_hashes((const char(*)[33])pieces, 2, joined, NULL), TP_OK);

    assert_string_equal(pieces[0], whole);
    assert_int_equal(tp_file_hash(at("rest"), alone, NULL), TP_OK);
    assert_string_equal(pieces[1], alone);
    snprintf(digits, sizeof digits, "%s%s", pieces[0], pieces[1]);
    put(at("digits"), digits);
    assert_int_equal(tp_file_hash(at("digits"), whole, NULL), TP_OK);
    assert_string_equal(joined, whole);
    assert_int_equal(tp_file_pieces(0), 1);
}

static void write_at(const char *path, uint64_t place, const char *text)
{
    tp_writer *w;
    assert_int_equal(tp_writer_open_inside(&w, path, NULL), TP_OK);
    assert_int_equal(tp_writer_go_to(w, place, NULL), TP_OK);
    assert_int_equal(tp_writer_write(w, text, strlen(text), NULL), TP_OK);
    assert_int_equal(tp_writer_close(w, NULL, NULL), TP_OK);
}

static void expect_sum(const tp_file_sums *sums, const char *path, uint64_t bytes, size_t piece)
{
    char known[33], read[33];
    assert_true(tp_file_sums_find(sums, path, bytes, piece, known));
    assert_int_equal(tp_file_hash_piece(path, piece, read, NULL), TP_OK);
    assert_string_equal(known, read);
}

/* Two letters, then more by a second writer that goes on behind them, over the end of a piece. */
static void what_goes_out_is_hashed_on_its_way(void **state)
{
    static char block[1 << 20];
    const uint64_t bytes = TP_FILE_PIECE + (1 << 20) + 2;
    char hash[33];
    tp_writer *w;
    tp_file_sums *sums = tp_file_sums_begin();
    assert_int_equal(tp_writer_open(&w, at("large"), NULL), TP_OK);
    assert_int_equal(tp_writer_write(w, "ab", 2, NULL), TP_OK);
    assert_int_equal(tp_writer_extend(w, bytes, NULL), TP_OK);
    assert_int_equal(tp_writer_close(w, NULL, NULL), TP_OK);
    assert_int_equal(tp_writer_open_inside(&w, at("large"), NULL), TP_OK);
    assert_int_equal(tp_writer_go_to(w, 2, NULL), TP_OK);
    for (int i = 0; i < 65; i++) {
        memset(block, 'a' + i % 26, sizeof block);
        assert_int_equal(tp_writer_write(w, block, sizeof block, NULL), TP_OK);
    }
    assert_int_equal(tp_writer_close(w, NULL, NULL), TP_OK);

    expect_sum(sums, at("large"), bytes, 0);
    expect_sum(sums, at("large"), bytes, 1);
    assert_false(tp_file_sums_find(sums, at("large"), bytes, 2, hash));
    assert_false(tp_file_sums_find(sums, at("large"), bytes + 1, 1, hash));
    assert_false(tp_file_sums_find(sums, at("other"), bytes, 0, hash));
    tp_file_sums_end(sums);
}

static void what_went_out_in_another_order_has_no_hash(void **state)
{
    char hash[33];
    tp_file_sums *sums = tp_file_sums_begin();
    put(at("f"), "");
    write_at(at("f"), 2, "cd"); /* its beginning is somebody else's */
    assert_false(tp_file_sums_find(sums, at("f"), 4, 0, hash));
    write_at(at("f"), 0, "ab");
    assert_false(tp_file_sums_find(sums, at("f"), 4, 0, hash));
    write_at(at("f"), 0, "abcd"); /* again, in order */
    expect_sum(sums, at("f"), 4, 0);
    write_at(at("f"), 1, "x");
    assert_false(tp_file_sums_find(sums, at("f"), 4, 0, hash));
    write_at(at("f"), 0, "abcd");
    put(at("f"), "efgh"); /* another file of that name */
    assert_false(tp_file_sums_find(sums, at("f"), 4, 0, hash));

    tp_writer *w;
    assert_int_equal(tp_writer_open(&w, at("f"), NULL), TP_OK); /* and from nothing */
    assert_int_equal(tp_writer_write(w, "new", 3, NULL), TP_OK);
    assert_int_equal(tp_writer_close(w, NULL, NULL), TP_OK);
    expect_sum(sums, at("f"), 3, 0);
    tp_file_sums_end(sums);
    write_at(at("f"), 0, "not watched");
}

static void copies_are_equal(void **state)
{
    put(at("from"), "some text");
    assert_int_equal(tp_file_copy(at("from"), at("to"), NULL), TP_OK);
    expect_contents(at("to"), "some text");
    assert_int_equal(tp_file_copy(at("missing"), at("to2"), NULL), TP_ERR_IO);
    assert_false(tp_file_exists(at("to2")));
}

static void renames_reach_other_folders(void **state)
{
    assert_int_equal(tp_dir_make(at("r/one"), NULL), TP_OK);
    put(at("r/one/f"), "f");
    assert_int_equal(tp_rename_synced(at("r/one"), at("two"), NULL), TP_OK);
    expect_contents(at("two/f"), "f");
    tp_error err;
    assert_int_equal(tp_rename_synced(at("none"), at("two"), &err), TP_ERR_OUTPUT);
}

static void every_failing_operation_leaves_old_or_new(void **state)
{
    enum { MAX = 50 };
    char path[256];
    snprintf(path, sizeof path, "%s/state.json", root);
    uint64_t n_operations = 0;
    for (uint64_t n = 1; n < MAX; n++) {
        tp_fault_arm(0, false);
        put(path, "old contents");
        tp_error err = {0};
        tp_fault_arm(n, false);

        tp_status status = tp_file_write_atomic(path, "new contents!", 13, &err);

        n_operations = tp_fault_count();
        tp_fault_arm(0, false);
        assert_int_equal(n_hidden(root), 0);
        if (status == TP_OK) {
            expect_contents(path, "new contents!");
            break;
        }
        assert_int_equal(status, TP_ERR_OUTPUT);
        assert_true(err.message[0]);
        /* Only the sync of the folder comes after the rename. */
        expect_contents(path, n == 5 ? "new contents!" : "old contents");
    }
    /* create, write, sync, rename, sync of the folder: all five were tried. */
    assert_int_equal(n_operations, 5);
}

static void every_kill_leaves_old_or_new(void **state)
{
    char path[256];
    snprintf(path, sizeof path, "%s/state.json", root);
    int n_kills = 0;
    for (uint64_t n = 1; n < 50; n++) {
        put(path, "old contents");
        pid_t child = fork();
        if (child == 0) {
            tp_fault_arm(n, true);
            _exit(tp_file_write_atomic(path, "new contents!", 13, NULL) == TP_OK ? 0 : 1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 0)
            break;
        assert_int_equal(WEXITSTATUS(status), 99);
        n_kills++;
        expect_contents(path, n == 5 ? "new contents!" : "old contents");
    }
    assert_int_equal(n_kills, 5);
    expect_contents(path, "new contents!");
}

static void a_writer_that_failed_stays_failed(void **state)
{
    tp_writer *w;
    char text[2000] = {0};
    tp_error err;
    static char block[2 << 20];
    assert_int_equal(tp_writer_open(&w, at("w"), NULL), TP_OK);
    assert_int_equal(tp_writer_write(w, text, sizeof text, NULL), TP_OK);

    tp_fault_arm(2, false);
    assert_int_equal(tp_writer_write(w, block, sizeof block, &err), TP_ERR_OUTPUT);
    assert_non_null(strstr(err.message, "No space left on device; free some space"));
    assert_int_equal(tp_writer_write(w, text, 1, &err), TP_ERR_OUTPUT);

    assert_int_equal(tp_writer_close(w, NULL, &err), TP_ERR_OUTPUT);
    /* Half of the block that failed is there, as on a full disk. */
    assert_int_equal(tp_file_size(at("w")), 2000 + (1 << 20));
}

static void making_and_removing_folders_can_fail_too(void **state)
{
    tp_error err;
    tp_fault_arm(1, false);
    assert_int_equal(tp_dir_make(at("d/e"), &err), TP_ERR_OUTPUT);
    assert_int_equal(tp_dir_make(at("d/e"), &err), TP_OK);
    put(at("d/e/f"), "");
    tp_fault_arm(1, false);
    assert_int_equal(tp_dir_remove(at("d"), &err), TP_ERR_OUTPUT);
    assert_true(tp_file_exists(at("d/e/f")));
    assert_int_equal(tp_dir_remove(at("d"), &err), TP_OK);
    assert_int_equal(tp_fault_count(), 4);
}

static void failures_name_their_remedy(void **state)
{
    tp_buf buf = {0};
    tp_error err = {0};
    char expected[200];
    put(at("a.txt"), "text");
    const char *below = at("a.txt/b");
    assert_int_equal(tp_file_read(below, 0, &buf, &err), TP_ERR_IO);
    snprintf(expected, sizeof expected,
             "cannot open %s: Not a directory; a part of the path is not a folder", below);
    assert_string_equal(err.message, expected);

    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    tp_status status = tp_file_read(at("a.txt"), 0, &buf, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(status, TP_ERR_IO);
    assert_non_null(strstr(err.message, "; raise the limit of open files (ulimit -n)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_is_read, make_root, remove_root),
        cmocka_unit_test_setup_teardown(reading_is_limited, make_root, remove_root),
        cmocka_unit_test_setup_teardown(a_large_file_is_hashed_in_pieces, make_root, remove_root),
        cmocka_unit_test_setup_teardown(what_goes_out_is_hashed_on_its_way, make_root, remove_root),
        cmocka_unit_test_setup_teardown(what_went_out_in_another_order_has_no_hash, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(a_pipe_is_read_to_its_end, make_root, remove_root),
        cmocka_unit_test_setup_teardown(what_is_no_file_is_refused_at_once, make_root, remove_root),
        cmocka_unit_test_setup_teardown(an_unnamed_pipe_is_text, make_root, remove_root),
        cmocka_unit_test_setup_teardown(mappings_have_names, make_root, remove_root),
        cmocka_unit_test_setup_teardown(errors_name_path_and_remedy, make_root, remove_root),
        cmocka_unit_test_setup_teardown(folders_are_made_with_parents, make_root, remove_root),
        cmocka_unit_test_setup_teardown(folders_are_removed_but_links_not_followed, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(mapping_shows_the_file, make_root, remove_root),
        cmocka_unit_test_setup_teardown(writer_counts, make_root, remove_root),
        cmocka_unit_test_setup_teardown(copies_are_equal, make_root, remove_root),
        cmocka_unit_test_setup_teardown(renames_reach_other_folders, make_root, remove_root),
        cmocka_unit_test_setup_teardown(every_failing_operation_leaves_old_or_new, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(every_kill_leaves_old_or_new, make_root, remove_root),
        cmocka_unit_test_setup_teardown(failures_name_their_remedy, make_root, remove_root),
        cmocka_unit_test_setup_teardown(a_writer_that_failed_stays_failed, make_root, remove_root),
        cmocka_unit_test_setup_teardown(making_and_removing_folders_can_fail_too, make_root,
                                        remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
