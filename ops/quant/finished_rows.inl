// Finished rows over the vector type `v` of the including namespace.

template <class T>
void finish(const finished_rows<T>& s) {
  for (int64_t i = 0; i < s.rows; ++i) {
    for (int64_t j = 0; j < s.columns; j += v::width) {
      const int n = simd::lanes_left<v::width>(s.columns, j);
      v::vec sum = v::load(s.sums + i * s.ld_sums + j, n);
      if (s.bias != nullptr) sum = sum + v::load(s.bias + j, n);
      v::store(s.y + i * s.ldy + j, sum, n);
    }
  }
}

constexpr of_each_dtype<finished_rows> finish_kernels = {finish<float>, finish<simd::bf16>,
                                                         finish<simd::f16>};
