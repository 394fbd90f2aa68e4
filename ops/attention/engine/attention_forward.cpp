// The forward pass: online softmax over blocks of keys, a block of queries at a time.
//
// Keys and values of one key head are packed once and serve all query heads of the group. A unit of
// work is a block of query rows of one head. Its inner step takes a strip of 32 rows and a block of
// keys: scores, softmax, product with the values, all in L1 and L2. Every unit computes its rows
// alone, so the bits do not depend on threads. With many key heads each slice packs for itself and
// there is one parallel region; with few, all of them are packed first.
#include <cstring>

#include "ops/attention/engine/attention_tile.hpp"

namespace velo::ops {
namespace {

constexpr int strip = 32;         // query rows between two products
constexpr int key_block = 288;    // whole panels of either width; scores of a strip: 36 KiB
constexpr int width_step = 32;    // the last keys of a row are padded to a multiple of it
constexpr int query_block = 256;  // rows that share a loop over the keys

static_assert(key_block % panel_columns(false) == 0 && key_block % panel_columns(true) == 0);

// Packed keys and values of one key head, block after block.
struct packed_keys {
  std::uint32_t *keys, *values;
  std::int64_t first = 0, ready = 0;  // blocks from first to ready are packed

  // The right sides of the block that begins at key `k0` and has `columns` keys, padded.
  right_side keys_at(const attention_shape& shape, std::int64_t k0, std::int64_t columns) const {
    return shape.side(keys + k0 * shape.words(shape.d), columns, shape.d);
  }
  right_side values_at(const attention_shape& shape, std::int64_t k0) const {
    return shape.side(values + shape.words(k0) * shape.dv, shape.dv, key_block);
  }
};

std::int64_t packed_length(const attention_problem& problem) {
  return round_up(problem.skv, key_block);
}

packed_keys take_keys(attention_arena& arena, const attention_problem& problem,
                      const attention_shape& shape) {
  const std::int64_t length = packed_length(problem);
  return {arena.take<std::uint32_t>(shape.words(length * shape.d)),
          arena.take<std::uint32_t>(shape.words(length * shape.dv))};
}

struct forward_scratch {
  char* q;
  float *scores, *out, *max, *reference, *sum;
  float* tile;  // of score terms

  forward_scratch(attention_arena& arena, const attention_shape& shape)
      : q(arena.take<char>(query_block * shape.d * shape.form.bytes())),
        scores(arena.take<float>(strip * key_block)),
        out(arena.take<float>(query_block * shape.dv)),
        max(arena.take<float>(query_block)),
        reference(arena.take<float>(query_block)),
        sum(arena.take<float>(query_block * 16)),
        tile(arena.take<float>(strip * key_block)) {}
};

// Whether all key heads are packed first: there are few of them for so many threads.
bool pack_first(const attention_shape& shape, int threads) {
  return threads > 1 && shape.pairs <= 2 * threads;
}

class forward_pass {
 public:
  forward_pass(const attention_problem& problem, const attention_tensors& tensors,
               const attention_run& run)
      : p_(problem), t_(tensors), shape_(problem, run.isa), run_(run), tiles_(problem, run.isa) {}

  void operator()() {
    const int threads = run_.threads.threads();
    const bool shared = pack_first(shape_, threads);
    attention_arena arena(run_.scratch);
    char* keys = arena.take<char>((shared ? shape_.pairs : threads) * key_bytes());
    char* scratch = arena.take<char>(threads * scratch_bytes());
    if (shared) pack_all(keys);

    std::int64_t total = 0;
    for (std::int64_t b = 0; b < p_.batch; ++b) total += p_.heads * head_cost(sequence_of(p_, b));
    if (total == 0) return;
    run_.threads(threads, [&](std::int64_t index, int thread) {
      const tile_session session(shape_.form.kernels.tiles);
      attention_arena own(scratch + thread * scratch_bytes());
      const forward_scratch work(own, shape_);
      slice({total, index, threads}, keys, shared ? -1 : thread, work);
    });
  }

  static std::size_t bytes(const attention_problem& problem, core::isa isa, int threads) {
    const attention_shape shape(problem, isa);
    attention_arena keys(nullptr), scratch(nullptr), all(nullptr);
    take_keys(keys, problem, shape);
    forward_scratch(scratch, shape);
    const bool shared = pack_first(shape, threads);
    all.take<char>((shared ? shape.pairs : threads) * static_cast<std::int64_t>(keys.used()));
    all.take<char>(threads * static_cast<std::int64_t>(scratch.used()));
    return all.used();
  }

 private:
  std::int64_t key_bytes() const {
    attention_arena arena(nullptr);
    take_keys(arena, p_, shape_);
    return static_cast<std::int64_t>(arena.used());
  }
  std::int64_t scratch_bytes() const {
    attention_arena arena(nullptr);
    forward_scratch(arena, shape_);
    return static_cast<std::int64_t>(arena.used());
  }

