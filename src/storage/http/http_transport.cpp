// SPDX-License-Identifier: Apache-2.0
#include "storage/http/http_transport.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "storage/http/url.h"

namespace feedline::storage {
namespace {

// Only reads of identifiable versions may finish before the whole response has arrived: for these versions, only the
// rest of the response is requested after an interruption.
bool can_be_joined(const HeldTo& held_to) {
  return held_to.version && (held_to.version->tag != 0 || held_to.version->mtime_ns != 0);
}

}  // namespace

// A read that has not finished.
struct HttpTransport::Asked {
  Read* read = nullptr;
  std::span<std::byte> room;
  std::size_t parts = 0;       // outstanding
  std::optional<Error> error;  // of the first part
  std::uint64_t error_at = 0;  // where that is
  bool is_given_up = false;
  std::vector<Request*> requests;  // requests for these bytes
};

struct HttpTransport::Request {
  struct Part {
    Asked* asked = nullptr;
    std::uint64_t at = 0;  // offset in the read
    std::uint64_t bytes = 0;
  };
  std::optional<Transfer> transfer;
  std::vector<Part> parts;
  std::size_t given = 0;  // the number of them that were reported to their reads
  bool is_whole = false;  // a whole object, not a range

  bool is_wanted() const {
    return std::any_of(parts.begin() + static_cast<std::ptrdiff_t>(given), parts.end(),
                       [](const Part& part) { return !part.asked->is_given_up; });
  }
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
    read_piece(read);  // a reader of a wrapper or of another storage
    return finish(read);
  }
  if (!read.piece.reader && remote_.reads_here && remote_.reads_here(read)) return finish(read);
  const auto room = prepare(read);
  if (!room) {
    read.bytes = std::unexpected(room.error());
    return finish(read);
  }
  if (remote != nullptr && room->empty()) {  // entirely past the end of the object
    read.bytes = *room;
    return finish(read);
  }
  auto made = std::make_unique<Asked>();
  Asked& asked = *made;
  asked.read = &read;
  asked_.emplace(&read, std::move(made));
  if (remote != nullptr) {
    asked.room = *room;
    waiting_.push_back(&asked);
    return;
  }
  auto request = std::make_unique<Request>();
  request->is_whole = true;
  request->parts.push_back({&asked, 0, 0});
  asked.parts = 1;
  request->transfer.emplace(*remote_.site, remote_.limits, read.piece.path, read.buffer, read.most_bytes,
                            HeldTo{read.version, {}});
  begin(std::move(request));
}

// Returns the buffer for the part of a range that is inside the object.
Result<std::span<std::byte>> HttpTransport::prepare(Read& read) {
  FEEDLINE_CHECK_OK(remote_.site->prepare());
  if (!read.piece.reader) return std::span<std::byte>();
  FEEDLINE_CHECK_OK(check_piece_version(read));
  FEEDLINE_TRY(const auto room, read.buffer.make_room(read.piece.bytes, read.most_bytes));
  const auto& reader = static_cast<const RemoteReader&>(*read.piece.reader);
  return room.first(static_cast<std::size_t>(reader.bytes_there(read.piece.offset, room.size())));
}

const std::string& HttpTransport::host_of(const std::string& object) {
  const auto [host, is_new] = hosts_.try_emplace(object);
  if (!is_new) return host->second;
  if (const auto call = remote_.site->call(object, {}))
    if (const auto parts = parts_of_url(call->url)) host->second = parts->authority;
  return host->second;
}

RangeLimits HttpTransport::limits_of(const std::string& host, bool joins) const {
  const auto client = this->client();
  RangeLimits limits = range_limits(client ? (*client)->tally().speed(host) : LinkSpeed{});
  if (!joins) limits.longest_joined = 0;
  return limits;
}

// Plans the requests for all waiting reads, using measurements of each host.
void HttpTransport::start_waiting() {
  if (waiting_.empty()) return;
  std::map<std::pair<std::string, bool>, std::vector<Asked*>> groups;
  for (Asked* const asked : std::exchange(waiting_, {})) {
    const auto& reader = static_cast<const RemoteReader&>(*asked->read->piece.reader);
    groups[{host_of(reader.name()), can_be_joined(reader.held_to())}].push_back(asked);
  }
  for (const auto& [key, reads] : groups) {
    std::unordered_map<std::string_view, std::size_t> objects;
    std::vector<WantedRange> wanted;
    for (const Asked* const asked : reads) {
      const std::size_t object = objects.try_emplace(asked->read->piece.name(), objects.size()).first->second;
      wanted.push_back({object, asked->read->piece.offset, asked->room.size()});
    }
    const auto requests = plan_ranges(wanted, limits_of(key.first, key.second));
    for (const RangeRequest& request : requests)
      for (const RangePart& part : request.parts) ++reads[part.read]->parts;
    for (const RangeRequest& request : requests) start_request(request, reads);
  }
}

