// SPDX-License-Identifier: Apache-2.0
#include "storage/http/transfer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "memory/sample_limit.h"

namespace feedline::storage {
namespace {

constexpr int kOk = 200, kNoContent = 204, kPartial = 206;
constexpr std::size_t kMostOfRefusal = 4096;       // stored, to report the reason
constexpr std::uint64_t kMostIgnored = 64 * 1024;  // read and discarded, so that the connection can be reused
constexpr int kMostDoublings = 20;
constexpr int kMostMoves = 2;  // without data between them: to a bucket's region, or along redirects

std::string range_text(std::uint64_t begin, std::uint64_t bytes) {
  return std::to_string(begin) + "-" + std::to_string(begin + bytes - 1);
}

std::string_view words_of(int status) {
  switch (status) {
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 412:
      return "Precondition Failed";
    case 416:
      return "Range Not Satisfiable";
    case 429:
      return "Too Many Requests";
    case 500:
      return "Internal Server Error";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "";
  }
}

int errno_of(int status) {
  if (status == 404 || status == 410) return ENOENT;
  if (status == 401 || status == 403) return EACCES;
  if (status == 416) return ERANGE;
  return EREMOTEIO;
}

// Returns a random time between half of the pause and the whole pause, so that requests that were rejected together are
// not retried together.
std::chrono::milliseconds jittered(std::chrono::milliseconds pause) {
  const auto half = static_cast<std::uint64_t>(pause.count()) / 2;
  return std::chrono::milliseconds(half + base::mix64(base::now_ns()) % (half + 1));
}

bool can_be_told_apart(const Version& version) { return version.tag != 0 || version.mtime_ns != 0; }

}  // namespace

Transfer::Transfer(const Site& site, const HttpLimits& limits, std::string object, std::uint64_t offset,
                   std::span<std::byte> room, HeldTo held_to)
    : site_(&site),
      limits_(&limits),
      object_(std::move(object)),
      offset_(offset),
      size_(room.size()),
      room_(room),
      held_to_(std::move(held_to)) {}

Transfer::Transfer(const Site& site, const HttpLimits& limits, std::string object, std::uint64_t offset,
                   std::uint64_t bytes, std::vector<Part> parts, HeldTo held_to)
    : site_(&site),
      limits_(&limits),
      object_(std::move(object)),
      offset_(offset),
      size_(bytes),
      parts_(std::move(parts)),
      held_to_(std::move(held_to)) {}

Transfer::Transfer(const Site& site, const HttpLimits& limits, std::string object, memory::ByteBuffer& buffer,
                   std::uint64_t most, HeldTo held_to, std::string query)
    : site_(&site),
      limits_(&limits),
      object_(std::move(object)),
      query_(std::move(query)),
      offset_(0),
      buffer_(&buffer),
      most_(most),
      is_sized_(false),
      held_to_(std::move(held_to)) {}

Transfer::Transfer(const Site& site, const HttpLimits& limits, std::string object, HeadAlone /*head*/, HeldTo held_to)
    : site_(&site),
      limits_(&limits),
      object_(std::move(object)),
      offset_(0),
      is_sized_(false),
      held_to_(std::move(held_to)),
      heads_(true) {}

Result<Call> Transfer::request() {
  head_ = {};
  judged_ = taken_ = growing_ = cut_ = false;
  skip_ = expected_ = had_ = ignored_ = 0;
  refusal_.clear();
  contradiction_.clear();
  grown_.clear();
  if (version_ && !can_be_told_apart(*version_)) got_ = 0;  // the rest might belong to a different object
  const bool asks_sums = heads_ || (compares_ && buffer_ != nullptr && query_.empty());
  FEEDLINE_TRY(Call call,
               asks_sums ? site_->call_with_sums(object_, heads_ ? "HEAD" : "GET") : site_->call(object_, query_));
  keys_ = call.keys;
  sends_ = call.body.has_value();
  sending_ = sends_ ? call.body->size() : 0;
  if (sends_) return call;
  if (is_sized_) call.headers.push_back("Range: bytes=" + range_text(offset_ + got_, size_ - got_));
  if (!held_to_.etag.empty()) call.headers.push_back("If-Match: " + held_to_.etag);
  return call;
}

void Transfer::on_header(std::string_view line, std::int64_t now) { head_.add(line, now); }

bool Transfer::refuse(const std::string& why) {
  give_up(why, EREMOTEIO);
  return false;
}

// Returns whether the response's body contains data of the object, rather than a message.
bool Transfer::judge() {
  judged_ = true;
  if (sends_) return taken_ = growing_ = head_.status == kOk || head_.status == kNoContent;
  if (head_.status != kOk && head_.status != kPartial) return false;
  if (heads_) return taken_ = take_head();
  if (!is_sized_) return taken_ = take_whole();
  const bool is_part = head_.status == kPartial || head_.content_range || head_.has_bad_range;
  return taken_ = is_part ? take_part() : take_from_whole();
}

// Some servers respond to a range request with status 200, but send only the range.
bool Transfer::take_part() {
  const std::uint64_t begin = offset_ + got_, left = size_ - got_;
  const auto& range = head_.content_range;
  if (head_.is_multipart || !range || !range->has_range) return refuse("the response does not specify its byte range");
  expected_ = range->last - range->first + 1;
  if (range->first != begin || expected_ > left)
    return refuse("the response contains a different range, " + range_text(range->first, expected_));
  if (head_.content_length && *head_.content_length != expected_) {
    contradiction_ = "the response contradicts itself: its Content-Length is " + std::to_string(*head_.content_length) +
                     ", but its Content-Range is " + range_text(range->first, expected_);
    return false;
  }
  return hold();
}

bool Transfer::take_from_whole() {
  if (!head_.content_length) return refuse("the response is the whole object, without its length");
  if (!hold()) return false;
  const std::uint64_t begin = offset_ + got_;
  skip_ = std::min(begin, *head_.content_length);
  expected_ = std::min<std::uint64_t>(size_ - got_, *head_.content_length - skip_);
  cut_ = skip_ + expected_ < *head_.content_length;
  return true;
}

bool Transfer::take_head() {
  if (!hold()) return false;
  if (!head_.is_recoded) said_ = head_.sum;
  return is_sized_ = true;  // with size 0
}

bool Transfer::take_whole() {
  if (head_.status != kOk || head_.content_range || head_.has_bad_range)
    return refuse("the response is only a part of the object, but the whole object was requested");
  said_ = head_.is_recoded ? std::nullopt : head_.sum;
  if (!head_.content_length) {
    if (!head_.ends_by_itself || held_to_.version) return refuse("the response does not specify the object's length");
    return growing_ = true;
  }
  if (!hold()) return false;
  expected_ = *head_.content_length;
  auto room = buffer_->make_room(expected_, most_);
  if (!room) {
    error_ = std::move(room).error();
    error_->where.shard = object_;
    return false;
  }
  room_ = *room;
  size_ = room_.size();
  return is_sized_ = true;
}

// All responses must be for the same version of the object.
bool Transfer::hold() {
  auto now = head_.version();
  if (!now && held_to_.version && held_to_.version->tag != 0 && !head_.etag.empty()) {  // "bytes 0-9/*"
    ResponseHead same = head_;
    same.content_range->total = held_to_.version->bytes;
    now = same.version();
  }
  if (!now) return refuse("the response does not specify the object's length");
  const bool is_named = site_->names_versions();
  if (is_named) *now = {now->bytes, 0, held_to_.version ? held_to_.version->tag : 0};
  if (held_to_.version && *held_to_.version != *now) {
    auto same = check_version(object_, *held_to_.version, *now);
    error_ = std::move(same).error();
    return false;
  }
  held_to_.version = version_ = now;
  if (held_to_.etag.empty() && !is_named) held_to_.etag = head_.strong_etag();
  end_at(now->bytes);
  return true;
}

void Transfer::end_at(std::uint64_t object_bytes) {
  if (!is_sized_) return;
  const std::uint64_t there = object_bytes - std::min(offset_, object_bytes);
  size_ = std::min(size_, there);
}

bool Transfer::grow(std::span<const std::byte> bytes) {
  grown_.insert(grown_.end(), bytes.begin(), bytes.end());
  if (grown_.size() <= most_) return true;
  error_ = memory::too_large(grown_.size(), most_).error();
  error_->where.shard = object_;
  return false;
}

bool Transfer::on_body(std::span<const std::byte> bytes) {
  if (error_) return false;
  received_ += bytes.size();
  if (!judged_) judge();
  if (error_) return false;
  if (!contradiction_.empty()) return false;  // the end of its body is unknown, too
  if (!taken_) {
    const std::size_t added = std::min(bytes.size(), kMostOfRefusal - refusal_.size());
    refusal_.append(reinterpret_cast<const char*>(bytes.data()), added);
    return (ignored_ += bytes.size()) <= kMostIgnored;
  }
  if (growing_) return grow(bytes);
  const std::size_t skipped = static_cast<std::size_t>(std::min<std::uint64_t>(skip_, bytes.size()));
  skip_ -= skipped;
  bytes = bytes.subspan(skipped);
  const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), expected_ - had_));
  if (wanted < bytes.size() && !cut_) return refuse("the response has more bytes than it declared");
  if (wanted > 0) {
    put(bytes.first(wanted));
    had_ += wanted;
    tries_in_a_row_ = renewals_ = moves_ = 0;
  }
  return !cut_ || had_ < expected_;
}

