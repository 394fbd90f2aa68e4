// How strips are cut so that a call fetches each of their lines.
#include "ops/gemm/pack/next_panel.hpp"

#include <algorithm>

#include "core/round_up.hpp"

namespace velo::ops {
namespace {

constexpr int line = 64;        // bytes
constexpr int least_rows = 32;  // of the depth in a strip: a whole line of a transposed source

int lines_of(const char* row, std::int64_t bytes) {
  const auto offset = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(row) % line);
  return static_cast<int>(core::ceil_div(offset + bytes, line));
}

}  // namespace

next_panel::next_panel(const std::uint32_t* words, int depth_words, int width, int calls) {
  const int lines = width / 16;  // of a step
  first_ = reinterpret_cast<const char*>(words);
  steps_ = depth_words;
  strips_ = 1;
  calls_a_strip_ = calls;
  runs_ = std::min(lines, calls);
  idle_ = calls - runs_;  // fetched late: A passes through L2 meanwhile
  if (calls < lines) {
    line_step_ = lines * line / calls;
    beside_ = line;
  } else {
    line_step_ = line;
  }
  run_step_ = steps_ * line_step_;
}

next_panel::next_panel(const packed_form& form, const source_matrix& b, std::int64_t p,
                       std::int64_t q, std::uint32_t* to, const gemm_kernels& kernels, int calls)
    : form_(&form), source_(b), p_(p), q_(q), to_(to), kernels_(&kernels), depth_(form.depth(p)) {
  if (depth_ == 0) return;
  const std::int64_t element = element_bytes(form.type);
  first_ = static_cast<const char*>(b.data) + form.source_index(b, p, q) * element;
  line_step_ = b.ld * element;
  run_step_ = line;
  const int panel_lines = lines_of(first_, form.columns(q) * element);
  if (b.transposed) {
    strip_ = static_cast<int>(round_up(core::ceil_div(depth_, calls), least_rows));
    runs_ = lines_of(first_, strip_ * element);
    steps_ = form.columns(q);
  } else {
    strip_ = static_cast<int>(
        round_up(core::ceil_div(depth_, std::max(calls / panel_lines, 1)), least_rows));
    runs_ = panel_lines;
    steps_ = strip_;
  }
  strip_step_ = strip_ * (b.transposed ? element : line_step_);
  strips_ = core::ceil_div(depth_, strip_);
  calls_a_strip_ = std::max(calls / strips_, 1);
}

line_run next_panel::fetch(int call) const {
  const int strip = call / calls_a_strip_, run = call % calls_a_strip_ - idle_;
  if (strip >= strips_ || run < 0 || run >= runs_) return {};
  return {first_ + strip * strip_step_ + run * run_step_, line_step_, beside_, steps_};
}

void next_panel::pack_after(int call) {
  if (form_ != nullptr && (call + 1) % calls_a_strip_ == 0) {
    pack_to((call + 1) / calls_a_strip_ * strip_);
  }
}

void next_panel::pack_to(int depth) {
  const int end = std::min(depth, depth_);
  if (end <= packed_) return;
  pack_strip(*form_, source_, p_, q_, {packed_, end}, to_, *kernels_);
  packed_ = end;
}

}  // namespace velo::ops
