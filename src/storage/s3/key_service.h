// SPDX-License-Identifier: Apache-2.0
#pragma once

// Code common to all key sources: files, variables, JSON, and services queried over HTTP.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "feedline/error.h"
#include "storage/http/client.h"
#include "storage/http/site.h"

namespace feedline::storage {

// An environment variable; empty if it is not set.
std::string variable(const char* name);
// The contents of a small local file.
Result<std::string> key_file_text(const std::string& path);
// A string member of a JSON object, or of nested objects; empty if there is none.
std::string json_text(std::string_view json, std::string_view name);
// The same for an integer.
std::optional<std::int64_t> json_number(std::string_view json, std::string_view name);

// Requests keys from a service. Its URL, the request and the response may be secret: errors contain only `what`.
struct KeyAsker {
  HttpLimits limits;
  Client* client = nullptr;  // nullptr: the process's client

  Result<std::string> operator()(const std::string& what, Call call) const;
  // The same with POST and encoded "name=value": a secret in a URL would appear in proxy logs.
  Result<std::string> post(const std::string& what, const std::string& url, const std::string& form) const;
  // For a service that does not exist on most machines: a slow response means that it does not exist.
  KeyAsker impatient() const;
};

}  // namespace feedline::storage
