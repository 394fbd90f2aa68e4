// The two bodies: words in, a call of the pool, a failure in the thread's record.
#include "memory/plain_functions.hpp"

#include "core/guard.hpp"
#include "memory/pool.hpp"

namespace velo::memory {
namespace {

core::signature shape_of(core::passing result, std::initializer_list<core::passing> parameters) {
  core::signature shape;
  shape.result = result;
  for (const core::passing how : parameters) shape.parameters[shape.count++] = how;
  return shape;
}

core::word allocate(void* of, const core::word* words) noexcept {
  core::word result{};
  result.pointer = nullptr;
  core::guard("allocate", [&] {
    if (words[0].i64 < 0) core::fail(VELO_ERR_ARGUMENT, "bytes", "0 or more", "a negative number");
    wanted what;
    what.bytes = words[0].u64;
    what.alignment = unit;
    const auto stream = static_cast<velo_stream>(words[2].pointer);
    if (queued_stream(stream, "stream") != nullptr) what.on = stream;
    result.pointer = static_cast<pool*>(of)->allocate(what);
  });
  return result;
}

core::word deallocate(void* of, const core::word* words) noexcept {
  core::guard("deallocate", [&] {
    if (words[0].pointer == nullptr) return;
    static_cast<pool*>(of)->free(words[0].pointer, words[1].u64,
                                 static_cast<velo_stream>(words[3].pointer));
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
