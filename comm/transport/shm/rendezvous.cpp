// The two sides of a rendezvous, over a socket that keeps messages apart.
#include "comm/transport/shm/rendezvous.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "comm/transport/rendezvous_messages.hpp"
#include "comm/transport/shared/shared_area.hpp"
#include "comm/transport/shm/rendezvous_folder.hpp"
#include "comm/transport/shm/rendezvous_socket.hpp"
#include "core/failure.hpp"
#include "core/host/clock.hpp"
#include "core/index.hpp"

namespace velo::comm {

using core::fail;
using core::text;

namespace {

constexpr char magic[8] = {'v', 'e', 'l', 'o', ' ', 's', 'h', 'm'};
constexpr char release[] = VELO_RELEASE;

// A rank that has reached rank 0 waits this much beyond its own deadline to hear which ranks are
// missing, since both began to wait at about the same time.
constexpr std::int64_t answer_margin_ns = 100000000;

constexpr std::uint64_t layout =
    sizeof(rank_state) << 40 | sizeof(channel) << 20 | (sizeof(area_head) + sizeof(message_head));

[[noreturn]] void fail_peer(int rank, const char* expected, const char* got) {
  core::failure f;
  f.code = VELO_ERR_PEER;
  f.rank = rank;
  core::copy_text(f.argument, sizeof f.argument, "desc.name");
  core::copy_text(f.expected, sizeof f.expected, expected);
  core::copy_text(f.got, sizeof f.got, got);
  throw f;
}

// Terminates a text that another process sent. Replaces the control characters of ASCII and U+0080
// to U+009F, which a terminal would obey.
template <std::size_t size>
void make_printable(char (&text)[size]) {
  text[size - 1] = 0;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  for (std::size_t at = 0; byte(at) != 0; ++at) {
    const bool is_control = byte(at) < 0x20 || byte(at) == 0x7f;
    const bool begins_control = byte(at) == 0xc2 && byte(at + 1) >= 0x80 && byte(at + 1) < 0xa0;
    if (is_control || begins_control) text[at] = '?';
  }
}

descriptor own_process() {
  descriptor mine(open_process(getpid()));
  if (!mine) fail_io("a descriptor of this process", errno);
  return mine;
}

std::uint64_t new_identity() {
  std::uint64_t made = 0;
  if (getrandom(&made, sizeof made, 0) != sizeof made) fail_io("random bytes", errno);
  return made;
}

hello hello_of(const rendezvous_options& at) {
  hello mine{};
  std::memcpy(mine.magic, magic, sizeof magic);
  core::copy_text(mine.release, sizeof mine.release, release);
  mine.rank = at.rank;
  mine.size = at.size;
  mine.layout = layout;
  mine.files = at.files == nullptr ? 0 : at.files->size();
  return mine;
}

// Reports missing ranks from time to time.
class reminder {
 public:
  explicit reminder(const rendezvous_options& at) : at_(at) {}

  template <class Missing>
  void poll(Missing&& missing) {
    const std::int64_t waited = core::now_ns() - begin_;
    if (!at_.remind || waited < next_) return;
    at_.remind(missing(), waited);
    next_ += every_ns;
  }

 private:
  static constexpr std::int64_t first_ns = 5'000'000'000, every_ns = 30'000'000'000;

  const rendezvous_options& at_;
  const std::int64_t begin_ = core::now_ns();
  std::int64_t next_ = first_ns;
};

// Rank 0's side.
class server {
 public:
  explicit server(const rendezvous_options& at)
      : at_(at), reminder_(at), until_(deadline::after(at.timeout_ns, [this] { check(); })) {
    socket_.emplace(at.name);
    for (int rank = 0; rank < at.size; ++rank) joined_.emplace_back();
    joined_[0].process = own_process();
  }

  // Every failure here is also sent to the ranks that have joined.
  void run(rendezvous_result& all) {
    try {
      wait_all();
      finish(all);
    } catch (const missing_ranks& gave_up) {
      welcome answer{};  // not a refusal: rank 0 may call again before the deadline of the others
      answer.missing = gave_up.ranks;
      for (const joined_rank& one : joined_)
        if (one.line) send_packet(one.line.get(), &answer, sizeof answer, nullptr, 0);
      throw;
    } catch (...) {
      const core::failure why = core::current_failure();
      const bool own = why.rank < 0;  // rank 0 itself failed
      const text expected("%d ranks that make a group", at_.size),
          got("rank 0 with: %s", why.cause);
      for (const joined_rank& one : joined_)
        if (one.line)
          refuse(one.line.get(), own ? 0 : why.rank,
                 *why.expected == 0 ? expected.buffer : why.expected, own ? got.buffer : why.got);
      throw;
    }
  }

