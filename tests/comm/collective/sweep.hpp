// Tries every collective, of every dtype and reduction, on tensors at any alignment, against plain
// loops that combine in the order that group.h states. Counts a rank's wrong elements and names its
// first wrong call. Floating-point numbers are far apart, so that another order, or a rounding in
// between, shows in the bits; integers are so small that every dtype holds their sums.
//
// It asserts nothing, since ranks may be threads or processes of their own.
#pragma once

#include <cmath>
#include <cstdlib>
#include <deque>

#include "comm/collective/every_collective.hpp"
#include "comm/ranks.hpp"

namespace velo::testing {

class sweep {
 public:
  // hosts: a letter for the host of each rank, over and over; those of equal letters share one.
  explicit sweep(const rank_of_group& me, const std::string& hosts = "0") : me_(me) {
    std::string seen;
    for (int rank = 0; rank < me.size; ++rank) {
      const char host = host_of(rank, hosts);
      if (seen.find(host) == std::string::npos) seen += host;
      hosts_.resize(seen.size());
      hosts_[seen.find(host)].push_back(rank);
    }
  }
  static char host_of(int rank, const std::string& hosts) {
    return hosts[static_cast<std::size_t>(rank) % hosts.size()];
  }

  // The variable VELO_SWEEP asks for all sizes.
  static std::vector<int> rank_counts() {
    if (std::getenv("VELO_SWEEP") == nullptr) return {1, 3, 5};
    return {1, 2, 3, 4, 5, 8};
  }
  // How many elements a rank has in its larger tensors.
  static std::vector<std::int64_t> sizes() {
    if (std::getenv("VELO_SWEEP") == nullptr) return {1, 3001};
    return {0, 1, 2, 7, 63, 1025, 4099, 65537, (1 << 20) - 1, 1 << 20};
  }

  // Tries a collective with the current dtype and size; reductions with each operation.
  using trial = void (sweep::*)();

  void run() {
    for (const dtype_case& d : reduced_dtypes) run(every_trial(), d, sizes());
  }
  void run(const std::vector<trial>& trials, const dtype_case& d,
           const std::vector<std::int64_t>& sizes) {
    for (const std::int64_t size : sizes) {
      dtype_ = d.dtype;
      name_ = d.name;
      size_ = size;
      one_ = make_elements(dtype_, 1);
      rows_.clear(), expected_.clear();
      for (int r = 0; r < me_.size; ++r)
        rows_.emplace_back(dtype_, 2 * size + 30 * me_.size,
                           [&](std::int64_t i) { return element(r, i); });
      for (const trial one : trials) (this->*one)();
    }
  }
  static std::vector<trial> every_trial() {
    return {&sweep::all_reduce,
            &sweep::reduce,
            &sweep::reduce_scatter,
            &sweep::reduce_scatter_v,
            &sweep::broadcast,
            &sweep::all_gather,
            &sweep::gather_and_scatter,
            &sweep::all_to_all,
            &sweep::ring,
            &sweep::all_gather_v,
            &sweep::gather_and_scatter_v,
            &sweep::all_to_all_v};
  }
  void try_only_sums() { only_sums_ = true; }
  std::int64_t wrong() const { return wrong_; }
  const std::string& first() const { return first_; }

  void all_reduce() {
    for (const expectation& e : expectations()) {
      const elements_ptr in = filled(size_), out = made(e.larger, size_);
      const velo_tensor x = in->view(), y = out->view();
      std::int64_t bad = ask(e.with(VELO_COLLECTIVE_ALL_REDUCE, &x, &y)) != VELO_OK;
      bad += e.wide.differ(*out, 0, size_, 0) + !out->borders_kept() + !in->borders_kept();
      bad += not_of(me_.rank, *in, 0, size_);
      count("all_reduce", e.name, bad);
      bad = ask(e.with(VELO_COLLECTIVE_ALL_REDUCE, &x, &x)) != VELO_OK;
      count("all_reduce in place", e.name,
            bad + e.same.differ(*in, 0, size_, 0) + !in->borders_kept());
    }
  }

