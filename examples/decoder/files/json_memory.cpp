// jansson's allocation functions, replaced by those of C and a flag.
#include "examples/decoder/files/json_memory.hpp"

#include <jansson.h>

#include <cstdlib>
#include <new>
#include <utility>

namespace decoder {
namespace {

thread_local bool has_failed = false;

void* allocate(std::size_t bytes) {
  void* made = std::malloc(bytes);
  if (made == nullptr) has_failed = true;
  return made;
}

}  // namespace

void watch_json_memory() noexcept {
  json_set_alloc_funcs(allocate, std::free);
}

void require_json_memory() {
  if (std::exchange(has_failed, false)) throw std::bad_alloc();
}

}  // namespace decoder
