// Norms of a hidden dimension that is cut between two ranks: parallel_rms_norm and
// parallel_layer_norm.
//
// They take turns with the norm of the whole rows on each rank. From memory the bytes allow a share
// of 0.75, since a rank reads its half twice, before and after the sums of all ranks; in cache the
// exchange of these sums outweighs the rest. Results are held against the whole's half. 32 tokens
// fit the second cache; 4096, 32 MiB a rank in float32, come from memory.
#include <cmath>

#include "bench/harness/require.hpp"
#include "bench/parallel/attention_calls.hpp"
#include "bench/parallel/pair_rows.hpp"
#include "bench/parallel/row_block.hpp"

namespace velo::bench {
namespace {

constexpr std::int64_t hidden = 4096;

struct row {
  dtype type;
  std::int64_t tokens;
  bool centered;  // layer_norm

  bool in_cache() const { return tokens <= 32; }
  const char* name() const { return centered ? "parallel_layer_norm" : "parallel_rms_norm"; }
  std::string text() const {
    return std::to_string(tokens) + "x" + std::to_string(hidden) +
           (in_cache() ? " in cache" : " from memory");
  }
};

// Columns of the rows, with their gains and results.
class columns {
 public:
  columns(const row& r, std::int64_t first, std::int64_t count)
      : x_(r.type, first_rows(r.tokens), 1, count, 1, first),
        y_(r.type, first_rows(r.tokens), 1, count, 2, first),
        gain_(static_cast<std::size_t>(count), 1.5F),
        shape_{count} {}

  template <class Args>
  void set(Args& args) const {
    args.x = &in_, args.gamma = &gamma_, args.y = &out_;
  }
  double difference(const columns& whole) const { return y_.difference(whole.y_); }

 private:
  const row_block x_, y_;
  std::vector<float> gain_;
  const std::int64_t shape_[1];
  const velo_tensor in_ = x_.matrix(), out_ = y_.matrix(), gamma_ = {gain_.data(),
                                                                     {VELO_DEVICE_CPU, 0},
                                                                     1,
                                                                     {VELO_DTYPE_FLOAT, 32, 1},
                                                                     shape_,
                                                                     nullptr,
                                                                     0};
};

// One rank's calls of a row.
class norms {
 public:
  norms(const row& r, const rank_of& me)
      : r_(r), me_(me), whole_(r, 0, hidden), own_(r, me.number * hidden / ranks, hidden / ranks) {}

  void call(int which) const {
    if (r_.centered)
      which == ours ? cut<velo_parallel_layer_norm_args>(velo_parallel_layer_norm)
                    : entire<velo_layer_norm_args>(velo_layer_norm);
    else
      which == ours ? cut<velo_parallel_rms_norm_args>(velo_parallel_rms_norm)
                    : entire<velo_rms_norm_args>(velo_rms_norm);
  }
  bool is_right() const {
    return own_.difference(whole_) <= (r_.type == dtype::bf16 ? 0x1p-7 : 1e-5);
  }

 private:
  template <class Args, class Function>
  void cut(Function* function) const {
    Args args = {};
    args.struct_size = sizeof args;
    args.epsilon = epsilon, args.group = me_.group;
    own_.set(args);
    require(function(me_.stream, &args));
  }
  template <class Args, class Function>
  void entire(Function* function) const {
    Args args = {};
    args.struct_size = sizeof args;
    args.epsilon = epsilon;
    whole_.set(args);
    require(function(me_.stream, &args));
  }

  static constexpr double epsilon = 1e-6;
  const row r_;
  const rank_of& me_;
  const columns whole_, own_;
};

}  // namespace

bool measure_norms(const pair_options& set, board& all, const row_taker& take) {
  for (const dtype type : {dtype::f32, dtype::bf16})
    for (const bool centered : {false, true})
      for (const std::int64_t tokens : {32, 4096}) {
        const row r{type, tokens, centered};
        const pair_row of{r.name(), type, r.text(), "whole", r.in_cache()};
        if (!measure_pair<norms>(of, r, set, all, take)) return false;
      }
  return true;
}

}  // namespace velo::bench
