// Tiles of score terms over the vector type that `v` names; included once per instruction set.

using simd::bf16, simd::f16;

constexpr int W = v::width;

// A vector of a row's bias: minus the distance of query and key, or minus its root.
VELO_INLINE v::vec bias_of(const addend_row& x, int column, v::vec lanes) {
  const v::vec d = v::set(x.distance - static_cast<float>(column)) - lanes;
  const v::vec distance = v::max(d, v::zero() - d);
  return v::zero() - (x.root ? v::sqrt(distance) : distance);
}

VELO_INLINE v::vec lane_numbers() {
  alignas(64) static constexpr float numbers[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                                    8, 9, 10, 11, 12, 13, 14, 15};
  return v::load(numbers);
}

template <class E>
VELO_INLINE v::vec pse_of(const addend_row& x, int column) {
  const int n = x.pse_columns - column;
  const E* from = static_cast<const E*>(x.pse) + column;
  if (n >= W) return v::load(from);
  return n > 0 ? v::load(from, n) : v::zero();
}

VELO_INLINE bool are_zero(const uint8_t* bytes) {
  uint64_t any = 0, eight;
  for (int i = 0; i < W; i += 8) {
    __builtin_memcpy(&eight, bytes + i, 8);
    any |= eight;
  }
  return any == 0;
}

// The addends, -Inf where the mask has a byte other than 0.
VELO_INLINE v::vec hidden(const addend_row& x, int column, v::vec addend) {
  const int n = x.columns - column < W ? x.columns - column : W;
  const uint8_t* bytes = x.mask + column;
  if (n == W && are_zero(bytes)) return addend;
  float none[W];
  for (int i = 0; i < W; ++i) {
    none[i] = i < n && bytes[i] != 0 ? -__builtin_inff() : 0.0f;
  }
  const v::vec hides = v::load(none);
  return v::if_equal(hides, v::zero(), addend, hides);
}

template <class E>
void addends(const addend_row& x) {
  const v::vec lanes = lane_numbers(), factor = v::set(x.factor), slope = v::set(x.slope);
  for (int j = 0; j < x.width; j += W) {
    v::vec addend = v::zero();
    if (x.pse != nullptr) addend = pse_of<E>(x, j) * factor;
    if (x.slope != 0.0f) addend = v::fma(slope, bias_of(x, j, lanes), addend);
    if (x.mask != nullptr && j < x.columns) addend = hidden(x, j, addend);
    v::store(x.to + j, addend);
  }
}

void multipliers(const multiplier_row& x) {
  simd::dropout_run<v::longs> run(*x.rule, x.index);
  v::vec by[2];
  for (int j = 0; j < x.width; j += 2 * W) {
    run.next(by);
    v::store(x.to + j, by[0]);
    v::store(x.to + j + W, by[1]);
  }
}

void add(const term_block& x) {
  const v::vec scale = v::set(x.scale), none = v::set(-__builtin_inff());
  for (int i = 0; i < x.rows; ++i) {
    float* at = static_cast<float*>(x.at) + i * x.ld;
    const float* tile = x.tile + i * x.tile_ld;
    for (int j = x.first; j < x.last; j += W) {
      const v::vec addend = v::load(tile + j);
      v::store(at + j, v::if_equal(addend, none, none, v::fma(v::load(at + j), scale, addend)));
    }
  }
}

template <class T>
void multiply(const term_block& x) {
  for (int i = 0; i < x.rows; ++i) {
    T* at = static_cast<T*>(x.at) + i * x.ld;
    const float* tile = x.tile + i * x.tile_ld;
    for (int j = x.first; j < x.last; j += 2 * W) {
      const v::vec a = v::load(at + j) * v::load(tile + j);
      const v::vec b = v::load(at + j + W) * v::load(tile + j + W);
      v::store2(at + j, a, b);
    }
  }
}

template <class T>
void sum(const term_sum& x) {
  for (int i = 0; i < x.rows; ++i) {
    const T* from = static_cast<const T*>(x.from) + i * x.from_ld;
    float* to = x.to + i * x.to_ld;
    for (int j = x.first; j < x.last; j += W) {
      v::store(to + j, v::load(to + j) + v::load(from + j));
    }
  }
}

void turn(const float* from, int64_t ld, int rows, int columns, float* to, int64_t to_ld) {
  v::words square[W];
  for (int i = 0; i < rows; i += W) {
    for (int j = 0; j < columns; j += W) {
      for (int r = 0; r < W; ++r) {
        square[r] = v::words::load(reinterpret_cast<const uint32_t*>(from + (i + r) * ld + j), W);
      }
      v::words::turn(square);
      for (int r = 0; r < W; ++r) {
        square[r].store(reinterpret_cast<uint32_t*>(to + (j + r) * to_ld + i));
      }
    }
  }
}

constexpr attention_terms_kernels kernels = {
    this_isa,        addends<float>, addends<bf16>, addends<f16>, multipliers, add,
    multiply<float>, multiply<bf16>, sum<float>,    sum<bf16>,    turn};
