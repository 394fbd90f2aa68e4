// The pass over the cache: chunks of keys, blocks of them, strips of rows.
//
// A unit of work is up to 128 rows of one key head, and one chunk or all of them: one where there
// are few key heads for so many threads, with a second step that merges the chunks' parts; all
// where there are enough, merged as they come. Both merge the same numbers in the same order.
#include <cstring>

#include "ops/attention/cache.hpp"
#include "ops/attention/cached_attention.hpp"
#include "ops/attention/engine/attention_plan.hpp"

namespace velo::ops {
namespace {

constexpr std::int64_t chunk_keys = 512;  // with a softmax of their own
constexpr std::int64_t block_keys =
    128;  // between two products: read from memory once for all rows
constexpr std::int64_t unit_rows = 128;
constexpr std::int64_t strip = 32;         // rows of a softmax
constexpr std::int64_t vector = 32;        // elements to which rows are padded
constexpr std::int64_t in_flight = 8192;   // bytes to prefetch
constexpr std::int64_t most_ahead = 64;    // rows
constexpr std::int64_t widest_split = 16;  // rows of a query that chunks may be cut for

struct unit_part : cache_part {
  float* max;

  unit_part(attention_arena& arena, std::int64_t rows, std::int64_t columns) {
    out = arena.take<float>(rows * columns);
    reference = arena.take<float>(rows);
    max = arena.take<float>(rows);
    sum = arena.take<float>(rows * 16);
  }
  void clear(std::int64_t rows, std::int64_t columns) const {
    const auto bytes = [](std::int64_t n) { return static_cast<std::size_t>(n) * sizeof(float); };
    std::fill_n(reference, round_up(rows, strip), -__builtin_inff());
    std::fill_n(max, round_up(rows, strip), -__builtin_inff());
    std::memset(sum, 0, bytes(rows * 16));
    std::memset(out, 0, bytes(rows * columns));
  }
};

struct pass_sizes {
  explicit pass_sizes(const cache_problem& p)
      : rows(std::min(p.rows(), unit_rows)),
        padded(round_up(rows, strip)),
        d(round_up(p.d, vector)),
        dv(round_up(p.dv, 16)),
        row_blocks(core::ceil_div(p.rows(), unit_rows)) {}
  std::int64_t rows, padded;  // of a unit
  std::int64_t d, dv;         // padded
  std::int64_t row_blocks;    // of a key head

  std::int64_t part_bytes() const {
    attention_arena arena(nullptr);
    unit_part(arena, padded, dv);
    return static_cast<std::int64_t>(arena.used());
  }
};

struct pass_scratch {
  char* q;
  float *scores, *key_scale, *value_scale;
  const void** rows;  // of keys, then of values, block after block, and those to prefetch
  char* zeros;        // a row
  unit_part part, total;

  pass_scratch(attention_arena& arena, const pass_sizes& s)
      : q(arena.take<char>(s.padded * s.d * 4)),
        scores(arena.take<float>(strip * block_keys)),
        key_scale(arena.take<float>(chunk_keys)),
        value_scale(arena.take<float>(chunk_keys)),
        rows(arena.take<const void*>(2 * chunk_keys + 2 * most_ahead)),
        zeros(arena.take<char>(s.dv * 4)),
        part(arena, s.padded, s.dv),
        total(arena, s.padded, s.dv) {}

  static std::int64_t bytes(const pass_sizes& s) {
    attention_arena arena(nullptr);
    pass_scratch(arena, s);
    return static_cast<std::int64_t>(arena.used());
  }
};

// The chunks of a sequence whose keys some row sees.
struct chunk_range {
  std::int64_t first, last;
  explicit chunk_range(const cached_sequence& s)
      : first(s.keys.first(0) / chunk_keys),
        last(std::max(core::ceil_div(s.keys.last(s.p.sq - 1), chunk_keys), first)) {}
  std::int64_t count() const { return last - first; }
};

// Whether units are single chunks, and how many there are.
struct pass_units {
  std::int64_t whole, chunks = 0;
  bool cut;

