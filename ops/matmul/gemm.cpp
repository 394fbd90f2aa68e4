// The engine's loops: phases of packing and products, tasks over tiles, passes over the depth,
// panels, row pieces.
#include "ops/matmul/gemm.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "ops/matmul/amx_panel.hpp"
#include "ops/matmul/gemm_plan.hpp"
#include "ops/matmul/moves.hpp"

namespace velo::ops {
namespace {

// Pass `p` of panels whose passes follow each other. A narrow last panel has narrower rows, so its
// passes lie closer.
void pack_pass(const packed_form& form, const source_matrix& b, std::int64_t p, std::int64_t first,
               std::int64_t end, const packed_target& to, core::isa level) {
  const std::int64_t rows_before = p * form.pass / form.per_word();
  const std::int64_t even = form.width(end - 1) == form.panel ? end : end - 1;
  pack_panels(form, b, p, first, even,
              {to.words + rows_before * form.panel, to.panel_stride, to.origin}, level);
  if (even == end) return;
  const packed_target narrow{to.words + rows_before * form.width(even), to.panel_stride, to.origin};
  pack_panels(form, b, p, even, end, narrow, level);
}

}  // namespace

packed_matrix::packed_matrix(std::int64_t k, std::int64_t n, block_type type,
                             const gemm_target& target)
    : k_(k), n_(n), type_(type), target_(target) {}

std::size_t packed_matrix::bytes() const {
  return packed_form(k_, n_, type_, target_).bytes();
}

bool packed_matrix::serves(const gemm_target& target) const {
  const packed_form mine(k_, n_, type_, target_), wanted(k_, n_, type_, target);
  return mine.compute == wanted.compute && mine.panel == wanted.panel && mine.pass == wanted.pass;
}

float packed_matrix::at(std::int64_t k, std::int64_t n) const {
  const packed_form form(k_, n_, type_, target_);
  const std::int64_t q = n / form.panel, per_word = form.per_word();
  const std::uint32_t word = words_[form.padded_k() / per_word * q * form.panel +
                                    k / per_word * form.width(q) + n % form.panel];
  std::uint32_t bits = word;
  if (per_word == 2) bits = k % 2 == 0 ? word << 16 : word & 0xffff0000u;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

void packed_matrix::update(const void* weight, std::int64_t ld, bool turned,
                           const core::parallel& threads) {
  const packed_form form(k_, n_, type_, target_);
  constexpr std::int64_t group = 4;  // panels a task
  const std::int64_t groups = (form.panels() + group - 1) / group;
  const std::int64_t panel_words = form.padded_k() / form.per_word() * form.panel;
  threads(groups * form.passes(), [&](std::int64_t task, int) {
    const std::int64_t first = task / form.passes() * group, p = task % form.passes();
    const std::int64_t end = std::min(first + group, form.panels());
    pack_pass(form, {weight, ld, turned}, p, first, end, {words_, panel_words, 0}, target_.level);
  });
}

// One call of gemm.
class gemm_run {
 public:
  gemm_run(const gemm_problem& problem, const packed_matrix* pack, void* scratch,
           const gemm_target& target, bool jit)
      : p_(problem),
        plan_(problem, pack != nullptr, target),
        form_(plan_.form),
        level_(target.level),
        moves_(moves_for(target.level)),
        pack_(pack == nullptr ? nullptr : pack->words_),
        scratch_(static_cast<char*>(scratch)) {
    if (!plan_.amx) {
      choose_pieces();
      make_kernels(jit);
    }
  }

  void run(const core::parallel& threads);

 private:
  static constexpr int most_pieces = 6;
  static constexpr int fetching = most_pieces;  // the first piece again, fetching ahead

  // One task's part of C, and its own part of the scratch.
  struct tile {
    std::int64_t row;
    int rows;
    std::int64_t first, end;    // panels
    std::int64_t packed_panel;  // first of the panels that are packed now, by this phase or inside
    char* own_a;
    std::uint32_t* own_b;
    float* sums;
  };

  void choose_pieces();
  void make_kernels(bool jit);
  block_shape shape_of(int rows, bool last_panel, bool last_pass, bool later_pass) const;
  void pack_phase(std::int64_t first_tile, std::int64_t end_tile, const core::parallel& threads);
  const char* rows_of_a(const tile& t, std::int64_t p) const;
  const char* source_of_a(std::int64_t row, std::int64_t p) const;
  std::uint32_t* shared_rows(std::int64_t row, std::int64_t p) const;
  void pack_a_for_all(const core::parallel& threads);
  void pack_a(std::int64_t row, int rows, std::int64_t p, std::uint32_t* to) const;
  void pack_strips(const char* from, int rows, std::int64_t p, std::uint32_t* to) const;
  const std::uint32_t* panel_of_b(const tile& t, std::int64_t p, std::int64_t q) const;
  const std::uint32_t* panel_after(const tile& t, std::int64_t p, std::int64_t q) const;
  void pack_inside(tile& t, std::int64_t p, std::int64_t q) const;
  void multiply_pieces(const tile& t, std::int64_t p, std::int64_t q, const char* a) const;
  void multiply_tiles(const tile& t, std::int64_t p, std::int64_t q, const char* a) const;
  finish_args finish_of(std::int64_t row, int rows, std::int64_t column, int columns) const;
  void finish_tile(const tile& t) const;
  void multiply(std::int64_t row_tile, std::int64_t column_tile, std::int64_t phase_first,
                int thread) const;

  bool writes_c(std::int64_t q) const { return plan_.direct && form_.columns(q) == form_.width(q); }
  std::int64_t a_words() const { return form_.pass / form_.per_word(); }
  std::int64_t panel_words() const { return form_.padded_k() / form_.per_word() * form_.panel; }

  const gemm_problem& p_;
  const gemm_plan plan_;
  const packed_form& form_;
  const core::isa level_;
  const move_table& moves_;
  const std::uint32_t* pack_;
  char* scratch_;
  int pieces_[most_pieces];  // heights of row pieces, falling; every tile is a row of them
  int piece_count_ = 0;
  block_kernel kernels_[most_pieces + 1][2][2][2];  // [piece][last panel][last pass][later pass]
};

// The height of a piece is part of generated code, so a few powers of two serve all.
void gemm_run::choose_pieces() {
  for (int rows = 32; rows >= 1; rows /= 2) {
    const bool used = rows == 32 ? p_.m >= 32 : (p_.m & rows) != 0;
    if (used) pieces_[piece_count_++] = rows;
  }
}

block_shape gemm_run::shape_of(int rows, bool last_panel, bool last_pass, bool later_pass) const {
  const std::int64_t q = last_panel ? form_.panels() - 1 : 0;
  const std::int64_t p = last_pass ? form_.passes() - 1 : 0;
  block_shape shape;
  shape.m = rows;
  shape.n = form_.width(q);
  shape.k = plan_.reads_a ? form_.depth(p) : form_.padded_depth(p);
  shape.lda = plan_.reads_a ? p_.lda : form_.pass;
  shape.ldb = form_.width(q);
  shape.ldc = writes_c(q) ? p_.ldc : plan_.sums_stride();
  shape.type = form_.compute;
  shape.accumulate = later_pass || (writes_c(q) && p_.accumulate);
  return shape;
}

// Only the last panel may be narrower and only the last pass shallower than the others.
void gemm_run::make_kernels(bool jit) {
  const std::int64_t passes = form_.passes();
  for (int piece = 0; piece < piece_count_; ++piece) {
    for (const bool last_panel : {false, true}) {
      if (!last_panel && form_.panels() == 1) continue;
      for (const bool last_pass : {false, true}) {
        for (const bool later_pass : {false, true}) {
          const bool used = last_pass ? later_pass == (passes > 1) : passes > (later_pass ? 2 : 1);
          if (!used || passes == 0) continue;
          block_shape shape = shape_of(pieces_[piece], last_panel, last_pass, later_pass);
          kernels_[piece][last_panel][last_pass][later_pass] =
              block_kernel::make(shape, level_, jit);
          if (piece > 0) continue;
          shape.fetch = true;
          kernels_[fetching][last_panel][last_pass][later_pass] =
              block_kernel::make(shape, level_, jit);
        }
      }
    }
  }
}

void gemm_run::run(const core::parallel& threads) {
  if (plan_.packs_a_once) pack_a_for_all(threads);
  const std::int64_t step = plan_.shared_b == 0 ? plan_.column_tiles : plan_.phase_columns;
  for (std::int64_t first = 0; first < plan_.column_tiles; first += step) {
    const std::int64_t end = std::min(first + step, plan_.column_tiles);
    if (plan_.shared_b != 0) pack_phase(first, end, threads);
    const std::int64_t columns = end - first;
    threads(plan_.row_tiles * columns, [&](std::int64_t task, int thread) {
      const block_session session(plan_.amx ? level_ : core::isa::scalar);
      multiply(task / columns, first + task % columns, first, thread);
    });
  }
}

void gemm_run::pack_phase(std::int64_t first_tile, std::int64_t end_tile,
                          const core::parallel& threads) {
  const std::int64_t origin = plan_.first_panel(first_tile);
  const std::int64_t panels = plan_.first_panel(end_tile) - origin;
  constexpr std::int64_t group = 4;  // panels a task
  const std::int64_t groups = (panels + group - 1) / group;
  auto* words = reinterpret_cast<std::uint32_t*>(scratch_);
  threads(groups * form_.passes(), [&](std::int64_t task, int) {
    const std::int64_t first = origin + task / form_.passes() * group, p = task % form_.passes();
    const std::int64_t end = std::min(first + group, origin + panels);
    pack_pass(form_, {p_.b, p_.ldb, p_.turn_b}, p, first, end, {words, panel_words(), origin},
              level_);
  });
}

// The rows of A of a tile in pass `p`, ready for blocks: where they lie, where they were packed for
// all, or packed now.
const char* gemm_run::rows_of_a(const tile& t, std::int64_t p) const {
  if (plan_.reads_a) return source_of_a(t.row, p);
  if (plan_.packs_a_once) return reinterpret_cast<const char*>(shared_rows(t.row, p));
  pack_a(t.row, t.rows, p, reinterpret_cast<std::uint32_t*>(t.own_a));
  return t.own_a;
}

const char* gemm_run::source_of_a(std::int64_t row, std::int64_t p) const {
  const std::int64_t k = p * form_.pass;
  const std::int64_t place = p_.turn_a ? k * p_.lda + row : row * p_.lda + k;
  return static_cast<const char*>(p_.a) + place * (form_.type == block_type::bf16 ? 2 : 4);
}

// Where rows packed for all begin; `row` is a multiple of 32.
std::uint32_t* gemm_run::shared_rows(std::int64_t row, std::int64_t p) const {
  const std::int64_t row_words = plan_.amx ? form_.padded_depth(p) / form_.per_word() : a_words();
  auto* words = reinterpret_cast<std::uint32_t*>(scratch_ + plan_.shared_b);
  return words + p * round_up(p_.m, 32) * a_words() + row * row_words;
}

void gemm_run::pack_a_for_all(const core::parallel& threads) {
  constexpr std::int64_t group = 128;  // rows a task
  const std::int64_t groups = (p_.m + group - 1) / group;
  threads(groups * form_.passes(), [&](std::int64_t task, int) {
    const std::int64_t row = task % groups * group, p = task / groups;
    pack_a(row, static_cast<int>(std::min(group, p_.m - row)), p, shared_rows(row, p));
  });
}

void gemm_run::pack_a(std::int64_t row, int rows, std::int64_t p, std::uint32_t* to) const {
  const bool pairs = form_.compute == block_type::bf16;
  const bool wide = form_.type == block_type::bf16 && !pairs;
  const char* from = source_of_a(row, p);
  const int depth = form_.depth(p), padded = form_.padded_depth(p) / form_.per_word();
  if (plan_.amx) {
    pack_strips(from, rows, p, to);
  } else if (p_.turn_a) {
    const move m{from, p_.lda, depth, rows, to, a_words(), padded};
    (pairs ? moves_.turn16 : wide ? moves_.turn16_wide : moves_.turn32)(m);
  } else {
    const move m{from, p_.lda, rows, depth, to, a_words(), padded};
    (pairs ? moves_.rows16 : wide ? moves_.rows16_wide : moves_.rows32)(m);
  }
}

// A in strips of 32 rows for the tiles of AMX: every step of 32 of the depth is 2 KiB in one piece.
void gemm_run::pack_strips(const char* from, int rows, std::int64_t p, std::uint32_t* to) const {
  constexpr int side = amx_side, step_words = side * side / 2;
  const int depth = form_.depth(p), steps = form_.padded_depth(p) / side;
  const int strips = (rows + side - 1) / side;
  const int odd_rows = rows % side;
  if (odd_rows != 0) {
    std::memset(to + std::int64_t{strips - 1} * steps * step_words, 0,
                static_cast<std::size_t>(steps) * step_words * 4);
  }
  if (!p_.turn_a) {
    moves_.strips16(
        {from, p_.lda, rows, depth, to, std::int64_t{steps} * step_words, steps * side / 2});
    return;
  }
  for (int step = 0; step < steps; ++step) {
    for (int strip = 0; strip < strips; ++strip) {
      const char* square = from + (step * side * p_.lda + strip * side) * 2;
      moves_.turn16({square, p_.lda, std::min(side, depth - step * side),
                     std::min(side, rows - strip * side),
                     to + (std::int64_t{strip} * steps + step) * step_words, side / 2, side / 2});
    }
  }
}

// Pass `p` of panel `q` of B, packed.
const std::uint32_t* gemm_run::panel_of_b(const tile& t, std::int64_t p, std::int64_t q) const {
  if (plan_.pack_inside) {
    return t.own_b + (q - t.packed_panel) * form_.padded_depth(p) / form_.per_word() * form_.panel;
  }
  const std::uint32_t* base = pack_ != nullptr ? pack_ : reinterpret_cast<std::uint32_t*>(scratch_);
  const std::int64_t origin = pack_ != nullptr ? 0 : t.packed_panel;
  return base + (q - origin) * panel_words() + p * form_.pass / form_.per_word() * form_.width(q);
}

// What is read after that panel, or null when it is not packed yet or another task's.
const std::uint32_t* gemm_run::panel_after(const tile& t, std::int64_t p, std::int64_t q) const {
  if (plan_.pack_inside && (q + 1 - t.first) % plan_.inside_panels == 0) return nullptr;
  if (q + 1 < t.end) return panel_of_b(t, p, q + 1);
  return p + 1 < form_.passes() && !plan_.pack_inside ? panel_of_b(t, p + 1, t.first) : nullptr;
}

// The next panels of B for this task alone.
void gemm_run::pack_inside(tile& t, std::int64_t p, std::int64_t q) const {
  const std::int64_t stride = form_.padded_depth(p) / form_.per_word() * form_.panel;
  const std::int64_t end = std::min(q + plan_.inside_panels, t.end);
  t.packed_panel = q;
  pack_panels(form_, {p_.b, p_.ldb, p_.turn_b}, p, q, end, {t.own_b, stride, q}, level_);
}

void gemm_run::multiply_pieces(const tile& t, std::int64_t p, std::int64_t q, const char* a) const {
  const std::int64_t element = form_.compute == block_type::bf16 ? 2 : 4;
  const std::int64_t a_row = (plan_.reads_a ? p_.lda : form_.pass) * element;
  const std::int64_t column = q * form_.panel;
  const bool to_c = writes_c(q);
  float* out = to_c ? static_cast<float*>(p_.c) + t.row * p_.ldc + column
                    : t.sums + (column - t.first * form_.panel);
  const std::int64_t ld = to_c ? p_.ldc : plan_.sums_stride();
  const std::uint32_t* b = panel_of_b(t, p, q);
  const std::uint32_t* next = panel_after(t, p, q);
  const bool last_panel = q == form_.panels() - 1, last_pass = p == form_.passes() - 1;
  int done = 0;
  if (t.rows >= pieces_[0]) {  // the first piece waits for its own panel and fetches the next one
    kernels_[fetching][last_panel][last_pass][p > 0](a, b, out, next == nullptr ? b : next);
    done = pieces_[0];
  }
  for (int piece = 0; piece < piece_count_; ++piece) {
    const block_kernel& kernel = kernels_[piece][last_panel][last_pass][p > 0];
    for (; t.rows - done >= pieces_[piece]; done += pieces_[piece]) {
      kernel(a + done * a_row, b, out + done * ld);
    }
  }
}

void gemm_run::multiply_tiles(const tile& t, std::int64_t p, std::int64_t q, const char* a) const {
  const std::int64_t column = q * form_.panel;
  const int steps = form_.padded_depth(p) / amx_side;
  amx_panel panel{};
  panel.a = a;
  panel.a_row = plan_.reads_a ? p_.lda * 2 : 64;
  panel.a_step = plan_.reads_a ? 64 : amx_side * 64;
  panel.a_strip = amx_side * (plan_.reads_a ? p_.lda * 2 : std::int64_t{steps} * 64);
  panel.b = reinterpret_cast<const char*>(panel_of_b(t, p, q));
  panel.next_b = reinterpret_cast<const char*>(panel_after(t, p, q));
  panel.width = form_.width(q);
  panel.rows = t.rows;
  panel.steps = steps;
  panel.first = p == 0;
  panel.last = p == form_.passes() - 1;
  const bool kept = form_.passes() > 1;  // sums of a single pass leave at once, so two squares do
  const std::int64_t strips = (t.rows + amx_side - 1) / amx_side;
  panel.sums = kept ? t.sums + (q - t.first) * strips * amx_side * amx_side : t.sums;
  panel.square = kept ? amx_side * amx_side : 0;
  panel.finish = finish_of(t.row, 0, column, form_.columns(q));
  amx_multiply_panel(panel, moves_.finish);
}

finish_args gemm_run::finish_of(std::int64_t row, int rows, std::int64_t column,
                                int columns) const {
  const bool bf16 = p_.c_type == block_type::bf16;
  char* c = static_cast<char*>(p_.c) + (row * p_.ldc + column) * (bf16 ? 2 : 4);
  const float* bias = p_.bias == nullptr ? nullptr : p_.bias + column;
  return {nullptr, plan_.sums_stride(), bias, c, p_.ldc, rows, columns, bf16, p_.accumulate};
}

// From sums to the result; of a direct product only what blocks could not write themselves, and the
// bias.
void gemm_run::finish_tile(const tile& t) const {
  const std::int64_t column = t.first * form_.panel;
  const std::int64_t column_end = std::min(t.end * form_.panel, p_.n);
  std::int64_t written = column;
  if (plan_.direct) written = writes_c(t.end - 1) ? column_end : (t.end - 1) * form_.panel;
  if (written < column_end) {
    finish_args f = finish_of(t.row, t.rows, written, static_cast<int>(column_end - written));
    f.sums = t.sums + (written - column);
    moves_.finish(f);
  }
  if (p_.bias != nullptr && column < written) {
    finish_args f = finish_of(t.row, t.rows, column, static_cast<int>(written - column));
    f.sums = static_cast<const float*>(f.c);
    f.ld_sums = p_.ldc;
    f.accumulate = false;
    moves_.finish(f);
  }
}

void gemm_run::multiply(std::int64_t row_tile, std::int64_t column_tile, std::int64_t phase_first,
                        int thread) const {
  tile t;
  t.row = plan_.first_row(row_tile);
  t.rows = static_cast<int>(plan_.first_row(row_tile + 1) - t.row);
  t.first = plan_.first_panel(column_tile);
  t.end = plan_.first_panel(column_tile + 1);
  t.packed_panel = plan_.first_panel(phase_first);
  t.own_a =
      scratch_ + plan_.shared_b + plan_.shared_a + static_cast<std::size_t>(thread) * plan_.own;
  t.own_b = reinterpret_cast<std::uint32_t*>(t.own_a + plan_.own_a);
  t.sums = reinterpret_cast<float*>(t.own_a + plan_.own_a + plan_.own_b);

  for (std::int64_t p = 0; p < form_.passes(); ++p) {
    const char* a = rows_of_a(t, p);
    for (std::int64_t q = t.first; q < t.end; ++q) {
      if (plan_.pack_inside && (q - t.first) % plan_.inside_panels == 0) pack_inside(t, p, q);
      plan_.amx ? multiply_tiles(t, p, q, a) : multiply_pieces(t, p, q, a);
    }
  }
  if (form_.passes() == 0) std::memset(t.sums, 0, plan_.own_sums);
  if (!plan_.amx || form_.passes() == 0) finish_tile(t);
}

std::size_t gemm_scratch_bytes(const gemm_problem& problem, bool packed, int threads,
                               const gemm_target& target) {
  return gemm_plan(problem, packed, target).scratch_bytes(threads);
}

void gemm(const gemm_problem& problem, const packed_matrix* b, const core::parallel& threads,
          void* scratch, const gemm_target& target, bool jit) {
  if (problem.m == 0 || problem.n == 0) return;
  assert(b == nullptr || (b->serves(target) && b->type() == problem.type && b->k() == problem.k &&
                          b->n() == problem.n));
  gemm_run(problem, b, scratch, target, jit).run(threads);
}

}  // namespace velo::ops
