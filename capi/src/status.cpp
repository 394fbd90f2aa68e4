// Entries of velo/status.h: the error record and the names of codes.
#include "velo/status.h"

#include <cstddef>

#include "capi/src/boundary.hpp"
#include "core/guard.hpp"

using namespace velo;

namespace {

struct code_row {
  velo_status code;
  const char* name;
  const char* meaning;
};

constexpr code_row codes[] = {
    {VELO_OK, "VELO_OK", "success"},
    {VELO_ERR_NULL, "VELO_ERR_NULL", "a required pointer or handle is NULL"},
    {VELO_ERR_HANDLE, "VELO_ERR_HANDLE", "a handle of another kind, or one that was destroyed"},
    {VELO_ERR_STRUCT, "VELO_ERR_STRUCT", "struct_size below the minimum or above 4096"},
    {VELO_ERR_ARGUMENT, "VELO_ERR_ARGUMENT", "a number, string or enumerator out of its range"},
    {VELO_ERR_RANK, "VELO_ERR_RANK", "a tensor with the wrong number of dimensions"},
    {VELO_ERR_SHAPE, "VELO_ERR_SHAPE", "a tensor whose sizes do not agree with the others"},
    {VELO_ERR_DTYPE, "VELO_ERR_DTYPE", "an element type the call does not take"},
    {VELO_ERR_LAYOUT, "VELO_ERR_LAYOUT", "strides or alignment the call does not take"},
    {VELO_ERR_DEVICE, "VELO_ERR_DEVICE", "a tensor on another device than the stream's"},
    {VELO_ERR_OVERLAP, "VELO_ERR_OVERLAP",
     "an output that shares memory with another argument where that is not allowed"},
    {VELO_ERR_NOT_FOUND, "VELO_ERR_NOT_FOUND", "no operator, key, symbol or file of that name"},
    {VELO_ERR_PARSE, "VELO_ERR_PARSE", "malformed text; `got` holds line and column"},
    {VELO_ERR_UNSUPPORTED, "VELO_ERR_UNSUPPORTED",
     "valid, but not offered by this library, processor or build"},
    {VELO_ERR_ABI, "VELO_ERR_ABI", "the caller needs another ABI version than this library has"},
    {VELO_ERR_STATE, "VELO_ERR_STATE",
     "not now: a context used after fork, an event never recorded, a stream that has failed"},
    {VELO_ERR_MEMORY, "VELO_ERR_MEMORY", "an allocation failed"},
    {VELO_ERR_IO, "VELO_ERR_IO", "the operating system refused a file or a library"},
    {VELO_ERR_TIMEOUT, "VELO_ERR_TIMEOUT", "a deadline passed"},
    {VELO_ERR_PEER, "VELO_ERR_PEER", "another rank failed or disagrees; `rank` says which"},
    {VELO_ERR_FOREIGN, "VELO_ERR_FOREIGN", "a host callback, plugin or foreign kernel failed"},
    {VELO_ERR_INTERNAL, "VELO_ERR_INTERNAL", "a fault of velo itself: please report it"},
};

constexpr std::uint32_t least_error_info = offsetof(velo_error_info, function);

// Runs a body whose own failure may not replace the record it is about to show.
template <class F>
velo_status quietly(F&& body) noexcept {
  try {
    body();
    return VELO_OK;
  } catch (...) {
    return core::current_failure().code;
  }
}

}  // namespace

extern "C" {

velo_status velo_last_error(velo_error_info* info) {
  return quietly([&] { capi::write_struct(info, least_error_info, "info", core::last_record()); });
}

velo_status velo_error_text(char* buffer, uint64_t capacity, uint64_t* needed) {
  return quietly([&] {
    char text[1024];
    core::record_text(core::last_record(), text, sizeof text);
    capi::write_text(text, buffer, capacity, needed);
  });
}

velo_status velo_status_describe(velo_status code, const char** name, const char** meaning) {
  return core::guard("velo_status_describe", [&] {
    for (const code_row& row : codes) {
      if (row.code != code) continue;
      if (name != nullptr) *name = row.name;
      if (meaning != nullptr) *meaning = row.meaning;
      return;
    }
    core::fail(VELO_ERR_ARGUMENT, "code", "a status code of velo", core::text("%d", code));
  });
}
}