  // The unit is a strip times 32 keys. A strip has a cost even without keys.
  static std::int64_t unit_cost(const attention_sequence& s, std::int64_t q0) {
    const std::int64_t rows = std::min<std::int64_t>(query_block, s.sq - q0);
    const std::int64_t first = s.last_key(q0, 1) - s.first_key(q0);
    const std::int64_t last = s.last_key(q0, rows) - s.first_key(q0 + rows - 1);
    return core::ceil_div(rows, strip) *
           (1 + core::ceil_div(std::max<std::int64_t>(first + last, 0), 2 * 32));
  }
  static std::int64_t head_cost(const attention_sequence& s) {
    std::int64_t cost = 0;
    for (std::int64_t q0 = 0; q0 < s.sq; q0 += query_block) cost += unit_cost(s, q0);
    return cost;
  }

  void pack_block(packed_keys& to, std::int64_t b, std::int64_t kv_head,
                  const attention_sequence& s, std::int64_t block) const {
    const std::int64_t k0 = block * key_block;
    const auto rows = static_cast<int>(std::min<std::int64_t>(key_block, s.skv - k0));
    const auto padded = static_cast<int>(round_up(rows, width_step));
    const auto from = [&](const void* data, const attention_strides& strides, bool transposed) {
      const std::int64_t start =
          offset_of(p_, strides, b, s.kv_first, kv_head) + k0 * strides.token;
      return source_matrix{static_cast<const char*>(data) + start * shape_.element, strides.token,
                           transposed};
    };
    const auto words = [&](std::int64_t depth) { return static_cast<int>(shape_.words(depth)); };
    pack_right(shape_.form, from(t_.k, p_.k, true), static_cast<int>(p_.d), rows, words(shape_.d),
               to.keys_at(shape_, k0, padded));
    pack_right(shape_.form, from(t_.v, p_.v, false), rows, static_cast<int>(p_.dv), words(padded),
               to.values_at(shape_, k0));
  }

  void pack_all(char* keys) const {
    const std::int64_t blocks = packed_length(p_) / key_block;
    run_.threads(shape_.pairs * blocks, [&](std::int64_t task, int) {
      const std::int64_t pair = task / blocks, block = task % blocks;
      const std::int64_t b = pair / p_.kv_heads;
      const attention_sequence s = sequence_of(p_, b);
      if (s.sq == 0 || block * key_block >= s.skv) return;
      attention_arena arena(keys + pair * key_bytes());
      packed_keys to = take_keys(arena, p_, shape_);
      pack_block(to, b, pair % p_.kv_heads, s, block);
    });
  }

  // Computes the units of one slice; `own` is its index among the packed keys, -1 if all are
  // packed.
  void slice(attention_slice units, char* keys, std::int64_t own,
             const forward_scratch& work) const {
    for (std::int64_t b = 0; b < p_.batch; ++b) {
      const attention_sequence s = sequence_of(p_, b);
      const std::int64_t cost = head_cost(s);
      if (cost == 0 || units.skip(p_.heads * cost)) continue;
      for (std::int64_t kv_head = 0; kv_head < p_.kv_heads; ++kv_head) {
        const std::int64_t pair = own < 0 ? b * p_.kv_heads + kv_head : own;
        attention_arena arena(keys + pair * key_bytes());
        packed_keys packed = take_keys(arena, p_, shape_);
        if (own < 0) packed.ready = packed_length(p_) / key_block;
        for (std::int64_t h = kv_head * shape_.group; h < (kv_head + 1) * shape_.group; ++h) {
          for (std::int64_t q0 = 0; q0 < s.sq; q0 += query_block) {
            if (units.next(unit_cost(s, q0))) unit(b, h, s, q0, packed, work);
          }
        }
      }
    }
  }

  void unit(std::int64_t b, std::int64_t head, const attention_sequence& s, std::int64_t q0,
            packed_keys& packed, const forward_scratch& work) const {
    const auto rows = static_cast<int>(std::min<std::int64_t>(query_block, s.sq - q0));
    const auto padded = static_cast<int>(round_up(rows, strip));
    const char* q = queries(b, head, s, q0, rows, padded, work);
    for (int i = 0; i < padded; ++i) work.max[i] = work.reference[i] = -__builtin_inff();
    std::memset(work.sum, 0, sizeof(float) * 16 * static_cast<std::size_t>(padded));
    if (t_.before != nullptr) begin_behind(b, head, s, q0, rows, padded, work);

    const std::int64_t begin = s.first_key(q0) / key_block * key_block;
    const std::int64_t end = s.last_key(q0, rows);
    pack_until(end, begin / key_block, b, head / shape_.group, s, packed);
    for (std::int64_t k0 = begin; k0 < end; k0 += key_block) {
      for (int r = 0; r < padded; r += strip) {
        const strip_of_rows rows_now(s, q0, r, rows);
        if (rows_now.sees(k0)) one_block(b, head, s, rows_now, k0, q, packed, work);
      }
    }
    write(b, head, s, q0, rows, work);
  }