  void reduce() {
    for (const expectation& e : expectations()) {
      const int root = static_cast<int>((size_ + e.how.op) % me_.size);
      const bool is_root = me_.rank == root;
      for (const bool others_have_out : {true, false}) {
        const elements_ptr in = filled(size_), out = made(dtype_, size_);
        const velo_tensor x = in->view(), y = out->view();
        std::int64_t bad = ask(e.with(VELO_COLLECTIVE_REDUCE, &x,
                                      is_root || others_have_out ? &y : nullptr, root)) != VELO_OK;
        bad += is_root ? e.same.differ(*out, 0, size_, 0) : touched(*out, 0, size_);
        bad += not_of(me_.rank, *in, 0, size_) + !out->borders_kept();
        count("reduce", e.name, bad);
      }
    }
  }

  void reduce_scatter() {
    const std::int64_t part = size_ / me_.size, own = part * me_.rank;
    for (const expectation& e : expectations()) {
      const elements_ptr in = filled(part * me_.size), out = made(e.larger, part);
      const velo_tensor x = in->view(), y = out->view();
      std::int64_t bad = ask(e.with(VELO_COLLECTIVE_REDUCE_SCATTER, &x, &y)) != VELO_OK;
      bad += e.wide.differ(*out, 0, part, own) + !out->borders_kept();
      count("reduce_scatter", e.name, bad);
      velo_tensor place = in->view();
      place.data = in->at(own), place.shape = &part;
      bad = ask(e.with(VELO_COLLECTIVE_REDUCE_SCATTER, &x, &place)) != VELO_OK;
      count("reduce_scatter in place", e.name,
            bad + e.same.differ(*in, own, part, own) + !in->borders_kept());
    }
  }

  void reduce_scatter_v() {
    const std::vector<std::int64_t> counts = uneven();
    const std::int64_t mine = counts[at(me_.rank)];
    for (const expectation& e : expectations()) {
      const elements_ptr in = filled(before(counts, me_.size)), out = made(e.larger, mine);
      const velo_tensor x = in->view(), y = out->view();
      velo_collective_desc parts = e.with(VELO_COLLECTIVE_REDUCE_SCATTER_V, &x, &y);
      parts.in_counts = counts.data();
      std::int64_t bad = ask(parts) != VELO_OK;
      bad += e.wide.differ(*out, 0, mine, before(counts, me_.rank)) + !out->borders_kept();
      count("reduce_scatter_v", e.name, bad);
    }
  }

  void broadcast() {
    const int root = static_cast<int>((size_ + 1) % me_.size);
    const elements_ptr x = filled(size_);
    const velo_tensor view = x->view();
    const std::int64_t bad =
        ask(collective_of(VELO_COLLECTIVE_BROADCAST, &view, nullptr, root)) != VELO_OK;
    count("broadcast", "", bad + not_of(root, *x, 0, size_) + !x->borders_kept());
  }

  void all_gather() {
    const std::int64_t part = size_ / me_.size, all = part * me_.size;
    const elements_ptr in = filled(part), out = made(dtype_, all), place = made(dtype_, all);
    fill(*place, me_.rank * part, part);
    const velo_tensor x = in->view(), y = out->view(), whole = place->view();
    velo_tensor own = whole;
    own.data = place->at(me_.rank * part), own.shape = &part;
    count("all_gather", "",
          (ask(collective_of(VELO_COLLECTIVE_ALL_GATHER, &x, &y)) != VELO_OK) + gathered(*out));
    count("all_gather in place", "",
          (ask(collective_of(VELO_COLLECTIVE_ALL_GATHER, &own, &whole)) != VELO_OK) +
              gathered(*place));
  }

  void gather_and_scatter() {
    const int root = static_cast<int>((size_ + 1) % me_.size);
    const bool is_root = me_.rank == root;
    const std::int64_t part = size_ / me_.size, all = part * me_.size;
    const elements_ptr in = filled(part), out = made(dtype_, all), back = made(dtype_, part);
    const velo_tensor x = in->view(), y = out->view(), again = back->view();
    std::int64_t bad =
        ask(collective_of(VELO_COLLECTIVE_GATHER, &x, is_root ? &y : nullptr, root)) != VELO_OK;
    count("gather", "", bad + (is_root ? gathered(*out) : touched(*out, 0, all)));
    bad = ask(collective_of(VELO_COLLECTIVE_SCATTER, is_root ? &y : nullptr, &again, root)) !=
          VELO_OK;
    count("scatter", "", bad + not_of(me_.rank, *back, 0, part) + !back->borders_kept());
  }

