// sequence_all_to_all: a cut of rows for a cut of heads, and back.
//
// Ranks that share memory post their tensors in pieces, and each reads the rows and heads that it
// needs from the pieces of the others, in place or from slots. Other ranks send blocks by an
// all-to-all: to heads the blocks are packed before it and arrive in place, to rows they are sent
// in place and joined after it. Invariant: pieces and blocks give the same bits. Cost: one read of
// x and one write of y, and a copy of each where ranks do not see each other's tensors.
#include <algorithm>

#include "core/index.hpp"
#include "core/round_up.hpp"
#include "ops/gemm/element_dtype.hpp"
#include "sched/overlap/product.hpp"
#include "sched/parallel/context/heads/exchanged_heads.hpp"
#include "velo/ops_parallel.h"

namespace velo::sched {
namespace {

using core::fail;
using core::text;
using args = velo_sequence_all_to_all_args;

struct problem {
  membership in;
  bool to_heads;
  velo_dtype dtype;
  head_size each;
  std::int64_t all_rows, all_heads;
  std::int64_t x_bytes;
  std::uint64_t layout;  // the hash of the lists
};

head_cut cut_of(const args& a, const problem& p) {
  return {p.in.size(), p.all_rows, p.all_heads, a.rows == nullptr ? nullptr : a.rows->data,
          a.heads == nullptr ? nullptr : a.heads->data};
}

void require_count(const velo_ints* list, const char* field, std::int64_t wanted) {
  if (list != nullptr && list->count != wanted)
    fail(VELO_ERR_ARGUMENT, text("args.%s.count", field), core::number(wanted),
         core::number(list->count));
}

// The rows of all ranks together.
std::int64_t sum_of_rows(const velo_ints& rows) {
  std::int64_t sum = 0;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    constexpr std::int64_t most = std::int64_t{1} << 40;
    if (rows.data[r] < 0 || rows.data[r] > most)
      fail(VELO_ERR_ARGUMENT, core::concat("args.rows[", r, "]"), "rows from 0 to 2^40",
           core::number(rows.data[r]));
    sum += rows.data[r];
  }
  return sum;
}

// The heads of all ranks together: each is some rank's.
std::int64_t union_of_heads(const velo_ints& heads) {
  std::int64_t all = 0;
  for (std::int64_t i = 0; i < heads.count; i += 2) {
    constexpr std::int64_t most = std::int64_t{1} << 31;
    const std::int64_t begin = heads.data[i], end = heads.data[i + 1];
    if (begin < 0 || end < begin || end > most)
      fail(VELO_ERR_ARGUMENT, core::concat("args.heads[", i, "]"), "0 <= begin <= end <= 2^31",
           core::concat(begin, ", ", end));
    all = std::max(all, end);
  }
  for (std::int64_t head = 0, next = 0; head < all; head = next) {
    for (std::int64_t i = 0; i < heads.count; i += 2)
      if (heads.data[i] <= head) next = std::max(next, heads.data[i + 1]);
    if (next == head)
      fail(VELO_ERR_ARGUMENT, "args.heads", core::concat("a rank that has head ", head), "none");
  }
  return all;
}

void require_size(const velo_tensor& x, int dimension, const char* what, std::int64_t wanted) {
  if (x.shape[dimension] != wanted)
    fail(VELO_ERR_SHAPE, "args.x.shape", core::concat(wanted, " ", what),
         core::number(x.shape[dimension]));
}

// The size over all ranks, for an even cut.
std::int64_t total_of(std::int64_t part, int ranks, const velo_tensor& x) {
  std::int64_t all = 0;
  if (__builtin_mul_overflow(part, std::int64_t{ranks}, &all))
    ops::refuse_sizes(x.ndim, x.shape, "args.x.shape");
  return all;
}
void require_even(std::int64_t all, int ranks, const char* what, const char* list) {
  if (all % ranks != 0)
    fail(VELO_ERR_SHAPE, "args.x.shape",
         core::concat("a number of ", what, " divisible by ", ranks, ", or args.", list),
         core::number(all));
}

std::uint64_t hash_of(const velo_ints* list) {
  std::uint64_t hash = 1;
  for (std::int64_t i = 0; list != nullptr && i < list->count; ++i)
    hash = comm::mixed(hash + static_cast<std::uint64_t>(list->data[i]) + 1);
  return hash;
}

// Rows and heads of all ranks together, by the lists or from those of x.
void set_whole(const args& a, problem& p) {
  const velo_tensor& x = *a.x;
  const int ranks = p.in.size();
  require_count(a.rows, "rows", ranks);
  require_count(a.heads, "heads", 2 * std::int64_t{ranks});
  p.all_rows = a.rows != nullptr ? sum_of_rows(*a.rows)
               : p.to_heads      ? total_of(x.shape[0], ranks, x)
                                 : x.shape[0];
  p.all_heads = a.heads != nullptr ? union_of_heads(*a.heads)
                : p.to_heads       ? x.shape[1]
                                   : total_of(x.shape[1], ranks, x);
  if (a.rows == nullptr) require_even(p.all_rows, ranks, "rows", "rows");
  if (a.heads == nullptr) require_even(p.all_heads, ranks, "heads", "heads");
}

// A head has 0 elements if the tensor is empty on all ranks, so that huge sizes cannot overflow.
head_size head_size_of(const velo_tensor& x, const problem& p) {
  std::int64_t elements = p.all_rows == 0 || p.all_heads == 0 ? 0 : 1;
  for (int i = 2; i < x.ndim; ++i) elements = x.shape[i] == 0 ? 0 : elements * x.shape[i];
  return {ops::type_of(x.dtype), elements, elements * (x.dtype.bits / 8)};
}

void infer(const args& a, problem& p, ops::output_shapes& outputs) {
  const velo_tensor& x = *a.x;
  ops::require_rank(x, "x", 2);
  p = problem{};
  p.in = membership_in(a.group, "args.group");
  p.to_heads = a.to == VELO_SEQUENCE_CUT_HEADS;
  p.dtype = x.dtype;
  set_whole(a, p);
  const head_cut cut = cut_of(a, p);
  const int rank = p.in.group == nullptr ? 0 : p.in.group->rank();
  const span heads = cut.heads_of(rank);
  const std::int64_t own_rows = cut.rows_of(rank), own_heads = heads.end - heads.begin;
  require_size(x, 0, "rows", p.to_heads ? own_rows : p.all_rows);
  require_size(x, 1, "heads", p.to_heads ? p.all_heads : own_heads);
  std::int64_t shape[ops::max_rank];
  std::copy(x.shape, x.shape + x.ndim, shape);
  shape[0] = p.all_rows, shape[1] = p.all_heads;
  if (!ops::countable(x.ndim, shape)) ops::refuse_sizes(x.ndim, shape, "args.x.shape");
  p.each = head_size_of(x, p);
  p.x_bytes = x.shape[0] * x.shape[1] * p.each.bytes;
  shape[0] = p.to_heads ? p.all_rows : own_rows;
  shape[1] = p.to_heads ? own_heads : p.all_heads;
  outputs.set(a.y, x.dtype, x.ndim, shape);
  p.layout = comm::mixed(hash_of(a.rows) ^ comm::mixed(hash_of(a.heads) + (p.to_heads ? 1 : 2)));
}

comm::operation operation_of(const problem& p) {
  comm::operation what;
  what.function = "velo_sequence_all_to_all";
  what.terms.kind = comm::collective::all_to_all;
  what.terms.in_code = what.terms.out_code = p.dtype.code;
  what.terms.in_bits = what.terms.out_bits = p.dtype.bits;
  what.terms.count = p.all_rows * p.all_heads * p.each.elements;
  what.terms.counts = p.layout | 2;  // never what other calls have
  what.bytes = p.x_bytes;
  return what;
}

// The sizes of the exchange: rows, heads and pieces of each rank.
class exchanged {
 public:
  exchanged(const args& a, const problem& p)
      : p_(p),
        cut_(cut_of(a, p)),
        ranks_(cut_.ranks),
        rank_(p.in.group == nullptr ? 0 : p.in.group->rank()) {}

