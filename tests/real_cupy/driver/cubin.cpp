// What a cubin says of a kernel.  It is an ELF file with a section of code for each kernel:
//
//     .text.NAME         the code
//     .nv.shared.NAME    as large as the kernel's static shared memory, behind the system's own
//     .nv.info           records; one for each kernel tells its registers
//     .nv.info.NAME      records of one kernel; one tells its __launch_bounds__
//
// A record is (format, attribute, 16 bits); with format 4 the bits are the size of what follows.
// Source: the dump of `cuobjdump -elf`, CUDA binary utilities.
#include "machine.h"

#include <cstdint>
#include <cstring>
#include <elf.h>

namespace {

enum { RESERVED_SHARED = 1024 };  // bytes of a block, from compute capability 8.0 on
enum { SIZED = 4, MAX_THREADS = 0x05, REGISTER_COUNT = 0x2f };

struct Cubin {
    const char *image;
    const Elf64_Shdr *sections;
    int count, names;

    explicit Cubin(const std::string &whole) : image(whole.data()) {
        const auto *head = reinterpret_cast<const Elf64_Ehdr *>(image);
        sections = reinterpret_cast<const Elf64_Shdr *>(image + head->e_shoff);
        count = head->e_shnum;
        names = head->e_shstrndx;
    }

    const Elf64_Shdr *section(const std::string &name) const {
        const char *texts = image + sections[names].sh_offset;
        for (int i = 0; i < count; i++)
            if (name == texts + sections[i].sh_name) return &sections[i];
        return nullptr;
    }

    const char *symbol(unsigned index) const {
        const Elf64_Shdr *table = section(".symtab"), *texts = section(".strtab");
        if (!table || !texts || index >= table->sh_size / sizeof(Elf64_Sym)) return "";
        const auto *all = reinterpret_cast<const Elf64_Sym *>(image + table->sh_offset);
        return image + texts->sh_offset + all[index].st_name;
    }

    // Hand each sized record of a section to `found(attribute, words)`.
    template <typename Found>
    void records(const std::string &name, Found found) const {
        const Elf64_Shdr *info = section(name);
        if (!info) return;
        const char *at = image + info->sh_offset, *end = at + info->sh_size;
        while (at + 4 <= end) {
            const unsigned format = uint8_t(at[0]), attribute = uint8_t(at[1]);
            uint16_t size;
            std::memcpy(&size, at + 2, sizeof size);
            at += 4;
            if (format != SIZED) continue;
            found(attribute, reinterpret_cast<const uint32_t *>(at));
            at += size;
        }
    }
};

}  // namespace

bool describe(const std::string &image, CUfunc_st *function) {
    const Cubin cubin(image);
    if (!cubin.section(".text." + function->name)) return false;
    const Elf64_Shdr *shared = cubin.section(".nv.shared." + function->name);
    if (shared) function->static_shared = int(shared->sh_size) - RESERVED_SHARED;
    cubin.records(".nv.info", [&](unsigned attribute, const uint32_t *words) {
        if (attribute == REGISTER_COUNT && function->name == cubin.symbol(words[0]))
            function->registers = int(words[1]);
    });
    cubin.records(".nv.info." + function->name, [&](unsigned attribute, const uint32_t *words) {
        if (attribute == MAX_THREADS) function->most_threads = int(words[0] * words[1] * words[2]);
    });
    return true;
}