  void all_to_all() {
    const std::int64_t part = size_ / me_.size, all = part * me_.size;
    const elements_ptr in = filled(all), out = made(dtype_, all);
    const velo_tensor x = in->view(), y = out->view();
    for (const bool in_place : {false, true}) {
      const elements& got = in_place ? *in : *out;
      std::int64_t bad =
          ask(collective_of(VELO_COLLECTIVE_ALL_TO_ALL, &x, in_place ? &x : &y)) != VELO_OK;
      for (int r = 0; r < me_.size; ++r) bad += not_of(r, got, r * part, part, me_.rank * part);
      count(in_place ? "all_to_all in place" : "all_to_all", "", bad + !got.borders_kept());
    }
  }

  void ring() {
    const int next = (me_.rank + 1) % me_.size, last = (me_.rank + me_.size - 1) % me_.size;
    const elements_ptr mine = filled(size_), theirs = made(dtype_, size_);
    const velo_tensor give = mine->view(), take = theirs->view();
    const velo_group_message both[] = {{&give, next, VELO_MESSAGE_SEND},
                                       {&take, last, VELO_MESSAGE_RECEIVE}};
    velo_collective_desc around = collective_of(VELO_COLLECTIVE_EXCHANGE, nullptr, nullptr);
    around.messages = both, around.message_count = 2;
    if (me_.size > 1)
      count("messages", "",
            (ask(around) != VELO_OK) + not_of(last, *theirs, 0, size_) + !theirs->borders_kept());
  }

  void all_gather_v() {
    const std::vector<std::int64_t> counts = uneven(), offsets = scattered(counts);
    const std::int64_t sum = before(counts, me_.size);
    const elements_ptr in = filled(counts[at(me_.rank)]), placed_all = made(dtype_, end_of(counts)),
                       packed = made(dtype_, sum);
    const velo_tensor x = in->view(), y = placed_all->view(), z = packed->view();
    velo_collective_desc gather = collective_of(VELO_COLLECTIVE_ALL_GATHER_V, &x, &y);
    gather.out_counts = counts.data();
    gather.out_offsets = offsets.data();
    count("all_gather_v", "", (ask(gather) != VELO_OK) + placed(*placed_all, counts, first_of));
    gather.out = &z, gather.out_offsets = nullptr;
    std::int64_t bad = (ask(gather) != VELO_OK) + !packed->borders_kept();
    for (int r = 0; r < me_.size; ++r) bad += not_of(r, *packed, before(counts, r), counts[at(r)]);
    count("all_gather_v without offsets", "", bad);
  }

  void gather_and_scatter_v() {
    const int root = static_cast<int>((size_ + 2) % me_.size);
    const bool is_root = me_.rank == root;
    const std::vector<std::int64_t> counts = uneven(), offsets = scattered(counts);
    const std::int64_t own = counts[at(me_.rank)], end = end_of(counts);
    const elements_ptr in = filled(own), all = made(dtype_, end), back = made(dtype_, own);
    const velo_tensor x = in->view(), y = all->view(), again = back->view();
    velo_collective_desc gather =
        collective_of(VELO_COLLECTIVE_GATHER_V, &x, is_root ? &y : nullptr, root);
    gather.out_counts = is_root ? counts.data() : nullptr;
    gather.out_offsets = offsets.data();
    count("gather_v", "",
          (ask(gather) != VELO_OK) +
              (is_root ? placed(*all, counts, first_of) : touched(*all, 0, end)));
    velo_collective_desc scatter =
        collective_of(VELO_COLLECTIVE_SCATTER_V, is_root ? &y : nullptr, &again, root);
    scatter.in_counts = is_root ? counts.data() : nullptr;
    scatter.in_offsets = offsets.data();
    count("scatter_v", "",
          (ask(scatter) != VELO_OK) + not_of(me_.rank, *back, 0, own) + !back->borders_kept());
  }