  server(const server&) = delete;  // the deadline refers to this object
  server& operator=(const server&) = delete;

 private:
  void check() {
    if (at_.check) at_.check();
    reminder_.poll([&] { return find_missing(); });
  }

  struct joined_rank {
    descriptor line, process;
    std::vector<descriptor> files;
    bool has_gone() const { return line && is_closed(line.get()); }
  };

  // A connection that has not sent a greeting yet. A rank that was stopped for too long connects
  // again.
  struct pending_connection {
    descriptor line;
    std::int64_t until_ns;
  };
  static constexpr std::int64_t greeting_ns = 1'000'000'000;
  static constexpr std::size_t max_pending = 256;

  void wait_all() {
    rank_set missing = find_missing();
    while (missing.lowest() >= 0) {
      std::vector<pollfd> lines{{socket_->listening(), POLLIN, 0}};
      for (const pending_connection& one : pending_) lines.push_back({one.line.get(), POLLIN, 0});
      const bool some = await_readable(lines.data(), lines.size(), until_) > 0;
      if (!some && until_.is_over()) throw missing_ranks{missing};
      for (std::size_t i = pending_.size(); some && i-- > 0;)
        if (lines[i + 1].revents != 0) admit(drop_pending(i));
      if (lines[0].revents != 0) accept_next();
      while (!pending_.empty() && pending_.front().until_ns <= core::now_ns()) drop_pending(0);
      missing = find_missing();
    }
    pending_.clear();
  }

  // If descriptors run out, the oldest silent connection is dropped.
  void accept_next() {
    descriptor accepted = accept_now(socket_->listening());
    const bool full = !accepted && (errno == EMFILE || errno == ENFILE);
    if (full && pending_.empty()) fail_io("the next rank", errno);
    if (!accepted && !full && errno != EINTR && errno != ECONNABORTED && errno != EAGAIN)
      fail_io("the next rank", errno);
    if (full || pending_.size() == max_pending) drop_pending(0);
    if (accepted && is_own_user(accepted.get()))
      pending_.push_back({std::move(accepted), core::now_ns() + greeting_ns});
  }

  descriptor drop_pending(std::size_t at) {
    descriptor line = std::move(pending_[at].line);
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(at));
    return line;
  }

  // Ranks that have not joined, or that gave up afterwards. A process that ended counts as joined,
  // since its peers find that out sooner in the group.
  rank_set find_missing() const {
    rank_set missing;
    for (int rank = 0; rank < at_.size; ++rank) {
      const joined_rank& one = joined_[core::at(rank)];
      if (!one.process || (one.has_gone() && !has_ended(one.process.get()))) missing.add(rank);
    }
    return missing;
  }

  // Disconnects a process that does not greet as a rank. A rank of this group with different terms
  // ends the rendezvous for all. A number is used as a rank only after a check.
  void admit(descriptor line) {
    hello theirs{};
    std::vector<descriptor> passed;
    bool lost = false;
    if (!receive(line.get(), &theirs, sizeof theirs, passed, until_, least_hello, &lost) ||
        std::memcmp(theirs.magic, magic, sizeof magic) != 0)
      return;
    make_printable(theirs.release);
    if (theirs.size < 1 || theirs.size > most_ranks || theirs.rank < 0 ||
        theirs.rank >= theirs.size)
      return refuse(line.get(), -1, text("a rank of 1 to %d ranks", most_ranks),
                    text("rank %d of %d", theirs.rank, theirs.size));
    if (std::strcmp(theirs.release, release) != 0 || theirs.layout != layout)
      end_by(line, theirs.rank, text("ranks of velo %s", release),
             text("rank %d with velo %s", theirs.rank, theirs.release));
    if (theirs.size != at_.size || theirs.rank < 1)
      end_by(line, theirs.rank, text("ranks 1 to %d of %d", at_.size - 1, at_.size),
             text("rank %d of %d", theirs.rank, theirs.size));
    const bool no_room = lost && passed.size() < 1 + theirs.files;
    if (theirs.files > max_registered_files || (!no_room && passed.size() != 1 + theirs.files))
      return refuse(line.get(), theirs.rank,
                    "a descriptor of its process, and of each file it lends",
                    text("%zu descriptors", passed.size()));
    joined_rank& entry = joined_[core::at(theirs.rank)];
    if (entry.process && !entry.has_gone())
      return refuse(line.get(), theirs.rank, "each rank once", text("rank %d again", theirs.rank));
    entry.line = std::move(line);
    if (no_room)
      fail_io("a descriptor of each rank's process, and of each file that it lends", EMFILE);
    entry.process = std::move(passed[0]);
    passed.erase(passed.begin());
    entry.files = std::move(passed);
    welcome receipt{};
    receipt.kind = is_receipt;
    send_packet(entry.line.get(), &receipt, sizeof receipt, nullptr, 0);
  }

