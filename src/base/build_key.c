/* build_key.c - the processor and this build as one number, for what is kept in files. */
#include "base/build_key.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "base/cpu.h"
#include "base/files.h"

typedef struct {
    uintptr_t address; /* inside the object looked for */
    char id[64];       /* hexadecimal; "" when the linker gave it none */
} build;

static void read_notes(const char *at, const char *end, build *b)
{
    while ((size_t)(end - at) > sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        const char *name = at + sizeof note, *id = name + (note.n_namesz + 3u) / 4 * 4;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
            for (size_t i = 0; i < note.n_descsz && 2 * i + 3 < sizeof b->id; i++)
                snprintf(b->id + 2 * i, 3, "%02x", (unsigned char)id[i]);
            return;
        }
        at = id + (note.n_descsz + 3u) / 4 * 4;
    }
}

static int look_at_object(struct dl_phdr_info *object, size_t size, void *user)
{
    build *b = user;
    bool is_ours = false;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        uintptr_t begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        is_ours |= object->dlpi_phdr[i].p_type == PT_LOAD && b->address >= begin &&
                   b->address < begin + object->dlpi_phdr[i].p_memsz;
    }
    for (int i = 0; is_ours && i < object->dlpi_phnum; i++) {
        const char *begin = (const char *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        if (object->dlpi_phdr[i].p_type == PT_NOTE)
            read_notes(begin, begin + object->dlpi_phdr[i].p_memsz, b);
    }
    return is_ours;
}

bool tp_build_key(char key[TP_BUILD_KEY])
{
    build b = {.address = (uintptr_t)&tp_build_key};
    char identity[512];
    dl_iterate_phdr(look_at_object, &b);
    if (!b.id[0] || tp_cpu_is_assumed())
        return false;
    tp_cpu_identity(identity, sizeof identity);
    size_t n = strlen(identity);
    snprintf(identity + n, sizeof identity - n, "|%s", b.id);
    tp_hash_bytes(identity, strlen(identity), key);
    return true;
}
