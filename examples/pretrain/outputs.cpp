// The checks, and both pictures.
#include "examples/pretrain/outputs.hpp"

#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>
#include <vector>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/replaced_file.hpp"
#include "examples/decoder/report/profile_picture.hpp"
#include "examples/pretrain/report.hpp"
#include "tools/velo/new_file.hpp"

namespace pretrain {
namespace {

bool is_picture(const std::string& path) {
  return path.size() > 4 && path.compare(path.size() - 4, 4, ".svg") == 0;
}

void write_anew(const std::string& path, const std::string& text) {
  try {
    command::write_new_file(path, text);
  } catch (const std::runtime_error& reason) {
    fail("%s: cannot write: %s", path.c_str(), reason.what());
  }
}

void make_directory(const char* flag, const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (!std::filesystem::is_directory(path))
    fail("%s: %s: cannot create the directory: %s", flag, path.c_str(),
         error ? error.message().c_str() : "it is something else");
  if (::access(path.c_str(), W_OK) != 0)
    fail("%s: %s: cannot write there: %s", flag, path.c_str(), std::strerror(errno));
}

std::string trace_of(const std::string& events) {
  return "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n" + events + "\n]}\n";
}

// A shorter run would leave an older one's last steps behind its own.
void require_no_recording(const std::string& directory) {
  for (const auto& each : std::filesystem::directory_iterator(directory))
    if (each.path().filename().string().rfind("step-", 0) == 0)
      fail("--routing_record: %s has a recording already: %s", directory.c_str(),
           each.path().filename().c_str());
}

}  // namespace

void require_outputs(const out_folder& out, const settings& values, bool resumes) {
  if (!values.run.log.empty()) out.require_apart("--log", values.run.log);
  if (!values.memory.memory_trace.empty())
    out.require_apart("--memory_trace", values.memory.memory_trace);
  if (!values.memory.memory_snapshot.empty())
    out.require_apart("--memory_snapshot", values.memory.memory_snapshot);
  if (!values.run.gradients.empty()) {
    out.require_apart("--gradients", values.run.gradients);
    require_replaceable_tensors(values.run.gradients);
  }
  const std::pair<const char*, const std::string&> directories[] = {
      {"--profile", values.run.profile}, {"--routing_record", values.run.routing_record}};
  for (const auto& [flag, path] : directories) {
    if (path.empty()) continue;
    out.require_apart(flag, path);
    make_directory(flag, path);
  }
  if (!values.run.routing_record.empty() && !resumes)
    require_no_recording(values.run.routing_record);
  const std::string& experts = values.run.expert_picture;
  if (!experts.empty()) {
    out.require_apart("--expert_picture", experts);
    require_replaceable("--expert_picture", experts, "<svg xmlns=", "a picture of one");
  }
  const std::string& timeline = values.parallel.timeline;
  if (timeline.empty()) return;
  out.require_apart("--timeline", timeline);
  const bool picture = is_picture(timeline);
  require_replaceable("--timeline", timeline, picture ? "<svg xmlns=" : "{\"displayTimeUnit\"",
                      picture ? "a picture of one" : "a trace");
}

void write_timeline(const std::string& path, const velo::timeline& measured) {
  const velo_timeline_format format = is_picture(path) ? VELO_TIMELINE_SVG : VELO_TIMELINE_TRACE;
  write_anew(path, measured.write<std::string>(format));
}

void write_expert_picture(const std::string& path, const expert_picture& of,
                          const std::string& title) {
  write_anew(path, of.svg(title));
}

void write_profiles(const std::string& directory, const std::vector<std::string>& events) {
  std::string all;
  std::vector<profile_slice> slices;
  for (std::size_t rank = 0; rank < events.size(); ++rank) {
    if (events[rank].empty()) continue;
    write_anew(directory + "/rank" + std::to_string(rank) + ".json", trace_of(events[rank]));
    all += (all.empty() ? "" : ",\n") + events[rank];
    for (profile_slice& each : slices_of(events[rank])) slices.push_back(std::move(each));
  }
  write_anew(directory + "/all.json", trace_of(all));
  write_anew(directory + "/all.svg", svg(slices));
}

void write_loss_curve(const std::string& path, const settings& values, const trainer& of,
                      const std::vector<loss_point>& validations, double zlib) {
  loss_curve curve;
  char line[160];
  curve.title = parameters_of(of) + ", " + values.model.dtype;
  std::snprintf(line, sizeof line,
                "validation %.2f bits/byte after %lld steps of %lld tokens; zlib -9 needs %.2f",
                validations.back().bits, static_cast<long long>(values.schedule.steps),
                static_cast<long long>(values.data.step_tokens()), zlib);
  curve.subtitle = line;
  for (const float nats : of.losses())
    curve.training.push_back(static_cast<double>(nats) / std::log(2.0));
  curve.validation = validations;
  curve.zlib = zlib;
  write_anew(path, svg(curve));
}

}  // namespace pretrain