  static void refuse(int line, int rank, const char* expected, const char* got) {
    welcome no{};
    no.kind = is_refusal;
    no.rank = rank;
    core::copy_text(no.expected, sizeof no.expected, expected);
    core::copy_text(no.got, sizeof no.got, got);
    send_packet(line, &no, sizeof no, nullptr, 0);
  }
  [[noreturn]] static void end_by(const descriptor& line, int rank, const char* expected,
                                  const char* got) {
    refuse(line.get(), rank, expected, got);
    fail_peer(rank, expected, got);
  }

  // All ranks have joined, so later callers with this name belong to another rendezvous. If a rank
  // is gone again, its peers notice in the group. Nothing is allocated once a rank has its answer:
  // the ranks have the group, all of them or none.
  void finish(rendezvous_result& all) {
    socket_.reset();
    all.slot_bytes = at_.slot_bytes;
    all.identity = new_identity();
    std::vector<int> processes;
    for (joined_rank& one : joined_) processes.push_back(one.process.get());
    const std::vector<std::vector<int>> files = files_of_all();
    all.processes.reserve(joined_.size());
    all.peer_files.reserve(joined_.size());
    all.memory = make_memory();
    welcome terms{};
    terms.slot_bytes = at_.slot_bytes;
    terms.identity = all.identity;
    const int memory = all.memory.get();
    for (int rank = 1; rank < at_.size; ++rank) {
      const int line = joined_[core::at(rank)].line.get();
      send_packet(line, &terms, sizeof terms, &memory, 1);
      for (std::size_t first = 0; first < processes.size(); first += most_descriptors)
        send_packet(line, "+", 1, processes.data() + first,
                    std::min(most_descriptors, processes.size() - first));
      send_files(files, rank, line);
    }
    all.peer_files.emplace_back();
    all.any_files = has_files();
    for (joined_rank& one : joined_) {
      all.processes.push_back(std::move(one.process));
      if (!one.files.empty()) all.any_files = true;
      if (&one != &joined_[0]) all.peer_files.push_back(std::move(one.files));
    }
  }

  bool has_files() const { return at_.files != nullptr && !at_.files->empty(); }

  std::vector<std::vector<int>> files_of_all() const {
    std::vector<std::vector<int>> all(joined_.size());
    if (has_files())
      for (const registered_file& one : *at_.files) all[0].push_back(one.file.get());
    for (std::size_t rank = 1; rank < joined_.size(); ++rank)
      for (const descriptor& one : joined_[rank].files) all[rank].push_back(one.get());
    return all;
  }

  // Sends one rank the files of every other rank, then a header without files that counts their
  // owners. If the rank is gone, its peers notice in the group.
  static void send_files(const std::vector<std::vector<int>>& all, int to, int line) {
    std::int32_t owners = 0;
    const auto send = [line](const files_header& header, const std::vector<int>& files) {
      if (!send_packet(line, &header, sizeof header, files.data(), files.size()) &&
          errno != EPIPE && errno != ECONNRESET)
        fail_io("to hand on the files that ranks lend", errno);
    };
    for (int rank = 0; rank < static_cast<int>(all.size()); ++rank) {
      const std::vector<int>& files = all[core::at(rank)];
      if (rank == to || files.empty()) continue;
      send({rank, static_cast<std::int32_t>(files.size())}, files);
      ++owners;
    }
    send({-1, owners}, {});
  }

