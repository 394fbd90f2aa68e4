// Checks of rows and targets, the exchanges, and the order of calls in two groups.
#include "comm/experts/rows.hpp"

#include "comm/collective/calls.hpp"
#include "core/context.hpp"
#include "core/index.hpp"

namespace velo::comm {

using core::fail;
using core::text;

namespace {

constexpr velo_dtype int32{VELO_DTYPE_INT, 32, 1}, int64{VELO_DTYPE_INT, 64, 1};

// The terms.counts of a step: 2 + the host whose rows move. 0 and 1 are taken: they tell whether
// parts differ.
constexpr std::uint64_t of_host(int host) {
  return 2 + static_cast<std::uint64_t>(host);
}

operation exchange_of(const routing& call, velo_dtype dtype, const void* in, void* out) {
  operation what;
  what.function = call.function;
  what.terms.kind = collective::all_to_all;
  what.terms.root = step_of(call.kind, call.weighted);
  what.terms.in_code = what.terms.out_code = dtype.code;
  what.terms.in_bits = what.terms.out_bits = dtype.bits;
  what.in = in;
  what.out = out;
  return what;
}

operation exchange_of(const routing& call, velo_dtype dtype, send_parts in, receive_parts out,
                      int self) {
  operation what = exchange_of(call, dtype, in.data, out.data);
  what.terms.counts = 1;
  what.in_blocks = std::move(in.parts);
  what.out_blocks = std::move(out.parts);
  what.count = what.in_block(self).count;
  for (const block& one : what.out_blocks) what.out_count += one.count;
  return what;
}

// A count passed on rank `rank` that differs from the rows that rank `other` sends or has named.
struct miscount {
  int rank, other;           // numbered host by host
  std::int64_t given, rows;  // elements

