// Every collective once, on tensors of numbers whose sums depend on their order: what came out, as
// bytes, to be held against what threads of one process get. Some ranks call collectives, others
// plan them: it makes no difference to anybody.
#pragma once

#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "comm/ranks.hpp"
#include "tests/random.hpp"
#include "tests/tensors.hpp"
#include "velo/velo.h"

namespace velo::testing {

using bytes = std::vector<unsigned char>;

inline velo_context new_context() {
  rank_of_group me;
  REQUIRE(open_context(me) == VELO_OK);
  return me.context;
}

// A tensor of numbers whose sums depend on their order; of bytes that differ everywhere.
class numbers {
 public:
  numbers(velo_dtype dtype, std::int64_t count, int seed) : dtype_(dtype), count_(count) {
    data_.resize(static_cast<std::size_t>(count * (dtype.bits / 8)) + 8);
    cheap_random draw(static_cast<std::uint32_t>(seed) * 2654435761u + 12345u);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::uint32_t state = draw();
      const float value = static_cast<float>(static_cast<int>(state >> 8) - (1 << 23)) / 65536.0f;
      unsigned char* at = data_.data() + i * (dtype.bits / 8);
      std::uint32_t word;
      std::memcpy(&word, &value, 4);
      const std::uint16_t high = static_cast<std::uint16_t>(word >> 16),
                          half = static_cast<std::uint16_t>(state >> 18 & 0x3bff);
      if (dtype.code == VELO_DTYPE_FLOAT && dtype.bits == 32) std::memcpy(at, &value, 4);
      if (dtype.code == VELO_DTYPE_FLOAT && dtype.bits == 16) std::memcpy(at, &half, 2);
      if (dtype.code == VELO_DTYPE_BFLOAT) std::memcpy(at, &high, 2);
      if (dtype.code == VELO_DTYPE_INT || dtype.code == VELO_DTYPE_UINT)
        for (int b = 0; b < dtype.bits / 8; ++b) at[b] = static_cast<unsigned char>(state >> 3 * b);
    }
  }
  velo_tensor view() const { return view_of(data_.data(), dtype_, count_); }
  void append_to(bytes& all) const { all.insert(all.end(), data_.begin(), data_.end() - 8); }

 private:
  velo_dtype dtype_;
  std::int64_t count_;
  bytes data_;
};

inline velo_status call(velo_stream stream, velo_group group, const velo_collective_desc& d) {
  switch (d.kind) {
    case VELO_COLLECTIVE_BARRIER:
      return velo_group_barrier(stream, group);
    case VELO_COLLECTIVE_ALL_REDUCE:
      return velo_group_all_reduce(stream, group, d.reduction, d.in, d.out);
    case VELO_COLLECTIVE_REDUCE:
      return velo_group_reduce(stream, group, d.rank, d.reduction, d.in, d.out);
    case VELO_COLLECTIVE_BROADCAST:
      return velo_group_broadcast(stream, group, d.rank, d.in);
    case VELO_COLLECTIVE_ALL_GATHER:
      return velo_group_all_gather(stream, group, d.in, d.out);
    case VELO_COLLECTIVE_ALL_GATHER_V:
      return velo_group_all_gather_v(stream, group, d.in, d.out_counts, d.out_offsets, d.out);
    case VELO_COLLECTIVE_REDUCE_SCATTER:
      return velo_group_reduce_scatter(stream, group, d.reduction, d.in, d.out);
    case VELO_COLLECTIVE_REDUCE_SCATTER_V:
      return velo_group_reduce_scatter_v(stream, group, d.reduction, d.in, d.in_counts, d.out);
    case VELO_COLLECTIVE_ALL_TO_ALL:
      return velo_group_all_to_all(stream, group, d.in, d.out);
    case VELO_COLLECTIVE_ALL_TO_ALL_V:
      return velo_group_all_to_all_v(stream, group, d.in, d.in_counts, d.in_offsets, d.out_counts,
                                     d.out_offsets, d.out);
    case VELO_COLLECTIVE_GATHER:
      return velo_group_gather(stream, group, d.rank, d.in, d.out);
    case VELO_COLLECTIVE_GATHER_V:
      return velo_group_gather_v(stream, group, d.rank, d.in, d.out_counts, d.out_offsets, d.out);
    case VELO_COLLECTIVE_SCATTER:
      return velo_group_scatter(stream, group, d.rank, d.in, d.out);
    case VELO_COLLECTIVE_SCATTER_V:
      return velo_group_scatter_v(stream, group, d.rank, d.in, d.in_counts, d.in_offsets, d.out);
    case VELO_COLLECTIVE_SEND:
      return velo_group_send(stream, group, d.rank, d.in);
    case VELO_COLLECTIVE_RECEIVE:
      return velo_group_receive(stream, group, d.rank, d.in);
    default:
      return velo_group_exchange(stream, group, d.messages, d.message_count);
  }
}

