// Functions of the table that this build has no body for: each answers VELO_ERR_UNSUPPORTED, so
// that no slot is ever NULL. They are weak: a body anywhere in the library takes their place.
#include "core/failure.hpp"
#include "core/guard.hpp"
#include "velo/velo.h"

namespace {

velo_status absent(const char* function) {
  return velo::core::guard(function, [] {
    velo::core::fail(VELO_ERR_UNSUPPORTED, "", "a function this build has", "one it has not");
  });
}

void absent_destroy(const char* function, const void* handle) {
  velo::core::guard(function, [&] {
    if (handle != nullptr) velo::core::fail(VELO_ERR_HANDLE, "", "NULL", "what cannot exist here");
  });
}

}  // namespace

extern "C" {

__attribute__((weak)) velo_status velo_pack_create(velo_context, const velo_pack_desc*,
                                                   velo_pack*) {
  return absent("velo_pack_create");
}
__attribute__((weak)) void velo_pack_destroy(velo_pack handle) {
  absent_destroy("velo_pack_destroy", handle);
}
__attribute__((weak)) velo_status velo_pack_update(velo_stream, velo_pack, const velo_tensor*) {
  return absent("velo_pack_update");
}
__attribute__((weak)) velo_status velo_kernel_register(velo_context, const velo_kernel_desc*,
                                                       velo_kernel*) {
  return absent("velo_kernel_register");
}
__attribute__((weak)) void velo_kernel_destroy(velo_kernel handle) {
  absent_destroy("velo_kernel_destroy", handle);
}
__attribute__((weak)) velo_status velo_plugin_load(velo_context, const char*) {
  return absent("velo_plugin_load");
}
__attribute__((weak)) velo_status velo_closure_create(velo_stream, const char*, const char*, void**,
                                                      velo_closure*) {
  return absent("velo_closure_create");
}
__attribute__((weak)) void velo_closure_destroy(velo_closure handle) {
  absent_destroy("velo_closure_destroy", handle);
}
}
