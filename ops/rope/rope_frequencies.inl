// rope_frequencies' tables, in blocks of doubles that the compiler makes vectors of.
//
// An angle is n quarter turns and a rest of at most pi / 4. The first two parts of pi / 2 have 26
// bits each, so that their products with n below 2^27 are exact. The rest's sine and cosine are
// Taylor sums, whose errors (7e-12, 4e-13) are far below half an ulp of a float.

struct turn_block {
  double cos[frequency_block];
  double sin[frequency_block];
};

VELO_INLINE turn_block turns_of(double position, const double* frequency) {
  turn_block out;
  for (int64_t i = 0; i < frequency_block; ++i) {
    const double angle = position * frequency[i];
    const double magic = 0x1.8p52;
    const double rounded = angle * 0x1.45f306dc9c883p-1 + magic;  // 2 / pi
    const double n = rounded - magic;
    const double x = ((angle - n * 0x1.921fb5p0) - n * 0x1.110b46p-26) - n * 0x1.1a62633145c07p-54;
    const double z = x * x;
    double s = -1.0 / 39916800;
    s = s * z + 1.0 / 362880;
    s = s * z - 1.0 / 5040;
    s = s * z + 1.0 / 120;
    s = s * z - 1.0 / 6;
    s = x + x * z * s;
    double c = 1.0 / 479001600;
    c = c * z - 1.0 / 3628800;
    c = c * z + 1.0 / 40320;
    c = c * z - 1.0 / 720;
    c = c * z + 1.0 / 24;
    c = c * z - 0.5;
    c = c * z + 1.0;
    int64_t quarter;
    __builtin_memcpy(&quarter, &rounded, sizeof quarter);
    const bool odd = (quarter & 1) != 0;
    const double sine = odd ? c : s, cosine = odd ? s : c;
    out.sin[i] = (quarter & 2) != 0 ? -sine : sine;
    out.cos[i] = ((quarter + 1) & 2) != 0 ? -cosine : cosine;
  }
  return out;
}

void table_row(const rope_table_row& s) {
  for (int64_t at = 0; at < s.pairs; at += frequency_block) {
    const turn_block turns = turns_of(s.position, s.frequency + at);
    const int64_t n = s.pairs - at < frequency_block ? s.pairs - at : frequency_block;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t first = s.interleaved ? 2 * (at + i) : at + i;
      const int64_t second = s.interleaved ? first + 1 : first + s.pairs;
      s.cos[first] = s.cos[second] = static_cast<float>(s.factor * turns.cos[i]);
      s.sin[first] = s.sin[second] = static_cast<float>(s.factor * turns.sin[i]);
    }
  }
}

constexpr rope_frequencies_kernels kernels = {table_row};