  void all_to_all_v() {
    const auto given = [&](int from, int to) {
      return (from + 2 * to) % 4 == 0 ? 0 : size_ * (from + to + 1) / (2 * me_.size * me_.size);
    };
    std::vector<std::vector<std::int64_t>> give(static_cast<std::size_t>(me_.size));
    std::vector<std::int64_t> take;
    for (int r = 0; r < me_.size; ++r) {
      for (int to = 0; to < me_.size; ++to) give[at(r)].push_back(given(r, to));
      take.push_back(given(r, me_.rank));
    }
    const std::vector<std::int64_t>& mine = give[static_cast<std::size_t>(me_.rank)];
    const std::vector<std::int64_t> out_of = scattered(mine), into = scattered(take);
    const elements_ptr in = filled(end_of(mine)), out = made(dtype_, end_of(take));
    const velo_tensor x = in->view(), y = out->view();
    velo_collective_desc exchange = collective_of(VELO_COLLECTIVE_ALL_TO_ALL_V, &x, &y);
    exchange.in_counts = mine.data();
    exchange.in_offsets = out_of.data();
    exchange.out_counts = take.data();
    exchange.out_offsets = into.data();
    count("all_to_all_v", "", (ask(exchange) != VELO_OK) + placed(*out, take, [&](int r) {
                                return scattered(give[at(r)])[static_cast<std::size_t>(me_.rank)];
                              }));
  }

 private:
  struct reduction {
    velo_reduce_op op;
    double scale;
    const char* name;
  };
  static constexpr reduction reductions[] = {
      {VELO_REDUCE_SUM, 1, "sum"},           {VELO_REDUCE_SUM, -1.5, "scaled sum"},
      {VELO_REDUCE_AVG, 1, "average"},       {VELO_REDUCE_AVG, 0.5, "scaled average"},
      {VELO_REDUCE_MIN, 1, "min"},           {VELO_REDUCE_MAX, 1, "max"},
      {VELO_REDUCE_CUSTOM, 1, "difference"},
  };

  // Numbers of a dtype that come again only after so many: what lies at the place of others is
  // another. Results are held to them byte by byte.
  class row {
   public:
    template <class Element>
    row(velo_dtype dtype, std::int64_t least, const Element& of)
        : size_(dtype.bits / 8), all_(dtype, period) {
      for (std::int64_t i = 0; i < std::min(period, least); ++i) all_.set(i, of(i));
    }
    void copy(elements& to, std::int64_t begin, std::int64_t count, std::int64_t first) const {
      each(begin, count, first, [&](std::int64_t at, std::int64_t from, std::int64_t n) {
        std::memcpy(to.at(at), all_.at(from), static_cast<std::size_t>(n * size_));
      });
    }
    double get(std::int64_t i) const { return all_.get(i); }  // i: below `period`
    // Elements [begin, begin + count) that are not those from `first` on.
    std::int64_t differ(const elements& got, std::int64_t begin, std::int64_t count,
                        std::int64_t first) const {
      std::int64_t bad = 0;
      each(begin, count, first, [&](std::int64_t at, std::int64_t from, std::int64_t n) {
        if (std::memcmp(got.at(at), all_.at(from), static_cast<std::size_t>(n * size_)) == 0)
          return;
        for (std::int64_t i = 0; i < n; ++i)
          bad +=
              std::memcmp(got.at(at + i), all_.at(from + i), static_cast<std::size_t>(size_)) != 0;
      });
      return bad;
    }

   private:
    template <class Body>
    static void each(std::int64_t begin, std::int64_t count, std::int64_t first, const Body& body) {
      for (std::int64_t n = 0; count > 0; begin += n, first += n, count -= n) {
        n = std::min(count, period - first % period);
        body(begin, first % period, n);
      }
    }
    std::int64_t size_;
    elements all_;
  };

