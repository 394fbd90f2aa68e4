// The backward pass: which chunk of keys meets which queries (attention_gradient.hpp), in parallel.
//
// A unit of work is a chunk of keys of one key head: it owns its rows of dK and dV over all query
// heads of the group, and sums dQ^T of one head at a time. With many key heads a chunk is the whole
// sequence and the unit finishes dQ; with few, each chunk has a dQ^T of its own and the chunks are
// added in order afterwards. The number of chunks depends on the problem alone, so the bits do not
// depend on threads.
#include "ops/attention/engine/attention_gradient.hpp"

namespace velo::ops {
namespace {

constexpr int query_block = gradient_query_block;

// The cut of a head's keys: enough units for many threads even with few key heads.
struct chunking {
  std::int64_t chunks, keys;

  chunking(const attention_problem& problem, std::int64_t pairs) {
    constexpr std::int64_t wanted_units = 16, fewest_keys = 1024;
    const std::int64_t most = std::max<std::int64_t>(1, problem.skv / fewest_keys);
    const std::int64_t cut = std::clamp<std::int64_t>(
        core::ceil_div(wanted_units, std::max<std::int64_t>(pairs, 1)), 1, most);
    keys = std::max<std::int64_t>(largest_key_block,
                                  round_up(core::ceil_div(problem.skv, cut), largest_key_block));
    chunks = std::max<std::int64_t>(1, core::ceil_div(problem.skv, keys));
  }
};

class backward_pass {
 public:
  backward_pass(const attention_problem& problem, const attention_gradients& tensors,
                const attention_run& run)
      : p_(problem),
        t_(tensors),
        run_(run),
        gradients_(problem, tensors, run.isa),
        shape_(gradients_.shape),
        cut_(problem, shape_.pairs),
        queries_(round_up(problem.sq, query_block)) {}

  void operator()() const { cut_.chunks == 1 ? whole_sequences() : chunks(); }

  static std::size_t bytes(const attention_problem& problem, core::isa isa, int threads) {
    const attention_shape shape(problem, isa);
    const chunking cut(problem, shape.pairs);
    const layout sizes(problem, shape, cut);
    const std::int64_t units =
        cut.chunks == 1 ? threads : wave_pairs(threads, cut, shape) * cut.chunks;
    return static_cast<std::size_t>(units * (sizes.chunk + sizes.dq) + threads * sizes.head);
  }

 private:
  struct layout {
    std::int64_t chunk, head, dq;  // bytes

    layout(const attention_problem& problem, const attention_shape& shape, const chunking& cut) {
      const std::int64_t queries = round_up(problem.sq, query_block);
      attention_arena chunks(nullptr), heads(nullptr);
      chunk_state(chunks, shape, cut.keys);
      head_state(heads, shape, queries);
      chunk = static_cast<std::int64_t>(chunks.used());
      head = static_cast<std::int64_t>(heads.used());
      dq = queries * shape.d * 4;
    }
  };

  // Pairs whose chunks are computed in one parallel region: two units a thread balance their
  // lengths.
  static std::int64_t wave_pairs(int threads, const chunking& cut, const attention_shape& shape) {
    return std::min(shape.pairs, core::ceil_div(2 * threads, cut.chunks));
  }

  static std::int64_t pair_cost(const attention_sequence& s) {
    return 1 + s.skv / 64 + s.sq / 64 + static_cast<std::int64_t>(s.keys.pairs() / 1024);
  }

  // ---- one unit a key head ----

  void whole_sequences() const {
    const int threads = run_.threads.threads();
    const layout sizes(p_, shape_, cut_);
    char* base = static_cast<char*>(run_.scratch);
    const std::int64_t each = sizes.chunk + sizes.head + sizes.dq;
    std::int64_t total = 0;
    for (std::int64_t b = 0; b < p_.batch; ++b)
      total += p_.kv_heads * pair_cost(sequence_of(p_, b));
    if (total == 0) return;
    run_.threads(threads, [&](std::int64_t index, int thread) {
      const tile_session session(shape_.form.kernels.tiles);
      attention_arena arena(base + thread * each);
      const chunk_state state(arena, shape_, cut_.keys);
      const head_state head(arena, shape_, queries_);
      float* dq = arena.take<float>(queries_ * shape_.d);
      attention_slice units(total, index, threads);
      for (std::int64_t b = 0; b < p_.batch; ++b) {
        const attention_sequence s = sequence_of(p_, b);
        const std::int64_t cost = pair_cost(s);
        if (units.skip(p_.kv_heads * cost)) continue;
        for (std::int64_t g = 0; g < p_.kv_heads; ++g) {
          if (units.next(cost)) pair({b, g, 0, s.skv, s}, state, head, dq);
        }
      }
    });
  }

  void pair(const chunk& c, const chunk_state& state, const head_state& head, float* dq) const {
    gradients_.begin(c, state);
    for (std::int64_t h = c.kv_head * shape_.group; h < (c.kv_head + 1) * shape_.group; ++h) {
      one_head(c, h, state, head, dq);
      for (std::int64_t q0 = 0; q0 < c.s.sq; q0 += query_block)
        write_queries(c.b, h, c.s, q0, dq, 0);
    }
    gradients_.end(c, state);
  }

  // ---- several chunks a key head ----

