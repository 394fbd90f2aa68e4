// Rows of a table of 16384 that is cut between two ranks: vocab_parallel_embedding.
//
// It takes turns with its composition: embedding of this rank's rows, which has a row of zeros for
// the indices of the other rank, and velo_group_all_reduce of y. The composition gets its indices
// ready made. Results are held against the composition's, bit for bit. y of 16 tokens fits the
// second cache; that of 4096, 32 MiB in float32, comes from memory.
#include "bench/harness/require.hpp"
#include "bench/parallel/pair_rows.hpp"

namespace velo::bench {
namespace {

constexpr std::int64_t table_rows = 16384, own_rows = table_rows / ranks, width = 2048;

struct row {
  dtype type;
  std::int64_t tokens;

  bool in_cache() const { return tokens <= 16; }
  std::string text() const {
    return std::to_string(tokens) + "x" + std::to_string(width) +
           (in_cache() ? " in cache" : " from memory");
  }
};

// One rank's tensors and calls of a row.
class lookups {
 public:
  lookups(const row& r, const rank_of& me)
      : r_(r),
        me_(me),
        weight_(bytes(own_rows + 1)),
        y_(bytes(r.tokens)),
        composed_(bytes(r.tokens)),
        out_shape_{r.tokens, width} {
    for (std::size_t i = 0; i < bytes(own_rows); ++i)
      weight_[i] = static_cast<unsigned char>((i * 2654435761u >> 13) % 64 + 32u * part());
    for (std::int64_t t = 0; t < r.tokens; ++t) {
      const auto index = static_cast<std::int64_t>(t * 2654435761 % table_rows);
      indices_.push_back(index);
      own_.push_back(index / own_rows == me.number ? index % own_rows : own_rows);
    }
  }

  void call(int which) const { which == ours ? call_fused() : compose(); }
  bool is_right() const { return y_ == composed_; }

 private:
  unsigned part() const { return static_cast<unsigned>(me_.number); }
  std::size_t bytes(std::int64_t rows) const {
    return static_cast<std::size_t>(rows * width * (r_.type == dtype::f32 ? 4 : 2));
  }
  velo_tensor matrix(const std::vector<unsigned char>& of, const std::int64_t (&shape)[2]) const {
    const velo_dtype type = r_.type == dtype::bf16 ? velo_dtype{VELO_DTYPE_BFLOAT, 16, 1}
                                                   : velo_dtype{VELO_DTYPE_FLOAT, 32, 1};
    return {
        const_cast<unsigned char*>(of.data()), {VELO_DEVICE_CPU, 0}, 2, type, shape, nullptr, 0};
  }
  velo_tensor list(const std::vector<std::int64_t>& of) const {
    return {const_cast<std::int64_t*>(of.data()),
            {VELO_DEVICE_CPU, 0},
            1,
            {VELO_DTYPE_INT, 64, 1},
            out_shape_,
            nullptr,
            0};
  }
  void call_fused() const {
    const velo_tensor indices = list(indices_), weight = matrix(weight_, rows_shape),
                      y = matrix(y_, out_shape_);
    velo_vocab_parallel_embedding_args args = VELO_VOCAB_PARALLEL_EMBEDDING_ARGS_INIT;
    args.group = me_.group, args.indices = &indices, args.weight = &weight, args.y = &y;
    require(velo_vocab_parallel_embedding(me_.stream, &args));
  }
  void compose() const {
    const velo_tensor ids = list(own_), table = matrix(weight_, padded_shape),
                      y = matrix(composed_, out_shape_);
    velo_embedding_args args = VELO_EMBEDDING_ARGS_INIT;
    args.ids = &ids, args.table = &table, args.y = &y;
    require(velo_embedding(me_.stream, &args));
    require(velo_group_all_reduce(me_.stream, me_.group, nullptr, &y, &y));
  }

  static constexpr std::int64_t rows_shape[] = {own_rows, width},
                                padded_shape[] = {own_rows + 1, width};
  const row r_;
  const rank_of& me_;
  std::vector<unsigned char> weight_, y_, composed_;
  const std::int64_t out_shape_[2];
  std::vector<std::int64_t> indices_, own_;
};

}  // namespace

bool measure_embeddings(const pair_options& set, board& all, const row_taker& take) {
  for (const dtype type : {dtype::f32, dtype::bf16})
    for (const std::int64_t tokens : {16, 4096}) {
      const row r{type, tokens};
      const pair_row of{"vocab_parallel_embedding", type, r.text(), "composition", r.in_cache()};
      if (!measure_pair<lookups>(of, r, set, all, take)) return false;
    }
  return true;
}

}  // namespace velo::bench
