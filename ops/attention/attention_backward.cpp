// The backward walk, on scores transposed, so that nothing is transposed inside the loop:
//
//   S^T = K Q^T     dP^T = V dY^T     P^T = exp(S^T - lse)     dS^T = P^T (dP^T - delta)
//   dV += P^T dY    dK += dS^T Q      dQ^T += K^T dS^T
//
// Keys come in chunks, chunks in blocks of up to 512, blocks in strips of 32; queries in blocks of
// 128. A unit of work is a chunk of keys of one key head: it owns its rows of dK and dV over all
// query heads of the group, and sums dQ^T of one head at a time. Where key heads are plenty a chunk
// is the whole sequence and dQ is finished by the unit; where they are few, each chunk has a dQ^T
// of its own and the chunks are added in order afterwards. How many chunks there are depends on the
// problem alone, so threads do not matter to the bits.
#include <cstring>

#include "ops/attention/attention_plan.hpp"

namespace velo::ops {
namespace {

constexpr int strip = 32;  // keys between two products
constexpr int query_block = 128;
constexpr int depth_step = 64;  // keys of a block are padded to this for the product with K^T
constexpr int largest_key_block = 512;

// Keys whose operands and sums stay in the second cache during a pass over the queries.
int key_block_of(block_type type) {
  return type == block_type::bf16 ? 512 : 256;
}

// The products of a strip of keys with some columns of a query block; rows of score buffers are
// always query_block floats apart.
struct strip_products {
  block_kernel scores, products, values, keys;
};

struct backward_plan {
  attention_shape shape;
  int key_block;
  strip_products strips[query_block / strip];  // by columns / 32 - 1
  block_kernel queries[query_block / strip][2][largest_key_block / depth_step];  // first, later

  backward_plan(const attention_problem& problem, const attention_run& run)
      : shape(problem, run.isa), key_block(key_block_of(problem.type)) {
    bool used[query_block / strip] = {};
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      const std::int64_t sq = sequence_of(problem, b).sq;
      if (sq >= query_block) used[query_block / strip - 1] = true;
      if (sq % query_block > 0) used[(sq % query_block - 1) / strip] = true;
      if (problem.q_ends == nullptr) break;
    }
    bool wider = false;
    for (int i = query_block / strip - 1; i >= 0; --i) {
      if (used[i]) make_queries(i, problem.type, run);
      // On the diagonal a strip leaves out the columns before it.
      wider = wider || used[i];
      if (used[i] || (wider && problem.causal != causal_mask::none)) {
        make_strip(i, problem.type, run);
      }
    }
  }

 private:
  void make_strip(int i, block_type type, const attention_run& run) {
    const auto d = static_cast<int>(shape.d), dv = static_cast<int>(shape.dv);
    const int wide = (i + 1) * strip;
    const auto made = [&](int m, int n, int k, std::int64_t lda, std::int64_t ldb, std::int64_t ldc,
                          bool more) {
      return block_kernel::make({m, n, k, lda, ldb, ldc, type, more}, run.isa, run.jit);
    };
    strip_products& to = strips[i];
    to.scores = made(strip, wide, d, d, query_block, query_block, false);
    to.products = made(strip, wide, dv, dv, query_block, query_block, false);
    // Probabilities and gradients lie where the scores lay.
    const std::int64_t halves = query_block * shape.per_word;
    to.values = made(strip, dv, wide, halves, dv, dv, true);
    to.keys = made(strip, d, wide, halves, d, d, true);
  }

  void make_queries(int i, block_type type, const attention_run& run) {
    for (int k = 0; k < key_block / depth_step; ++k) {
      for (const bool more : {false, true}) {
        queries[i][more][k] =
            block_kernel::make({static_cast<int>(shape.d), (i + 1) * strip, (k + 1) * depth_step,
                                key_block, query_block, query_block, type, more},
                               run.isa, run.jit);
      }
    }
  }
};

// How the keys of a head are cut: enough units for many threads even where key heads are few.
struct chunking {
  std::int64_t chunks, keys;

  chunking(const attention_problem& problem, std::int64_t pairs) {
    constexpr std::int64_t wanted_units = 16, fewest_keys = 1024;
    const std::int64_t most = std::max<std::int64_t>(1, problem.skv / fewest_keys);
    const std::int64_t cut = std::clamp<std::int64_t>(
        blocks_of(wanted_units, std::max<std::int64_t>(pairs, 1)), 1, most);
    keys = std::max<std::int64_t>(largest_key_block,
                                  round_up(blocks_of(problem.skv, cut), largest_key_block));
    chunks = std::max<std::int64_t>(1, blocks_of(problem.skv, keys));
  }
};

// What one chunk of one key head holds while the heads of its group pass.
struct chunk_state {
  char *k_rows, *v_rows, *k_columns;
  float *dk, *dv;