  // The file's size is sealed, and its pages are allocated now, since a page that cannot be
  // allocated later would kill the process that touches it.
  descriptor make_memory() const {
    descriptor memory(memfd_create("velo", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory) fail_io("a file in memory", errno);
    const auto bytes = static_cast<off_t>(shared_area::bytes_for(at_.size, at_.slot_bytes));
    int refused = ftruncate(memory.get(), bytes) != 0 ? errno : 0;
    const auto needed = static_cast<off_t>(shared_area::needed_for(at_.size, at_.slot_bytes));
    if (refused == 0) refused = posix_fallocate(memory.get(), 0, needed);
    if (refused != 0)
      fail(VELO_ERR_MEMORY, "desc.buffer", core::concat(bytes, " bytes of shared memory"),
           "no more", std::strerror(refused));
    fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return memory;
  }

  const rendezvous_options& at_;
  reminder reminder_;
  const deadline until_;
  std::optional<rendezvous_socket> socket_;
  std::vector<joined_rank> joined_;
  std::vector<pending_connection> pending_;  // in order of connection
};

// The side of the ranks other than 0.
class client {
 public:
  explicit client(const rendezvous_options& at)
      : at_(at),
        reminder_(at),
        until_(deadline::after(at.timeout_ns, [this] { check(); })),
        answer_deadline_(deadline::after(at.timeout_ns > INT64_MAX - answer_margin_ns
                                             ? at.timeout_ns
                                             : at.timeout_ns + answer_margin_ns)),
        process_(own_process()) {
    missing_.add(0);
  }
  client(const client&) = delete;  // the deadline refers to this object
  client& operator=(const client&) = delete;

