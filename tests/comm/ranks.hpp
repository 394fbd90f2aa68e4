// Ranks as threads, each with its own context, and tensors of any dtype over bytes, for the tests
// of groups. Nothing is asserted on the ranks' threads: they return their results as values.
#pragma once

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "core/simd/scalar.hpp"
#include "tests/context.hpp"
#include "tests/record.hpp"
#include "tests/structs.hpp"
#include "tests/tensors.hpp"
#include "tests/threads.hpp"
#include "velo/velo.h"

namespace velo::testing {

inline velo_group_desc group_desc(std::int64_t timeout_ms = 20000) {
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  desc.timeout_ns = timeout_ms * 1000000;
  return desc;
}

inline std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// A rank as its own thread or process sees it.
struct rank_of_group {
  velo_context context = nullptr;
  velo_stream stream = nullptr;
  velo_group group = nullptr;
  int rank = 0, size = 1;
  bool plans = false;
};

// These assert nothing, so any thread and any process may call them.
inline velo_status open_context(rank_of_group& me) {
  const velo_context_desc one = context_desc(1);
  const velo_status made = velo_context_create(&one, &me.context);
  return made == VELO_OK ? velo_context_stream(me.context, &me.stream) : made;
}
inline velo_status join_group(rank_of_group& me, const velo_group_desc& desc) {
  me.rank = desc.rank, me.size = desc.size;
  const velo_status opened = open_context(me);
  return opened == VELO_OK ? velo_group_create(me.context, &desc, &me.group) : opened;
}
template <class T>
velo_status reduce_in_place(velo_stream stream, velo_group group, std::vector<T>& x,
                            const velo_reduction* how = nullptr) {
  const auto count = static_cast<std::int64_t>(x.size());
  const velo_tensor view = view_of(x.data(), dtype_of<T>(), count);
  return velo_group_all_reduce(stream, group, how, &view, &view);
}

inline velo_group_info info_of(velo_group group) {
  velo_group_info info = VELO_GROUP_INFO_INIT;
  REQUIRE(velo_group_get_info(group, &info) == VELO_OK);
  return info;
}

// The text of a function that writes it with its size, as velo_group_describe does; empty if it
// fails. Room is left for what it grows between the two calls.
template <class Write>
std::string written(Write&& write) {
  std::uint64_t needed = 0;
  if (write(nullptr, 0, &needed) != VELO_OK) return "";
  std::string all(needed + 1000, 0);
  if (write(all.data(), all.size(), &needed) != VELO_OK || needed > all.size()) return "";
  all.resize(needed - 1);
  return all;
}
inline std::string description_of(velo_group group) {
  return written([group](char* text, std::uint64_t capacity, std::uint64_t* needed) {
    return velo_group_describe(group, text, capacity, needed);
  });
}

#define CHECK_OK(record)                              \
  do {                                                \
    const velo::testing::call_record& ok_ = (record); \
    INFO(ok_);                                        \
    CHECK(ok_.code == VELO_OK);                       \
  } while (false)

// Checks that a call failed because of a rank, and what its record says of that rank.
#define CHECK_PEER(record, culprit, words)              \
  do {                                                  \
    const velo::testing::call_record& peer_ = (record); \
    INFO(peer_);                                        \
    CHECK(peer_.code == VELO_ERR_PEER);                 \
    CHECK(peer_.rank == (culprit));                     \
    CHECK(peer_.got == (words));                        \
  } while (false)

class local_ranks {
 public:
  explicit local_ranks(int count, const velo_group_desc& desc = group_desc(), int threads = 1) {
    const velo_context_desc one = context_desc(threads);
    std::vector<velo_context> handles;
    for (int i = 0; i < count; ++i) {
      contexts_.push_back(std::make_unique<live_context>(one));
      handles.push_back(*contexts_.back());
      streams_.push_back(contexts_.back()->inline_stream());
    }
    groups_.resize(at(count));
    REQUIRE(velo_group_create_local(handles.data(), count, &desc, groups_.data()) == VELO_OK);
  }
  ~local_ranks() {
    for (const velo_group one : groups_) velo_group_destroy(one);
  }

  int size() const { return static_cast<int>(groups_.size()); }
  velo_group group(int rank) const { return groups_[at(rank)]; }
  velo_stream stream(int rank) const { return streams_[at(rank)]; }
  const live_context& context(int rank) const { return *contexts_[at(rank)]; }
  rank_of_group rank(int of) const { return {context(of), stream(of), group(of), of, size()}; }

  // body(rank), or body(rank_of_group), on a thread for each rank, all at the same time; returns
  // their records.
  template <class Body>
  std::vector<call_record> run(const Body& body) const {
    std::vector<call_record> all(groups_.size());
    on_threads(size(), [&](int i) {
      if constexpr (std::is_invocable_v<Body, int>)
        all[at(i)] = record_of(body(i));
      else
        all[at(i)] = record_of(body(rank(i)));
    });
    return all;
  }
  template <class Body>
  void require(const Body& body) const {
    for (const call_record& one : run(body)) {
      INFO(one);
      REQUIRE(one.code == VELO_OK);
    }
  }
  void require_barrier() const {
    require([](const rank_of_group& me) { return velo_group_barrier(me.stream, me.group); });
  }

