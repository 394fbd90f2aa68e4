// The work that is timed: pairs of an allocation and a free, a random mix, and blocks that one
// thread allocates and another frees. Templates over how an allocator is called, so that nothing of
// the bench stands between; every one is called by a pointer to its function, as programs call a
// library that they load.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "bench/harness/require.hpp"
#include "bench/memory/partner.hpp"
#include "bench/memory/peers.hpp"

namespace velo::bench {

// velo as its callers call it: a request made once, of which the size changes.
struct pool_calls {
  velo_pool pool;
  velo_pool_request request = VELO_POOL_REQUEST_INIT;
  decltype(&velo_pool_allocate) allocate_ = &velo_pool_allocate;
  decltype(&velo_pool_free) free_ = &velo_pool_free;

  void* allocate(std::size_t bytes) {
    void* memory = nullptr;
    request.bytes = bytes;
    require(allocate_(pool, &request, &memory));
    return memory;
  }
  void free(void* memory, std::size_t bytes) { require(free_(pool, memory, bytes, nullptr)); }
};

struct peer_calls {
  void* (*allocate_)(std::size_t bytes);
  void (*free_)(void* memory);

  void* allocate(std::size_t bytes) { return allocate_(bytes); }
  void free(void* memory, std::size_t) { free_(memory); }
};

// An allocator behind plain functions (velo_allocator), an adaptor for one.
struct allocator_calls {
  velo_allocator of;
  velo_device cpu = {VELO_DEVICE_CPU, 0};

  void* allocate(std::size_t bytes) { return of.allocate(of.user, bytes, 64, &cpu, nullptr); }
  void free(void* memory, std::size_t bytes) {
    of.deallocate(of.user, memory, bytes, &cpu, nullptr);
  }
};

template <class Calls>
void run_pairs(Calls calls, std::size_t bytes, bool touched, int count) {
  for (int i = 0; i < count; ++i) {
    auto* memory = static_cast<volatile char*>(calls.allocate(bytes));
    if (touched)
      for (std::size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
    calls.free(const_cast<char*>(memory), bytes);
  }
}

// 256 live blocks of log-uniform sizes from 512 B to 512 B * 2^powers, of which one after the
// other, at random, is freed and another size allocated, of which the first byte may be written;
// one object for each thread.
template <class Calls>
class random_mix {
 public:
  random_mix(Calls calls, unsigned seed, int powers, bool writes) : calls_(calls), writes_(writes) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<> exponent(0, powers);
    for (int i = 0; i < steps; ++i) {
      sizes_.push_back(static_cast<std::size_t>(512 * std::exp2(exponent(random))));
      places_.push_back(static_cast<std::size_t>(random() % live));
    }
    for (std::size_t i = 0; i < live; ++i)
      blocks_.push_back({calls_.allocate(sizes_[i]), sizes_[i]});
  }
  ~random_mix() {
    for (const block& b : blocks_) calls_.free(b.memory, b.bytes);
  }
  random_mix(const random_mix&) = delete;
  random_mix& operator=(const random_mix&) = delete;

  void run(int count) {
    for (int i = 0; i < count; ++i) {
      at_ = (at_ + 1) % steps;
      block& b = blocks_[places_[at_]];
      calls_.free(b.memory, b.bytes);
      b.bytes = sizes_[at_];
      b.memory = calls_.allocate(b.bytes);
      if (writes_) *static_cast<volatile char*>(b.memory) = 1;
    }
  }

 private:
  static constexpr std::size_t live = 256;
  static constexpr int steps = 1 << 16;
  struct block {
    void* memory;
    std::size_t bytes;
  };

  Calls calls_;
  const bool writes_;
  std::vector<std::size_t> sizes_, places_;
  std::vector<block> blocks_;
  std::size_t at_ = 0;
};

// Blocks that the other thread allocates while this one frees those of the turn before.
template <class Calls>
class relay {
 public:
  relay(Calls calls, partner& other, std::size_t bytes)
      : calls_(calls), other_(other), bytes_(bytes), ready_(batch), next_(batch) {
    for (void*& b : ready_) b = calls_.allocate(bytes_);
  }
  ~relay() {
    for (void* b : ready_) calls_.free(b, bytes_);
  }
  relay(const relay&) = delete;
  relay& operator=(const relay&) = delete;

  static constexpr std::size_t batch = 256;

  void run() {
    other_.start([this, calls = calls_]() mutable {
      for (void*& b : next_) b = calls.allocate(bytes_);
    });
    for (void* b : ready_) calls_.free(b, bytes_);
    other_.wait();
    ready_.swap(next_);
  }

 private:
  Calls calls_;
  partner& other_;
  std::size_t bytes_;
  std::vector<void*> ready_, next_;
};

}  // namespace velo::bench