  // Pieces in which every rank's tensor fits slots of `room` bytes; 0: a row of each does not.
  std::int64_t pieces(std::int64_t room) const;

 protected:
  std::int64_t heads_of(int rank) const {
    const span of = cut_.heads_of(rank);
    return of.end - of.begin;
  }
  // Bytes of a row of a rank's input, and of this rank's result.
  std::int64_t row_bytes_of(int rank) const {
    return (p_.to_heads ? p_.all_heads : heads_of(rank)) * p_.each.bytes;
  }
  std::int64_t result_row_bytes() const {
    return (p_.to_heads ? heads_of(rank_) : p_.all_heads) * p_.each.bytes;
  }
  // What `from` gives to `to`: all of its rows of the heads of `to`, or the rows of `to` of all of
  // its heads.
  std::int64_t rows_given(int from, int to) const { return cut_.rows_of(p_.to_heads ? from : to); }
  std::int64_t first_given(int to) const { return p_.to_heads ? 0 : cut_.first_row(to); }
  span heads_given(int from, int to) const {
    return p_.to_heads ? cut_.heads_of(to) : span{0, heads_of(from)};
  }
  std::int64_t given_row_bytes(int from, int to) const {
    return heads_of(p_.to_heads ? to : from) * p_.each.bytes;
  }
  std::int64_t largest_piece(int rank, std::int64_t count) const;