 private:
  std::vector<std::unique_ptr<live_context>> contexts_;
  std::vector<velo_stream> streams_;
  std::vector<velo_group> groups_;
};

// A rank alone in its group.
class group_of_one {
 public:
  group_of_one() { REQUIRE(velo_group_create(context, nullptr, &group) == VELO_OK); }
  ~group_of_one() { velo_group_destroy(group); }
  group_of_one(const group_of_one&) = delete;

  const live_context context;
  const velo_stream stream = context.inline_stream();
  velo_group group = nullptr;
};

// Dtypes that reductions take, and elements of them as numbers.
struct dtype_case {
  velo_dtype dtype;
  const char* name;
};
inline constexpr dtype_case reduced_dtypes[] = {
    {f32, "float32"}, {f64, "float64"}, {f16, "float16"}, {bf16, "bfloat16"},
    {i8, "int8"},     {i32, "int32"},   {i64, "int64"},   {u8, "uint8"}};

inline bool is_float(velo_dtype t) {
  return t.code == VELO_DTYPE_FLOAT || t.code == VELO_DTYPE_BFLOAT;
}

// Elements of a dtype somewhere in a block of bytes that are all known: what is beside them must
// stay.
class elements {
 public:
  elements(velo_dtype dtype, std::int64_t count, int offset = 0)
      : dtype_(dtype),
        count_(count),
        first_(64 + offset * (dtype.bits / 8)),
        bytes_(static_cast<std::size_t>(first_ + count * (dtype.bits / 8) + 64 + 64), 0xa5) {
    base_ = static_cast<int>(64 - reinterpret_cast<std::uintptr_t>(bytes_.data()) % 64) % 64;
  }
  elements(const elements& other) = delete;

  velo_tensor view() const { return view_of(at(0), dtype_, count_); }
  unsigned char* at(std::int64_t i) const {
    return const_cast<unsigned char*>(bytes_.data()) + base_ + first_ + i * (dtype_.bits / 8);
  }
  void set(std::int64_t i, double value) {
    switch (dtype_.code) {
      case VELO_DTYPE_FLOAT:
        if (dtype_.bits == 64) return put(i, value);
        if (dtype_.bits == 32) return put(i, static_cast<float>(value));
        return put(i, simd::to_f16(static_cast<float>(value)));
      case VELO_DTYPE_BFLOAT:
        return put(i, simd::to_bf16(static_cast<float>(value)));
      case VELO_DTYPE_UINT:
        return put(i, static_cast<std::uint8_t>(value));
      default:
        if (dtype_.bits == 8) return put(i, static_cast<std::int8_t>(value));
        if (dtype_.bits == 32) return put(i, static_cast<std::int32_t>(value));
        return put(i, static_cast<std::int64_t>(value));
    }
  }
  double get(std::int64_t i) const {
    switch (dtype_.code) {
      case VELO_DTYPE_FLOAT:
        if (dtype_.bits == 64) return got<double>(i);
        if (dtype_.bits == 32) return got<float>(i);
        return simd::to_float(got<simd::f16>(i));
      case VELO_DTYPE_BFLOAT:
        return simd::to_float(got<simd::bf16>(i));
      case VELO_DTYPE_UINT:
        return got<std::uint8_t>(i);
      default:
        if (dtype_.bits == 8) return got<std::int8_t>(i);
        if (dtype_.bits == 32) return got<std::int32_t>(i);
        return static_cast<double>(got<std::int64_t>(i));
    }
  }
  bool same_bits(const elements& other) const {
    return std::memcmp(at(0), other.at(0), static_cast<std::size_t>(count_ * (dtype_.bits / 8))) ==
           0;
  }
  bool borders_kept() const {
    const auto kept = [](const unsigned char* begin, const unsigned char* end) {
      return std::count(begin, end, 0xa5) == end - begin;
    };
    return kept(bytes_.data(), at(0)) && kept(at(count_), bytes_.data() + bytes_.size());
  }
  velo_dtype dtype() const { return dtype_; }
  std::int64_t count() const { return count_; }

 private:
  template <class T>
  void put(std::int64_t i, T value) {
    std::memcpy(at(i), &value, sizeof value);
  }
  template <class T>
  T got(std::int64_t i) const {
    T value;
    std::memcpy(&value, at(i), sizeof value);
    return value;
  }

  velo_dtype dtype_;
  std::int64_t count_;
  std::int64_t first_;
  int base_ = 0;
  std::vector<unsigned char> bytes_;
};

using elements_ptr = std::unique_ptr<elements>;
inline elements_ptr make_elements(velo_dtype dtype, std::int64_t count, int offset = 0) {
  return std::make_unique<elements>(dtype, count, offset);
}

}  // namespace velo::testing
