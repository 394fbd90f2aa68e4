// Finds the format of a snapshot by its file's ending, and checks and writes the file. The pool
// records the events.
#include "examples/decoder/memory/snapshot.hpp"

#include <exception>

#include "examples/decoder/files/file.hpp"

namespace decoder {
namespace {

// Enough for three steps of a model with hundreds of layers.
constexpr std::uint64_t most_events = 1 << 18;

struct form {
  velo_snapshot_format format;
  std::size_t common;  // bytes with which every such file begins
};

form form_of(const std::string& path) {
  const std::size_t point = path.rfind('.');
  const std::string ending = point == std::string::npos ? "" : path.substr(point);
  if (ending == ".svg") return {VELO_SNAPSHOT_TIMELINE, 100};
  if (ending == ".json") return {VELO_SNAPSHOT_JSON, 13};
  return {VELO_SNAPSHOT_PICKLE, 20};
}

}  // namespace

memory_snapshot::memory_snapshot(const velo::pool& of, const std::string& path)
    : pool_(of), path_(path) {
  const form mine = form_of(path);
  require_replaceable("--memory_snapshot", path,
                      of.snapshot<std::string>(mine.format).substr(0, mine.common),
                      "a snapshot in the form of its ending");
}

void memory_snapshot::begin() {
  pool_.record(most_events);
  recording_ = true;
}

void memory_snapshot::note(const std::string& text) {
  if (recording_) pool_.note(text.c_str());
}

std::string memory_snapshot::finish() {
  if (!recording_) return "";
  recording_ = false;
  try {
    pool_.record(0);
    pool_.save(form_of(path_).format, path_.c_str());
  } catch (const std::exception& failure) {
    return path_ + ": cannot write the snapshot: " + failure.what();
  }
  return "";
}

}  // namespace decoder
