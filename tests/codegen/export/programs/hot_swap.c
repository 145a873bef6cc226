/* Four threads call a model while another one exchanges two versions of its weights 200 times. Each
 * version is a copy in memory that is overwritten and freed when no call uses it. Prints the number of
 * results of neither version, whether both were seen, and the bytes that are live at the end and were
 * not at the start. */
#define TILEWRIGHT_STDIO
#define TILEWRIGHT_MAP
#include "packed.h"
#include <malloc.h>
#include <pthread.h>
#include <string.h>

enum { ROWS = 3, WIDTH = 256, OUT = 300, CALLERS = 4, EXCHANGES = 200 };

static float x[ROWS * WIDTH], wanted[2][ROWS * OUT];
static int64_t live, wrong, seen[2], done;
static packed_model *model;

static void *counting(void *context, int64_t bytes, int64_t alignment) {
  void *memory = tw_stdlib_alloc(context, bytes, alignment);
  __atomic_add_fetch(&live, (int64_t)malloc_usable_size(memory), __ATOMIC_RELAXED);
  return memory;
}

static void counting_free(void *context, void *memory) {
  __atomic_sub_fetch(&live, (int64_t)malloc_usable_size(memory), __ATOMIC_RELAXED);
  tw_stdlib_free(context, memory);
}

static int call(packed_model *m, float *to) {
  int64_t shape[2] = {ROWS, WIDTH};
  tw_tensor tx = tw_describe(x, shape, 2, 2, 32);
  tw_result *y;
  tw_error error;
  if (packed_main(m, &tx, &y, &error)) return puts(error.message), 1;
  memcpy(to, y->tensor.data, sizeof wanted[0]);
  tw_release(y);
  return 0;
}

static void *caller(void *argument) {
  float y[ROWS * OUT];
  (void)argument;
  while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
    if (call(model, y)) __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
    int k = memcmp(y, wanted[0], sizeof y) ? 1 : 0;
    if (memcmp(y, wanted[k], sizeof y)) __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&seen[k], 1, __ATOMIC_RELAXED);
  }
  return 0;
}

static void *copy_of(const void *data, int64_t bytes) {
  void *copy = tw_stdlib_alloc(0, bytes, 64);
  return memcpy(copy, data, (size_t)bytes);
}

/* Overwrite and free the copies that no version uses, apart from the last one. */
static int free_unused(void **copies, int count, int64_t bytes) {
  int left = 0;
  for (int k = 0; k < count; k++) {
    if (!copies[k]) continue;
    if (packed_weights_in_use(model, copies[k])) {
      left++;
      continue;
    }
    memset(copies[k], 0xff, (size_t)bytes);
    free(copies[k]);
    copies[k] = 0;
  }
  return left;
}

int main(int argc, char **argv) {
  tw_runtime runtime = tw_stdlib_runtime();
  const void *files[2];
  int64_t bytes = 0;
  tw_error error;
  pthread_t threads[CALLERS];
  static void *copies[EXCHANGES + 1];
  if (argc < 3) return 2;
  runtime.alloc = counting;
  runtime.free = counting_free;
  for (int k = 0; k < ROWS * WIDTH; k++) x[k] = (float)(k % 7) - 3;
  for (int k = 0; k < 2; k++) {
    if (!(files[k] = tw_map_file(argv[1 + k], &bytes))) return 2;
    if (packed_open(&runtime, files[k], bytes, &model, &error)) return puts(error.message), 1;
    if (call(model, wanted[k])) return 1;
    packed_close(model);
  }
  if (!memcmp(wanted[0], wanted[1], sizeof wanted[0])) return 2;
  copies[0] = copy_of(files[0], bytes);
  if (packed_open(&runtime, copies[0], bytes, &model, &error)) return puts(error.message), 1;
  int64_t start = live;
  for (int k = 0; k < CALLERS; k++)
    if (pthread_create(&threads[k], 0, caller, 0)) return 2;
  for (int k = 1; k <= EXCHANGES; k++) {
    int64_t before = __atomic_load_n(&seen[0], __ATOMIC_RELAXED) +
                     __atomic_load_n(&seen[1], __ATOMIC_RELAXED);
    copies[k] = copy_of(files[k % 2], bytes);
    if (packed_update(model, copies[k], bytes, 0, &error)) return puts(error.message), 1;
    free_unused(copies, k + 1, bytes);
    while (__atomic_load_n(&seen[0], __ATOMIC_RELAXED) +
               __atomic_load_n(&seen[1], __ATOMIC_RELAXED) ==
           before)
      sched_yield();
  }
  __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
  for (int k = 0; k < CALLERS; k++) pthread_join(threads[k], 0);
  int left = free_unused(copies, EXCHANGES + 1, bytes);
  packed_trim(model, 0);
  int64_t more = live - start;
  packed_close(model);
  printf("%d wrong, %s, %d in use, %d bytes more, %d live\n", (int)wrong,
         seen[0] && seen[1] ? "both seen" : "one seen", left, (int)more,
         (int)(live + packed_live_models()));
  free(copies[EXCHANGES]);
  for (int k = 0; k < 2; k++) tw_unmap_file(files[k], bytes);
  return 0;
}