  text name(const routing& call) const {
    return text("%s[%d]", call.kind == other_call::dispatch ? "out_counts" : "in_counts", other);
  }
  text describe(const routing& call) const {  // for the records of other ranks
    return text("%s of rank %d", name(call).buffer, rank);
  }
  [[noreturn]] void raise(const routing& call) const {
    core::failure f;
    const bool own = rank == other;
    f.code = own ? VELO_ERR_ARGUMENT : VELO_ERR_PEER;
    f.rank = own ? -1 : other;
    core::copy_text(f.argument, sizeof f.argument, name(call));
    core::copy_text(f.expected, sizeof f.expected,
                    core::concat(rows / call.width, ", the rows that rank ", other, " ",
                                 call.kind == other_call::dispatch ? "gives" : "named"));
    core::copy_text(f.got, sizeof f.got, core::number(given / call.width));
    core::copy_text(f.cause, sizeof f.cause, describe(call));
    throw f;
  }
};

// The wrong count that ended a step: the rank `expecting_rank` expects another count than the
// culprit sends. In a dispatch the caller's wrong count is the expected one, in a combine the sent
// one.
miscount miscount_of(const routing& call, const fault& why) {
  const int rows_of = static_cast<int>(why.terms.counts - of_host(0)) * call.ranks_per_host(),
            here = call.host() * call.ranks_per_host(), giver = why.culprits.lowest();
  if (call.kind == other_call::dispatch)
    return {here + why.expecting_rank, rows_of + giver, why.terms.count, why.other.count};
  return {here + giver, rows_of + why.expecting_rank, why.other.count, why.terms.count};
}

}  // namespace

request routing::whole() const {
  request all;
  all.terms.kind = kind;
  all.terms.in_code = all.terms.out_code = dtype.code;
  all.terms.in_bits = all.terms.out_bits = dtype.bits;
  all.terms.count = rows * width;
  all.bytes = rows * row_bytes();
  all.function = function;
  return all;
}

void routing::check_targets() const {
  for (std::int64_t i = 0; i < rows * targets_per_row; ++i)
    if (targets[i] < -1 || targets[i] >= ranks())
      fail(VELO_ERR_ARGUMENT, core::concat("targets[", i, "]"), text("-1 to %d", ranks() - 1),
           text("%d", targets[i]));
}

std::int64_t width_of(const velo_tensor& of, const char* argument) {
  if (of.ndim < 1)
    fail(VELO_ERR_RANK, argument, "rows along a first dimension", "a tensor without any");
  std::int64_t width = 1;
  for (int i = 1; i < of.ndim; ++i) width *= of.shape[i];
  return width;
}

void require_rows(const velo_tensor& of, const char* argument, std::int64_t rows, const char* why) {
  if (of.shape[0] == rows) return;
  fail(VELO_ERR_SHAPE, argument, core::concat(rows, " rows, ", why), core::number(of.shape[0]));
}

void require_width(const velo_tensor& of, const char* argument, const routing& as,
                   const char* other) {
  const std::int64_t width = width_of(of, argument);
  if (width == as.width) return;
  fail(VELO_ERR_SHAPE, argument,
       core::concat("rows of ", as.width, " elements, as ", other, " has"), core::number(width));
}

void require_own(const buffer& out, const buffer& in, const char* name) {
  if (out.count == 0 || in.count == 0) return;
  if (out.data < in.data + in.bytes() && in.data < out.data + out.bytes())
    core::refuse_overlap("out", name, false);
}

blocks blocks_of_rows(const routing& call, const std::int64_t* counts, const char* name,
                      const velo_tensor& of, const char* argument) {
  if (counts == nullptr) fail(VELO_ERR_NULL, name, text("%d numbers", call.ranks()), "NULL");
  blocks all;
  std::int64_t rows = 0;
  for (int rank = 0; rank < call.ranks(); ++rank) {
    if (counts[rank] < 0 || counts[rank] > of.shape[0] - rows)
      fail(VELO_ERR_ARGUMENT, text("%s[%d]", name, rank),
           core::concat("0 to the ", of.shape[0] - rows, " rows of ", argument, " that are left"),
           core::number(counts[rank]));
    all.push_back({rows * call.width, counts[rank] * call.width});
    rows += counts[rank];
  }
  require_rows(of, argument, rows, text("as %s says", name));
  return all;
}

void require_two(const group& inside, const group& across) {
  if (&inside == &across)
    fail(VELO_ERR_ARGUMENT, "across", "another group than inside", "the same");
  if (&across.owner() != &inside.owner())
    fail(VELO_ERR_ARGUMENT, "across", "a group of the context of inside", "one of another context");
}

void routing::read(const velo_tensor& of, const char* name, const velo_tensor& given,
                   const buffer& names) {
  width = width_of(of, name);
  rows = of.shape[0];
  targets_per_row = width_of(given, "targets");
  require_rows(given, "targets", rows, text("as many as %s has", name));
  require_dtype(names, "targets", {nullptr, 0, int32});
  targets = reinterpret_cast<const std::int32_t*>(names.data);
}

std::int64_t sum_of(const counts& all) {
  std::int64_t sum = 0;
  for (const std::int64_t one : all) sum += one;
  return sum;
}

blocks side_by_side(const counts& each, std::int64_t elements) {
  blocks all;
  std::int64_t begin = 0;
  for (const std::int64_t one : each) {
    all.push_back({begin, one * elements});
    begin += one * elements;
  }
  return all;
}

void exchange(transport& link, core::execution& on, const routing& call, const counts& in,
              counts& out) {
  operation what = exchange_of(call, int64, in.data(), out.data());
  what.count = what.terms.count = 1;
  what.out_count = link.size();
  link.run(what, on);
  // Peers' counts become sizes here, so a count whose bytes exceed an address space is refused.
  const std::int64_t row = call.row_bytes() + 8 * call.targets_per_row + 8,
                     most = (std::int64_t{1} << 47) / row / link.size();
  for (int rank = 0; rank < link.size(); ++rank) {
    const std::int64_t rows = out[core::at(rank)];
    if (rank == link.rank() || (rows >= 0 && rows <= most)) continue;
    fault why;
    why.kind = fault::how::corrupt;
    why.terms = what.terms;
    why.culprits.add(rank);
    link.fail(why);
    why.raise();
  }
}

void exchange(transport& link, core::execution& on, const routing& call, velo_dtype dtype,
              send_parts in, receive_parts out) {
  link.run(exchange_of(call, dtype, std::move(in), std::move(out), link.rank()), on);
}

// Compares the rank's own part here, since no other rank sees both sides of it. The exchange runs
// even after a mismatch, so that no peer waits for this rank.
void exchange_rows(transport& link, core::execution& on, const routing& call, int host,
                   send_parts in, receive_parts out) {
  const int local_rank = link.rank(), rank = call.host() * call.ranks_per_host() + local_rank;
  std::int64_t& gives = in.parts[core::at(local_rank)].count;
  std::int64_t& gets = out.parts[core::at(local_rank)].count;
  miscount own{rank, host * call.ranks_per_host() + local_rank, gets, gives};
  if (call.kind == other_call::combine) std::swap(own.given, own.rows);
  const bool fits = gives == gets;
  if (!fits) gives = gets = 0;
  operation what = exchange_of(call, call.dtype, std::move(in), std::move(out), local_rank);
  what.terms.counts = of_host(host);
  try {
    link.run(what, on);
  } catch (core::failure& failed) {
    fault why;
    if (!fits) own.raise(call);
    if (call.width == 0 || !link.failed(why) || why.expecting_rank < 0 ||
        why.terms.kind != what.terms.kind || why.terms.root != what.terms.root ||
        why.terms.counts < of_host(0))
      throw;
    const miscount found = miscount_of(call, why);
    if (found.rank == rank) found.raise(call);
    core::copy_text(failed.cause, sizeof failed.cause, found.describe(call));
    throw;
  }
  if (!fits) own.raise(call);
}

// The locks are nested in a fixed order. If both groups have ended, the failure names `across`,
// which the call uses first.
void enter_both(const core::stream& on, const routing& call, ticket_pair& in,
                const std::function<void()>& queue) {
  const request all = call.whole();
  const bool inside_first = std::less<const group*>()(call.inside, call.across);
  group& first = inside_first ? *call.inside : *call.across;
  group& second = inside_first ? *call.across : *call.inside;
  try {
    first.enter(on, inside_first ? in.inside : in.across, all,
                [&] { second.enter(on, inside_first ? in.across : in.inside, all, queue); });
  } catch (...) {
    group::rethrow_for_both({call.across, all}, {call.inside, all});
  }
}

}  // namespace velo::comm
