// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/upload.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "memory/record.h"
#include "storage/http/transfer.h"
#include "storage/http/url.h"
#include "storage/local_file.h"

namespace feedline::storage {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMostParts = 10'000;
constexpr std::uint64_t kMostAnswer = 64 << 20;  // entries per page of unfinished uploads
constexpr auto kLongestCompletion = 300s;        // without a byte, because the server may be combining thousands of
                                                 // parts

Error cancelled() { return {ErrorCode::kCancelled, "the upload was cancelled", {}, 0}; }

// S3's limits for uploads.
class SendingSite final : public Site {
 public:
  SendingSite(std::shared_ptr<const S3Site> s3, S3Order order, std::string deed)
      : s3_(std::move(s3)), order_(std::move(order)), deed_(std::move(deed)) {
    if (!order_.body) return;
    const std::string_view bytes(reinterpret_cast<const char*>(order_.body->data()), order_.body->size());
    order_.payload =
        s3_->is_encrypted() && !bytes.empty() ? std::string(kUnsignedPayload) : base::hex_of(base::sha256(bytes));
  }
  Result<Call> call(const std::string& object, std::string_view /*query*/) const override {
    return s3_->call(object, order_);
  }
  Result<void> prepare() const override { return s3_->prepare(); }
  Result<void> renew(std::uint64_t keys) const override { return s3_->renew(keys); }
  Refused refused(const ResponseHead& head, std::string_view body, std::uint64_t keys) const override {
    return s3_->refused(head, body, keys);
  }
  std::string reason(const ResponseHead& head, std::string_view body) const override { return s3_->reason(head, body); }
  bool has_moved(const std::string& object, const ResponseHead& head, std::string_view body) const override {
    return s3_->has_moved(object, head, body);
  }
  bool denies(std::string_view body) const override { return body.find("<Error") != body.npos; }
  std::string deed() const override { return deed_; }

 private:
  const std::shared_ptr<const S3Site> s3_;
  S3Order order_;
  const std::string deed_;
};

// A request and all objects that must outlive it.
struct Request {
  Request(const S3Remote& remote, const std::string& object, S3Order order, std::string deed, HttpLimits how)
      : limits(how),
        site(remote.site, std::move(order), std::move(deed)),
        transfer(site, limits, object, answer, kMostAnswer, {}) {}
  const HttpLimits limits;
  const SendingSite site;
  memory::ByteBuffer answer;
  Transfer transfer;
  std::uint64_t part = 0;
  std::size_t room = 0;  // the buffer of its body

  std::string_view text() const {
    const auto bytes = transfer.result();
    return bytes ? std::string_view(reinterpret_cast<const char*>(bytes->data()), bytes->size()) : std::string_view();
  }
};

// The requests in flight of one thread, which waits for any of them.
class Requests final : public Waiting {
 public:
  Requests(const S3Remote& remote, std::stop_token stop) : remote_(remote), stop_(std::move(stop)) {}
  // Cancels all requests and waits for them, because they would otherwise notify a destroyed object.
  ~Requests() override { give_up(); }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;

