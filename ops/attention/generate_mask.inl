// Rows of a mask over the vector type `v` of the including namespace: the C library's fills, or
// streams of 32 bytes where the mask is larger than the caches.

// `count` bytes of a value; those on whole 32 bytes go around the cache.
VELO_INLINE uint8_t* put_bytes(uint8_t* to, int64_t count, int value, bool bypass) {
  if (!bypass || count < 64) {
    __builtin_memset(to, value, static_cast<unsigned long>(count));
    return to + count;
  }
  alignas(32) unsigned char block[32];
  __builtin_memset(block, value, sizeof block);
  uint8_t* end = to + count;
  for (; reinterpret_cast<uintptr_t>(to) % 32 != 0; ++to) *to = static_cast<uint8_t>(value);
  for (; end - to >= 32; to += 32) v::stream32(to, block);
  for (; to < end; ++to) *to = static_cast<uint8_t>(value);
  return end;
}

void fill(const mask_row& x) {
  uint8_t* to = put_bytes(x.to, x.first, 1, x.bypass);
  to = put_bytes(to, x.last - x.first, 0, x.bypass);
  put_bytes(to, x.columns - x.last, 1, x.bypass);
  if (x.bypass) v::fence();
}

constexpr generate_mask_kernels kernels = {fill};
