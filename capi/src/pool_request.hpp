// Reads a request of the pool, for every entry that allocates as a pool does.
//
// Reading is part of the cost of an allocation, so a struct of this release is read in place.
#pragma once

#include <algorithm>

#include "capi/src/boundary.hpp"
#include "memory/pool/pool.hpp"

namespace velo::capi {

inline constexpr std::uint32_t request_size = 40;  // of ABI 1.0; later ones are longer
inline constexpr std::uint64_t most_alignment = std::uint64_t{2} << 20;
static_assert(sizeof(velo_pool_request) >= request_size);

[[noreturn]] __attribute__((cold, noinline)) inline void refuse_range(std::int64_t value, int last,
                                                                      const char* argument) {
  core::fail(VELO_ERR_ARGUMENT, argument, core::text("0 to %d", last), core::number(value));
}

inline void require_range(std::int32_t value, int last, const char* argument) {
  if (value < 0 || value > last) refuse_range(value, last, argument);
}

[[noreturn]] __attribute__((cold, noinline)) inline void refuse_alignment(std::uint64_t alignment) {
  core::fail(VELO_ERR_ARGUMENT, "request.alignment", "a power of two up to 2 MiB, or 0",
             core::number(alignment));
}

__attribute__((always_inline)) inline memory::pool_request checked_request(
    const velo_pool_request& r) {
  require_range(r.lifetime, VELO_LIFETIME_LONG, "request.lifetime");
  require_range(r.purpose, VELO_PURPOSE_INPUT, "request.purpose");
  require_range(r.zero, 1, "request.zero");
  if ((r.alignment & (r.alignment - 1)) != 0 || r.alignment > most_alignment)
    refuse_alignment(r.alignment);
  memory::pool_request checked;
  checked.bytes = r.bytes;
  checked.alignment = std::max(r.alignment, memory::unit);
  checked.stream =
      memory::queued_stream(r.stream, "request.stream") != nullptr ? r.stream : nullptr;
  checked.purpose = static_cast<std::uint8_t>(r.purpose);
  checked.lifetime = static_cast<std::uint8_t>(r.lifetime);
  checked.zero = r.zero != 0;
  return checked;
}

__attribute__((noinline)) inline memory::pool_request read_completed(
    const velo_pool_request* given) {
  return checked_request(read_struct(given, request_size, "request", {}));
}

// A struct of this release needs no defaults and is read in place.
inline memory::pool_request read_request(const velo_pool_request* given) {
  if (given != nullptr && given->struct_size == sizeof *given) return checked_request(*given);
  return read_completed(given);
}

// The allocate function of a velo_allocator over a pool or a plan. user: the handle, so that calls
// after its object's end are refused.
template <class Handle, velo_status (*Allocate)(Handle, const velo_pool_request*, void**)>
void* allocate_for_context(void* user, std::uint64_t bytes, std::uint64_t alignment,
                           const velo_device*, void* stream) {
  velo_pool_request request = VELO_POOL_REQUEST_INIT;
  request.bytes = bytes;
  request.alignment = alignment;
  request.stream = static_cast<velo_stream>(stream);
  request.purpose = VELO_PURPOSE_WORKSPACE;
  void* memory = nullptr;
  Allocate(static_cast<Handle>(user), &request, &memory);
  return memory;
}

}  // namespace velo::capi
