// The gradient of pse: dS, summed over the batches, heads and rows that share an element, times the
// factor of pse.
//
// A unit of work is 256 keys and 128 queries of one entry of pse, or all queries where its rows are
// one. It makes dS^T of its block for each batch and head in their order (attention_gradient.hpp)
// and adds it up in floats, so the bits do not depend on threads. Cost: two products a score beside
// those of the backward pass, which makes dS of an element in several places at once.
#include <cstring>

#include "ops/attention/engine/attention_gradient.hpp"

namespace velo::ops {
namespace {

constexpr int key_block = 256, query_block = gradient_query_block;

class bias_pass {
 public:
  bias_pass(const attention_problem& problem, const attention_gradients& tensors,
            const attention_run& run)
      : p_(problem),
        t_(tensors),
        run_(run),
        gradients_(problem, tensors, run.isa),
        shape_(gradients_.shape),
        tiles_(problem, run.isa) {}

  void operator()() const {
    const std::int64_t batches = p_.dpse.batch > 0 ? p_.batch : 1;
    const std::int64_t heads = p_.dpse.head > 0 ? p_.heads : 1;
    const std::int64_t rows = p_.dpse.row > 0 ? core::ceil_div(p_.sq, query_block) : 1;
    const std::int64_t keys = core::ceil_div(p_.skv, key_block);
    const memory sizes(shape_);
    run_.threads(batches * heads * rows * keys, [&](std::int64_t unit, int thread) {
      const tile_session session(shape_.form.kernels.tiles);
      attention_arena arena(static_cast<char*>(run_.scratch) + thread * sizes.bytes);
      const memory own(arena, shape_);
      const std::int64_t k0 = unit % keys * key_block, entry = unit / keys;
      const std::int64_t q0 = entry % rows * query_block, head = entry / rows % heads;
      one_unit(entry / rows / heads, head, q0, k0, own);
    });
  }

  static std::size_t bytes(const attention_problem& problem, core::isa isa, int threads) {
    return static_cast<std::size_t>(memory(attention_shape(problem, isa)).bytes * threads);
  }

 private:
  struct memory {
    chunk_state state;
    head_state head;
    float* sum;  // [key_block][query_block]
    std::int64_t bytes;

    memory(attention_arena& arena, const attention_shape& shape)
        : state(arena, shape, largest_key_block),
          head(arena, shape, query_block),
          sum(arena.take<float>(key_block * query_block)),
          bytes(static_cast<std::int64_t>(arena.used())) {}
    explicit memory(const attention_shape& shape, attention_arena arena = attention_arena(nullptr))
        : memory(arena, shape) {}
  };

  // The entries of a dimension that an entry of pse stands for: itself, or all.
  struct span {
    std::int64_t begin, end;
    span(std::int64_t stride, std::int64_t entry, std::int64_t count)
        : begin(stride > 0 ? entry : 0), end(stride > 0 ? entry + 1 : count) {}
  };

  void one_unit(std::int64_t batch, std::int64_t head, std::int64_t q0, std::int64_t k0,
                const memory& own) const {
    std::memset(own.sum, 0, sizeof(float) * key_block * query_block);
    const span batches(p_.dpse.batch, batch, p_.batch), heads(p_.dpse.head, head, p_.heads);
    for (std::int64_t b = batches.begin; b < batches.end; ++b) {
      for (std::int64_t h = heads.begin; h < heads.end; ++h) add_head(b, h, q0, k0, own);
    }
    write(batch, head, q0, k0, own);
  }

  // Adds dS^T of the unit's queries and keys of a head.
  void add_head(std::int64_t b, std::int64_t h, std::int64_t q0, std::int64_t k0,
                const memory& own) const {
    const attention_sequence s = sequence_of(p_, b);
    chunk c{b, h / shape_.group, k0, std::min<std::int64_t>(key_block, s.skv - k0), s};
    gradients_.begin(c, own.state);
    const std::int64_t last = p_.dpse.row > 0 ? std::min(q0 + query_block, s.sq) : s.sq;
    for (c.first_packed = q0; c.first_packed < last; c.first_packed += query_block)
      add_block(c, h, own);
  }

  // Adds the block of queries that begins at c.first_packed.
  void add_block(const chunk& c, std::int64_t h, const memory& own) const {
    const std::int64_t q0 = c.first_packed;
    const chunk::key_span seen = c.seen_by(q0, chunk_gradients::queries_at(c.s, q0));
    if (seen.begin >= seen.end) return;
    gradients_.pack_queries(c, h, q0, own.head);
    for (std::int64_t r = seen.begin / gradient_strip * gradient_strip; r < seen.end;
         r += gradient_strip) {
      const strip_columns columns = gradients_.score_gradients(c, h, q0, 0, r, own.state, own.head);
      const term_sum sum{gradients_.gradient_rows_of(own.head, r),
                         query_block * shape_.form.per_word(),
                         own.sum + r * query_block,
                         query_block,
                         gradient_strip,
                         columns.first,
                         columns.last};
      shape_.form.per_word() == 1 ? tiles_.kernels().sum_f32(sum) : tiles_.kernels().sum_bf16(sum);
    }
  }

  void write(std::int64_t batch, std::int64_t head, std::int64_t q0, std::int64_t k0,
             const memory& own) const {
    const auto keys = static_cast<int>(std::min<std::int64_t>(key_block, p_.skv - k0));
    const std::int64_t first = batch * p_.dpse.batch + head * p_.dpse.head + q0 * p_.dpse.row + k0;
    char* to = static_cast<char*>(t_.dpse) + first * shape_.element;
    if (p_.dpse.row > 0) {
      const auto rows = static_cast<int>(std::min<std::int64_t>(query_block, p_.sq - q0));
      shape_.steps.write_transposed(own.sum, query_block, 1, 0, rows, keys, p_.terms->factor, to,
                                    p_.dpse.row, false);
      return;
    }
    for (int k = 0; k < keys; ++k) {
      float all = 0;
      for (int j = 0; j < query_block; ++j) all += own.sum[k * query_block + j];
      own.head.scores[k] = all;
    }
    shape_.steps.write_rows(own.head.scores, keys, 1, keys, p_.terms->factor, to, 0, false);
  }

  const attention_problem& p_;
  const attention_gradients& t_;
  const attention_run& run_;
  const chunk_gradients gradients_;
  const attention_shape& shape_;
  const attention_tiles tiles_;
};

}  // namespace

std::size_t attention_bias_gradient_bytes(const attention_problem& problem, core::isa isa,
                                          int threads) {
  return bias_pass::bytes(problem, isa, threads);
}

void attention_bias_gradient(const attention_problem& problem, const attention_gradients& tensors,
                             const attention_run& run) {
  bias_pass(problem, tensors, run)();
}

}  // namespace velo::ops
