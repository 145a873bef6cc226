/* Prints the lengths for which the sha256 of the library differs from that of Python. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int equal_text(const char *a, const char *b) { return !strcmp(a, b); }
#include "processor.c"
#include "sha256.c"

/* Lines of a length and a digest; byte k of the data is k * 7 + 3. */
int main(void) {
  char text[65];
  long bytes;
  (void)missing_feature;
  while (scanf("%ld %64s", &bytes, text) == 2) {
    unsigned char expected[32], *data = malloc((size_t)bytes + 1);
    for (int k = 0; k < 32; k++) {
      unsigned value;
      sscanf(text + 2 * k, "%2x", &value);
      expected[k] = (unsigned char)value;
    }
    for (long k = 0; k < bytes; k++) data[k] = (unsigned char)(k * 7 + 3);
    if (!has_digest(data, bytes, expected)) printf("%ld\n", bytes);
    expected[31] ^= 1;
    if (has_digest(data, bytes, expected)) printf("%ld\n", bytes);
    uint32_t plain[8] = {1, 2, 3, 4, 5, 6, 7, 8}, native[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    sha_blocks_plain(plain, data, bytes / 64);
    if (sha_is_native()) sha_blocks_native(native, data, bytes / 64);
    if (sha_is_native() && memcmp(plain, native, sizeof plain)) printf("%ld\n", bytes);
    free(data);
  }
  printf("%s\n", sha_is_native() ? "native" : "plain");
  return 0;
}