  // Begins with the outputs and statistics of earlier keys.
  void begin_behind(std::int64_t b, std::int64_t head, const attention_sequence& s, std::int64_t q0,
                    int rows, int padded, const forward_scratch& work) const {
    const statistics_place stats = statistics_of(p_, s, b, head, q0);
    const float* before =
        t_.before + offset_of(p_, p_.before, b, s.q_first, head) + q0 * p_.before.token;
    std::memset(work.out, 0, sizeof(float) * static_cast<std::size_t>(padded * shape_.dv));
    for (int i = 0; i < rows; ++i) {
      const float sum = t_.sum[stats.first + i * stats.step];
      if (sum == 0.0f) continue;
      work.max[i] = work.reference[i] = t_.max[stats.first + i * stats.step];
      work.sum[i * 16] = sum;
      attention_kernels_of(run_.isa).floats.write_rows(before + i * p_.before.token, 0, 1,
                                                       static_cast<int>(p_.dv), sum,
                                                       work.out + i * shape_.dv, 0, false);
    }
  }

  // Packs the blocks from `first` on that hold keys below `end`, unless they are packed.
  void pack_until(std::int64_t end, std::int64_t first, std::int64_t b, std::int64_t kv_head,
                  const attention_sequence& s, packed_keys& packed) const {
    if (first < packed.first || first > packed.ready) packed.first = packed.ready = first;
    for (; packed.ready * key_block < end; ++packed.ready) {
      pack_block(packed, b, kv_head, s, packed.ready);
    }
  }

  // The keys that a strip of query rows sees lie from `begin` to `end`.
  struct strip_of_rows {
    strip_of_rows(const attention_sequence& s, std::int64_t q0, int r, int rows)
        : r(r),
          row(q0 + r),
          count(std::min(strip, rows - r)),
          begin(s.first_key(row)),
          end(s.last_key(row, count)) {}

    bool sees(std::int64_t k0) const { return k0 < end && begin < std::min(k0 + key_block, end); }
    // Whether the block at k0 is the first whose keys it sees.
    bool begins_at(std::int64_t k0) const { return k0 <= begin; }

    int r;             // of the block of queries
    std::int64_t row;  // of the sequence
    int count;         // rows that exist
    std::int64_t begin, end;
  };

  // The rows as products read them: in place if they are dense, else a copy.
  const char* queries(std::int64_t b, std::int64_t head, const attention_sequence& s,
                      std::int64_t q0, int rows, int padded, const forward_scratch& work) const {
    const std::int64_t start = offset_of(p_, p_.q, b, s.q_first, head) + q0 * p_.q.token;
    const char* q = static_cast<const char*>(t_.q) + start * shape_.element;
    const bool dense = p_.q.token == shape_.d && p_.d == shape_.d && rows == padded &&
                       shape_.form.type == shape_.form.compute;
    if (dense && p_.scale >= 0) return q;
    shape_.steps.copy_rows({q, p_.q.token, rows, static_cast<int>(p_.d)}, work.q, padded, shape_.d,
                           p_.scale < 0);
    return work.q;
  }

