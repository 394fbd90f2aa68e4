// Three kinds of work at one time, in one order: products, the reduce-scatter of what they gave,
// and the prefetch of the weights that come next, each on a stream of its own.
//
//     overlap_cpp DIR        writes overlap.svg and overlap.json, a trace for Perfetto
//
// Two ranks (threads of this process) have half of the inputs of every layer each. A layer's
// product is made in slices of rows; a slice's sum over the ranks begins when it has been
// multiplied, beside the product of the next slice. Weights wait in other memory and come one layer
// ahead. Events alone order the streams, so the same calls on one stream, one after the other, have
// the same results, bit for bit.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <velo/velo.hpp>

namespace {

constexpr int ranks = 2, layers = 4, slices = 8;
constexpr std::int64_t rows = 128, inputs = 1536, outputs = 1536;  // of a slice, of a layer
constexpr std::uint64_t weight_bytes = inputs * outputs * sizeof(float);

enum kind { product, reduce_scatter, prefetch, kinds };
constexpr const char* names[kinds] = {"product", "reduce-scatter", "prefetch"};

struct span {
  kind what;
  int layer, slice;
  double begin, end;  // seconds
};

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

std::vector<float> numbers(std::int64_t count, unsigned seed) {
  std::vector<float> made(static_cast<std::size_t>(count));
  for (float& each : made) {
    seed = seed * 1664525u + 1013904223u;
    each = static_cast<float>(seed >> 8) / (1 << 24) - 0.5f;
  }
  return made;
}

// When a slice, or a layer's weights, were ready: recorded on a stream, and read by a thread that
// waits.
struct mark {
  explicit mark(const velo::context& of) : event(velo::event::create(of)) {}
  velo::event event;
  double at = 0;
};

class rank {
 public:
  rank(const velo::context& context, const velo::group& group, unsigned number)
      : context_(context), group_(group), swap_(velo::swap_space::create(context)) {
    for (int layer = 0; layer < layers; ++layer) {
      x_.push_back(numbers(slices * rows * inputs, 100 * number + static_cast<unsigned>(layer)));
      weights_.push_back(
          numbers(inputs * outputs, 100 * number + 50 + static_cast<unsigned>(layer)));
      objects_.push_back(swap_.add(weights_.back().data(), weight_bytes));
      for (int slice = 0; slice < slices; ++slice) {
        multiplied_.emplace_back(context);
        summed_.emplace_back(context);
      }
      begun_.emplace_back(context);
      fetched_.emplace_back(context);
    }
    y_.resize(static_cast<std::size_t>(layers * slices * rows * outputs));
    z_.resize(y_.size() / ranks);
  }

  // Runs on one stream with all weights in memory, and then moves the weights out.
  std::vector<float> run_in_order() {
    const velo::stream_ref stream = context_.inline_stream();
    for (int layer = 0; layer < layers; ++layer)
      for (int slice = 0; slice < slices; ++slice) {
        multiply(stream, layer, slice);
        sum(stream, layer, slice);
      }
    for (int layer = 0; layer < layers; ++layer) {
      swap_.out(objects_[layer], stream);
      swap_.wait(objects_[layer], stream);
      std::memset(weights_[layer].data(), 0, weight_bytes);
    }
    std::vector<float> found(z_.size());
    found.swap(z_);
    return found;
  }

  std::vector<float> run_at_once() {
    const velo::stream products = velo::stream::create(context_);
    const velo::stream sums = velo::stream::create(context_);
    const velo::stream fetches = velo::stream::create(context_);
    fetch(fetches, 0);
    for (int layer = 0; layer < layers; ++layer) {
      products.wait(fetched_[layer].event.get());
      begun_[layer].event.record(products);
      for (int slice = 0; slice < slices; ++slice) {
        const int number = layer * slices + slice;
        multiply(products, layer, slice);
        multiplied_[number].event.record(products);
        sums.wait(multiplied_[number].event.get());
        sum(sums, layer, slice);
        summed_[number].event.record(sums);
        if (slice > 0 || layer + 1 == layers) continue;
        fetches.wait(multiplied_[number].event.get());  // not before its layer's turn
        fetch(fetches, layer + 1);
      }
    }
    watch();
    for (const velo::stream* each : {&products, &sums, &fetches}) each->synchronize();
    return z_;
  }

