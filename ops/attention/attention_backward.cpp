// The backward pass, on transposed scores, so that nothing is transposed inside the loop:
//
//   S^T = scale K Q^T   dP^T = V dY^T   P^T = exp(S^T - max) / sum   dS^T = P^T (dP^T - delta)
//   dV += P^T dY    dK += dS^T Q      dQ^T += K^T dS^T
//
// Keys are cut into chunks, chunks into blocks of up to 512, blocks into strips of 32; queries into
// blocks of 128. A unit of work is a chunk of keys of one key head: it owns its rows of dK and dV
// over all query heads of the group, and sums dQ^T of one head at a time. With many key heads a
// chunk is the whole sequence and the unit finishes dQ; with few, each chunk has a dQ^T of its own
// and the chunks are added in order afterwards. The number of chunks depends on the problem alone,
// so the bits do not depend on threads.
#include <cstring>

#include "ops/attention/attention_plan.hpp"

namespace velo::ops {
namespace {

constexpr int strip = 32;  // keys between two products
constexpr int query_block = 128;
constexpr int largest_key_block = 512;

// Keys whose operands and sums stay in L2 during a loop over the queries.
int key_block_of(element_type words) {
  return words == element_type::bf16 ? 512 : 256;
}

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

// Memory of one chunk of one key head during the loop over the query heads of its group.
struct chunk_state {
  char *k_rows, *v_rows, *k_columns;
  float *dk, *dv;

  chunk_state(attention_arena& arena, const attention_shape& shape, std::int64_t keys)
      : k_rows(arena.take<char>(keys * shape.d * shape.form.bytes())),
        v_rows(arena.take<char>(keys * shape.dv * shape.form.bytes())),
        k_columns(arena.take<char>(keys * shape.d * shape.form.bytes())),
        dk(arena.take<float>(keys * shape.d)),
        dv(arena.take<float>(keys * shape.dv)) {}
};

// One packed query head: a right side for each block of queries.
struct head_state {
  std::uint32_t *q_columns, *dy_columns, *q_depth, *dy_depth;
  float *max, *minus_log_sum, *delta, *scores, *products;
  std::uint32_t* gradients;  // dS^T of a block of keys, a right side

  head_state(attention_arena& arena, const attention_shape& shape, std::int64_t queries)
      : q_columns(arena.take<std::uint32_t>(shape.words(queries * shape.d))),
        dy_columns(arena.take<std::uint32_t>(shape.words(queries * shape.dv))),
        q_depth(arena.take<std::uint32_t>(shape.words(queries * shape.d))),
        dy_depth(arena.take<std::uint32_t>(shape.words(queries * shape.dv))),
        max(arena.take<float>(queries)),
        minus_log_sum(arena.take<float>(queries)),
        delta(arena.take<float>(queries)),
        scores(arena.take<float>(strip * query_block)),
        products(arena.take<float>(strip * query_block)),
        gradients(arena.take<std::uint32_t>(shape.words(largest_key_block * query_block))) {}
};

// One chunk of one key head, in the loop over query heads.
struct chunk {
  std::int64_t b, kv_head, first, keys;  // keys: of this sequence in this chunk, may be 0
  attention_sequence s;

  // The keys of the chunk, from its first, that `rows` queries from q0 on see: from begin to end.
  struct key_span {
    std::int64_t begin, end;
  };
  key_span seen_by(std::int64_t q0, std::int64_t rows) const {
    return {std::clamp<std::int64_t>(s.first_key(q0) - first, 0, keys),
            std::clamp<std::int64_t>(s.last_key(q0, rows) - first, 0, keys)};
  }
};

class backward_pass {
 public:
  backward_pass(const attention_problem& problem, const attention_gradients& tensors,
                const attention_run& run)
      : p_(problem),
        t_(tensors),
        shape_(problem, run.isa),
        run_(run),
        cut_(problem, shape_.pairs),
        queries_(round_up(problem.sq, query_block)),
        key_block_(key_block_of(shape_.form.compute)) {
    for (int j = 0; j < query_block; j += 16) {
      const right_side side = gradients_of(nullptr);
      const int q = j / shape_.form.panel;
      groups_[j / 16] = {q * side.panel_words + j % shape_.form.panel, side.step(shape_.form, q)};
    }
  }

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
    begin(c, state);
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
    if (i == 0) begin(c, state);
    one_head(c, c.kv_head * shape_.group + i, state, head, reinterpret_cast<float*>(dq));
    if (i == shape_.group - 1) end(c, state);
  }

  // ---- a chunk ----

