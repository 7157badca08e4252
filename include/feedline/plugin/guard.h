// SPDX-License-Identifier: Apache-2.0
#pragma once

// For plugins in C++11 or later.

#include <cstdio>
#include <exception>

#include "feedline/plugin/plugin.h"

namespace feedline {

inline int plugin_failure(feedline_message* message, int code, const char* text) noexcept {
  std::snprintf(message->text, sizeof message->text, "%s", text);
  return code;
}

// Returns body(), which returns a code, or FEEDLINE_BAD_DATA with the text of the exception that it throws.
template <typename Body>
int plugin_guard(feedline_message* message, Body&& body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {
    return plugin_failure(message, FEEDLINE_BAD_DATA, error.what());
  } catch (...) {
    return plugin_failure(message, FEEDLINE_BAD_DATA, "an exception of an unknown type");
  }
}

}  // namespace feedline