  chunk_state(attention_arena& arena, const attention_shape& shape, std::int64_t keys)
      : k_rows(arena.take<char>(keys * shape.d * shape.bytes)),
        v_rows(arena.take<char>(keys * shape.dv * shape.bytes)),
        k_columns(arena.take<char>(keys * shape.d * shape.bytes)),
        dk(arena.take<float>(keys * shape.d)),
        dv(arena.take<float>(keys * shape.dv)) {}
};

// One query head, packed as the products read it.
struct head_state {
  char *q_columns, *dy_columns, *q_depth, *dy_depth;
  float *minus_lse, *delta, *scores, *products;
  char* pairs;
  char* words;  // K transposed on its way to K^T

  head_state(attention_arena& arena, const attention_shape& shape, std::int64_t queries)
      : q_columns(arena.take<char>(queries * shape.d * shape.bytes)),
        dy_columns(arena.take<char>(queries * shape.dv * shape.bytes)),
        q_depth(arena.take<char>(queries * shape.d * shape.bytes)),
        dy_depth(arena.take<char>(queries * shape.dv * shape.bytes)),
        minus_lse(arena.take<float>(queries)),
        delta(arena.take<float>(queries)),
        scores(arena.take<float>(strip * query_block)),
        products(arena.take<float>(strip * query_block)),
        pairs(arena.take<char>(largest_key_block * query_block * shape.bytes)),
        words(arena.take<char>(largest_key_block * shape.d * shape.bytes)) {}
};

// One chunk of one key head at one query head.
struct chunk {
  std::int64_t b, kv_head, first, keys;  // keys: of this sequence in this chunk, may be 0
  attention_sequence s;

  bool meets(std::int64_t q0, std::int64_t rows) const { return s.visible(q0 + rows - 1) > first; }
};

class backward_walk {
 public:
  backward_walk(const attention_problem& problem, const attention_gradients& tensors,
                const backward_plan& plan, const attention_run& run)
      : p_(problem),
        t_(tensors),
        plan_(plan),
        shape_(plan.shape),
        run_(run),
        cut_(problem, plan.shape.pairs),
        queries_(round_up(problem.sq, query_block)) {}

  void operator()() const { cut_.chunks == 1 ? whole_sequences() : chunks(); }