inline velo_status plan_and_start(velo_stream stream, velo_group group,
                                  const velo_collective_desc& desc) {
  velo_collective one = nullptr;
  velo_status done = velo_collective_create(group, &desc, &one);
  if (done == VELO_OK) done = velo_collective_start(stream, one);
  velo_collective_destroy(one);
  return done;
}

inline velo_collective_desc collective_of(velo_collective_kind kind, const velo_tensor* in,
                                          const velo_tensor* out, std::int32_t rank = 0) {
  velo_collective_desc desc = VELO_COLLECTIVE_DESC_INIT;
  desc.kind = kind;
  desc.rank = rank;
  desc.in = in;
  desc.out = out;
  return desc;
}

// Every collective once, on tensors of about `count` elements; what came out is appended.
class every_collective {
 public:
  every_collective(const rank_of_group& me, velo_dtype dtype, std::int64_t count, bytes& all)
      : me_(me), dtype_(dtype), count_(count), all_(all) {}

  velo_status run() {
    velo_status done = ask(collective_of(VELO_COLLECTIVE_BARRIER, nullptr, nullptr));
    for (int op = VELO_REDUCE_SUM; op <= VELO_REDUCE_CUSTOM && done == VELO_OK; ++op) {
      velo_reduction how = VELO_REDUCTION_INIT;
      how.op = op;
      if (op == VELO_REDUCE_CUSTOM) how.fn = fold, how.user = &limit_;
      done = combine(how);
    }
    if (done == VELO_OK) done = move();
    if (done == VELO_OK) done = move_uneven();
    return done;
  }

 private:
  numbers filled(std::int64_t count) const {
    return numbers(dtype_, count, me_.rank * 31 + static_cast<int>(count % 1000));
  }
  velo_status ask(const velo_collective_desc& what) const {
    return (me_.plans ? plan_and_start : call)(me_.stream, me_.group, what);
  }
  velo_status keep(const velo_collective_desc& what, const numbers& out) {
    const velo_status done = ask(what);
    out.append_to(all_);
    return done;
  }

  velo_status combine(const velo_reduction& how) {
    const numbers in = filled(count_), whole = filled(count_ * me_.size), part = filled(count_),
                  out = filled(count_), wide(f32, count_, 0);
    const velo_tensor from = in.view(), to = out.view(), all = whole.view(), own = part.view(),
                      larger = wide.view();
    const int root = static_cast<int>(count_ % me_.size);
    const auto with = [&](velo_collective_kind kind, const velo_tensor* x, const velo_tensor* y) {
      velo_collective_desc desc = collective_of(kind, x, y, root);
      desc.reduction = &how;
      return desc;
    };
    velo_status done = keep(with(VELO_COLLECTIVE_ALL_REDUCE, &from, &to), out);
    if (done == VELO_OK && dtype_.bits == 16 && how.op != VELO_REDUCE_CUSTOM)
      done = keep(with(VELO_COLLECTIVE_ALL_REDUCE, &from, &larger), wide);
    if (done == VELO_OK)
      done = keep(with(VELO_COLLECTIVE_REDUCE, &from, me_.rank == root ? &to : nullptr), out);
    if (done == VELO_OK) done = keep(with(VELO_COLLECTIVE_REDUCE_SCATTER, &all, &own), part);
    const std::vector<std::int64_t> counts = uneven();
    std::int64_t sum = 0;
    for (const std::int64_t one : counts) sum += one;
    const numbers several = filled(sum), mine = filled(counts[at(me_.rank)]);
    const velo_tensor before = several.view(), after = mine.view();
    velo_collective_desc parts = with(VELO_COLLECTIVE_REDUCE_SCATTER_V, &before, &after);
    parts.in_counts = counts.data();
    if (done == VELO_OK) done = keep(parts, mine);
    if (done == VELO_OK) done = keep(with(VELO_COLLECTIVE_ALL_REDUCE, &from, &from), in);
    return done;
  }

