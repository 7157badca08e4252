// SPDX-License-Identifier: Apache-2.0
#pragma once

// One read of a remote object, over all the tries that it takes. It says what to ask for and judges what comes; sockets
// and clocks are the client's (client.h).
//
//   request()  ─►  on_header() ... on_body() ...  ─►  on_end()  ─┬─► kDone
//      ▲                                                         ├─► kAgain, after pause()
//      └─────────────────────────────────────────────────────────┘
//
// Nothing becomes data but bytes of which the answer says that they are the ones asked for, of the version asked for:
//
//   206, right Content-Range       taken; fewer than asked: the rest is asked for, by the same version
//   200 to a range                 taken from the offset on, where the answer says how long the whole is
//   416                            the object ends before: no bytes
//   412, another ETag or length    "changed" (version.h)
//   other Content-Range, more bytes than said, no length    an error
//   fewer bytes than said          asked for again, from where it broke off
//   bytes with another checksum    asked for again once, then an error; where they are to be compared
//
// A request that sends something (Call::body) is made again as a whole; what answers 200 or 204 is what it is, unless
// the site finds a refusal in it.

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

// Which object the reads are held to.
struct HeldTo {
  std::optional<Version> version;  // nullopt: whichever answers first
  std::string etag;                // for If-Match; empty: its answers are compared all the same
};

// Second requests for one that was late. Any thread.
struct HedgeCounts {
  std::atomic<std::uint64_t> made{0}, won{0};
  std::atomic<std::uint64_t> dropped_bytes{0};  // that came of the answer that was not taken, until it was ended
};

// Not for several threads at once. Requires: the site and the limits outlive it.
class Transfer {
 public:
  // [offset, offset + room.size()), less what lies behind the object's end.
  Transfer(const Site& site, const HttpLimits& limits, std::string object, std::uint64_t offset,
           std::span<std::byte> room, HeldTo held_to);
  // Several parts of an object, by one request for [offset, offset + bytes): what lies between them is dropped.
  // Requires: parts in order of their beginnings, all of them in that range; held to a version that can be told apart
  // from others.
  struct Part {
    std::uint64_t begin = 0;  // behind `offset`
    std::span<std::byte> room;
  };
  Transfer(const Site& site, const HttpLimits& limits, std::string object, std::uint64_t offset, std::uint64_t bytes,
           std::vector<Part> parts, HeldTo held_to);
  // All of the object, into `buffer`; kData where it has more than `most` bytes.
  Transfer(const Site& site, const HttpLimits& limits, std::string object, memory::ByteBuffer& buffer,
           std::uint64_t most, HeldTo held_to, std::string query = {});
  // No bytes: what the server says of the object besides them.
  struct HeadAlone {};
  Transfer(const Site& site, const HttpLimits& limits, std::string object, HeadAlone, HeldTo held_to);
  // All of an object is compared with the checksum that the server says, where it says one; what differs is read once
  // more. Before it is started.
  void compare_sums() { compares_ = true; }
  // A second request may be made where the first one is late (client.h). Before it is started; they outlive it.
  void hedge(HedgeCounts& counts) { hedging_ = &counts; }
  HedgeCounts* hedging() const { return sends_ ? nullptr : hedging_; }

  const Site& site() const { return *site_; }
  const HttpLimits& limits() const { return *limits_; }
  const std::string& object() const { return object_; }

  // ---- the client ----
  // The next request, with its conditions.
  Result<Call> request();
  void begun() { ++tries_; }  // it was sent
  void on_header(std::string_view line, std::int64_t now);
  // false: no more is wanted of this answer.
  bool on_body(std::span<const std::byte> bytes);
  enum class Next : std::uint8_t { kDone, kAgain, kAfterRenewal };
  // trouble: what broke the connection, in words; empty: the answer came to its end.
  Next on_end(std::string_view trouble, bool is_worth_another_try);
  std::chrono::milliseconds pause() const { return pause_; }
  void fail(Error error) { error_ = std::move(error); }
  std::uint64_t bytes_received() const { return received_; }
  bool has_begun() const { return judged_; }  // of this answer: its body
  bool is_data() const { return taken_; }     // likewise
  // Parts, from the first on, that have all their bytes: nobody writes to them any more.
  std::size_t parts_done() const { return parts_done_; }
  bool has_more_parts() const { return parts_done_ < parts_.size(); }
  bool sends() const { return sends_; }
  std::uint64_t bytes_to_send() const { return sending_; }
  std::uint64_t keys() const { return keys_; }  // of the last request: see Site::renew()

  // ---- whoever asked, after kDone ----
  Result<std::span<const std::byte>> result() const;
  Result<std::span<const std::byte>> result_of(std::size_t part) const;
  // Of the answers that were taken.
  const std::optional<Version>& version() const { return version_; }
  const std::string& etag() const { return held_to_.etag; }
  int status() const { return head_.status; }  // of the last answer; 0: there was none
  // Of a whole object, or its head.
  const std::optional<ObjectSum>& sum() const { return said_; }
  // Of what was sent: the ETag that the answer has.
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
  std::uint64_t size_ = 0;     // bytes to come; of a whole object, once its length is known
  std::span<std::byte> room_;  // for them, where there are no parts
  std::vector<Part> parts_;    // where there are
  std::size_t parts_done_ = 0;
  memory::ByteBuffer* buffer_ = nullptr;  // of a whole object
  std::uint64_t most_ = 0;
  bool is_sized_ = true;          // size_ is known
  std::vector<std::byte> grown_;  // of a whole object whose length nobody says
  HeldTo held_to_;
  std::optional<Version> version_;
  std::optional<Error> error_;
  std::optional<std::string> why_;  // the error is, where it is the request's

  std::size_t got_ = 0;  // bytes of size_
  int tries_ = 0, tries_in_a_row_ = 0, renewals_ = 0;
  std::chrono::milliseconds pause_{0};
  std::uint64_t received_ = 0;
  bool sends_ = false;         // the request has a body; its answer is no object, and is taken as it comes
  std::uint64_t sending_ = 0;  // bytes of that
  std::uint64_t keys_ = 0;
  bool heads_ = false;  // nothing but the answer's head is wanted
  bool compares_ = false;
  HedgeCounts* hedging_ = nullptr;
  std::optional<ObjectSum> said_;  // by the first answer that has bytes
  int moves_ = 0;
  bool was_damaged_ = false;
  // of the answer under way
  ResponseHead head_;
  bool judged_ = false, taken_ = false, growing_ = false;
  bool cut_ = false;            // its body goes on behind what is wanted
  std::uint64_t skip_ = 0;      // bytes of the body before those wanted
  std::uint64_t expected_ = 0;  // bytes of the body that are wanted
  std::uint64_t had_ = 0;       // of them
  std::uint64_t ignored_ = 0;   // of a body that is no data
  std::string refusal_;         // the beginning of a body that is no data
  std::string contradiction_;   // how the header contradicts itself; empty if it does not
};

}  // namespace feedline::storage