// Writes the next bytes to the buffer, or to the parts that they belong to.
void Transfer::put(std::span<const std::byte> bytes) {
  const std::uint64_t begin = got_, end = begin + bytes.size();
  got_ = static_cast<std::size_t>(end);
  if (parts_.empty()) {
    std::memcpy(room_.data() + begin, bytes.data(), bytes.size());
    return;
  }
  for (std::size_t i = parts_done_; i < parts_.size() && parts_[i].begin < end; ++i) {
    const Part& part = parts_[i];
    const std::uint64_t from = std::max(begin, part.begin), to = std::min(end, part.begin + part.room.size());
    if (from < to) std::memcpy(part.room.data() + (from - part.begin), bytes.data() + (from - begin), to - from);
    if (i == parts_done_ && part.begin + part.room.size() <= end) ++parts_done_;
  }
}

Transfer::Next Transfer::on_end(std::string_view trouble, bool is_worth_another_try) {
  if (error_) return Next::kDone;
  if (!judged_ && trouble.empty() && !head_.is_whole) {
    trouble = "the response ended within its headers";
    is_worth_another_try = true;
  }
  if (!judged_ && trouble.empty()) judge();
  if (error_) return Next::kDone;
  if (taken_) return end_of_data(trouble, is_worth_another_try);
  if (!contradiction_.empty())
    return try_again(contradiction_);  // a proxy may have truncated the body and changed its length
  const bool was_ended_by_us = ignored_ > kMostIgnored;
  if (trouble.empty() || was_ended_by_us) return end_of_refusal();
  return is_worth_another_try ? try_again(std::string(trouble)) : give_up(std::string(trouble), EREMOTEIO);
}

