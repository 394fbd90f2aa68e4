// The bodies of the two functions: arguments as words, a call of the pool, failures recorded.
#include "memory/pool/plain_functions.hpp"

#include "core/handle/guard.hpp"
#include "memory/pool/pool.hpp"

namespace velo::memory {
namespace {

core::signature shape_of(core::passing result, std::initializer_list<core::passing> parameters) {
  core::signature shape;
  shape.result = result;
  for (const core::passing how : parameters) shape.parameters[shape.count++] = how;
  return shape;
}

// Checks the pool's handle as the other entries do; a child of a fork is refused.
pool& pool_of(void* of) {
  auto& found = core::resolve<pool>(core::handle_of(*static_cast<pool*>(of)), "pool");
  found.require_not_logging();
  return found;
}

core::word allocate(void* of, const core::word* words) noexcept {
  core::word result{};
  result.pointer = nullptr;
  core::guard("allocate", [&] {
    pool& from = pool_of(of);
    if (from.is_closed()) core::fail(VELO_ERR_HANDLE, "pool", "a pool", "a destroyed pool");
    if (words[0].i64 < 0) core::fail(VELO_ERR_ARGUMENT, "bytes", "0 or more", "a negative number");
    pool_request request;
    request.bytes = words[0].u64;
    request.alignment = unit;
    const auto stream = static_cast<velo_stream>(words[2].pointer);
    if (queued_stream(stream, "stream") != nullptr) request.stream = stream;
    result.pointer = from.allocate(request);
  });
  return result;
}

// The free of a closed pool's last block destroys the pool and this function object. Neither may be
// touched afterwards.
core::word deallocate(void* of, const core::word* words) noexcept {
  core::guard("deallocate", [&] {
    if (words[0].pointer == nullptr) return;
    pool& from = pool_of(of);
    if (from.free(words[0].pointer, words[1].u64, static_cast<velo_stream>(words[3].pointer)))
      core::destroy_handle<pool>(core::handle_of(from), "pool");
  });
  return core::word{};
}

using core::passing;

}  // namespace

plain_functions::plain_functions(pool& of)
    : allocate_(shape_of(passing::pointer, {passing::i64, passing::i32, passing::pointer}),
                &memory::allocate, &of, true),
      deallocate_(shape_of(passing::nothing,
                           {passing::pointer, passing::i64, passing::i32, passing::pointer}),
                  &memory::deallocate, &of, true) {}

}  // namespace velo::memory
