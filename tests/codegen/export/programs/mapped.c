/* Opens a model whose weights are mapped, and prints the allocations of open, the private dirty bytes
 * of the mapping after a call, the alignment of its address, and the bytes that were in the page table
 * before the call. */
#define TILEWRIGHT_STDIO
#define TILEWRIGHT_MAP
#include "packed.h"
#include <string.h>

static int64_t allocated;

static void *counting(void *context, int64_t bytes, int64_t alignment) {
  allocated += bytes;
  return tw_stdlib_alloc(context, bytes, alignment);
}

/* Return the bytes in a line of the facts about the mapping that begins at an address. */
static long bytes_of(const void *address, const char *format) {
  char line[512], start[32];
  long found = -1;
  int inside = 0;
  FILE *file = fopen("/proc/self/smaps", "r");
  if (!file) return -1;
  snprintf(start, sizeof start, "%lx-", (unsigned long)(uintptr_t)address);
  while (fgets(line, sizeof line, file)) {
    if (!strncmp(line, start, strlen(start))) inside = 1;
    if (inside && sscanf(line, format, &found) == 1) break;
  }
  fclose(file);
  return found < 0 ? found : 1024 * found;
}

int main(int argc, char **argv) {
  tw_runtime runtime = tw_stdlib_runtime();
  packed_model *model;
  tw_error error;
  int64_t bytes, shape[2] = {3, 256};
  static float x[3 * 256];
  if (argc < 3) return 2;
  const void *weights = tw_map_file(argv[1], &bytes);
  if (!weights || tw_map_file("missing", &(int64_t){0})) return 2;
  long mapped = bytes_of(weights, "Rss: %ld kB");
  runtime.alloc = counting;
  if (packed_open(&runtime, weights, bytes, &model, &error)) return puts(error.message), 1;
  int64_t opened = allocated;
  for (int k = 0; k < 3 * 256; k++) x[k] = (float)(k % 7) - 3;
  tw_tensor tx = tw_describe(x, shape, 2, 2, 32);
  tw_result *y;
  if (packed_main(model, &tx, &y, &error)) return puts(error.message), 1;
  FILE *out = fopen(argv[2], "wb");
  if (!out) return 2;
  fwrite(y->tensor.data, 4, 3 * 300, out);
  fclose(out);
  printf("%lld %ld %d %ld\n", (long long)opened, bytes_of(weights, "Private_Dirty: %ld kB"),
         (int)((uintptr_t)weights % 64), mapped);
  tw_release(y);
  packed_close(model);
  tw_unmap_file(weights, bytes);
  return 0;
}
