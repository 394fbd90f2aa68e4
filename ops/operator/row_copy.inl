// row_copy over the vector type `v` of the including namespace.

void copy_row(const row_copy& s) {
  const float* from = static_cast<const float*>(s.from);
  const float* next = static_cast<const float*>(s.next);
  float* to = static_cast<float*>(s.to);
  const int64_t n = s.bytes / 4;
  for (int64_t i = 0; i < n; i += 16) {  // a line a step
    v::prefetch(next + i);
    for (int64_t j = i; j < i + 16; j += v::width) v::stream(to + j, v::load(from + j));
  }
  v::fence();
}
