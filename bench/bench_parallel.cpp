// bench_parallel: what is cut between two ranks of one thread each, a sequence, classes, a table,
// a linear layer or the rows of a norm.
//
//   build/bench/bench_parallel [--seconds S] [--filter TEXT] [--json]
//
// Exchanges of rows and heads take turns with their composition: transpositions and
// velo_group_all_to_all. Shapes: rows of each rank, heads of all, elements of a head. Results are
// held against the composition's, bit for bit. Causal attention takes turns with the whole sequence
// on one rank: parallel/attention_rows.cpp. Shapes: rows of all, heads of queries : of keys,
// elements of a head, kind of plan. The loss of cut classes takes turns with that of all classes on
// one rank: parallel/loss_rows.cpp. Shapes: tokens, classes of all ranks, where the logits lie. Its
// rates from memory are held against two threads' limit. Linear layers take turns with their
// composition, gradients with their products alone, too: parallel/linear_rows.cpp; and pairs of
// layers with packed weights: parallel/packed_pair_rows.cpp. So do rows of a cut table:
// parallel/embedding_rows.cpp; shapes: tokens, elements of a row, where y lies. Norms of a cut
// hidden dimension take turns with norms of whole rows: parallel/norm_rows.cpp. Tokens to experts
// and back take turns with their composition: parallel/dispatch_rows.cpp; so do layers of experts
// whose messages travel meanwhile: parallel/expert_layer_rows.cpp. Ranks are threads (local)
// and processes (shm). A filter is a part of "operator type shape by", of attention without the
// kind. Goals: goals.json, parallel.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "bench/comm/two_ranks.hpp"
#include "bench/harness/require.hpp"
#include "bench/harness/result.hpp"
#include "bench/parallel/pair_rows.hpp"

namespace velo::bench {
namespace {

struct row {
  dtype type;
  std::int64_t rows, heads, elements;
  bool to_heads;

  std::string text() const {
    return std::to_string(rows) + "x" + std::to_string(heads) + "x" + std::to_string(elements) +
           (to_heads ? " to heads" : " to rows");
  }
  std::size_t bytes() const { return static_cast<std::size_t>(rows * heads) * head_bytes(); }
  std::size_t head_bytes() const {
    return static_cast<std::size_t>(elements) * (type == dtype::f32 ? 4 : 2);
  }
};

// One rank's tensors and calls of a row.
class exchange {
 public:
  exchange(const row& r, const rank_of& me)
      : r_(r),
        me_(me),
        by_rows_{r.rows, r.heads, r.elements},
        by_heads_{r.rows * ranks, r.heads / ranks, r.elements},
        x_(r.bytes()),
        between_(r.bytes()),
        y_(r.bytes()),
        composed_(r.bytes()) {
    for (std::size_t i = 0; i < x_.size(); ++i)
      x_[i] = static_cast<unsigned char>((i * 2654435761u >> 13) % 64 + 32 * me.number);
  }

  void call(int which) { which == ours ? call_fused() : compose(); }
  bool is_right() const { return y_ == composed_; }