  row_block rows_of(const void* data, const attention_strides& strides, std::int64_t start,
                    std::int64_t first, std::int64_t rows, std::int64_t columns) const {
    return {static_cast<const char*>(data) + (start + first * strides.token) * shape_.element,
            strides.token, static_cast<int>(rows), static_cast<int>(columns)};
  }

  // The address of row `row` of rows of `columns` elements.
  char* rows_at(char* first, std::int64_t row, std::int64_t columns) const {
    return first + row * columns * shape_.form.bytes();
  }

  void begin(const chunk& c, const chunk_state& state) const {
    const std::int64_t k_start = offset_of(p_, p_.k, c.b, c.s.kv_first, c.kv_head);
    const std::int64_t v_start = offset_of(p_, p_.v, c.b, c.s.kv_first, c.kv_head);
    const reorder_kernels& reorders =
        shape_.form.kernels.reorders(shape_.form.type, shape_.form.compute);
    for (std::int64_t k0 = 0; k0 < c.keys; k0 += key_block_) {
      const std::int64_t rows = std::min<std::int64_t>(key_block_, c.keys - k0);
      const auto padded = static_cast<int>(round_up(rows, strip));
      const row_block k = rows_of(t_.k, p_.k, k_start, c.first + k0, rows, p_.d);
      const row_block v = rows_of(t_.v, p_.v, v_start, c.first + k0, rows, p_.dv);
      shape_.steps.copy_rows(k, rows_at(state.k_rows, k0, shape_.d), padded, shape_.d, false);
      shape_.steps.copy_rows(v, rows_at(state.v_rows, k0, shape_.dv), padded, shape_.dv, false);
      // K^T in plain rows; tile registers load their padding, too.
      auto* columns = reinterpret_cast<std::uint32_t*>(rows_at(state.k_columns, k0, shape_.d));
      const std::int64_t ld = shape_.words(key_block_);
      reorders.transpose_rows({k.data, k.stride, k.rows, k.columns, columns, ld,
                               static_cast<int>(round_up(shape_.words(padded), 16))});
      std::memset(columns + p_.d * ld, 0, static_cast<std::size_t>((shape_.d - p_.d) * ld) * 4);
    }
    const std::int64_t padded = round_up(c.keys, strip);
    std::memset(state.dk, 0, sizeof(float) * static_cast<std::size_t>(padded * shape_.d));
    std::memset(state.dv, 0, sizeof(float) * static_cast<std::size_t>(padded * shape_.dv));
  }

  void end(const chunk& c, const chunk_state& state) const {
    const auto write = [&](const float* from, std::int64_t ld, std::int64_t columns, float scale,
                           void* to, const attention_strides& strides) {
      const std::int64_t start =
          offset_of(p_, strides, c.b, c.s.kv_first, c.kv_head) + c.first * strides.token;
      shape_.steps.write_rows(from, ld, static_cast<int>(c.keys), static_cast<int>(columns), scale,
                              static_cast<char*>(to) + start * shape_.element, strides.token);
    };
    write(state.dk, shape_.d, p_.d, p_.scale, t_.dk, p_.dk);
    write(state.dv, shape_.dv, p_.dv, 1.0f, t_.dv, p_.dv_rows);
  }

  // Packs the queries of a head that attend to the chunk, and computes their gradients.
  void one_head(const chunk& c, std::int64_t h, const chunk_state& state, const head_state& head,
                float* dq) const {
    for (std::int64_t q0 = 0; q0 < c.s.sq; q0 += query_block) {
      const chunk::key_span seen = c.seen_by(q0, queries_at(c.s, q0));
      if (seen.begin < seen.end) pack_queries(c, h, q0, head);
    }
    for (std::int64_t k0 = 0; k0 < c.keys; k0 += key_block_) {
      for (std::int64_t q0 = 0; q0 < c.s.sq; q0 += query_block)
        one_block(c, q0, k0, state, head, dq);
    }
  }

  static std::int64_t queries_at(const attention_sequence& s, std::int64_t q0) {
    return std::min<std::int64_t>(query_block, s.sq - q0);
  }

