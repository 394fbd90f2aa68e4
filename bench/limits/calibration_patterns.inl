// Memory patterns over a vector type `lane` with load, store, stream, add, mul and set1. Four
// vectors a step, so that the loop itself is never the limit. The including file opens namespace
// velo::bench and an anonymous namespace.

constexpr std::int64_t step = 4 * lane::width;

void read(float* const* arrays, std::int64_t count) {
  const float* a = arrays[0];
  lane::reg sums[4] = {lane::set1(0), lane::set1(0), lane::set1(0), lane::set1(0)};
  for (std::int64_t i = 0; i < count; i += step)
    for (int u = 0; u < 4; ++u) sums[u] = lane::add(sums[u], lane::load(a + i + u * lane::width));
  const lane::reg sum = lane::add(lane::add(sums[0], sums[1]), lane::add(sums[2], sums[3]));
  asm volatile("" : : "x"(sum));
}

template <bool stream>
void put(float* p, lane::reg value) {
  if (stream)
    lane::stream(p, value);
  else
    lane::store(p, value);
}

template <bool stream>
void copy(float* const* arrays, std::int64_t count) {
  const float* from = arrays[0];
  float* to = arrays[1];
  for (std::int64_t i = 0; i < count; i += step)
    for (int u = 0; u < 4; ++u)
      put<stream>(to + i + u * lane::width, lane::load(from + i + u * lane::width));
  _mm_sfence();
}

template <bool stream>
void triad(float* const* arrays, std::int64_t count) {
  const float *b = arrays[0], *c = arrays[1];
  float* a = arrays[2];
  const lane::reg k = lane::set1(0.5f);
  for (std::int64_t i = 0; i < count; i += step)
    for (int u = 0; u < 4; ++u) {
      const std::int64_t at = i + u * lane::width;
      put<stream>(a + at, lane::add(lane::load(b + at), lane::mul(k, lane::load(c + at))));
    }
  _mm_sfence();
}

void scale(float* const* arrays, std::int64_t count) {
  float* a = arrays[0];
  const lane::reg k = lane::set1(0.9999f);
  for (std::int64_t i = 0; i < count; i += step)
    for (int u = 0; u < 4; ++u)
      lane::store(a + i + u * lane::width, lane::mul(k, lane::load(a + i + u * lane::width)));
}

// Reads parameter, gradient and both moments, writes all but the gradient; the arithmetic is a
// token of the real one.
void adam(float* const* arrays, std::int64_t count) {
  float *p = arrays[0], *m = arrays[1], *v = arrays[2];
  const float* g = arrays[3];
  const lane::reg k = lane::set1(0.25f);
  for (std::int64_t i = 0; i < count; i += 2 * lane::width)
    for (int u = 0; u < 2; ++u) {
      const std::int64_t at = i + u * lane::width;
      const lane::reg gradient = lane::load(g + at);
      const lane::reg first = lane::mul(k, lane::add(lane::load(m + at), gradient));
      const lane::reg second = lane::mul(k, lane::add(lane::load(v + at), gradient));
      lane::store(m + at, first);
      lane::store(v + at, second);
      lane::store(p + at, lane::add(lane::load(p + at), lane::mul(first, second)));
    }
}

constexpr pattern_table table{read,        copy<false>, copy<true>, triad<false>,
                              triad<true>, scale,       adam};
