// SPDX-License-Identifier: Apache-2.0
// Adds latency between a client and a server on this machine: `latency_proxy TARGET_PORT LATENCY_MS` prints the port on
// which it listens. A client's bytes arrive after a round-trip time, and the first bytes of a connection after two, as
// for a handshake. Responses are forwarded immediately and never copied (splice), so this process is not the
// bottleneck. It simulates sufficiently large TCP windows, and does not limit the bandwidth.

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kPipeBytes = 1 << 20;
constexpr std::size_t kRequestBytes = 64 << 10;

struct Link {
  std::uint64_t number = 0;
  int client = -1, server = -1;
  int in = -1, out = -1;    // the pipe that forwards responses
  std::size_t in_pipe = 0;  // bytes
  bool server_ended = false;
  bool waits_to_write = false;  // until the client reads
  Clock::time_point ready;      // when the last request is due: order is preserved
  ~Link() {
    for (const int fd : {client, server, in, out})
      if (fd >= 0) ::close(fd);
  }
};

struct Sent {
  Clock::time_point due;
  std::uint64_t order = 0, link = 0;
  std::string bytes;
  bool operator<(const Sent& other) const { return std::tie(due, order) > std::tie(other.due, other.order); }
};

sockaddr_in here(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void send_at_once(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

class Proxy {
 public:
  Proxy(int target, std::chrono::nanoseconds latency) : target_(target), latency_(latency) {
    epoll_ = ::epoll_create1(0);
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    auto address = here(0);
    socklen_t size = sizeof address;
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(listener_, 1024) != 0) {
      std::perror("latency_proxy");
      std::exit(1);
    }
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    watch(listener_, EPOLLIN, 0);
    std::printf("%d\n", ntohs(address.sin_port));
    std::fflush(stdout);
  }

  [[noreturn]] void run() {
    std::array<epoll_event, 256> events{};
    while (true) {
      const timespec wait = until_next();
      const int count = ::epoll_pwait2(epoll_, events.data(), events.size(), sent_.empty() ? nullptr : &wait, nullptr);
      for (int i = 0; i < count; ++i) handle(events[static_cast<std::size_t>(i)]);
      pass_due();
    }
  }

 private:
  // The client's socket has an even mark, the server's an odd one.
  void watch(int fd, std::uint32_t what, std::uint64_t mark) {
    epoll_event event{what, {}};
    event.data.u64 = mark;
    if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event) != 0) ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }

  timespec until_next() const {
    if (sent_.empty()) return {};
    const auto left = std::max(sent_.top().due - Clock::now(), Clock::duration::zero());
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  }

  void handle(const epoll_event& event) {
    if (event.data.u64 == 0) return accept_all();
    const auto found = links_.find(event.data.u64 / 2);
    if (found == links_.end()) return;
    Link& link = *found->second;
    const bool is_server = event.data.u64 % 2 == 1;
    const bool is_open = is_server || link.waits_to_write && (event.events & EPOLLOUT) ? pass_answer(link) : true;
    if (!is_open || (!is_server && (event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !take_request(link)))
      links_.erase(found);
  }

  void accept_all() {
    while (true) {
      const int client = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK);
      if (client < 0) return;
      auto link = std::make_unique<Link>();
      link->number = ++last_;
      link->client = client;
      link->server = ::socket(AF_INET, SOCK_STREAM, 0);
      link->ready = Clock::now() + 2 * latency_;
      auto address = here(target_);
      std::array<int, 2> ends{};
      if (::connect(link->server, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
          ::pipe2(ends.data(), O_NONBLOCK) != 0)
        continue;
      link->in = ends[1];
      link->out = ends[0];
      ::fcntl(link->in, F_SETPIPE_SZ, kPipeBytes);
      ::fcntl(link->server, F_SETFL, O_NONBLOCK);
      send_at_once(client);
      send_at_once(link->server);
      watch(client, EPOLLIN, 2 * link->number);
      watch(link->server, EPOLLIN, 2 * link->number + 1);
      links_.emplace(link->number, std::move(link));
    }
  }

  // Returns false if the client has closed the connection.
  bool take_request(Link& link) {
    std::string bytes(kRequestBytes, '\0');
    const ssize_t got = ::recv(link.client, bytes.data(), bytes.size(), 0);
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
    bytes.resize(static_cast<std::size_t>(got));
    link.ready = std::max(link.ready, Clock::now() + latency_);
    sent_.push({link.ready, ++order_, link.number, std::move(bytes)});
    return true;
  }

  void pass_due() {
    while (!sent_.empty() && sent_.top().due <= Clock::now()) {
      const Sent sent = sent_.top();
      sent_.pop();
      const auto found = links_.find(sent.link);
      if (found == links_.end()) continue;
      // requests are short, so they fit in the socket's buffer
      if (::send(found->second->server, sent.bytes.data(), sent.bytes.size(), MSG_NOSIGNAL) !=
          static_cast<ssize_t>(sent.bytes.size()))
        links_.erase(found);
    }
  }

  // Returns false if the server has closed the connection and everything is forwarded.
  bool pass_answer(Link& link) {
    bool moved = true;
    while (moved) {
      moved = false;
      if (!link.server_ended && link.in_pipe < kPipeBytes) {
        const ssize_t got = ::splice(link.server, nullptr, link.in, nullptr, kPipeBytes - link.in_pipe,
                                     SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (got > 0) link.in_pipe += static_cast<std::size_t>(got);
        if (got == 0 || (got < 0 && errno != EAGAIN)) link.server_ended = true;
        moved = got > 0;
      }
      if (link.in_pipe > 0) {
        const ssize_t put =
            ::splice(link.out, nullptr, link.client, nullptr, link.in_pipe, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (put > 0) link.in_pipe -= static_cast<std::size_t>(put);
        if (put < 0 && errno != EAGAIN) return false;
        moved = moved || put > 0;
      }
    }
    const bool waits = link.in_pipe > 0;
    if (waits != link.waits_to_write) {
      link.waits_to_write = waits;  // until then, the server's bytes remain in its socket
      watch(link.client, waits ? EPOLLIN | EPOLLOUT : EPOLLIN, 2 * link.number);
      watch(link.server, waits ? 0 : EPOLLIN, 2 * link.number + 1);
    }
    return waits || !link.server_ended;
  }

  const int target_;
  const std::chrono::nanoseconds latency_;
  int epoll_ = -1, listener_ = -1;
  std::uint64_t last_ = 0, order_ = 0;
  std::map<std::uint64_t, std::unique_ptr<Link>> links_;
  std::priority_queue<Sent> sent_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return std::fprintf(stderr, "latency_proxy TARGET_PORT LATENCY_MS\n"), 2;
  std::signal(SIGPIPE, SIG_IGN);  // if a client disconnects during a response, splice() returns an error
  const auto latency = std::chrono::duration<double, std::milli>(std::atof(arguments[2]));
  Proxy(std::atoi(arguments[1]), std::chrono::duration_cast<std::chrono::nanoseconds>(latency)).run();
}