Transfer::Next Transfer::end_of_data(std::string_view trouble, bool is_worth_another_try) {
  if (growing_ && trouble.empty()) return sends_ ? end_of_sent() : finish_grown();
  if (!growing_ && got_ == size_) return end_of_bytes();
  if (!growing_ && had_ == expected_ && had_ > 0) {  // part of the range: requests the rest at once
    pause_ = {};
    return tries_ < limits_->tries_in_all ? Next::kAgain : give_up("each response has too few bytes", EREMOTEIO);
  }
  if (!trouble.empty() && !is_worth_another_try) return give_up(std::string(trouble), EREMOTEIO);
  return try_again(trouble.empty() ? "the response ended after " + std::to_string(had_) + " of " +
                                         std::to_string(expected_) + " bytes"
                                   : std::string(trouble));
}

Transfer::Next Transfer::end_of_sent() {
  const std::string_view body(reinterpret_cast<const char*>(grown_.data()), grown_.size());
  if (!site_->denies(body)) return finish_grown();
  refusal_ = body.substr(0, kMostOfRefusal);
  return end_of_refusal();
}

Transfer::Next Transfer::finish_grown() {
  auto room = buffer_->make_room(grown_.size(), most_);
  if (!room) {
    error_ = std::move(room).error();
    return Next::kDone;
  }
  if (!grown_.empty()) std::memcpy(room->data(), grown_.data(), grown_.size());
  room_ = *room;
  got_ = grown_.size();
  size_ = got_;
  return sends_ ? Next::kDone : end_of_bytes();
}

// Called when all bytes have arrived. Compares a whole object with the server's checksum.
Transfer::Next Transfer::end_of_bytes() {
  if (!compares_ || !query_.empty() || buffer_ == nullptr || !said_) return Next::kDone;
  const ObjectSum read = sum_of(said_->kind, room_.first(got_));
  if (read == *said_) return Next::kDone;
  if (std::exchange(was_damaged_, true)) {
    error_ = sums_differ(object_, *said_, read, "the server").error();
    return Next::kDone;
  }
  got_ = 0;  // they may have been damaged in transit
  is_sized_ = false;
  pause_ = {};
  return Next::kAgain;
}

