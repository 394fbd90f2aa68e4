// Finishing over the vectors of one instruction set; included by files that name `v`, the vector
// header's namespace. Where the processor rounds to bf16 itself denormal results are zero, as in
// the dot products that made them.

// A vector of sums that belongs to the columns from `j` of the row at `c`.
template <class T>
VELO_INLINE void finish_vector(const result_part& to, T* c, int j, v::vec x) {
  const int n = to.columns - j;
  if (n <= 0) return;
  const bool whole = n >= v::width;
  if (to.bias != nullptr) x = x + (whole ? v::load(to.bias + j) : v::load(to.bias + j, n));
  if (to.accumulate) x = x + (whole ? v::load(c + j) : v::load(c + j, n));
  if (whole) {
    v::store(c + j, x);
  } else {
    v::store(c + j, x, n);
  }
}
