// The tensors of one rank for a row of bench_comm, which every contender reads and writes in its
// turn: what goes in depends on rank and round, and of what comes out all is compared. Elements are
// small whole numbers, whose sums are exact in bfloat16, too. Cost of a check: some ns an element,
// untimed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "bench/harness/dtype.hpp"
#include "bench/harness/require.hpp"
#include "velo/velo.h"

namespace velo::bench {

enum class op { barrier, all_reduce, reduce_scatter, all_gather, all_to_all, broadcast };
inline constexpr const char* op_names[] = {"barrier",    "all_reduce", "reduce_scatter",
                                           "all_gather", "all_to_all", "broadcast"};

// Bytes of the process, or of a pool.
class memory {
 public:
  memory(std::size_t bytes, velo_pool pool) : pool_(pool), bytes_(bytes) {
    if (pool == nullptr) {
      own_.resize(bytes);
    } else {
      velo_pool_request request = VELO_POOL_REQUEST_INIT;
      request.bytes = bytes;
      request.zero = 1;
      require(velo_pool_allocate(pool, &request, &block_));
    }
  }
  ~memory() {
    if (pool_ != nullptr) velo_pool_free(pool_, block_, bytes_, nullptr);
  }
  memory(const memory&) = delete;

  unsigned char* data() {
    return pool_ == nullptr ? own_.data() : static_cast<unsigned char*>(block_);
  }
  const unsigned char* data() const {
    return pool_ == nullptr ? own_.data() : static_cast<const unsigned char*>(block_);
  }
  std::size_t size() const { return bytes_; }

 private:
  const velo_pool pool_;
  const std::size_t bytes_;
  std::vector<unsigned char> own_;
  void* block_ = nullptr;
};

// Bytes are those of the whole: of what is reduced, gathered or given away.
class tensors {
 public:
  tensors(op what, dtype type, std::int64_t bytes, int rank, int ranks, velo_pool pool = nullptr)
      : what_(what),
        type_(type),
        rank_(rank),
        ranks_(ranks),
        whole_(whole_of(what, type, bytes, ranks)),
        part_(whole_ / ranks),
        in_(static_cast<std::size_t>(whole_ * size()), pool),
        out_(in_.size(), pool) {}
  std::int64_t size() const { return type_ == dtype::bf16 ? 2 : 4; }
  std::int64_t in_count() const { return what_ == op::all_gather ? part_ : whole_; }
  std::int64_t out_count() const { return what_ == op::reduce_scatter ? part_ : whole_; }
  std::int64_t part() const { return part_; }
  void* in() { return in_.data(); }
  void* out() { return what_ == op::broadcast ? in_.data() : out_.data(); }
  dtype type() const { return type_; }
  op what() const { return what_; }
  std::int64_t whole() const { return whole_; }

  void write(int round) {
    for (std::int64_t i = 0; i < in_count(); ++i) put(in_, i, value(rank_, i, round));
    if (what_ != op::broadcast) std::memset(out_.data(), 0xff, out_.size());
  }
  bool is_right(int round) const {
    if (what_ == op::barrier) return true;
    std::int64_t wrong = 0;
    const memory& got = what_ == op::broadcast ? in_ : out_;
    for (std::int64_t i = 0; i < out_count(); ++i) {
      int expected = 0;
      const std::int64_t at = what_ == op::reduce_scatter ? rank_ * part_ + i : i;
      if (what_ == op::all_reduce || what_ == op::reduce_scatter)
        for (int r = 0; r < ranks_; ++r) expected += value(r, at, round);
      if (what_ == op::all_gather) expected = value(static_cast<int>(i / part_), i % part_, round);
      if (what_ == op::all_to_all)
        expected = value(static_cast<int>(i / part_), rank_ * part_ + i % part_, round);
      if (what_ == op::broadcast) expected = value(0, i, round);
      wrong += get(got, i) != static_cast<float>(expected);
    }
    return wrong == 0;
  }

 private:
  static std::int64_t whole_of(op what, dtype type, std::int64_t bytes, int ranks) {
    const std::int64_t whole = std::max<std::int64_t>(bytes / (type == dtype::bf16 ? 2 : 4), 1);
    if (what == op::all_reduce || what == op::broadcast) return whole;
    return std::max<std::int64_t>(whole / ranks, 1) * ranks;
  }
  static int value(int rank, std::int64_t i, int round) {
    return static_cast<int>((i + 3 * rank + round) & 15);
  }
  void put(memory& to, std::int64_t i, int value) const {
    const auto number = static_cast<float>(value);
    std::uint32_t word;
    std::memcpy(&word, &number, 4);
    if (type_ == dtype::bf16) word >>= 16;
    std::memcpy(to.data() + i * size(), &word, static_cast<std::size_t>(size()));
  }
  float get(const memory& from, std::int64_t i) const {
    std::uint32_t word = 0;
    std::memcpy(&word, from.data() + i * size(), static_cast<std::size_t>(size()));
    if (type_ == dtype::bf16) word <<= 16;
    float number;
    std::memcpy(&number, &word, 4);
    return number;
  }

  const op what_;
  const dtype type_;
  const int rank_, ranks_;
  const std::int64_t whole_, part_;
  memory in_, out_;
};

}  // namespace velo::bench