  // Requires: the request stays valid until next() returns it, or give_up() returns.
  Result<void> start(Request& request) {
    FEEDLINE_CHECK_OK(request.site.prepare());
    if (client_ == nullptr) {
      client_ = remote_.client;
      if (client_ == nullptr) {
        FEEDLINE_TRY(client_, Client::here());
      }
    }
    running_.emplace(&request.transfer, &request);
    client_->start(request.transfer, *this);
    return {};
  }
  std::size_t running() const { return running_.size(); }
  // Returns a request that has finished. kCancelled: a stop was requested. Requires: requests are in flight.
  Result<Request*> next() {
    while (true) {
      std::pair<Transfer*, Transfer::Next> arrived;
      {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop_, [this] { return !arrived_.empty(); })) return std::unexpected(cancelled());
        arrived = arrived_.front();
        arrived_.pop_front();
      }
      Request* const request = running_.at(arrived.first);
      if (arrived.second == Transfer::Next::kDone) {
        running_.erase(arrived.first);
        return request;
      }
      if (const auto renewed = request->site.renew(request->transfer.keys()); !renewed) {
        running_.erase(arrived.first);
        request->transfer.fail(renewed.error());
        return request;
      }
      client_->start(request->transfer, *this);
    }
  }
  void give_up() {
    for (const auto& [transfer, request] : running_) client_->give_up(*transfer);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return arrived_.size() == running_.size(); });
    arrived_.clear();
    running_.clear();
  }

 private:
  void notify(std::span<const Notice> notices) override {
    const std::lock_guard lock(mutex_);
    for (const Notice& notice : notices)
      if (notice.how) arrived_.emplace_back(notice.transfer, *notice.how);
    changed_.notify_one();  // under the lock: the waiting thread may destroy this
  }

  const S3Remote& remote_;
  const std::stop_token stop_;
  Client* client_ = nullptr;
  std::map<Transfer*, Request*> running_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::pair<Transfer*, Transfer::Next>> arrived_;  // guarded by mutex_
};

Result<void> carry_out(const S3Remote& remote, Request& request, std::stop_token stop) {
  Requests requests(remote, std::move(stop));
  FEEDLINE_CHECK_OK(requests.start(request));
  FEEDLINE_CHECK_OK(requests.next());
  FEEDLINE_CHECK_OK(request.transfer.result());
  return {};
}

constexpr std::span<const std::byte> kNothing;

// Returns limits for clean-up after a stop request; the clean-up may take only seconds.
HttpLimits hurried(HttpLimits limits) {
  limits.connect = std::min<std::chrono::milliseconds>(limits.connect, 2s);
  limits.stall = std::min<std::chrono::milliseconds>(limits.stall, 3s);
  limits.tries = std::min(limits.tries, 2);
  limits.longest_pause = std::min<std::chrono::milliseconds>(limits.longest_pause, 200ms);
  limits.longest_retry_after = 0s;
  return limits;
}

Error located(Error error, const std::string& object) {
  error.where.shard = object;
  return error;
}

std::unexpected<Error> not_taken(const std::string& object, const std::string& what) {
  auto error = storage_error(what, 0);
  error.error().where.shard = object;
  return error;
}

// Uploads a file in parts.
class Multipart {
 public:
  Multipart(const S3Remote& remote, const OpenFile& file, const std::string& file_name, const std::string& object,
            const UploadLimits& limits, std::stop_token stop)
      : remote_(remote),
        file_(file),
        file_name_(file_name),
        object_(object),
        bytes_(static_cast<std::uint64_t>(file.status.st_size)),
        part_bytes_(std::max(limits.part_bytes, (bytes_ + kMostParts - 1) / kMostParts)),
        parts_((bytes_ + part_bytes_ - 1) / part_bytes_),
        at_once_(std::min<std::uint64_t>(std::max<std::size_t>(limits.at_once, 1), parts_)),
        stop_(std::move(stop)),
        etags_(parts_) {}

  Result<std::string> run() {
    FEEDLINE_CHECK_OK(begin());
    if (auto sent = send_parts(); !sent) return abort(std::move(sent).error());
    auto etag = complete();
    if (!etag) return abort(std::move(etag).error());
    return etag;
  }

 private:
  Result<void> begin() {
    Request request(remote_, object_, {.method = "POST", .query = "uploads=", .body = kNothing}, "begin an upload",
                    remote_.limits);
    FEEDLINE_CHECK_OK(carry_out(remote_, request, stop_));
    id_ = xml_text(request.text(), "UploadId");
    if (id_.empty()) return not_taken(object_, "cannot begin an upload: the response has no UploadId");
    return {};
  }