void HttpTransport::start_request(const RangeRequest& planned, const std::vector<Asked*>& reads) {
  auto request = std::make_unique<Request>();
  std::vector<Transfer::Part> rooms;
  for (const RangePart& part : planned.parts) {
    Asked& asked = *reads[part.read];
    const std::uint64_t at = part.offset - asked.read->piece.offset;
    request->parts.push_back({&asked, at, part.bytes});
    rooms.push_back({part.offset - planned.offset,
                     asked.room.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(part.bytes))});
    asked.requests.push_back(request.get());
    remote_.traffic->wanted_bytes.fetch_add(part.bytes, std::memory_order_relaxed);
    if (at == 0) remote_.traffic->reads.fetch_add(1, std::memory_order_relaxed);
  }
  remote_.traffic->requests.fetch_add(1, std::memory_order_relaxed);
  remote_.traffic->asked_bytes.fetch_add(planned.bytes, std::memory_order_relaxed);
  const auto& reader = static_cast<const RemoteReader&>(*reads[planned.parts.front().read]->read->piece.reader);
  request->transfer.emplace(*remote_.site, remote_.limits, reader.name(), planned.offset, planned.bytes,
                            std::move(rooms), reader.held_to());
  begin(std::move(request));
}

void HttpTransport::begin(std::unique_ptr<Request> request) {
  Transfer& transfer = *request->transfer;
  remote_.prepare(transfer);
  Request& stored = *requests_.emplace(&transfer, std::move(request)).first->second;
  if (stored.is_whole) stored.parts.front().asked->requests.push_back(&stored);
  const auto client = this->client();
  if (client) return (*client)->start(transfer, *this);
  transfer.fail(client.error());
  take({&transfer, 0, Transfer::Next::kDone});
}

void HttpTransport::notify(std::span<const Notice> notices) {
  const std::lock_guard lock(mutex_);
  events_.insert(events_.end(), notices.begin(), notices.end());
  arrived_.notify_one();  // under the lock: the thread that receives the last event may destroy this
}

Read* HttpTransport::finished(Clock::time_point until) {
  start_waiting();
  while (true) {
    if (!done_.empty()) {
      Read* const read = done_.front();
      done_.pop_front();
      return read;
    }
    if (came_.empty()) {
      std::unique_lock lock(mutex_);
      arrived_.wait_until(lock, until, [this] { return !events_.empty() || woken_; });
      if (events_.empty()) {
        woken_ = false;
        return nullptr;
      }
      std::swap(came_, events_);
    }
    const Notice notice = came_.front();
    came_.pop_front();
    take(notice);
  }
}

void HttpTransport::take(const Notice& notice) {
  Request& request = *requests_.find(notice.transfer)->second;
  if (!notice.how) return give_parts(request, notice.parts_done);
  if (*notice.how == Transfer::Next::kAfterRenewal) {
    const auto renewed = remote_.site->renew(request.transfer->keys());
    const auto client = this->client();
    if (renewed && client) return (*client)->start(*request.transfer, *this);
    request.transfer->fail(renewed ? client.error() : renewed.error());
  }
  if (request.is_whole)
    give_whole(request);
  else
    give_parts(request, request.parts.size());
  requests_.erase(notice.transfer);
}

void HttpTransport::give_whole(Request& request) {
  Read& read = *request.parts.front().asked->read;
  read.bytes = request.transfer->result();
  if (read.bytes) read.whole_version = request.transfer->version();
  if (read.bytes && remote_.reading.compares_sums) remote_.traffic->count(*request.transfer);
  read.was_near = false;
  asked_.erase(&read);
  finish(read);
}

// Until the transfer is over, only the parts before `until` are complete, and no others may be accessed.
void HttpTransport::give_parts(Request& request, std::size_t until) {
  for (; request.given < until; ++request.given) {
    const auto& [asked, at, bytes] = request.parts[request.given];
    if (until == request.parts.size()) {
      const auto came = request.transfer->result_of(request.given);
      if (!came && (!asked->error || at < asked->error_at)) {
        asked->error = came.error();
        asked->error_at = at;
      }
      if (came && came->size() < bytes)  // the object ends there
        asked->room = asked->room.first(std::min(asked->room.size(), static_cast<std::size_t>(at) + came->size()));
    }
    std::erase(asked->requests, &request);
    if (--asked->parts > 0) continue;
    Read& read = *asked->read;
    read.bytes = asked->room;
    if (asked->error) read.bytes = std::unexpected(std::move(*asked->error));
    read.was_near = false;
    asked_.erase(&read);
    finish(read);
  }
}

void HttpTransport::give_up(Read& read) {
  const auto found = asked_.find(&read);
  if (found == asked_.end()) return;
  Asked& asked = *found->second;
  if (std::erase(waiting_, &asked) > 0) {
    read.bytes = std::unexpected(Error{ErrorCode::kCancelled, "the read was cancelled", {}, 0});
    asked_.erase(found);
    return finish(read);
  }
  asked.is_given_up = true;
  const auto client = this->client();
  if (!client) return;
  for (Request* const request : asked.requests)  // other reads of a coalesced request continue
    if (!request->is_wanted()) (*client)->give_up(*request->transfer);
}

void HttpTransport::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  arrived_.notify_one();
}

}  // namespace feedline::storage