  void pack_queries(const chunk& c, std::int64_t h, std::int64_t q0, const head_state& head) const {
    const std::int64_t rows = queries_at(c.s, q0);
    const auto wide = static_cast<int>(round_up(rows, strip));
    const auto rows_from = [&](const void* data, const attention_strides& strides,
                               std::int64_t columns) {
      return rows_of(data, strides, offset_of(p_, strides, c.b, c.s.q_first, h), q0, rows, columns);
    };
    const row_block dy = rows_from(t_.dy, p_.dy, p_.dv), out = rows_from(t_.out, p_.out, p_.dv);
    pack_sides(rows_from(t_.q, p_.q, p_.d), shape_.d, wide,
               columns_of(head.q_columns, q0, shape_.d), depth_of(head.q_depth, q0, shape_.d));
    pack_sides(dy, shape_.dv, wide, columns_of(head.dy_columns, q0, shape_.dv),
               depth_of(head.dy_depth, q0, shape_.dv));
    const std::int64_t stats = offset_of(p_, p_.stats, c.b, c.s.q_first, h) + q0 * p_.stats.token;
    shape_.steps.row_terms(dy, out, t_.max + stats, t_.sum + stats, p_.stats.token, wide,
                           head.max + q0, head.minus_log_sum + q0, head.delta + q0);
  }

  // Packs rows of queries, padded to `wide`, as the columns and as the depth of right sides.
  void pack_sides(const row_block& rows, std::int64_t d, int wide, const right_side& columns,
                  const right_side& depth) const {
    pack_right(shape_.form, {rows.data, rows.stride, true}, rows.columns, rows.rows,
               static_cast<int>(shape_.words(d)), columns);
    pack_right(shape_.form, {rows.data, rows.stride, false}, rows.rows, rows.columns,
               static_cast<int>(shape_.words(wide)), depth);
  }

  // A block of queries as right sides: queries as columns, or as the depth.
  right_side columns_of(std::uint32_t* first, std::int64_t q0, std::int64_t d) const {
    return shape_.side(first + shape_.words(q0 * d), query_block, d);
  }
  right_side depth_of(std::uint32_t* first, std::int64_t q0, std::int64_t d) const {
    return shape_.side(first + shape_.words(q0 * d), d, query_block);
  }
  // dS^T as a right side. Floats stay in plain rows, which serve as a left side, too.
  right_side gradients_of(std::uint32_t* first) const {
    if (shape_.form.per_word() == 1) return {first, shape_.form.panel, query_block, query_block};
    return shape_.side(first, query_block, largest_key_block);
  }

  // Adds the gradients of a block of queries and a block of keys.
  void one_block(const chunk& c, std::int64_t q0, std::int64_t k0, const chunk_state& state,
                 const head_state& head, float* dq) const {
    const std::int64_t rows = queries_at(c.s, q0);
    const chunk::key_span seen = c.seen_by(q0, rows);
    const std::int64_t begin = std::max<std::int64_t>(seen.begin - k0, 0) / strip * strip;
    const std::int64_t end = std::min<std::int64_t>(key_block_, seen.end - k0);
    if (begin >= end || seen.begin >= seen.end) return;
    const std::int64_t wide = round_up(rows, strip);
    for (std::int64_t r = begin; r < end; r += strip) {
      strip_of_keys(c, q0, wide, k0, r, state, head);
    }
    const auto first_word = static_cast<int>(shape_.words(begin));
    panel_product queries{};
    queries.a = rows_at(state.k_columns, k0, shape_.d) + first_word * 4;
    queries.a_row = shape_.words(key_block_);
    queries.b = gradients_of(head.gradients);
    queries.c = dq + q0 * shape_.d;
    queries.ldc = query_block;
    queries.rows = static_cast<int>(shape_.d);
    queries.add = k0 > seen.begin;
    queries.first_word = first_word;
    // Gradients are zero past the last key that a panel's queries see.
    const int panel = shape_.form.panel;
    for (int j = 0; j < wide; j += panel) {
      const std::int64_t last = c.seen_by(q0, std::min<std::int64_t>(j + panel, rows)).end - k0;
      const std::int64_t depth = std::clamp<std::int64_t>(last, begin + 1, end) - begin;
      queries.first_column = j;
      queries.columns = static_cast<int>(std::min<std::int64_t>(panel, wide - j));
      queries.words = static_cast<int>(shape_.words(round_up(depth, strip)));
      multiply(shape_.form, queries);
    }
  }

  // The columns, from q0, that see each of a strip's keys; none see its padding.
  struct seen_rows {
    int first[strip] = {}, last[strip] = {};

    seen_rows(const chunk& c, std::int64_t q0, std::int64_t wide, std::int64_t k,
              std::int64_t keys) {
      const auto column = [&](std::int64_t row) {
        return static_cast<int>(std::clamp<std::int64_t>(row - q0, 0, wide));
      };
      for (std::int64_t i = 0; i < keys; ++i) {
        first[i] = column(c.s.keys.first_row(c.first + k + i));
        last[i] = column(c.s.keys.last_row(c.first + k + i));
      }
    }
  };

