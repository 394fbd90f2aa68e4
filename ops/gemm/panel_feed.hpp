// What happens to the panel of B that comes next while this one is multiplied, call by call of the
// micro-kernel: its lines are fetched, or, where the task packs for itself, the lines of its source
// are fetched and it is packed strip by strip.
//
// A row of a panel is too short for the hardware to see where the next one lies, so packing a panel
// in one go waits for memory most of the time; between products a strip is packed from the second
// cache. Invariant: after finish() the panel is packed whole. Cost: two line fetches a step at
// most, and the instructions of packing.
#pragma once

#include "ops/gemm/gemm_plan.hpp"

namespace velo::ops {

class panel_feed {
 public:
  panel_feed() = default;  // nothing comes next

  // A panel that is packed already; `calls` of the micro-kernel will be made meanwhile.
  panel_feed(const std::uint32_t* words, int depth_words, int width, int calls);

  // Pass p of panel q, to be packed to `to`.
  panel_feed(const packed_form& form, const source_matrix& b, std::int64_t p, std::int64_t q,
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

  // What is fetched: strips (a packed panel is one), each of them runs of lines side by side, a run
  // a call after some idle ones. Steps are in bytes: from strip to strip, run to run, line to line,
  // and beside a line.
  const char* first_ = nullptr;
  std::int64_t strip_step_ = 0, run_step_ = 0, line_step_ = 0, beside_ = 0;
  int strips_ = 0, runs_ = 0, steps_ = 0, idle_ = 0, calls_a_strip_ = 1;
};

}  // namespace velo::ops
