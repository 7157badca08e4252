// SPDX-License-Identifier: Apache-2.0

// One read with any responses. The input determines the heads, and the bodies match them: they contain the object's
// bytes from the offset in Content-Range, or those of another object if the ETag differs. So the read must return the
// requested bytes of one object, and all of them if its version was known before or no response had a wrong object
// size.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "fuzz_input.h"
#include "memory/record.h"
#include "storage/http/transfer.h"

using namespace feedline;
using storage::ResponseHead;
using storage::Transfer;

namespace {

constexpr std::uint64_t kObjectBytes = 1000;
constexpr int kMostAnswers = 12;

class AnySite final : public storage::Site {
 public:
  Result<storage::Call> call(const std::string& /*object*/, std::string_view /*query*/) const override {
    return storage::Call{.url = "http://host/x", .headers = {}};
  }
};

std::byte byte_of(bool is_other, std::uint64_t offset) {
  return static_cast<std::byte>((offset * 7 + offset / 256 + (is_other ? 101 : 0)) & 255);
}

// Returns whether these are the bytes of this object at `offset`.
bool is_of(bool is_other, std::uint64_t offset, std::span<const std::byte> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] != byte_of(is_other, offset + i)) return false;
  return true;
}

struct Asked {
  std::uint64_t first = 0, last = kObjectBytes - 1;
  bool is_range = false;
};

Asked asked_by(const storage::Call& call) {
  constexpr std::string_view kRange = "Range: bytes=";
  for (const std::string& header : call.headers)
    if (header.starts_with(kRange)) {
      const std::size_t dash = header.find('-', kRange.size());
      return {std::stoull(header.substr(kRange.size())), std::stoull(header.substr(dash + 1)), true};
    }
  return {};
}

// Returns the lines of a head: correct, wrong and arbitrary ones.
std::vector<std::string> head_lines(FuzzInput& input, const Asked& asked) {
  static constexpr int kStatuses[] = {206, 200, 416, 412, 404, 503, 204, 301};
  std::vector<std::string> lines{"HTTP/1.1 " + std::to_string(kStatuses[input.number(1) % 8]) + " x"};
  const std::uint64_t last = std::min(asked.last, kObjectBytes - 1);
  const auto range = [&](std::uint64_t from, std::uint64_t to, const std::string& total) {
    lines.push_back("Content-Range: bytes " + std::to_string(from) + "-" + std::to_string(to) + "/" + total);
    lines.push_back("Content-Length: " + std::to_string(to - from + 1));
  };
  const std::string total = std::to_string(kObjectBytes);
  switch (input.number(1) % 8) {
    case 0:
      range(asked.first, last, total);
      break;
    case 1:
      range(asked.first + input.number(1), last, total);
      break;
    case 2:
      range(asked.first, last - input.number(1), total);
      break;
    case 3:
      range(asked.first, last, "*");
      break;
    case 4:
      range(asked.first, last, std::to_string(kObjectBytes + input.number(1)));
      break;
    case 5:
      lines.push_back("Content-Range: bytes */" + total);
      break;
    case 6:
      lines.push_back("Content-Length: " + total);
      break;
    case 7:
      lines.push_back("Content-Length: " + std::to_string(input.number(2)));
      break;
  }
  switch (input.number(1) % 8) {
    case 0:
    case 1:
    case 2:
    case 3:
      lines.push_back("ETag: \"a\"");
      break;
    case 4:
      lines.push_back("ETag: \"b\"");
      break;
    case 5:
      lines.push_back("ETag: W/\"a\"");
      break;
    case 6:
      lines.push_back("Transfer-Encoding: chunked");
      break;
    case 7:
      lines.emplace_back(input.text());
      break;
  }
  lines.emplace_back();
  return lines;
}

// A read of one of three kinds.
struct Read {
  AnySite site;
  storage::HttpLimits limits;
  std::uint64_t offset = 0, bytes = 0;
  bool is_held = false;
  std::vector<std::byte> room;
  std::vector<Transfer::Part> parts;
  memory::ByteBuffer buffer;
  std::optional<Transfer> transfer;
  bool is_whole = false;
};

storage::HeldTo held(bool is_held) {
  if (!is_held) return {};
  ResponseHead head;
  head.add("HTTP/1.1 200 OK", 0);
  head.add("Content-Length: " + std::to_string(kObjectBytes), 0);
  head.add("ETag: \"a\"", 0);
  return {head.version(), "\"a\""};
}

