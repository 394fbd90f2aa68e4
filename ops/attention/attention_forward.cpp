// The forward walk: online softmax over blocks of keys, a block of queries at a time.
//
// Keys and values of one key head are packed once, transposed words and depth pairs, and serve all
// query heads of the group. A unit of work is a block of query rows of one head; inside it a strip
// of 32 rows meets a block of keys: scores, softmax, product with the values, all in the first two
// caches. Every unit computes its rows alone, so threads do not matter to the bits.
// Where key heads are plenty each slice packs for itself and there is one parallel region; where
// they are few all of them are packed together first.
#include <cstring>

#include "ops/attention/attention_amx.hpp"
#include "ops/attention/attention_plan.hpp"

namespace velo::ops {
namespace {

constexpr int strip = 32;         // query rows between two products
constexpr int key_block = 256;    // scores of a strip: 32 KiB
constexpr int width_step = 64;    // the last keys of a row are padded to this
constexpr int query_block = 256;  // rows that share a pass over the keys

static_assert(tile_key_block == key_block && tile_strip == strip);
static_assert(width_step % tile_panel == 0);

struct forward_plan {
  attention_shape shape;
  bool tiles;  // the pipeline of attention_amx.hpp instead of block products
  block_kernel scores[key_block / width_step];
  block_kernel outputs[2][key_block / width_step];  // first block of keys, later ones

  forward_plan(const attention_problem& problem, const attention_run& run)
      : shape(problem, run.isa),
        tiles(run.isa == core::isa::amx && problem.type == block_type::bf16) {
    if (tiles) return;
    const auto d = static_cast<int>(shape.d), dv = static_cast<int>(shape.dv);
    for (int i = 0; i < key_block / width_step; ++i) {
      const int width = (i + 1) * width_step;
      scores[i] = block_kernel::make(
          {strip, width, d, d, key_block, key_block, problem.type, false}, run.isa, run.jit);
      for (const bool more : {false, true}) {
        outputs[more][i] = block_kernel::make(
            {strip, dv, width, key_block * shape.per_word, dv, dv, problem.type, more}, run.isa,
            run.jit);
      }
    }
  }
};

// Packed keys and values of one key head, block after block.
struct packed_keys {
  char *keys, *values;
  std::int64_t ready = 0;  // blocks
};

std::int64_t packed_length(const attention_problem& problem) {
  return round_up(problem.skv, key_block);
}

packed_keys take_keys(attention_arena& arena, const attention_problem& problem,
                      const attention_shape& shape) {
  const std::int64_t length = packed_length(problem);
  return {arena.take<char>(length * shape.d * shape.bytes),
          arena.take<char>(length * shape.dv * shape.bytes)};
}

struct forward_scratch {
  char* q;
  float *scores, *out, *max, *reference, *sum;

