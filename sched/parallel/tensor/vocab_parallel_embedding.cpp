// vocab_parallel_embedding and its gradient: rows by index of a table that is cut between ranks.
//
// A rank that knows the owner of every index (table_cut.hpp) knows what each rank sends to each. So
// a row of y moves once, from the rank that has it, with its bits. A sum over the ranks, of which
// all but one give zeros, would move as many rows as there are ranks, and turn -0 into 0. At level
// 2 ranks read the rows in each other's tables or in slots; otherwise an all_to_all brings them.
// The gradient sends rows of dy the other way and adds them in the order of tokens. Cost: one read
// of the rows used and one write of y; two more reads and writes where rows are packed.
#include <algorithm>

#include "ops/embedding/token_rows.hpp"
#include "ops/operator/kernels_at.hpp"
#include "sched/parallel/tensor/table_cut.hpp"
#include "sched/parallel/tensor/token_cut.hpp"
#include "velo/ops_parallel.h"

namespace velo::sched {
namespace {

using core::at;
using core::concat;
using core::fail;
using core::number;
using forward_args = velo_vocab_parallel_embedding_args;
using gradient_args = velo_vocab_parallel_embedding_backward_args;

struct problem : token_cut {
  membership in;  // without a group where nothing is exchanged
  const char* function;
  int rank, ranks;
  velo_dtype dtype;
  std::int64_t n;            // elements of a row
  std::int64_t begin, rows;  // of this rank, without padding
  std::int64_t vocab;        // rows of all ranks
  std::uint64_t signature;   // of what must be the same on all ranks

