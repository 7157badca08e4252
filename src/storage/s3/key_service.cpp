// SPDX-License-Identifier: Apache-2.0
#include "storage/s3/key_service.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>
#include <utility>

#include "storage/http/transfer.h"
#include "storage/local_storage.h"
#include "text/json_value.h"
#include "text/numbers.h"

namespace feedline::storage {
namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;  // size of a file or a response with keys

class KeyService final : public Site {
 public:
  explicit KeyService(Call call) : call_(std::move(call)) {}
  Result<Call> call(const std::string& /*object*/, std::string_view /*query*/) const override { return call_; }
  std::string deed() const override { return "get keys"; }

 private:
  const Call call_;
};

// A member of an object, or of nested objects; nullptr if there is none with this name.
const text::JsonValue* find_member(const text::JsonValue& object, std::string_view name) {
  if (const text::JsonValue* const own = object.find(name)) return own;
  for (const auto& [other, value] : object.members)
    if (const text::JsonValue* const inner = find_member(value, name)) return inner;
  return nullptr;
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
  const auto document = text::parse_json(json);
  const text::JsonValue* const value = document ? find_member(*document, name) : nullptr;
  return value && value->kind == text::JsonValue::Kind::kText ? value->text : std::string();
}

std::optional<std::int64_t> json_number(std::string_view json, std::string_view name) {
  const auto document = text::parse_json(json);
  const text::JsonValue* const value = document ? find_member(*document, name) : nullptr;
  return value && value->kind == text::JsonValue::Kind::kNumber ? text::parse_number(value->text).whole : std::nullopt;
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
