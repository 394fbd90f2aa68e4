// Copies over the vector type `v` of the including namespace: the C library's, or streams of 32
// bytes where the output is larger than the caches.

VELO_INLINE void stream_bytes(const pad_slice& s) {
  alignas(32) static const char zeros[32] = {};
  const char* from = static_cast<const char*>(s.from);
  char* to = static_cast<char*>(s.to);
  int64_t i = 0;
  for (; i + 64 <= s.bytes; i += 64) {
    if (from != nullptr) v::prefetch(from + i + 2048);
    v::stream32(to + i, from == nullptr ? zeros : from + i);
    v::stream32(to + i + 32, from == nullptr ? zeros : from + i + 32);
  }
  for (; i < s.bytes; ++i) to[i] = from == nullptr ? '\0' : from[i];
  v::fence();
}

void move(const pad_slice& s) {
  const auto bytes = static_cast<unsigned long>(s.bytes);
  if (s.bypass && reinterpret_cast<uintptr_t>(s.to) % 32 == 0) {
    stream_bytes(s);
  } else if (s.from == nullptr) {
    __builtin_memset(s.to, 0, bytes);
  } else {
    __builtin_memcpy(s.to, s.from, bytes);
  }
}

constexpr pad_kernels kernels = {move};
