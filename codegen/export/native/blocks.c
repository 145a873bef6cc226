/* Search for the damaged part of weights with a checked header and size. Their sha256 is the one that
 * decides; the sha256 of each block, which the header lists, states where they differ. */

#define NAMED_TENSORS 3

COLD static void put_piece(tw_writer *w, const unsigned char *text, int32_t length) {
  for (int32_t k = 0; k < length; k++) {
    char piece[2] = {(char)text[k], 0};
    put(w, piece);
  }
}

/* Write the first tensors that have bytes between two offsets, and the number of others. */
COLD static void put_tensors(tw_writer *w, int64_t first, int64_t end) {
  int64_t count = 0;
  for (int32_t k = 0; k < SPANS; k++) {
    if (spans[k].begin >= end || spans[k].end <= first || count++ >= NAMED_TENSORS) continue;
    put(w, count == 1 ? "'" : "', '");
    put_piece(w, weights_header + spans[k].name, spans[k].length);
  }
  put(w, count ? "'" : "none");
  if (count <= NAMED_TENSORS) return;
  put(w, " and ");
  put_number(w, count - NAMED_TENSORS);
  put(w, " more");
}

/* Write 64 characters of a header that may not be digits, and end the text. */
COLD static void copy_digits(char *to, const unsigned char *digits) {
  for (int k = 0; k < 64; k++) to[k] = digits[k] > ' ' && digits[k] < 127 ? (char)digits[k] : '?';
  to[64] = 0;
}

/* Return the error of weights that differ from their sha256. */
COLD static int32_t explain_digest(const unsigned char *weights, tw_error *error) {
  int64_t blocks = weights[LIST_AT] == ',' ? BLOCKS : 0; /* an earlier file has no list */
  for (int64_t block = 0; block < blocks; block++) {
    int64_t first = HEADER_SIZE + block * BLOCK_BYTES;
    int64_t bytes = WEIGHTS_SIZE - first < BLOCK_BYTES ? WEIGHTS_SIZE - first : BLOCK_BYTES;
    unsigned char digest[32], digits[64];
    sha_digest d;
    sha_begin(&d);
    sha_add(&d, weights + first, bytes);
    sha_end(&d, digest);
    int differs = 0;
    for (int k = 0; k < 64; k++) {
      digits[k] = (unsigned char)"0123456789abcdef"[digest[k / 2] >> (k % 2 ? 0 : 4) & 15];
      differs |= digits[k] != weights[BLOCKS_AT + 64 * block + k];
    }
    if (!differs) continue;
    char listed[65], found[65];
    copy_digits(listed, weights + BLOCKS_AT + 64 * block);
    copy_digits(found, digits);
    tw_error names;
    tw_writer w = {&names, 0};
    put_tensors(&w, first, first + bytes);
    return fail_weights_block(begin(error), block + 1, blocks, first, first + bytes - 1, listed,
                              found, names.message);
  }
  return fail_weights_digest(begin(error));
}
