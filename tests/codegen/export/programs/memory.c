/* memory WEIGHTS OUT CALLS BATCH LENGTH: opens the mapped model without verification and calls it. Prints
 * the microseconds of mapping and open, of the first call, and the median of the others, then the peak of
 * the allocated bytes; writes the results to OUT, and waits for the end of the standard input. */
#define _POSIX_C_SOURCE 199309L
#define TILEWRIGHT_STDIO
#define TILEWRIGHT_MAP
#include "minilm.h"
#include <time.h>

enum { CALLS = 10000, ELEMENTS = 1024 };
static int64_t live, peak;

static void *counting(void *context, int64_t bytes, int64_t alignment) {
  (void)context;
  char *memory = (char *)tw_stdlib_alloc(NULL, bytes + 64, alignment < 64 ? 64 : alignment);
  if (!memory) return NULL;
  *(int64_t *)memory = bytes;
  live += bytes;
  if (live > peak) peak = live;
  return memory + 64;
}

static void uncounting(void *context, void *memory) {
  (void)context;
  if (!memory) return;
  char *start = (char *)memory - 64;
  live -= *(int64_t *)start;
  tw_stdlib_free(NULL, start);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static int refused(const tw_error *error) {
  fprintf(stderr, "%d %s\n", error->code, error->message);
  return 1;
}

static void write_result(FILE *out, const tw_result *result) {
  int64_t count = 1;
  for (int k = 0; k < result->tensor.ndim; k++) count *= result->tensor.shape[k];
  if (out) fwrite(result->tensor.data, 4, (size_t)count, out);
}

int main(int argc, char **argv) {
  static double times[CALLS];
  static int64_t ids[ELEMENTS], mask[ELEMENTS];
  tw_runtime runtime = tw_stdlib_runtime();
  minilm_model *model;
  tw_error error;
  tw_result *states, *pooled;
  int64_t bytes;
  if (argc < 6) return 2;
  int calls = atoi(argv[3]);
  int64_t shape[2] = {atol(argv[4]), atol(argv[5])};
  if (calls < 2 || calls > CALLS || shape[0] < 1 || shape[1] < 1 || shape[0] * shape[1] > ELEMENTS) return 2;
  for (int64_t k = 0; k < shape[0] * shape[1]; k++) {
    ids[k] = 1000 + k * 7919 % 29000;
    mask[k] = k % shape[1] < shape[1] - k / shape[1];
  }
  runtime.alloc = counting;
  runtime.free = uncounting;
  runtime.flags = TW_TRUST_WEIGHTS;
  double begin = now();
  const void *weights = tw_map_file(argv[1], &bytes);
  if (!weights) return 2;
  double mapped = now();
  if (minilm_open(&runtime, weights, bytes, &model, &error)) return refused(&error);
  double opened = now();
  tw_tensor ti = tw_describe(ids, shape, 2, 0, 64), tm = tw_describe(mask, shape, 2, 0, 64);
  for (int k = 0; k < calls; k++) {
    double start = now();
    if (minilm_main(model, &ti, &tm, &states, &pooled, &error)) return refused(&error);
    times[k] = now() - start;
    if (k == calls - 1) {
      FILE *out = fopen(argv[2], "wb");
      write_result(out, states);
      write_result(out, pooled);
      if (!out || fclose(out)) return 2;
    }
    tw_release(states);
    tw_release(pooled);
  }
  qsort(times + 1, (size_t)calls - 1, sizeof *times, ascending);
  printf("%f %f %f %f %lld\n", mapped - begin, opened - mapped, times[0], times[1 + (calls - 1) / 2], (long long)peak);
  fflush(stdout);
  while (getchar() != EOF) continue;
  minilm_close(model);
  tw_unmap_file(weights, bytes);
  return 0;
}
