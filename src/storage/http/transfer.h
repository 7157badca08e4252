// SPDX-License-Identifier: Apache-2.0
#pragma once

// One read of a remote object, including all attempts. A transfer decides which bytes to request, and validates the
// responses; the client (client.h) handles sockets and timers.
//
//   request()  ─►  on_header() ... on_body() ...  ─►  on_end()  ─┬─► kDone
//      ▲                                                         ├─► kAgain, after pause()
//      └─────────────────────────────────────────────────────────┘
//
// Bytes are accepted only if the response declares that they are the requested bytes of the requested version:
//
//   206, right Content-Range       accepted; if short, the rest of the same version is requested
//   200 to a range                 accepted from the offset on, if the response has the total length
//   416                            the object ends before the range: no bytes
//   412, another ETag or length    "changed" (version.h)
//   other Content-Range, more bytes than declared, no length    an error
//   fewer bytes than declared      resumed from where it broke off
//   checksum mismatch, if verified    requested again once, then an error
//
// A request with a body (Call::body) is retried from its beginning. A response with status 200 or 204 is its result,
// unless the site detects an error in it.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "feedline/error.h"
#include "memory/record.h"
#include "storage/http/http_limits.h"
#include "storage/http/response_head.h"
#include "storage/http/site.h"
#include "storage/version.h"

namespace feedline::storage {

// The version of the object to which reads are pinned.
struct HeldTo {
  std::optional<Version> version;  // nullopt: the first version in a response
  std::string etag;                // for If-Match; responses are compared even if it is empty
};

// Statistics of hedged requests. Any thread.
struct HedgeCounts {
  std::atomic<std::uint64_t> made{0}, won{0};
  std::atomic<std::uint64_t> dropped_bytes{0};  // bytes received of the discarded response before it was cancelled
};

// Not thread-safe. Requires: the site and the limits outlive this object.
class Transfer {
 public:
  // Reads [offset, offset + room.size()), truncated at the object's end.
  Transfer(const Site& site, const HttpLimits& limits, std::string object, std::uint64_t offset,
           std::span<std::byte> room, HeldTo held_to);
  // Reads several parts of an object with one request for [offset, offset + bytes), and discards the gaps. Requires:
  // the parts are in ascending order of their offsets and within that range, and the read is pinned to an identifiable
  // version.
  struct Part {
    std::uint64_t begin = 0;  // relative to `offset`
    std::span<std::byte> room;
  };
  Transfer(const Site& site, const HttpLimits& limits, std::string object, std::uint64_t offset, std::uint64_t bytes,
           std::vector<Part> parts, HeldTo held_to);
  // Reads the whole object into `buffer`. kData: it has more than `most` bytes.
  Transfer(const Site& site, const HttpLimits& limits, std::string object, memory::ByteBuffer& buffer,
           std::uint64_t most, HeldTo held_to, std::string query = {});
  // Reads only the object's metadata.
  struct HeadAlone {};
  Transfer(const Site& site, const HttpLimits& limits, std::string object, HeadAlone, HeldTo held_to);
  // Compares the whole object with the server's checksum, if there is one; if they differ, reads it once more. Call
  // before starting.
  void compare_sums() { compares_ = true; }
  // Permits a hedged request if the first one takes too long (client.h). Call this function before starting the
  // transfer; `counts` must outlive the transfer.
  void hedge(HedgeCounts& counts) { hedging_ = &counts; }
  HedgeCounts* hedging() const { return sends_ ? nullptr : hedging_; }

  const Site& site() const { return *site_; }
  const HttpLimits& limits() const { return *limits_; }
  const std::string& object() const { return object_; }