  velo_status move() {
    const numbers in = filled(count_), x = filled(count_), whole = filled(count_ * me_.size),
                  gathered = filled(count_ * me_.size), part = filled(count_);
    const velo_tensor from = in.view(), shared = x.view(), all = whole.view(),
                      wide = gathered.view(), own = part.view();
    const int root = me_.size - 1;
    const bool is_root = me_.rank == root;
    velo_status done = keep(collective_of(VELO_COLLECTIVE_BROADCAST, &shared, nullptr, root), x);
    if (done == VELO_OK)
      done = keep(collective_of(VELO_COLLECTIVE_ALL_GATHER, &from, &wide), gathered);
    if (done == VELO_OK)
      done = keep(collective_of(VELO_COLLECTIVE_ALL_TO_ALL, &all, &wide), gathered);
    if (done == VELO_OK) done = keep(collective_of(VELO_COLLECTIVE_ALL_TO_ALL, &all, &all), whole);
    if (done == VELO_OK)
      done = keep(collective_of(VELO_COLLECTIVE_GATHER, &from, is_root ? &wide : nullptr, root),
                  gathered);
    if (done == VELO_OK)
      done =
          keep(collective_of(VELO_COLLECTIVE_SCATTER, is_root ? &wide : nullptr, &own, root), part);
    return done;
  }

  // Some ranks have no elements.
  std::vector<std::int64_t> uneven() const {
    std::vector<std::int64_t> all;
    for (int r = 0; r < me_.size; ++r) all.push_back(r % 3 == 1 ? 0 : count_ * (r + 1) / me_.size);
    return all;
  }

  velo_status move_uneven() {
    const std::vector<std::int64_t> counts = uneven();
    std::vector<std::int64_t> offsets(counts.size()), give, take;
    std::int64_t end = 2;
    for (std::size_t r = counts.size(); r-- > 0; end += counts[r] + 3) offsets[r] = end;
    std::int64_t giving = 0, taking = 0;
    for (int r = 0; r < me_.size; ++r) {
      give.push_back((me_.rank + 2 * r) % 3 * count_ / 4);
      take.push_back((r + 2 * me_.rank) % 3 * count_ / 4);
      giving += give.back(), taking += take.back();
    }
    const numbers in = filled(counts[at(me_.rank)]), all = filled(end), gifts = filled(giving),
                  taken = filled(taking);
    const velo_tensor from = in.view(), to = all.view(), gift = gifts.view(), got = taken.view();
    velo_collective_desc gather = collective_of(VELO_COLLECTIVE_ALL_GATHER_V, &from, &to);
    gather.out_counts = counts.data();
    gather.out_offsets = offsets.data();
    velo_collective_desc exchange = collective_of(VELO_COLLECTIVE_ALL_TO_ALL_V, &gift, &got);
    exchange.in_counts = give.data();
    exchange.out_counts = take.data();
    velo_collective_desc scatter = collective_of(VELO_COLLECTIVE_SCATTER_V, &to, &from);
    scatter.in_counts = counts.data();
    scatter.in_offsets = offsets.data();
    velo_status done = keep(gather, all);
    if (done == VELO_OK) done = keep(exchange, taken);
    gather.kind = VELO_COLLECTIVE_GATHER_V;
    if (done == VELO_OK) done = keep(gather, all);
    if (done == VELO_OK) done = keep(scatter, in);
    return done;
  }

  // Bytes as maps x -> a x + b of numbers below 16, one after the other: what comes out depends on
  // the order of the ranks, and not on which neighbors are combined first, as those of a host are.
  static void fold(void* user, const void* next, void* total, std::int64_t count,
                   const velo_dtype* dtype) {
    const auto* from = static_cast<const unsigned char*>(next);
    auto* to = static_cast<unsigned char*>(total);
    const int limit = *static_cast<int*>(user);
    for (std::int64_t i = 0; i < count * (dtype->bits / 8); ++i) {
      const int a = to[i] / limit, b = to[i] % limit, c = from[i] / limit, d = from[i] % limit;
      to[i] = static_cast<unsigned char>(a * c % limit * limit + (c * b + d) % limit);
    }
  }

  int limit_ = 16;
  const rank_of_group& me_;
  const velo_dtype dtype_;
  const std::int64_t count_;
  bytes& all_;
};

// The same by threads of this process; what each rank got.
inline std::vector<bytes> locally(int size, velo_dtype dtype, std::int64_t count) {
  const local_ranks ranks(size);
  std::vector<bytes> all(at(size));
  ranks.require([&](const rank_of_group& me) {
    return every_collective(me, dtype, count, all[at(me.rank)]).run();
  });
  return all;
}

}  // namespace velo::testing
