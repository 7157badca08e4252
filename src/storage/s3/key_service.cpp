// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/key_service.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>
#include <utility>

#include "storage/http/transfer.h"
#include "storage/local_storage.h"

namespace feedline::storage {
namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;  // of a file or an answer with keys

class KeyService final : public Site {
 public:
  explicit KeyService(Call call) : call_(std::move(call)) {}
  Result<Call> call(const std::string& /*object*/, std::string_view /*query*/) const override { return call_; }
  std::string deed() const override { return "get keys"; }

 private:
  const Call call_;
};

// The start of the value of "name":; npos if missing.
std::size_t value_at(std::string_view json, std::string_view name) {
  const std::string quoted = "\"" + std::string(name) + "\"";
  std::size_t at = json.find(quoted);
  if (at == json.npos) return at;
  at = json.find_first_not_of(" \t\r\n", at + quoted.size());
  if (at == json.npos || json[at] != ':') return json.npos;
  return json.find_first_not_of(" \t\r\n", at + 1);
}

char unescaped(char c) {
  static constexpr std::string_view kLetters = "nrtbf", kMeant = "\n\r\t\b\f";
  const std::size_t found = kLetters.find(c);
  return found == kLetters.npos ? c : kMeant[found];
}

}  // namespace

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

Result<std::string> key_file_text(const std::string& path) {
  memory::ByteBuffer buffer;
  FEEDLINE_TRY(const auto bytes, local_storage()->read_all(path, buffer, kMostBytes));
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string json_text(std::string_view json, std::string_view name) {
  std::size_t at = value_at(json, name);
  if (at == json.npos || json[at] != '"') return {};
  std::string text;
  for (++at; at < json.size() && json[at] != '"'; ++at) {
    if (json[at] != '\\') {
      text += json[at];
      continue;
    }
    if (++at == json.size()) return {};
    if (json[at] != 'u') {
      text += unescaped(json[at]);
      continue;
    }
    const std::string digits(json.substr(at + 1, 4));  // "\u003d": Google's writers escape "=" and the like
    char* end = nullptr;
    const long code = std::strtol(digits.c_str(), &end, 16);
    if (digits.size() != 4 || *end != '\0' || code <= 0 || code > 127) return {};
    text += static_cast<char>(code);
    at += 4;
  }
  return at < json.size() ? text : std::string();
}

std::optional<std::int64_t> json_number(std::string_view json, std::string_view name) {
  const std::size_t at = value_at(json, name);
  if (at == json.npos) return {};
  const std::string_view rest = json.substr(at);
  const auto digits = parse_size(rest.substr(0, std::min(rest.find_first_not_of("0123456789"), rest.size())));
  return digits ? std::optional(static_cast<std::int64_t>(*digits)) : std::nullopt;
}

Result<std::string> KeyAsker::operator()(const std::string& what, Call call) const {
  const KeyService service(std::move(call));
  memory::ByteBuffer buffer;
  Transfer transfer(service, limits, what, buffer, kMostBytes, {});
  const auto got = client ? carry_out(*client, transfer) : carry_out(transfer);
  if (!got) return std::unexpected(got.error());
  return std::string(reinterpret_cast<const char*>(got->data()), got->size());
}

Result<std::string> KeyAsker::post(const std::string& what, const std::string& url, const std::string& form) const {
  return (*this)(what, {.url = url,
                        .headers = {"Content-Type: application/x-www-form-urlencoded"},
                        .method = "POST",
                        .body = std::as_bytes(std::span(form))});
}

KeyAsker KeyAsker::impatient() const {
  KeyAsker asker = *this;
  asker.limits.connect = std::min(limits.connect, std::chrono::milliseconds(1000));
  asker.limits.stall = std::min(limits.stall, std::chrono::milliseconds(2000));
  asker.limits.tries = 2;
  return asker;
}

}  // namespace feedline::storage