  pass_units(const cache_problem& p, const cache_tensors& t, int threads)
      : whole(p.batch * p.kv_heads * pass_sizes(p).row_blocks) {
    const std::int64_t of_sequence = p.kv_heads * pass_sizes(p).row_blocks;
    for (std::int64_t b = 0; b < p.batch; ++b)
      chunks += of_sequence * chunk_range(cached_sequence(p, t, b)).count();
    cut = threads > 1 && p.sq <= widest_split && whole < 8 * threads && chunks > whole;
  }
};

class pass {
 public:
  pass(const cache_problem& problem, const cache_tensors& tensors,
       const cached_attention_kernels& kernels, const core::parallel& threads, void* scratch)
      : p_(problem),
        t_(tensors),
        kernels_(kernels),
        threads_(threads),
        scratch_(static_cast<char*>(scratch)),
        sizes_(problem),
        own_bytes_(pass_scratch::bytes(sizes_)),
        pairs_(problem.type == element_type::bf16 && !problem.narrow &&
               kernels.pairs.scores != nullptr),
        engine_(steps_of_engine()) {}

  void operator()() {
    const pass_units units(p_, t_, threads_.threads());
    if (units.cut) return in_parts(units.chunks);
    threads_(units.whole, [&](std::int64_t task, int thread) {
      const unit u(*this, task);
      const pass_scratch& work = own(thread);
      const chunk_range chunks(u.sequence);
      load_queries(u, work);
      work.total.clear(u.rows, sizes_.dv);
      for (std::int64_t c = chunks.first; c < chunks.last; ++c) {
        add_chunk(u, c, work.part, work);
        merge(u, work.total, work.part);
      }
      finish(u, work.total);
    });
  }

 private:
  // Some rows of a key head of a sequence.
  struct unit {
    std::int64_t b, kv_head, first, rows;
    cached_sequence sequence;
    unit(const pass& of, std::int64_t task)
        : b(task / (of.sizes_.row_blocks * of.p_.kv_heads)),
          kv_head(task / of.sizes_.row_blocks % of.p_.kv_heads),
          first(task % of.sizes_.row_blocks * unit_rows),
          rows(std::min(of.p_.rows() - first, unit_rows)),
          sequence(of.p_, of.t_, b) {}
  };

  pass_scratch own(int thread) const {
    attention_arena arena(scratch_ + thread * own_bytes_);
    return pass_scratch(arena, sizes_);
  }

  // Chunks first, their parts side by side, then each unit's parts.
  void in_parts(std::int64_t chunks) const {
    char* parts = scratch_ + threads_.threads() * own_bytes_;
    const std::int64_t part_bytes = sizes_.part_bytes();
    const auto part_at = [&](std::int64_t index) {
      attention_arena arena(parts + index * part_bytes);
      return unit_part(arena, sizes_.padded, sizes_.dv);
    };
    threads_(chunks, [&](std::int64_t task, int thread) {
      const placed_chunk at = place_of(task);
      const unit u(*this, at.unit);
      const pass_scratch& work = own(thread);
      load_queries(u, work);
      add_chunk(u, at.chunk, part_at(task), work);
    });
    threads_(p_.batch * units_of_sequence(), [&](std::int64_t task, int thread) {
      const unit u(*this, task);
      const pass_scratch& work = own(thread);
      const std::int64_t count = chunk_range(u.sequence).count();
      std::int64_t part = task % units_of_sequence() * count;
      for (std::int64_t b = 0; b < u.b; ++b) part += units_of_sequence() * chunks_of(b);
      work.total.clear(u.rows, sizes_.dv);
      for (std::int64_t c = 0; c < count; ++c) merge(u, work.total, part_at(part + c));
      finish(u, work.total);
    });
  }

  std::int64_t units_of_sequence() const { return p_.kv_heads * sizes_.row_blocks; }
  std::int64_t chunks_of(std::int64_t b) const {
    return chunk_range(cached_sequence(p_, t_, b)).count();
  }
  // The unit and the chunk of a part: units in order, the chunks of each in order.
  struct placed_chunk {
    std::int64_t unit, chunk;
  };
  placed_chunk place_of(std::int64_t part) const {
    std::int64_t b = 0;
    for (; part >= units_of_sequence() * chunks_of(b); ++b)
      part -= units_of_sequence() * chunks_of(b);
    const std::int64_t count = chunks_of(b);
    return {b * units_of_sequence() + part / count,
            chunk_range(cached_sequence(p_, t_, b)).first + part % count};
  }

