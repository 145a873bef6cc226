/* Check of the header of replaceable weights. A file that the library accepts has the header of the
 * exported file apart from the sha256 of the tensors and of blocks, because the same program writes
 * both. The search for the reason of a difference reads the text of the header, never beyond its
 * end. */

/* The text of a header. */
typedef struct {
  const char *text;
  int64_t length;
} tw_header;

static int64_t text_length(const char *text) {
  int64_t length = 0;
  while (text[length]) length++;
  return length;
}

/* Return whether a header contains a text at a position. */
static int has_text(tw_header h, int64_t at, const char *text) {
  for (int64_t k = 0; text[k]; k++)
    if (at + k >= h.length || h.text[at + k] != text[k]) return 0;
  return 1;
}

/* Return the position after the first occurrence of a text, or -1. */
static int64_t find_text(tw_header h, const char *text) {
  for (int64_t at = 0; at < h.length; at++)
    if (has_text(h, at, text)) return at + text_length(text);
  return -1;
}

/* Copy the characters before a text or, if it is missing, as many as there is space for. */
static void copy_until(tw_header h, int64_t at, const char *end, char *to, int64_t space) {
  int64_t k = 0;
  for (; k < space - 1 && at + k < h.length && !has_text(h, at + k, end); k++)
    to[k] = h.text[at + k] >= ' ' ? h.text[at + k] : '?';
  to[k] = 0;
}

/* Return the position after a string that begins at a quote. */
static int64_t after_string(tw_header h, int64_t at) {
  for (at++; at < h.length && h.text[at] != '"'; at++)
    if (h.text[at] == '\\') at++;
  return at + 1;
}

/* Return whether a name at a position is one of the tensors, of a filler, or of the metadata. */
static int is_known(tw_header h, int64_t at) {
  if (has_text(h, at, "\"__metadata__\":") || has_text(h, at, "\"__filler__")) return 1;
  for (int32_t k = 0; k < TENSORS; k++)
    if (has_text(h, at, tensors[k].key)) return 1;
  return 0;
}

/* Return the position of the first name that is not known, or -1. */
static int64_t find_unknown(tw_header h) {
  int64_t depth = 0;
  for (int64_t at = 0; at < h.length;) {
    char c = h.text[at];
    if (c == '"') {
      int64_t end = after_string(h, at);
      if (depth == 1 && end < h.length && h.text[end] == ':' && !is_known(h, at)) return at;
      at = end;
      continue;
    }
    depth += (c == '{') - (c == '}');
    at++;
  }
  return -1;
}

COLD static int32_t explain_header(tw_header h, tw_error *error) {
  char text[160];
  for (int32_t k = 0; k < TENSORS; k++) {
    const tw_weight *t = &tensors[k];
    int64_t at = find_text(h, t->key);
    if (at < 0) return fail_weights_missing(begin(error), t->name, t->type);
    if (has_text(h, at, t->type)) continue;
    copy_until(h, at, ",\"data_offsets\"", text, sizeof text);
    return fail_weights_type(begin(error), t->name, t->type, text);
  }
  for (int32_t k = 0; k < TENSORS; k++)
    if (!has_text(h, find_text(h, tensors[k].key) + text_length(tensors[k].type),
                  tensors[k].offsets))
      return fail_weights_layout(begin(error), tensors[k].name);
  int64_t unknown = find_unknown(h);
  if (unknown < 0) return fail_weights_header(begin(error));
  copy_until(h, unknown + 1, "\":", text, sizeof text);
  return fail_weights_extra(begin(error), text);
}

static int digit_of(unsigned char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int is_digest(int64_t k) {
  return (k >= DIGEST_AT && k < DIGEST_AT + 64) ||
         (k >= BLOCKS_AT && k < BLOCKS_AT + 64 * (int64_t)BLOCKS);
}

/* Return whether a header is that of a file that lists no sha256 of blocks, as an earlier version of
 * Tilewright has written it: the header of the exported file without the list, padded again. */
static int is_plain_header(const unsigned char *weights, int64_t size) {
  if (size != PLAIN_HEADER_SIZE) return 0;
  for (int64_t k = 8; k < size; k++) {
    int64_t other = k < LIST_AT ? k : k + LIST_SIZE;
    unsigned char expected = other < HEADER_SIZE ? weights_header[other] : ' ';
    if (!is_digest(other) && weights[k] != expected) return 0;
  }
  return 1;
}

/* Check the header and the size of weights, and read the size of the header and the sha256 of the
 * tensors. */
static int32_t check_schema(const unsigned char *weights, int64_t bytes, int64_t *header,
                            unsigned char *digest, tw_error *error) {
  uint64_t length = 0;
  for (int k = 0; k < 8 && bytes >= 8; k++) length |= (uint64_t)weights[k] << 8 * k;
  if (bytes < 8 || length > (uint64_t)bytes - 8 || (length && weights[8] != '{'))
    return fail_weights_format(begin(error), tensors[0].name, bytes);
  int64_t size = 8 + (int64_t)length;
  int differs = size != HEADER_SIZE;
  for (int64_t k = 0; !differs && k < size; k++)
    differs = !is_digest(k) && weights[k] != weights_header[k];
  *header = size;
  if (differs && !is_plain_header(weights, size))
    return explain_header((tw_header){(const char *)weights + 8, (int64_t)length}, error);
  for (int32_t k = 0; k < 32; k++) {
    int high = digit_of(weights[DIGEST_AT + 2 * k]), low = digit_of(weights[DIGEST_AT + 2 * k + 1]);
    if (high < 0 || low < 0) return fail_weights_header(begin(error));
    digest[k] = (unsigned char)(16 * high + low);
  }
  int64_t expected = WEIGHTS_SIZE - HEADER_SIZE + size;
  for (int32_t k = 0; k < TENSORS; k++)
    if (tensors[k].end - HEADER_SIZE > bytes - size)
      return fail_weights_end(begin(error), tensors[k].name, expected, bytes);
  if (bytes != expected) return fail_weights_size(begin(error), expected, bytes);
  return TW_OK;
}
