// Writes the initial weights, the first gradients and the symbols of each step to their files.
#include "examples/decoder/checkpoint/parity_trace.hpp"

#include <filesystem>

#include "examples/decoder/failure.hpp"

namespace decoder {
namespace {

void write(const std::string& path, const std::vector<named_tensor>& tensors) {
  durable_file file(path);
  write_safetensors(file, tensors, {{"format", "pt"}});
  file.finish();
}

}  // namespace

parity_trace::parity_trace(const std::string& directory) : directory_(directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) fail("%s: cannot create: %s", directory.c_str(), error.message().c_str());
  symbols_ = std::make_unique<durable_file>(fresh("symbols.i32"));
}

std::string parity_trace::fresh(const char* name) const {
  std::string path = directory_ + "/" + name;
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return path;
}

void parity_trace::initial(const weights& all) {
  write(fresh("weights.safetensors"), all.files());
}

void parity_trace::first_gradients(const weights& all) {
  write(fresh("gradients.safetensors"), all.gradient_files());
}

void parity_trace::symbols(const std::int32_t* inputs, const std::int32_t* targets,
                           std::int64_t count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(std::int32_t);
  symbols_->write(inputs, bytes);
  symbols_->write(targets, bytes);
}

}  // namespace decoder