  Result<void> send_parts() {
    std::vector<std::vector<std::byte>> rooms(at_once_);
    std::list<Request> made;  // declared before `requests`, which cancels requests in flight
    std::vector<std::size_t> free;
    for (std::size_t i = at_once_; i-- > 0;) free.push_back(i);
    Requests requests(remote_, stop_);
    for (std::uint64_t next = 0; next < parts_ || requests.running() > 0;) {
      if (stop_.stop_requested()) return std::unexpected(cancelled());
      if (next < parts_ && !free.empty()) {
        FEEDLINE_CHECK_OK(read_part(next, rooms[free.back()]));
        const S3Order order{.method = "PUT",
                            .query = query_text({{"partNumber", std::to_string(next + 1)}, {"uploadId", id_}}),
                            .body = rooms[free.back()]};
        Request& request = made.emplace_back(remote_, object_, order,
                                             "write part " + std::to_string(next + 1) + " of " + std::to_string(parts_),
                                             remote_.limits);
        request.part = next++;
        request.room = free.back();
        free.pop_back();
        FEEDLINE_CHECK_OK(requests.start(request));
        continue;
      }
      FEEDLINE_TRY(Request* const done, requests.next());
      FEEDLINE_CHECK_OK(done->transfer.result());
      etags_[done->part] = done->transfer.sent_etag();
      if (etags_[done->part].empty())
        return not_taken(object_, "cannot write part " + std::to_string(done->part + 1) + ": the response has no ETag");
      free.push_back(done->room);
      made.remove_if([done](const Request& request) { return &request == done; });
    }
    return {};
  }

  Result<void> read_part(std::uint64_t part, std::vector<std::byte>& room) {
    const std::uint64_t offset = part * part_bytes_;
    room.resize(static_cast<std::size_t>(std::min(part_bytes_, bytes_ - offset)));
    FEEDLINE_TRY(const auto got, read_file(system_reads(), file_.fd.get(), FileRead(file_name_, room, offset)));
    if (got.size() == room.size()) return {};
    return file_error("the file became shorter during the upload", file_name_, 0);
  }

  Result<std::string> complete() {
    std::string list = "<CompleteMultipartUpload>";
    for (std::uint64_t i = 0; i < parts_; ++i)
      list += "<Part><PartNumber>" + std::to_string(i + 1) + "</PartNumber><ETag>" + etags_[i] + "</ETag></Part>";
    list += "</CompleteMultipartUpload>";
    HttpLimits patient = remote_.limits;
    patient.stall = std::max<std::chrono::milliseconds>(patient.stall, patient.stall * (kLongestCompletion / 20s));
    const S3Order order{
        .method = "POST", .query = query_text({{"uploadId", id_}}), .body = std::as_bytes(std::span<const char>(list))};
    Request request(remote_, object_, order, "complete the upload", patient);
    if (auto done = carry_out(remote_, request, stop_); !done) {
      if (done.error().system_errno == ENOENT)  // curl itself retries once if a reused connection is closed
        if (auto etag = etag_if_it_is_there(); !etag.empty()) return etag;
      return std::unexpected(std::move(done).error());
    }
    std::string etag = completed_etag(request.text());
    if (etag.empty())
      return not_taken(object_, "cannot complete the upload: the response does not confirm that the object exists");
    return etag;
  }

  // Returns the ETag of the object if it exists; the ETag of a multipart object ends with the number of parts.
  std::string etag_if_it_is_there() const {
    std::vector<std::byte> room(1);
    Transfer transfer(*remote_.site, remote_.limits, object_, 0, room, {});
    const Remote remote{remote_.site, remote_.limits, remote_.client};
    if (!remote.carry_out(transfer) || !transfer.version() || transfer.version()->bytes != bytes_) return {};
    return transfer.etag().find("-" + std::to_string(parts_)) == std::string::npos ? std::string() : transfer.etag();
  }

