// Checks of a dispatch, its place in both groups, and the two ways of a row.
#include "comm/dispatch.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "comm/buffer.hpp"
#include "comm/collective/calls.hpp"
#include "core/context.hpp"

namespace velo::comm {

using core::fail;
using core::text;

namespace {

using counts = std::vector<std::int64_t>;

constexpr const char* function = "velo_group_dispatch";
constexpr velo_dtype int32{VELO_DTYPE_INT, 32, 1}, int64{VELO_DTYPE_INT, 64, 1};

// Elements of one step along the first dimension.
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

void require_own(const buffer& out, const buffer& in, const char* name) {
  if (out.count == 0 || in.count == 0) return;
  if (out.data < in.data + in.bytes() && in.data < out.data + out.bytes())
    fail(VELO_ERR_OVERLAP, "out", "memory of its own", text("memory shared with %s", name));
}

std::vector<part> parts_of_rows(const dispatch& what, const std::int64_t* counts,
                                const velo_tensor& out) {
  if (counts == nullptr)
    fail(VELO_ERR_NULL, "out_counts", text("%d numbers", what.ranks()), "NULL");
  std::vector<part> all;
  std::int64_t rows = 0;
  for (int rank = 0; rank < what.ranks(); ++rank) {
    if (counts[rank] < 0 || counts[rank] > out.shape[0] - rows)
      fail(VELO_ERR_ARGUMENT, text("out_counts[%d]", rank),
           text("0 to the %lld rows of out that are left",
                static_cast<long long>(out.shape[0] - rows)),
           text("%lld", static_cast<long long>(counts[rank])));
    all.push_back({rows * what.width, counts[rank] * what.width});
    rows += counts[rank];
  }
  require_rows(out, "out", rows, "as out_counts says");
  return all;
}

// The whole, as the history and a failure before it begins show it.
operation operation_of(const dispatch& what) {
  operation all;
  all.terms.kind = collective::dispatch;
  all.terms.in_code = all.terms.out_code = what.dtype.code;
  all.terms.in_bits = all.terms.out_bits = what.dtype.bits;
  all.terms.count = all.count = what.rows * what.width;
  all.function = function;
  return all;
}

operation exchange_of(velo_dtype dtype, const void* in, void* out) {
  operation what;
  what.function = function;
  what.terms.kind = collective::all_to_all;
  what.terms.in_code = what.terms.out_code = dtype.code;
  what.terms.in_bits = what.terms.out_bits = dtype.bits;
  what.in = in;
  what.out = out;
  return what;
}

// A number for each rank of a group.
void exchange(transport& link, core::execution& on, const counts& in, counts& out) {
  operation what = exchange_of(int64, in.data(), out.data());
  what.count = what.terms.count = 1;
  what.out_count = link.size();
  link.run(what, on);
}

// Parts in elements of the dtype.
void exchange(transport& link, core::execution& on, velo_dtype dtype, const void* in,
              std::vector<part> in_parts, void* out, std::vector<part> out_parts) {
  operation what = exchange_of(dtype, in, out);
  what.terms.counts = 1;
  what.in_parts = std::move(in_parts);
  what.out_parts = std::move(out_parts);
  what.count = what.in_part(link.rank()).count;
  for (const part& one : what.out_parts) what.out_count += one.count;
  link.run(what, on);
}

counts places_for(int parts) {
  return counts(static_cast<std::size_t>(parts), 0);
}

// Parts one behind the other.
std::vector<part> side_by_side(const counts& each, std::int64_t elements) {
  std::vector<part> all;
  std::int64_t begin = 0;
  for (const std::int64_t one : each) {
    all.push_back({begin, one * elements});
    begin += one * elements;
  }
  return all;
}

std::int64_t sum_of(const counts& all) {
  std::int64_t sum = 0;
  for (const std::int64_t one : all) sum += one;
  return sum;
}

// One dispatch as one rank carries it out.
class delivery {
 public:
  delivery(const dispatch& what, core::execution& on)
      : what_(what),
        on_(on),
        near_(what.inside->size()),
        host_(what.across->rank()),
        row_bytes_(what.width * what.size()),
        batches_(static_cast<std::size_t>(what.across->size())) {}