  // Nothing is allocated from the greeting until the group's memory is here.
  void run(rendezvous_result& all) {
    welcome answer{};
    std::vector<descriptor> passed;
    passed.reserve(most_descriptors);
    while (!try_connect(answer, passed)) {
      if (until_.is_over()) throw missing_ranks{missing_};
      until_.check();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    make_printable(answer.expected);
    make_printable(answer.got);
    if (answer.kind == is_refusal)
      fail_peer(answer.rank >= 0 && answer.rank < most_ranks ? answer.rank : -1, answer.expected,
                answer.got);
    if (passed.empty()) fail_io("a descriptor of the group's memory", EMFILE);
    require_area(passed[0], answer.slot_bytes);
    all.memory = std::move(passed[0]);
    all.slot_bytes = answer.slot_bytes;
    all.identity = answer.identity;
    const auto size = static_cast<std::size_t>(at_.size);
    while (all.processes.size() < size) {
      char plus;
      passed.clear();
      if (!receive(line_.get(), &plus, 1, passed, answer_deadline_))
        fail_peer(0, "rank 0 until all have come", "rank 0 gone");
      if (passed.size() != std::min(most_descriptors, size - all.processes.size()))
        fail_io("a descriptor of each rank's process", EMFILE);
      for (descriptor& one : passed) all.processes.push_back(std::move(one));
    }
    receive_files(all);
  }

 private:
  void check() {
    if (at_.check) at_.check();
    reminder_.poll([&] { return missing_; });
  }

  // Requires a file of the size that the area needs, sealed against shrinking.
  void require_area(const descriptor& memory, std::uint64_t slot_bytes) const {
    constexpr std::uint64_t most = std::uint64_t{1} << 40;
    struct stat is {};
    const bool fits =
        slot_bytes % page == 0 && slot_bytes <= most &&
        slot_bytes >= shared_area::least_slot(at_.size) && fstat(memory.get(), &is) == 0 &&
        static_cast<std::uint64_t>(is.st_size) == shared_area::bytes_for(at_.size, slot_bytes) &&
        (fcntl(memory.get(), F_GET_SEALS) & F_SEAL_SHRINK) != 0;
    if (!fits)
      fail_peer(0, "memory of the size that rank 0 names, which stays so",
                core::concat("slots of ", slot_bytes, " in ", is.st_size, " bytes"));
  }

  void receive_files(rendezvous_result& all) {
    all.peer_files.resize(static_cast<std::size_t>(at_.size));
    all.any_files = at_.files != nullptr && !at_.files->empty();
    for (std::int32_t owners = 0;; ++owners) {
      files_header header{};
      std::vector<descriptor> passed;
      if (!receive(line_.get(), &header, sizeof header, passed, answer_deadline_))
        fail_peer(0, "rank 0 until all have come", "rank 0 gone");
      if (header.rank < 0 && header.files == owners) return;
      if (header.rank < 0 || header.rank >= at_.size || passed.empty() ||
          passed.size() != static_cast<std::size_t>(header.files))
        fail_io("a descriptor of each file that a rank lends", EMFILE);
      all.peer_files[core::at(header.rank)] = std::move(passed);
      all.any_files = true;
    }
  }

  // Waits for the listener's receipt. Another process may have listened before rank 0 took the
  // path, so a rank without a receipt gives up when another socket replaces the path. Rank 0 sends
  // every admitted rank its receipt before it removes the socket.
  bool is_answered() {
    pollfd line{line_.get(), POLLIN, 0};
    while (await_readable(&line, 1, answer_deadline_) == 0) {
      const ino_t now = inode_at(server_.path);
      const bool is_replaced = now != 0 && now != server_.inode;
      if (is_replaced) return poll(&line, 1, 0) > 0;
      if (answer_deadline_.is_over()) return false;
      reminder_.poll([&] { return missing_; });
    }
    return true;
  }

  bool receive_answer(welcome& answer, std::vector<descriptor>& passed) {
    return receive(line_.get(), &answer, sizeof answer, passed, answer_deadline_, least_welcome);
  }

  // False: rank 0 gave up or belonged to an earlier rendezvous, or the listener is not rank 0.
  bool try_connect(welcome& answer, std::vector<descriptor>& passed) {
    const auto paths = [this] {
      std::vector<std::string> all = folders_.find();
      for (std::string& folder : all) folder += "/" + at_.name + ".socket";
      return all;
    };
    line_ = connect_by(paths, until_, server_);
    if (!line_ && !until_.is_over()) fail_io("a socket", errno);
    if (!line_) throw missing_ranks{missing_};
    const hello mine = hello_of(at_);
    int own[1 + max_registered_files] = {process_.get()};
    for (std::size_t i = 0; i < mine.files; ++i) own[1 + i] = (*at_.files)[i].file.get();
    passed.clear();
    answer = {};
    if (!send_packet(line_.get(), &mine, sizeof mine, own, 1 + mine.files) || !is_answered() ||
        !receive_answer(answer, passed))
      return false;
    if (answer.kind == is_refusal) return true;
    if (answer.kind != is_receipt || !receive_answer(answer, passed)) return false;
    if (answer.missing.lowest() < 0) return true;
    rank_set reported;
    for (int rank = 0; rank < at_.size; ++rank)
      if (answer.missing.has(rank)) reported.add(rank);
    if (reported.lowest() < 0) reported.add(0);
    missing_ = reported;
    return false;
  }

  const rendezvous_options& at_;
  reminder reminder_;
  // Once rank 0 is reached, only its answer counts: before it arrives here, other ranks may already
  // have joined the group and left it.
  const deadline until_, answer_deadline_;
  const descriptor process_;
  rendezvous_folders folders_;
  socket_file server_;
  descriptor line_;
  rank_set missing_;  // as far as this rank knows
};

}  // namespace

rendezvous_result rendezvous(const rendezvous_options& at) {
  rendezvous_result all;
  try {
    at.rank == 0 ? server(at).run(all) : client(at).run(all);
  } catch (...) {
    leave(all, at);
    throw;
  }
  return all;
}

void leave(const rendezvous_result& of, const rendezvous_options& at) noexcept {
  if (!of.memory) return;
  const auto slot = static_cast<std::size_t>(of.slot_bytes);
  const std::size_t bytes = shared_area::bytes_for(at.size, slot);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, of.memory.get(), 0);
  if (memory == MAP_FAILED) return;  // the peers wait until their deadline
  const shared_area area(memory, at.size, slot, core::sleepers::of_any_process);
  area.state(at.rank).left.store(1, std::memory_order_seq_cst);
  area.wake_all();
  munmap(memory, bytes);
}

}  // namespace velo::comm
