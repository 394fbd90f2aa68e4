// Rows of a table of 16384 that is cut between two ranks: vocab_parallel_embedding, and its
// gradient with sequence parallelism.
//
// The forward takes turns with its composition: embedding of this rank's rows, which has a row of
// zeros for the indices of the other rank, and velo_group_all_reduce of y. The gradient adds to a
// float32 one of the table. Its composition is velo_group_all_gather of dy and embedding_backward,
// which has a row for the indices of the other rank, too. Compositions get their indices ready
// made. Results are held against the composition's, bit for bit. y or dy of 16 tokens fits the
// second cache; that of 4096, 32 MiB in float32, comes from memory.
#include "bench/harness/require.hpp"
#include "bench/parallel/pair_rows.hpp"

namespace velo::bench {
namespace {

constexpr std::int64_t table_rows = 16384, own_rows = table_rows / ranks, width = 2048;

struct row {
  dtype type;
  std::int64_t tokens;
  bool gradient;

  std::string name() const {
    return gradient ? "vocab_parallel_embedding_backward" : "vocab_parallel_embedding";
  }
  std::size_t bytes(std::int64_t rows) const {
    return static_cast<std::size_t>(rows * width * (type == dtype::f32 ? 4 : 2));
  }
  bool in_cache() const { return tokens <= 16; }
  std::string text() const {
    return std::to_string(tokens) + "x" + std::to_string(width) +
           (in_cache() ? " in cache" : " from memory");
  }
};

using matrix_shape = std::int64_t[2];
constexpr matrix_shape own_shape = {own_rows, width}, padded_shape = {own_rows + 1, width};

velo_tensor matrix(const std::vector<unsigned char>& of, dtype type, const matrix_shape& shape) {
  const velo_dtype made = type == dtype::bf16 ? velo_dtype{VELO_DTYPE_BFLOAT, 16, 1}
                                              : velo_dtype{VELO_DTYPE_FLOAT, 32, 1};
  return {const_cast<unsigned char*>(of.data()), {VELO_DEVICE_CPU, 0}, 2, made, shape, nullptr, 0};
}

// Numbers that differ between ranks.
void fill(std::vector<unsigned char>& bytes, std::size_t count, int rank) {
  for (std::size_t i = 0; i < count; ++i)
    bytes[i] = static_cast<unsigned char>((i * 2654435761u >> 13) % 64 +
                                          32u * static_cast<unsigned>(rank));
}

// The indices of all tokens, and this rank's rows, with own_rows for the indices of the other one.
struct index_lists {
  index_lists(std::int64_t tokens, int rank) : count{tokens} {
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto index = static_cast<std::int64_t>(t * 2654435761 % table_rows);
      all.push_back(index);
      own.push_back(index / own_rows == rank ? index % own_rows : own_rows);
    }
  }
  velo_tensor view(const std::vector<std::int64_t>& of) const {
    return {const_cast<std::int64_t*>(of.data()),
            {VELO_DEVICE_CPU, 0},
            1,
            {VELO_DTYPE_INT, 64, 1},
            count,
            nullptr,
            0};
  }

  const std::int64_t count[1];
  std::vector<std::int64_t> all, own;
};

// One rank's tensors and calls of a forward row.
class lookups {
 public:
  lookups(const row& r, const rank_of& me)
      : r_(r),
        me_(me),
        indices_(r.tokens, me.number),
        out_shape_{r.tokens, width},
        weight_(r.bytes(own_rows + 1)),
        y_(r.bytes(r.tokens)),
        composed_(r.bytes(r.tokens)) {
    fill(weight_, r.bytes(own_rows), me.number);
  }

  void call(int which) const { which == ours ? call_fused() : compose(); }
  bool is_right() const { return y_ == composed_; }

