// SPDX-License-Identifier: Apache-2.0
#include "storage/http/socket_watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace feedline::storage {
namespace {

constexpr std::size_t kMostEvents = 64;  // per call; the rest is returned by the next call

std::uint32_t events_of(int what) {
  return (what & CURL_POLL_IN ? EPOLLIN : 0U) | (what & CURL_POLL_OUT ? EPOLLOUT : 0U);
}

// Errors are detected and reported by reading the socket.
int what_of(std::uint32_t events) {
  return (events & (EPOLLIN | EPOLLHUP | EPOLLERR) ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0);
}

}  // namespace

Result<std::unique_ptr<SocketWatch>> SocketWatch::make(const CurlLibrary& curl, CURLM* multi) {
  FileDescriptor poll(::epoll_create1(EPOLL_CLOEXEC));
  FileDescriptor woken(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = woken.get();
  if (!poll.valid() || !woken.valid() || ::epoll_ctl(poll.get(), EPOLL_CTL_ADD, woken.get(), &event) != 0)
    return storage_error("cannot wait for connections", errno);
  std::unique_ptr<SocketWatch> watch(new SocketWatch(curl, multi, std::move(poll), std::move(woken)));
  curl.multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, &SocketWatch::on_socket);
  curl.multi_setopt(multi, CURLMOPT_SOCKETDATA, watch.get());
  curl.multi_setopt(multi, CURLMOPT_TIMERFUNCTION, &SocketWatch::on_timer);
  curl.multi_setopt(multi, CURLMOPT_TIMERDATA, watch.get());
  return watch;
}

SocketWatch::SocketWatch(const CurlLibrary& curl, CURLM* multi, FileDescriptor poll, FileDescriptor woken)
    : curl_(curl), multi_(multi), poll_(std::move(poll)), woken_(std::move(woken)) {}

// known: the pointer that multi_assign() has set for this socket; not nullptr if the socket is being watched.
int SocketWatch::on_socket(CURL* /*easy*/, curl_socket_t socket, int what, void* watch, void* known) {
  SocketWatch& it = *static_cast<SocketWatch*>(watch);
  epoll_event event{};
  event.events = events_of(what);
  event.data.fd = socket;
  if (what == CURL_POLL_REMOVE) {
    ::epoll_ctl(it.poll_.get(), EPOLL_CTL_DEL, socket, &event);
    return 0;
  }
  if (known != nullptr && ::epoll_ctl(it.poll_.get(), EPOLL_CTL_MOD, socket, &event) == 0) return 0;
  if (::epoll_ctl(it.poll_.get(), EPOLL_CTL_ADD, socket, &event) != 0 && errno == EEXIST)
    ::epoll_ctl(it.poll_.get(), EPOLL_CTL_MOD, socket, &event);
  it.curl_.multi_assign(it.multi_, socket, &it);
  return 0;
}

int SocketWatch::on_timer(CURLM* /*multi*/, long timeout_ms, void* watch) {
  SocketWatch& it = *static_cast<SocketWatch*>(watch);
  it.due_.reset();
  if (timeout_ms >= 0) it.due_ = Clock::now() + std::chrono::milliseconds(timeout_ms);
  return 0;
}

int SocketWatch::until_due_ms(int most_ms) const {
  if (!due_) return most_ms;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*due_ - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, most_ms));
}

void SocketWatch::act(int socket, int what) {
  int running = 0;
  curl_.multi_socket_action(multi_, socket, what, &running);
}

void SocketWatch::wait(int most_ms) {
  std::array<epoll_event, kMostEvents> events;
  const int count = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), until_due_ms(most_ms));
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.fd != woken_.get()) {
      act(event.data.fd, what_of(event.events));
      continue;
    }
    std::uint64_t times = 0;
    static_cast<void>(!::read(woken_.get(), &times, sizeof times));
  }
  if (!due_ || *due_ > Clock::now()) return;
  // curl counts in other steps, and says nothing where it finds that it is not time yet
  due_ = Clock::now() + std::chrono::milliseconds(1);
  act(CURL_SOCKET_TIMEOUT, 0);
}

void SocketWatch::wake() {
  constexpr std::uint64_t kOnce = 1;
  static_cast<void>(!::write(woken_.get(), &kOnce, sizeof kOnce));
}

}  // namespace feedline::storage
