// The engine's loops: phases of packing and products, tasks over tiles, passes over the depth,
// panels, micro-panels.
#include "ops/gemm/gemm.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <optional>

#include "ops/gemm/gemm_plan.hpp"
#include "ops/gemm/panel_feed.hpp"
#include "ops/gemm/small_product.hpp"

namespace velo::ops {
namespace {

// Steps of pass `p` of panels whose passes follow each other. A narrow last panel has narrower
// rows, so its passes lie closer.
void pack_pass(const packed_form& form, const source_matrix& b, std::int64_t p, depth_range steps,
               std::int64_t first, std::int64_t end, const packed_target& to,
               const gemm_kernels& kernels) {
  const std::int64_t rows_before = p * form.pass / form.per_word();
  const std::int64_t even = form.width(end - 1) == form.panel ? end : end - 1;
  pack_panels(form, b, p, steps, first, even,
              {to.words + rows_before * form.panel, to.panel_stride, to.origin}, kernels);
  if (even == end) return;
  const packed_target narrow{to.words + rows_before * form.width(even), to.panel_stride, to.origin};
  pack_panels(form, b, p, steps, even, end, narrow, kernels);
}

// Panels [first, end), all passes, to `words`. Tasks take a few panels side by side, fewer where
// there are many threads, and then parts of the depth.
void pack_for_all(const packed_form& form, const source_matrix& b, std::int64_t first,
                  std::int64_t end, std::uint32_t* words, const core::parallel& threads,
                  const gemm_kernels& kernels) {
  constexpr int least_depth = 64;
  const std::int64_t panels = end - first, passes = form.passes();
  const std::int64_t wanted = 2 * std::int64_t{threads.threads()};
  const std::int64_t group = panels * passes / 4 < wanted ? 1 : 4;
  const std::int64_t tasks = (panels + group - 1) / group * passes;
  const std::int64_t parts =
      std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(tasks, 1), 1,
                               std::max<std::int64_t>(form.pass / least_depth, 1));
  const std::int64_t stride = form.padded_k() / form.per_word() * form.panel;
  threads(tasks * parts, [&](std::int64_t task, int) {
    const std::int64_t part = task % parts, p = task / parts % passes;
    const std::int64_t q = first + task / parts / passes * group;
    const int depth = form.depth(p);
    const auto cut = [&](std::int64_t at) {
      return at == parts ? depth : static_cast<int>(depth * at / parts / 32 * 32);
    };
    pack_pass(form, b, p, {cut(part), cut(part + 1)}, q, std::min(q + group, end),
              {words, stride, first}, kernels);
  });
}

}  // namespace

packed_matrix::packed_matrix(std::int64_t k, std::int64_t n, element_type type,
                             const gemm_target& target)
    : k_(k), n_(n), type_(type), target_(target) {}

std::size_t packed_matrix::bytes() const {
  return packed_form(k_, n_, type_, target_).bytes();
}

int packed_matrix::panel() const {
  return packed_form(k_, n_, type_, target_).panel;
}

bool packed_matrix::serves(const gemm_target& target) const {
  const packed_form mine(k_, n_, type_, target_), wanted(k_, n_, type_, target);
  return mine.compute == wanted.compute && mine.panel == wanted.panel && mine.pass == wanted.pass;
}

packed_matrix packed_matrix::columns(std::int64_t first, std::int64_t count) const {
  const packed_form form(k_, n_, type_, target_);
  assert(first % form.panel == 0 && first + count <= n_);
  packed_matrix some = *this;
  some.n_ = count;
  some.words_ += form.padded_k() / form.per_word() * first;
  return some;
}

packed_matrix::column packed_matrix::at(std::int64_t n) const {
  const packed_form form(k_, n_, type_, target_);
  const std::int64_t q = n / form.panel, per_word = form.per_word();
  return {words_ + form.padded_k() / per_word * q * form.panel + n % form.panel, form.width(q),
          per_word};
}

