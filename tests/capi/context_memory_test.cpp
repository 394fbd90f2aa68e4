// Every allocation of velo_context_create failing in turn: a status each time, and nothing lost.
//
// This file replaces operator new for the whole test program, so that the n-th allocation of one
// thread can be made to fail; what a host's allocator is asked for is failed in the same way.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "tests/context.hpp"
#include "tests/host_memory.hpp"
#include "tests/structs.hpp"
#include "tests/tensors.hpp"
#include "velo/context.h"
#include "velo/ops_norm.h"
#include "velo/stream.h"

using velo::testing::context_desc;

namespace {

thread_local int remaining = -1;  // allocations until the one that fails; -1 = none fails
thread_local std::int64_t balance = 0, made = 0;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (remaining == 0) return nullptr;
  if (remaining > 0) --remaining;
  ++balance;
  ++made;
  const std::size_t rounded = (bytes + alignment) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded);
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

__attribute__((noinline)) void give(void* memory) noexcept {
  if (memory == nullptr) return;
  --balance;
  std::free(memory);
}

constexpr std::size_t plain = alignof(std::max_align_t);

}  // namespace

// Not inlined, so that what this file calls is what everybody calls, valgrind's replacement
// included.
__attribute__((noinline)) void* operator new(std::size_t bytes) {
  return allocate_or_throw(bytes, plain);
}
void* operator new[](std::size_t bytes) {
  return allocate_or_throw(bytes, plain);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, plain);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, plain);
}
__attribute__((noinline)) void operator delete(void* memory) noexcept {
  give(memory);
}
void operator delete[](void* memory) noexcept {
  give(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  give(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  give(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  give(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  give(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  give(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  give(memory);
}

namespace {

// Not so under valgrind, which puts its own operator new over this one.
bool allocations_are_ours() {
  const std::int64_t before = balance;
  void* volatile memory = ::operator new(8);
  const bool ours = balance != before;
  ::operator delete(memory);
  return ours;
}

int lowest_free_descriptor() {
  const int found = dup(STDERR_FILENO);
  close(found);
  return found;
}

}  // namespace

TEST_CASE("every allocation of a creation failing in turn is VELO_ERR_MEMORY and loses nothing") {
  if (!allocations_are_ours()) return;
  { const velo::testing::live_context warm; }  // the slabs, kept for ever, exist from here on
  velo::testing::host_memory host;
  const velo_allocator allocator = host.allocator();
  velo_context_desc desc = context_desc(3, &allocator);
  desc.config_json = R"({"level": 1, "kernel.fusion_attention_backward": "reference"})";
  const int descriptor = lowest_free_descriptor();
  int failures = 0;
  bool created = false;
  for (int n = 0; n < 500 && !created; ++n) {
    velo_context context = nullptr;
    const std::int64_t before = balance;
    remaining = n;
    const velo_status status = velo_context_create(&desc, &context);
    remaining = -1;
    created = status == VELO_OK;
    if (created) {
      velo_context_destroy(context);
    } else {
      ++failures;
      REQUIRE(status == VELO_ERR_MEMORY);
      REQUIRE(context == nullptr);
    }
    REQUIRE(balance == before);
    REQUIRE(host.bytes == 0);
    REQUIRE(lowest_free_descriptor() == descriptor);
  }
  CHECK(created);
  CHECK(failures > 10);
}

TEST_CASE("every request to the host's allocator failing in turn is VELO_ERR_MEMORY too") {
  velo::testing::host_memory host;
  const velo_allocator allocator = host.allocator();
  const velo_context_desc desc = context_desc(2, &allocator);
  velo_context context = nullptr;
  int failures = 0;
  velo_status status = VELO_ERR_MEMORY;
  for (; status != VELO_OK && failures < 100; ++failures) {
    host.remaining = failures;
    status = velo_context_create(&desc, &context);
    if (status != VELO_OK) REQUIRE(status == VELO_ERR_MEMORY);
    if (status != VELO_OK) REQUIRE(host.bytes == 0);
  }
  REQUIRE(status == VELO_OK);
  CHECK(failures > 1);
  host.remaining = -1;
  velo_context_stats stats{};
  stats.struct_size = sizeof stats;
  REQUIRE(velo_context_get_stats(context, &stats) == VELO_OK);
  CHECK(static_cast<std::int64_t>(stats.bytes_allocated) == host.bytes);
  velo_context_destroy(context);
  CHECK(host.bytes == 0);
}

TEST_CASE("every allocation of a stream and an event failing in turn loses nothing") {
  const velo::testing::live_context context;
  velo_stream_destroy(context.new_stream());
  velo_event_destroy(context.new_event());
  const velo_stream queue = context.new_stream();
  for (int n = 0; n < 50; ++n) {
    velo_event event = nullptr;
    remaining = n;
    velo_status status = velo_event_create(context, &event);
    if (status == VELO_OK) status = velo_event_record(event, queue);
    if (status == VELO_OK) status = velo_stream_wait(queue, event);
    remaining = -1;
    REQUIRE((status == VELO_OK || status == VELO_ERR_MEMORY));
    REQUIRE(velo_stream_synchronize(queue) == VELO_OK);
    velo_event_destroy(event);
    if (status == VELO_OK) break;
    REQUIRE(n < 49);
  }
}

TEST_CASE("a repeated inline call allocates nothing") {
  if (!allocations_are_ours()) return;
  const velo::testing::live_context context(R"({"threads": 2})");
  const velo_stream stream = context.inline_stream();
  std::vector<float> x(64 * 96, 1.0f), gamma(96, 1.0f), y(x.size()), grad(x.size(), 1.0f),
      grad_x(x.size()), grad_gamma(96), rstd(64);
  const std::int64_t shape[] = {64, 96};
  const auto matrix = [&](std::vector<float>& data) {
    return velo::testing::view_of(data.data(), velo::testing::f32, shape);
  };
  const auto row = [&](std::vector<float>& data) {
    return velo::testing::view_of(data.data(), velo::testing::f32, shape[1]);
  };
  const velo_tensor x_view = matrix(x), y_view = matrix(y), gamma_view = row(gamma),
                    grad_view = matrix(grad), grad_x_view = matrix(grad_x),
                    grad_gamma_view = row(grad_gamma);
  const std::int64_t rows[] = {64, 1};
  velo_tensor rstd_view = matrix(rstd);
  rstd_view.shape = rows;
  velo_rms_norm_args forward = VELO_RMS_NORM_ARGS_INIT;
  forward.x = &x_view;
  forward.gamma = &gamma_view;
  forward.y = &y_view;
  forward.rstd = &rstd_view;
  velo_rms_norm_backward_args backward = VELO_RMS_NORM_BACKWARD_ARGS_INIT;
  backward.dy = &grad_view;
  backward.x = &x_view;
  backward.gamma = &gamma_view;
  backward.rstd = &rstd_view;
  backward.dx = &grad_x_view;
  backward.dgamma = &grad_gamma_view;
  std::int64_t heap = 0;
  std::uint64_t host = 0;
  for (int round = 0; round < 10; ++round) {
    if (round == 2) {
      heap = made;
      host = context.stats().allocations;
    }
    REQUIRE(velo_rms_norm(stream, &forward) == VELO_OK);
    REQUIRE(velo_rms_norm_backward(stream, &backward) == VELO_OK);
  }
  CHECK(context.stats().allocations == host);
  CHECK(made - heap == 0);
}