  const attention_steps& steps_of_engine() const {
    const attention_kernels& all = attention_kernels_of(kernels_.isa);
    return pairs_                         ? all.pairs
           : p_.type == element_type::f32 ? all.floats
           : p_.type == element_type::f16 ? all.wide_f16
                                          : all.wide_bf16;
  }
  const cache_steps& steps() const {
    return p_.narrow                      ? kernels_.i8
           : pairs_                       ? kernels_.pairs
           : p_.type == element_type::f32 ? kernels_.f32
           : p_.type == element_type::f16 ? kernels_.f16
                                          : kernels_.bf16;
  }
  std::int64_t q_row() const { return sizes_.d * (pairs_ ? 2 : 4); }

  void load_queries(const unit& u, const pass_scratch& work) const {
    std::memset(work.zeros, 0, static_cast<std::size_t>(sizes_.dv * 4));
    for (std::int64_t i = 0; i < u.rows; ++i) {
      const std::int64_t at = new_row(p_, p_.q, u.b, u.kv_head, u.first + i);
      const char* from = static_cast<const char*>(t_.q) + at * element_bytes(p_.type);
      engine_.copy_rows({from, 0, 1, static_cast<int>(p_.d)}, work.q + i * q_row(), 1, sizes_.d,
                        p_.scale < 0);
    }
  }

  // Where rows of keys or values lie; returns the end of the list.
  const void** list_rows(const unit& u, const void* data, const attention_strides& of,
                         std::int64_t key, std::int64_t count, const void** to) const {
    const std::int64_t step = of.token * p_.element();
    u.sequence.runs(of, u.kv_head, key, count, [&](std::int64_t first, std::int64_t n) {
      const char* row = static_cast<const char*>(data) + first * p_.element();
      for (std::int64_t i = 0; i < n; ++i) to[i] = row + i * step;
      to += n;
    });
    return to;
  }
  void list_scales(const unit& u, const float* data, const attention_strides& of, std::int64_t key,
                   std::int64_t count, float* to) const {
    u.sequence.runs(of, u.kv_head, key, count, [&](std::int64_t first, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) *to++ = data[first + i * of.token];
    });
    std::fill_n(to, round_up(count, vector) - count, 0.0f);
  }

  // The sums of one chunk of keys.
  void add_chunk(const unit& u, std::int64_t chunk, const unit_part& to,
                 const pass_scratch& work) const {
    to.clear(u.rows, sizes_.dv);
    const cached_sequence& s = u.sequence;
    const std::int64_t seen = s.first_key(u.first) / block_keys * block_keys;
    const std::int64_t last = s.last_key(u.first + u.rows - 1);
    const std::int64_t begin = std::max(chunk * chunk_keys, seen);
    const std::int64_t end = std::min((chunk + 1) * chunk_keys, last);
    if (begin >= end) return;
    const void** rows = work.rows;
    for (std::int64_t k = begin; k < end; k += block_keys) {
      const std::int64_t n = std::min(block_keys, end - k);
      rows = list_rows(u, t_.k, p_.k, k, n, rows);
      rows = list_rows(u, t_.v, p_.v, k, n, rows);
    }
    const std::int64_t later = std::min(last - end, most_ahead);  // keys of the next chunk
    rows = list_rows(u, t_.k, p_.k, end, later, rows);
    std::fill_n(rows, 2 * most_ahead - later, work.zeros);
    if (p_.narrow) {
      list_scales(u, t_.key_scale, p_.key_scale, begin, end - begin, work.key_scale);
      list_scales(u, t_.value_scale, p_.value_scale, begin, end - begin, work.value_scale);
    }
    rows = work.rows;
    for (std::int64_t k = begin; k < end; k += block_keys) {
      const std::int64_t n = std::min(block_keys, end - k);
      for (std::int64_t r = 0; r < u.rows; r += strip)
        add_block({&u, r, std::min(strip, u.rows - r), k, n, k - begin}, rows, to, work);
      rows += 2 * n;
    }
  }

  // Keys [key, key + count) for rows [row, row + rows) of a unit.
  struct block {
    const unit* u;
    std::int64_t row, rows, key, count;
    std::int64_t scale;  // the first factor of int8
  };

