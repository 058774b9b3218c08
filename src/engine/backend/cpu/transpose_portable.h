/* transpose_portable.h - a matrix of 32-bit elements turned, in plain loops. */
#ifndef TP_ENGINE_BACKEND_CPU_TRANSPOSE_PORTABLE_H
#define TP_ENGINE_BACKEND_CPU_TRANSPOSE_PORTABLE_H

typedef uint32_t word32 __attribute__((may_alias));

/* to[columns, rows] = from[rows, columns]; both are multiples of 16 */
static inline void transpose_32(const word32 *from, int64_t rows, int64_t columns, word32 *to)
{
    for (int64_t r = 0; r < rows; r += 8) {
        for (int64_t c = 0; c < columns; c++) {
            for (int64_t i = 0; i < 8; i++)
                to[c * rows + r + i] = from[(r + i) * columns + c];
        }
    }
}

#endif
