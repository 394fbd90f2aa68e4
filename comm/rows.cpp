// Checks of rows and their targets, exchanges, and the order of calls in two groups.
#include "comm/rows.hpp"

#include "comm/collective/calls.hpp"
#include "core/context.hpp"

namespace velo::comm {

using core::fail;
using core::text;

namespace {

constexpr velo_dtype int32{VELO_DTYPE_INT, 32, 1}, int64{VELO_DTYPE_INT, 64, 1};

operation exchange_of(const routes& call, velo_dtype dtype, const void* in, void* out) {
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

}  // namespace

operation routes::whole() const {
  operation all;
  all.terms.kind = kind;
  all.terms.in_code = all.terms.out_code = dtype.code;
  all.terms.in_bits = all.terms.out_bits = dtype.bits;
  all.terms.count = all.count = rows * width;
  all.function = function;
  return all;
}

void routes::check_targets() const {
  for (std::int64_t i = 0; i < rows * each; ++i)
    if (targets[i] < -1 || targets[i] >= ranks())
      fail(VELO_ERR_ARGUMENT, text("targets[%lld]", static_cast<long long>(i)),
           text("-1 to %d", ranks() - 1), text("%d", targets[i]));
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
  fail(VELO_ERR_SHAPE, argument, text("%lld rows, %s", static_cast<long long>(rows), why),
       text("%lld", static_cast<long long>(of.shape[0])));
}

void require_width(const velo_tensor& of, const char* argument, const routes& as,
                   const char* other) {
  const std::int64_t width = width_of(of, argument);
  if (width == as.width) return;
  fail(VELO_ERR_SHAPE, argument,
       text("rows of %lld elements, as %s has", static_cast<long long>(as.width), other),
       text("%lld", static_cast<long long>(width)));
}

void require_own(const buffer& out, const buffer& in, const char* name) {
  if (out.count == 0 || in.count == 0) return;
  if (out.data < in.data + in.bytes() && in.data < out.data + out.bytes())
    fail(VELO_ERR_OVERLAP, "out", "memory of its own", text("memory shared with %s", name));
}

std::vector<part> parts_of_rows(const routes& call, const std::int64_t* counts, const char* name,
                                const velo_tensor& of, const char* argument) {
  if (counts == nullptr) fail(VELO_ERR_NULL, name, text("%d numbers", call.ranks()), "NULL");
  std::vector<part> all;
  std::int64_t rows = 0;
  for (int rank = 0; rank < call.ranks(); ++rank) {
    if (counts[rank] < 0 || counts[rank] > of.shape[0] - rows)
      fail(VELO_ERR_ARGUMENT, text("%s[%d]", name, rank),
           text("0 to the %lld rows of %s that are left",
                static_cast<long long>(of.shape[0] - rows), argument),
           text("%lld", static_cast<long long>(counts[rank])));
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

void routes::read(const velo_tensor& of, const char* name, const velo_tensor& given,
                  const buffer& names) {
  width = width_of(of, name);
  rows = of.shape[0];
  each = width_of(given, "targets");
  require_rows(given, "targets", rows, text("as many as %s has", name));
  require_dtype(names, "targets", {nullptr, 0, int32});
  targets = reinterpret_cast<const std::int32_t*>(names.data);
}

std::int64_t sum_of(const counts& all) {
  std::int64_t sum = 0;
  for (const std::int64_t one : all) sum += one;
  return sum;
}

std::vector<part> side_by_side(const counts& each, std::int64_t elements) {
  std::vector<part> all;
  std::int64_t begin = 0;
  for (const std::int64_t one : each) {
    all.push_back({begin, one * elements});
    begin += one * elements;
  }
  return all;
}

void exchange(transport& link, core::execution& on, const routes& call, const counts& in,
              counts& out) {
  operation what = exchange_of(call, int64, in.data(), out.data());
  what.count = what.terms.count = 1;
  what.out_count = link.size();
  link.run(what, on);
}

void exchange(transport& link, core::execution& on, const routes& call, velo_dtype dtype,
              outgoing in, incoming out) {
  operation what = exchange_of(call, dtype, in.data, out.data);
  what.terms.counts = 1;
  what.in_parts = std::move(in.parts);
  what.out_parts = std::move(out.parts);
  what.count = what.in_part(link.rank()).count;
  for (const part& one : what.out_parts) what.out_count += one.count;
  link.run(what, on);
}

// One lock inside the other, always the same first. Where one group has ended, the ranks of the other
// wait for a call that does not come, and are told.
void enter_both(const core::stream& on, const routes& call, places& in,
                const std::function<void()>& queue) {
  const operation all = call.whole();
  const bool inside_first = std::less<const group*>()(call.inside, call.across);
  group& first = inside_first ? *call.inside : *call.across;
  group& second = inside_first ? *call.across : *call.inside;
  try {
    first.enter(on, inside_first ? in.inside : in.across, all,
                [&] { second.enter(on, inside_first ? in.across : in.inside, all, queue); });
  } catch (...) {
    if (first.has_ended()) second.miss(all);
    if (second.has_ended()) first.miss(all);
    throw;
  }
}

}  // namespace velo::comm
