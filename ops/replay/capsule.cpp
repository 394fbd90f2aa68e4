// The line of JSON, and the bytes after it.
#include "ops/replay/capsule.hpp"

#include <unistd.h>

#include <chrono>
#include <vector>

#include "core/checksum.hpp"
#include "core/gzip_file.hpp"
#include "core/simd/detect.hpp"
#include "core/tensor/overlap.hpp"
#include "core/text/json_writer.hpp"
#include "ops/replay/call_copy.hpp"

namespace velo::ops {
namespace {

using core::json_writer;
using core::text;

struct bytes_of_tensor {
  const char* first;
  std::size_t count;
  text field;
};

bytes_of_tensor bytes_reached(const velo_tensor& t, const text& field) {
  if (core::is_empty(t)) return {nullptr, 0, field};
  return {data<const char>(&t), core::bytes_reached(t, numel(t)), field};
}

void write_sizes(json_writer& to, const char* key, int rank, const std::int64_t* sizes) {
  to.key(key).array();
  for (int i = 0; i < rank; ++i) to.value(sizes[i]);
  to.end();
}

class capsule_line {
 public:
  capsule_line(const recorded_call& call, bool with_data)
      : call_(call), with_data_(with_data), to_(line) {
    to_.object().member("capsule", 1).member("release", VELO_RELEASE);
    to_.member("op", call.spec.name).member("kernel", call.kernel.name);
    to_.member("isa", core::isa_name(call.kernel.isa));
    to_.key("fields").array();
    for (int i = 0; i < call.spec.field_count; ++i) add_field(i);
    to_.end().key("outputs").array();
    for_each_tensor(call.spec, call.after,
                    [&](const velo_tensor& t, int field, std::int64_t index) {
                      if (call.spec.fields[field].output) add_output(t, field, index);
                    });
    to_.end().end();
    line += '\n';
  }

  std::string line;
  std::vector<bytes_of_tensor> data;  // that follow the line

 private:
  void add_field(int i) {
    const field& f = call_.spec.fields[i];
    const args_block::field_value& value = values_of(call_.before)[i];
    switch (f.kind) {
      case field_kind::i64:
      case field_kind::boolean:
      case field_kind::enumeration:
        to_.object().member("name", f.name).member("integer", value.i).end();
        return;
      case field_kind::f64:
        to_.object().member("name", f.name).member("real", value.f).end();
        return;
      default:
        break;
    }
    if (value.pointer == nullptr) return;
    to_.object().member("name", f.name);
    if (f.kind == field_kind::tensor) {
      add_tensor(*value.tensor, core::concat(f.name));
    } else if (f.kind == field_kind::tensors) {
      to_.key("tensors").array();
      for (std::int64_t k = 0; k < value.tensors->count; ++k) {
        to_.object();
        add_tensor(value.tensors->data[k], core::concat(f.name, "[", k, "]"));
        to_.end();
      }
      to_.end();
    } else if (f.kind == field_kind::ints) {
      write_sizes(to_, "ints", static_cast<int>(value.ints->count), value.ints->data);
    } else if (f.kind == field_kind::text) {
      to_.member("text", value.text);
    } else {
      to_.member("handle", f.handle->live());
    }
    to_.end();
  }

  void add_tensor(const velo_tensor& t, const text& name) {
    const bytes_of_tensor bytes = bytes_reached(t, name);
    to_.member("dtype", dtype_name(t.dtype));
    write_sizes(to_, "shape", t.ndim, t.shape);
    if (t.strides != nullptr) write_sizes(to_, "strides", t.ndim, t.strides);
    for (const bytes_of_tensor& earlier : listed_) {
      if (bytes.count == 0 || earlier.first != bytes.first || earlier.count != bytes.count)
        continue;
      to_.member("shares", earlier.field);
      return;
    }
    listed_.push_back(bytes);
    to_.member("bytes", bytes.count).member("crc32", core::checksum(bytes.first, bytes.count));
    to_.member("modulo64", core::first_byte(t) % 64).member("data", with_data_);
    if (with_data_) data.push_back(bytes);
  }

  void add_output(const velo_tensor& t, int field, std::int64_t index) {
    const velo_tensor& other = tensor_of(call_.reference, field, index);
    const bytes_of_tensor kernel = bytes_reached(t, text()), plain = bytes_reached(other, text());
    to_.object().member("name", call_.spec.fields[field].name);
    if (index >= 0) to_.member("index", index);
    to_.member("crc32", core::checksum(kernel.first, kernel.count));
    to_.member("reference_crc32", core::checksum(plain.first, plain.count)).end();
  }

  const recorded_call& call_;
  const bool with_data_;
  json_writer to_;
  std::vector<bytes_of_tensor> listed_;
};

}  // namespace

std::string write_capsule(const std::string& folder, const recorded_call& call, bool with_data) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  const text name = core::concat(call.spec.name, "-", ::getpid(), "-", nanoseconds, ".capsule.gz");
  std::string path = folder + "/" + name.buffer;
  const capsule_line of(call, with_data);
  core::gzip_file file(path.c_str());
  file.write(of.line.data(), of.line.size());
  for (const bytes_of_tensor& bytes : of.data) file.write(bytes.first, bytes.count);
  file.finish();
  return path;
}

}  // namespace velo::ops
