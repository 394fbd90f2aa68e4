// Strips of panels, whole passes, and the tasks that threads share.
#include "ops/gemm/pack/pack_panels.hpp"

#include <algorithm>
#include <cstring>

#include "core/round_up.hpp"

namespace velo::ops {
namespace {

// Packs steps of pass `p` where a panel's passes follow each other. A narrow last panel, one of
// each half, has narrower rows, so its passes lie closer together.
void pack_pass(const packed_form& form, const source_matrix& b, std::int64_t p, depth_range steps,
               std::int64_t first, std::int64_t end, const packed_target& to,
               const gemm_kernels& kernels) {
  const std::int64_t rows_before = p * form.pass / form.per_word();
  std::int64_t even = end;
  while (even > first && form.width(even - 1) != form.panel) --even;
  pack_panels(form, b, p, steps, first, even,
              {to.words + rows_before * form.panel, to.panel_stride, to.origin}, kernels);
  if (even == end) return;
  const packed_target narrow{to.words + rows_before * form.width(even), to.panel_stride, to.origin};
  pack_panels(form, b, p, steps, even, end, narrow, kernels);
}

}  // namespace

void pack_strip(const packed_form& form, const source_matrix& b, std::int64_t p, std::int64_t q,
                depth_range steps, std::uint32_t* to, const gemm_kernels& kernels) {
  const reorder_kernels& reorders = kernels.reorders(form.type, form.compute);
  const std::int64_t bytes = element_bytes(form.type);
  const int width = form.width(q), columns = form.columns(q), rows = steps.end - steps.begin;
  const std::int64_t index = form.source_index(b, p, q) + steps.begin * (b.transposed ? 1 : b.ld);
  const void* from = static_cast<const char*>(b.data) + index * bytes;
  std::uint32_t* target = to + std::int64_t{steps.begin} / form.per_word() * width;
  if (b.transposed) {
    const reorder m{from, b.ld, columns, rows, target, width, width};
    reorders.transpose(m);
  } else {
    const reorder m{from, b.ld, rows, columns, target, width, width};
    reorders.rows(m);
  }
}

void pack_panels(const packed_form& form, const source_matrix& b, std::int64_t p, depth_range steps,
                 std::int64_t first, std::int64_t end, const packed_target& to,
                 const gemm_kernels& kernels) {
  constexpr int strip = 32;  // rows of a strip stay in the TLB while its panels are packed
  const int step = b.transposed ? steps.end - steps.begin : strip;
  for (int k = steps.begin; k < steps.end; k += step) {
    for (int half = 0; half < form.halves; ++half) {  // each in the order of its columns
      for (std::int64_t q = first + half; q < end; q += form.halves)
        pack_strip(form, b, p, q, {k, std::min(k + step, steps.end)}, to.panel(q), kernels);
    }
  }
  const int used = form.depth_words(p);
  const int all = form.padded_depth(p) / form.per_word();
  if (steps.end < form.depth(p) || used == all) return;
  for (std::int64_t q = first; q < end; ++q) {
    const int width = form.width(q);
    std::memset(to.panel(q) + std::int64_t{used} * width, 0,
                static_cast<std::size_t>(all - used) * static_cast<std::size_t>(width) * 4);
  }
}

// A task packs a few panels side by side; where there are many threads, one panel, and then a part
// of its depth.
void pack_in_parallel(const packed_form& form, const source_matrix& b, std::int64_t first,
                      std::int64_t end, std::uint32_t* words, const core::parallel& threads,
                      const gemm_kernels& kernels) {
  constexpr int least_depth = 64;
  const std::int64_t panels = end - first, passes = form.passes();
  const std::int64_t wanted = 2 * std::int64_t{threads.threads()};
  const std::int64_t group = panels * passes / 4 < wanted ? 1 : 4;
  const std::int64_t tasks = core::ceil_div(panels, group) * passes;
  const std::int64_t parts =
      std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(tasks, 1), 1,
                               std::max<std::int64_t>(form.pass / least_depth, 1));
  threads(tasks * parts, [&](std::int64_t task, int) {
    const std::int64_t part = task % parts, p = task / parts % passes;
    const std::int64_t q = first + task / parts / passes * group;
    const int depth = form.depth(p);
    const auto cut = [&](std::int64_t at) {
      return at == parts ? depth : static_cast<int>(depth * at / parts / 32 * 32);
    };
    pack_pass(form, b, p, {cut(part), cut(part + 1)}, q, std::min(q + group, end),
              {words, form.panel_words(), first}, kernels);
  });
}

}  // namespace velo::ops