  static std::size_t bytes(const attention_problem& problem, int threads) {
    const attention_shape shape(problem, core::isa::amx);
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

  // Pairs whose chunks are worked on together: two units a thread even out their lengths.
  static std::int64_t wave_pairs(int threads, const chunking& cut, const attention_shape& shape) {
    return std::min(shape.pairs, blocks_of(2 * threads, cut.chunks));
  }

  static std::int64_t pair_cost(const attention_sequence& s) {
    return 1 + s.skv / 64 + s.sq / 64 + s.sq * ((s.visible(0) + s.visible(s.sq - 1)) / 2) / 1024;
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
      const block_session session(run_.isa);
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
    begin(c, state, head);
    for (std::int64_t h = c.kv_head * shape_.group; h < (c.kv_head + 1) * shape_.group; ++h) {
      one_head(c, h, state, head, dq);
      for (std::int64_t q0 = 0; q0 < c.s.sq; q0 += query_block)
        write_queries(c.b, h, c.s, q0, dq, 0);
    }
    end(c, state);
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
          const block_session session(run_.isa);
          attention_arena arena(heads + thread * sizes.head);
          const head_state head(arena, shape_, queries_);
          // Early chunks are seen by more queries: deal them out and back, so that sums are even.
          const std::int64_t units = now * cut_.chunks;
          for (std::int64_t n = 0; n < units; ++n) {
            const std::int64_t turn = n % (2 * threads);
            if ((turn < threads ? turn : 2 * threads - 1 - turn) != index) continue;
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
    if (i == 0) begin(c, state, head);
    one_head(c, c.kv_head * shape_.group + i, state, head, reinterpret_cast<float*>(dq));
    if (i == shape_.group - 1) end(c, state);
  }

  // ---- a chunk ----

  row_block rows_of(const void* data, const attention_strides& strides, std::int64_t start,
                    std::int64_t first, std::int64_t rows, std::int64_t columns) const {
    return {static_cast<const char*>(data) + (start + first * strides.token) * shape_.bytes,
            strides.token, static_cast<int>(rows), static_cast<int>(columns)};
  }

  void begin(const chunk& c, const chunk_state& state, const head_state& head) const {
    const attention_kernels& kernels = shape_.kernels;
    const std::int64_t k_start = place(p_, p_.k, c.b, c.s.kv_first, c.kv_head);
    const std::int64_t v_start = place(p_, p_.v, c.b, c.s.kv_first, c.kv_head);
    for (std::int64_t k0 = 0; k0 < c.keys; k0 += plan_.key_block) {
      const std::int64_t rows = std::min<std::int64_t>(plan_.key_block, c.keys - k0);
      const auto padded = static_cast<int>(round_up(rows, depth_step));
      const row_block k = rows_of(t_.k, p_.k, k_start, c.first + k0, rows, p_.d);
      const row_block v = rows_of(t_.v, p_.v, v_start, c.first + k0, rows, p_.dv);
      const std::int64_t at = k0 * shape_.d * shape_.bytes;
      kernels.copy_rows(k, state.k_rows + at, padded, shape_.d, false);
      kernels.copy_rows(v, state.v_rows + k0 * shape_.dv * shape_.bytes, padded, shape_.dv, false);
      const bool halves = shape_.per_word == 2;
      kernels.transpose_words(k, halves ? head.words : state.k_columns + at,
                              static_cast<int>(shape_.d / shape_.per_word), padded,
                              plan_.key_block);
      if (halves) {
        kernels.split_words(head.words, plan_.key_block, state.k_columns + at,
                            static_cast<int>(shape_.d), padded, plan_.key_block);
      }
    }
    const std::int64_t padded = round_up(c.keys, depth_step);
    std::memset(state.dk, 0, sizeof(float) * static_cast<std::size_t>(padded * shape_.d));
    std::memset(state.dv, 0, sizeof(float) * static_cast<std::size_t>(padded * shape_.dv));
  }

  void end(const chunk& c, const chunk_state& state) const {
    const auto write = [&](const float* from, std::int64_t ld, std::int64_t columns, float scale,
                           void* to, const attention_strides& strides) {
      const std::int64_t start =
          place(p_, strides, c.b, c.s.kv_first, c.kv_head) + c.first * strides.token;
      shape_.kernels.write_rows(from, ld, static_cast<int>(c.keys), static_cast<int>(columns),
                                scale, static_cast<char*>(to) + start * shape_.bytes,
                                strides.token);
    };
    write(state.dk, shape_.d, p_.d, p_.scale, t_.dk, p_.dk);
    write(state.dv, shape_.dv, p_.dv, 1.0f, t_.dv, p_.dv_rows);
  }

  // Packs the queries of a head that see the chunk and takes them past its keys.
  void one_head(const chunk& c, std::int64_t h, const chunk_state& state, const head_state& head,
                float* dq) const {
    for (std::int64_t q0 = 0; q0 < c.s.sq; q0 += query_block) {
      if (c.meets(q0, rows_at(c.s, q0))) pack_queries(c, h, q0, head);
    }
    for (std::int64_t k0 = 0; k0 < c.keys; k0 += plan_.key_block) {
      for (std::int64_t q0 = 0; q0 < c.s.sq; q0 += query_block) meet(c, q0, k0, state, head, dq);
    }
  }

  static std::int64_t rows_at(const attention_sequence& s, std::int64_t q0) {
    return std::min<std::int64_t>(query_block, s.sq - q0);
  }

  void pack_queries(const chunk& c, std::int64_t h, std::int64_t q0, const head_state& head) const {
    const attention_kernels& kernels = shape_.kernels;
    const std::int64_t rows = rows_at(c.s, q0);
    const auto wide = static_cast<int>(round_up(rows, strip));
    const auto rows_from = [&](const void* data, const attention_strides& strides,
                               std::int64_t columns) {
      return rows_of(data, strides, place(p_, strides, c.b, c.s.q_first, h), q0, rows, columns);
    };
    const row_block q = rows_from(t_.q, p_.q, p_.d);
    const row_block dy = rows_from(t_.dy, p_.dy, p_.dv);
    const row_block out = rows_from(t_.out, p_.out, p_.dv);
    const std::int64_t at = q0 * shape_.d * shape_.bytes, at_v = q0 * shape_.dv * shape_.bytes;
    const auto words = [&](std::int64_t d) { return static_cast<int>(d / shape_.per_word); };
    kernels.transpose_words(q, head.q_columns + at, words(shape_.d), wide, query_block);
    kernels.transpose_words(dy, head.dy_columns + at_v, words(shape_.dv), wide, query_block);
    kernels.pack_depth(q, head.q_depth + at, wide, shape_.d);
    kernels.pack_depth(dy, head.dy_depth + at_v, wide, shape_.dv);
    const std::int64_t stats = place(p_, p_.stats, c.b, c.s.q_first, h) + q0 * p_.stats.token;
    kernels.row_terms(dy, out, t_.max + stats, t_.sum + stats, p_.stats.token, wide,
                      head.minus_lse + q0, head.delta + q0);
  }

  // A block of queries against a block of keys.
  void meet(const chunk& c, std::int64_t q0, std::int64_t k0, const chunk_state& state,
            const head_state& head, float* dq) const {
    const std::int64_t rows = rows_at(c.s, q0);
    const std::int64_t key0 = c.first + k0;
    const std::int64_t seen =
        std::min<std::int64_t>({plan_.key_block, c.keys - k0, c.s.visible(q0 + rows - 1) - key0});
    if (seen <= 0) return;
    const std::int64_t wide = round_up(rows, strip);
    const std::int64_t depth = round_up(seen, depth_step), done = round_up(seen, strip);
    for (std::int64_t r = 0; r < seen; r += strip) {
      strip_of_keys(c, q0, wide, k0 + r, head.pairs + r * query_block * shape_.bytes, state, head);
    }
    std::memset(head.pairs + done * query_block * shape_.bytes, 0,
                static_cast<std::size_t>((depth - done) * query_block * shape_.bytes));
    plan_.queries[wide / strip - 1][k0 > 0][depth / depth_step - 1](
        state.k_columns + k0 * shape_.d * shape_.bytes, head.pairs, dq + q0 * shape_.d);
  }

  void strip_of_keys(const chunk& c, std::int64_t q0, std::int64_t wide, std::int64_t k,
                     char* pairs, const chunk_state& state, const head_state& head) const {
    // Whole groups of columns that do not see even the strip's first key are left out.
    const std::int64_t first_query = c.s.causal ? c.first + k - c.s.shift - q0 : 0;
    const std::int64_t first =
        std::clamp<std::int64_t>(first_query, 0, wide - strip) / strip * strip;
    const strip_products& products = plan_.strips[(wide - first) / strip - 1];
    const std::int64_t word = 4, side = first * shape_.bytes;
    const std::int64_t at_q = q0 * shape_.d * shape_.bytes, at_dy = q0 * shape_.dv * shape_.bytes;
    products.scores(state.k_rows + k * shape_.d * shape_.bytes,
                    head.q_columns + at_q + first * word, head.scores + first);
    products.products(state.v_rows + k * shape_.dv * shape_.bytes,
                      head.dy_columns + at_dy + first * word, head.products + first);
    gradient_rows x{};
    x.scores = head.scores;
    x.products = head.products;
    x.pairs = pairs;
    x.ld = query_block;
    x.rows = strip;
    x.first = static_cast<int>(first);
    x.columns = static_cast<int>(wide);
    x.valid = static_cast<int>(std::min<std::int64_t>(strip, c.keys - k));
    x.first_query = first_query;
    x.step = c.s.causal ? 1 : 0;
    x.factor = p_.scale * 1.44269504f;
    x.minus_lse = head.minus_lse + q0;
    x.delta = head.delta + q0;
    shape_.kernels.gradient(x);
    const char* p = reinterpret_cast<const char*>(head.scores) + side;
    const char* ds =
        (shape_.per_word == 2 ? reinterpret_cast<const char*>(head.products) : pairs) + side;
    products.values(p, head.dy_depth + at_dy + first * shape_.dv * shape_.bytes,
                    state.dv + k * shape_.dv);
    products.keys(ds, head.q_depth + at_q + first * shape_.d * shape_.bytes,
                  state.dk + k * shape_.d);
  }

  // dQ of a block of queries from the chunks they saw; `stride` floats apart.
  void write_queries(std::int64_t b, std::int64_t h, const attention_sequence& s, std::int64_t q0,
                     const float* dq, std::int64_t stride) const {
    const std::int64_t rows = rows_at(s, q0);
    const std::int64_t parts = blocks_of(s.visible(q0 + rows - 1), cut_.keys);
    const std::int64_t start = place(p_, p_.dq, b, s.q_first, h) + q0 * p_.dq.token;
    shape_.kernels.write_transposed(dq + q0 * shape_.d, query_block, static_cast<int>(parts),
                                    stride, static_cast<int>(rows), static_cast<int>(p_.d),
                                    p_.scale, static_cast<char*>(t_.dq) + start * shape_.bytes,
                                    p_.dq.token);
  }

  const attention_problem& p_;
  const attention_gradients& t_;
  const backward_plan& plan_;
  const attention_shape& shape_;
  const attention_run& run_;
  chunking cut_;
  std::int64_t queries_;  // padded
};

}  // namespace

std::size_t attention_backward_bytes(const attention_problem& problem, int threads) {
  return backward_walk::bytes(problem, threads);
}

void attention_backward(const attention_problem& problem, const attention_gradients& tensors,
                        const attention_run& run) {
  const backward_plan plan(problem, run);
  backward_walk(problem, tensors, plan, run)();
}

}  // namespace velo::ops