  int ahead_of(const block& x, std::int64_t columns) const {
    if (x.row > 0) return 0;  // the strip before has fetched them
    const std::int64_t bytes = columns * p_.element();
    return static_cast<int>(std::clamp<std::int64_t>(in_flight / bytes, 4, most_ahead));
  }

  void add_block(const block& x, const void* const* rows, const unit_part& to,
                 const pass_scratch& work) const {
    const cached_sequence& s = x.u->sequence;
    const auto width = static_cast<int>(round_up(x.count, vector));
    int first[strip], last[strip];
    for (std::int64_t i = 0; i < x.rows; ++i) {
      const std::int64_t row = x.u->first + x.row + i;
      first[i] = static_cast<int>(std::clamp<std::int64_t>(s.first_key(row) - x.key, 0, width));
      last[i] = static_cast<int>(std::clamp<std::int64_t>(s.last_key(row) - x.key, 0, x.count));
    }
    const auto count = static_cast<int>(x.count), strip_rows = static_cast<int>(x.rows);
    steps().scores({work.q + x.row * q_row(),
                    q_row(),
                    {rows, count, static_cast<int>(p_.d), ahead_of(x, p_.d)},
                    strip_rows,
                    work.scores,
                    block_keys});
    if (p_.narrow) {
      kernels_.scale_columns(work.scores, block_keys, strip_rows, width, work.key_scale + x.scale);
    }
    softmax_rows soft{};
    soft.rows = strip_rows;
    soft.scores = work.scores;
    soft.ld = block_keys;
    soft.probabilities = work.scores;
    soft.p_ld = block_keys * (pairs_ ? 2 : 1);
    soft.width = width;
    soft.first = first;
    soft.last = last;
    soft.scale = __builtin_fabsf(p_.scale);
    soft.max = to.max + x.row;
    soft.reference = to.reference + x.row;
    soft.sum = to.sum + x.row * 16;
    soft.out = to.out + x.row * sizes_.dv;
    soft.out_ld = sizes_.dv;
    soft.out_columns = static_cast<int>(sizes_.dv);
    engine_.softmax(soft);
    if (p_.narrow) {
      kernels_.scale_columns(work.scores, block_keys, strip_rows, width,
                             work.value_scale + x.scale);
    }
    steps().values({work.scores,
                    block_keys * 4,
                    {rows + x.count, count, static_cast<int>(p_.dv), ahead_of(x, p_.dv)},
                    strip_rows,
                    to.out + x.row * sizes_.dv,
                    sizes_.dv});
  }

  void merge(const unit& u, const unit_part& to, const unit_part& from) const {
    kernels_.merge({to, from, static_cast<int>(u.rows), static_cast<int>(sizes_.dv), sizes_.dv});
  }

  void finish(const unit& u, const unit_part& total) const {
    for (std::int64_t i = 0; i < u.rows; ++i) {
      const std::int64_t at = new_row(p_, p_.out, u.b, u.kv_head, u.first + i);
      finish_rows x{};
      x.accumulated = total.out + i * sizes_.dv;
      x.rows = 1;
      x.columns = static_cast<int>(p_.dv);
      x.sum = total.sum + i * 16;
      x.out = static_cast<char*>(t_.out) + at * element_bytes(p_.type);
      engine_.finish(x);
    }
  }

  const cache_problem& p_;
  const cache_tensors& t_;
  const cached_attention_kernels& kernels_;
  const core::parallel& threads_;
  char* scratch_;
  const pass_sizes sizes_;
  const std::int64_t own_bytes_;
  const bool pairs_;
  const attention_steps& engine_;
};

}  // namespace

std::size_t cached_attention_bytes(const cache_problem& p, const cache_tensors& t, int threads) {
  const pass_sizes sizes(p);
  const pass_units units(p, t, threads);
  const std::int64_t parts = units.cut ? units.chunks * sizes.part_bytes() : 0;
  return static_cast<std::size_t>(threads * pass_scratch::bytes(sizes) + parts);
}

void cached_attention_pass(const cache_problem& p, const cache_tensors& t,
                           const cached_attention_kernels& kernels, const core::parallel& threads,
                           void* scratch) {
  pass(p, t, kernels, threads, scratch)();
}

}  // namespace velo::ops
