// embedding's gradient over the vector type `v` of the including namespace.

template <class T>
VELO_INLINE void add_row(const embedding_row<T>& s) {
  int64_t i = 0;
  for (; i + v::width <= s.n; i += v::width)
    v::store(s.dtable + i, v::load(s.dtable + i) + v::load(s.dy + i));
  if (i < s.n) {  // tail
    const int m = static_cast<int>(s.n - i);
    v::store(s.dtable + i, v::load(s.dtable + i, m) + v::load(s.dy + i, m), m);
  }
}

void embedding_add(const embedding_row<float>& s) {
  add_row(s);
}
void embedding_add(const embedding_row<simd::bf16>& s) {
  add_row(s);
}
