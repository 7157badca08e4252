// SPDX-License-Identifier: Apache-2.0
#include "feedline/error.h"

#include <cerrno>
#include <cstring>
#include <utility>

namespace feedline {
namespace {

std::unexpected<Error> make(ErrorCode code, std::string what) {
  Error error;
  error.code = code;
  error.what = std::move(what);
  return std::unexpected(std::move(error));
}

}  // namespace

std::string Error::message() const {
  std::string text = what;
  // not for missing files or for errors of servers and networks: their `what` already has the reason
  if (system_errno != 0 && system_errno != ENOENT && system_errno != EREMOTEIO)
    text += std::string(": ") + std::strerror(system_errno);
  std::string location;
  const auto add = [&location](const char* name, const std::string& value) {
    if (value.empty()) return;
    location += location.empty() ? "" : ", ";
    location += std::string(name) + " " + value;
  };
  add("dataset", where.dataset);
  if (where.shard != where.dataset) add("shard", where.shard);
  add("key", where.key);
  if (where.record) add("record", std::to_string(*where.record));
  if (!where.label.empty()) add("index", "'" + where.label + "'");
  if (where.offset) add("byte offset", std::to_string(*where.offset));
  add("stage", where.stage);
  return location.empty() ? text : text + " [" + location + "]";
}

std::unexpected<Error> config_error(std::string what) { return make(ErrorCode::kConfig, std::move(what)); }

std::unexpected<Error> data_error(std::string what, std::string stage) {
  auto error = make(ErrorCode::kData, std::move(what));
  error.error().where.stage = std::move(stage);
  return error;
}

std::unexpected<Error> storage_error(std::string what, int system_errno) {
  if (system_errno == ENOENT) what = what.empty() ? "no such file or folder" : what + ": no such file or folder";
  auto error = make(ErrorCode::kStorage, std::move(what));
  error.error().system_errno = system_errno;
  error.error().where.stage = "storage";
  return error;
}

std::unexpected<Error> internal_error(std::string what) { return make(ErrorCode::kInternal, std::move(what)); }

}  // namespace feedline