  std::int64_t row_bytes() const { return n * (dtype.bits / 8); }
  bool moves() const { return in.size() > 1 && tokens > 0 && n > 0; }
};

// The shape of y and dy on this rank.
struct rows_shape {
  int rank;
  std::int64_t sizes[ops::max_rank];
  rows_shape(const velo_tensor& indices, const problem& p) : rank(indices.ndim + 1) {
    std::copy(indices.shape, indices.shape + indices.ndim, sizes);
    if (indices.ndim > 0) sizes[0] = p.own_rows;
    sizes[indices.ndim] = p.n;
  }
};

std::uint64_t signature_of(const problem& p, const velo_ints* list) {
  std::uint64_t all = list == nullptr ? 1 : hash_of(*list);
  for (const std::int64_t one : {p.vocab, p.tokens, p.n, std::int64_t{p.parts},
                                 std::int64_t{p.dtype.code} << 8 | p.dtype.bits})
    all = comm::mixed(all + static_cast<std::uint64_t>(one));
  return all;
}

// rows: of this rank, with padding.
template <class Args>
problem problem_of(const Args& a, std::int64_t rows, std::int64_t n, velo_dtype dtype,
                   const char* function) {
  const velo_tensor& indices = *a.indices;
  problem p{};
  p.in = membership_in(a.group, "args.group");
  p.function = function;
  p.rank = p.in.group == nullptr ? 0 : p.in.group->rank();
  p.ranks = p.in.size();
  static_cast<token_cut&>(p) =
      token_cut::of(indices, a.token_rows, a.sequence_parallel != 0, p.rank, p.ranks);
  p.dtype = dtype, p.n = n;
  p.begin = a.vocab_begin < 0 ? p.rank * rows : a.vocab_begin;
  p.vocab = a.vocab_size == 0 ? std::max(rows * p.ranks, p.begin + rows) : a.vocab_size;
  p.rows = std::clamp<std::int64_t>(p.vocab - p.begin, 0, rows);
  p.signature = signature_of(p, a.token_rows);
  return p;
}

void require_indices_rank(const velo_tensor& indices, bool is_cut) {
  ops::require_rank(indices, "indices", is_cut ? 1 : 0, ops::max_rank - 1);
}

void infer(const forward_args& a, problem& p, ops::output_shapes& outputs) {
  require_indices_rank(*a.indices, a.sequence_parallel != 0);
  ops::require_rank(*a.weight, "weight", 2, 2);
  const std::int64_t rows = a.weight->shape[0];
  if (rows > std::int64_t{1} << 40)
    fail(VELO_ERR_SHAPE, "args.weight.shape", "at most 2^40 rows", number(rows));
  p = problem_of(a, rows, a.weight->shape[1], a.weight->dtype, "velo_vocab_parallel_embedding");
  const rows_shape y(*a.indices, p);
  outputs.set(a.y, p.dtype, y.rank, y.sizes);
}

void infer_gradient(const gradient_args& a, problem& p, ops::output_shapes& outputs) {
  const velo_tensor& indices = *a.indices;
  require_indices_rank(indices, a.sequence_parallel != 0);
  ops::require_rank(*a.dy, "dy", indices.ndim + 1, indices.ndim + 1);
  p = problem_of(a, a.rows, a.dy->shape[indices.ndim], a.dy->dtype,
                 "velo_vocab_parallel_embedding_backward");
  ops::require_shape(*a.dy, "dy", a.dy->ndim, rows_shape(indices, p).sizes);
  const std::int64_t table[] = {a.rows, p.n};
  outputs.set(a.dweight, ops::f32, 2, table);
  if (p.parts == 1) p.in.group = nullptr;
}

comm::operation exchange_of(const problem& p) {
  return table_cut::exchange(p.ranks, p.signature, p.function);
}

template <class Args>
void enter(const Args&, problem& p, core::stream& on, const ops::enqueue& put) {
  enter_group(p.in, "args.group", exchange_of(p), on, put);
}

void drop(const problem& p) noexcept {
  if (p.in.group != nullptr) p.in.group->drop(p.in.ticket, exchange_of(p));
}

table_cut cut_of(const problem& p, const velo_tensor& indices) {
  return {{p.begin, p.rows, 0}, indices, p.vocab};
}

const ops::embedding_kernels& kernels_for(const overlap_kernel& kernel, core::isa isa) {
  const bool plain = kernel.how == overlap_kernel::way::reference;
  return ops::kernels_at<ops::embedding_kernels>(ops::embedding_kernel_list,
                                                 plain ? core::isa::scalar : isa);
}

// An all_to_all of rows, without blocks.
comm::operation moves_of(const problem& p) {
  comm::operation what;
  what.function = p.function;
  what.terms.kind = comm::collective::all_to_all;
  what.terms.in_code = what.terms.out_code = p.dtype.code;
  what.terms.in_bits = what.terms.out_bits = p.dtype.bits;
  what.terms.count = p.tokens * p.n;
  what.terms.require_same(p.signature);
  return what;
}

// Rows that move: of the tokens of all parts those that this rank has, for each part; and of this
// rank's part those that each rank has. The gradient moves them the other way.
struct moved_rows {
  std::int64_t own = 0;  // of all parts
  comm::blocks by_part, by_owner;
};

void end_to_end(comm::blocks& all) {
  for (std::size_t i = 1; i < all.size(); ++i) all[i].begin = all[i - 1].begin + all[i - 1].count;
}

moved_rows moved_rows_of(const problem& p, const row_parts& tokens, const table_cut& cut) {
  moved_rows all;
  all.by_part.resize(at(p.parts)), all.by_owner.resize(at(p.ranks));
  for (int part = 0; part < p.parts; ++part)
    for (std::int64_t t = tokens.of(part).begin, end = tokens.of(part).end(); t < end; ++t) {
      const int owner = cut.owner(t);
      if (owner == p.rank) ++all.own, all.by_part[at(part)].count += p.n;
      if (part == p.own_part) all.by_owner[at(owner)].count += p.n;
    }
  end_to_end(all.by_part), end_to_end(all.by_owner);
  return all;
}

// ---- forward ----

// A running forward call.
class lookup {
 public:
  lookup(const forward_args& a, const problem& p, const overlap_kernel& kernel,
         const table_cut& cut, core::arena& scratch, core::execution& on)
      : p_(p),
        kernels_(kernels_for(kernel, on.isa)),
        tokens_(p.tokens_of(a.token_rows)),
        cut_(cut),
        scratch_(scratch),
        on_(on),
        weight_(ops::data<const char>(a.weight)),
        y_(ops::data<char>(a.y)) {}

  void alone();
  void in_pieces(comm::transport& link);
  void by_blocks(comm::transport& link);

 private:
  using address = const char*;
  address* addresses(std::int64_t rows) {
    return scratch_.take<address>(static_cast<std::size_t>(rows));
  }
  void copy(const address* from, std::int64_t rows, char* to) const;
  std::int64_t own_rows(const piece& of, address* rows) const;
  void find_tables(const piece& of, const comm::relay& link, address* rows) const;
  void find_packed(const piece& of, int first_part, address* next, address* rows) const;
  void read(const piece& of, comm::relay& link, address* rows) const;

