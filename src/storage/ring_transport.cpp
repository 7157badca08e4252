// SPDX-License-Identifier: Apache-2.0
#include "storage/ring_transport.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "storage/local_file.h"

namespace feedline::storage {
namespace {

constexpr unsigned kRequests = 256;  // submitted at once; further requests need several calls

__kernel_timespec left_until(Transport::Clock::time_point until) {
  using std::chrono::nanoseconds;
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr nanoseconds kLongest = std::chrono::hours(1);
  const auto now = Transport::Clock::now();
  const auto left = until <= now ? nanoseconds(0) : std::min<nanoseconds>(until - now, kLongest);
  return {.tv_sec = left.count() / kSecond, .tv_nsec = left.count() % kSecond};
}

}  // namespace

std::unique_ptr<RingTransport> RingTransport::make(Submit submit) {
  std::unique_ptr<RingTransport> transport(new RingTransport(submit));
  transport->wake_up_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  if (!transport->wake_up_.valid() || ::io_uring_queue_init(kRequests, &transport->ring_, 0) != 0) return nullptr;
  transport->is_ready_ = true;
  ::io_uring_ring_dontfork(&transport->ring_);
  // Linux 5.11 is needed for a timeout without a separate request, and Linux 5.5 for completions that are never
  // dropped.
  if ((transport->ring_.features & IORING_FEAT_EXT_ARG) == 0 || (transport->ring_.features & IORING_FEAT_NODROP) == 0)
    return nullptr;
  transport->submit_wake_up();
  return submit(&transport->ring_) == 1 ? std::move(transport) : nullptr;
}

RingTransport::~RingTransport() {
  if (is_ready_) ::io_uring_queue_exit(&ring_);
}

io_uring_sqe* RingTransport::request() {
  io_uring_sqe* const sqe = ::io_uring_get_sqe(&ring_);
  if (sqe != nullptr || submit_(&ring_) <= 0) return sqe;
  return ::io_uring_get_sqe(&ring_);
}

// Submits deferred requests while there is room.
void RingTransport::submit_deferred() {
  if (std::exchange(wake_up_is_deferred_, false)) submit_wake_up();
  for (std::size_t left = deferred_.size(); left > 0 && ::io_uring_sq_space_left(&ring_) > 0; --left) {
    Running& running = *deferred_.front();
    deferred_.pop_front();
    running.steps ? submit_read(running) : submit_open(running);
  }
}

void RingTransport::submit_wake_up() {
  io_uring_sqe* sqe = request();
  if (sqe == nullptr) {
    wake_up_is_deferred_ = true;
    return;
  }
  ::io_uring_prep_read(sqe, wake_up_.get(), &wake_ups_, sizeof wake_ups_, 0);
  ::io_uring_sqe_set_data(sqe, nullptr);
}

void RingTransport::wake() {
  const std::uint64_t one = 1;
  // fails only if the counter overflows, or in a child after fork(), where it does not matter
  static_cast<void>(!::write(wake_up_.get(), &one, sizeof one));
}

void RingTransport::start(Read& read) {
  if (free_.empty()) free_.push_back(all_.emplace_back(std::make_unique<Running>()).get());
  Running& running = *free_.back();
  free_.pop_back();
  running = Running{.read = &read};
  const Piece& piece = read.piece;
  if (!piece.reader) return submit_open(running);
  running.descriptor = piece.reader->descriptor();
  if (running.descriptor < 0) {
    read_piece(read);
    return finish(running, std::move(read.bytes));
  }
  if (auto checked = check_piece_version(read); !checked)
    return finish(running, std::unexpected(std::move(checked).error()));
  const auto room = read.buffer.make_room(piece.bytes, read.most_bytes);
  if (!room) return finish(running, std::unexpected(room.error()));
  running.steps.emplace(piece.reader->name(), *room, piece.offset);
  go_on(running);
}

void RingTransport::submit_open(Running& running) {
  io_uring_sqe* sqe = request();
  if (sqe == nullptr) return deferred_.push_back(&running);
  // as open_regular_file() does
  ::io_uring_prep_openat(sqe, AT_FDCWD, running.read->piece.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                         0);
  ::io_uring_sqe_set_data(sqe, &running);
  running.submission = submission_;
}

void RingTransport::submit_read(Running& running) {
  io_uring_sqe* sqe = request();
  if (sqe == nullptr) return deferred_.push_back(&running);
  const FileRead::Step step = *running.steps->next();
  ::io_uring_prep_read(sqe, running.descriptor, step.room.data(), static_cast<unsigned>(step.room.size()), step.offset);
  ::io_uring_sqe_set_data(sqe, &running);
  running.submission = submission_;
}

void RingTransport::opened(Running& running, int result) {
  Read& read = *running.read;
  const std::string& path = read.piece.path;
  if (result < 0) return finish(running, file_error("cannot open", path, -result));
  running.own = FileDescriptor(result);
  auto status = stat_regular_file(result, path);
  if (!status) return finish(running, std::unexpected(std::move(status).error()));
  if (read.version)
    if (auto checked = check_version(path, *read.version, to_object_stat(*status)); !checked)
      return finish(running, std::unexpected(std::move(checked).error()));
  // with the flag, a read that must wait would fail on file systems that cannot tell beforehand
  ::fcntl(result, F_SETFL, 0);
  running.descriptor = result;
  running.steps.emplace(path, read.buffer, static_cast<std::uint64_t>(status->st_size), read.most_bytes);
  go_on(running);
}

// Prepares the next request, or finishes the read.
void RingTransport::go_on(Running& running) {
  if (running.steps->next()) return submit_read(running);
  finish(running, running.steps->result());
}

void RingTransport::advance(Running& running, int result) {
  running.has_waited |= !in_submission_ || running.submission + 1 != submission_;
  if (!running.steps) return result == -EINTR ? submit_open(running) : opened(running, result);
  running.steps->got(result);
  go_on(running);
}

void RingTransport::finish(Running& running, Result<std::span<const std::byte>> bytes) {
  Read& read = *running.read;
  read.bytes = std::move(bytes);
  read.was_near = !running.has_waited;
  finished_.push_back(&read);
  running = Running{};  // closes the file
  free_.push_back(&running);
}

// Collects completed requests. Returns false if there were none.
bool RingTransport::reap() {
  bool any = false;
  io_uring_cqe* cqe = nullptr;
  while (::io_uring_peek_cqe(&ring_, &cqe) == 0 && cqe != nullptr) {
    any = true;
    auto* running = static_cast<Running*>(::io_uring_cqe_get_data(cqe));
    const int result = cqe->res;
    ::io_uring_cqe_seen(&ring_, cqe);
    if (running != nullptr) {
      advance(*running, result);
    } else {
      woken_ = true;
      submit_wake_up();
    }
  }
  return any;
}

void RingTransport::wait(__kernel_timespec longest) {
  io_uring_cqe* cqe = nullptr;
  ::io_uring_wait_cqe_timeout(&ring_, &cqe, &longest);
}

// The submitting call reads data in the page cache immediately, so requests that complete before it returns were local.
// Returns false if the kernel neither accepted nor completed any request.
bool RingTransport::submit_and_reap() {
  const int submitted = submit_(&ring_);
  ++submission_;
  in_submission_ = true;
  const bool any = reap();
  in_submission_ = false;
  return submitted > 0 || any;
}

// The kernel is short of memory (EAGAIN), or has more completions than fit in the ring (EBUSY): retries after a
// millisecond. The request that waits for wake() may not have been accepted, so a wake-up is checked for here.
void RingTransport::rest() {
  wait({.tv_sec = 0, .tv_nsec = 1'000'000});
  ::pollfd wake_up{.fd = wake_up_.get(), .events = POLLIN, .revents = 0};
  if (::poll(&wake_up, 1, 0) == 1) woken_ = true;
}

Read* RingTransport::finished(Clock::time_point until) {
  while (finished_.empty() && !woken_) {
    submit_deferred();
    if (::io_uring_sq_ready(&ring_) > 0) {
      if (submit_and_reap()) continue;
      if (Clock::now() >= until) return nullptr;
      rest();
      continue;
    }
    if (reap()) continue;
    if (Clock::now() >= until) return nullptr;
    wait(left_until(until));
  }
  if (finished_.empty()) {
    woken_ = false;
    return nullptr;
  }
  Read* read = finished_.front();
  finished_.pop_front();
  return read;
}

}  // namespace feedline::storage