  // error: the error of the first failure.
  std::unexpected<Error> abort(Error error) {
    Request request(remote_, object_, {.method = "DELETE", .query = query_text({{"uploadId", id_}}), .body = kNothing},
                    "abort the upload", hurried(remote_.limits));
    const auto aborted = carry_out(remote_, request, {});
    if (!aborted && aborted.error().system_errno != ENOENT)
      error.what += "; and its parts stay until they are removed: " + aborted.error().what;
    return std::unexpected(located(std::move(error), object_));
  }

  const S3Remote& remote_;
  const OpenFile& file_;
  const std::string& file_name_;
  const std::string& object_;
  const std::uint64_t bytes_, part_bytes_, parts_;
  const std::size_t at_once_;
  const std::stop_token stop_;
  std::string id_;
  std::vector<std::string> etags_;
};

}  // namespace

Result<std::string> put_object(const S3Remote& remote, const std::string& object, std::span<const std::byte> bytes,
                               std::stop_token stop) {
  Request request(remote, object, {.method = "PUT", .body = bytes}, "write the object", remote.limits);
  if (auto done = carry_out(remote, request, std::move(stop)); !done)
    return std::unexpected(located(std::move(done).error(), object));
  return request.transfer.sent_etag();
}

Result<std::string> upload_file(const S3Remote& remote, const std::string& file, const std::string& object,
                                const UploadLimits& limits, std::stop_token stop) {
  FEEDLINE_TRY(const OpenFile open, open_regular_file(file));
  const auto bytes = static_cast<std::uint64_t>(open.status.st_size);
  if (bytes > limits.part_bytes) return Multipart(remote, open, file, object, limits, std::move(stop)).run();
  std::vector<std::byte> content(static_cast<std::size_t>(bytes));
  FEEDLINE_TRY(const auto got, read_file(system_reads(), open.fd.get(), FileRead(file, content, 0)));
  if (got.size() < bytes) return file_error("the file became shorter during the upload", file, 0);
  return put_object(remote, object, content, std::move(stop));
}

Result<void> remove_object(const S3Remote& remote, const std::string& object) {
  Request request(remote, object, {.method = "DELETE", .body = kNothing}, "remove the object", remote.limits);
  auto done = carry_out(remote, request, {});
  return done || done.error().system_errno != ENOENT ? done : Result<void>();
}

Result<std::vector<S3Upload>> unfinished_uploads(const S3Remote& remote, const std::string& folder) {
  std::vector<S3Upload> uploads;
  const auto name = s3_name(folder);
  if (!name) return config_error("'" + folder + "' has no bucket");
  std::map<std::string, std::string> query{
      {"uploads", ""}, {"encoding-type", "url"}, {"prefix", std::string(name->key)}};
  const Remote reading{remote.site, remote.limits, remote.client};
  while (true) {
    memory::ByteBuffer buffer;
    Transfer transfer(*remote.site, remote.limits, folder, buffer, kMostAnswer, {}, query_text(query));
    FEEDLINE_TRY(const auto bytes, reading.carry_out(transfer));
    FEEDLINE_TRY(S3Uploads page, parse_uploads({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    std::ranges::move(page.uploads, std::back_inserter(uploads));
    if (page.next_key.empty()) return uploads;
    if (page.next_key == query["key-marker"] && page.next_id == query["upload-id-marker"])
      return not_taken(folder, "the server keeps returning pages of the list of uploads");
    query["key-marker"] = page.next_key;
    query["upload-id-marker"] = page.next_id;
  }
}

Result<void> abort_upload(const S3Remote& remote, const std::string& object, const std::string& id) {
  Request request(remote, object, {.method = "DELETE", .query = query_text({{"uploadId", id}}), .body = kNothing},
                  "abort an upload", remote.limits);
  auto done = carry_out(remote, request, {});
  return done || done.error().system_errno != ENOENT ? done : Result<void>();
}

}  // namespace feedline::storage
