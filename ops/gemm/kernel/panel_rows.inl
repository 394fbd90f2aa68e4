// The copy of panel_rows.hpp, over the non-temporal store of one instruction set, `v`'s.

constexpr int64_t panel_ahead = 2048;  // distance in bytes at which a panel is prefetched

template <int Bytes>
VELO_INLINE void stream_row(const char* from, char* to) {
#pragma GCC unroll 3
  for (int i = 0; i < Bytes; i += line) __builtin_prefetch(from + panel_ahead + i, 0, 0);
#pragma GCC unroll 6
  for (int i = 0; i < Bytes; i += 32) v::stream32(to + i, from + i);
}

VELO_INLINE void copy_row(const char* from, char* to, int64_t bytes, bool around) {
  if (!around) {
    __builtin_memcpy(to, from, static_cast<uint64_t>(bytes));
  } else if (bytes == 192) {  // a panel of float32
    stream_row<192>(from, to);
  } else if (bytes == 96) {  // of 16-bit numbers
    stream_row<96>(from, to);
  } else {
    for (int64_t i = 0; i < bytes; i += 32) stream_row<32>(from + i, to + i);
  }
}

void copy_panel_rows(const panel_rows& b) {
  for (int64_t at = 0, width; at < b.row_bytes; at += width) {
    const int64_t left = b.row_bytes - at, one = b.panel < left ? b.panel : left;
    width = one % line != 0 && left >= 2 * one ? 2 * one : one;
    const char* from = b.from + at * b.rows + b.first * one;
    char* to = b.to + at;
    const bool around = (reinterpret_cast<uintptr_t>(to) | static_cast<uint64_t>(b.ld_to) |
                         static_cast<uint64_t>(width)) %
                            line ==
                        0;
    for (int64_t row = b.first; row < b.end; ++row, from += one, to += b.ld_to) {
      copy_row(from, to, one, around);
      if (width > one) copy_row(from + one * b.rows, to + one, one, around);
    }
  }
  v::fence();
}