  static constexpr std::int64_t period = 8191;
  double element(int rank, std::int64_t i) const {
    std::uint64_t x = static_cast<std::uint64_t>(i * 64 + rank + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    const int whole = static_cast<int>(x % 31);
    if (dtype_.code == VELO_DTYPE_UINT) return whole;
    if (!is_float(dtype_)) return whole - 15;
    return std::ldexp(static_cast<double>(static_cast<std::int64_t>(x) >> 10),
                      -49 - static_cast<int>(x % 16));  // below 16, down to 2^-11 in size
  }
  // float32 where elements are combined in it.
  double kept(double x) const {
    return is_float(dtype_) && dtype_.bits < 64 ? static_cast<float>(x) : x;
  }
  double joined(velo_reduce_op op, double total, double next) const {
    if (op == VELO_REDUCE_MIN) return std::min(total, next);
    if (op == VELO_REDUCE_MAX) return std::max(total, next);
    if (op != VELO_REDUCE_CUSTOM) return kept(total + next);
    one_->set(0, difference(dtype_, next, total));
    return one_->get(0);
  }
  // The reduction of the ranks' elements, first within hosts and then across them, in float32 where
  // velo accumulates in it, and otherwise in double, which holds all sums of integers.
  double combined(const reduction& how, std::int64_t i) const {
    const auto from = [&](int rank) { return kept(numbers_of(rank).get(i) * how.scale); };
    double all = 0;
    for (const std::vector<int>& host : hosts_) {
      double sum = from(host[0]);
      for (std::size_t k = 1; k < host.size(); ++k) sum = joined(how.op, sum, from(host[k]));
      all = &host == &hosts_[0] ? sum : joined(how.op, all, sum);
    }
    if (how.op != VELO_REDUCE_AVG) return all;
    return is_float(dtype_) ? kept(all / me_.size) : std::trunc(all / me_.size);
  }
  static double difference(velo_dtype dtype, double next, double total) {
    const double d = next - total;
    return dtype.code == VELO_DTYPE_UINT && d < 0 ? d + 256 : d;
  }
  static void fold(void*, const void* next, void* total, std::int64_t count,
                   const velo_dtype* dtype) {
    const std::size_t bytes = dtype->bits / 8;
    elements a(*dtype, 1), b(*dtype, 1);
    for (std::int64_t i = 0; i < count; ++i) {
      char* at = static_cast<char*>(total) + static_cast<std::size_t>(i) * bytes;
      std::memcpy(a.at(0), static_cast<const char*>(next) + static_cast<std::size_t>(i) * bytes,
                  bytes);
      std::memcpy(b.at(0), at, bytes);
      b.set(0, difference(*dtype, a.get(0), b.get(0)));
      std::memcpy(at, b.at(0), bytes);
    }
  }

  // A tensor of this rank, at a place of memory that differs from call to call.
  elements_ptr made(velo_dtype dtype, std::int64_t count) {
    return make_elements(dtype, count, ++made_ % 5);
  }
  // One filled with the numbers of this rank from the first on.
  elements_ptr filled(std::int64_t count) {
    elements_ptr all = made(dtype_, count);
    fill(*all, 0, count);
    return all;
  }
  void fill(elements& all, std::int64_t begin, std::int64_t count) const {
    numbers_of(me_.rank).copy(all, begin, count, 0);
  }
  const row& numbers_of(int rank) const { return rows_[at(rank)]; }

  velo_status ask(const velo_collective_desc& what) const {
    return (me_.plans ? plan_and_start : call)(me_.stream, me_.group, what);
  }
  void count(const char* what, const char* how, std::int64_t bad) {
    if (bad == 0) return;
    if (first_.empty())
      first_ = std::string(what) + " " + how + " of " + std::to_string(size_) + " " + name_ + ", " +
               std::to_string(bad) + " wrong";
    wrong_ += bad;
  }
  // Elements that are not what rank r has from `first` on.
  std::int64_t not_of(int r, const elements& all, std::int64_t begin, std::int64_t count,
                      std::int64_t first = 0) const {
    return numbers_of(r).differ(all, begin, count, first);
  }
  static std::int64_t touched(const elements& all, std::int64_t begin, std::int64_t count) {
    const unsigned char* end = all.at(begin + count);
    return end - all.at(begin) - std::count(all.at(begin), all.at(begin + count), 0xa5);
  }

  // The counts of uneven parts: some are 0, and together they have about `size_` elements.
  std::vector<std::int64_t> uneven() const {
    std::vector<std::int64_t> all;
    for (int r = 0; r < me_.size; ++r)
      all.push_back(r % 3 == 1 ? 0 : 2 * size_ * (r + 1) / (me_.size * (me_.size + 1)) + r % 2);
    return all;
  }
  static std::int64_t before(const std::vector<std::int64_t>& counts, int rank) {
    std::int64_t sum = 0;
    for (int r = 0; r < rank; ++r) sum += counts[at(r)];
    return sum;
  }

  // The right result of a reduction, in the dtype itself and in float32 if 16 bits may become that.
  struct expectation {
    expectation(const sweep& of, const reduction& is)
        : name(is.name),
          larger(of.dtype_.bits == 16 && is.op != VELO_REDUCE_CUSTOM ? f32 : of.dtype_),
          same(of.dtype_, 2 * of.size_ + of.me_.size,
               [&](std::int64_t i) { return of.combined(is, i); }),
          wide(larger, 2 * of.size_ + of.me_.size,
               [&](std::int64_t i) { return of.combined(is, i); }) {
      how.op = is.op;
      how.scale = is.scale;
      if (is.op == VELO_REDUCE_CUSTOM) how.fn = fold;
    }
    velo_collective_desc with(velo_collective_kind kind, const velo_tensor* x, const velo_tensor* y,
                              int root = 0) const {
      velo_collective_desc desc = collective_of(kind, x, y, root);
      desc.reduction = &how;
      return desc;
    }
    const char* name;
    velo_dtype larger;
    velo_reduction how = VELO_REDUCTION_INIT;
    row same, wide;
  };
  const std::deque<expectation>& expectations() {
    if (expected_.empty())
      for (const reduction& is : reductions)
        if (only_sums_ ? &is == reductions : is.scale == 1 || is_float(dtype_))
          expected_.emplace_back(*this, is);
    return expected_;
  }
  std::int64_t gathered(const elements& out) const {
    const std::int64_t part = size_ / me_.size;
    std::int64_t bad = !out.borders_kept();
    for (int r = 0; r < me_.size; ++r) bad += not_of(r, out, r * part, part);
    return bad;
  }
  static std::int64_t first_of(int) { return 0; }

  // Offsets in the order of the ranks turned round, with gaps that must stay.
  static std::vector<std::int64_t> scattered(const std::vector<std::int64_t>& counts) {
    std::vector<std::int64_t> all(counts.size());
    std::int64_t next = 2;
    for (std::size_t r = counts.size(); r-- > 0; next += counts[r] + 3) all[r] = next;
    return all;
  }
  static std::int64_t end_of(const std::vector<std::int64_t>& counts) {
    return before(counts, static_cast<int>(counts.size())) +
           3 * static_cast<std::int64_t>(counts.size()) + 2;
  }
  // Counts wrong elements of parts at these offsets, and touched gaps.
  template <class First>
  std::int64_t placed(const elements& out, const std::vector<std::int64_t>& counts,
                      const First& first) const {
    const std::vector<std::int64_t> offsets = scattered(counts);
    std::int64_t bad = !out.borders_kept();
    bad += touched(out, 0, 2);
    for (int r = 0; r < me_.size; ++r) {
      const auto at = static_cast<std::size_t>(r);
      bad += not_of(r, out, offsets[at], counts[at], first(r));
      bad += touched(out, offsets[at] + counts[at], 3);
    }
    return bad;
  }

  const rank_of_group me_;
  std::vector<std::vector<int>> hosts_;  // the ranks of each
  velo_dtype dtype_{};
  elements_ptr one_;  // through which numbers are rounded to the dtype
  const char* name_ = "";
  std::int64_t size_ = 0;
  std::deque<row> rows_;  // of each rank
  std::deque<expectation> expected_;
  int made_ = 0;
  bool only_sums_ = false;
  std::int64_t wrong_ = 0;
  std::string first_;
};

}  // namespace velo::testing