  const problem& p_;
  const head_cut cut_;
  const int ranks_, rank_;
};

// A running call.
class exchange : exchanged {
 public:
  exchange(const args& a, const problem& p, core::execution& on)
      : exchanged(a, p),
        on_(on),
        count_(ops::numel(*a.x)),
        x_(ops::data<const char>(a.x)),
        y_(ops::data<char>(a.y)) {}

  void in_pieces(comm::operation& what, comm::transport& link, core::arena& scratch);
  void by_blocks(comm::operation& what, comm::transport& link, core::arena& scratch);

 private:
  // The share of piece `number` of a run of rows.
  struct piece {
    std::int64_t number, count;
    span of(std::int64_t rows) const {
      return {rows * number / count, rows * (number + 1) / count};
    }
  };
  void fill_slot(const piece& now, char* slot, core::execution& turn) const;
  head_rows rows_in(const piece& now, int from, const comm::relay& link) const;
  void read(const piece& now, comm::relay& link, head_rows* parts, core::execution& turn) const;
  void take(int from, const head_rows& rows, span of, core::execution& turn) const;
  void set_blocks(comm::operation& what) const;

  core::execution& on_;
  const std::int64_t count_;  // elements of x
  const char* x_;
  char* y_;
};

std::int64_t exchanged::largest_piece(int rank, std::int64_t count) const {
  std::int64_t bytes = 0;
  for (int to = 0; to < ranks_; ++to)
    if (to != rank)
      bytes += core::ceil_div(rows_given(rank, to), count) * given_row_bytes(rank, to);
  return bytes;
}

std::int64_t exchanged::pieces(std::int64_t room) const {
  const auto fits = [&](std::int64_t count) {
    for (int r = 0; r < ranks_; ++r)
      if (largest_piece(r, count) > room) return false;
    return true;
  };
  for (std::int64_t count = 1; count <= 2 * p_.all_rows; count *= 2)
    if (fits(count)) return count;
  return fits(1) ? 1 : 0;
}

// Writes what each other rank reads, rank after rank, so that it reads one run of bytes.
void exchange::fill_slot(const piece& now, char* slot, core::execution& turn) const {
  const std::int64_t row = row_bytes_of(rank_);
  for (int to = 0; to < ranks_; ++to) {
    if (to == rank_) continue;
    const span of = now.of(rows_given(rank_, to));
    const std::int64_t rows = of.end - of.begin;
    pack_heads({x_ + (first_given(to) + of.begin) * row, row}, heads_given(rank_, to), rows,
               p_.each, slot, turn);
    slot += rows * given_row_bytes(rank_, to);
  }
}

// The rows and heads that `from` gives to this rank in a piece.
head_rows exchange::rows_in(const piece& now, int from, const comm::relay& link) const {
  const auto* x = from == rank_ ? x_ : static_cast<const char*>(link.peer_tensor(from));
  const std::int64_t row = row_bytes_of(from);
  if (x != nullptr)
    return {x + (first_given(rank_) + now.of(rows_given(from, rank_)).begin) * row +
                heads_given(from, rank_).begin * p_.each.bytes,
            row};
  std::int64_t before = 0;
  for (int to = 0; to < rank_; ++to) {
    if (to == from) continue;
    const span of = now.of(rows_given(from, to));
    before += (of.end - of.begin) * given_row_bytes(from, to);
  }
  return {link.piece(from) + before, given_row_bytes(from, rank_)};
}

// Rows of one rank, of this rank's heads.
void exchange::take(int from, const head_rows& rows, span of, core::execution& turn) const {
  const std::int64_t row = result_row_bytes();
  copy_heads(rows, {0, heads_of(rank_)}, of.end - of.begin, p_.each,
             y_ + (cut_.first_row(from) + of.begin) * row, row, turn);
}

void exchange::read(const piece& now, comm::relay& link, head_rows* parts,
                    core::execution& turn) const {
  const comm::relay::tensor_access access(link);
  for (int step = 0; step < ranks_; ++step) {
    const int from = (rank_ + step) % ranks_;
    parts[from] = rows_in(now, from, link);
    if (p_.to_heads) take(from, parts[from], now.of(rows_given(from, rank_)), turn);
  }
  if (p_.to_heads) return;
  const span of = now.of(cut_.rows_of(rank_));
  join_heads(cut_, parts, of.end - of.begin, p_.each, y_ + of.begin * result_row_bytes(), turn);
}

void exchange::in_pieces(comm::operation& what, comm::transport& link, core::arena& scratch) {
  what.in = x_;
  what.set_count(count_);
  const std::int64_t count = pieces(p_.in.group->relay_slot_bytes());
  auto* parts = scratch.take<head_rows>(core::at(ranks_));
  const auto relay = link.begin_relay(what, on_);
  for (piece now{0, count}; now.number < count; ++now.number) {
    relay->wait_slot();
    if (relay->peer_tensor(rank_) == nullptr)
      in_turn(on_, [&](core::execution& turn) { fill_slot(now, relay->slot(), turn); });
    relay->post();
    relay->wait_piece();
    in_turn(on_, [&](core::execution& turn) { read(now, *relay, parts, turn); });
    relay->release();
  }
  relay->wait_readers();
  relay->finish();
}

// Blocks of rank after rank, in elements.
void exchange::set_blocks(comm::operation& what) const {
  const auto elements = [&](int from, int to) {
    return rows_given(from, to) * heads_of(p_.to_heads ? to : from) * p_.each.elements;
  };
  std::int64_t in = 0;
  for (int r = 0; r < ranks_; ++r) {
    what.in_blocks.push_back({in, elements(rank_, r)});
    what.out_blocks.push_back({what.out_count, elements(r, rank_)});
    in += elements(rank_, r), what.out_count += elements(r, rank_);
  }
  what.set_count(what.in_block(rank_).count);
}

void exchange::by_blocks(comm::operation& what, comm::transport& link, core::arena& scratch) {
  set_blocks(what);
  const std::int64_t size = p_.dtype.bits / 8, own_rows = cut_.rows_of(rank_);
  const std::int64_t bytes = own_rows * cut_.heads_together() * p_.each.bytes;
  auto* between = static_cast<char*>(scratch.take(static_cast<std::size_t>(bytes)));
  if (p_.to_heads) {
    in_turn(on_, [&](core::execution& turn) {
      for (int r = 0; r < ranks_; ++r)
        copy_heads({x_, row_bytes_of(rank_)}, cut_.heads_of(r), own_rows, p_.each,
                   between + what.in_block(r).begin * size, heads_of(r) * p_.each.bytes, turn);
    });
    what.in = between, what.out = y_;
    return link.run(what, on_);
  }
  what.in = x_, what.out = between;
  link.run(what, on_);
  auto* parts = scratch.take<head_rows>(core::at(ranks_));
  for (int r = 0; r < ranks_; ++r)
    parts[r] = {between + what.out_block(r).begin * size, row_bytes_of(r)};
  in_turn(on_,
          [&](core::execution& turn) { join_heads(cut_, parts, own_rows, p_.each, y_, turn); });
}

void run(const args& a, const problem& p, const overlap_kernel& kernel, core::execution& on) {
  if (p.in.group == nullptr) {
    const std::int64_t row = p.all_heads * p.each.bytes;
    return in_turn(on, [&](core::execution& turn) {
      copy_heads({ops::data<const char>(a.x), row}, {0, p.all_heads}, p.all_rows, p.each,
                 ops::data<char>(a.y), row, turn);
    });
  }
  exchange all(a, p, on);
  comm::operation what = operation_of(p);
  p.in.group->serve(p.in.ticket, what, [&](comm::transport& link, core::arena& scratch) {
    if (kernel.how == overlap_kernel::way::sliced) {
      what.terms.counts ^= 1;  // ranks that send blocks have another number
      all.in_pieces(what, link, scratch);
    } else {
      all.by_blocks(what, link, scratch);
    }
  });
}

const char* reject(const args& a, const problem& p, const ops::kernel_entry& kernel) {
  if (!is_sliced(kernel)) return nullptr;
  if (p.in.size() == 1) return "the group has one rank";
  const std::int64_t room = p.in.group->relay_slot_bytes();
  if (room == 0) return "the transport does not show ranks each other's memory";
  return exchanged(a, p).pieces(room) == 0 ? too_small : nullptr;
}

void enter(const args&, problem& p, core::stream& on, const ops::enqueue& put) {
  enter_group(p.in, "args.group", operation_of(p), on, put);
}

void drop(const problem& p) noexcept {
  if (p.in.group != nullptr) p.in.group->drop(p.in.ticket, operation_of(p));
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def sequence_all_to_all_operator =
    define_waiting<sched::infer, sched::run, sched::reject, sched::enter, sched::drop>(
        sched::overlap_kernel_list);

}  // namespace velo::ops