float packed_matrix::column::operator[](std::int64_t k) const {
  const std::uint32_t word = words[k / per_word * stride];
  std::uint32_t bits = word;
  if (per_word == 2) bits = k % 2 == 0 ? word << 16 : word & 0xffff0000u;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

void packed_matrix::update(const void* weight, std::int64_t ld, bool transposed,
                           const core::parallel& threads) {
  const packed_form form(k_, n_, type_, target_);
  pack_for_all(form, {weight, ld, transposed}, 0, form.panels(), words_, threads,
               gemm_kernels_for(target_.isa));
}

// One call of gemm.
class gemm_run {
 public:
  gemm_run(const gemm_problem& problem, const packed_matrix* pack, int threads, void* scratch,
           const gemm_target& target)
      : p_(problem),
        plan_(problem, pack != nullptr, threads, target),
        form_(plan_.form),
        grid_(plan_.grid),
        kernels_(gemm_kernels_for(target.isa)),
        moves_(kernels_.moves(form_.type, form_.compute)),
        pack_(pack == nullptr ? nullptr : pack->words_),
        scratch_(static_cast<char*>(scratch)) {}

  void run(const core::parallel& threads);

 private:
  // One task's part of C, and its own part of the scratch.
  struct tile {
    std::int64_t row;
    int rows;
    std::int64_t first, end;    // panels
    std::int64_t packed_panel;  // first of the panels that this phase packed
    char* own_a;
    std::uint32_t* own_b;
    float* sums;
    carried_share* carried;  // or null
  };

  const char* rows_of_a(const tile& t, std::int64_t p) const;
  const char* source_of_a(std::int64_t row, std::int64_t p) const;
  std::uint32_t* shared_rows(std::int64_t row, std::int64_t p) const;
  void pack_a_for_all(const core::parallel& threads);
  void pack_a(std::int64_t row, int rows, std::int64_t p, std::uint32_t* to) const;
  void pack_strips(const char* from, int rows, std::int64_t p, std::uint32_t* to) const;
  const std::uint32_t* panel_of_b(const tile& t, std::int64_t p, std::int64_t q) const;
  std::uint32_t* own_panel(const tile& t, std::int64_t p, std::int64_t q) const;
  void pack_inside(const tile& t, std::int64_t p, std::int64_t q) const;
  panel_feed feed_of(const tile& t, std::int64_t p, std::int64_t q) const;
  panel_feed feed_after(const tile& t, std::int64_t p, std::int64_t q) const;
  void multiply_micro_panels(const tile& t, std::int64_t p, std::int64_t q,
                             const std::uint32_t* a) const;
  void multiply_tiles(const tile& t, std::int64_t p, std::int64_t q, const char* a) const;
  result_part result_of(std::int64_t row, int rows, std::int64_t q) const;
  void multiply(std::int64_t row_tile, std::int64_t column_tile, std::int64_t phase_first,
                int thread) const;

  source_matrix source_of_b() const { return {p_.b, p_.ldb, p_.transpose_b}; }
  int words_of(std::int64_t p) const {
    return (form_.depth(p) + form_.per_word() - 1) / form_.per_word();
  }
  std::int64_t a_words() const { return form_.pass / form_.per_word(); }
  std::int64_t panel_words() const { return form_.padded_k() / form_.per_word() * form_.panel; }

  const gemm_problem& p_;
  const gemm_plan plan_;
  const packed_form& form_;
  const tile_grid& grid_;
  const gemm_kernels& kernels_;
  const word_moves& moves_;
  const std::uint32_t* pack_;
  char* scratch_;
};

void gemm_run::run(const core::parallel& threads) {
  if (plan_.packs_a_once) pack_a_for_all(threads);
  for (std::int64_t first = 0; first < grid_.column_tiles; first += grid_.phase_columns) {
    const std::int64_t end = std::min(first + grid_.phase_columns, grid_.column_tiles);
    if (plan_.shared_b != 0) {
      pack_for_all(form_, source_of_b(), grid_.first_panel(first), grid_.first_panel(end),
                   reinterpret_cast<std::uint32_t*>(scratch_), threads, kernels_);
    }
    const std::int64_t columns = end - first;
    threads(grid_.row_tiles * columns, [&](std::int64_t task, int thread) {
      const tile_session session(plan_.on_tiles ? kernels_.tiles : nullptr);
      multiply(task / columns, first + task % columns, first, thread);
    });
  }
}

// The rows of A of a tile in pass `p`, ready to be multiplied: where they lie, where they were
// packed for all, or packed now.
const char* gemm_run::rows_of_a(const tile& t, std::int64_t p) const {
  if (plan_.reads_a) return source_of_a(t.row, p);
  if (plan_.packs_a_once) return reinterpret_cast<const char*>(shared_rows(t.row, p));
  pack_a(t.row, t.rows, p, reinterpret_cast<std::uint32_t*>(t.own_a));
  return t.own_a;
}

const char* gemm_run::source_of_a(std::int64_t row, std::int64_t p) const {
  const std::int64_t k = p * form_.pass;
  const std::int64_t place = p_.transpose_a ? k * p_.lda + row : row * p_.lda + k;
  return static_cast<const char*>(p_.a) + place * (form_.type == element_type::bf16 ? 2 : 4);
}

// Where rows packed for all begin; `row` is where a tile or a group begins.
std::uint32_t* gemm_run::shared_rows(std::int64_t row, std::int64_t p) const {
  const std::int64_t row_words =
      plan_.on_tiles ? form_.padded_depth(p) / form_.per_word() : words_of(p);
  auto* words = reinterpret_cast<std::uint32_t*>(scratch_ + plan_.shared_b);
  return words + p * round_up(p_.m, 32) * a_words() + row * row_words;
}

void gemm_run::pack_a_for_all(const core::parallel& threads) {
  std::int64_t group = 128;  // rows a task, fewer where there are many threads
  const auto groups_of = [&](std::int64_t rows) { return (p_.m + rows - 1) / rows; };
  while (group > 32 && groups_of(group) * form_.passes() < 2 * threads.threads()) group /= 2;
  const std::int64_t groups = groups_of(group);
  threads(groups * form_.passes(), [&](std::int64_t task, int) {
    const std::int64_t row = task % groups * group, p = task / groups;
    pack_a(row, static_cast<int>(std::min(group, p_.m - row)), p, shared_rows(row, p));
  });
}

void gemm_run::pack_a(std::int64_t row, int rows, std::int64_t p, std::uint32_t* to) const {
  const char* from = source_of_a(row, p);
  const int depth = form_.depth(p), padded = static_cast<int>(round_up(rows, micro_rows));
  const std::int64_t micro_panel = std::int64_t{micro_rows} * words_of(p);
  if (plan_.on_tiles) {
    pack_strips(from, rows, p, to);
  } else if (p_.transpose_a) {
    moves_.micro_transpose({from, p_.lda, depth, rows, to, micro_panel, padded});
  } else {
    moves_.micro_rows({from, p_.lda, rows, depth, to, micro_panel, padded});
  }
}

// A in strips of 32 rows for tiles: every step of 32 of the depth is 2 KiB in one piece.
void gemm_run::pack_strips(const char* from, int rows, std::int64_t p, std::uint32_t* to) const {
  constexpr int side = tile_side, step_words = side * side / 2;
  const int depth = form_.depth(p), steps = form_.padded_depth(p) / side;
  const int strips = (rows + side - 1) / side;
  const int odd_rows = rows % side;
  if (odd_rows != 0) {
    std::memset(to + std::int64_t{strips - 1} * steps * step_words, 0,
                static_cast<std::size_t>(steps) * step_words * 4);
  }
  if (!p_.transpose_a) {
    kernels_.strips(
        {from, p_.lda, rows, depth, to, std::int64_t{steps} * step_words, steps * side / 2});
    return;
  }
  for (int step = 0; step < steps; ++step) {
    for (int strip = 0; strip < strips; ++strip) {
      const char* square = from + (step * side * p_.lda + strip * side) * 2;
      moves_.transpose_rows(
          {square, p_.lda, std::min(side, depth - step * side), std::min(side, rows - strip * side),
           to + (std::int64_t{strip} * steps + step) * step_words, side / 2, side / 2});
    }
  }
}

// Pass `p` of panel `q` of B, packed or to be packed.
std::uint32_t* gemm_run::own_panel(const tile& t, std::int64_t p, std::int64_t q) const {
  std::int64_t slot = q - t.first;
  if (plan_.feeds) slot += p * (t.end - t.first);  // round robin, on into the next pass
  slot %= plan_.inside_panels;
  return t.own_b + slot * form_.padded_depth(0) / form_.per_word() * form_.panel;
}

const std::uint32_t* gemm_run::panel_of_b(const tile& t, std::int64_t p, std::int64_t q) const {
  if (plan_.pack_inside) return own_panel(t, p, q);
  const std::uint32_t* base = pack_ != nullptr ? pack_ : reinterpret_cast<std::uint32_t*>(scratch_);
  const std::int64_t origin = pack_ != nullptr ? 0 : t.packed_panel;
  return base + (q - origin) * panel_words() + p * form_.pass / form_.per_word() * form_.width(q);
}

// The next panels, for this task alone.
void gemm_run::pack_inside(const tile& t, std::int64_t p, std::int64_t q) const {
  const std::int64_t stride = form_.padded_depth(0) / form_.per_word() * form_.panel;
  const std::int64_t end = std::min(q + plan_.inside_panels, t.end);
  pack_panels(form_, source_of_b(), p, {0, form_.depth(p)}, q, end, {t.own_b, stride, q}, kernels_);
}

// What is read after pass p of panel q.
panel_feed gemm_run::feed_after(const tile& t, std::int64_t p, std::int64_t q) const {
  // One or two rows wait for memory anyway, and the hardware fetches a single stream faster.
  if (t.rows <= 2 || (plan_.pack_inside && !plan_.feeds)) return {};
  if (q + 1 < t.end) return feed_of(t, p, q + 1);
  return p + 1 < form_.passes() ? feed_of(t, p + 1, t.first) : panel_feed();
}

panel_feed gemm_run::feed_of(const tile& t, std::int64_t p, std::int64_t q) const {
  const int calls = (t.rows + micro_rows - 1) / micro_rows;
  if (plan_.pack_inside) {
    return panel_feed(form_, source_of_b(), p, q, own_panel(t, p, q), kernels_, calls);
  }
  return panel_feed(panel_of_b(t, p, q), words_of(p), form_.width(q), calls);
}

void gemm_run::multiply_micro_panels(const tile& t, std::int64_t p, std::int64_t q,
                                     const std::uint32_t* a) const {
  const std::int64_t last_pass = form_.passes() - 1;
  const bool keeps = last_pass > 0;  // sums for later passes
  micro_args x{};
  x.a = a;
  x.a_row = plan_.reads_a ? p_.lda / form_.per_word() : 1;
  x.a_step = plan_.reads_a ? 1 : micro_rows;
  x.b = panel_of_b(t, p, q);
  x.words = words_of(p);
  x.b_step = x.width = form_.width(q);
  x.first = p == 0;
  x.last = p >= last_pass;
  x.ld_sums = plan_.sums_stride();
  x.next_sums = t.sums + (keeps ? (q - t.first) * form_.panel : 0);
  x.result = result_of(t.row, t.rows, q);
  const std::int64_t a_next = micro_rows * (plan_.reads_a ? x.a_row : x.words);
  const std::int64_t sums_step = keeps ? micro_rows * x.ld_sums : 0;
  const std::int64_t result_bytes = x.result.bf16 ? 2 : 4;
  const std::int64_t result_step = micro_rows * x.result.ldc * result_bytes;
  panel_feed feed = feed_after(t, p, q);
  const micro_kernel multiply = kernels_.multiply(form_.compute);
  for (int call = 0; x.result.rows > 0; ++call) {
    x.fetch = feed.fetch(call);
    if (t.carried != nullptr) x.copies = t.carried->next();
    x.sums = x.next_sums;
    x.next_sums += sums_step;
    multiply(x);
    feed.pack_after(call);
    x.a += a_next;
    x.result.rows -= micro_rows;
    x.result.c = static_cast<char*>(x.result.c) + result_step;
    x.result.place += micro_rows * x.result.ld_products;
    if (x.result.twin != nullptr)
      x.result.twin =
          static_cast<char*>(x.result.twin) + micro_rows * x.result.ld_twin * result_bytes;
  }
  feed.finish();
}

void gemm_run::multiply_tiles(const tile& t, std::int64_t p, std::int64_t q, const char* a) const {
  const int steps = form_.padded_depth(p) / tile_side;
  tile_panel panel{};
  panel.a = a;
  panel.a_row = plan_.reads_a ? p_.lda * 2 : 64;
  panel.a_step = plan_.reads_a ? 64 : tile_side * 64;
  panel.a_strip = tile_side * (plan_.reads_a ? p_.lda * 2 : std::int64_t{steps} * 64);
  panel.b = reinterpret_cast<const char*>(panel_of_b(t, p, q));
  const bool next_known = q + 1 < t.end || (p + 1 < form_.passes() && !plan_.pack_inside);
  const std::uint32_t* next =
      q + 1 < t.end ? panel_of_b(t, p, q + 1) : panel_of_b(t, p + 1, t.first);
  panel.next_b = next_known ? reinterpret_cast<const char*>(next) : nullptr;
  panel.width = form_.width(q);
  panel.rows = t.rows;
  panel.steps = steps;
  panel.first = p == 0;
  panel.last = p == form_.passes() - 1;
  const bool kept = form_.passes() > 1;  // sums of a single pass leave at once, so two squares do
  const std::int64_t strips = (t.rows + tile_side - 1) / tile_side;
  panel.sums = kept ? t.sums + (q - t.first) * strips * tile_side * tile_side : t.sums;
  panel.ld_sums = tile_side;
  panel.square = kept ? tile_side * tile_side : 0;
  panel.result = result_of(t.row, t.rows, q);
  kernels_.tiles->multiply(panel);
}

result_part gemm_run::result_of(std::int64_t row, int rows, std::int64_t q) const {
  const bool bf16 = p_.c_type == element_type::bf16;
  const std::int64_t column = q * form_.panel;
  const int columns = form_.columns(q);
  const std::int64_t in_block = column * p_.block.rows + (p_.block.first + row) * columns;
  const std::int64_t place = p_.to_block ? in_block : row * p_.ldc + column;
  result_part to{};
  to.bias = p_.bias == nullptr ? nullptr : p_.bias + column;
  to.c = static_cast<char*>(p_.c) + place * (bf16 ? 2 : 4);
  to.ldc = p_.to_block ? columns : p_.ldc;
  to.rows = rows, to.columns = columns;
  to.bf16 = bf16, to.accumulate = p_.accumulate;
  // Of a last panel where its rows are lines; half lines are slower than going through the cache.
  const bool around = columns == form_.panel || columns * (bf16 ? 2 : 4) % 64 == 0;
  to.bypass = p_.to_block && around;
  to.products = p_.products, to.ranks = p_.ranks, to.own = p_.own;
  to.place = in_block, to.ld_products = columns;
  if (p_.twin == nullptr) return to;
  to.twin = static_cast<char*>(p_.twin) +
            (p_.twin_is_block ? in_block : row * p_.ldc + column) * (bf16 ? 2 : 4);
  to.ld_twin = p_.twin_is_block ? columns : p_.ldc;
  to.twin_bypass = around;
  return to;
}

void gemm_run::multiply(std::int64_t row_tile, std::int64_t column_tile, std::int64_t phase_first,
                        int thread) const {
  tile t;
  t.row = grid_.first_row(row_tile);
  t.rows = static_cast<int>(grid_.first_row(row_tile + 1) - t.row);
  t.first = grid_.first_panel(column_tile);
  t.end = grid_.first_panel(column_tile + 1);
  t.packed_panel = grid_.first_panel(phase_first);
  t.own_a =
      scratch_ + plan_.shared_b + plan_.shared_a + static_cast<std::size_t>(thread) * plan_.own;
  t.own_b = reinterpret_cast<std::uint32_t*>(t.own_a + plan_.own_a);
  t.sums = reinterpret_cast<float*>(t.own_a + plan_.own_a + plan_.own_b);

  if (plan_.feeds) feed_of(t, 0, t.first).finish();
  const std::int64_t passes = std::max<std::int64_t>(form_.passes(), 1);  // of an empty depth, too
  std::optional<carried_share> carried;
  if (p_.carried != nullptr) {
    const std::int64_t calls =
        passes * (t.end - t.first) * ((t.rows + micro_rows - 1) / micro_rows);
    carried.emplace(*p_.carried, row_tile * grid_.column_tiles + column_tile,
                    grid_.row_tiles * grid_.column_tiles, calls);
  }
  t.carried = carried ? &*carried : nullptr;
  for (std::int64_t p = 0; p < passes; ++p) {
    const char* a = rows_of_a(t, p);
    for (std::int64_t q = t.first; q < t.end; ++q) {
      const bool next_group = (q - t.first) % plan_.inside_panels == 0;
      if (plan_.pack_inside && !plan_.feeds && next_group) pack_inside(t, p, q);
      if (plan_.on_tiles) {
        multiply_tiles(t, p, q, a);
      } else {
        multiply_micro_panels(t, p, q, reinterpret_cast<const std::uint32_t*>(a));
      }
    }
  }
  if (carried) carried->finish();
  if (p_.to_block || p_.twin != nullptr) kernels_.fence();
}

void copy_rows(const block_source& from, void* to, std::int64_t ld, const core::parallel& threads,
               core::isa isa) {
  constexpr std::int64_t some =
      256;  // rows of a task: a panel of them is a run long enough to fetch
  const gemm_kernels& kernels = gemm_kernels_for(isa);
  const std::int64_t element = from.type == element_type::bf16 ? 2 : 4;
  threads.slices((from.rows + some - 1) / some, [&](std::int64_t task, int) {
    const std::int64_t first = task * some;
    kernels.copy_panel_rows({static_cast<const char*>(from.block), from.rows, from.panel * element,
                             from.columns * element, first, std::min(first + some, from.rows),
                             static_cast<char*>(to) + first * ld * element, ld * element});
  });
}

std::size_t gemm_scratch_bytes(const gemm_problem& problem, bool packed, int threads,
                               const gemm_target& target) {
  if (is_small(problem, packed)) return 0;
  return gemm_plan(problem, packed, threads, target).scratch_bytes(threads);
}

void gemm(const gemm_problem& problem, const packed_matrix* b, const core::parallel& threads,
          void* scratch, const gemm_target& target) {
  if (problem.m == 0 || problem.n == 0) {
    if (problem.carried != nullptr) carried_share(*problem.carried, 0, 1, 1).finish();
    return;
  }
  assert(b == nullptr || (b->serves(target) && b->type() == problem.type && b->k() == problem.k &&
                          b->n() == problem.n));
  assert(problem.carried == nullptr || b != nullptr);
  assert((!problem.to_block && problem.products == nullptr) ||
         (b != nullptr && problem.bias == nullptr && !problem.accumulate));
  if (is_small(problem, b != nullptr)) {
    multiply_small(problem, gemm_kernels_for(target.isa));
  } else {
    gemm_run(problem, b, threads.threads(), scratch, target).run(threads);
  }
}

}  // namespace velo::ops