 private:
  void call_fused() const {
    const velo_tensor indices = indices_.view(indices_.all),
                      weight = matrix(weight_, r_.type, own_shape),
                      y = matrix(y_, r_.type, out_shape_);
    velo_vocab_parallel_embedding_args args = VELO_VOCAB_PARALLEL_EMBEDDING_ARGS_INIT;
    args.group = me_.group, args.indices = &indices, args.weight = &weight, args.y = &y;
    require(velo_vocab_parallel_embedding(me_.stream, &args));
  }
  void compose() const {
    const velo_tensor ids = indices_.view(indices_.own),
                      table = matrix(weight_, r_.type, padded_shape),
                      y = matrix(composed_, r_.type, out_shape_);
    velo_embedding_args args = VELO_EMBEDDING_ARGS_INIT;
    args.ids = &ids, args.table = &table, args.y = &y;
    require(velo_embedding(me_.stream, &args));
    require(velo_group_all_reduce(me_.stream, me_.group, nullptr, &y, &y));
  }

  const row r_;
  const rank_of& me_;
  const index_lists indices_;
  const matrix_shape out_shape_;
  std::vector<unsigned char> weight_, y_, composed_;
};

// One rank's tensors and calls of a gradient's row. Both contenders are called equally often, so
// that their sums agree.
class gradients {
 public:
  gradients(const row& r, const rank_of& me)
      : r_(r),
        me_(me),
        indices_(r.tokens, me.number),
        part_shape_{r.tokens / ranks, width},
        all_shape_{r.tokens, width},
        dy_(r.bytes(part_shape_[0])),
        gathered_(r.bytes(r.tokens)),
        dweight_(sums_bytes(own_rows)),
        composed_(sums_bytes(own_rows + 1)) {
    fill(dy_, dy_.size(), me.number);
  }

  void call(int which) const { which == ours ? call_fused() : compose(); }
  bool is_right() const {
    return std::memcmp(dweight_.data(), composed_.data(), dweight_.size()) == 0;
  }

 private:
  static std::size_t sums_bytes(std::int64_t rows) {
    return static_cast<std::size_t>(rows * width) * sizeof(float);
  }
  void call_fused() const {
    const velo_tensor indices = indices_.view(indices_.all), dy = matrix(dy_, r_.type, part_shape_),
                      dweight = matrix(dweight_, dtype::f32, own_shape);
    velo_vocab_parallel_embedding_backward_args args =
        VELO_VOCAB_PARALLEL_EMBEDDING_BACKWARD_ARGS_INIT;
    args.group = me_.group, args.indices = &indices, args.dy = &dy, args.dweight = &dweight;
    args.rows = own_rows, args.accumulate = args.sequence_parallel = 1;
    require(velo_vocab_parallel_embedding_backward(me_.stream, &args));
  }
  void compose() const {
    const velo_tensor ids = indices_.view(indices_.own), part = matrix(dy_, r_.type, part_shape_),
                      dy = matrix(gathered_, r_.type, all_shape_),
                      dtable = matrix(composed_, dtype::f32, padded_shape);
    require(velo_group_all_gather(me_.stream, me_.group, &part, &dy));
    velo_embedding_backward_args args = VELO_EMBEDDING_BACKWARD_ARGS_INIT;
    args.ids = &ids, args.dy = &dy, args.dtable = &dtable;
    args.rows = own_rows + 1, args.accumulate = 1;
    require(velo_embedding_backward(me_.stream, &args));
  }

  const row r_;
  const rank_of& me_;
  const index_lists indices_;
  const matrix_shape part_shape_, all_shape_;
  std::vector<unsigned char> dy_, gathered_, dweight_, composed_;
};

}  // namespace

bool measure_embeddings(const pair_options& set, board& all, const row_taker& take) {
  for (const dtype type : {dtype::f32, dtype::bf16})
    for (const bool gradient : {false, true})
      for (const std::int64_t tokens : {16, 4096}) {
        const row r{type, tokens, gradient};
        const pair_row of{r.name(), type, r.text(), "composition", r.in_cache()};
        const bool right = gradient ? measure_pair<gradients>(of, r, set, all, take)
                                    : measure_pair<lookups>(of, r, set, all, take);
        if (!right) return false;
      }
  return true;
}

}  // namespace velo::bench
