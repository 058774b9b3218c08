/* unicode_class.c - letters, numbers and white space by utf8proc's categories and the tables of
 * later versions of Unicode. */
#include "text/unicode/unicode_class.h"

#include <utf8proc.h>

#include "base/platform.h"

/* clang-format off */
const uint8_t tp_ascii_class[128] = {
    0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0, 0, 0, 0, 0,
    0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0,
    0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0,
};

/* Assigned in Unicode 15.1 and 16.0. */
static const tp_code_range new_letters[] = {
    {0x1c89, 0x1c8a},   {0xa7cb, 0xa7cd},   {0xa7da, 0xa7dc},   {0x105c0, 0x105f3},
    {0x10d4a, 0x10d65}, {0x10d6f, 0x10d85}, {0x10ec2, 0x10ec4}, {0x11380, 0x11389},
    {0x1138b, 0x1138b}, {0x1138e, 0x1138e}, {0x11390, 0x113b5}, {0x113b7, 0x113b7},
    {0x113d1, 0x113d1}, {0x113d3, 0x113d3}, {0x11bc0, 0x11be0}, {0x13460, 0x143fa},
    {0x16100, 0x1611d}, {0x16d40, 0x16d6c}, {0x18cff, 0x18cff}, {0x1e5d0, 0x1e5ed},
    {0x1e5f0, 0x1e5f0}, {0x2ebf0, 0x2ee5d},
};
static const tp_code_range new_numbers[] = {
    {0x10d40, 0x10d49}, {0x116d0, 0x116e3}, {0x11bf0, 0x11bf9}, {0x16130, 0x16139},
    {0x16d70, 0x16d79}, {0x1ccf0, 0x1ccf9}, {0x1e5f1, 0x1e5fa},
};
/* Assigned in Unicode 17.0: known to `Digits` alone. */
static const tp_code_range newest_numbers[] = {{0x11de0, 0x11de9}, {0x16ff4, 0x16ff6}};
/* Circled and squared capital letters: Alphabetic, though of category So. */
static const tp_code_range symbol_letters[] = {
    {0x24b6, 0x24e9}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189},
};
/* Assigned after Unicode 8.0, which is as far as `Punctuation` goes. */
static const tp_code_range newer_punctuation[] = {
    {0x61d, 0x61d}, {0x9fd, 0x9fd}, {0xa76, 0xa76}, {0xc77, 0xc77}, {0xc84, 0xc84},
    {0x1b7d, 0x1b7e}, {0x2e43, 0x2e4f}, {0x2e52, 0x2e5d}, {0x10ead, 0x10ead}, {0x10f55, 0x10f59},
    {0x10f86, 0x10f89}, {0x1144b, 0x1144f}, {0x1145a, 0x1145b}, {0x1145d, 0x1145d},
    {0x11660, 0x1166c}, {0x116b9, 0x116b9}, {0x1183b, 0x1183b}, {0x11944, 0x11946},
    {0x119e2, 0x119e2}, {0x11a3f, 0x11a46}, {0x11a9a, 0x11a9c}, {0x11a9e, 0x11aa2},
    {0x11b00, 0x11b09}, {0x11c41, 0x11c45}, {0x11c70, 0x11c71}, {0x11ef7, 0x11ef8},
    {0x11f43, 0x11f4f}, {0x11fff, 0x11fff}, {0x12ff1, 0x12ff2}, {0x16e97, 0x16e9a},
    {0x16fe2, 0x16fe2}, {0x1e95e, 0x1e95f},
};
/* clang-format on */

bool tp_in_code_ranges(uint32_t cp, const tp_code_range *ranges, size_t n)
{
    for (size_t i = 0; i < n && cp >= ranges[i].first; i++)
        if (cp <= ranges[i].last)
            return true;
    return false;
}

#define IN(cp, table) tp_in_code_ranges((cp), (table), TP_COUNTOF(table))

tp_unicode_class tp_unicode_class_wide(uint32_t cp)
{
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return TP_CLASS_LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return TP_CLASS_NUMBER;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return TP_CLASS_SPACE;
    case UTF8PROC_CATEGORY_CC:
        return cp == 0x85 ? TP_CLASS_SPACE : TP_CLASS_OTHER;
    case UTF8PROC_CATEGORY_CN:
        if (IN(cp, new_letters))
            return TP_CLASS_LETTER;
        return IN(cp, new_numbers) ? TP_CLASS_NUMBER : TP_CLASS_OTHER;
    default:
        return TP_CLASS_OTHER;
    }
}

static tp_unicode_class class_of(uint32_t cp)
{
    return cp < 128 ? (tp_unicode_class)tp_ascii_class[cp] : tp_unicode_class_wide(cp);
}

bool tp_unicode_is_numeric(uint32_t cp)
{
    return class_of(cp) == TP_CLASS_NUMBER || IN(cp, newest_numbers);
}

bool tp_unicode_is_punctuation(uint32_t cp)
{
    if (cp < 128)
        return cp > ' ' && cp < 127 && tp_ascii_class[cp] == TP_CLASS_OTHER;
    if (cp == 0x166d || cp == 0x111c9) /* punctuation until Unicode 12.0 and 11.0 */
        return true;
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)cp);
    bool is_one = category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
    return is_one && !IN(cp, newer_punctuation);
}

bool tp_unicode_is_word(uint32_t cp)
{
    if (class_of(cp) == TP_CLASS_LETTER)
        return true;
    switch (utf8proc_category((utf8proc_int32_t)cp)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
        return true;
    case UTF8PROC_CATEGORY_CN:
        return IN(cp, new_numbers);
    default:
        return cp == 0x200c || cp == 0x200d || IN(cp, symbol_letters);
    }
}
