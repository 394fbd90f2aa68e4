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
#include <thread>
#include <vector>

#include "core/simd/scalar.hpp"
#include "tests/context.hpp"
#include "tests/record.hpp"
#include "tests/tensors.hpp"
#include "velo/velo.h"

namespace velo::testing {

inline velo_group_desc group_desc(std::int64_t timeout_ms = 20000) {
  velo_group_desc desc = VELO_GROUP_DESC_INIT;
  desc.timeout_ns = timeout_ms * 1000000;
  return desc;
}

class local_ranks {
 public:
  explicit local_ranks(int count, const velo_group_desc& desc = group_desc(), int threads = 1) {
    velo_context_desc one = VELO_CONTEXT_DESC_INIT;
    one.threads = threads;
    std::vector<velo_context> handles;
    for (int i = 0; i < count; ++i) {
      contexts_.push_back(std::make_unique<live_context>(one));
      handles.push_back(*contexts_.back());
      streams_.push_back(contexts_.back()->inline_stream());
    }
    groups_.resize(static_cast<std::size_t>(count));
    REQUIRE(velo_group_create_local(handles.data(), count, &desc, groups_.data()) == VELO_OK);
  }
  ~local_ranks() {
    for (const velo_group one : groups_) velo_group_destroy(one);
  }

  int size() const { return static_cast<int>(groups_.size()); }
  velo_group group(int rank) const { return groups_[static_cast<std::size_t>(rank)]; }
  velo_stream stream(int rank) const { return streams_[static_cast<std::size_t>(rank)]; }
  const live_context& context(int rank) const { return *contexts_[static_cast<std::size_t>(rank)]; }

  // body(rank) on a thread for each rank, all at the same time; returns their records.
  std::vector<call_record> run(const std::function<velo_status(int)>& body) const {
    std::vector<call_record> all(groups_.size());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size(); ++rank)
      threads.emplace_back(
          [&, rank] { all[static_cast<std::size_t>(rank)] = record_of(body(rank)); });
    for (std::thread& one : threads) one.join();
    return all;
  }
  void require(const std::function<velo_status(int)>& body) const {
    for (const call_record& one : run(body)) {
      INFO(one.argument << ": expected " << one.expected << ", got " << one.got << " "
                        << one.cause);
      REQUIRE(one.code == VELO_OK);
    }
  }

 private:
  std::vector<std::unique_ptr<live_context>> contexts_;
  std::vector<velo_stream> streams_;
  std::vector<velo_group> groups_;
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