  const problem& p_;
  const ops::embedding_kernels& kernels_;
  const row_parts tokens_;
  const table_cut& cut_;
  core::arena& scratch_;
  core::execution& on_;
  const char* weight_;
  char* y_;
};

// Tokens of a part in a piece, if each rank's rows of all parts fit a slot; 0: not even one.
std::int64_t tokens_of_piece(const problem& p, const row_parts& tokens) {
  if (p.in.group->shows_tensors()) return tokens.most();
  const std::int64_t fitting = p.in.group->relay_slot_bytes() / (p.row_bytes() * p.parts);
  return std::min(fitting, tokens.most());
}

void lookup::copy(const address* from, std::int64_t rows, char* to) const {
  in_turn(on_, [&](core::execution& turn) {
    ops::copy_rows([from](std::int64_t i) { return from[i]; }, rows, p_.row_bytes(), to, kernels_,
                   turn);
  });
}

// The rows that this rank has for the tokens of all parts, in order; returns their number.
std::int64_t lookup::own_rows(const piece& of, address* rows) const {
  std::int64_t count = 0;
  for (int part = 0; part < p_.parts; ++part) {
    const row_range now = of.in(tokens_.of(part));
    for (std::int64_t t = now.begin; t < now.end(); ++t)
      if (cut_.owner(t) == p_.rank) rows[count++] = weight_ + cut_.row(t) * p_.row_bytes();
  }
  return count;
}

// The rows of this rank's part where they lie in the tables of the ranks.
void lookup::find_tables(const piece& of, const comm::relay& link, address* rows) const {
  const row_range own = of.in(tokens_.of(p_.own_part));
  for (std::int64_t t = own.begin; t < own.end(); ++t) {
    const auto* table = static_cast<address>(link.peer_tensor(cut_.owner(t)));
    rows[t - own.begin] = table + cut_.row(t) * p_.row_bytes();
  }
}

// The rows of this rank's part where each rank packed its rows, from next[rank] on, which has the
// rows of all parts from the first one on.
void lookup::find_packed(const piece& of, int first_part, address* next, address* rows) const {
  for (int part = first_part; part <= p_.own_part; ++part) {
    const row_range now = of.in(tokens_.of(part));
    for (std::int64_t t = now.begin; t < now.end(); ++t) {
      address& row = next[cut_.owner(t)];
      if (part == p_.own_part) rows[t - now.begin] = row;
      row += p_.row_bytes();
    }
  }
}

void lookup::alone() {
  if (p_.n == 0) return;
  const piece all{0, p_.part_tokens};
  address* rows = addresses(p_.part_tokens);
  copy(rows, own_rows(all, rows), y_);
}

void lookup::read(const piece& of, comm::relay& link, address* rows) const {
  const comm::relay::tensor_access access(link);
  if (p_.in.group->shows_tensors()) {
    find_tables(of, link, rows);
  } else {
    const core::scratch_scope scope(scratch_);
    auto* next = scratch_.take<address>(at(p_.ranks));
    for (int r = 0; r < p_.ranks; ++r) next[r] = link.piece(r);
    find_packed(of, 0, next, rows);
  }
  const row_range all = tokens_.of(p_.own_part), own = of.in(all);
  if (own.count > 0) copy(rows, own.count, y_ + (own.begin - all.begin) * p_.row_bytes());
}

void lookup::in_pieces(comm::transport& link) {
  comm::operation what = moves_of(p_);
  what.terms.counts ^= 1;  // ranks that send blocks have another number
  what.in = weight_;
  what.set_count(p_.rows * p_.n);
  const std::int64_t most = tokens_of_piece(p_, tokens_), end = tokens_.most();
  address* rows = addresses(most * p_.parts);
  const auto relay = link.begin_relay(what, on_);
  for (piece now{0, 0}; now.begin < end; now.begin = now.end) {
    now.end = std::min(now.begin + most, end);
    relay->wait_slot();
    if (!p_.in.group->shows_tensors()) copy(rows, own_rows(now, rows), relay->slot());
    relay->post();
    relay->wait_piece();
    read(now, *relay, rows);
    relay->release();
  }
  relay->wait_readers();
  relay->finish();
}

void lookup::by_blocks(comm::transport& link) {
  const piece all{0, tokens_.most()};
  const std::int64_t bytes = p_.row_bytes();
  const moved_rows moved = moved_rows_of(p_, tokens_, cut_);
  auto* packed = static_cast<char*>(scratch_.take(at(moved.own * bytes)));
  auto* received = static_cast<char*>(scratch_.take(at(p_.part_tokens * bytes)));
  address* rows = addresses(p_.tokens);
  copy(rows, own_rows(all, rows), packed);
  comm::operation what = moves_of(p_);
  what.in = packed, what.out = received;
  what.in_blocks = moved.by_part, what.out_blocks = moved.by_owner;
  if (p_.parts == 1) what.in_blocks.resize(at(p_.ranks), moved.by_part[0]);  // the same to all
  what.set_count(what.in_block(p_.rank).count);
  what.out_count = p_.part_tokens * p_.n;
  link.run(what, on_);
  auto* next = scratch_.take<address>(at(p_.ranks));
  for (int r = 0; r < p_.ranks; ++r)
    next[r] = received + moved.by_owner[at(r)].begin / p_.n * bytes;
  find_packed(all, p_.own_part, next, rows);
  copy(rows, p_.part_tokens, y_);
}

void run(const forward_args& a, const problem& p, const overlap_kernel& kernel,
         core::execution& on) {
  table_cut cut = cut_of(p, *a.indices);
  const comm::operation what = exchange_of(p);
  if (p.in.group == nullptr) {
    in_turn(on, [&](core::execution& turn) {
      cut.run(what, 0, 1, nullptr, turn.scratch, turn);
      if (!cut.faults().any()) lookup(a, p, kernel, cut, turn.scratch, turn).alone();
    });
  } else {
    p.in.group->serve(p.in.ticket, what, [&](comm::transport& link, core::arena& scratch) {
      cut.run(what, p.rank, p.ranks, p.ranks > 1 ? &link : nullptr, scratch, on);
      if (cut.faults().any()) return;
      lookup call(a, p, kernel, cut, scratch, on);
      if (p.ranks == 1) return call.alone();
      if (!p.moves()) return;
      kernel.how == overlap_kernel::way::sliced ? call.in_pieces(link) : call.by_blocks(link);
    });
  }
  cut.refuse_faults();
}

const char* reject(const forward_args& a, const problem& p, const ops::kernel_entry& kernel) {
  if (!is_sliced(kernel)) return nullptr;
  if (p.in.size() == 1) return "the group has one rank";
  if (p.in.group->relay_slot_bytes() == 0)
    return "the transport does not show ranks each other's memory";
  return p.moves() && tokens_of_piece(p, p.tokens_of(a.token_rows)) == 0 ? too_small : nullptr;
}

void lookup_cost(const forward_args& a, const problem& p, ops::op_cost& cost) {
  cost.bytes_read = ops::bytes_of(a.indices) + ops::bytes_of_rows(p.part_tokens, p.n, p.dtype);
}

// ---- gradient ----

constexpr overlap_kernel composition{overlap_kernel::way::composition},
    reference{overlap_kernel::way::reference};
constexpr ops::kernel_entry entries[] = {
    {"composition", core::isa::scalar, &composition, VELO_DEVICE_CPU, 1},
    {"reference", core::isa::scalar, &reference}};
constexpr ops::kernel_list gradient_kernel_list{entries, 2};

velo_tensor list_of(const std::int64_t* ids, const std::int64_t& count) {
  return {const_cast<std::int64_t*>(ids), {VELO_DEVICE_CPU, 0}, 1, ops::i64, &count, nullptr, 0};
}

// ids: rows of this rank for rows of dy; below 0: those of another rank.
void add(const gradient_args& a, const problem& p, const overlap_kernel& kernel,
         const velo_tensor& ids, const void* dy, core::execution& turn) {
  auto* table = ops::data<float>(a.dweight);
  if (table == nullptr || a.rows == 0 || p.n == 0) return;
  ops::add_rows({ids, p.dtype, dy, table, a.rows, p.n, a.accumulate != 0},
                kernels_for(kernel, turn.isa), turn);
}

void add_own_tokens(const gradient_args& a, const problem& p, const overlap_kernel& kernel,
                    core::execution& turn) {
  const ops::index_reader indices(*a.indices);
  auto* ids = turn.scratch.take<std::int64_t>(at(p.part_tokens));
  const table_part own{p.begin, p.rows, 0};
  for (std::int64_t t = 0; t < p.part_tokens; ++t)
    ids[t] = own.has(indices[t]) ? indices[t] - p.begin : -1;
  add(a, p, kernel, list_of(ids, p.part_tokens), ops::data<const void>(a.dy), turn);
}

// The rows of this rank's table for the tokens of all parts, in order; returns their number.
std::int64_t own_ids(const problem& p, const table_cut& cut, std::int64_t* ids) {
  std::int64_t count = 0;
  for (std::int64_t t = 0; t < p.tokens; ++t)
    if (cut.owner(t) == p.rank) ids[count++] = cut.row(t);
  return count;
}

// Packs this rank's rows of dy by the rank that has their row of the table.
void pack_by_owner(const gradient_args& a, const problem& p, const overlap_kernel& kernel,
                   const table_cut& cut, const moved_rows& moved, std::int64_t first_token,
                   char* packed, core::execution& turn) {
  auto* next = turn.scratch.take<std::int64_t>(at(p.ranks));
  auto* rows = turn.scratch.take<const char*>(at(p.part_tokens));
  for (int r = 0; r < p.ranks; ++r) next[r] = moved.by_owner[at(r)].begin / p.n;
  const auto* dy = ops::data<const char>(a.dy);
  for (std::int64_t i = 0; i < p.part_tokens; ++i) {
    const int owner = cut.owner(first_token + i);
    rows[next[owner]++] = dy + i * p.row_bytes();
  }
  ops::copy_rows([rows](std::int64_t i) { return rows[i]; }, p.part_tokens, p.row_bytes(), packed,
                 kernels_for(kernel, turn.isa), turn);
}

// Sends rows of dy to the ranks that have the rows of the table, and adds those that arrive.
void add_sent_rows(const gradient_args& a, const problem& p, const overlap_kernel& kernel,
                   const table_cut& cut, comm::transport& link, core::arena& scratch,
                   core::execution& on) {
  const row_parts tokens = p.tokens_of(a.token_rows);
  const moved_rows moved = moved_rows_of(p, tokens, cut);
  auto* packed = static_cast<char*>(scratch.take(at(p.part_tokens * p.row_bytes())));
  auto* received = static_cast<char*>(scratch.take(at(moved.own * p.row_bytes())));
  if (p.moves()) {
    in_turn(on, [&](core::execution& turn) {
      pack_by_owner(a, p, kernel, cut, moved, tokens.of(p.own_part).begin, packed, turn);
    });
    comm::operation what = moves_of(p);
    what.in = packed, what.out = received;
    what.in_blocks = moved.by_owner, what.out_blocks = moved.by_part;
    what.set_count(what.in_block(p.rank).count);
    what.out_count = moved.own * p.n;
    link.run(what, on);
  }
  auto* ids = scratch.take<std::int64_t>(at(moved.own));
  const std::int64_t count = own_ids(p, cut, ids);
  in_turn(on,
          [&](core::execution& turn) { add(a, p, kernel, list_of(ids, count), received, turn); });
}

void run_gradient(const gradient_args& a, const problem& p, const overlap_kernel& kernel,
                  core::execution& on) {
  if (p.in.group == nullptr) {
    ops::require_indices(*a.indices, "indices", p.vocab);
    return in_turn(on, [&](core::execution& turn) { add_own_tokens(a, p, kernel, turn); });
  }
  table_cut cut = cut_of(p, *a.indices);
  const comm::operation what = exchange_of(p);
  p.in.group->serve(p.in.ticket, what, [&](comm::transport& link, core::arena& scratch) {
    cut.run(what, p.rank, p.ranks, &link, scratch, on);
    if (cut.faults().any()) return;
    add_sent_rows(a, p, kernel, cut, link, scratch, on);
  });
  cut.refuse_faults();
}

// One row of the table is read and written for each token at most, of this rank's share of them.
void gradient_cost(const gradient_args& a, const problem& p, ops::op_cost& cost) {
  if (a.accumulate == 0) return;
  cost.bytes_written = ops::bytes_of_rows(std::min(p.part_tokens, a.rows), p.n, ops::f32);
  cost.bytes_read += cost.bytes_written;
}

}  // namespace
}  // namespace velo::sched

namespace velo::ops {

extern const operator_def vocab_parallel_embedding_operator = with_cost<sched::lookup_cost>(
    define_waiting<sched::infer, sched::run, sched::reject, sched::enter<sched::forward_args>,
                   sched::drop>(sched::overlap_kernel_list));
extern const operator_def vocab_parallel_embedding_backward_operator =
    with_cost<sched::gradient_cost>(
        define_waiting<sched::infer_gradient, sched::run_gradient, nullptr,
                       sched::enter<sched::gradient_args>, sched::drop>(
            sched::gradient_kernel_list));

}  // namespace velo::ops
