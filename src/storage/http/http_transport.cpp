// SPDX-License-Identifier: Apache-2.0
#include "storage/http/http_transport.h"

#include <optional>
#include <utility>

namespace feedline::storage {

struct HttpTransport::Running {
  Read* read = nullptr;
  std::optional<Transfer> transfer;
};

HttpTransport::HttpTransport(Remote remote) : remote_(std::move(remote)) {}
HttpTransport::~HttpTransport() = default;

Result<Client*> HttpTransport::client() const {
  if (remote_.client != nullptr) return remote_.client;
  return Client::here();
}

void HttpTransport::start(Read& read) {
  const auto* const remote = dynamic_cast<const RemoteReader*>(read.piece.reader.get());
  if (read.piece.reader && remote == nullptr) {
    read_piece(read);  // of a wrapper, or another storage
    return finish(read);
  }
  auto running = std::make_unique<Running>();
  running->read = &read;
  if (const auto prepared = prepare(*running); !prepared) {
    read.bytes = std::unexpected(prepared.error());
    return finish(read);
  }
  if (!running->transfer) return finish(read);  // no byte of it lies in the object
  auto client = this->client();
  if (!client) {
    read.bytes = std::unexpected(client.error());
    return finish(read);
  }
  Transfer& transfer = *running->transfer;
  running_.emplace(&transfer, std::move(running));
  (*client)->start(transfer, *this);
}

Result<void> HttpTransport::prepare(Running& running) {
  Read& read = *running.read;
  FEEDLINE_CHECK_OK(remote_.site->prepare());
  if (!read.piece.reader) {
    running.transfer.emplace(*remote_.site, remote_.limits, read.piece.path, read.buffer, read.most_bytes,
                             HeldTo{read.version, {}});
    return {};
  }
  FEEDLINE_CHECK_OK(check_piece_version(read));
  FEEDLINE_TRY(auto room, read.buffer.make_room(read.piece.bytes, read.most_bytes));
  const auto& reader = static_cast<const RemoteReader&>(*read.piece.reader);
  room = room.first(static_cast<std::size_t>(reader.bytes_there(read.piece.offset, room.size())));
  read.bytes = room;
  if (!room.empty())
    running.transfer.emplace(*remote_.site, remote_.limits, reader.name(), read.piece.offset, room, reader.held_to());
  return {};
}

void HttpTransport::finish(Read& read) { without_request_.push_back(&read); }

void HttpTransport::finished(Transfer& transfer, Transfer::Next how) {
  const std::lock_guard lock(mutex_);
  finished_.emplace_back(&transfer, how);
  arrived_.notify_one();  // under the lock: whoever takes the last one may destroy this
}

Read* HttpTransport::finished(Clock::time_point until) {
  while (true) {
    if (!without_request_.empty()) {
      Read* const read = without_request_.front();
      without_request_.pop_front();
      return read;
    }
    std::pair<Transfer*, Transfer::Next> next;
    {
      std::unique_lock lock(mutex_);
      arrived_.wait_until(lock, until, [this] { return !finished_.empty() || woken_; });
      if (finished_.empty()) {
        woken_ = false;
        return nullptr;
      }
      next = finished_.front();
      finished_.pop_front();
    }
    Running& running = *running_.find(next.first)->second;
    if (next.second == Transfer::Next::kDone) return give_back(running);
    const auto renewed = remote_.site->renew();
    const auto client = this->client();
    if (renewed && client) {
      (*client)->start(*running.transfer, *this);
      continue;
    }
    running.transfer->fail(renewed ? client.error() : renewed.error());
    return give_back(running);
  }
}

Read* HttpTransport::give_back(Running& running) {
  Read* const read = running.read;
  read->bytes = running.transfer->result();
  read->was_near = false;
  running_.erase(&*running.transfer);
  return read;
}

void HttpTransport::give_up(Read& read) {
  for (const auto& [transfer, running] : running_)
    if (running->read == &read)
      if (const auto client = this->client()) (*client)->give_up(*transfer);
}

void HttpTransport::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  arrived_.notify_one();
}

}  // namespace feedline::storage