  // Each kind's work, from when it could begin until it was done.
  std::vector<span> timeline() const {
    std::vector<span> all;
    double multiplied = 0, summed = 0;
    for (int layer = 0; layer < layers; ++layer) {
      const double begun = begun_[layer].at;
      for (int slice = 0; slice < slices; ++slice) {
        const int number = layer * slices + slice;
        all.push_back({product, layer, slice, std::max(begun, multiplied), multiplied_[number].at});
        multiplied = multiplied_[number].at;
        if (slice == 0 && layer + 1 < layers)
          all.push_back({prefetch, layer + 1, 0, multiplied, fetched_[layer + 1].at});
        all.push_back(
            {reduce_scatter, layer, slice, std::max(multiplied, summed), summed_[number].at});
        summed = summed_[number].at;
      }
    }
    const double first = begun_[0].at;
    for (span& each : all) {
      each.begin -= first;
      each.end -= first;
    }
    return all;
  }

 private:
  void multiply(velo::stream_ref on, int layer, int slice) {
    velo::matmul(on, velo::matmul_args()
                         .a(velo::tensor_view(&x_[layer][slice * rows * inputs], {rows, inputs}))
                         .b(velo::tensor_view(weights_[layer].data(), {inputs, outputs}))
                         .c(velo::tensor_view(y(layer, slice), {rows, outputs})));
  }
  void sum(velo::stream_ref on, int layer, int slice) {
    float* to = z_.data() + (layer * slices + slice) * rows / ranks * outputs;
    group_.reduce_scatter(on, velo::tensor_view(y(layer, slice), {rows, outputs}),
                          velo::tensor_view(to, {rows / ranks, outputs}));
  }
  void fetch(const velo::stream& on, int layer) {
    swap_.in(objects_[layer], on, nullptr, fetched_[layer].event.get());
  }
  float* y(int layer, int slice) { return y_.data() + (layer * slices + slice) * rows * outputs; }

  // Reads the clock at every mark; marks of one stream pass in their order.
  void watch() {
    const auto read = [](const std::vector<mark*>& marks) {
      for (mark* each : marks) {
        each->event.synchronize();
        each->at = now();
      }
    };
    std::array<std::vector<mark*>, kinds> of;
    for (int layer = 0; layer < layers; ++layer) {
      of[prefetch].push_back(&fetched_[layer]);
      of[product].push_back(&begun_[layer]);
      for (int slice = 0; slice < slices; ++slice) {
        of[product].push_back(&multiplied_[layer * slices + slice]);
        of[reduce_scatter].push_back(&summed_[layer * slices + slice]);
      }
    }
    std::vector<std::thread> threads;
    for (const std::vector<mark*>& each : of) threads.emplace_back(read, std::cref(each));
    for (std::thread& each : threads) each.join();
  }