  // Adds the block of keys at k0 to a strip of queries.
  void one_block(std::int64_t b, std::int64_t head, const attention_sequence& s,
                 const strip_of_rows& strip_now, std::int64_t k0, const char* q,
                 const packed_keys& packed, const forward_scratch& work) const {
    const int r = strip_now.r;
    const bool begins = t_.before == nullptr && strip_now.begins_at(k0);
    const std::int64_t keys = std::min<std::int64_t>(key_block, strip_now.end - k0);
    const auto width = static_cast<int>(round_up(keys, width_step));
    int first[strip], last[strip];
    for (int i = 0; i < strip; ++i) {
      const std::int64_t row = strip_now.row + i;
      first[i] = static_cast<int>(std::clamp<std::int64_t>(s.keys.first(row) - k0, 0, width));
      last[i] = static_cast<int>(std::clamp<std::int64_t>(s.keys.last(row) - k0, 0, keys));
    }
    const std::int64_t packed_keys = std::min<std::int64_t>(key_block, s.skv - k0);
    float* out = work.out + r * shape_.dv;
    panel_product scores{};
    scores.a = q + r * shape_.d * shape_.form.bytes();
    scores.a_row = shape_.words(shape_.d);
    scores.b = packed.keys_at(shape_, k0, round_up(packed_keys, width_step));
    scores.columns = width;
    scores.words = static_cast<int>(shape_.words(shape_.d));
    scores.c = work.scores;
    scores.ldc = key_block;
    scores.rows = strip;
    multiply(shape_.form, scores);
    const float scale = __builtin_fabsf(p_.scale);
    const score_block block{
        b, head, s, strip_now.row, k0, strip_now.count, static_cast<int>(keys), width};
    if (p_.terms->adds()) add_terms(block, scale, work);
    softmax_rows rows{};
    rows.rows = strip;
    rows.scores = work.scores;
    rows.ld = key_block;
    rows.probabilities = work.scores;
    rows.p_ld = key_block * shape_.form.per_word();
    rows.width = width;
    rows.first = first;
    rows.last = last;
    rows.scale = p_.terms->adds() ? 1.0f : scale;
    rows.max = work.max + r;
    rows.reference = work.reference + r;
    rows.sum = work.sum + r * 16;
    rows.out = out;
    rows.out_ld = shape_.dv;
    rows.out_columns = begins ? 0 : static_cast<int>(shape_.dv);
    shape_.steps.softmax(rows);
    if (p_.terms->drops) drop(block, work);
    panel_product values{};
    values.a = work.scores;
    values.a_row = key_block;
    values.b = packed.values_at(shape_, k0);
    values.columns = static_cast<int>(shape_.dv);
    values.words = static_cast<int>(shape_.words(width));
    values.c = out;
    values.ldc = shape_.dv;
    values.rows = strip;
    values.add = !begins;
    multiply(shape_.form, values);
  }

  static term_block tile_of(const score_block& block, const forward_scratch& work, float scale) {
    return {work.scores, key_block, work.tile, key_block, block.rows, 0, block.width, scale};
  }

  void add_terms(const score_block& block, float scale, const forward_scratch& work) const {
    tiles_.addends(block, work.tile, key_block);
    tiles_.kernels().add(tile_of(block, work, scale));
  }

  // Probabilities have replaced the scores.
  void drop(const score_block& block, const forward_scratch& work) const {
    tiles_.multipliers(block, work.tile, key_block);
    term_block x = tile_of(block, work, 1.0f);
    x.ld *= shape_.form.per_word();
    shape_.form.per_word() == 1 ? tiles_.kernels().multiply_f32(x)
                                : tiles_.kernels().multiply_bf16(x);
  }

  void write(std::int64_t b, std::int64_t head, const attention_sequence& s, std::int64_t q0,
             int rows, const forward_scratch& work) const {
    // Strips that see no keys have not been written yet.
    for (int r = 0; r < rows && t_.before == nullptr; r += strip) {
      const strip_of_rows rows_now(s, q0, r, rows);
      if (rows_now.begin < rows_now.end) continue;
      std::memset(work.out + r * shape_.dv, 0,
                  sizeof(float) * static_cast<std::size_t>(strip * shape_.dv));
    }
    const std::int64_t start = offset_of(p_, p_.out, b, s.q_first, head) + q0 * p_.out.token;
    const statistics_place stats = statistics_of(p_, s, b, head, q0);
    finish_rows x{};
    x.accumulated = work.out;
    x.ld = shape_.dv;
    x.rows = rows;
    x.columns = static_cast<int>(p_.dv);
    x.max = work.max;
    x.sum = work.sum;
    x.reference = work.reference;
    x.out = static_cast<char*>(t_.out) + start * shape_.result;
    x.out_stride = p_.out.token;
    x.max_out = t_.max == nullptr ? nullptr : t_.max + stats.first;
    x.sum_out = t_.sum == nullptr ? nullptr : t_.sum + stats.first;
    x.stats_stride = stats.step;
    shape_.results.finish(x);
    for (float* statistics : {x.max_out, x.sum_out}) repeat(statistics, rows);
  }

  // Copies each row's statistic to its further places.
  void repeat(float* statistics, int rows) const {
    if (statistics == nullptr || p_.copies == 1) return;
    for (int i = 0; i < rows; ++i)
      std::fill_n(statistics + i * p_.copies, p_.copies, statistics[i * p_.copies]);
  }

  const attention_problem& p_;
  const attention_tensors& t_;
  const attention_shape shape_;
  const attention_run& run_;
  const attention_tiles tiles_;
};

}  // namespace

std::size_t attention_forward_bytes(const attention_problem& problem, core::isa isa, int threads) {
  return forward_pass::bytes(problem, isa, threads);
}

void attention_forward(const attention_problem& problem, const attention_tensors& tensors,
                       const attention_run& run) {
  forward_pass(problem, tensors, run)();
}

}  // namespace velo::ops