  void across(transport& link) {
    check_targets();
    batches_[at(host_)] = {what_.in, what_.targets, what_.rows};
    if (link.size() == 1) return;
    counts give = places_for(link.size()), take = give;
    each_crossing([&](std::int64_t, int host) { ++give[at(host)]; });
    exchange(link, on_, give, take);
    char* rows = bytes(sum_of(give) * row_bytes_);
    auto* targets = reinterpret_cast<std::int32_t*>(bytes(sum_of(give) * each_bytes()));
    pack(give, rows, targets);
    char* got_rows = bytes(sum_of(take) * row_bytes_);
    auto* got_targets = reinterpret_cast<std::int32_t*>(bytes(sum_of(take) * each_bytes()));
    exchange(link, on_, int32, targets, side_by_side(give, what_.each), got_targets,
             side_by_side(take, what_.each));
    exchange(link, on_, what_.dtype, rows, side_by_side(give, what_.width), got_rows,
             side_by_side(take, what_.width));
    for (int host = 0; host < link.size(); ++host) {
      if (host == host_) continue;
      batches_[at(host)] = {got_rows, got_targets, take[at(host)]};
      got_rows += take[at(host)] * row_bytes_;
      got_targets += take[at(host)] * what_.each;
    }
  }

  void inside(transport& link) {
    std::vector<counts> give;
    std::int64_t most = 0;
    for (const batch& one : batches_) {
      give.push_back(places_for(near_));
      each_near(one, [&](std::int64_t, int place) { ++give.back()[at(place)]; });
      most = std::max(most, sum_of(give.back()));
    }
    char* packed = bytes(most * row_bytes_);
    for (std::size_t host = 0; host < batches_.size(); ++host) {
      const std::vector<part> parts = side_by_side(give[host], what_.width);
      counts next;
      for (const part& one : parts) next.push_back(one.begin * what_.size());
      each_near(batches_[host], [&](std::int64_t row, int place) {
        copy_row(batches_[host].rows, row, packed + next[at(place)]);
        next[at(place)] += row_bytes_;
      });
      const auto from = what_.out_parts.begin() + static_cast<std::ptrdiff_t>(host) * near_;
      exchange(link, on_, what_.dtype, packed, parts, what_.out, {from, from + near_});
    }
  }

 private:
  struct batch {  // rows that came from one host to this place
    const char* rows = nullptr;
    const std::int32_t* targets = nullptr;
    std::int64_t count = 0;
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  char* bytes(std::int64_t n) { return on_.scratch.take<char>(static_cast<std::size_t>(n)); }
  std::int64_t each_bytes() const { return what_.each * 4; }
  void copy_row(const char* rows, std::int64_t row, char* to) const {
    std::memcpy(to, rows + row * row_bytes_, static_cast<std::size_t>(row_bytes_));
  }

  void check_targets() const {
    for (std::int64_t i = 0; i < what_.rows * what_.each; ++i)
      if (what_.targets[i] < -1 || what_.targets[i] >= what_.ranks())
        fail(VELO_ERR_ARGUMENT, text("targets[%lld]", static_cast<long long>(i)),
             text("-1 to %d", what_.ranks() - 1), text("%d", what_.targets[i]));
  }

  // f(row, host) for each other host with a target of the row, once.
  template <class F>
  void each_crossing(F&& f) const {
    counts last(batches_.size(), -1);
    for (std::int64_t i = 0; i < what_.rows * what_.each; ++i) {
      if (what_.targets[i] < 0) continue;
      const int host = what_.targets[i] / near_;
      const std::int64_t row = i / what_.each;
      if (host != host_ && std::exchange(last[at(host)], row) != row) f(row, host);
    }
  }
  // f(row, place) for each target on this host.
  template <class F>
  void each_near(const batch& of, F&& f) const {
    for (std::int64_t i = 0; i < of.count * what_.each; ++i)
      if (of.targets[i] >= 0 && of.targets[i] / near_ == host_)
        f(i / what_.each, of.targets[i] % near_);
  }
  void pack(const counts& give, char* rows, std::int32_t* targets) const {
    counts next;
    for (const part& one : side_by_side(give, 1)) next.push_back(one.begin);
    each_crossing([&](std::int64_t row, int host) {
      const std::int64_t place = next[at(host)]++;
      copy_row(what_.in, row, rows + place * row_bytes_);
      std::copy_n(what_.targets + row * what_.each, what_.each, targets + place * what_.each);
    });
  }