  void chunks() const {
    const int threads = run_.threads.threads();
    const layout sizes(p_, shape_, cut_);
    const std::int64_t pairs = wave_pairs(threads, cut_, shape_);
    char* states = static_cast<char*>(run_.scratch);
    char* sums = states + pairs * cut_.chunks * sizes.chunk;
    char* heads = sums + pairs * cut_.chunks * sizes.dq;
    for (std::int64_t first = 0; first < shape_.pairs; first += pairs) {
      const std::int64_t now = std::min(pairs, shape_.pairs - first);
      for (std::int64_t i = 0; i < shape_.group; ++i) {
        run_.threads(threads, [&](std::int64_t index, int thread) {
          const tile_session session(shape_.form.kernels.tiles);
          attention_arena arena(heads + thread * sizes.head);
          const head_state head(arena, shape_, queries_);
          // More queries attend to early chunks: distribute them forth and back, so that sums are
          // even.
          const std::int64_t units = now * cut_.chunks;
          for (std::int64_t n = 0; n < units; ++n) {
            const std::int64_t transpose = n % (2 * threads);
            if ((transpose < threads ? transpose : 2 * threads - 1 - transpose) != index) continue;
            const std::int64_t chunk_index = n / now, place_in_wave = n % now;
            unit(first + place_in_wave, chunk_index, i, head,
                 states + (place_in_wave * cut_.chunks + chunk_index) * sizes.chunk,
                 sums + (place_in_wave * cut_.chunks + chunk_index) * sizes.dq);
          }
        });
        const std::int64_t blocks = queries_ / query_block;
        run_.threads(now * blocks, [&](std::int64_t task, int) {
          const std::int64_t pair = first + task / blocks, q0 = task % blocks * query_block;
          const attention_sequence s = sequence_of(p_, pair / p_.kv_heads);
          if (q0 >= s.sq) return;
          const char* dq = sums + task / blocks * cut_.chunks * sizes.dq;
          write_queries(pair / p_.kv_heads, pair % p_.kv_heads * shape_.group + i, s, q0,
                        reinterpret_cast<const float*>(dq), sizes.dq / 4);
        });
      }
    }
  }

  void unit(std::int64_t pair, std::int64_t chunk_index, std::int64_t i, const head_state& head,
            char* state_memory, char* dq) const {
    attention_arena arena(state_memory);
    const chunk_state state(arena, shape_, cut_.keys);
    chunk c{pair / p_.kv_heads, pair % p_.kv_heads, chunk_index * cut_.keys, 0,
            sequence_of(p_, pair / p_.kv_heads)};
    c.keys = std::clamp<std::int64_t>(c.s.skv - c.first, 0, cut_.keys);
    if (c.keys == 0) return;
    if (i == 0) gradients_.begin(c, state);
    one_head(c, c.kv_head * shape_.group + i, state, head, reinterpret_cast<float*>(dq));
    if (i == shape_.group - 1) gradients_.end(c, state);
  }

  // ---- a chunk ----

  // Packs the queries of a head that attend to the chunk, and computes their gradients.
  void one_head(const chunk& c, std::int64_t h, const chunk_state& state, const head_state& head,
                float* dq) const {
    for (std::int64_t q0 = 0; q0 < c.s.sq; q0 += query_block) {
      const chunk::key_span seen = c.seen_by(q0, chunk_gradients::queries_at(c.s, q0));
      if (seen.begin < seen.end) gradients_.pack_queries(c, h, q0, head);
    }
    for (std::int64_t k0 = 0; k0 < c.keys; k0 += gradients_.key_block) {
      for (std::int64_t q0 = 0; q0 < c.s.sq; q0 += query_block)
        gradients_.one_block(c, h, q0, k0, state, head, dq);
    }
  }

  // Writes dQ of a block of queries as the sum over their chunks, `stride` floats apart.
  void write_queries(std::int64_t b, std::int64_t h, const attention_sequence& s, std::int64_t q0,
                     const float* dq, std::int64_t stride) const {
    const std::int64_t rows = chunk_gradients::queries_at(s, q0);
    const std::int64_t begin = s.first_key(q0), end = s.last_key(q0, rows);
    const std::int64_t first = begin / cut_.keys;  // of the chunks whose keys they see
    const std::int64_t parts = begin < end ? core::ceil_div(end, cut_.keys) - first : 0;
    const std::int64_t start = offset_of(p_, p_.dq, b, s.q_first, h) + q0 * p_.dq.token;
    shape_.results.write_transposed(
        dq + first * stride + q0 * shape_.d, query_block, static_cast<int>(parts), stride,
        static_cast<int>(rows), static_cast<int>(p_.d), p_.scale,
        static_cast<char*>(t_.dq) + start * shape_.result, p_.dq.token, p_.accumulate_q);
  }

  const attention_problem& p_;
  const attention_gradients& t_;
  const attention_run& run_;
  const chunk_gradients gradients_;
  const attention_shape& shape_;
  chunking cut_;
  std::int64_t queries_;  // padded
};

}  // namespace

std::size_t attention_backward_bytes(const attention_problem& problem, core::isa isa, int threads) {
  return backward_pass::bytes(problem, isa, threads);
}

void attention_backward(const attention_problem& problem, const attention_gradients& tensors,
                        const attention_run& run) {
  backward_pass(problem, tensors, run)();
}

}  // namespace velo::ops