  // ---- for the client ----
  // Returns the next request with its conditions.
  Result<Call> request();
  void begun() { ++tries_; }  // the request was sent
  void on_header(std::string_view line, std::int64_t now);
  // Returns false if no more bytes of this response are needed.
  bool on_body(std::span<const std::byte> bytes);
  enum class Next : std::uint8_t { kDone, kAgain, kAfterRenewal };
  // trouble: the reason why the connection failed; empty if the response is complete.
  Next on_end(std::string_view trouble, bool is_worth_another_try);
  std::chrono::milliseconds pause() const { return pause_; }
  void fail(Error error) { error_ = std::move(error); }
  std::uint64_t bytes_received() const { return received_; }
  bool has_begun() const { return judged_; }  // the body of this response
  bool is_data() const { return taken_; }     // the body of this response
  // Returns how many leading parts are complete and will not be written again.
  std::size_t parts_done() const { return parts_done_; }
  bool has_more_parts() const { return parts_done_ < parts_.size(); }
  bool sends() const { return sends_; }
  std::uint64_t bytes_to_send() const { return sending_; }
  std::uint64_t keys() const { return keys_; }  // generation of the last request's keys: see Site::renew()

  // ---- for the caller, after kDone ----
  Result<std::span<const std::byte>> result() const;
  Result<std::span<const std::byte>> result_of(std::size_t part) const;
  // These functions return properties of the accepted responses.
  const std::optional<Version>& version() const { return version_; }
  const std::string& etag() const { return held_to_.etag; }
  int status() const { return head_.status; }  // of the last response; 0 if there was none
  const ResponseHead& head() const { return head_; }
  // Returns the checksum of a whole object, either computed or from the header.
  const std::optional<ObjectSum>& sum() const { return said_; }
  // For uploads: returns the ETag in the response.
  const std::string& sent_etag() const { return head_.etag; }

 private:
  bool judge();
  bool take_part();
  bool take_from_whole();
  bool take_whole();
  bool take_head();
  bool hold();
  bool refuse(const std::string& why);
  void end_at(std::uint64_t object_bytes);
  bool grow(std::span<const std::byte> bytes);
  Next end_of_data(std::string_view trouble, bool is_worth_another_try);
  Next end_of_sent();
  Next end_of_refusal();
  Next give_up(const std::string& why, int system_errno);
  Next try_again(const std::string& why);
  Next finish_grown();
  Next end_of_bytes();
  void say_changed();
  std::string described(std::uint64_t offset, std::uint64_t bytes) const;
  Error refusal_of(std::uint64_t offset, std::uint64_t bytes) const;
  void put(std::span<const std::byte> bytes);

  const Site* site_;
  const HttpLimits* limits_;
  std::string object_, query_;
  std::uint64_t offset_;
  std::uint64_t size_ = 0;     // bytes outstanding; for a whole object, once its length is known
  std::span<std::byte> room_;  // their destination, if there are no parts
  std::vector<Part> parts_;    // empty: uses room_
  std::size_t parts_done_ = 0;
  memory::ByteBuffer* buffer_ = nullptr;  // whole objects only
  std::uint64_t most_ = 0;
  bool is_sized_ = true;          // size_ is known
  std::vector<std::byte> grown_;  // for a whole object of unknown length
  HeldTo held_to_;
  std::optional<Version> version_;
  std::optional<Error> error_;
  std::optional<std::string> why_;  // the error is, where it is the request's

  std::size_t got_ = 0;  // received bytes of size_
  int tries_ = 0, tries_in_a_row_ = 0, renewals_ = 0;
  std::chrono::milliseconds pause_{0};
  std::uint64_t received_ = 0;
  bool sends_ = false;         // the request has a body; its response is not an object, and is accepted as it is
  std::uint64_t sending_ = 0;  // size of that body
  std::uint64_t keys_ = 0;
  bool heads_ = false;  // only the response header is needed
  bool compares_ = false;
  HedgeCounts* hedging_ = nullptr;
  std::optional<ObjectSum> said_;  // from the first response with data
  int moves_ = 0;
  bool was_damaged_ = false;
  // of the current response
  ResponseHead head_;
  bool judged_ = false, taken_ = false, growing_ = false;
  bool cut_ = false;            // its body continues past the requested range
  std::uint64_t skip_ = 0;      // bytes of the body before the wanted range
  std::uint64_t expected_ = 0;  // wanted bytes of the body
  std::uint64_t had_ = 0;       // wanted bytes received
  std::uint64_t ignored_ = 0;   // bytes of a body that is not data
  std::string refusal_;         // the beginning of a body that is not data
  std::string contradiction_;   // how the header contradicts itself; empty if it does not
};

}  // namespace feedline::storage
