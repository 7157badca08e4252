// SPDX-License-Identifier: Apache-2.0
#pragma once

// Test support: an HTTP server in this process with predefined responses, valid or invalid.

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "storage/http/response_head.h"

namespace feedline::storage {

struct ServedRequest {
  std::string method, target;
  std::map<std::string, std::string> headers;  // names in lower case
  std::uint64_t number = 0;                    // number of this request among all that the server received
  std::string body = {};

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string() : found->second;
  }
  // Returns the range of "bytes=first-last" in the request; nullopt if there is no range.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> range() const {
    const std::string text = header("range");
    const std::size_t dash = text.find('-');
    if (!text.starts_with("bytes=") || dash == text.npos) return {};
    const auto first = parse_size(text.substr(6, dash - 6)), last = parse_size(text.substr(dash + 1));
    if (!first || !last) return {};
    return std::pair(*first, *last);
  }
};

struct ServedAnswer {
  int status = 200;
  std::vector<std::string> headers;  // "Name: value"; Content-Length is set from `says_length`
  std::string body;
  bool says_length = true;
  std::optional<std::uint64_t> length;        // declared instead of the actual length
  std::optional<std::size_t> breaks_after{};  // bytes of the body; then the connection is closed
  std::optional<std::size_t> stalls_after{};  // bytes of the body; then nothing until the client disconnects
  bool closes = false;
  std::string raw;  // sent instead of all the above; then the connection is closed
};

// Returns the correct response to any request for an object.
inline ServedAnswer serve(const ServedRequest& request, const std::string& content, const std::string& etag) {
  ServedAnswer answer;
  answer.headers = {"ETag: " + etag};
  const std::string match = request.header("if-match");
  if (!match.empty() && match != etag) {
    answer.status = 412;
    return answer;
  }
  const auto range = request.range();
  if (!range) {
    answer.body = content;
    return answer;
  }
  const std::string total = std::to_string(content.size());
  if (range->first >= content.size()) {
    answer.status = 416;
    answer.headers.push_back("Content-Range: bytes */" + total);
    return answer;
  }
  const std::uint64_t last = std::min<std::uint64_t>(range->second, content.size() - 1);
  answer.status = 206;
  answer.headers.push_back("Content-Range: bytes " + std::to_string(range->first) + "-" + std::to_string(last) + "/" +
                           total);
  answer.body = content.substr(range->first, last - range->first + 1);
  return answer;
}

// The server has one thread per connection, which calls `answer` for its responses.
class HttpServer {
 public:
  using Answer = std::function<ServedAnswer(const ServedRequest&)>;

  explicit HttpServer(Answer answer) : answer_(std::move(answer)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(socket_, 128) != 0 ||
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
      std::abort();
    port_ = ntohs(address.sin_port);
    acceptor_ = std::jthread([this] { accept(); });
  }
  ~HttpServer() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      for (const int connection : open_) ::shutdown(connection, SHUT_RDWR);
      changed_.notify_all();
    }
    ::shutdown(socket_, SHUT_RDWR);
    acceptor_.join();
    threads_.clear();
    ::close(socket_);
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string url(const std::string& path) const { return "http://" + host() + path; }
  std::vector<ServedRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }

 private:
  void accept() {
    while (true) {
      const int connection = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      const std::lock_guard lock(mutex_);
      if (stopping_ || connection < 0) {
        if (connection >= 0) ::close(connection);
        return;
      }
      open_.push_back(connection);
      threads_.emplace_back([this, connection] { converse(connection); });
    }
  }

  void converse(int connection) {
    std::string input;
    while (const auto request = read_request(connection, input))
      if (!send_answer(connection, answer_(*request), request->method == "HEAD")) break;
    const std::lock_guard lock(mutex_);
    open_.remove(connection);
    ::close(connection);
  }

  std::optional<ServedRequest> read_request(int connection, std::string& input) {
    std::size_t end = 0;
    while ((end = input.find("\r\n\r\n")) == input.npos) {
      char some[4096];
      const ssize_t got = ::recv(connection, some, sizeof some, 0);
      if (got <= 0) return {};
      input.append(some, static_cast<std::size_t>(got));
    }
    ServedRequest request;
    std::string head = input.substr(0, end + 2);
    input.erase(0, end + 4);
    const std::size_t first = head.find(' '), second = head.find(' ', first + 1);
    request.method = head.substr(0, first);
    request.target = head.substr(first + 1, second - first - 1);
    for (std::size_t line = head.find("\r\n") + 2; line < head.size(); line = head.find("\r\n", line) + 2) {
      const std::size_t colon = head.find(": ", line), stop = head.find("\r\n", line);
      std::string name = head.substr(line, colon - line);
      for (char& c : name) c = static_cast<char>(std::tolower(c));
      request.headers[name] = head.substr(colon + 2, stop - colon - 2);
    }
    const auto length = parse_size(request.header("content-length")).value_or(0);
    while (input.size() < length) {
      char some[65536];
      const ssize_t got = ::recv(connection, some, sizeof some, 0);
      if (got <= 0) return {};
      input.append(some, static_cast<std::size_t>(got));
    }
    request.body = input.substr(0, length);
    input.erase(0, length);
    const std::lock_guard lock(mutex_);
    request.number = log_.size();
    log_.push_back(request);
    return request;
  }

  // Returns false if the connection must be closed.
  bool send_answer(int connection, const ServedAnswer& answer, bool is_head) {
    if (!answer.raw.empty()) return send_all(connection, answer.raw), false;
    std::string text = "HTTP/1.1 " + std::to_string(answer.status) + " x\r\n";
    for (const std::string& header : answer.headers) text += header + "\r\n";
    if (answer.says_length)
      text += "Content-Length: " + std::to_string(answer.length.value_or(answer.body.size())) + "\r\n";
    text += "\r\n";
    if (is_head) return send_all(connection, text) && answer.says_length;
    text += answer.body.substr(0, std::min(answer.breaks_after.value_or(answer.body.size()),
                                           answer.stalls_after.value_or(answer.body.size())));
    if (!send_all(connection, text)) return false;
    if (answer.stalls_after) {
      char one;
      while (::recv(connection, &one, 1, 0) > 0) {  // until the client disconnects or the server stops
      }
      return false;
    }
    return !answer.breaks_after && !answer.closes && answer.says_length;
  }

  static bool send_all(int connection, const std::string& text) {
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t count = ::send(connection, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count <= 0) return false;
      sent += static_cast<std::size_t>(count);
    }
    return true;
  }

  const Answer answer_;
  int socket_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ServedRequest> log_;  // guarded by mutex_, like the following
  std::list<int> open_;
  bool stopping_ = false;
  std::list<std::jthread> threads_;
  std::jthread acceptor_;
};

}  // namespace feedline::storage
