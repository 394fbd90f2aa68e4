// Requests and answers as JSON, a line each.
#include "bench/peers/torch_peer.hpp"

#include <jansson.h>

namespace velo::bench {

torch_peer::torch_peer(const std::string& python, const std::string& script) {
  const std::string found = find_python(python, script);
  if (found.empty()) return;
  process_ = std::make_unique<answerer>(std::vector<std::string>{found, script, "--serve"});
  if (json_t* hello = json_loads(process_->hear().c_str(), 0, nullptr)) {
    if (const char* text = json_string_value(json_object_get(hello, "torch"))) version_ = text;
    json_decref(hello);
  }
  if (version_.empty()) process_ = nullptr;
}

std::vector<torch_timing> torch_peer::measure(const std::string& name, dtype type,
                                              const std::string& shape, int threads, int sets,
                                              double budget) {
  std::vector<torch_timing> timings;
  if (!available()) return timings;
  char request[512];
  std::snprintf(
      request, sizeof request,
      "{\"name\": \"%s\", \"dtype\": \"%s\", \"shape\": \"%s\", \"threads\": %d, \"sets\": %d, "
      "\"budget\": %g}",
      name.c_str(), name_of(type), shape.c_str(), threads, sets, budget);
  process_->say(request);
  json_t* answer = json_loads(process_->hear().c_str(), 0, nullptr);
  if (!answer) {
    process_ = nullptr;  // it died; the rows that follow go on without it
    return timings;
  }
  std::size_t index;
  json_t* each;
  json_array_foreach(json_object_get(answer, "results"), index, each) {
    const char* peer = json_string_value(json_object_get(each, "peer"));
    if (peer)
      timings.push_back({peer, json_number_value(json_object_get(each, "min")),
                         json_number_value(json_object_get(each, "p25"))});
  }
  json_decref(answer);
  return timings;
}

}  // namespace velo::bench