  forward_scratch(attention_arena& arena, const attention_shape& shape)
      : q(arena.take<char>(query_block * shape.d * shape.bytes)),
        scores(arena.take<float>(strip * key_block)),
        out(arena.take<float>(query_block * shape.dv)),
        max(arena.take<float>(query_block)),
        reference(arena.take<float>(query_block)),
        sum(arena.take<float>(query_block * 16)) {}
};

// Few key heads for the threads there are: pack them all before the walk.
bool pack_first(const attention_shape& shape, int threads) {
  return threads > 1 && shape.pairs <= 2 * threads;
}

class forward_walk {
 public:
  forward_walk(const attention_problem& problem, const attention_tensors& tensors,
               const forward_plan& plan, const attention_run& run)
      : p_(problem), t_(tensors), plan_(plan), shape_(plan.shape), run_(run) {}

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
      const block_session session(run_.isa);
      attention_arena mine(scratch + thread * scratch_bytes());
      const forward_scratch work(mine, shape_);
      slice({total, index, threads}, keys, shared ? -1 : thread, work);
    });
  }

  static std::size_t bytes(const attention_problem& problem, int threads) {
    const attention_shape shape(problem, core::isa::amx);
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

  // In units of a strip against 32 keys; a strip costs something even when it sees nothing.
  static std::int64_t unit_cost(const attention_sequence& s, std::int64_t q0) {
    const std::int64_t rows = std::min<std::int64_t>(query_block, s.sq - q0);
    const std::int64_t first = s.visible(q0), last = s.visible(q0 + rows - 1);
    return blocks_of(rows, strip) * (1 + blocks_of(first + last, 2 * 32));
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
    const auto from = [&](const void* data, const attention_strides& strides,
                          std::int64_t columns) {
      const std::int64_t start = place(p_, strides, b, s.kv_first, kv_head) + k0 * strides.token;
      return row_block{static_cast<const char*>(data) + start * shape_.bytes, strides.token, rows,
                       static_cast<int>(columns)};
    };
    const row_block k = from(t_.k, p_.k, p_.d), v = from(t_.v, p_.v, p_.dv);
    char* keys = to.keys + k0 * shape_.d * shape_.bytes;
    char* values = to.values + k0 * shape_.dv * shape_.bytes;
    if (plan_.tiles) return pack_panels(k, v, padded, keys, values);
    shape_.kernels.transpose_words(k, keys, static_cast<int>(shape_.d / shape_.per_word), padded,
                                   key_block);
    shape_.kernels.pack_depth(v, values, padded, shape_.dv);
  }

  // A block as the tile pipeline reads it: panels one tile pair wide.
  void pack_panels(const row_block& k, const row_block& v, int padded, char* keys,
                   char* values) const {
    for (int r = 0; r < padded; r += tile_panel) {
      const row_block part{static_cast<const char*>(k.data) + r * k.stride * shape_.bytes, k.stride,
                           std::clamp(k.rows - r, 0, tile_panel), k.columns};
      shape_.kernels.transpose_words(part, keys + r * shape_.d * shape_.bytes,
                                     static_cast<int>(shape_.d / shape_.per_word), tile_panel,
                                     tile_panel);
    }
    for (int c = 0; c < shape_.dv; c += tile_panel) {
      row_block part = v;
      part.columns = std::clamp(v.columns - c, 0, tile_panel);
      part.data = static_cast<const char*>(part.data) + std::min(c, v.columns) * shape_.bytes;
      shape_.kernels.pack_depth(part, values + c * key_block * shape_.bytes, padded, tile_panel);
    }
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

  // The units of one slice; `own` is the place among the packed keys, -1 when they are ready.
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

    const std::int64_t end = s.visible(q0 + rows - 1);
    for (; packed.ready * key_block < end; ++packed.ready) {
      pack_block(packed, b, head / shape_.group, s, packed.ready);
    }
    if (plan_.tiles) {
      pass_on_tiles(s, q0, rows, q, packed, work);
    } else {
      for (std::int64_t k0 = 0; k0 < end; k0 += key_block) {
        for (int r = 0; r < padded; r += strip) {
          const std::int64_t seen = s.visible(q0 + std::min(r + strip, rows) - 1);
          if (seen > k0) meet(s, q0, r, k0, seen, q, packed, work);
        }
      }
    }
    write(b, head, s, q0, rows, work);
  }

  // The rows as the products read them: where they are if they lie densely, else a copy.
  const char* queries(std::int64_t b, std::int64_t head, const attention_sequence& s,
                      std::int64_t q0, int rows, int padded, const forward_scratch& work) const {
    const std::int64_t start = place(p_, p_.q, b, s.q_first, head) + q0 * p_.q.token;
    const char* q = static_cast<const char*>(t_.q) + start * shape_.bytes;
    const bool dense = p_.q.token == shape_.d && p_.d == shape_.d && rows == padded;
    if (dense && p_.scale >= 0) return q;
    shape_.kernels.copy_rows({q, p_.q.token, rows, static_cast<int>(p_.d)}, work.q, padded,
                             shape_.d, p_.scale < 0);
    return work.q;
  }

  void pass_on_tiles(const attention_sequence& s, std::int64_t q0, int rows, const char* q,
                     const packed_keys& packed, const forward_scratch& work) const {
    tile_query_block x{};
    x.q = q;
    x.keys = packed.keys;
    x.values = packed.values;
    x.d = static_cast<int>(shape_.d);
    x.dv = static_cast<int>(shape_.dv);
    x.rows = rows;
    x.skv = s.skv;
    x.visible = s.causal ? q0 + 1 + s.shift : s.skv;
    x.step = s.causal ? 1 : 0;
    x.factor = __builtin_fabsf(p_.scale) * 1.44269504f;
    x.scores = work.scores;
    x.weights = work.scores + strip * key_block / 2;
    x.out = work.out;
    x.max = work.max;
    x.reference = work.reference;
    x.sum = work.sum;
    amx::attention_query_block(x);
  }

  // A strip of queries against a block of keys, of which its last row sees those below `seen`.
  void meet(const attention_sequence& s, std::int64_t q0, int r, std::int64_t k0, std::int64_t seen,
            const char* q, const packed_keys& packed, const forward_scratch& work) const {
    const std::int64_t keys = std::min<std::int64_t>(key_block, seen - k0);
    const std::int64_t step = (keys - 1) / width_step;
    float* out = work.out + r * shape_.dv;
    plan_.scores[step](q + r * shape_.d * shape_.bytes, packed.keys + k0 * shape_.d * shape_.bytes,
                       work.scores);
    softmax_rows rows{};
    rows.scores = work.scores;
    rows.ld = key_block;
    rows.probabilities = work.scores;
    rows.p_ld = key_block * shape_.per_word;
    rows.width = static_cast<int>(step + 1) * width_step;
    rows.valid = static_cast<int>(keys);
    rows.visible = s.causal ? q0 + r + 1 + s.shift - k0 : keys;
    rows.step = s.causal ? 1 : 0;
    rows.factor = __builtin_fabsf(p_.scale) * 1.44269504f;
    rows.max = work.max + r;
    rows.reference = work.reference + r;
    rows.sum = work.sum + r * 16;
    rows.out = out;
    rows.out_ld = shape_.dv;
    rows.out_columns = k0 == 0 ? 0 : static_cast<int>(shape_.dv);
    shape_.kernels.softmax(rows);
    plan_.outputs[k0 > 0][step](work.scores, packed.values + k0 * shape_.dv * shape_.bytes, out);
  }

  void write(std::int64_t b, std::int64_t head, const attention_sequence& s, std::int64_t q0,
             int rows, const forward_scratch& work) const {
    // Strips that met no key hold nothing yet.
    for (int r = 0; r < rows; r += strip) {
      if (s.visible(q0 + std::min(r + strip, rows) - 1) > 0) continue;
      std::memset(work.out + r * shape_.dv, 0,
                  sizeof(float) * static_cast<std::size_t>(strip * shape_.dv));
    }
    const std::int64_t start = place(p_, p_.out, b, s.q_first, head) + q0 * p_.out.token;
    const std::int64_t stats = place(p_, p_.stats, b, s.q_first, head) + q0 * p_.stats.token;
    finish_rows x{};
    x.accumulated = work.out;
    x.ld = shape_.dv;
    x.rows = rows;
    x.columns = static_cast<int>(p_.dv);
    x.max = work.max;
    x.sum = work.sum;
    x.reference = work.reference;
    x.scale = __builtin_fabsf(p_.scale);
    x.factor = x.scale * 1.44269504f;
    x.out = static_cast<char*>(t_.out) + start * shape_.bytes;
    x.out_stride = p_.out.token;
    x.max_out = t_.max == nullptr ? nullptr : t_.max + stats;
    x.sum_out = t_.sum == nullptr ? nullptr : t_.sum + stats;
    x.stats_stride = p_.stats.token;
    shape_.kernels.finish(x);
  }

  const attention_problem& p_;
  const attention_tensors& t_;
  const forward_plan& plan_;
  const attention_shape& shape_;
  const attention_run& run_;
};

}  // namespace

std::size_t attention_forward_bytes(const attention_problem& problem, int threads) {
  return forward_walk::bytes(problem, threads);
}

void attention_forward(const attention_problem& problem, const attention_tensors& tensors,
                       const attention_run& run) {
  const forward_plan plan(problem, run);
  forward_walk(problem, tensors, plan, run)();
}

}  // namespace velo::ops