  const velo::context& context_;
  const velo::group& group_;
  velo::swap_space swap_;
  std::vector<std::vector<float>> x_, weights_;  // by layer
  std::vector<std::uint64_t> objects_;           // by layer
  std::vector<float> y_, z_;                     // by layer and slice
  std::vector<mark> begun_, fetched_;            // by layer
  std::vector<mark> multiplied_, summed_;        // by layer and slice
};

// Seconds in which all kinds are under way.
double together(const std::vector<span>& all) {
  std::vector<double> moments;
  for (const span& each : all) moments.insert(moments.end(), {each.begin, each.end});
  std::sort(moments.begin(), moments.end());
  double seconds = 0;
  for (std::size_t i = 0; i + 1 < moments.size(); ++i) {
    std::array<bool, kinds> now{};
    for (const span& each : all)
      if (each.begin <= moments[i] && each.end >= moments[i + 1]) now[each.what] = true;
    if (now[product] && now[reduce_scatter] && now[prefetch])
      seconds += moments[i + 1] - moments[i];
  }
  return seconds;
}

// A new file takes the place of an older one; anything else at the path is left alone.
void write_file(const std::string& path, const std::string& text) {
  const std::filesystem::file_status there = std::filesystem::symlink_status(path);
  if (exists(there) && !is_regular_file(there))
    throw std::runtime_error(path + ": exists and is no regular file");
  std::string beside = path + ".XXXXXX";
  const int descriptor = ::mkstemp(&beside[0]);
  std::FILE* const file = descriptor < 0 ? nullptr : ::fdopen(descriptor, "w");
  if (file == nullptr) throw std::runtime_error(path + ": " + std::strerror(errno));
  const bool written = std::fputs(text.c_str(), file) >= 0;
  if (std::fclose(file) != 0 || !written || std::rename(beside.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    std::remove(beside.c_str());
    throw std::runtime_error(path + ": " + std::strerror(reason));
  }
}

void trace(const std::string& path, const std::vector<span>& all) {
  std::ostringstream file;
  file << std::fixed << std::setprecision(1) << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  for (int k = 0; k < kinds; ++k)
    file << "\n{\"ph\":\"M\",\"pid\":0,\"tid\":" << k
         << ",\"name\":\"thread_name\",\"args\":{\"name\":\"" << names[k] << "\"}},";
  for (const span& each : all)
    file << (&each == all.data() ? "" : ",") << "\n{\"ph\":\"X\",\"pid\":0,\"tid\":" << each.what
         << ",\"name\":\"" << names[each.what] << ' ' << each.layer << '.' << each.slice
         << "\",\"ts\":" << each.begin * 1e6 << ",\"dur\":" << (each.end - each.begin) * 1e6 << "}";
  file << "\n]}\n";
  write_file(path, file.str());
}

void draw(const std::string& path, const std::vector<span>& all, double seconds) {
  constexpr const char* colors[kinds] = {"#4e79a7", "#f28e2b", "#59a14f"};
  constexpr double left = 110, width = 780, top = 44, row = 40;
  double last = 0;
  for (const span& each : all) last = std::max(last, each.end);
  std::ostringstream file;
  file << std::fixed << std::setprecision(1)
       << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"914\" height=\"180\" "
          "viewBox=\"0 0 914 180\" font-family=\"sans-serif\" font-size=\"12\">\n"
          "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text x=\"110\" y=\"24\" "
          "font-size=\"16\">rank 0 of 2: "
       << layers << " layers in " << last * 1e3 << " ms, all three at one time for "
       << seconds * 1e3 << " ms</text>\n";
  for (int k = 0; k < kinds; ++k)
    file << "<text x=\"102\" y=\"" << top + row * k + 18 << "\" text-anchor=\"end\">" << names[k]
         << "</text>\n";
  for (const span& each : all)
    file << "<g><title>" << names[each.what] << " of layer " << each.layer << ", slice "
         << each.slice << ": " << each.begin * 1e3 << " to " << each.end * 1e3
         << " ms</title><rect x=\"" << left + width * each.begin / last << "\" y=\""
         << top + row * static_cast<int>(each.what) << "\" width=\""
         << width * (each.end - each.begin) / last << "\" height=\"28\" fill=\""
         << colors[each.what] << "\" stroke=\"#fff\" stroke-width=\"0.6\" "
         << "fill-opacity=\"" << (each.layer % 2 == 0 ? 1 : 0.75) << "\"/></g>\n";
  file << "<text x=\"110\" y=\"172\">0</text><text x=\"890\" y=\"172\" text-anchor=\"end\">"
       << last * 1e3 << " ms</text>\n</svg>\n";
  write_file(path, file.str());
}

// A rank's two runs; what failed, or nothing.
std::string work(rank& mine, const velo::group& group, bool& same) try {
  const std::vector<float> in_order = mine.run_in_order(), at_once = mine.run_at_once();
  same = std::memcmp(in_order.data(), at_once.data(), in_order.size() * sizeof(float)) == 0;
  return "";
} catch (const velo::error& failure) {
  group.abort();
  return failure.what();
}

}  // namespace

int main(int count, char** words) try {
  if (count != 2) return std::fprintf(stderr, "usage: overlap_cpp DIR\n"), 1;
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.threads = 1;  // a rank
  const velo::context contexts[] = {velo::context::create(desc), velo::context::create(desc)};
  const velo_context each[] = {contexts[0], contexts[1]};
  const auto groups = velo::group::create_local<std::vector<velo::group>>(each, ranks);
  rank first(contexts[0], groups[0], 0), second(contexts[1], groups[1], 1);
  bool same[ranks] = {};
  std::string why[ranks];
  std::thread other([&] { why[1] = work(second, groups[1], same[1]); });
  why[0] = work(first, groups[0], same[0]);
  other.join();
  for (const std::string& failure : why)
    if (!failure.empty()) return std::fprintf(stderr, "%s\n", failure.c_str()), 1;
  if (!same[0] || !same[1]) return std::fprintf(stderr, "the results are others\n"), 1;
  const std::vector<span> all = first.timeline();
  const double seconds = together(all);
  const std::string folder = words[1];
  trace(folder + "/overlap.json", all);
  draw(folder + "/overlap.svg", all, seconds);
  std::printf("the results are those of one stream\nall three at one time for %.1f ms\n",
              seconds * 1e3);
  return 0;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