void begin(Read& read, FuzzInput& input) {
  read.limits.tries = 3;
  read.limits.tries_in_all = kMostAnswers;
  const std::uint64_t kind = input.number(1);
  read.is_held = (kind & 4) != 0 || kind % 4 == 1;  // required for parts
  read.offset = input.number(2) % (kObjectBytes + 50);
  read.bytes = input.number(2) % 600 + 1;
  if (kind % 4 == 1) {
    read.room.resize(read.bytes);
    for (std::uint64_t at = 0; at < read.bytes;) {
      const std::uint64_t begin = at + input.number(1) % 40, bytes = input.number(1) % 90 + 1;
      if (begin + bytes > read.bytes) break;
      read.parts.push_back({begin, std::span(read.room).subspan(begin, bytes)});
      at = begin + bytes;
    }
  }
  if (!read.parts.empty()) {
    read.transfer.emplace(read.site, read.limits, "x", read.offset, read.bytes, read.parts, held(true));
  } else if (kind % 4 == 2) {
    read.is_whole = true;
    read.offset = 0;
    read.transfer.emplace(read.site, read.limits, "x", read.buffer, 2 * kObjectBytes, held(read.is_held));
  } else {
    read.room.resize(read.bytes);
    read.transfer.emplace(read.site, read.limits, "x", read.offset, std::span(read.room), held(read.is_held));
  }
}

// Sends one response in pieces. Returns false if its object size was wrong, or cannot be distinguished from a wrong
// one.
bool answer(Transfer& transfer, FuzzInput& input, const Asked& asked) {
  ResponseHead head;
  for (const std::string& line : head_lines(input, asked)) {
    head.add(line, 0);
    transfer.on_header(line, 0);
  }
  const bool is_part = head.content_range && head.content_range->has_range;
  const std::uint64_t first = is_part ? head.content_range->first : 0;
  const std::uint64_t claimed =
      is_part ? head.content_range->last - first + 1 : head.content_length.value_or(kObjectBytes);
  // without a tag and a date, the object cannot be identified
  const bool is_unnamed = head.etag.empty() && !head.last_modified;
  const bool is_other = is_unnamed ? input.number(1) % 2 == 1 : !head.etag.empty() && head.etag != "\"a\"";
  std::uint64_t left = claimed;
  const std::uint64_t how = input.number(1);
  if (how % 4 == 1) left = left * input.number(1) / 256;
  if (how % 4 == 2) left += input.number(1);
  left = std::min<std::uint64_t>(left, 4 * kObjectBytes);
  const bool is_cut = left < claimed;
  for (std::uint64_t at = first; left > 0;) {
    const std::uint64_t most = input.number(1) * 4;  // 0: all of it
    std::vector<std::byte> piece(most == 0 ? left : std::min(left, most));
    for (std::byte& byte : piece) byte = byte_of(is_other, at++);
    if (!transfer.on_body(piece)) break;
    left -= piece.size();
  }
  const bool is_unframed = !head.content_length && !is_part && (is_cut || head.ends_by_itself);
  const auto bytes = head.object_bytes();
  return !is_unframed && (!bytes || *bytes == kObjectBytes);
}

void check(Read& read, bool was_true) {
  Transfer& transfer = *read.transfer;
  const auto there = [&](std::uint64_t offset, std::uint64_t bytes) {
    return std::min(bytes, kObjectBytes - std::min(kObjectBytes, offset));
  };
  const bool is_exact = was_true || (read.is_held && !read.is_whole);
  if (!read.parts.empty()) {
    for (std::size_t i = 0; i < read.parts.size(); ++i) {
      const auto got = transfer.result_of(i);
      FEEDLINE_CHECK(got || i >= transfer.parts_done());
      if (!got) continue;
      const std::uint64_t offset = read.offset + read.parts[i].begin;
      FEEDLINE_CHECK(got->size() == there(offset, read.parts[i].room.size()));
      FEEDLINE_CHECK(is_of(false, offset, *got));
    }
    return;
  }
  const auto got = transfer.result();
  if (!got) return;
  FEEDLINE_CHECK(read.is_whole || got->size() <= read.bytes);
  FEEDLINE_CHECK(is_of(false, read.offset, *got) || (!read.is_held && is_of(true, read.offset, *got)));
  if (is_exact) FEEDLINE_CHECK(got->size() == there(read.offset, read.is_whole ? kObjectBytes : read.bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  FuzzInput input(data, bytes);
  Read read;
  begin(read, input);
  bool was_true = true;
  for (int tries = 0; tries < 2 * kMostAnswers; ++tries) {
    const auto call = read.transfer->request();
    FEEDLINE_CHECK(call);
    read.transfer->begun();
    was_true = answer(*read.transfer, input, asked_by(*call)) && was_true;
    const std::uint64_t end = input.number(1);
    const char* const trouble = end % 3 == 1 ? "it broke" : "";
    const auto next = read.transfer->on_end(trouble, end % 2 == 0);
    FEEDLINE_CHECK(read.transfer->pause().count() >= 0);
    if (next == Transfer::Next::kDone) {
      check(read, was_true);
      return 0;
    }
  }
  FEEDLINE_CHECK(!"a read retries without end");
  return 0;
}