 private:
  velo_tensor view(const std::vector<unsigned char>& of, const std::int64_t (&shape)[3]) const {
    const velo_dtype type = r_.type == dtype::bf16 ? velo_dtype{VELO_DTYPE_BFLOAT, 16, 1}
                                                   : velo_dtype{VELO_DTYPE_FLOAT, 32, 1};
    return {
        const_cast<unsigned char*>(of.data()), {VELO_DEVICE_CPU, 0}, 3, type, shape, nullptr, 0};
  }
  void call_fused() const {
    const velo_tensor x = view(x_, r_.to_heads ? by_rows_ : by_heads_),
                      y = view(y_, r_.to_heads ? by_heads_ : by_rows_);
    velo_sequence_all_to_all_args args = VELO_SEQUENCE_ALL_TO_ALL_ARGS_INIT;
    args.group = me_.group, args.x = &x, args.y = &y;
    args.to = r_.to_heads ? VELO_SEQUENCE_CUT_HEADS : VELO_SEQUENCE_CUT_ROWS;
    require(velo_sequence_all_to_all(me_.stream, &args));
  }
  void all_to_all(const std::vector<unsigned char>& from, std::vector<unsigned char>& to) const {
    const velo_tensor in = view(from, by_heads_), out = view(to, by_heads_);
    require(velo_group_all_to_all(me_.stream, me_.group, &in, &out));
  }
  // Rows of all heads become, for each rank, rows of its heads; or the reverse.
  void transpose(const std::vector<unsigned char>& from, std::vector<unsigned char>& to,
                 bool apart) const {
    const std::size_t part = r_.head_bytes() * static_cast<std::size_t>(r_.heads / ranks);
    for (std::size_t i = 0, n = static_cast<std::size_t>(r_.rows); i < n; ++i)
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        const std::size_t together = (i * ranks + rank) * part, own = (rank * n + i) * part;
        std::memcpy(to.data() + (apart ? own : together), from.data() + (apart ? together : own),
                    part);
      }
  }
  void compose() {
    if (r_.to_heads) {
      transpose(x_, between_, true);
      all_to_all(between_, composed_);
    } else {
      all_to_all(x_, between_);
      transpose(between_, composed_, false);
    }
  }

  const row r_;
  const rank_of& me_;
  const std::int64_t by_rows_[3], by_heads_[3];
  std::vector<unsigned char> x_, between_, y_, composed_;
};

void print(const result& made, int rounds) {
  const double us = 1e6 * made.p25s[0], ratio = made.peers[0].ratios[0];
  std::printf("%-37s %-4s %-26s %-8s %-11s %9.0f %9.0f %7.2f %5d\n", made.name.c_str(),
              name_of(made.type), made.shape.c_str(), made.residency.c_str(),
              made.peers[0].name.c_str(), us * ratio, us, 1 / ratio, rounds);
  std::fflush(stdout);
}

std::vector<row> all_rows() {
  std::vector<row> rows;
  for (const dtype type : {dtype::f32, dtype::bf16})
    for (const bool to_heads : {true, false}) {
      rows.push_back({type, 256, 16, 64, to_heads});
      rows.push_back({type, 1024, 16, 64, to_heads});
      rows.push_back({type, 4096, 32, 128, to_heads});
    }
  return rows;
}

bool measure_exchanges(const pair_options& set, board& all, const row_taker& take) {
  for (const row& r : all_rows()) {
    const pair_row of{"sequence_all_to_all", r.type, r.text(), "composition"};
    if (!measure_pair<exchange>(of, r, set, all, take)) return false;
  }
  return true;
}

int run(int argc, char** argv) {
  pair_options set;
  if (!read_options(argc, argv, "bench_parallel", set)) return 2;
  board& all = board::make();
  if (!set.json)
    std::printf("%-37s %-4s %-26s %-8s %-11s %9s %9s %7s %5s\n", "operator", "type", "shape", "by",
                "peer", "peer us", "us", "share", "calls");
  const auto print_transit = [](const char* when) {
    std::fprintf(stderr, "bench_parallel: %s, a cache line passed between the ranks in %.0f ns\n",
                 when, 1e9 * line_transit());
  };
  print_transit("before the rows");
  std::vector<result> results;
  const row_taker take = [&](const result& made, int rounds) {
    results.push_back(made);
    set.json ? print_json(stdout, made) : print(made, rounds);
  };
  for (const auto measure :
       {measure_exchanges, measure_attention, measure_losses, measure_embeddings, measure_linears,
        measure_packed_pairs, measure_norms, measure_dispatches, measure_expert_layers})
    if (!measure(set, all, take)) return 2;
  print_transit("after the rows");
  return judge_pairs("parallel", results, set.json);
}

}  // namespace
}  // namespace velo::bench

int main(int argc, char** argv) {
  return velo::bench::run(argc, argv);
}
