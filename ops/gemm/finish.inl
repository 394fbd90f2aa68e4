// Finishing over the vectors of one instruction set; included by files that name `simd`, the vector
// header's namespace. Where the processor rounds to bf16 itself denormal results are zero, as in
// the dot products that made them.

// A vector of sums that belongs to the columns from `j` of the row at `c`.
template <class T>
VELO_INLINE void finish_vector(const result_part& to, T* c, int j, simd::vec x) {
  const int n = to.columns - j;
  if (n <= 0) return;
  const bool whole = n >= simd::width;
  if (to.bias != nullptr) x = x + (whole ? simd::load(to.bias + j) : simd::load(to.bias + j, n));
  if (to.accumulate) x = x + (whole ? simd::load(c + j) : simd::load(c + j, n));
  if (whole) {
    simd::store(c + j, x);
  } else {
    simd::store(c + j, x, n);
  }
}
