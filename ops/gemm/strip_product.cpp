// The loops of a product that reads B in place: groups of panels side by side, strips of the depth,
// panels, micro-panels.
//
// A strip's first micro-panel reads the source and leaves the strip packed, the others read that.
// Sums wait in scratch between strips, and a call without steps finishes those of the first
// micro-panel. Every call prefetches its share of the group's next strip, so that memory is read at
// an even rate; two panels of a group make whole runs of lines of 16-bit numbers.
#include <algorithm>
#include <cstring>

#include "core/round_up.hpp"
#include "ops/gemm/tiled_product.hpp"

namespace velo::ops {

// One panel of one strip.
struct tiled_product::strip {
  std::int64_t p;           // pass
  std::int64_t group, end;  // panels that are read together
  std::int64_t q;           // the panel
  int word, words;          // steps of the pass
};

void tiled_product::multiply_strips(const tile& t, std::int64_t p, const std::uint32_t* a) const {
  const int words = form_.depth_words(p), step = plan_.strip_words();
  for (std::int64_t group = t.first; group < t.end; group += gemm_plan::strip_panels) {
    strip s{p, group, std::min(group + gemm_plan::strip_panels, t.end), 0, 0, 0};
    for (; s.word < words; s.word += step) {
      s.words = std::min(step, words - s.word);
      for (s.q = s.group; s.q < s.end; ++s.q) multiply_strip(t, s, a);
    }
    if (plan_.gated() && p == last_pass()) finish_gated(t, group + 1);
  }
}

void tiled_product::multiply_strip(const tile& t, const strip& s, const std::uint32_t* a) const {
  const micro_kernel multiply = kernels_.multiply(form_.compute);
  micro_args x = strip_args(t, s, a);
  const std::int64_t a_next = micro_rows * std::int64_t{form_.depth_words(s.p)};
  const int calls = core::ceil_div(t.rows, micro_rows);
  // The source ends with its last column, so a panel that is no whole vectors wide is packed.
  const bool whole = form_.columns(s.q) % 16 == 0;
  if (whole) {
    multiply_first_rows(t, s, x.a, lines_after(t, s, 0, calls));
  } else {
    const std::int64_t row = std::int64_t{s.word} * form_.per_word();
    const char* from = static_cast<const char*>(p_.b) + row * p_.ldb * element_bytes(p_.type);
    pack_strip(form_, {from, p_.ldb, false}, s.p, s.q, {0, s.words * form_.per_word()}, t.own_b,
               kernels_);
  }
  for (int call = 0; call < calls; ++call) {
    if (call > 0) x.fetch = lines_after(t, s, call, calls);
    x.sums = x.next_sums;
    x.next_sums += micro_rows * x.ld_sums;
    if (call > 0 || !whole) {
      multiply(x);
    } else if (x.last) {
      micro_args finish = x;
      finish.words = 0;
      finish.first = false;
      multiply(finish);
    }
    x.a += a_next;
    x.output.skip_rows(micro_rows);
  }
}

// The arguments of the micro-kernel for the first rows of a packed strip.
micro_args tiled_product::strip_args(const tile& t, const strip& s, const std::uint32_t* a) const {
  micro_args x{};
  x.a = a + std::int64_t{s.word} * micro_rows;
  x.a_row = 1;
  x.a_step = micro_rows;
  x.b = t.own_b;
  x.b_step = x.width = form_.width(s.q);
  x.words = s.words;
  x.first = s.p == 0 && s.word == 0;
  x.last = finishes(s.p) && s.word + s.words == form_.depth_words(s.p);
  x.ld_sums = plan_.sums_stride();
  x.next_sums = sums_of(t, s.q);
  x.output = output_at(t, s.q);
  return x;
}

void tiled_product::multiply_first_rows(const tile& t, const strip& s, const std::uint32_t* a,
                                        const line_run& fetch) const {
  const std::int64_t row = std::int64_t{s.word} * form_.per_word();
  source_panel x{};
  x.a = a;
  x.b = static_cast<const char*>(p_.b) +
        (form_.source_index(source_of_b(), s.p, s.q) + row * p_.ldb) * element_bytes(p_.type);
  x.ldb = p_.ldb;
  x.words = s.words;
  x.width = form_.width(s.q);
  x.rows = std::min(t.rows, micro_rows);
  x.packed = t.own_b;
  x.first = s.p == 0 && s.word == 0;
  x.ld_sums = plan_.sums_stride();
  x.sums = sums_of(t, s.q);
  x.fetch = fetch;
  kernels_.multiply_source(form_.type, form_.compute)(x);
}

// A call's share of the lines that come after the strip: those of the group's next strip, the next
// group's or the next pass' first. They are runs over the strip's rows, of three lines each:
// a panel of f32, or two of 16 bits that are neighbors.
line_run tiled_product::lines_after(const tile& t, const strip& s, int call, int calls) const {
  constexpr std::int64_t line = 64, run = 3 * line;
  std::int64_t p = s.p, group = s.group, end = s.end, word = s.word + s.words;
  if (word == form_.depth_words(p)) {
    word = 0;
    group = end < t.end ? end : t.first;
    end = std::min(group + gemm_plan::strip_panels, t.end);
    if (group == t.first && ++p == form_.passes()) return {};
  }
  const std::int64_t left = form_.depth_words(p) - word;
  const std::int64_t rows = std::min<std::int64_t>(left, plan_.strip_words()) * form_.per_word();
  const std::int64_t element = element_bytes(p_.type), step = p_.ldb * element;
  const std::int64_t panels = plan_.gated() || form_.panel * element >= run ? 1 : 2;  // of a run
  const std::int64_t runs = core::ceil_div(end - group, panels);
  const std::int64_t count = rows * runs;
  const std::int64_t all_calls = (s.end - s.group) * calls;
  const std::int64_t at = (s.q - s.group) * calls + call;
  const std::int64_t first = count * at / all_calls, last = count * (at + 1) / all_calls;
  // A run begins within its first line, so that it ends in the last one that it touches.
  const char* from = static_cast<const char*>(p_.b) + line - 1 +
                     (form_.source_index(source_of_b(), p, group + first / rows * panels) +
                      (word * form_.per_word() + first % rows) * p_.ldb) *
                         element;
  const std::int64_t steps = std::min(last - first, rows - first % rows);
  return {from, step, line, static_cast<int>(steps)};
}

}  // namespace velo::ops
