/* Runs the compiled matmul of bytes on numbers that follow from their position, and writes the sums.
   Arguments: M, N, K, bytes of scratch, file for the result. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int32_t (*body)(void *environment, int64_t low, int64_t high, int64_t worker);

int32_t matmul(void *table, int8_t *a, int8_t *b, int32_t *c, int64_t m, int64_t k, int64_t n,
               void *scratch);

static int32_t parallel(void *context, body run, int64_t stop, void *environment) {
    (void)context;
    return run(environment, 0, stop, 0);
}

int main(int count, char **arguments) {
    if (count != 6) return 2;
    int64_t m = atoll(arguments[1]), n = atoll(arguments[2]), k = atoll(arguments[3]);
    size_t bytes = (atoll(arguments[4]) + 63) / 64 * 64;
    int64_t table[32] = {0};
    table[VERSION] = 1;
    table[THREADS] = 1;
    table[PARALLEL] = (int64_t)(intptr_t)parallel;
    int8_t *a = malloc(m * k), *b = malloc(k * n);
    int32_t *c = malloc(m * n * sizeof *c);
    void *scratch = aligned_alloc(64, bytes);
    for (int64_t i = 0; i < m * k; i++) a[i] = (int8_t)(i * 37 % 256 - 128);
    for (int64_t i = 0; i < k * n; i++) b[i] = (int8_t)((i * 101 + 7) % 256 - 128);
    int32_t code = matmul(table, a, b, c, m, k, n, scratch);
    if (code) return 3;
    FILE *out = fopen(arguments[5], "wb");
    return !out || fwrite(c, sizeof *c, m * n, out) != (size_t)(m * n) || fclose(out);
}
