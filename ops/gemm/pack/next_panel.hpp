// The panel of B that comes next, prepared while this one is multiplied: between calls of the
// micro-kernel its lines are prefetched. A task that packs for itself prefetches the lines of the
// panel's source and packs it strip by strip.
//
// A row of a panel is too short for the hardware to predict where the next one lies, so packing a
// panel in one go waits for memory most of the time. Between products a strip is packed from L2.
// Invariant: after finish() the panel is packed whole. Cost: two line fetches a step at most, and
// the instructions of packing.
#pragma once

#include "ops/gemm/kernel/micro_kernel.hpp"
#include "ops/gemm/pack/pack_panels.hpp"

namespace velo::ops {

class next_panel {
 public:
  next_panel() = default;  // there is none

  // A panel that is packed already; `calls` of the micro-kernel will be made meanwhile.
  next_panel(const std::uint32_t* words, int depth_words, int width, int calls);

  // Pass p of panel q, to be packed to `to`.
  next_panel(const packed_form& form, const source_matrix& b, std::int64_t p, std::int64_t q,
             std::uint32_t* to, const gemm_kernels& kernels, int calls);

  line_run fetch(int call) const;
  void pack_after(int call);
  void finish() { pack_to(depth_); }

 private:
  void pack_to(int depth);

  const packed_form* form_ = nullptr;  // of the panel to pack, or null
  source_matrix source_{};
  std::int64_t p_ = 0, q_ = 0;
  std::uint32_t* to_ = nullptr;
  const gemm_kernels* kernels_ = nullptr;
  int depth_ = 0, packed_ = 0, strip_ = 0;

  // The lines to fetch: strips (a packed panel is one), each of them runs of lines side by side,
  // one run a call after some idle calls. Steps are in bytes: from strip to strip, run to run, line
  // to line, and beside a line.
  const char* first_ = nullptr;
  std::int64_t strip_step_ = 0, run_step_ = 0, line_step_ = 0, beside_ = 0;
  int strips_ = 0, runs_ = 0, steps_ = 0, idle_ = 0, calls_a_strip_ = 1;
};

}  // namespace velo::ops
