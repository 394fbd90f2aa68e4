// The part of XLA's FFI C layout that the entries read: call frame, buffers, attributes, the
// metadata request, and four functions of the table in the frame.
//
// Written from the published description of the interface (major version 0); offsets are asserted
// here. Every struct names its size first, and a host of another age may have longer ones, so a
// member beyond the first release is read only where the size says that it is there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace velo::adapters::xla {

struct extension {
  std::size_t struct_size;
  std::int32_t type;  // 1: metadata
  extension* next;
};
constexpr std::int32_t extension_metadata = 1;

struct api_version {
  std::size_t struct_size;
  extension* extensions;
  std::int32_t major, minor;
};

struct metadata {
  std::size_t struct_size;
  api_version version;
  std::uint32_t traits;
};
struct metadata_extension {
  extension base;
  metadata* answer;
};

struct error;    // the host's
struct context;  // the host's: one execution

struct error_create_args {
  std::size_t struct_size;
  extension* extensions;
  const char* message;
  std::int32_t code;
};
struct error_destroy_args {
  std::size_t struct_size;
  extension* extensions;
  error* destroyed;
};
struct schedule_args {
  std::size_t struct_size;
  extension* extensions;
  context* ctx;
  void (*task)(void* data);
  void* data;
};
struct thread_count_args {
  std::size_t struct_size;
  extension* extensions;
  context* ctx;
  std::int64_t* count;
};

struct api {
  std::size_t struct_size;
  extension* extensions;
  api_version version;
  const void* internal;
  error* (*error_create)(error_create_args*);
  void* error_get_message;
  void (*error_destroy)(error_destroy_args*);
  void* handler_register;
  void* stream_get;
  void* type_register;
  void* execution_context_get;
  void* state_set;
  void* state_get;
  void* device_memory_allocate;
  void* device_memory_free;
  error* (*thread_pool_schedule)(schedule_args*);
  error* (*thread_pool_count)(thread_count_args*);  // from minor version 2 on
};

enum data_type : std::int32_t {
  type_pred = 1,
  type_s8 = 2,
  type_s16 = 3,
  type_s32 = 4,
  type_s64 = 5,
  type_u8 = 6,
  type_u16 = 7,
  type_u32 = 8,
  type_u64 = 9,
  type_f16 = 10,
  type_f32 = 11,
  type_f64 = 12,
  type_bf16 = 16
};

struct buffer {
  std::size_t struct_size;
  extension* extensions;
  std::int32_t dtype;
  void* data;
  std::int64_t rank;
  std::int64_t* dims;
};

struct byte_span {
  const char* text;
  std::size_t length;
};
struct scalar {
  std::int32_t dtype;
  void* value;
};
struct array {
  std::int32_t dtype;
  std::size_t size;
  void* data;
};

// Arguments, and results in the same form: type 1 is a buffer.
struct buffer_list {
  std::size_t struct_size;
  extension* extensions;
  std::int64_t size;
  std::int32_t* types;
  void** items;
};
constexpr std::int32_t item_buffer = 1;

enum attribute_type : std::int32_t {
  attribute_array = 1,
  attribute_dictionary = 2,
  attribute_scalar = 3,
  attribute_string = 4
};
struct attribute_list {
  std::size_t struct_size;
  extension* extensions;
  std::int64_t size;
  std::int32_t* types;
  byte_span** names;
  void** items;
};

constexpr std::int32_t stage_execute = 3;

struct call_frame {
  std::size_t struct_size;
  extension* extensions;
  const xla::api* api;
  context* ctx;
  std::int32_t stage;
  buffer_list args, rets;
  attribute_list attrs;
};

static_assert(sizeof(extension) == 24 && offsetof(extension, next) == 16);
static_assert(sizeof(api_version) == 24 && offsetof(metadata, traits) == 32);
static_assert(offsetof(metadata_extension, answer) == 24);
static_assert(offsetof(api, error_create) == 48 && offsetof(api, thread_pool_schedule) == 136);
static_assert(sizeof(buffer) == 48 && offsetof(buffer, dims) == 40);
static_assert(offsetof(call_frame, args) == 40 && offsetof(call_frame, attrs) == 120);
static_assert(sizeof(call_frame) == 168 && sizeof(array) == 24);

}  // namespace velo::adapters::xla