  // Computes the strip of keys from `r` on of the block at `k0` with the block of queries at `q0`.
  void strip_of_keys(const chunk& c, std::int64_t q0, std::int64_t wide, std::int64_t k0,
                     std::int64_t r, const chunk_state& state, const head_state& head) const {
    const std::int64_t k = k0 + r, keys = std::min<std::int64_t>(strip, c.keys - k);
    const seen_rows seen(c, q0, wide, k, keys);
    // Groups of columns that see none of the strip's keys are skipped.
    const std::int64_t first = std::min<std::int64_t>(seen.first[0], wide - strip) / strip * strip;
    const std::int64_t last =
        std::max<std::int64_t>(round_up(seen.last[keys - 1], strip), first + strip);
    const auto across_queries = [&](const char* a, std::int64_t d, const right_side& b, float* to) {
      panel_product x{};
      x.a = rows_at(const_cast<char*>(a), k, d);
      x.a_row = shape_.words(d);
      x.b = b;
      x.first_column = static_cast<int>(first);
      x.columns = static_cast<int>(last - first);
      x.words = static_cast<int>(shape_.words(d));
      x.c = to;
      x.ldc = query_block;
      x.rows = strip;
      multiply(shape_.form, x);
    };
    across_queries(state.k_rows, shape_.d, columns_of(head.q_columns, q0, shape_.d), head.scores);
    across_queries(state.v_rows, shape_.dv, columns_of(head.dy_columns, q0, shape_.dv),
                   head.products);
    gradient_rows x{};
    x.scores = head.scores;
    x.products = head.products;
    x.groups = groups_;
    x.words = head.gradients;
    x.first_word = static_cast<int>(shape_.words(r));
    x.ld = query_block;
    x.rows = strip;
    x.first = static_cast<int>(first);
    x.last = static_cast<int>(last);
    x.columns = static_cast<int>(wide);
    x.first_seen = seen.first;
    x.last_seen = seen.last;
    x.scale = p_.scale;
    x.max = head.max + q0;
    x.minus_log_sum = head.minus_log_sum + q0;
    x.delta = head.delta + q0;
    shape_.steps.gradient(x);
    // Probabilities and gradients have replaced the scores and products.
    const auto over_queries = [&](const float* a, std::int64_t d, const right_side& b, float* to) {
      panel_product x{};
      x.a = a + shape_.words(first);
      x.a_row = query_block;
      x.b = b;
      x.columns = static_cast<int>(d);
      x.first_word = static_cast<int>(shape_.words(first));
      x.words = static_cast<int>(shape_.words(last - first));
      x.c = to + k * d;
      x.ldc = d;
      x.rows = strip;
      x.add = true;
      multiply(shape_.form, x);
    };
    over_queries(head.scores, shape_.dv, depth_of(head.dy_depth, q0, shape_.dv), state.dv);
    const float* gradients = shape_.form.per_word() == 1
                                 ? reinterpret_cast<const float*>(head.gradients) + r * query_block
                                 : head.products;
    over_queries(gradients, shape_.d, depth_of(head.q_depth, q0, shape_.d), state.dk);
  }

  // Writes dQ of a block of queries as the sum over their chunks, `stride` floats apart.
  void write_queries(std::int64_t b, std::int64_t h, const attention_sequence& s, std::int64_t q0,
                     const float* dq, std::int64_t stride) const {
    const std::int64_t rows = queries_at(s, q0);
    const std::int64_t begin = s.first_key(q0), end = s.last_key(q0, rows);
    const std::int64_t first = begin / cut_.keys;  // of the chunks whose keys they see
    const std::int64_t parts = begin < end ? core::ceil_div(end, cut_.keys) - first : 0;
    const std::int64_t start = offset_of(p_, p_.dq, b, s.q_first, h) + q0 * p_.dq.token;
    shape_.steps.write_transposed(dq + first * stride + q0 * shape_.d, query_block,
                                  static_cast<int>(parts), stride, static_cast<int>(rows),
                                  static_cast<int>(p_.d), p_.scale,
                                  static_cast<char*>(t_.dq) + start * shape_.element, p_.dq.token);
  }

  const attention_problem& p_;
  const attention_gradients& t_;
  const attention_shape shape_;
  const attention_run& run_;
  chunking cut_;
  std::int64_t queries_;  // padded
  int key_block_;
  column_group groups_[query_block / 16];  // of the gradients
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
