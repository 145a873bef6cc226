/* Prints the results of tw_mapping_check after each change of a mapped file. */
#define TILEWRIGHT_MAP
#include "tilewright.h"
#include <string.h>

static tw_error error;

static void check(const char *change, const tw_mapping *m) {
  int32_t code = tw_mapping_check(m, &error);
  printf("%s: %d %s\n", change, code, error.message);
}

static void put(const char *path, const char *mode, const char *text) {
  FILE *file = fopen(path, mode);
  fputs(text, file);
  fclose(file);
}

int main(int argc, char **argv) {
  char other[512];
  if (argc < 2) return 2;
  snprintf(other, sizeof other, "%s.other", argv[1]);
  put(argv[1], "w", "weights");
  tw_mapping m = tw_mapping_open(argv[1]), none = tw_mapping_open("none");
  check("none", &none);
  check("unchanged", &m);
  put(argv[1], "a", " and more");
  check("longer", &m);
  put(argv[1], "w", "w");
  check("truncated", &m);
  put(argv[1], "w", "WEIGHTS");
  struct timespec times[2] = {{1, 0}, {1, 0}};
  if (utimensat(AT_FDCWD, argv[1], times, 0)) return 2;
  check("written", &m);
  printf("no error: %d\n", tw_mapping_check(&m, 0));
  tw_mapping_close(&m);
  check("closed", &m);
  m = tw_mapping_open(argv[1]);
  put(other, "w", "replacement");
  if (rename(other, argv[1])) return 2;
  check("renamed", &m);
  printf("content: %.7s of %d\n", (const char *)m.data, (int)m.bytes);
  tw_mapping_close(&m);
  tw_mapping_close(&m);
  return 0;
}