  const dispatch& what_;
  core::execution& on_;
  const int near_, host_;
  const std::int64_t row_bytes_;
  std::vector<batch> batches_;
};

struct places {
  group::ticket inside, across;
};

// Both groups number the call at one moment, whichever way round other calls use them. Where one has
// ended, the ranks of the other wait for a call that does not come, and are told.
template <class Queue>
void enter(const core::stream& on, const dispatch& what, places& in, Queue&& queue) {
  const operation all = operation_of(what);
  const bool inside_first = std::less<const group*>()(what.inside, what.across);
  group& first = inside_first ? *what.inside : *what.across;
  group& second = inside_first ? *what.across : *what.inside;
  try {
    first.enter(on, inside_first ? in.inside : in.across, all,
                [&] { second.enter(on, inside_first ? in.across : in.inside, all, queue); });
  } catch (...) {
    if (first.has_ended()) second.miss(all);
    if (second.has_ended()) first.miss(all);
    throw;
  }
}

// Across is left before inside is served, so that two dispatches the other way round never wait for
// each other; whatever happens before that, the ranks inside are told.
void carry_out(const dispatch& what, const places& in, core::execution& on) {
  const operation all = operation_of(what);
  std::optional<delivery> one;
  try {
    what.across->serve(in.across, all, [&](transport& link, core::arena&) {
      one.emplace(what, on);
      one->across(link);
    });
  } catch (...) {
    what.inside->drop(in.inside, all);
    throw;
  }
  what.inside->serve(in.inside, all, [&](transport& link, core::arena&) { one->inside(link); });
}

struct queued_dispatch final : core::work {
  explicit queued_dispatch(const dispatch& what) : work(core::demand::waits), what(what) {
    work::function = comm::function;
  }
  void run(core::execution& state) override { carry_out(what, in, state); }
  void skip() noexcept override {
    const operation all = operation_of(what);
    what.across->drop(in.across, all);
    what.inside->drop(in.inside, all);
  }

  const dispatch what;
  places in;
};

}  // namespace

dispatch dispatch_call(group& inside, group& across, const velo_tensor* given_in,
                       const velo_tensor* given_targets, const std::int64_t* out_counts,
                       const velo_tensor* given_out) {
  const core::context& owner = inside.owner();
  if (&inside == &across)
    fail(VELO_ERR_ARGUMENT, "across", "another group than inside", "the same");
  if (&across.owner() != &owner)
    fail(VELO_ERR_ARGUMENT, "across", "a group of the context of inside", "one of another context");
  const buffer in = buffer_of(owner, given_in, "in"),
               targets = buffer_of(owner, given_targets, "targets"),
               out = buffer_of(owner, given_out, "out");
  dispatch what{&inside, &across, in.dtype, in.data, nullptr, out.data, 0, 0, 0, {}};
  what.width = width_of(*given_in, "in");
  what.rows = given_in->shape[0];
  what.each = width_of(*given_targets, "targets");
  require_rows(*given_targets, "targets", what.rows, "as many as in has");
  require_dtype(targets, "targets", {nullptr, 0, int32});
  what.targets = reinterpret_cast<const std::int32_t*>(targets.data);
  require_dtype(out, "out", in);
  if (width_of(*given_out, "out") != what.width)
    fail(VELO_ERR_SHAPE, "out",
         text("rows of %lld elements, as in has", static_cast<long long>(what.width)),
         text("%lld", static_cast<long long>(width_of(*given_out, "out"))));
  what.out_parts = parts_of_rows(what, out_counts, *given_out);
  require_own(out, in, "in");
  require_own(out, targets, "targets");
  return what;
}

void submit(core::stream& on, const dispatch& what) {
  if (on.is_inline()) {
    on.run_waiting([&](core::execution& state) {
      places in;
      enter(on, what, in, [] {});
      carry_out(what, in, state);
    });
    return;
  }
  core::work_ptr<queued_dispatch> piece = on.make<queued_dispatch>(what);
  places& in = piece->in;
  enter(on, what, in, [&] { on.enqueue(std::move(piece)); });
}

}  // namespace velo::comm
