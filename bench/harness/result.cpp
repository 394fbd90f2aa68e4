// Medians, the table for people and the line for programs.
#include "bench/harness/result.hpp"

#include <jansson.h>

#include <algorithm>
#include <cstdlib>

#include "bench/harness/protocol.hpp"

namespace velo::bench {

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

double result::rate() const {
  return median(rates);
}

double result::share() const {
  std::vector<double> shares;
  for (std::size_t pass = 0; pass < std::min(rates.size(), limits.size()); ++pass)
    shares.push_back(limits[pass] > 0 ? rates[pass] / limits[pass] : 0);
  return median(shares);
}

const peer_result* result::best_peer() const {
  const peer_result* best = nullptr;
  for (const peer_result& peer : peers)
    if (!best || median(peer.ratios) < median(best->ratios)) best = &peer;
  return best;
}

void result::add_peer(const std::string& peer, double rate, double ratio) {
  auto found = std::find_if(peers.begin(), peers.end(),
                            [&](const peer_result& p) { return p.name == peer; });
  if (found == peers.end()) found = peers.insert(peers.end(), {peer, {}, {}});
  found->rates.push_back(rate);
  found->ratios.push_back(ratio);
}

void print_header(FILE* out) {
  std::fprintf(out, "%-34s %-4s %-21s %-5s %2s %9s %9s %-14s %6s %6s of %-11s %10s\n", "operator",
               "type", "shape", "from", "T", "velo", "peer", "", "ratio", "share", "limit",
               "p25 us");
}

void print_line(FILE* out, const result& r) {
  const peer_result* best = r.best_peer();
  std::fprintf(out, "%-34s %-4s %-21s %-5s %2d %9.1f ", r.name.c_str(), name_of(r.type),
               r.shape.c_str(), r.residency.c_str(), r.threads, r.rate());
  if (best)
    std::fprintf(out, "%9.1f %-14s %6.2f ", median(best->rates), best->name.c_str(),
                 median(best->ratios));
  else
    std::fprintf(out, "%9s %-14s %6s ", "-", "", "-");
  std::fprintf(out, "%5.0f%% of %-11s %10.1f%s\n", 100 * r.share(), limit_name(r.bound),
               1e6 * median(r.p25s), r.disturbed * 2 > r.calls ? "  disturbed" : "");
}

void print_json(FILE* out, const result& r) {
  const peer_result* best = r.best_peer();
  json_t* line =
      json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:f}", "name", r.name.c_str(), "dtype",
                name_of(r.type), "shape", r.shape.c_str(), "residency", r.residency.c_str(),
                "threads", r.threads, "unit", r.unit.c_str(), "velo", r.rate());
  json_object_set_new(line, "peer", best ? json_real(median(best->rates)) : json_null());
  json_object_set_new(line, "peer_name", best ? json_string(best->name.c_str()) : json_null());
  json_object_set_new(line, "ratio", best ? json_real(median(best->ratios)) : json_null());
  if (r.peers.size() > 1) {
    json_t* ratios = json_object();
    for (const peer_result& peer : r.peers)
      json_object_set_new(ratios, peer.name.c_str(), json_real(median(peer.ratios)));
    json_object_set_new(line, "ratios", ratios);
  }
  json_object_set_new(line, "limit", json_real(median(r.limits)));
  json_object_set_new(line, "limit_name", json_string(limit_name(r.bound)));
  json_object_set_new(line, "share", json_real(r.share()));
  json_object_set_new(line, "p25", json_real(median(r.p25s)));
  json_object_set_new(line, "min", json_real(*std::min_element(r.mins.begin(), r.mins.end())));
  char* text = json_dumps(line, JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(6));
  std::fprintf(out, "%s\n", text);
  std::free(text);
  json_decref(line);
}

}  // namespace velo::bench