void Transfer::say_changed() {
  error_ = storage_error(
               "the object has changed between index and read: the server has a different version from the one "
               "that was indexed (412 Precondition Failed); open the dataset again to rebuild the index",
               0)
               .error();
  error_->where.shard = object_;
}

Transfer::Next Transfer::end_of_refusal() {
  if (head_.status == 412 && !held_to_.etag.empty()) return say_changed(), Next::kDone;
  if (head_.status == 416 && is_sized_ && head_.content_range && !head_.content_range->has_range &&
      *head_.content_range->total <= offset_ + got_)
    return hold() ? end_at(*head_.content_range->total), Next::kDone : Next::kDone;
  if (moves_ < kMostMoves && site_->has_moved(object_, head_, refusal_)) {
    ++moves_;
    pause_ = {};
    return Next::kAgain;
  }
  std::string why = std::to_string(head_.status);
  if (head_.status == kOk) why += " OK";
  if (const std::string_view words = words_of(head_.status); !words.empty()) why.append(" ").append(words);
  if (const std::string reason = site_->reason(head_, refusal_); !reason.empty()) why += ", " + reason;
  Refused refused = site_->refused(head_, refusal_, keys_);
  if (heads_ && (head_.status == 400 || head_.status == 403))
    refused = Refused::kForCredentials;  // no reason was
                                         // given
  switch (refused) {
    case Refused::kForNow:
      return try_again(why);
    case Refused::kForCredentials:
      moves_ = 0;
      if (renewals_++ == 0) return Next::kAfterRenewal;
      break;
    case Refused::kForGood:
      break;
  }
  return give_up(why, errno_of(head_.status));
}

std::string Transfer::described(std::uint64_t offset, std::uint64_t bytes) const {
  const std::string deed = site_->deed();
  std::string text = "cannot " + (deed.empty() ? "read " : deed);
  if (heads_) text += "the checksum";
  if (deed.empty() && !heads_) text += is_sized_ && bytes > 0 ? "bytes " + range_text(offset, bytes) : "the object";
  text += ": " + *why_;
  if (!head_.request_id.empty()) text += "; request " + head_.request_id;
  if (tries_ > 1) text += "; tried " + std::to_string(tries_) + " times";
  return text;
}

Error Transfer::refusal_of(std::uint64_t offset, std::uint64_t bytes) const {
  Error error = *error_;
  error.what = storage_error(described(offset, bytes), error.system_errno).error().what;
  return error;
}

Transfer::Next Transfer::give_up(const std::string& why, int system_errno) {
  why_ = why;
  error_ = storage_error({}, 0).error();
  error_->system_errno = system_errno;
  error_->where.shard = object_;
  error_ = refusal_of(offset_, size_);
  return Next::kDone;
}

Transfer::Next Transfer::try_again(const std::string& why) {
  ++tries_in_a_row_;
  if (tries_in_a_row_ >= limits_->tries || tries_ >= limits_->tries_in_all) return give_up(why, errno_of(head_.status));
  const auto doubled = limits_->first_pause * (1 << std::min(tries_in_a_row_ - 1, kMostDoublings));
  pause_ = jittered(std::min(doubled, limits_->longest_pause));
  if (head_.retry_after) {
    const auto asked = std::chrono::milliseconds(*head_.retry_after);
    if (asked > limits_->longest_retry_after)
      return give_up(why + ", and asks to wait " + std::to_string(head_.retry_after->count()) + " s", EAGAIN);
    pause_ += asked;
  }
  return Next::kAgain;
}

Result<std::span<const std::byte>> Transfer::result() const {
  if (error_) return std::unexpected(*error_);
  return room_.first(got_);
}

Result<std::span<const std::byte>> Transfer::result_of(std::size_t part) const {
  const auto& [begin, room] = parts_[part];
  if (error_ && part >= parts_done_) return std::unexpected(why_ ? refusal_of(offset_ + begin, room.size()) : *error_);
  const std::uint64_t got = got_ - std::min<std::uint64_t>(got_, begin);
  return room.first(static_cast<std::size_t>(std::min<std::uint64_t>(room.size(), got)));
}

}  // namespace feedline::storage
